"""Session sync: keeps live sessions equal to the batches in the store, whichever process wrote them."""

import asyncio
import contextlib
import time
from collections.abc import Callable, Iterator
from typing import Final
from weakref import WeakValueDictionary

from vettance import clock
from vettance.db.engine import Row, Store, StoreDown, still_asked
from vettance.events.browser_session import BATCH_MS, SessionIndex, counts_since, merge
from vettance.fairness.isolation import Isolation
from vettance.fairness.share_look import SharedLook
from vettance.fairness.skipped_rows import Skipped
from vettance.redis_link.announcements import Announcements
from vettance.redis_link.down import StateDown
from vettance.telemetry.meter_table import Rows
from vettance.websdk import sql
from vettance.wire.payload import JSON, decode

#: How long another process may take to see a batch; the one that took it sees it at once.
LOOK_S: Final = 0.5
_CHUNK: Final = 2_000
#: Batches merged at a time: at most 2 MB of them, which take some milliseconds of the thread that decides.
_MERGED_AT_ONCE: Final = 64
_TIDY_S: Final = 60.0
_TIDY_ROWS: Final = 2_000  # A few milliseconds of the writer's time.


class SessionSync:
    """Notes batches in the order in which they were stored, each once; merges those of a session when asked.

    A start therefore reads no signals at all, however many are stored.
    """

    def __init__(
        self,
        store: Store,
        book: SessionIndex,
        now_ms: Callable[[], int] = clock.now_ms,
        skipped: Skipped | None = None,
        announcements: Announcements | None = None,
    ) -> None:
        self._skipped = skipped or Skipped()
        self._store = store
        self._book = book
        self._now_ms = now_ms
        self._seen = 0
        self._shared = SharedLook(self._look)
        #: Where processes tell each other of batches; None in a process that is alone.
        self.announcements = announcements
        self._turns: WeakValueDictionary[tuple[str, str], asyncio.Lock] = WeakValueDictionary()
        self._isolation = Isolation("sessions")

    async def announce(self, tenant: str) -> None:
        """Tell other processes of a batch that was just stored; without Redis they find it by themselves."""
        if self.announcements is not None:
            with contextlib.suppress(StateDown):
                await self.announcements.announce(tenant)

    async def freshen(self, tenant: str, session: str) -> None:
        """Take in the batches of a session that any process has acknowledged. Raises `StoreDown`."""
        if self.announcements is not None:
            await self.announcements.follow(tenant, self.catch_up)
        if self._book.waiting(tenant, session, self._now_ms(), 1) is not None:
            await self._merge(tenant, session)

    async def catch_up(self) -> None:
        """Note every batch stored before this call. Calls that wait for each other share one look."""
        await self._shared.ask()

    async def _look(self) -> None:
        since_ms = counts_since(self._now_ms())
        while rows := await self._store.read(sql.select_batches(self._seen, since_ms, _CHUNK)):
            for row in rows:
                self._note(sql.batch_of(row))
            self._seen = rows[-1][0]

    async def begin_again(self, tenant: str) -> None:
        """Note the batches of a tenant anew, which are not what they were. Raises `StoreDown`."""
        async with self._shared.turn:
            self._book.drop(tenant)
            after, since_ms = 0, counts_since(self._now_ms())
            while rows := await self._store.read(sql.select_batches(after, since_ms, _CHUNK)):
                after = rows[-1][0]
                for batch in map(sql.batch_of, rows):
                    if batch.tenant == tenant and batch.seq <= self._seen:
                        self._note(batch)

    def _note(self, batch: sql.StoredBatch) -> None:
        names = {batch.sdk_session, batch.tenant_session or batch.sdk_session}
        self._book.note(batch.tenant, names, batch.seq, batch.received_at_ms)

    async def _merge(self, tenant: str, session: str) -> None:
        """Merge the batches of a session that wait for it. Evaluations that wait for each other share it."""
        turn = self._turns.setdefault((tenant, session), asyncio.Lock())
        async with turn:
            while waiting := self._book.waiting(tenant, session, self._now_ms(), _MERGED_AT_ONCE):
                rows: list[Row] = []
                asked = waiting.seqs
                while asked:
                    piece = await self._store.read(sql.select_signals(tenant, asked))
                    rows += piece
                    asked = still_asked(asked, piece)
                signals = merge(waiting.signals, self._legible(tenant, sorted(rows)))
                self._book.settle(tenant, session, waiting, signals)

    def _legible(self, tenant: str, rows: list[Row]) -> Iterator[JSON]:
        for seq, signals in rows:
            try:
                batch = decode(signals)
                batch.items()
            except Exception as error:  # noqa: BLE001  One batch must not keep the others from being seen.
                self._skipped.note(Rows.SIGNALS, tenant, str(seq), error)
            else:
                yield batch

    async def settle(self) -> None:
        """Merge sessions for which many batches wait, so that no evaluation has to."""
        for tenant, session in self._book.crowded():
            await self._merge(tenant, session)

    async def tidy(self) -> None:
        """Forget sessions that are over, here and in the store."""
        now_ms = self._now_ms()
        self._book.forget(now_ms)
        while True:
            deleted = await self._store.write(sql.delete_batches(now_ms - BATCH_MS, _TIDY_ROWS))
            if deleted[0] < _TIDY_ROWS:
                return
            await asyncio.sleep(LOOK_S)  # Others want the writer too.

    async def run(self) -> None:
        """Follow for ever; a store that does not answer is tried again."""
        tidy_at_s = time.monotonic() + _TIDY_S
        while True:
            await asyncio.sleep(LOOK_S)
            with contextlib.suppress(StoreDown), self._isolation.of(""):
                await self.catch_up()
                await self.settle()
                if time.monotonic() >= tidy_at_s:
                    tidy_at_s = time.monotonic() + _TIDY_S
                    await self.tidy()
