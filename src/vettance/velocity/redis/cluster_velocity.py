"""The Redis engine on a cluster: the keys of a tenant are spread over parts, and these over the shards."""

import asyncio
from binascii import crc32
from collections.abc import Awaitable, Callable, Sequence
from typing import Final

from vettance.redis_link.cluster_connection import ClusterConnection, slot_of, tags_of
from vettance.velocity.port import Condition, Observation, Plan, VelocityAnswer
from vettance.velocity.redis.part_calls import MemoryPart, PartCall, PartCalls, Result, gather_all
from vettance.velocity.redis.redis_answers import answer_event, read_reply
from vettance.velocity.redis.redis_layout import PlacedGroup
from vettance.velocity.redis.redis_velocity import PREFIX, SETTLE, RedisVelocity, generation_of
from vettance.velocity.redis.script_constants import KEY

#: Events whose parts are known until they are settled; of older ones every part is asked.
_UNSETTLED_MAX: Final = 50_000
_TENANTS_MAX: Final = 4_096
_SCAN_KEYS: Final = 500  # looked at in one go; other calls get their turn between
_SETTLED_AT_ONCE: Final = 500  # Lua hands on some thousand arguments at most.
#: Of what `key_and_entry` returns: the fingerprint of the key's value.
_VALUE: Final = slice(KEY.size - 8, KEY.size)
_CRC_BITS: Final = 32
#: A memory is what its worst part is: the first of these that any part is.
_WORST: Final = (Condition.STALE, Condition.LOST, Condition.DEGRADED)


