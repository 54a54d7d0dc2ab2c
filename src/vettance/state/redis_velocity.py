"""The Redis engine of the state port: one memory for any number of processes, asked by one script call."""

import secrets
import struct
from typing import Any, Final, NamedTuple

from vettance.state.fingerprint import fingerprinter
from vettance.state.layout import LATE_MS_MIN, MOMENT_MAX, Group, Layout
from vettance.state.port import Answer, Observation, Plan, StateDown, Unready, Value
from vettance.state.redis_answers import Reply, answer_group, read_reply
from vettance.state.redis_layout import (
    PlacedGroup,
    key_and_entry,
    place,
    plan_digest,
    shared_modulus,
)
from vettance.state.redis_line import Line, Script
from vettance.state.written import Read, write

PREFIX: Final = b"vettance"
COMING: Final = "#next"  # Ends the name of a memory that is filled beside the one in use.

_OBSERVE: Final = Script("observe.lua")
_EXCHANGE: Final = Script("exchange.lua")
_META: Final = struct.Struct("<8s8sBddd")
_GENERATION_BYTES: Final = 4  # in hexadecimal digits, twice as many
_EVERYTHING: Final = -1  # All bits: no answer of a memory that is being filled is exact.
_DEGRADED: Final = 1
_TEXTS_MAX: Final = 4096
_SETTLED_AT_ONCE: Final = 200
_UNREADY: Final = {b"L": "lost", b"S": "stale", b"P": "paused"}


class _Placed(NamedTuple):
    """A plan, ready to be asked of Redis."""

    digest: bytes
    layout: Layout
    groups: tuple[PlacedGroup, ...]
    read: Read


