"""The connections to a Redis Cluster: each call goes to the master that serves the slot of its key."""

import asyncio
import binascii
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import Any, ClassVar, Final, TypeVar

from redis.exceptions import (
    AskError,
    ClusterDownError,
    MovedError,
    ReadOnlyError,
    RedisError,
    ResponseError,
    TryAgainError,
)

from vettance.redis_link.down import Redirection, StateDown
from vettance.redis_link.redis_connection import (
    PATIENCE_S,
    LuaScript,
    RedisConnection,
    Unfit,
    try_line,
)
from vettance.settings.urls import read_cluster_url

SLOTS: Final = 16_384  # of every cluster (Redis Cluster specification, "Key distribution model")
#: How long a call waits for a slot that is being moved, or for a master to be elected, before it is refused.
MOVING_S: Final = 5.0
_RETRY_S: Final = 0.01
#: Nodes are asked who serves which slot at most so often, unless one says that a slot has moved.
_LEARN_S: Final = 0.1
_ASK_S: Final = 0.5
# What a node says without having done anything. The first two: of a slot that is being moved it lacks keys.
_REDIRECTIONS: Final = (TryAgainError, AskError, MovedError, ClusterDownError)
_PARTS_KEY: Final = b"vettance:parts"
_PARTS_MEND: Final = (
    "Let every VETTANCE_REDIS_URL say the same (?parts=…); to change it, stop every process and empty the "
    "cluster."
)
_ALONE_MEND: Final = "Name a single server as redis://host:6379/0, or start it with `cluster-enabled yes`."

Result = TypeVar("Result")


def slot_of(key: bytes) -> int:
    """Return the slot of a key: of what is between its first braces (Redis Cluster, "Hash tags")."""
    start = key.find(b"{")
    if start >= 0:
        end = key.find(b"}", start + 1)
        if end > start + 1:
            key = key[start + 1 : end]
    return binascii.crc_hqx(key, 0) % SLOTS  # CRC16 of the variant XMODEM


class NodeConnection(RedisConnection):
    """A connection to one node, which may say that another one serves a slot."""

    _ending: ClassVar[tuple[type[RedisError], ...]] = (ReadOnlyError,)

    def __init__(self, url: str, patience_s: float, host: str) -> None:
        super().__init__(url, patience_s)
        self._host = host

    def _refusal(self, refusal: ResponseError, command: bytes) -> StateDown:
        if not isinstance(refusal, _REDIRECTIONS):
            return super()._refusal(refusal, command)
        moved = None
        if isinstance(refusal, MovedError):
            # A node that does not know its own address leaves it out.
            moved = (refusal.slot_id, (refusal.host or self._host, refusal.port))
        is_moving = isinstance(refusal, TryAgainError | AskError) and moved is None
        return Redirection(type(refusal).__name__, moved, is_moving=is_moving)


