"""The command line of screening: the profile and the review bounds of a tenant."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

import click

from vettance.aml.screening import sql
from vettance.commands import Whole, data_option, fail, find_tenant, json_option, open_store, show
from vettance.watchlists.subject_screening import SHOWN_MIN, Profile

if TYPE_CHECKING:
    from vettance.aml.screening.screening_alert import ScreeningSettings

_BOUND: Final = Whole(SHOWN_MIN, 100)


@click.command("screening")
@click.option("--tenant", "tenant_id", required=True, metavar="ID", help="Whose.")
@click.option("--profile", type=click.Choice(list(Profile)), help="Of requests that name none.")
@click.option("--conservative", type=_BOUND, help="Review bound of CONSERVATIVE.")
@click.option("--balanced", type=_BOUND, help="Review bound of BALANCED.")
@click.option("--liberal", type=_BOUND, help="Review bound of LIBERAL.")
@json_option
@data_option
def set_screening(
    tenant_id: str,
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
            _refuse_disorder(changed)
            await store.write(sql.save_settings(tenant_id, changed))
            return changed

    settings = asyncio.run(work())
    bounds = {name.value: settings.bounds[name] for name in Profile}
    shown = ", ".join(f"{name} from {bound}" for name, bound in bounds.items())
    show(
        {"tenantId": tenant_id, "profile": settings.profile.value, "bounds": bounds},
        f"Screens as {settings.profile.value} unless a request says otherwise; review at {shown}.",
        as_json=as_json,
    )


def _refuse_disorder(settings: ScreeningSettings) -> None:
    """A more sensitive profile must never clear what a less sensitive one holds."""
    bounds = [settings.bounds[name] for name in Profile]
    if bounds != sorted(bounds):
        fail("the bounds must not fall from CONSERVATIVE over BALANCED to LIBERAL")
