"""The doors of screening: a screening, what was answered, and the lists that are screened against."""

from collections.abc import Callable
from typing import Annotated, Final

import msgspec

from vettance import clock
from vettance.aml.screening import sql
from vettance.aml.screening.freshness import age_s, is_stale, stale_reason
from vettance.aml.screening.screen import Screener
from vettance.aml.screening.screening_request import ScreenBody, read_screen_request
from vettance.db.engine import Store
from vettance.errors import NotFound
from vettance.ids import IdSource, is_id
from vettance.telemetry.meters import Meters
from vettance.watchlists import sql as lists_sql
from vettance.watchlists.list_store import EVERYBODY
from vettance.watchlists.refresh import IndexKeeper
from vettance.watchlists.search import Searchers
from vettance.watchlists.sources.source_table import SOURCES
from vettance.watchlists.sql import StoredVersion
from vettance.watchlists.subject_screening import Profile, ScreeningOutcome
from vettance.watchlists.tenant_index import list_set_id
from vettance.web.routing import Call, Route, RouteReply
from vettance.wire.payload import Wire, timestamp

_TAG: Final = "AML"
_PRODUCT: Final = "aml"
_Absent = msgspec.UnsetType


class DecidingFactSchema(Wire, frozen=True):
    """The fact that was not sent and would confirm or clear a match most."""

    component: str
    member: Annotated[str, msgspec.Meta(description="The member of a request that says it.")]
    listed: Annotated[str, msgspec.Meta(description="What the list says of it.")]
    score_if_agrees: Annotated[int, msgspec.Meta(ge=0, le=100)]
    score_if_contradicts: Annotated[int, msgspec.Meta(ge=0, le=100)]
    explanation: str


class OverallFactSchema(Wire, frozen=True):
    """The fact that was not sent and would clear most of the subjects that were found."""

    component: str
    member: Annotated[str, msgspec.Meta(description="The member of a request that says it.")]
    clears_groups: Annotated[int, msgspec.Meta(description="Held groups that it clears if it contradicts.")]
    groups: Annotated[int, msgspec.Meta(description="Held groups.")]
    explanation: str


class MatchGroupSchema(Wire, frozen=True):
    """The entries of several lists about one subject."""

    group: int
    entity_name: str
    score: Annotated[int, msgspec.Meta(ge=0, le=100)]
    sources: list[str]
    watchlist_entity_ids: list[str]


class ClearedByFactsSchema(Wire, frozen=True):
    """A listed entity of the same name that another fact, such as its date of birth, rules out."""

    watchlist_entity_id: str
    entity_name: str
    matched_name: str
    source: str
    score: Annotated[int, msgspec.Meta(ge=0, le=100)]
    explanation: Annotated[str, msgspec.Meta(description="What contradicts, in sentences.")]


class MatchSchema(Wire, frozen=True):
    """A listed entity that the subject may be."""

    watchlist_entity_id: str
    score: Annotated[int, msgspec.Meta(ge=0, le=100)]
    classification: Annotated[str, msgspec.Meta(description="`EXACT`, `STRONG`, `MODERATE` or `WEAK`.")]
    matched_name: str
    entity_name: str
    source: Annotated[str, msgspec.Meta(description="The code of the list, such as `OFAC SDN`.")]
    sanction_reason: str | None
    match_city: str | None
    dates_of_birth: Annotated[list[str], msgspec.Meta(description="`yyyy-mm-dd`, or `yyyy` alone.")]
    score_breakdown: Annotated[dict[str, float], msgspec.Meta(description="Each component, 0 to 1.")]
    explanation: Annotated[dict[str, str], msgspec.Meta(description="A sentence for each component.")]
    entity_type: str
    name_quality: str
    programmes: list[str]
    list_name: str | None
    reference: str | None
    false_positive_remembered: bool
    group: Annotated[
        int | _Absent,
        msgspec.Meta(description="The same for entries of several lists about one subject."),
    ] = msgspec.UNSET
    contribution: Annotated[
        dict[str, float] | _Absent,
        msgspec.Meta(description="The points that each component gave or took; they add up to the score."),
    ] = msgspec.UNSET
    not_compared: Annotated[
        dict[str, str] | _Absent,
        msgspec.Meta(description="A sentence for each component that did not count: who did not say it."),
    ] = msgspec.UNSET
    deciding_fact: DecidingFactSchema | _Absent | None = msgspec.UNSET


class ScreeningSchema(Wire, frozen=True):
    """A screening. The members about a case are there when it alerted, and only then."""

    id: str
    external_id: str
    decision: ScreeningOutcome
    processing_ms: float
    lists_hit: list[str]
    matches: list[MatchSchema]
    sensitivity_profile: Profile
    review_bound: int
    algorithm: str
    list_versions: Annotated[dict[str, str], msgspec.Meta(description="The version of every list used.")]
    matches_found: Annotated[
        int | _Absent,
        msgspec.Meta(description="How many matches there were; the likeliest 20 are shown."),
    ] = msgspec.UNSET
    matches_cut: Annotated[
        bool | _Absent, msgspec.Meta(description="More matches were found than are shown.")
    ] = msgspec.UNSET
    groups: list[MatchGroupSchema] | _Absent = msgspec.UNSET
    cleared_by_facts: list[ClearedByFactsSchema] | _Absent = msgspec.UNSET
    deciding_fact: OverallFactSchema | _Absent | None = msgspec.UNSET
    trigger: Annotated[
        str | _Absent,
        msgspec.Meta(description="`LIST_CHANGE` or `EVENT`, where no request made the screening."),
    ] = msgspec.UNSET
    case_id: str | _Absent = msgspec.UNSET
    alert_id: str | _Absent = msgspec.UNSET
    case_created: bool | _Absent = msgspec.UNSET
    reused_existing_case: bool | _Absent = msgspec.UNSET


