"""The link to a replica: how far it is behind its primary, and whether it may be read at the moment."""

import asyncio
import contextlib
import time
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Any, Final, NamedTuple

from vettance.db.engine import Row, Statement, StoreDown
from vettance.db.postgres_link import ERRORS, NO_REPLICA, connect, failure
from vettance.db.postgres_readers import PostgresReaders
from vettance.telemetry.outages import Outage

#: How often both servers are asked how far they are.
LOOK_S: Final = 1.0
#: A replica that takes longer to say so is not read.
_LOOK_S_MAX: Final = 1.0
#: Positions of the primary that are remembered: an hour of them; a replica further behind goes by its clock.
_SAMPLES_MAX: Final = 3_600

_PRIMARY: Final = Statement(
    "SELECT (pg_current_wal_flush_lsn() - '0/0')::bigint, "
    "(extract(epoch FROM clock_timestamp()) * 1000)::bigint"
)
_REPLICA: Final = (
    "SELECT pg_is_in_recovery(), (pg_last_wal_replay_lsn() - '0/0')::bigint, "
    "(extract(epoch FROM pg_last_xact_replay_timestamp()) * 1000)::bigint"
)
_NOTHING: Final = Statement("SELECT 1")
_WAIT_S: Final = 0.05
_CLUSTER: Final = "SELECT system_identifier::text FROM pg_control_system()"


#: Returns the rows of a query, as the primary has them.
AskPrimary = Callable[[Statement], Awaitable[list[Row]]]


class _Sample(NamedTuple):
    """Where the primary was at a moment of this process."""

    at_s: float
    position: int


class ReplicaLag:
    """How many seconds of the primary's log a replica lacks.

    By the positions of the primary that this process saw, so that an idle primary is no lag and no clock of
    another machine counts. A replica that is behind all of them goes by the primary's own clock: since the
    last commit that it has replayed.
    """

    def __init__(self) -> None:
        self._samples: deque[_Sample] = deque(maxlen=_SAMPLES_MAX)

    def measure(
        self, position: int, at_s: float, replayed: int, now_ms: int, replayed_at_ms: int | None
    ) -> float:
        """Return the lag at `at_s`, when the primary was at `position` and its clock at `now_ms`."""
        samples = self._samples
        if samples and position < samples[-1].position:
            samples.clear()  # Another primary, whose log is shorter.
        samples.append(_Sample(at_s, position))
        # The first one that is kept is the newest that the replica has reached.
        while len(samples) > 1 and samples[1].position <= replayed:
            samples.popleft()
        if samples[0].position <= replayed:
            return at_s - samples[1].at_s if len(samples) > 1 else 0.0
        seen_s = at_s - samples[0].at_s
        return seen_s if replayed_at_ms is None else max(seen_s, (now_ms - replayed_at_ms) / 1000)


