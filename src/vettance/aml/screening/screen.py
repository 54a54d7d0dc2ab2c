"""Screen: search off the event loop, judge by what officers have said, write once, answer."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from typing import Final

import msgspec

from vettance.aml import sql as aml_sql
from vettance.aml.screening import sql
from vettance.aml.screening.alert import Link, entities_of, raise_alert, repeated
from vettance.aml.screening.request import ScreenRequest
from vettance.db.engine import Clash, Lost, Statement, Store
from vettance.errors import BadGateway, GatewayTimeout, Unavailable
from vettance.ids import IdSource
from vettance.watchlists.match import Match, Subject
from vettance.watchlists.refresh import IndexKeeper
from vettance.watchlists.screening import Decision, Screening, screen, screening_record
from vettance.wire import encode

#: A search takes milliseconds; one that is not done by then stands in a queue that no caller waits for.
DEADLINE_S: Final = 2.0
#: Matching is bound by the interpreter's lock: more threads only share it, and none would block the loop.
THREADS: Final = 2
#: What two threads search within the deadline, with room to spare.
WAITING_MAX: Final = 1_000
_TRIES: Final = 8


class _Found(msgspec.Struct):
    """A search that has been made, to be judged as often as it takes to write the outcome."""

    versions: Mapping[str, str]
    matches: list[Match]

    def search(self, _subject: Subject) -> list[Match]:
        return self.matches


class Screener:
    """Screens subjects of tenants and keeps what came of it."""

    def __init__(
        self,
        store: Store,
        ids: IdSource,
        keeper: IndexKeeper,
        now_ms: Callable[[], int] | None = None,
        deadline_s: float = DEADLINE_S,
    ) -> None:
        self._store = store
        self._ids = ids
        self._keeper = keeper
        self._now_ms = now_ms or (lambda: time.time_ns() // 1_000_000)
        self._deadline_s = deadline_s
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="screening")
        self._waiting = 0
        self._subjects: dict[tuple[str, str], asyncio.Event] = {}

    def close(self) -> None:
        """Let go of the threads; a search under way ends by itself."""
        self._threads.shutdown(wait=False, cancel_futures=True)

    async def screen(self, tenant: str, request: ScreenRequest, sent: bytes) -> bytes:
        """Screen a subject, keep the screening, and return the JSON that answers it.

        Raises `BadGateway` (502) while no index is loaded, `GatewayTimeout` (504) past the deadline and
        `Unavailable` (503) when too many wait.
        """
        started = time.perf_counter()
        index = self._keeper.current
        if index is None:
            raise BadGateway("No watchlist is loaded, so nobody can be screened.")
        found = _Found(index.versions, await self._search(index.search, request.subject))
        async with self._turn(tenant, request.external_id):
            for _ in range(_TRIES):
                answer, statements = await self._judge(
                    tenant, request, found, sent, index.folder.name, started
                )
                try:
                    await self._store.write(*statements)
                except (Clash, Lost):
                    continue  # An officer or another process changed a case of this subject in between.
                return answer
        raise Unavailable("Others change the case of this subject at the moment.")

    async def find(self, tenant: str, screening_id: str) -> bytes | None:
        """Return what a screening was answered with, or None."""
        rows = await self._store.read(sql.select_answer(tenant, screening_id))
        return bytes(rows[0][0]) if rows else None

    async def _search(self, search: Callable[[Subject], list[Match]], subject: Subject) -> list[Match]:
        if self._waiting >= WAITING_MAX:
            raise Unavailable("Too many screenings wait.")
        self._waiting += 1
        try:
            loop = asyncio.get_running_loop()
            async with asyncio.timeout(self._deadline_s):
                return await loop.run_in_executor(self._threads, search, subject)
        except TimeoutError:
            raise GatewayTimeout("The screening was not done in time; nothing of it was kept.") from None
        finally:
            self._waiting -= 1

    @asynccontextmanager
    async def _turn(self, tenant: str, external_id: str) -> AsyncIterator[None]:
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

    async def _judge(
        self,
        tenant: str,
        request: ScreenRequest,
        found: _Found,
        sent: bytes,
        index_id: str,
        started: float,
    ) -> tuple[bytes, Sequence[Statement]]:
        """Decide with what is stored at the moment; return the answer, and all that is to be written."""
        settings_rows, history_rows = await asyncio.gather(
            self._store.read(sql.select_settings(tenant)),
            self._store.read(sql.select_history(tenant, request.external_id)),
        )
        settings, history = sql.settings_of(settings_rows), sql.history_of(history_rows)
        screening = screen(
            found, request.subject, request.profile or settings.profile, settings.bounds, history.cleared
        )
        now_ms = self._now_ms()
        screening_id = self._ids.make("scr", now_ms)
        link: Link | None = None
        statements: list[Statement] = []
        if screening.decision is not Decision.AUTO_CLEAR:
            known = repeated(screening, history)
            if known is not None:
                link = Link(known.id, known.case_id, case_created=False)
                statements.append(aml_sql.repeat_alert(tenant, known.id, now_ms))
            else:
                link, statements = await self._raise(tenant, request, screening, screening_id, now_ms)
        spent_ms = (time.perf_counter() - started) * 1000
        record = screening_record(screening, screening_id, request.external_id, spent_ms)
        answer = encode(record | (link.members() if link is not None else {}))
        stored = sql.StoredScreening(screening_id, request.external_id, index_id, now_ms, sent, answer, link)
        return answer, (sql.insert_screening(tenant, screening, stored), *statements)

    async def _raise(
        self, tenant: str, request: ScreenRequest, screening: Screening, screening_id: str, now_ms: int
    ) -> tuple[Link, list[Statement]]:
        rows = await self._store.read(aml_sql.select_open_case(tenant, request.external_id))
        before = aml_sql.case_of(rows[0]) if rows else None
        subject = (request.external_id, request.subject.name)
        raised = raise_alert(screening, screening_id, subject, before, self._ids, now_ms)
        saved = (
            aml_sql.insert_case(tenant, raised.after)
            if before is None
            else aml_sql.update_case(tenant, before, raised.after)
        )
        return raised.link, [
            saved,
            aml_sql.insert_alert(tenant, raised.alert),
            *(aml_sql.insert_entry(tenant, raised.after.id, entry) for entry in raised.entries),
            *(
                sql.insert_alert_entity(tenant, raised.alert.id, entity, digest)
                for entity, digest in entities_of(screening).items()
            ),
        ]
