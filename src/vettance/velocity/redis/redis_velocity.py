"""The Redis engine of the velocity port: one memory for any number of processes, asked by one script call."""

import secrets
from collections.abc import Iterable
from typing import Any, Final, NamedTuple

from vettance.redis_link.down import StateDown
from vettance.redis_link.redis_claims import LEASE
from vettance.redis_link.redis_connection import LuaScript, RedisLine
from vettance.velocity.fingerprint import fingerprinter
from vettance.velocity.memory.plan_codegen import Read, write
from vettance.velocity.plan_layout import MOMENT_MAX, PlanLayout
from vettance.velocity.port import Condition, Observation, Plan, Unready, Value, VelocityAnswer
from vettance.velocity.redis.redis_answers import answer_event, read_reply
from vettance.velocity.redis.redis_layout import (
    PlacedGroup,
    key_and_entry,
    place,
    plan_digest,
    shared_modulus,
)
from vettance.velocity.redis.script_constants import CONSTANTS, MEMORY

PREFIX: Final = b"vettance"

_OBSERVE_FILES: Final = ("observe.lua", "window_totals.lua", "busy_key.lua", "answer_groups.lua")
OBSERVE: Final = LuaScript(__package__, *_OBSERVE_FILES, constants=CONSTANTS)
_EXCHANGE: Final = LuaScript(__package__, "exchange.lua", constants=CONSTANTS)
HANDOVER: Final = LuaScript(__package__, "handover.lua", constants=CONSTANTS)
SETTLE: Final = LuaScript(__package__, "settle.lua", constants=CONSTANTS)
_GENERATION: Final = CONSTANTS["GENERATION_END"]  # hexadecimal digits
_DEGRADED: Final = 1
_TEXTS_MAX: Final = 4096
_PLANS_MAX: Final = 256
_SETTLED_AT_ONCE: Final = 500  # Lua hands on some thousand arguments at most.
_MASKS_MAX: Final = 1024  # Events of one rule set seldom show more than a few dozen.
_SWEEP_KEYS: Final = 500  # looked at in one go; other calls get their turn between
UNREADY: Final = {b"L": "lost", b"S": "stale", b"P": "paused"}


class PlacedPlan(NamedTuple):
    """A plan, ready to be asked of Redis."""

    plan: Plan
    digest: bytes
    layout: PlanLayout
    groups: tuple[PlacedGroup, ...]
    read: Read
    lanes: dict[int, tuple[int, ...]]  # by mask of an observation: the lanes of each group that it belongs to