class ClusterVelocity:
    """Remembers observations in a Redis Cluster, as `RedisVelocity` does on one server.

    All that an event adds to one value of a key is in one part, so each key is as exact as on one server: the
    k-th event sees k - 1. An event asks the parts that its keys fall to, all in one turn of the loop. Each
    part keeps its answer by the event's id, so an event that one part could not answer is asked again as a
    whole and counted once. A part is lost and found as a memory of its own; all are filled and exchanged
    together, under the lease of the first.
    """

    def __init__(self, cluster: ClusterConnection, secret: bytes, space: str = "v") -> None:
        """Share what every engine on this cluster with the same secret, parts and `space` remembers."""
        self._cluster = cluster
        self._memory = RedisVelocity(cluster, secret, space)
        self._calls = PartCalls(cluster, self._memory)
        self._parts: dict[str, tuple[MemoryPart, ...]] = {}
        #: By tenant and event: the parts that have observed it and were not told that it is settled.
        self._unsettled: dict[tuple[str, str], list[MemoryPart]] = {}
        #: By name of a part: settled events of other processes, which it may have observed or not.
        self._others: dict[str, list[bytes]] = {}
        self._lacking: set[str] = set()

    async def install(self, tenant: str, plan: Plan, lacking_before_ms: int | None = None) -> None:
        """Give a tenant an empty memory for a plan, as `RedisVelocity.install` does."""
        await self._each(tenant, lambda part: self._memory.install(part, plan, lacking_before_ms))

    async def found(self, tenant: str, plan: Plan) -> None:
        """Give a tenant empty parts, that answer nothing as exact, where it has none. Raises `StateDown`."""
        await self._inherit(tenant)
        await self._each(tenant, lambda part: self._memory.found(part, plan))

    async def uninstall(self, tenant: str) -> None:
        """Drop everything remembered for a tenant. Raises `StateDown`."""
        await self._each(tenant, self._memory.uninstall)

    async def adopt(self, tenant: str, coming: str, *, held: bool = False) -> None:
        """Give a tenant the memory that was filled under the name `coming`, part by part.

        Each part is complete by itself: where one cannot be exchanged, the others may have been. Raises
        `Unready` and `StateDown` as `RedisVelocity.adopt` does.
        """
        pairs = [*zip(self._parts_of(tenant), self._parts_of(coming), strict=True)]

        async def adopt_part(here: MemoryPart, there: MemoryPart) -> None:
            await self._cluster.persist(lambda: self._memory.adopt(here.name, there.name, held=held))

        # What the first says of the lease holds for all.
        await adopt_part(*pairs[0])
        await gather_all(adopt_part(here, there) for here, there in pairs[1:])

    async def condition(self, tenant: str, plan: Plan) -> Condition:
        """Return the condition of the worst part of a tenant's memory. Raises `StateDown`."""
        await self._inherit(tenant)
        found = await self._each(tenant, lambda part: self._memory.condition(part, plan))
        return next((worst for worst in _WORST if worst in found), Condition.READY)

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

        As `RedisVelocity.observe`; also after `Unready` and `StateDown` some parts may have recorded it, and
        answer the same when it is observed again.
        """
        parts = self._parts_of(tenant)
        placed = self._memory.placed_of(parts[0].name, plan)
        asked, words = self._memory.ask(placed, at_ms, seen)
        calls = [
            PartCall(parts[index], placed, event_id, at_ms, asked_there, received)
            for index, asked_there in self._split(asked).items()
        ]
        self._note(tenant, event_id, [call.part for call in calls])
        found = await self._calls.send(calls, again=True)
        replies = [
            (read_reply(reply), [group for group, _ in call.asked])
            for call, reply in zip(calls, found, strict=True)
        ]
        return answer_event(placed.layout, placed.groups, replies, words)

    async def record(self, tenant: str, at_ms: int, seen: Observation, plan: Plan) -> None:
        """Record an event of the log and ask nothing. Raises `Unready`, `StateDown`."""
        parts = self._parts_of(tenant)
        placed = self._memory.placed_of(parts[0].name, plan)
        asked, _ = self._memory.ask(placed, at_ms, seen)
        split = self._split(asked).items()
        # It has no id by which a part would know it again, so what may have taken effect is not sent again.
        calls = [
            PartCall(parts[index], placed, "", at_ms, asked_there, received=False)
            for index, asked_there in split
        ]
        await self._calls.send(calls, again=False)

    async def reached(self, tenant: str) -> int | None:
        """Return the newest event time of a memory; None before there was an event. Raises `StateDown`."""
        found = await self._each(tenant, self._memory.reached)
        return max((moment for moment in found if moment is not None), default=None)

    def settle(self, tenant: str, event_id: str) -> None:
        """Forget the answers of an event: it is in the log; its id will not come again."""
        observed = self._unsettled.pop((tenant, event_id), None)
        for part in self._parts_of(tenant) if observed is None else observed:
            if observed is None:
                self._others.setdefault(part.name, []).append(event_id.encode())
            else:
                self._memory.settle(part.name, event_id)

    async def settle_all(self) -> set[str]:
        """Tell Redis of the settled events; return the tenants of whom a part may lack one of them.

        Raises `StateDown`; then the parts that answered are settled all the same.
        """
        others, self._others = self._others, {}
        settling = [
            *(self._settle_part(name) for name in self._memory.settled()),
            *(self._settle_others(name, event_ids) for name, event_ids in others.items()),
        ]
        failed = [one for one in await asyncio.gather(*settling, return_exceptions=True) if one is not None]
        if self._lacking:
            lacking, self._lacking = self._lacking, set()
            return lacking
        for error in failed:
            raise error
        return set()

    async def _settle_part(self, name: str) -> None:
        if await self._cluster.persist(lambda: self._memory.settle_of(name)):
            self._lacking.add(_tenant_of(name))

    async def _settle_others(self, name: str, event_ids: list[bytes]) -> None:
        try:
            await self._cluster.run(SETTLE, self._memory.names(name), event_ids[:_SETTLED_AT_ONCE])
        except BaseException:
            self._others.setdefault(name, []).extend(event_ids)
            raise
        if rest := event_ids[_SETTLED_AT_ONCE:]:
            self._others.setdefault(name, []).extend(rest)

    async def hold(self, tenant: str, hold_s: float, *, again: bool = False) -> bool:
        """Take no events of a tenant for so long, in any part; answers and raises as `RedisVelocity.hold`."""
        return all(await self._each(tenant, lambda part: self._memory.hold(part, hold_s, again=again)))

    async def let_go(self, tenant: str) -> None:
        """Take events of a tenant again. Raises `StateDown`."""
        await self._each(tenant, self._memory.let_go)

    async def pending(self, tenant: str) -> list[str]:
        """Return the ids of events that any part observed and that are not settled. Raises `StateDown`."""
        found = await self._each(tenant, self._memory.pending)
        return [*dict.fromkeys(event_id for ids in found for event_id in ids)]

    async def lease(self, tenant: str, lease_s: float) -> bytes | None:
        """Take the lease of filling a tenant's next memory; None while another has it. Raises `StateDown`."""
        first, *rest = self._parts_of(tenant)
        holder = await self._cluster.persist(lambda: self._memory.lease(first.name, lease_s))
        if holder is not None:
            # Each part is exchanged by what it knows itself of the lease; the first decides who has it.
            words = (holder, b"PX", b"%d" % (lease_s * 1000))
            await gather_all(self._cluster.call(b"SET", part.keys[1] + b"lease", *words) for part in rest)
        return holder

    async def keep(self, tenant: str, holder: bytes, lease_s: float) -> bool:
        """Keep a lease, or give it up with 0; answer whether it was still ours. Raises `StateDown`."""
        return (await self._each(tenant, lambda part: self._memory.keep(part, holder, lease_s)))[0]

    async def sweep(self, tenant: str) -> int:
        """Delete what is not asked any more; return how many keys. Raises `StateDown`."""
        parts = self._parts_of(tenant)
        left = await self._each(tenant, self._memory.left)
        swept = await self._unlink(
            tenant, [part.keys[1] + one for part, gone in zip(parts, left, strict=True) for one in gone]
        )
        await gather_all(
            self._cluster.call(b"SREM", part.keys[1] + b"gone", *gone)
            for part, gone in zip(parts, left, strict=True)
            if gone
        )
        return swept

    async def abandon(self, coming: str) -> int:
        """Delete what was filled of a coming memory; return how many keys. Raises `StateDown`."""
        beginnings = [part.keys[1] + generation_of(coming) for part in self._parts_of(coming)]
        return await self._unlink(coming.partition("#")[0], beginnings)

    async def forget(self, tenant: str) -> int:
        """Delete everything of a tenant, its limits and claims too; return how many keys."""
        tags = (tenant, *(part.name for part in self._parts_of(tenant)))
        beginnings = [b"%b:{%b}:" % (PREFIX, tag.encode()) for tag in tags]
        gone = more = await self._unlink(tenant, beginnings)
        while more:  # A slot that moved meanwhile may have been looked for on neither node.
            more = await self._unlink(tenant, beginnings)
            gone += more
        return gone

    async def _unlink(self, tenant: str, beginnings: Sequence[bytes]) -> int:
        """Delete the keys of a tenant that begin so."""
        if not beginnings:
            return 0
        pattern, wanted, gone = b"%b:{%b*" % (PREFIX, tenant.encode()), tuple(beginnings), 0
        for node in await self._cluster.masters():
            cursor = b"0"
            while True:
                words = (cursor, b"MATCH", pattern, b"COUNT", b"%d" % _SCAN_KEYS)
                cursor, keys = await node.call(b"SCAN", *words)
                by_slot: dict[int, list[bytes]] = {}
                for key in keys:
                    if key.startswith(wanted):
                        by_slot.setdefault(slot_of(key), []).append(key)
                gone += sum(
                    await gather_all(self._cluster.call(b"UNLINK", *some) for some in by_slot.values())
                )
                if cursor == b"0":
                    break
        return gone

    def _parts_of(self, memory: str) -> tuple[MemoryPart, ...]:
        """Return the parts of a memory, the coming one of a tenant too."""
        parts = self._parts.get(memory)
        if parts is None:
            tenant, mark, token = memory.partition("#")
            if len(self._parts) >= _TENANTS_MAX:
                self._parts.clear()
            tags = tags_of(tenant, self._cluster.address.parts)
            names = [f"{tag}{mark}{token}" for tag in tags]
            parts = self._parts[memory] = tuple(MemoryPart(one, self._memory.names(one)) for one in names)
        return parts

    def _split(self, asked: list[tuple[PlacedGroup, bytes]]) -> dict[int, list[tuple[PlacedGroup, bytes]]]:
        """Return what each part is asked; an event without any key asks the first, which says how it is."""
        count = self._cluster.address.parts
        split: dict[int, list[tuple[PlacedGroup, bytes]]] = {}
        for one in asked:
            part = crc32(one[1][_VALUE]) * count >> _CRC_BITS
            split.setdefault(part, []).append(one)
        return split or {0: []}

    def _note(self, tenant: str, event_id: str, parts: list[MemoryPart]) -> None:
        while len(self._unsettled) >= _UNSETTLED_MAX:
            del self._unsettled[next(iter(self._unsettled))]
        self._unsettled[tenant, event_id] = parts

    async def _inherit(self, tenant: str) -> None:
        await gather_all(self._calls.inherit(part) for part in self._parts_of(tenant))

    async def _each(self, memory: str, work: Callable[[str], Awaitable[Result]]) -> list[Result]:
        """Do something with every part, each again where its slot was elsewhere; return what came of it."""

        async def do(part: MemoryPart) -> Result:
            return await self._cluster.persist(lambda: work(part.name))

        return await gather_all(do(part) for part in self._parts_of(memory))


def _tenant_of(part: str) -> str:
    """Return the tenant of a part: its hash tag is that and two numbers, see `tags_of`."""
    return part.rsplit(".", 2)[0]
