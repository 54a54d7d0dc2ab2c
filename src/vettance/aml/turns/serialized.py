"""Share: watch events of tenants whom other processes watch as well, as if all of them were one."""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any, Final, NamedTuple

from vettance.aml import sql
from vettance.aml.aml_event import AmlEvent
from vettance.aml.aml_memory import AmlMemory
from vettance.aml.imports.watch_imported import AmlBackfill
from vettance.aml.log_position import LogMatch
from vettance.aml.monitor import WAIT_S, Monitor, rows_of
from vettance.aml.party_screening import NamedParty
from vettance.aml.turns import sql as turns_sql
from vettance.db.engine import Clash, Lost, Misuse, Row, Statement, Store, StoreDown, Turn, Turns
from vettance.errors import Unavailable
from vettance.telemetry.logs import logger

#: Events watched in one turn: some milliseconds of thinking, for which all writes of the database wait.
EVENTS_MAX: Final = 64
#: How often an event is watched whose rows the store refuses; the last time it puts nothing on lists.
TRIES: Final = 8
#: Events of others taken up in one turn; who is further behind catches up beforehand, while others write.
ROWS_MAX: Final = 200
ROWS_BYTES_MAX: Final = 4 * 1024 * 1024  # The same in bytes, of all tenants of the turn.
WAITING_MAX: Final = 10_000
_CHUNK: Final = 50  # Events of others taken up at a time: some milliseconds of the thread that decides.

_log = logger()


class _WaitingEvent(NamedTuple):
    """An event that waits for its turn, and puts what its rules say on lists if it `adds`.

    Its answer is None when its tenant has to be made ready first.
    """

    tenant: str
    event: AmlEvent
    digest: bytes
    sent: bytes
    named: list[NamedParty]
    past: AmlBackfill | None
    adds: bool
    answer: "asyncio.Future[sql.StoredEvent | None]"


class _Pending(NamedTuple):
    """An event that was thought about and is not written yet; `place` is where its answer goes."""

    place: int
    tenant: str
    stored: sql.StoredEvent
    statements: Sequence[Statement]


class _Sheet:
    """What the events of one turn are answered, and what is to be written of them.

    An answer of None asks for another turn. An event that the store refuses takes nobody along: those before
    it are kept, and so are those of other tenants. Later ones of its own tenant met a memory that holds it,
    so they are watched again, when the memory is what the log says.
    """

    def __init__(
        self,
        turn: Turn,
        answers: list[sql.StoredEvent | BaseException | None],
        ready: set[str],
        astray: set[str],
    ) -> None:
        self._turn = turn
        self._ready = ready
        self._astray = astray
        self.answers = answers
        self.pending: list[_Pending] = []

    def give_up(self, tenant: str) -> None:
        """Watch no more events of a tenant in this turn: its memory holds what the log does not."""
        self._astray.add(tenant)
        self._ready.discard(tenant)

    async def flush(self) -> None:
        """Write what is pending, at once if nothing of it is refused."""
        pending, self.pending = self.pending, []
        if not pending:
            return
        try:
            await self._turn.write([one.statements for one in pending])
        except (Clash, Lost, Misuse):
            for one in pending:
                if one.tenant in self._ready:
                    await self._write(one)
        else:
            for one in pending:
                self.answers[one.place] = one.stored

    async def _write(self, one: _Pending) -> None:
        try:
            await self._turn.write([one.statements])
        except (Clash, Lost, Misuse) as error:
            self.give_up(one.tenant)
            self.answers[one.place] = error
            if isinstance(error, Clash):
                # Most likely an event of this id is there that this process has not heard of.
                rows = await self._turn.read(sql.select_event(one.tenant, one.stored.external_id))
                self.answers[one.place] = sql.stored_of(rows[0]) if rows else error
        else:
            self.answers[one.place] = one.stored


