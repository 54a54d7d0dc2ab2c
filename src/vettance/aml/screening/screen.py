"""Screen: search off the event loop, judge by what officers have said, write once, answer."""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from typing import Final, NamedTuple

import msgspec

from vettance import clock
from vettance.aml import sql as aml_sql
from vettance.aml import timeline_sql
from vettance.aml.case import Alert, Case, CaseEntry
from vettance.aml.findings import Severity
from vettance.aml.screening import sql
from vettance.aml.screening.screening_alert import (
    NO_HISTORY,
    AlertLink,
    History,
    NewAlert,
    entities_of,
    raise_alert,
    repeated,
    severity_of,
    summary_of,
)
from vettance.aml.screening.screening_request import ScreenRequest, sent_of
from vettance.db.engine import Clash, Lost, Row, Statement, Store
from vettance.errors import BadGateway, GatewayTimeout, Unavailable
from vettance.ids import IdSource
from vettance.telemetry.meters import Meters
from vettance.watchlists.match import EntityMatch, Subject
from vettance.watchlists.refresh import IndexKeeper
from vettance.watchlists.search import IndexGone, Searchers
from vettance.watchlists.search_processes import SearchFault
from vettance.watchlists.subject_screening import (
    MATCHES_MAX,
    Screening,
    ScreeningOutcome,
    screen,
    screening_record,
)
from vettance.watchlists.tenant_index import Reach, list_set_id
from vettance.wire.payload import encode

#: A search takes milliseconds; one that is not done by then is in a queue that no caller waits for.
DEADLINE_S: Final = 2.0
#: Matching is bound by the interpreter's lock: more threads only share it, and none would block the loop.
THREADS: Final = 2
#: What one process searches within the deadline, with room to spare.
WAITING_MAX: Final = 1_000
#: The `trigger` of screenings that a change of the lists made.
RESCREENING: Final = "LIST_CHANGE"
#: Tells the operator of the deployment how to mend it.
NO_LIST: Final = (
    "No watchlist is loaded, so nobody can be screened. Load one with `vettance watchlist import --source …`."
)
_TRIES: Final = 8


class SearchResult(msgspec.Struct):
    """A search that has been made, to be weighed as often as it takes to write the outcome."""

    versions: Mapping[str, str]
    index_id: str
    matches: list[EntityMatch]

    def search(self, _subject: Subject) -> list[EntityMatch]:
        """Return what was found."""
        return self.matches


class ScreeningAssessment(msgspec.Struct, frozen=True):
    """A search judged by the tenant's settings and by what its officers have said of the subject so far."""

    request: ScreenRequest
    screening: Screening
    history: History
    index_id: str

    @property
    def alerts(self) -> bool:
        """Tell whether somebody must look at it."""
        return self.screening.decision is not ScreeningOutcome.AUTO_CLEAR


class ScreeningWrite(NamedTuple):
    """A screening ready to be written: with its alert and its case, which are None when it found nothing.

    `alert` is None also where the screening repeats an open alert (`link` names that one). `statements` write
    everything but the case and its timeline (`entries`), so that a caller that changes a case by more
    than this writes it once.
    """

    screening_id: str
    answer: bytes
    link: AlertLink | None
    severity: Severity | None
    summary: str | None
    alert: Alert | None
    case: Case | None
    entries: tuple[CaseEntry, ...]
    statements: tuple[Statement, ...]


