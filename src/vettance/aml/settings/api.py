"""The doors of the settings of AML: how many officers close a case, and how names are screened."""

from collections.abc import Callable
from typing import Annotated, ClassVar, Final

import msgspec

from vettance import clock
from vettance.aml import sql
from vettance.aml.case import OfficerSettings
from vettance.aml.screening import sql as screening_sql
from vettance.aml.screening.screening_alert import ScreeningSettings
from vettance.aml.settings.sql import save_bounds, save_four_eyes, save_inline_screening, save_profile
from vettance.audit.act import describe
from vettance.db.engine import Store
from vettance.tenants.key_scope import KeyScope
from vettance.tenants.sql import note_change
from vettance.watchlists.subject_screening import SHOWN_MIN, Profile
from vettance.web.routing import Call, Route, RouteReply, reached_by
from vettance.wire.body import how, read_body
from vettance.wire.payload import JSON, Faults, Wire

_BOUND_MAX: Final = 100
_BOUND: Final = how(
    check=lambda value: value if SHOWN_MIN <= value <= _BOUND_MAX else None,
    message=f"must be from {SHOWN_MIN} to {_BOUND_MAX}",
)
_BOUNDS: Final = msgspec.Meta(ge=SHOWN_MIN, le=_BOUND_MAX, description="The least score that is reviewed.")


class AmlSettingsBody(Wire, frozen=True):
    """How AML is to work; what is left out stays as it is."""

    EXAMPLE: ClassVar[JSON] = {"fourEyes": True, "profile": "CONSERVATIVE"}

    four_eyes: (
        Annotated[bool, msgspec.Meta(description="Whether closing a case needs two officers.")] | None
    ) = None
    inline_screening: (
        Annotated[
            bool,
            msgspec.Meta(description="Whether names in AML events are compared with the watchlists."),
        ]
        | None
    ) = None
    profile: Annotated[Profile, how(value_is_422=True)] | None = None
    conservative: Annotated[int, _BOUNDS, _BOUND] | None = None
    balanced: Annotated[int, _BOUNDS, _BOUND] | None = None
    liberal: Annotated[int, _BOUNDS, _BOUND] | None = None


class AmlSettingsAnswer(Wire, frozen=True):
    """How AML works. `bounds` has the least score that is reviewed, by profile."""

    four_eyes: bool
    inline_screening: bool
    profile: Profile
    bounds: dict[str, int]


class AmlSettingsDoors:
    """Shows and changes how AML works for a tenant."""

    def __init__(self, store: Store, now_ms: Callable[[], int] = clock.now_ms) -> None:
        self._store = store
        self._now_ms = now_ms

    def routes(self) -> tuple[Route, ...]:
        """The rows of the route table."""
        path, tag, product = "/api/v1/aml/settings", "AML", "aml"
        shows = Route(
            "GET", path, self.show, "How AML works", tag, answers=AmlSettingsAnswer, product=product
        )
        changes = Route(
            "PUT",
            path,
            self.change,
            "Change how AML works; what is left out stays",
            tag,
            takes=AmlSettingsBody,
            answers=AmlSettingsAnswer,
            refusals=(422,),
            product=product,
        )
        # A pipeline's key for rules may look, and does not loosen how officers work.
        return (
            *reached_by((shows,), KeyScope.MANAGE, KeyScope.RULES),
            *reached_by((changes,), KeyScope.MANAGE),
        )

    async def show(self, call: Call) -> RouteReply:
        """GET /aml/settings."""
        return RouteReply(_answer(*await self._known(call.tenant.id)))

    async def change(self, call: Call) -> RouteReply:
        """PUT /aml/settings."""
        faults, tenant = Faults(), call.tenant.id
        said = read_body(call.json(), AmlSettingsBody, faults)
        faults.raise_unprocessable()
        officers, screening = await self._known(tenant)
        switches = {
            name: value
            for name in ("four_eyes", "inline_screening")
            if (value := getattr(said, name)) is not None
        }
        new_officers = msgspec.structs.replace(officers, **switches)
        bounds = {
            profile: bound
            for profile in Profile
            if (bound := getattr(said, profile.value.lower())) is not None
        }
        new_screening = ScreeningSettings(
            said.profile if said.profile is not None else screening.profile, {**screening.bounds, **bounds}
        )
        if not new_screening.is_ordered:
            faults.meaning[min(bounds, key=list(Profile).index).lower()] = (
                "the bounds must not fall from CONSERVATIVE over BALANCED to LIBERAL"
            )
            faults.raise_unprocessable()
        describe(before=msgspec.to_builtins(_answer(officers, screening)))
        writes = []
        if new_officers.four_eyes != officers.four_eyes:
            writes.append(save_four_eyes(tenant, is_on=new_officers.four_eyes))
        if new_officers.inline_screening != officers.inline_screening:
            writes.append(save_inline_screening(tenant, is_on=new_officers.inline_screening))
        if writes:
            writes.append(note_change(sql.AREA, tenant, "settings", self._now_ms()))
        if new_screening.profile != screening.profile:
            writes.append(save_profile(tenant, new_screening.profile))
        if new_screening.bounds != screening.bounds:
            writes.append(save_bounds(tenant, new_screening.bounds))
        if writes:
            await self._store.write(*writes)
        return RouteReply(_answer(new_officers, new_screening))

    async def _known(self, tenant: str) -> tuple[OfficerSettings, ScreeningSettings]:
        officers = sql.settings_of(await self._store.read(sql.select_settings(tenant)))
        return officers, screening_sql.settings_of(
            await self._store.read(screening_sql.select_settings(tenant))
        )


def _answer(officers: OfficerSettings, screening: ScreeningSettings) -> AmlSettingsAnswer:
    return AmlSettingsAnswer(
        four_eyes=officers.four_eyes,
        inline_screening=officers.inline_screening,
        profile=screening.profile,
        bounds={name.value: screening.bounds[name] for name in Profile},
    )
