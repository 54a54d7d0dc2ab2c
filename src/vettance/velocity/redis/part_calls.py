"""Calls to the parts of a memory in a Redis Cluster: together, again where a slot was elsewhere."""

import asyncio
import time
from collections.abc import Coroutine, Iterable
from contextlib import suppress
from typing import Any, Final, NamedTuple, TypeVar

from redis.exceptions import NoScriptError

from vettance.redis_link.cluster_connection import ClusterConnection
from vettance.redis_link.down import Redirection, StateDown
from vettance.redis_link.redis_connection import RedisConnection
from vettance.velocity.port import Unready
from vettance.velocity.redis.redis_layout import PlacedGroup
from vettance.velocity.redis.redis_velocity import (
    HANDOVER,
    OBSERVE,
    UNREADY,
    PlacedPlan,
    RedisVelocity,
    generation_of,
    sent_words,
)

_LOST: Final = "lost"
_TO_BE_SENT: Final = (Redirection, NoScriptError)

Result = TypeVar("Result")


class MemoryPart(NamedTuple):
    """A part of a tenant's memory: a whole memory to the scripts, of the keys that fall to it."""

    name: str
    keys: tuple[bytes, bytes]  # as the scripts take them


class PartCall(NamedTuple):
    """What one part is asked about an event."""

    part: MemoryPart
    placed: PlacedPlan
    event_id: str
    at_ms: int
    asked: list[tuple[PlacedGroup, bytes]]
    received: bool


class PartCalls:
    """Sends the calls of one event to the parts that it asks."""

    def __init__(self, cluster: ClusterConnection, memory: RedisVelocity) -> None:
        self._cluster = cluster
        self._memory = memory

    async def send(self, calls: list[PartCall], *, again: bool) -> list[bytes]:
        """Send the calls in one turn of the loop, and those that had no answer once more where they may be.

        Raises what any of them does, once all are answered.
        """
        asked_s = time.monotonic()
        posted = [self._post(call) for call in calls]
        found: list[bytes | BaseException] = []
        try:
            for posting in posted:
                found.append(await self._answer(posting, again=again))  # noqa: PERF401  What is left is cancelled.
        finally:
            for posting in posted[len(found) :]:
                if posting is not None:
                    posting[1].cancel()
        for call, posting, reply in zip(calls, posted, found, strict=True):
            if posting is not None and _is_of_owner(reply):
                self._cluster.note_owner(posting[0], call.part.keys[0], asked_s)
        late = [place for place, one in enumerate(found) if isinstance(one, _TO_BE_SENT)]
        sent = await asyncio.gather(
            *(self._send_late(calls[place]) for place in late), return_exceptions=True
        )
        for place, reply in zip(late, sent, strict=True):
            found[place] = reply
        for one in found:
            if isinstance(one, BaseException):
                raise one
        return found  # type: ignore[return-value]

    def _post(self, call: PartCall) -> tuple[RedisConnection, asyncio.Future[Any]] | None:
        """Send a call; None where that needs waiting."""
        with suppress(StateDown):
            node = self._cluster.at(call.part.keys[0])
            if (server := node.known_server) is not None:
                expected = call.placed.digest + server + generation_of(call.part.name)
                sent = sent_words(expected, call.event_id, call.at_ms, call.asked, call.received)
                return node, node.post(b"EVALSHA", OBSERVE.sha, b"2", *call.part.keys, *sent)
        return None

    async def _answer(
        self, posting: tuple[RedisConnection, asyncio.Future[Any]] | None, *, again: bool
    ) -> bytes | BaseException:
        if posting is None:
            return Redirection("it was not sent yet")
        node, posted = posting
        try:
            reply: bytes = await node.answer(posted, b"EVALSHA")
        except Redirection as redirected:
            return redirected
        except NoScriptError as error:
            return error
        except StateDown as error:
            self._cluster.suspect()
            # Whether it took effect is not known; by its id it will not do so twice.
            return Redirection(str(error)) if again else error
        if len(reply) == 1:
            # A lost one may have been moved only.
            return Redirection(_LOST) if UNREADY[reply] == _LOST else Unready(UNREADY[reply])
        return reply

    async def _send_late(self, call: PartCall) -> bytes:
        """Send a call that had no answer, also where its slot was moved meanwhile."""
        part, placed, event_id, at_ms, asked, received = call

        async def send() -> bytes:
            asked_s, node = time.monotonic(), self._cluster.at(part.keys[0])
            try:
                return await self._memory.send(part.name, placed, event_id, at_ms, asked, received=received)
            except Redirection as redirected:
                if _is_of_owner(redirected):
                    self._cluster.note_owner(node, part.keys[0], asked_s)
                raise

        try:
            return await self._cluster.persist(send)
        except Unready as unready:
            if str(unready) == _LOST and await self.inherit(part):
                return await self._cluster.persist(send)
            raise

    async def inherit(self, part: MemoryPart) -> bool:
        """Have a part go on that was moved to another server and lost nothing; tells whether it may."""
        servers = await self._cluster.handover(part.keys[0])
        return servers is not None and bool(await self._cluster.run(HANDOVER, part.keys, servers))


async def gather_all(work: Iterable[Coroutine[Any, Any, Result]]) -> list[Result]:
    """Await all together; raise only when none goes on any more."""
    found = await asyncio.gather(*work, return_exceptions=True)
    for one in found:
        if isinstance(one, BaseException):
            raise one
    return found  # type: ignore[return-value]


def _is_of_owner(reply: object) -> bool:
    """Tell whether a reply is that of the node which serves the slot."""
    return isinstance(reply, bytes) or (isinstance(reply, Redirection) and reply.is_moving)