class Screener:
    """Screens subjects of tenants and keeps what came of it."""

    def __init__(
        self,
        store: Store,
        ids: IdSource,
        keeper: IndexKeeper,
        now_ms: Callable[[], int] = clock.now_ms,
        deadline_s: float = DEADLINE_S,
        searchers: Searchers | None = None,
        meters: Meters | None = None,
    ) -> None:
        """Searching is done by `searchers` where they can be asked, and by threads of this process if not."""
        self._store = store
        self._ids = ids
        self._keeper = keeper
        self._now_ms = now_ms
        self._deadline_s = deadline_s
        self._searchers = searchers
        self._meters = meters or Meters()
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="screening")
        self._waiting = 0
        self._subjects: dict[tuple[str, str], asyncio.Event] = {}

    @property
    def searches(self) -> int:
        """How many searches wait or are made."""
        return self._waiting

    @property
    def searchers(self) -> tuple[int, ...]:
        """The ids of the processes that make them."""
        return self._searchers.living if self._searchers is not None else ()

    def close(self) -> None:
        """Let go of the threads; a search under way ends by itself. The maker of `searchers` closes them."""
        self._threads.shutdown(wait=False, cancel_futures=True)

    async def screen(self, tenant: str, request: ScreenRequest, sent: bytes) -> bytes:
        """Screen a subject, keep the screening, and return the JSON that answers it.

        Raises `BadGateway` (502) while no index is loaded, `GatewayTimeout` (504) past the deadline and
        `Unavailable` (503) when too many wait.
        """
        started = time.perf_counter()
        found = await self.look(tenant, request)
        async with self.turn(tenant, request.external_id):
            for _ in range(_TRIES):
                weighed, before = await self.weigh_with_case(tenant, request, found)
                spent_ms = (time.perf_counter() - started) * 1000
                placed = self.place(tenant, weighed, before, self._now_ms(), sent, spent_ms)
                try:
                    await self._store.write(*placed.statements, *saving(tenant, before, placed))
                except (Clash, Lost):
                    continue  # An officer or another process changed a case of this subject in between.
                return placed.answer
        raise Unavailable("Others change the case of this subject at the moment.")

    async def look(self, tenant: str, request: ScreenRequest) -> SearchResult:
        """Search the lists for a subject, off the event loop.

        Raises `BadGateway` (502) while no index is loaded, `GatewayTimeout` (504) past the deadline and
        `Unavailable` (503) when too many wait.

        A caller that writes a screening together with an event that names a party takes these four
        steps; the middle two are repeated when the write is `Lost` or a `Clash`:

            request = party_request(customer, name, counterparty=True, now_ms=now_ms)    # None: no name
            found = await screener.look(tenant, request)                   # once, before any lock
            weighed = await screener.weigh(tenant, request, found)         # reads settings and history
            if not weighed.alerts:
                statements = screener.remember(tenant, weighed, now_ms)    # screened again when lists change
            else:
                placed = screener.place(tenant, weighed, case, now_ms)     # `case`: the customer's, or None
                statements = placed.statements
                # placed.case is the case with the alert in it, to be written with placed.entries;
                # placed.link.alert_id, placed.severity and placed.summary are what an answer shows.
            await store.write(*statements, …)
        """
        reach = await self._keeper.reach(tenant)
        if reach is None:
            raise BadGateway(NO_LIST)
        return SearchResult(reach.versions, reach.id, await self._search(reach, request.subject))

    async def weigh(
        self,
        tenant: str,
        request: ScreenRequest,
        found: SearchResult,
        read: Callable[[Statement], Awaitable[list[Row]]] | None = None,
    ) -> ScreeningAssessment:
        """Judge what was found by what is stored at the moment; `read` asks another than the store itself."""
        read = read or self._store.read
        settings = sql.settings_of(await read(sql.select_settings(tenant)))
        history = NO_HISTORY
        if entities := [match.entity.id for match in found.matches[:MATCHES_MAX]]:
            rows = await read(sql.select_history(tenant, request.external_id, request.role, entities))
            history = sql.history_of(rows)
        screening = screen(
            found, request.subject, request.profile or settings.profile, settings.bounds, history.cleared
        )
        return ScreeningAssessment(request, screening, history, found.index_id)

    async def weigh_with_case(
        self, tenant: str, request: ScreenRequest, found: SearchResult
    ) -> tuple[ScreeningAssessment, Case | None]:
        """Judge what was found, and read the open case of the subject where a new alert is to join it.

        What is stored is read again after the case. So an alert that another process put into that case
        meanwhile is seen and repeated, and one that it puts there later makes the write `Lost` or a `Clash`.
        """
        weighed = await self.weigh(tenant, request, found)
        if not weighed.alerts or repeated(weighed.screening, weighed.history) is not None:
            return weighed, None
        rows = await self._store.read(aml_sql.select_open_case(tenant, request.external_id))
        weighed = await self.weigh(tenant, request, found)
        return weighed, aml_sql.case_of(rows[0]) if rows else None

    def place(
        self,
        tenant: str,
        weighed: ScreeningAssessment,
        case: Case | None,
        now_ms: int,
        sent: bytes | None = None,
        spent_ms: float = 0.0,
    ) -> ScreeningWrite:
        """Make the record of a screening, and put its alert into `case` (None: a new case) if it has one.

        `sent` is the body that asked for it; None writes one from the request.
        """
        request, screening = weighed.request, weighed.screening
        screening_id = self._ids.make("scr", now_ms)
        statements: list[Statement] = []
        link: AlertLink | None = None
        raised: NewAlert | None = None
        known = repeated(screening, weighed.history) if weighed.alerts else None
        if known is not None:
            link = AlertLink(known.id, known.case_id, case_created=False)
            statements.append(aml_sql.repeat_alert(tenant, known.id, now_ms))
        elif weighed.alerts:
            subject = (request.external_id, request.subject.name)
            raised = raise_alert(screening, screening_id, subject, case, self._ids, now_ms, request.trigger)
            link = raised.link
            statements.append(aml_sql.insert_alert(tenant, raised.alert))
            statements += [
                sql.insert_alert_entity(tenant, raised.alert.id, request.role, entity, digest)
                for entity, digest in entities_of(screening).items()
            ]
        record = screening_record(screening, screening_id, request.external_id, spent_ms)
        if request.trigger is not None:
            record["trigger"] = request.trigger
        answer = encode(record | (link.members() if link is not None else {}))
        body = sent if sent is not None else sent_of(request)
        stored = sql.StoredScreening(
            screening_id,
            request.external_id,
            weighed.index_id,
            now_ms,
            body,
            answer,
            link,
        )
        return ScreeningWrite(
            screening_id=screening_id,
            answer=answer,
            link=link,
            severity=severity_of(screening) if weighed.alerts else None,
            summary=summary_of(screening, request.subject.name) if weighed.alerts else None,
            alert=raised.alert if raised is not None else None,
            case=raised.after if raised is not None else case,
            entries=raised.entries if raised is not None else (),
            statements=(
                sql.insert_screening(tenant, screening, stored),
                *statements,
                *self._remembering(tenant, weighed, screening_id, body, now_ms),
            ),
        )

    def remember(self, tenant: str, weighed: ScreeningAssessment, now_ms: int) -> tuple[Statement, ...]:
        """Return what has a subject who was found on no list screened again when a list changes.

        Only for what came without a request of its own: it changes nothing of a subject that is known.
        """
        return self._remembering(tenant, weighed, "", sent_of(weighed.request), now_ms)

    def _remembering(
        self, tenant: str, weighed: ScreeningAssessment, screening_id: str, sent: bytes, now_ms: int
    ) -> tuple[Statement, ...]:
        request, versions = weighed.request, weighed.screening.versions
        if request.trigger == RESCREENING:
            return ()  # Rescreening notes that in a way of its own.
        list_set = list_set_id(versions)
        subject = sql.StoredSubject(request.external_id, request.role, list_set, screening_id, sent)
        return (
            sql.insert_list_set(list_set, versions),
            sql.insert_subject(tenant, subject, now_ms, replace=request.trigger is None),
        )

    async def find(self, tenant: str, screening_id: str) -> bytes | None:
        """Return what a screening was answered with, or None."""
        rows = await self._store.read(sql.select_answer(tenant, screening_id))
        return bytes(rows[0][0]) if rows else None

    async def _search(self, reach: Reach, subject: Subject) -> list[EntityMatch]:
        if self._waiting >= WAITING_MAX:
            raise Unavailable("Too many screenings wait.")
        self._waiting += 1
        started_ns, result = time.perf_counter_ns(), "failed"
        try:
            async with asyncio.timeout(self._deadline_s):
                if self._searchers is not None and self._searchers.ensure(reach.folders[0]):
                    with contextlib.suppress(IndexGone):
                        matches = await self._searchers.search(reach.folders, subject, self._deadline_s)
                        result = "answered"
                        return matches
                matches = await asyncio.get_running_loop().run_in_executor(
                    self._threads, reach.search, subject
                )
                result = "answered"
                return matches
        except TimeoutError:
            result = "late"
            raise GatewayTimeout("The screening was not done in time; nothing of it was kept.") from None
        except SearchFault as error:
            raise Unavailable(f"The lists could not be searched ({error}).") from None
        finally:
            self._waiting -= 1
            self._meters.searched(result, time.perf_counter_ns() - started_ns)

    @asynccontextmanager
    async def turn(self, tenant: str, external_id: str) -> AsyncIterator[None]:
        """Let the screenings of one subject take turns, so that they meet in one case instead of clashing."""
        name = (tenant, external_id)
        try:
            async with asyncio.timeout(self._deadline_s):
                while (other := self._subjects.get(name)) is not None:
                    await other.wait()
        except TimeoutError:
            raise GatewayTimeout("The screening was not done in time; nothing of it was kept.") from None
        self._subjects[name] = done = asyncio.Event()
        try:
            yield
        finally:
            del self._subjects[name]
            done.set()


def saving(tenant: str, before: Case | None, placed: ScreeningWrite) -> list[Statement]:
    """Return what writes the case of a new alert and its timeline."""
    if placed.alert is None or placed.case is None:
        return []
    saved = (
        aml_sql.insert_case(tenant, placed.case)
        if before is None
        else aml_sql.update_case(tenant, before, placed.case)
    )
    return [saved, *(timeline_sql.insert_entry(tenant, placed.case.id, entry) for entry in placed.entries)]