class RedisVelocity:
    """Remembers observations in Redis, for every process alike, as `MemoryVelocity` does for one.

    The same windows, the same late events, the same sub-buckets beyond 256 entries of a series. What differs:
    keys expire by the clock of the server, so an event that lags an hour more behind that clock than those
    before it is answered as inexact where its windows reach that far.

    A tenant's next memory is filled while the one in use answers, under its name + `#` + the token of the
    lease, and then adopted. The token is its generation, so no process can fill the memory of another.
    """

    def __init__(self, line: RedisLine, secret: bytes, space: str = "v") -> None:
        """Share what every engine on this server with the same secret and `space` remembers."""
        self._line = line
        self._space = space.encode()
        self._plans: dict[bytes, Plan] = {}  # by key of a memory
        self._placed: dict[int, PlacedPlan] = {}
        self._settled: dict[str, list[bytes]] = {}
        self._known: dict[Value, int] = {}
        self._plain = fingerprinter(shared_modulus(secret))

    async def install(self, tenant: str, plan: Plan, lacking_before_ms: int | None = None) -> None:
        """Give a tenant an empty memory for a plan; what was remembered for it before is dropped.

        Answers whose windows may reach what lies before `lacking_before_ms` are inexact.
        Raises `ValueError` when the plan asks what cannot be answered, `StateDown`.
        """
        names = self.names(tenant)
        self._plans[names[0]] = plan
        line = self._line.at(names[0])
        meta = self._empty(plan, await line.server(), 0, generation_of(tenant), lacking_before_ms)
        await line.run(_EXCHANGE, names, (meta, b""))

    async def found(self, tenant: str, plan: Plan) -> None:
        """Give a tenant that has no memory an empty one that answers nothing as exact. Raises `StateDown`."""
        names = self.names(tenant)
        line = self._line.at(names[0])
        meta = self._empty(plan, await line.server(), _DEGRADED)
        await line.run(_EXCHANGE, names, (meta, b"unless"))

    async def uninstall(self, tenant: str) -> None:
        """Drop everything remembered for a tenant. Raises `StateDown`."""
        names = self.names(tenant)
        self._plans.pop(names[0], None)
        await self._line.at(names[0]).run(_EXCHANGE, names, (b"", b""))

    async def adopt(self, tenant: str, coming: str, *, held: bool = False) -> None:
        """Give a tenant the memory that was filled under the name `coming`; its old memory is dropped.

        Raises `Unready` when the coming memory is lost or, with `held`, events are no longer held back or the
        lease is another's, and `StateDown`.
        """
        here, base = self.names(tenant)
        there = self.names(coming)[0]
        if plan := self._plans.pop(there, None):
            self._plans[here] = plan
        how = (generation_of(coming), b"held" if held else b"")
        if not await self._line.at(here).run(_EXCHANGE, (here, base, there), how):
            raise Unready("lost")

    async def condition(self, tenant: str, plan: Plan) -> Condition:
        """Return the condition of the memory of a tenant for a plan. Raises `StateDown`."""
        here = self.names(tenant)[0]
        line = self._line.at(here)
        server = await line.server()
        meta = await line.call(b"GET", here)
        if meta is None:
            return Condition.LOST
        _, digest, filled_on, flags, *_ = MEMORY.unpack(meta)
        if filled_on != server:
            return Condition.LOST
        if digest != self._place(plan).digest:
            return Condition.STALE
        return Condition.DEGRADED if flags & _DEGRADED else Condition.READY

    async def observe(
        self,
        tenant: str,
        event_id: str,
        at_ms: int,
        seen: Observation,
        plan: Plan | None = None,
        *,
        received: bool = False,
    ) -> VelocityAnswer:
        """Read every aggregate as of the events observed before, then record this event.

        With `received` the moment is that of receipt: then an event of another process that was received
        within the same seconds, and observed before this one, counts as before it.

        Exactly one effect for each event id until it is settled: the same id again answers the same
        and records nothing. Raises `Unready` when the memory is lost, of another plan or being exchanged,
        `StateDown` when Redis does not answer.
        """
        placed = self.placed_of(tenant, plan)
        asked, words = self.ask(placed, at_ms, seen)
        try:
            found = await self.send(tenant, placed, event_id, at_ms, asked, received=received)
        except StateDown:
            # Whether it took effect is not known; by its id it will not do so twice.
            found = await self.send(tenant, placed, event_id, at_ms, asked, received=received)
        replies = ((read_reply(found), [group for group, _ in asked]),)
        return answer_event(placed.layout, placed.groups, replies, words)

    async def reached(self, tenant: str) -> int | None:
        """Return the newest event time of a memory; None before there was an event. Raises `StateDown`."""
        here = self.names(tenant)[0]
        meta = await self._line.at(here).call(b"GET", here)
        high_ms = float("-inf") if meta is None else MEMORY.unpack(meta)[4]
        return int(high_ms) if high_ms > -MOMENT_MAX else None

    async def record(self, tenant: str, at_ms: int, seen: Observation, plan: Plan) -> None:
        """Record an event of the log and ask nothing. Raises `Unready`, `StateDown`."""
        placed = self._place(plan)
        asked, _ = self.ask(placed, at_ms, seen)
        await self.send(tenant, placed, "", at_ms, asked)

    def placed_of(self, tenant: str, plan: Plan | None) -> PlacedPlan:
        """Return a plan, or else that of the memory of a tenant, ready to be asked. Raises `ValueError`."""
        return self._place(plan or self._plans[self.names(tenant)[0]])

    async def send(
        self,
        tenant: str,
        placed: PlacedPlan,
        event_id: str,
        at_ms: int,
        asked: list[tuple[PlacedGroup, bytes]],
        *,
        received: bool = False,
    ) -> bytes:
        """Have the script answer and record an event; returns its reply. Raises `Unready`, `StateDown`."""
        names = self.names(tenant)
        line = self._line.at(names[0])
        expected = placed.digest + await line.server() + generation_of(tenant)
        found: bytes = await line.run(OBSERVE, names, sent_words(expected, event_id, at_ms, asked, received))
        if len(found) == 1:
            raise Unready(UNREADY[found])
        return found

    def settle(self, tenant: str, event_id: str) -> None:
        """Forget the answer of an event: it is in the log; its id will not come again."""
        self._settled.setdefault(tenant, []).append(event_id.encode())

    async def settle_all(self) -> set[str]:
        """Tell Redis of the settled events; return the tenants whose memory may lack one of them.

        That is so where the memory that observed the event was lost while it was being stored. Raises
        `StateDown`.
        """
        return {tenant for tenant in self.settled() if await self.settle_of(tenant)}

    def settled(self) -> tuple[str, ...]:
        """Return the tenants of whom Redis was not told yet which events are settled."""
        return tuple(self._settled)

    async def settle_of(self, tenant: str) -> bool:
        """Tell Redis of the settled events of a tenant; returns whether its memory may lack one of them."""
        names, is_lacking = self.names(tenant), False
        while settled := self._take_settled(tenant):
            try:
                unknown = await self._line.at(names[0]).run(SETTLE, names, settled)
            except BaseException:
                self._settled.setdefault(tenant, []).extend(settled)
                raise
            is_lacking |= unknown > 0
        return is_lacking

    def _take_settled(self, tenant: str) -> list[bytes]:
        settled = self._settled.pop(tenant, [])
        if len(settled) > _SETTLED_AT_ONCE:
            self._settled[tenant] = settled[_SETTLED_AT_ONCE:]
            del settled[_SETTLED_AT_ONCE:]
        return settled

    async def hold(self, tenant: str, hold_s: float, *, again: bool = False) -> bool:
        """Take no events of a tenant for so long, or until another memory is adopted. Raises `StateDown`.

        With `again` only if none are taken at the moment; answers whether that is so.
        """
        pause = self.names(tenant)[1] + b"pause"
        words = (b"SET", pause, b"1", b"PX", b"%d" % (hold_s * 1000))
        return bool(await self._line.at(pause).call(*words, *((b"XX",) if again else ())))

    async def let_go(self, tenant: str) -> None:
        """Take events of a tenant again. Raises `StateDown`."""
        pause = self.names(tenant)[1] + b"pause"
        await self._line.at(pause).call(b"DEL", pause)

    async def pending(self, tenant: str) -> list[str]:
        """Return the ids of events that were observed and are not settled. Raises `StateDown`."""
        here, base = self.names(tenant)
        line = self._line.at(here)
        meta = await line.call(b"GETRANGE", here, b"0", b"%d" % (_GENERATION - 1))
        return [key.decode() for key in await line.call(b"HKEYS", base + meta + b"p")] if meta else []

    async def lease(self, tenant: str, lease_s: float) -> bytes | None:
        """Take the lease of filling a tenant's next memory; None while another has it. Raises `StateDown`."""
        holder = _new_generation()
        key = self.names(tenant)[1] + b"lease"
        taken = await self._line.at(key).call(b"SET", key, holder, b"NX", b"PX", b"%d" % (lease_s * 1000))
        return holder if taken else None

    async def keep(self, tenant: str, holder: bytes, lease_s: float) -> bool:
        """Keep a lease, or give it up with 0; answer whether it was still ours. Raises `StateDown`."""
        key = self.names(tenant)[1] + b"lease"
        return bool(await self._line.at(key).run(LEASE, (key,), (holder, b"%d" % (lease_s * 1000))))

    async def sweep(self, tenant: str) -> int:
        """Delete what is not asked any more; return how many keys. Raises `StateDown`."""
        base, swept = self.names(tenant)[1], 0
        for generation in await self.left(tenant):
            swept += await self._unlink(base + generation)
            await self._forget_left(tenant, generation)
        return swept

    async def left(self, tenant: str) -> list[bytes]:
        """Return the generations of a memory that are not asked any more. Raises `StateDown`."""
        names = self.names(tenant + "#")
        line = self._line.at(names[0])
        # What was being filled by a process that has died.
        await line.run(_EXCHANGE, names, (b"", b"left"))
        generations: list[bytes] = await line.call(b"SMEMBERS", names[1] + b"gone")
        return generations

    async def _forget_left(self, tenant: str, *generations: bytes) -> None:
        gone = self.names(tenant)[1] + b"gone"
        await self._line.at(gone).call(b"SREM", gone, *generations)

    async def abandon(self, coming: str) -> int:
        """Delete what was filled of a coming memory; return how many keys. Raises `StateDown`."""
        return await self._unlink(self.names(coming)[1] + generation_of(coming))

    async def forget(self, tenant: str) -> int:
        """Delete everything of a tenant, its limits and claims too; return how many keys."""
        return await self._unlink(b"%b:{%b}:" % (PREFIX, tenant.encode()))

    async def _unlink(self, beginning: bytes) -> int:
        cursor, gone = b"0", 0
        while True:
            words = (cursor, b"MATCH", beginning + b"*", b"COUNT", b"%d" % _SWEEP_KEYS)
            cursor, keys = await self._line.call(b"SCAN", *words)
            if keys:
                gone += await self._line.call(b"UNLINK", *keys)
            if cursor == b"0":
                return gone

    def _place(self, plan: Plan) -> PlacedPlan:
        """Return a plan ready to be asked. Raises `ValueError` when it asks what cannot be answered."""
        placed = self._placed.get(id(plan))
        if placed is None:
            programme = write(plan)
            layout = programme.layout
            placed = PlacedPlan(plan, plan_digest(plan), layout, place(layout), programme.read, {})
            while len(self._placed) >= _PLANS_MAX:
                del self._placed[next(iter(self._placed))]
            self._placed[id(plan)] = placed
        return placed

    def _empty(
        self,
        plan: Plan,
        server: bytes,
        flags: int,
        generation: bytes = b"",
        lacking_before_ms: int | None = None,
    ) -> bytes:
        """Return the record of a memory in which nothing is remembered yet."""
        placed = self._place(plan)
        none = reach = float("-inf")
        if lacking_before_ms is not None:
            # As if so much had been forgotten: every series is treated as the longest kept one.
            reach = lacking_before_ms + max((group.group.kept_ms for group in placed.groups), default=0)
        generation = generation or _new_generation()
        assert len(generation) == _GENERATION
        return MEMORY.pack(generation, placed.digest, server, flags, none, -none, reach, none)

    def _fingerprint(self, value: Value) -> int | None:
        made = self._plain(value)
        if made is not None and type(value) is str:
            if len(self._known) >= _TEXTS_MAX:
                self._known.clear()
            self._known[value] = made
        return made

    def ask(
        self, placed: PlacedPlan, at_ms: int, seen: Observation
    ) -> tuple[list[tuple[PlacedGroup, bytes]], list[Any]]:
        """Return the groups that are asked, with what is sent of each, and the words of the observation."""
        if not -MOMENT_MAX <= at_ms <= MOMENT_MAX:
            raise ValueError("the moment of an event is beyond what can be remembered")
        words, mask = placed.read(seen.values, seen.mask, self._known, self._fingerprint)
        lanes = placed.lanes.get(mask)
        if lanes is None:
            if len(placed.lanes) >= _MASKS_MAX:
                placed.lanes.clear()
            lanes = placed.lanes[mask] = tuple(group.group.meets(mask) for group in placed.groups)
        asked = []
        for group, met in zip(placed.groups, lanes, strict=True):
            name = seen.keys[group.group.key]
            key = self._known.get(name) if type(name) is str else None
            if key is None:
                key = self._fingerprint(name)
                if key is None:
                    continue
            entry = key_and_entry(group, key, at_ms, met, words)
            asked.append((group, entry))
        return asked, words

    def names(self, memory: str) -> tuple[bytes, bytes]:
        """Return the key of a memory, and what all its other keys begin with."""
        tenant, coming, _ = memory.partition("#")
        base = b"%b:{%b}:%b:" % (PREFIX, tenant.encode(), self._space)
        return base + (b"mnext" if coming else b"m"), base


def sent_words(
    expected: bytes, event_id: str, at_ms: int, asked: Iterable[tuple[PlacedGroup, bytes]], received: bool
) -> list[bytes]:
    """Return the arguments of the script."""
    sent = [expected, event_id.encode(), b"%d" % at_ms, b"1" if received else b"0"]
    for group, entry in asked:
        sent += entry, group.known
    return sent


def generation_of(memory: str) -> bytes:
    """Return the generation that a coming memory is of by its name; nothing for the one in use."""
    return memory.partition("#")[2].encode()


def _new_generation() -> bytes:
    return secrets.token_hex(_GENERATION // 2).encode()
