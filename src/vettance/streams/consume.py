"""Consumes a stream: fetch, take into the store, confirm to the broker; and sends results meanwhile."""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import Final, NamedTuple

from vettance import clock
from vettance.db.engine import Store, StoreDown
from vettance.ids import IdSource
from vettance.jobs.sql import count_accepted
from vettance.streams import sql
from vettance.streams.broker import BrokerDown, MessageSink, MessageSource
from vettance.streams.send_results import ResultSender
from vettance.streams.stream_message import StreamMessage
from vettance.streams.take_messages import MessageTaker, StreamConsumer
from vettance.telemetry.logs import logger
from vettance.tenants.sql import select_last_change

#: How long a fetch waits for a first message; a stop waits for it.
FETCH_S: Final = 0.25
#: How often it is looked whether the backlog has become smaller, and whether results are due.
LOOK_S: Final = 0.1
#: How often a consumer looks after its tenant, and says that it lives. A deletion gives it six seconds.
BEAT_S: Final = 2.0
#: How long after the end of a connection the next is tried, at first and at the most.
AGAIN_S: Final = 1.0
AGAIN_S_MAX: Final = 30.0
#: A connection that has lasted so long was a good one.
_LASTING_S: Final = 60.0

_log = logger()


class ConsumeLimits(NamedTuple):
    """Bounds: messages fetched at a time, and events of the tenant that may wait for their decisions."""

    batch: int
    waiting_max: int


class StreamRun:
    """One run of a consumer, until it is stopped or, with `drain`, until everything is done.

    A message is confirmed to its broker only when it is in the store. While the backlog is full nothing is
    fetched, so the broker keeps what comes.
    """

    def __init__(
        self,
        store: Store,
        consumer: StreamConsumer,
        source: MessageSource,
        sinks: tuple[MessageSink | None, MessageSink | None],
        limits: ConsumeLimits,
        *,
        drain: bool = False,
        now_ms: Callable[[], int] = clock.now_ms,
    ) -> None:
        self._store = store
        self._consumer = consumer
        self._source = source
        self._sinks = [sink for sink in sinks if sink is not None]
        self._limits = limits
        self._drain = drain
        self._now_ms = now_ms
        self._taker = MessageTaker(store, consumer, IdSource(), now_ms)
        self._sender = ResultSender(store, consumer, *sinks, now_ms)
        self._stopping = asyncio.Event()
        self._counted_s = float("-inf")
        #: What this run has done.
        self.counts = sql.StreamCounts()
        #: How many events of the tenant wait for their decisions, as far as was counted.
        self.waiting = 0
        #: Why nothing goes on at the moment, by what it hinders.
        self.hindrances: dict[str, str] = {}
        #: Whether the run ended because its tenant is deleted, or being deleted.
        self.tenant_gone = False

    def stop(self) -> None:
        """End soon: what was fetched is taken and confirmed, the rest stays with the broker."""
        self._stopping.set()

    async def run(self) -> None:
        """Consume until stopped. Raises `BrokerDown` when a first connection fails."""
        after = (await self._store.read(select_last_change()))[0][0]
        fault: BaseException | None = None
        try:
            async with asyncio.TaskGroup() as group:
                beating = group.create_task(self._beat(after))
                if self._sinks:
                    group.create_task(self._keep("results", self._sinks, self._send))
                await self._keep("source", [self._source], self._receive)
                if self._drain:
                    await self._wait_for_the_rest()
                self._stopping.set()
                beating.cancel()
        except* BrokerDown as faults:
            fault = faults.exceptions[0]
        if fault is not None:
            raise fault

    async def _keep(
        self,
        what: str,
        ends: Sequence[MessageSource | MessageSink],
        act: Callable[[], Awaitable[None]],
    ) -> None:
        """Connect and act, and do both again whenever the broker or the store goes away."""
        wait_s, connected = AGAIN_S, False
        while True:
            begun_s = time.monotonic()
            try:
                async with _open(ends):
                    connected = True
                    self.hindrances.pop(what, None)
                    await act()
                    return
            except (BrokerDown, StoreDown) as error:
                if not connected:
                    raise  # A wrong address ends the run at once; later a broker may go and come back.
                self.hindrances[what] = str(error)
                _log.warning("stream_interrupted", what=what, consumer=self._consumer.name, why=str(error))
            if time.monotonic() - begun_s > _LASTING_S:
                wait_s = AGAIN_S
            if await self._stops_within(wait_s):
                return
            wait_s = min(wait_s * 2, AGAIN_S_MAX)

    async def _receive(self) -> None:
        quiet_since_s = time.monotonic()
        while not self._stopping.is_set():
            room = await self._room()
            if room <= 0:
                await self._stops_within(LOOK_S)
                continue
            messages = await self._source.fetch(min(self._limits.batch, room), FETCH_S)
            if messages:
                await self._take(messages)
                quiet_since_s = time.monotonic()
            elif self._drain and time.monotonic() - quiet_since_s > self._source.quiet_s:
                return

    async def _take(self, messages: Sequence[StreamMessage]) -> None:
        """Take messages however long the store does not answer. A stop leaves them with the broker."""
        while True:
            try:
                counts = await self._taker.take(messages)
                break
            except StoreDown as error:
                self.hindrances["store"] = str(error)
                if await self._stops_within(AGAIN_S):
                    return
        self.hindrances.pop("store", None)
        self.waiting += counts.accepted
        self.counts = self.counts.plus(counts)
        await self._source.confirm(messages)

    async def _room(self) -> int:
        """Return how many more events may wait. The store is asked now and then, and when it is scarce."""
        most = self._limits.waiting_max
        if self.waiting + self._limits.batch > most or time.monotonic() - self._counted_s > LOOK_S:
            self.waiting = (await self._store.read(count_accepted(self._consumer.tenant, most)))[0][0]
            self._counted_s = time.monotonic()
        return most - self.waiting

    async def _send(self) -> None:
        while True:
            sent = await self._sender.send_some()
            self.counts = self.counts.plus(sent)
            if self._stopping.is_set():
                return  # What is not settled yet, or more than one round, the next run sends.
            if not any(sent):
                await self._stops_within(LOOK_S)

    async def _wait_for_the_rest(self) -> None:
        """Wait until everything taken is decided and sent."""
        one = self._consumer
        while not self._stopping.is_set():
            asked = sql.count_due(one.tenant, one.name, 1) if self._sinks else count_accepted(one.tenant, 1)
            with contextlib.suppress(StoreDown):
                if not (await self._store.read(asked))[0][0]:
                    return
            await self._stops_within(LOOK_S)

    async def _beat(self, after: int) -> None:
        """Look whether the tenant is still there, and note that this consumer is."""
        one = self._consumer
        while True:
            with contextlib.suppress(StoreDown):
                if not await self._store.read(sql.select_presence(one.tenant, after)):
                    self.tenant_gone = True
                    self.stop()
                    return
                nothing = sql.StreamCounts()
                await self._store.write(sql.count(one.tenant, one.name, one.kind, nothing, self._now_ms()))
            await asyncio.sleep(BEAT_S)

    async def _stops_within(self, wait_s: float) -> bool:
        """Wait, unless the run is stopped meanwhile; tells whether it is."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(wait_s):
                await self._stopping.wait()
        return self._stopping.is_set()


@contextlib.asynccontextmanager
async def _open(ends: Sequence[MessageSource | MessageSink]) -> AsyncIterator[None]:
    try:
        for end in ends:
            await end.open()
        yield
    finally:
        for end in ends:
            await end.close()
