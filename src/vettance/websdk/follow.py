"""Follow: keep what is known of live sessions equal to the batches that the store took, whoever took them."""

import asyncio
import contextlib
import time
from collections.abc import Callable
from typing import Final, Protocol

from vettance import clock
from vettance.db.engine import Store, StoreDown
from vettance.isolate import Isolation
from vettance.ops.meters import Rows
from vettance.skipped import Skipped
from vettance.state.port import StateDown
from vettance.websdk import sql
from vettance.websdk.session import SESSION_MS, SessionBook
from vettance.wire import decode

#: How long another process may take to see a batch; the one that took it sees it at once.
LOOK_S: Final = 0.5
_CHUNK: Final = 2_000
_TIDY_S: Final = 60.0
_TIDY_ROWS: Final = 2_000  # A few milliseconds of the writer's time.


class Marks(Protocol):
    """What tells processes of each other's batches before they look themselves."""

    marks: dict[str, int]

    async def announce(self, tenant: str) -> None:
        """Tell every process, with a tenant's next request, that there is a batch. Raises `StateDown`."""


class Follower:
    """Reads batches in the order in which they were stored, each of them once."""

    def __init__(
        self,
        store: Store,
        book: SessionBook,
        now_ms: Callable[[], int] = clock.now_ms,
        skipped: Skipped | None = None,
    ) -> None:
        self._skipped = skipped or Skipped()
        self._store = store
        self._book = book
        self._now_ms = now_ms
        self._seen = 0
        self._turn = asyncio.Lock()
        self._asked = 0
        self._done = 0
        #: Where processes tell each other of batches; None in a process that is alone.
        self.marks: Marks | None = None
        self._known: dict[str, int] = {}
        self._isolation = Isolation("sessions")

    async def announce(self, tenant: str) -> None:
        """Tell other processes of a batch that was just stored; without Redis they find it by themselves."""
        if self.marks is not None:
            with contextlib.suppress(StateDown):
                await self.marks.announce(tenant)

    async def freshen(self, tenant: str) -> None:
        """Take in the batches of a tenant that any process has acknowledged. Raises `StoreDown`."""
        if self.marks is not None and (mark := self.marks.marks.get(tenant, 0)) != self._known.get(tenant, 0):
            await self.catch_up()
            self._known[tenant] = mark

    async def catch_up(self) -> None:
        """Take in every batch stored before this call. Calls that wait for each other share one look."""
        self._asked += 1
        asked = self._asked
        async with self._turn:
            if self._done >= asked:
                return
            covered = self._asked
            since_ms = self._now_ms() - SESSION_MS
            while rows := await self._store.read(sql.select_batches(self._seen, since_ms, _CHUNK)):
                for row in rows:
                    self._take(sql.batch_of(row))
                self._seen = rows[-1][0]
            self._done = covered

    def _take(self, batch: sql.Batch) -> None:
        try:
            names = {batch.sdk_session, batch.tenant_session or batch.sdk_session}
            self._book.take(batch.tenant, names, decode(batch.signals), batch.received_at_ms)
        except Exception as error:  # noqa: BLE001  One batch must not keep those after it from being seen.
            self._skipped.note(Rows.SIGNALS, batch.tenant, str(batch.seq), error)

    async def tidy(self) -> None:
        """Forget sessions that are over, here and in the store."""
        now_ms = self._now_ms()
        self._book.forget(now_ms)
        while True:
            deleted = await self._store.write(sql.delete_batches(now_ms - SESSION_MS, _TIDY_ROWS))
            if deleted[0] < _TIDY_ROWS:
                return
            await asyncio.sleep(LOOK_S)  # Others want the writer too.

    async def run(self) -> None:
        """Follow for ever; a store that is away is tried again."""
        tidy_at_s = time.monotonic() + _TIDY_S
        while True:
            await asyncio.sleep(LOOK_S)
            with contextlib.suppress(StoreDown), self._isolation.of(""):
                await self.catch_up()
                if time.monotonic() >= tidy_at_s:
                    tidy_at_s = time.monotonic() + _TIDY_S
                    await self.tidy()
