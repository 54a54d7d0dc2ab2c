"""The graph: who passed money to whom lately, searched within fixed bounds whenever a transfer is added.

Every account keeps its latest incoming transfers only, and every search looks at no more than a fixed number
of them, so that an account with a hundred thousand transfers costs what any other does. Shapes are those of
IBM's AMLSim (cycle, scatter-gather, bipartite, stack; https://github.com/IBM/AMLSim, docs of the typologies).
"""

from collections.abc import Iterator
from itertools import islice
from math import inf
from typing import Final

import msgspec

from vettance.clock import DAY_MS

# Transfers looked at for one account; twice as many are kept before the older half goes.
EDGES_MAX: Final = 24
LOOKS_MAX: Final = 128  # Transfers looked at by one search for a circle.
PARTIES_MAX: Final = 12  # A longer circle is not looked for.
CHAIN_MAX: Final = 8  # A longer chain counts as this one.
KNOWN_MAX: Final = 2_048  # Receivers remembered of one account; the least recent one is forgotten beyond.

PAID_MAX: Final = 8  # Receivers looked at of one account.

LIKE_MIN: Final = 0.2  # Sums of one shape differ by no more than this, whatever unit the tenant sends.
CYCLE_MS: Final = 21 * DAY_MS
CHAIN_GAP_MS: Final = 3 * DAY_MS
MEET_MS: Final = 7 * DAY_MS
MIRROR_MS: Final = DAY_MS
TWIN_MS: Final = DAY_MS  # Both sides report one transfer within this time.
TWINS_MAX: Final = 8
SIMILAR_MIN: Final = 0.4  # Parts of one sum differ by no more than this.
SPLITS_MIN: Final = 2
HABIT_MAX: Final = 1
# A hop hands on what came in, less what was kept or plus a little that was there.
HANDED_ON_MIN: Final = 0.7
HANDED_ON_MAX: Final = 1.05
# Who takes in more transfers than this within the gap of a chain is a shop or an employer, not a link.
LINK_TRANSFERS_MAX: Final = 12


