"""The command line of screening: the profile and the review bounds of a tenant."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

import click

from vettance.aml.screening import sql
from vettance.commands import data_option, fail, find_tenant, json_option, open_store, show
from vettance.option_types import Whole
from vettance.rules.remote_rules import RemoteRules, tenant_or_server
from vettance.watchlists.subject_screening import SHOWN_MIN, Profile

if TYPE_CHECKING:
    from vettance.aml.screening.screening_alert import ScreeningSettings

_BOUND: Final = Whole(SHOWN_MIN, 100)


@click.command("screening")
@tenant_or_server
@click.option("--profile", type=click.Choice(list(Profile)), help="Of requests that name none.")
@click.option("--conservative", type=_BOUND, help="Review bound of CONSERVATIVE.")
@click.option("--balanced", type=_BOUND, help="Review bound of BALANCED.")
@click.option("--liberal", type=_BOUND, help="Review bound of LIBERAL.")
@json_option
@data_option
def set_screening(
    tenant_id: str,
    server: RemoteRules | None,
    profile: str | None,
    conservative: int | None,
    balanced: int | None,
    liberal: int | None,
    as_json: bool,
    data: str | None,
) -> None:
    """Show or change how a tenant screens; a running server follows with the next screening.

    Example: vettance aml screening --tenant ten_0190… --profile CONSERVATIVE --balanced 80
    """
    from vettance.aml.screening.screening_alert import ScreeningSettings

    wanted = {Profile.CONSERVATIVE: conservative, Profile.BALANCED: balanced, Profile.LIBERAL: liberal}
    new_bounds = {name: bound for name, bound in wanted.items() if bound is not None}

    async def work() -> ScreeningSettings:
        async with open_store(data) as (store, _):
            await find_tenant(store, tenant_id)
            known = sql.settings_of(await store.read(sql.select_settings(tenant_id)))
            if profile is None and not new_bounds:
                return known
            changed = ScreeningSettings(Profile(profile or known.profile), {**known.bounds, **new_bounds})
            if not changed.is_ordered:
                fail("the bounds must not fall from CONSERVATIVE over BALANCED to LIBERAL")
            await store.write(sql.save_settings(tenant_id, changed))
            return changed

    if server is not None:
        given = {"profile": profile, **{name.value.lower(): bound for name, bound in new_bounds.items()}}
        found = server.change("/aml/settings", given)
        found = {name: found[name] for name in ("profile", "bounds")}
    else:
        settings = asyncio.run(work())
        bounds = {name.value: settings.bounds[name] for name in Profile}
        found = {"tenantId": tenant_id, "profile": settings.profile.value, "bounds": bounds}
    shown = ", ".join(f"{name} from {bound}" for name, bound in found["bounds"].items())
    show(
        found,
        f"Screens as {found['profile']} unless a request says otherwise; review at {shown}.",
        as_json=as_json,
    )