class ReplicaLink:
    """Reads a replica as long as it is fit for that; `fault` says why it is not, or None.

    It is looked at every second, and at once when a read failed; until it has answered a look it is not read.
    An `outage` tells the log.
    """

    def __init__(
        self,
        url: str,
        ask_primary: AskPrimary,
        *,
        lag_s_max: float,
        read_s_max: float,
        outage: Outage | None = None,
        now_s: Callable[[], float] = time.monotonic,
    ) -> None:
        self._url = url
        self._ask_primary = ask_primary
        self._lag_s_max = lag_s_max
        self._now_s = now_s
        self._lag = ReplicaLag()
        self._readers = PostgresReaders(url, read_s_max, of_replica=True)
        self._reads: set[asyncio.Task[list[Row]]] = set()
        self._looker: Any = None
        self._asked = asyncio.Event()
        self._outage = outage
        self.fault: str | None = "it was not looked at yet"
        #: Seconds, as last measured; None while it cannot be.
        self.lag_s: float | None = None

    async def read(self, statement: Statement, position: int) -> list[Row]:
        """Return the rows of a query; the replica must have replayed `position` (bytes; 0 for any).

        Raises `StoreDown` and `Misuse`.
        """
        task = asyncio.create_task(self._readers.read(statement, position or None))
        self._reads.add(task)
        try:
            return await task
        except asyncio.CancelledError:
            if (current := asyncio.current_task()) is not None and current.cancelling():
                task.cancel()
                raise
            raise StoreDown("the replica went away") from None
        finally:
            self._reads.discard(task)

    def doubt(self, reason: str) -> None:
        """Read no more until the replica has answered a look, which is made at once."""
        self._break(reason)
        self._asked.set()

    async def run(self) -> None:
        """Look at the replica for ever."""
        while True:
            await self.look()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(LOOK_S):
                    await self._asked.wait()
            # Reads that go on to fail have it looked at no more often than this.
            await asyncio.sleep(LOOK_S / 10)
            self._asked.clear()

    async def look(self) -> None:
        """Measure the lag, and say whether the replica may be read."""
        try:
            async with asyncio.timeout(_LOOK_S_MAX):
                lag_s = await self.measure()
        except (StoreDown, TimeoutError, *ERRORS) as error:
            looker, self._looker = self._looker, None
            if looker is not None:
                looker.terminate()
            self.lag_s = None
            reason = error if isinstance(error, StoreDown) else failure(error)
            self._break(str(reason) if isinstance(reason, StoreDown) else "it cannot be asked how far it is")
            return
        if lag_s is None:
            return  # The primary does not say how far it is; it writes nothing either.
        self.lag_s = lag_s
        if lag_s > self._lag_s_max:
            # What it is asked already may end there: it was near enough when that began.
            self._note(f"it is {lag_s:.1f} s behind, more than {self._lag_s_max:g} s")
        else:
            self._note(None)

    async def measure(self) -> float | None:
        """Return the lag in seconds; None where the primary does not say how far it is.

        Raises `StoreDown`, or what the driver does.
        """
        if self._looker is None:
            self._looker = await self._connect()
        try:
            rows = await self._ask_primary(_PRIMARY)
        except StoreDown:
            rows = []
        at_s = self._now_s()
        is_replica, replayed, replayed_at_ms = await self._looker.fetchrow(_REPLICA)
        if not is_replica:
            raise StoreDown(NO_REPLICA)
        if not rows:
            return None
        position, now_ms = rows[0]
        return self._lag.measure(position, at_s, replayed or 0, now_ms, replayed_at_ms)

    async def _connect(self) -> Any:
        looker = await connect(self._url, statement_s_max=_LOOK_S_MAX, writes=False, standby=True)
        try:
            theirs = await looker.fetchval(_CLUSTER)
            ours = await self._ask_primary(Statement(_CLUSTER))
            if ours != [(theirs,)]:
                raise StoreDown("it follows another database than VETTANCE_DATABASE_URL")
        except BaseException:
            looker.terminate()
            raise
        return looker

    def _break(self, reason: str) -> None:
        """Stop reading: what is being read is read from the primary instead."""
        self._note(reason)
        self._readers.drop()
        for task in self._reads:
            task.cancel()

    def _note(self, fault: str | None) -> None:
        self.fault = fault
        if self._outage is None:
            return
        if fault is None:
            self._outage.up()
        else:
            self._outage.down(fault)

    async def wait_for(self, position: int, patience_s: float) -> None:
        """Wait until the replica may be read and has replayed a position, or patience is at its end."""
        until_s = self._now_s() + patience_s
        while self._now_s() < until_s:
            if self.fault is None:
                with contextlib.suppress(StoreDown):
                    await self.read(_NOTHING, position)
                    return
            await asyncio.sleep(_WAIT_S)

    async def close(self) -> None:
        """Let go of every connection."""
        looker, self._looker = self._looker, None
        if looker is not None:
            looker.terminate()
        await self._readers.close()