class SerializedWatch:
    """Implements `monitor.Crew`.

    Of all processes one at a time has the turn. It reads what the others have added to the log since it last
    looked, and takes it up into its memory; then it watches the events that wait here, in the order in which
    they came, and all of it is written when the turn ends. So every event meets a memory that has seen
    exactly those before it in the log. A process that dies in its turn leaves nothing, and holds up nobody.
    """

    def __init__(self, store: Store, turns: Turns, memory: AmlMemory, monitor: Monitor) -> None:
        self._store = store
        self._turns = turns
        self._memory = memory
        self._monitor = monitor
        #: Reads a tenant's configuration again, and fills its memory anew where that has lost its position.
        self.reload: Callable[[str], Awaitable[None]] = _not_ready
        self._waiting: deque[_WaitingEvent] = deque()
        self._running: asyncio.Task[None] | None = None
        self._behind: set[str] = set()
        self._outdated: set[str] = set()
        self._preparing: dict[str, asyncio.Lock] = {}
        self._followed = 0

    async def watch(
        self, tenant: str, event: AmlEvent, digest: bytes, sent: bytes, past: AmlBackfill | None = None
    ) -> sql.StoredEvent:
        """Watch an event in a turn, and return what is stored of it.

        What the store refuses, because somebody else changed a case or a list, is watched anew. Raises
        `Unavailable` (503) when the store does not take it in the end, or no turn comes in time.
        """
        named = await self._monitor.look_up_names(tenant, event) if past is None else []
        left = TRIES
        try:
            async with asyncio.timeout(WAIT_S):
                while True:
                    await self._make_ready(tenant)
                    await self._monitor.wait_for_gate(tenant)
                    try:
                        stored = await self._take_turn(tenant, event, digest, sent, named, past, left > 1)
                    except (Clash, Lost):
                        left -= 1
                        if not left:
                            raise
                        continue
                    if stored is not None:
                        return stored
        except TimeoutError:
            raise Unavailable("It was not this event's turn in time.") from None
        except (StoreDown, Clash, Lost):
            raise Unavailable("The store did not take the event; nothing of it was kept.") from None

    async def _take_turn(
        self,
        tenant: str,
        event: AmlEvent,
        digest: bytes,
        sent: bytes,
        named: list[NamedParty],
        past: AmlBackfill | None,
        adds: bool,
    ) -> sql.StoredEvent | None:
        if len(self._waiting) >= WAITING_MAX:
            raise Unavailable("Too many events wait.")
        answer: asyncio.Future[sql.StoredEvent | None] = asyncio.get_running_loop().create_future()
        self._waiting.append(_WaitingEvent(tenant, event, digest, sent, named, past, adds, answer))
        self._monitor.begin(tenant)
        if self._running is None:
            self._running = asyncio.create_task(self._take_turns())
        return await answer

    async def _take_turns(self) -> None:
        """Take turns as long as events wait. Those that come meanwhile share the next one."""
        try:
            while self._waiting:
                await asyncio.sleep(0)
                await self._take_one()
        finally:
            self._running = None

    async def _take_one(self) -> None:
        chosen: list[_WaitingEvent] = []
        thought: set[str] = set()
        try:
            async with self._turns.turn() as turn:
                chosen += self._choose(EVENTS_MAX)
                answers = await self._watch_all(turn, chosen, thought) if chosen else []
        except BaseException as error:
            # What was thought about in it was not kept, or nobody knows.
            self._monitor.astray |= thought
            chosen = chosen or self._choose(WAITING_MAX)
            self._answer(chosen, [error] * len(chosen))
            if not isinstance(error, Exception):
                raise
            if not isinstance(error, StoreDown):
                _log.exception("turn_failed")
        else:
            self._answer(chosen, answers)

    def _choose(self, limit: int) -> list[_WaitingEvent]:
        chosen: list[_WaitingEvent] = []
        while self._waiting and len(chosen) < limit:
            one = self._waiting.popleft()
            if one.answer.done():
                self._monitor.end(one.tenant)  # Its caller has gone away.
            else:
                chosen.append(one)
        return chosen

    def _answer(
        self, chosen: Iterable[_WaitingEvent], answers: Sequence[sql.StoredEvent | BaseException | None]
    ) -> None:
        for one, answer in zip(chosen, answers, strict=True):
            self._monitor.end(one.tenant)
            if one.answer.done():
                continue
            if isinstance(answer, asyncio.CancelledError):
                one.answer.cancel()
            elif isinstance(answer, BaseException):
                one.answer.set_exception(answer)
            else:
                one.answer.set_result(answer)

    async def _watch_all(
        self, turn: Turn, chosen: Sequence[_WaitingEvent], thought: set[str]
    ) -> list[sql.StoredEvent | BaseException | None]:
        """Watch the events of a turn; notes in `thought` whose memory is ahead of the log by that."""
        tenants = list(dict.fromkeys(one.tenant for one in chosen))
        await turn.begin(tenants)
        ready = await self._look(turn, tenants)
        sheet = _Sheet(turn, [None] * len(chosen), ready, self._monitor.astray)
        for place, one in enumerate(chosen):
            tenant, external_id = one.tenant, one.event.external_id
            if tenant not in ready:
                continue
            known = self._memory.known[tenant]
            if known.may_hold(external_id):
                await sheet.flush()
                if rows := await turn.read(sql.select_event(tenant, external_id)):
                    sheet.answers[place] = sql.stored_of(rows[0])
                    continue
                if tenant not in ready:
                    continue
            known.add(external_id)
            try:
                found = self._monitor.think(tenant, one.event, one.digest, one.sent, one.named, one.past)
            except Exception as error:  # noqa: BLE001  The events of others in this turn must go on.
                sheet.give_up(tenant)
                sheet.answers[place] = error
                continue
            thought.add(tenant)
            self._monitor.places[tenant].ahead.append(found.stored.id)
            stored: sql.StoredEvent = found.stored
            more: Sequence[Statement] = ()
            if found.findings or found.named or found.additions.keys:
                await sheet.flush()
                if tenant not in ready:
                    continue
                found = await self._monitor.plan_again(tenant, found, turn.read, adding=one.adds)
                stored, more = await self._monitor.raise_alerts(tenant, found, turn.read)
            sheet.pending.append(_Pending(place, tenant, stored, (*rows_of(tenant, found, stored), *more)))
        await sheet.flush()
        return sheet.answers

    async def _look(self, turn: Turn, tenants: Sequence[str]) -> set[str]:
        """Take up what others have added to the log, and return the tenants whose memory is equal to it."""
        monitor = self._monitor
        reached = {tenant: monitor.places[tenant].reached for tenant in tenants}
        changed: dict[str, int] = {}
        added: dict[str, list[Row]] = {tenant: [] for tenant in tenants}
        bytes_max = ROWS_BYTES_MAX // len(tenants)
        for tenant, newest, *row in await turn.read(turns_sql.select_since(reached, ROWS_MAX, bytes_max)):
            changed[tenant] = newest
            if row[0] is not None:
                added[tenant].append(tuple(row))
        for tenant in tenants:
            self._take_up(tenant, added[tenant])
            place = monitor.places[tenant]
            if changed[tenant] > place.changed:
                self._outdated.add(tenant)
            if len(added[tenant]) >= ROWS_MAX or sum(len(row[-1]) for row in added[tenant]) >= bytes_max:
                self._behind.add(tenant)
            elif place.ahead:
                # What was written in the turn before is not there.
                monitor.astray.add(tenant)
        return {tenant for tenant in tenants if self._is_ready(tenant)}

    def _is_ready(self, tenant: str) -> bool:
        return not (tenant in self._monitor.astray or tenant in self._behind or tenant in self._outdated)

    def _take_up(self, tenant: str, rows: Iterable[Row]) -> None:
        """Take events of the log up into the memory: those that follow the place it has reached."""
        place, compiled = self._monitor.places[tenant], self._monitor.rules[tenant].compiled
        for seq, event_id, external_id, received_at_ms, sent, *_ in rows:
            met = place.meet(seq, event_id)
            if met is LogMatch.NEW:
                self._memory.replay(tenant, compiled, event_id, received_at_ms, sent)
                self._memory.known[tenant].add(external_id)
                self._monitor.decided[tenant] = self._monitor.decided.get(tenant, 0) + 1
            elif met is LogMatch.BROKEN:
                self._monitor.astray.add(tenant)
                return

    async def _make_ready(self, tenant: str) -> None:
        """Do what would take too long in a turn: read much of the log, or a changed configuration."""
        while not self._is_ready(tenant):
            async with self._preparing.setdefault(tenant, asyncio.Lock()):
                if tenant in self._monitor.astray or tenant in self._outdated:
                    self._outdated.discard(tenant)
                    await self.reload(tenant)
                if tenant in self._behind:
                    await self.reach(tenant)
                    self._behind.discard(tenant)

    async def reach(self, tenant: str) -> int:
        """Read on in the log of a tenant, and return the number of its last event there."""
        while True:
            place = self._monitor.places[tenant]
            rows = await self._store.read(sql.select_log(tenant, place.reached, 0, _CHUNK))
            if place is not self._monitor.places[tenant]:
                continue
            if not rows or tenant in self._monitor.astray:
                return place.reached
            self._take_up(tenant, rows)

    async def follow(self) -> None:
        """Take up what others have added, so that the next event of a tenant waits for little."""
        for tenant, seq in await self._store.read(turns_sql.select_tenants_since(self._followed)):
            place = self._monitor.places.get(tenant)
            if place is not None and place.reached < seq:
                await self.reach(tenant)
            self._followed = max(self._followed, seq)


async def _not_ready(_tenant: str) -> Any:
    raise Unavailable("The AML rules of this tenant are not loaded yet.")