class WatchlistAnswer(Wire, frozen=True):
    """The version of a list that counts. `stale`: its publisher was not asked for a week."""

    source: str
    code: str
    title: str
    version: str
    entities: int
    names: int
    imported_at: str
    checked_at: str
    data_as_of: Annotated[
        str | None,
        msgspec.Meta(description="As its publisher states it in the files; else null."),
    ]
    age_seconds: Annotated[int, msgspec.Meta(description="Since `checkedAt`.")]
    stale: bool


class IndexAnswer(Wire, frozen=True):
    """The index that this process searches; it is made of the current version of every list."""

    id: str
    entities: int
    names: int


class RescreeningAnswer(Wire, frozen=True):
    """How far screening the tenant's known subjects again against the current versions is."""

    finished: bool
    subjects: Annotated[int, msgspec.Meta(description="Screened again so far.")]
    alerts: Annotated[int, msgspec.Meta(description="New alerts that came of it.")]
    started_at: str
    finished_at: str | None


class WatchlistsAnswer(Wire, frozen=True):
    """The lists that are screened against: everybody's and the tenant's own.

    `index` is null while none of everybody is loaded, `rescreening` while nobody was to be screened again
    against the current versions.
    """

    data: list[WatchlistAnswer]
    index: IndexAnswer | None
    rescreening: RescreeningAnswer | None


class ScreeningDoors:
    """Turns requests into screenings, and what is kept into answers."""

    def __init__(
        self,
        store: Store,
        ids: IdSource,
        keeper: IndexKeeper,
        now_ms: Callable[[], int] = clock.now_ms,
        searchers: Searchers | None = None,
        meters: Meters | None = None,
    ) -> None:
        self._store = store
        self._keeper = keeper
        self._now_ms = now_ms
        self.screener = Screener(store, ids, keeper, now_ms, searchers=searchers, meters=meters)

    def routes(self) -> tuple[Route, ...]:
        """The rows of the route table."""
        root = "/api/v1/aml"
        return (
            Route(
                "POST",
                f"{root}/screen",
                self.screen,
                "Screen a name against the watchlists",
                _TAG,
                takes=ScreenBody,
                answers=ScreeningSchema,
                refusals=(422, 502, 504),
                product=_PRODUCT,
            ),
            Route(
                "GET",
                f"{root}/screenings/{{id}}",
                self.screening,
                "What a screening answered",
                _TAG,
                answers=ScreeningSchema,
                refusals=(404,),
                product=_PRODUCT,
            ),
            Route(
                "GET",
                f"{root}/watchlists",
                self.watchlists,
                "The lists that are screened against",
                _TAG,
                answers=WatchlistsAnswer,
                product=_PRODUCT,
            ),
        )

    async def screen(self, call: Call) -> RouteReply:
        """POST /aml/screen."""
        request = read_screen_request(call.json(), self._now_ms())
        return RouteReply(msgspec.Raw(await self.screener.screen(call.tenant.id, request, call.body)))

    async def screening(self, call: Call) -> RouteReply:
        """GET /aml/screenings/{id}."""
        wanted = call.path["id"]
        found = await self.screener.find(call.tenant.id, wanted) if is_id(wanted, "scr") else None
        if found is None:
            raise NotFound
        return RouteReply(msgspec.Raw(found))

    async def watchlists(self, call: Call) -> RouteReply:
        """GET /aml/watchlists."""
        now_ms, index = self._now_ms(), self._keeper.current
        versions = [*await self._versions(), *await self._versions(call.tenant.id)]
        data = [_watchlist(stored, now_ms) for stored in versions]
        loaded = (
            IndexAnswer(id=index.folder.name, entities=index.entities, names=index.names) if index else None
        )
        return RouteReply(
            WatchlistsAnswer(data=data, index=loaded, rescreening=await self._rescreening(call.tenant.id))
        )

    async def _rescreening(self, tenant: str) -> RescreeningAnswer | None:
        reach = await self._keeper.reach(tenant)
        if reach is None:
            return None
        rows = await self._store.read(sql.select_rescreening(tenant, list_set_id(reach.versions)))
        if not rows:
            return None
        started_at_ms, finished_at_ms, subjects, alerts = rows[0]
        return RescreeningAnswer(
            finished=finished_at_ms is not None,
            subjects=subjects,
            alerts=alerts,
            started_at=timestamp(started_at_ms),
            finished_at=timestamp(finished_at_ms) if finished_at_ms is not None else None,
        )

    async def notice(self) -> str | None:
        """Say what is wrong with the lists, for readiness; None when nothing is, or none is loaded.

        It is no reason to take the service out of rotation: all the rest of it works.
        """
        return self._keeper.fault or stale_reason(await self._versions(), self._now_ms())

    async def _versions(self, owner: str = EVERYBODY) -> list[StoredVersion]:
        rows = await self._store.read(lists_sql.select_current(owner))
        return [lists_sql.version_of(row) for row in rows]


def _watchlist(stored: StoredVersion, now_ms: int) -> WatchlistAnswer:
    version = stored.version
    source = SOURCES.get(version.source)
    return WatchlistAnswer(
        source=version.source,
        code=source.code if source else version.source.upper(),
        title=source.title if source else version.source,
        version=version.version,
        entities=version.entities,
        names=version.names,
        imported_at=timestamp(stored.imported_at_ms),
        checked_at=timestamp(stored.checked_at_ms),
        data_as_of=timestamp(version.data_as_of_ms) if version.data_as_of_ms is not None else None,
        age_seconds=age_s(stored, now_ms),
        stale=is_stale(stored, now_ms),
    )