class ClusterConnection:
    """Connections to the masters of a cluster, opened when they are first needed."""

    def __init__(self, url: str, patience_s: float = PATIENCE_S) -> None:
        """Name some nodes by a URL; see `urls.read_cluster_url`. Raises `ValueError`."""
        self.address = read_cluster_url(url)
        self._patience_s = patience_s
        self._nodes: dict[tuple[str, int], NodeConnection] = {}
        self._slots: list[NodeConnection | None] = [None] * SLOTS
        self._masters: tuple[tuple[str, int], ...] = ()
        self._learning: asyncio.Task[None] | None = None
        self._learned_s = float("-inf")
        #: By slot: what last answered for it, the run of that server, and when it was asked.
        self._owners: dict[int, tuple[RedisConnection, bytes, float]] = {}
        self._retiring: set[asyncio.Task[None]] = set()
        self._turn = -1
        self._has_agreed = False
        self._unfit: Unfit | None = None
        self._is_closed = False

    def at(self, key: bytes) -> NodeConnection:
        """Return the connection to the master of a key. Raises `Redirection` while none is known, `Unfit`."""
        node = self._slots[slot_of(key)]
        if node is None or not self._has_agreed:
            raise self._unfit or Redirection("who serves a slot is not known")
        return node

    def spread(self, name: str) -> list[bytes]:
        """Return a key of a name for each part of a tenant's keys, on as many shards as those."""
        return [b"{%b}" % tag.encode() for tag in tags_of(name, self.address.parts)]

    async def persist(self, work: Callable[[], Awaitable[Result]]) -> Result:
        """Do what asks one slot, again for as long as it took no effect because the slot was elsewhere.

        Raises what `work` does, and `StateDown` when the slot is not served in time.
        """
        until_s = time.monotonic() + MOVING_S
        while True:
            try:
                return await work()
            except Redirection as redirected:
                if time.monotonic() >= until_s or self._is_closed:
                    raise StateDown(f"no node serves the slot ({redirected})") from None
                await self._follow(redirected)
            except StateDown:
                self.suspect()
                raise

    async def call(self, *parts: bytes) -> Any:
        """Send one command to the master of its key. Raises as `RedisConnection.call`."""
        key = parts[3] if parts[0] in (b"EVALSHA", b"EVAL") else parts[1]
        return await self.persist(lambda: self.at(key).call(*parts))

    async def run(self, script: LuaScript, keys: Sequence[bytes], args: Sequence[bytes]) -> Any:
        """Run a script on the master of its keys."""
        return await self.persist(lambda: self.at(keys[0]).run(script, keys, args))

    async def addresses(self) -> tuple[tuple[str, int], ...]:
        """Return the hosts and ports of the masters that serve slots, as they are now. Raises `StateDown`."""
        await self._ask_nodes()
        return self._masters

    async def masters(self) -> list[NodeConnection]:
        """Return the connections to the masters that serve slots, as they are now. Raises `StateDown`."""
        return [self._node(address) for address in await self.addresses()]

    def note_owner(self, node: RedisConnection, key: bytes, asked_s: float) -> None:
        """Note that a node, asked at a moment, answered as the one that serves a key."""
        if node.known_server is not None and node.opened_s <= asked_s:
            self._owners[slot_of(key)] = (node, node.known_server, asked_s)

    async def handover(self, key: bytes) -> tuple[bytes, bytes] | None:
        """Return the runs of the servers of which one is known to have given the slot of a key to the other.

        Known is it when both have run without a break since the first served the slot, and the first is a
        master still: so nothing was lost in between. A replica that was promoted has no such predecessor.
        Raises `StateDown`.
        """
        slot = slot_of(key)
        node, owner = self._slots[slot], self._owners.get(slot)
        if node is None or owner is None or owner[0] is node:
            return None
        before, server, asked_s = owner
        heir = node.known_server
        if heir is None or max(node.opened_s, before.opened_s) > asked_s or before.known_server != server:
            return None
        is_master = (await before.call(b"ROLE"))[0] == b"master"
        return (server, heir) if is_master and before.known_server == server else None

    def suspect(self) -> None:
        """Have the nodes asked anew, since one does not answer: another may serve its slots soon."""
        if not self._is_closed and self._learning is None and self._is_due():
            self._learning = asyncio.create_task(self._learn())

    async def close(self) -> None:
        """Let go of every connection; calls that wait fail."""
        self._is_closed = True
        tasks = [*self._retiring, *((self._learning,) if self._learning else ())]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await asyncio.gather(*(node.close() for node in self._nodes.values()))

    def _is_due(self) -> bool:
        return time.monotonic() - self._learned_s >= _LEARN_S

    async def _follow(self, redirected: Redirection) -> None:
        """Learn where a slot is, or wait a moment for it to get there."""
        self.suspect()
        if redirected.moved is not None:
            slot, address = redirected.moved
            self._slots[slot] = self._node(address)
            await asyncio.sleep(_RETRY_S / 10)
        elif self._masters or self._learning is None:
            await asyncio.sleep(_RETRY_S)
        else:
            await asyncio.wait([self._learning], timeout=MOVING_S)

    async def _learn(self) -> None:
        try:
            await self._ask_nodes()
        except StateDown:
            pass  # Who asks next finds the slots as they were.
        finally:
            self._learned_s, self._learning = time.monotonic(), None

    async def _ask_nodes(self) -> None:
        """Take over what the first node says that knows. Raises `StateDown` when none does."""
        reason = StateDown("the line to Redis is closed")
        addresses = [*self._nodes, *self.address.seeds]
        # Another one each time: what one node knows may be out of date.
        self._turn = (self._turn + 1) % len(addresses)
        for address in addresses[self._turn :] + addresses[: self._turn]:
            if self._is_closed:
                break
            try:
                async with asyncio.timeout(min(_ASK_S, self._patience_s)):
                    told = await self._node(address).call(b"CLUSTER", b"SLOTS")
            except (StateDown, TimeoutError) as error:
                reason = StateDown(str(error))
                continue
            if told:
                self._take_over(address[0], told)
                await self._agree()
                return
            reason = StateDown("the cluster serves no slots")
        raise reason

    async def _agree(self) -> None:
        """See that every process spreads keys over as many parts. Raises `Unfit`, `StateDown`."""
        node, parts = self._slots[slot_of(_PARTS_KEY)], b"%d" % self.address.parts
        if self._has_agreed or node is None:
            return
        agreed = await node.call(b"SET", _PARTS_KEY, parts, b"NX", b"GET")
        if agreed not in (None, parts):
            found = (
                f"its keys are spread over {agreed.decode()} parts, and ours would be over {parts.decode()}"
            )
            self._unfit = Unfit(found, _PARTS_MEND)
            raise self._unfit
        self._has_agreed, self._unfit = True, None

    def _take_over(self, asked: str, told: list[list[Any]]) -> None:
        slots: list[NodeConnection | None] = [None] * SLOTS
        kept = set()
        for first, last, master, *_ in told:
            # A node that does not know its own address leaves it out.
            address = (master[0].decode() if master[0] else asked, int(master[1]))
            kept.add(address)
            slots[first : last + 1] = [self._node(address)] * (last + 1 - first)
        self._slots = slots
        self._masters = tuple(kept)
        for address in self._nodes.keys() - kept:
            retiring = asyncio.create_task(self._retire(self._nodes.pop(address)))
            self._retiring.add(retiring)
            retiring.add_done_callback(self._retiring.discard)

    async def _retire(self, node: NodeConnection) -> None:
        """Close the connection to a node that serves nothing, once it has answered what it was asked."""
        try:
            await asyncio.sleep(self._patience_s)
        finally:
            await node.close()

    def _node(self, address: tuple[str, int]) -> NodeConnection:
        node = self._nodes.get(address)
        if node is None:
            node = self._nodes[address] = NodeConnection(
                self.address.url(*address), self._patience_s, address[0]
            )
        return node