class GraphEdge(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """One transfer. `told` says who reported it: "in" the receiver, "out" the sender, "both" the two of them.

    `path` names the parties of the chain that ends with this transfer, the first sender first: a party that
    hands on what came in makes it one longer. It never changes, so that a snapshot may share it.
    """

    sender: str
    receiver: str
    at_ms: int
    amount: float
    told: str
    is_new: bool
    path: tuple[str, ...]

    @property
    def depth(self) -> int:
        """The number of hops that one sum has made up to and with this transfer."""
        return len(self.path) - 1

    @property
    def source(self) -> str | None:
        """Who sent the sum that is handed on here; None when it begins here."""
        return self.path[-3] if len(self.path) > 2 else None


class GraphNode(msgspec.Struct, array_like=True, gc=False):
    """What is remembered of one party: its latest incoming transfers and whom it has paid, and when last.

    `split_ms` is when it last collected a sum in parts, see `Graph.repeats`. `age` is that of the graph when
    this node was made or copied: an older one is held by a snapshot, and copied before it is changed.
    """

    ins: list[GraphEdge] = []
    known: dict[str, int] = {}
    last_ms: int = 0
    split_ms: int | None = None
    age: int = 0


class Graph:
    """The recent transfers of one tenant. Moments are Unix milliseconds of event time."""

    def __init__(self) -> None:
        self.nodes: dict[str, GraphNode] = {}
        self._age = 0

    def hold(self) -> dict[str, GraphNode]:
        """Return all nodes as they are now; from now on they are copied before they change."""
        self._age += 1
        return self.nodes.copy()

    def put(self, key: str, node: GraphNode) -> None:
        """Give a party what a snapshot remembers of it."""
        node.age = self._age
        self.nodes[key] = node

    def _node(self, key: str) -> GraphNode:
        """Return the node of a party, to be changed; made when there is none."""
        found = self.nodes.get(key)
        if found is None:
            found = self.nodes[key] = GraphNode(age=self._age)
        elif found.age != self._age:
            found = self.nodes[key] = GraphNode(
                found.ins.copy(), found.known.copy(), found.last_ms, found.split_ms, self._age
            )
        return found

    def add(
        self, sender: str, receiver: str, at_ms: int, amount: float, told: str, pair_ms: int
    ) -> GraphEdge:
        """Add a transfer; it is new when the sender has not paid the receiver within `pair_ms` before it.

        `told` is "in" when its receiver reports it, "out" when its sender does. What the other side has
        reported already is one transfer and not two.
        """
        # As a snapshot gives it back, so that it equals what comes later whatever was restarted in between.
        amount = float(amount)
        payer, payee = self._node(sender), self._node(receiver)
        ins = payee.ins
        for place in range(len(ins) - 1, max(-1, len(ins) - 1 - TWINS_MAX), -1):
            twin = ins[place]
            if twin.sender != sender or twin.amount != amount or twin.told in (told, "both"):
                continue
            if abs(at_ms - twin.at_ms) <= TWIN_MS:
                ins[place] = both = msgspec.structs.replace(twin, told="both")
                return both
        payer.last_ms = max(payer.last_ms, at_ms)
        payee.last_ms = max(payee.last_ms, at_ms)
        paid_ms = payer.known.pop(receiver, None)
        is_new = paid_ms is None or paid_ms < at_ms - pair_ms
        payer.known[receiver] = at_ms if paid_ms is None else max(at_ms, paid_ms)
        if len(payer.known) > KNOWN_MAX:
            # One out for one in: forgetting many at once would make that one transfer slow.
            del payer.known[next(iter(payer.known))]
        path: tuple[str, ...] = (sender, receiver)
        if (before := _handed_on(payer, receiver, at_ms, amount)) is not None:
            path = (*before.path[-CHAIN_MAX:], receiver)
        edge = GraphEdge(sender, receiver, at_ms, amount, told, is_new, path)
        ins.append(edge)
        if len(ins) > 2 * EDGES_MAX:
            del ins[:EDGES_MAX]
        return edge

    def cycle(self, edge: GraphEdge, *, known: bool = False) -> tuple[str, ...]:
        """Return the parties of a circle of at least three that this transfer closes, else nothing.

        Money went from the receiver over the others to the sender, each sum handed on within `CYCLE_MS`. Each
        party paid the next one for the first time; with `known` they may have dealt with each other before.
        """
        if edge.sender == edge.receiver or not (known or edge.is_new):
            return ()
        looks = LOOKS_MAX
        nodes, since_ms = self.nodes, edge.at_ms - CYCLE_MS
        trails: list[tuple[GraphEdge, tuple[str, ...]]] = [(edge, (edge.sender,))]
        while trails:
            last, parties = trails.pop()
            party = nodes.get(parties[-1])
            if party is None:
                continue  # It is known under another name by now, or was forgotten.
            for before in reversed(party.ins[-EDGES_MAX:]):
                looks -= 1
                if looks < 0:
                    return ()
                if not since_ms <= before.at_ms <= last.at_ms or not _hands_on(before, last.amount):
                    continue
                if not (known or before.is_new):
                    continue
                if before.sender == edge.receiver:
                    if len(parties) >= 2:
                        return (edge.receiver, *reversed(parties))
                elif before.sender not in parties and len(parties) < PARTIES_MAX - 1:
                    trails.append((before, (*parties, before.sender)))
        return ()

    def repeats(self, edge: GraphEdge) -> int:
        """Count the similar transfers of a day between the two parties of this one, itself included.

        Parties who dealt with each other on other days before have a habit, and count as 1. From
        `SPLITS_MIN` on the receiver is remembered as one that collects sums in parts.
        """
        similar, habit = 0, 0
        for other in self.nodes[edge.receiver].ins[-EDGES_MAX:]:
            if other.sender != edge.sender:
                continue
            if abs(edge.at_ms - other.at_ms) > DAY_MS:
                habit += 1
            elif SIMILAR_MIN * edge.amount <= other.amount <= edge.amount / SIMILAR_MIN:
                similar += 1
        if habit > HABIT_MAX:
            return 1
        if similar >= SPLITS_MIN:
            self._node(edge.receiver).split_ms = edge.at_ms
        return similar

    def gathered(self, edge: GraphEdge) -> int:
        """Count the parties over which money of one source meets again at the receiver of this transfer."""
        source = edge.source
        if source is None or not edge.is_new:
            return 0
        return len({other.sender for other in self._recent(edge, edge.receiver) if other.source == source})

    def spread(self, edge: GraphEdge) -> int:
        """Count the receivers to whom the source of this sum lately sent like ones for the first time."""
        source = edge.source
        if source is None or not edge.is_new:
            return 0
        receivers = self._paid_lately(source, edge)
        return sum(any(other.sender == source for other in self._recent(edge, one)) for one in receivers)

    def grid(self, edge: GraphEdge) -> tuple[int, int]:
        """Count the senders (this one included) that pay both this receiver and two others of this sender,
        and the most receivers (this one included) that it has in common with one of them.
        """
        if not edge.is_new:
            return 0, 0
        shared = dict.fromkeys((other.sender for other in self._recent(edge, edge.receiver)), 1)
        shared.pop(edge.sender, None)
        if not shared:
            return 0, 0
        for receiver in self._paid_lately(edge.sender, edge):
            if receiver != edge.receiver:
                for sender in {other.sender for other in self._recent(edge, receiver)} & shared.keys():
                    shared[sender] += 1
        return 1 + sum(count >= 3 for count in shared.values()), max(shared.values())

    def mirror(self, edge: GraphEdge) -> float | None:
        """Return this sum as a share of the closest one that its sender received within a day.

        A sum that is no share of another, being so much greater, has no closest one.
        """
        shares = [
            share
            for before in self.nodes[edge.sender].ins[-EDGES_MAX:]
            if 0 <= edge.at_ms - before.at_ms <= MIRROR_MS
            and before.amount > 0
            and (share := edge.amount / before.amount) < inf
        ]
        return min(shares, key=lambda share: abs(share - 1), default=None)

    def _paid_lately(self, sender: str, edge: GraphEdge) -> Iterator[str]:
        """Give the parties that a sender has paid within `MEET_MS` before a transfer, the last ones only."""
        payer = self.nodes.get(sender)
        if payer is not None:
            for receiver in islice(reversed(payer.known), PAID_MAX):
                if payer.known[receiver] >= edge.at_ms - MEET_MS:
                    yield receiver

    def _recent(self, edge: GraphEdge, receiver: str) -> Iterator[GraphEdge]:
        """Give the latest new transfers to a party that are of the time and the size of this one."""
        payee = self.nodes.get(receiver)
        for other in payee.ins[-EDGES_MAX:] if payee is not None else ():
            if other.is_new and _is_like(other, edge) and abs(edge.at_ms - other.at_ms) <= MEET_MS:
                yield other

    def merge(self, alias: str, key: str) -> None:
        """Give a party what was remembered under another name of it."""
        old = self.nodes.pop(alias, None)
        if old is None:
            return
        node = self._node(key)
        node.ins = sorted((*old.ins, *node.ins), key=lambda edge: edge.at_ms)[-2 * EDGES_MAX :]
        node.known = {**old.known, **node.known}
        node.last_ms = max(node.last_ms, old.last_ms)
        node.split_ms = node.split_ms or old.split_ms


def _handed_on(payer: GraphNode, receiver: str, at_ms: int, amount: float) -> GraphEdge | None:
    """Find the transfer that a new one hands on: of those that fit, the one with the longest past."""
    links, found = 0, None
    for before in reversed(payer.ins[-EDGES_MAX:]):
        if not 0 <= at_ms - before.at_ms <= CHAIN_GAP_MS:
            continue
        links += 1
        if links > LINK_TRANSFERS_MAX:
            return None
        if before.sender == receiver or not _hands_on(before, amount):
            continue
        if found is None or len(before.path) > len(found.path):
            found = before
    return found


def _hands_on(before: GraphEdge, amount: float) -> bool:
    return HANDED_ON_MIN * before.amount <= amount <= HANDED_ON_MAX * before.amount


def _is_like(other: GraphEdge, edge: GraphEdge) -> bool:
    return LIKE_MIN * edge.amount <= other.amount <= edge.amount / LIKE_MIN