class RedisVelocity:
    """Remembers observations in Redis, for every process alike, as `MemoryVelocity` does for one.

    The same windows, the same late events, the same sub-buckets beyond 256 entries of a series. What differs:
    keys expire by the clock of the server, so an event that lags an hour more behind that clock than those
    before it is answered as inexact where its windows reach that far.
    """

    def __init__(self, line: Line, secret: bytes, space: str = "v") -> None:
        """Share what every engine on this server with the same secret and `space` remembers."""
        self._line = line
        self._space = space.encode()
        self._plans: dict[str, _Placed] = {}
        self._settled: dict[str, list[bytes]] = {}
        self._known: dict[Value, int] = {}
        plain = fingerprinter(shared_modulus(secret))

        def fingerprint(value: Value) -> int | None:
            made = plain(value)
            if made is not None and type(value) is str:
                if len(self._known) >= _TEXTS_MAX:
                    self._known.clear()
                self._known[value] = made
            return made

        self._fingerprint = fingerprint

    def attach(self, tenant: str, plan: Plan) -> None:
        """Ask by this plan from now on. Raises `ValueError` when it asks what cannot be answered."""
        programme = write(plan)
        layout = programme.layout
        self._plans[tenant] = _Placed(plan_digest(plan), layout, place(layout), programme.read)

    async def install(self, tenant: str, plan: Plan, *, degraded: bool = False) -> None:
        """Give a tenant an empty memory for a plan; what was remembered for it before is dropped.

        A degraded one answers nothing as exact. Raises `ValueError`, `StateDown`.
        """
        self.attach(tenant, plan)
        generation = secrets.token_hex(_GENERATION_BYTES).encode()
        meta = _META.pack(
            generation,
            self._plans[tenant].digest,
            _DEGRADED if degraded else 0,
            float("-inf"),
            float("inf"),
            float("-inf"),
        )
        await self._line.run(_EXCHANGE, self._names(tenant), (meta,))

    async def uninstall(self, tenant: str) -> None:
        """Drop everything remembered for a tenant. Raises `StateDown`."""
        self._plans.pop(tenant, None)
        await self._line.run(_EXCHANGE, self._names(tenant), (b"",))

    async def adopt(self, tenant: str, coming: str) -> None:
        """Give a tenant the memory that was filled under the name `coming`; its old memory is dropped.

        Raises `Unready` when the coming memory is lost, `StateDown`.
        """
        self._plans[tenant] = self._plans.pop(coming)
        here, base = self._names(tenant)
        if not await self._line.run(_EXCHANGE, (here, base, self._names(coming)[0]), ()):
            raise Unready("lost")

    async def observe(self, tenant: str, event_id: str, at_ms: int, seen: Observation) -> Answer:
        """Read every aggregate as of the events observed before, then record this event.

        Exactly one effect for each event id until `settle` is told of it: the same id again answers the same
        and records nothing. Raises `Unready` when the memory is lost, of another plan or being exchanged,
        `StateDown` when Redis does not answer.
        """
        placed = self._plans[tenant]
        asked, words = self._ask(placed, at_ms, seen)
        settled = self._settled.pop(tenant, [])
        sent = [placed.digest, event_id.encode(), b"%d" % at_ms, b"%d" % len(settled), *settled]
        for group, entry in asked:
            sent += entry, group.known
        names = self._names(tenant)
        try:
            found = await self._line.run(_OBSERVE, names, sent)
        except StateDown:
            # Whether it took effect is not known; by its id it will not do so twice.
            found = await self._line.run(_OBSERVE, names, sent)
        if len(found) == 1:
            raise Unready(_UNREADY[found])
        reply = read_reply(found)
        return _answer(placed, reply, [group for group, _ in asked], at_ms, words)

    def settle(self, tenant: str, event_id: str) -> None:
        """Forget the answer of an event: it is in the log, and its id will not come again."""
        self._settled.setdefault(tenant, []).append(event_id.encode())

    def _ask(
        self, placed: _Placed, at_ms: int, seen: Observation
    ) -> tuple[list[tuple[PlacedGroup, bytes]], list[Any]]:
        """Return the groups that are asked, with what is sent of each, and the words of the observation."""
        if not -MOMENT_MAX <= at_ms <= MOMENT_MAX:
            raise ValueError("the moment of an event is beyond what can be remembered")
        words, mask = placed.read(seen.values, seen.mask, self._known, self._fingerprint)
        asked = []
        for group in placed.groups:
            name = seen.keys[group.group.key]
            key = self._known.get(name) if type(name) is str else None
            if key is None:
                key = self._fingerprint(name)
                if key is None:
                    continue
            entry = key_and_entry(group, key, at_ms, group.group.meets(mask), words)
            asked.append((group, entry))
        return asked, words

    def _names(self, memory: str) -> tuple[bytes, bytes]:
        """Return the key of a memory, and what all its other keys begin with."""
        tenant, _, coming = memory.partition("#")
        base = b"%b:{%b}:%b:" % (PREFIX, tenant.encode(), self._space)
        return base + b"m" + coming.encode(), base


def _answer(
    placed: _Placed,
    reply: Reply,
    groups: list[PlacedGroup],
    at_ms: int,
    words: list[Any],
) -> Answer:
    answers = list(placed.layout.defaults)
    inexact = 0
    present = set()
    # Beside its longest window a series is kept for LATE_MS_MIN at least.
    is_behind = at_ms < max(reply.high_ms, reply.reach_ms) - LATE_MS_MIN
    for group, (kind, part) in zip(groups, reply.parts, strict=True):
        present.add(group.group.key)
        inexact |= answer_group(group, kind, part, at_ms, words, answers)
        if is_behind:
            inexact |= _beyond(group.group, at_ms, reply)
    for group in placed.groups:
        if group.group.key not in present:
            for index, _ in group.group.aggregates:
                answers[index] = None
    if None in words:
        for word, slot in zip(words, placed.layout.slots, strict=True):
            if word is None:
                for index in slot.asked:
                    answers[index] = None
    if reply.flags & _DEGRADED:
        inexact = _EVERYTHING
    return Answer(tuple(answers), inexact)


def _beyond(group: Group, at_ms: int, reply: Reply) -> int:
    """Return the bits of the aggregates whose window, for a late event, reaches what may be forgotten."""
    inexact = 0
    forgotten_ms = max(reply.high_ms, reply.reach_ms) - group.kept_ms
    for index, span_ms in group.aggregates:
        if at_ms - span_ms < forgotten_ms:
            inexact |= 1 << index
    return inexact