def tags_of(name: str, parts: int) -> Iterator[str]:
    """Return a hash tag for each part of what has a name, each in a range of slots of its own.

    The ranges are of one length and follow one another, as those that shards are given at first.
    """
    for part in range(parts):
        number = 0
        while slot_of(f"{name}.{part}.{number}".encode()) * parts // SLOTS != part:
            number += 1
        yield f"{name}.{part}.{number}"


async def try_cluster(url: str, patience_s: float = PATIENCE_S) -> list[str]:
    """Return the URLs of the masters; none when no node answers. Raises `Unfit` as `try_line`."""
    cluster = ClusterConnection(url, patience_s)
    try:
        for seed in cluster.address.seeds:
            node = cluster.address.url(*seed)
            await try_line(node, patience_s)
            if await _is_alone(node, patience_s):
                raise Unfit("it is not part of a cluster", _ALONE_MEND)
        return [cluster.address.url(*address) for address in await cluster.addresses()]
    except Unfit:
        raise
    except StateDown:
        return []
    finally:
        await cluster.close()


async def _is_alone(url: str, patience_s: float) -> bool:
    """Tell whether a server that answers is not part of a cluster."""
    line = RedisConnection(url, patience_s)
    try:
        return b"cluster_enabled:0" in await line.call(b"INFO", b"cluster")
    except StateDown:
        return False
    finally:
        await line.close()
