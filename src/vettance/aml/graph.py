"""The graph: who passed money to whom lately, searched within fixed bounds whenever a transfer is added.

Every account keeps its latest incoming transfers only, and every search looks at no more than a fixed number
of them, so that an account with a hundred thousand transfers costs what any other does. Shapes are those of
IBM's AMLSim (cycle, scatter-gather, bipartite, stack; https://github.com/IBM/AMLSim, docs of the typologies).
"""

from collections.abc import Iterator
from itertools import islice
from typing import Final

DAY_MS: Final = 86_400_000
HOUR_MS: Final = 3_600_000

# Transfers looked at for one account; twice as many are kept before the older half goes.
EDGES_MAX: Final = 24
LOOKS_MAX: Final = 128  # Transfers looked at by one search for a circle.
PARTIES_MAX: Final = 7  # A longer circle is not looked for.
CHAIN_MAX: Final = 8  # A longer chain counts as this one.
KNOWN_MAX: Final = 2_048  # Receivers remembered of one account; the least recent one is forgotten beyond.

AMOUNT_MIN: Final = 500  # Smaller sums, in whatever unit the tenant sends, make no circle and no chain.
CYCLE_MS: Final = 14 * DAY_MS
CHAIN_GAP_MS: Final = 3 * DAY_MS
MEET_MS: Final = 7 * DAY_MS
MIRROR_MS: Final = DAY_MS
TWIN_MS: Final = DAY_MS  # Both sides report one transfer within this time.
TWINS_MAX: Final = 8
SIMILAR_MIN: Final = 0.4  # Parts of one sum differ by no more than this.
SPLITS_MIN: Final = 3
HABIT_MAX: Final = 1
# A hop hands on what came in, less what was kept or plus a little that was there.
HANDED_ON_MIN: Final = 0.6
HANDED_ON_MAX: Final = 1.15
# Who takes in more transfers than this within the gap of a chain is a shop or an employer, not a link.
LINK_TRANSFERS_MAX: Final = 12
#: Sums from here on make a circle even between parties who have dealt with each other before.
LARGE_MIN: Final = 5_000


class Edge:
    """One transfer. `parent` is the transfer it hands on, `depth` the number of hops up to and with it.

    `told` holds who reported it: "in" the receiver, "out" the sender, "both" the two of them.
    """

    __slots__ = ("amount", "at_ms", "depth", "is_new", "parent", "receiver", "sender", "told")

    def __init__(
        self, sender: str, receiver: str, at_ms: int, amount: float, told: str, *, is_new: bool
    ) -> None:
        self.sender = sender
        self.receiver = receiver
        self.at_ms = at_ms
        self.amount = amount
        self.is_new = is_new
        self.told = told
        self.parent: Edge | None = None
        self.depth = 1

    def path(self) -> tuple[str, ...]:
        """Name the parties of the chain that ends with this transfer, the first sender first."""
        names = [self.receiver, self.sender]
        edge = self.parent
        while edge is not None and len(names) <= CHAIN_MAX:
            names.append(edge.sender)
            edge = edge.parent
        return tuple(reversed(names))


class Node:
    """What is remembered of one party: its latest incoming transfers and whom it has paid.

    `split_ms` is when it last collected a sum in parts, see `Graph.repeats`.
    """

    __slots__ = ("ins", "known", "last_ms", "split_ms")

    def __init__(self) -> None:
        self.ins: list[Edge] = []
        self.known: dict[str, int] = {}
        self.last_ms = 0
        self.split_ms: int | None = None


class Graph:
    """The recent transfers of one tenant. Moments are Unix milliseconds of event time."""

    def __init__(self) -> None:
        self.nodes: dict[str, Node] = {}

    def node(self, key: str) -> Node:
        """Return the node of a party, made when there is none."""
        found = self.nodes.get(key)
        if found is None:
            found = self.nodes[key] = Node()
        return found

    def add(self, sender: str, receiver: str, at_ms: int, amount: float, told: str, pair_ms: int) -> Edge:
        """Add a transfer; it is new when the sender has not paid the receiver within `pair_ms` before it.

        `told` is "in" when its receiver reports it, "out" when its sender does. What the other side has
        reported already is one transfer and not two.
        """
        payer, payee = self.node(sender), self.node(receiver)
        for twin in reversed(payee.ins[-TWINS_MAX:]):
            if twin.sender != sender or twin.amount != amount or twin.told in (told, "both"):
                continue
            if abs(at_ms - twin.at_ms) <= TWIN_MS:
                twin.told = "both"
                return twin
        payer.last_ms = max(payer.last_ms, at_ms)
        payee.last_ms = max(payee.last_ms, at_ms)
        paid_ms = payer.known.pop(receiver, None)
        is_new = paid_ms is None or paid_ms < at_ms - pair_ms
        edge = Edge(sender, receiver, at_ms, amount, told, is_new=is_new)
        payer.known[receiver] = at_ms if paid_ms is None else max(at_ms, paid_ms)
        if len(payer.known) > KNOWN_MAX:
            # One out for one in: forgetting many at once would make that one transfer slow.
            del payer.known[next(iter(payer.known))]
        if amount >= AMOUNT_MIN:
            self._link(edge, payer)
        payee.ins.append(edge)
        if len(payee.ins) > 2 * EDGES_MAX:
            del payee.ins[:EDGES_MAX]
        return edge

    def _link(self, edge: Edge, payer: Node) -> None:
        """Find the transfer that this one hands on: of those that fit, the one with the longest past."""
        links = 0
        for before in reversed(payer.ins[-EDGES_MAX:]):
            if not 0 <= edge.at_ms - before.at_ms <= CHAIN_GAP_MS:
                continue
            links += 1
            if before.sender == edge.receiver or not _hands_on(before, edge):
                continue
            if before.depth >= edge.depth:
                edge.parent, edge.depth = before, min(CHAIN_MAX, before.depth + 1)
        if links > LINK_TRANSFERS_MAX:
            edge.parent, edge.depth = None, 1
        if edge.parent is not None and edge.parent.depth >= CHAIN_MAX:
            edge.parent.parent = None  # What lies further back is let go of.

    def cycle(self, edge: Edge) -> tuple[str, ...]:
        """Return the parties of a circle of at least three that this transfer closes, else nothing.

        Money went from the receiver over the others to the sender, each sum handed on within `CYCLE_MS`.
        """
        if edge.amount < AMOUNT_MIN or edge.sender == edge.receiver:
            return ()
        looks = LOOKS_MAX
        nodes, since_ms = self.nodes, edge.at_ms - CYCLE_MS
        trails: list[tuple[Edge, tuple[str, ...]]] = [(edge, (edge.sender,))]
        while trails:
            last, parties = trails.pop()
            for before in reversed(nodes[parties[-1]].ins[-EDGES_MAX:]):
                looks -= 1
                if looks < 0:
                    return ()
                if (
                    not since_ms <= before.at_ms <= last.at_ms
                    or before is edge
                    or not _hands_on(before, last)
                ):
                    continue
                if not (before.is_new and edge.is_new) and edge.amount < LARGE_MIN:
                    continue
                if before.sender == edge.receiver:
                    if len(parties) >= 2:
                        return (edge.receiver, *reversed(parties))
                elif before.sender not in parties and len(parties) < PARTIES_MAX - 1:
                    trails.append((before, (*parties, before.sender)))
        return ()

    def repeats(self, edge: Edge) -> int:
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
            self.nodes[edge.receiver].split_ms = edge.at_ms
        return similar

    def gathered(self, edge: Edge) -> int:
        """Count the parties over which money of one source meets again at the receiver of this transfer."""
        parent = edge.parent
        if parent is None or not edge.is_new:
            return 0
        source, over = parent.sender, set()
        for other in self._recent(edge):
            if other.parent is not None and other.parent.sender == source:
                over.add(other.sender)
        return len(over)

    def grid(self, edge: Edge) -> int:
        """Count the senders (this one included) that pay both this receiver and two others of this sender."""
        if not edge.is_new or edge.amount < AMOUNT_MIN:
            return 0
        beside = {other.sender for other in self._recent(edge)} - {edge.sender}
        if len(beside) < 2:
            return 0
        shared = dict.fromkeys(beside, 0)
        known = self.nodes[edge.sender].known
        for receiver in islice(reversed(known), 8):
            if receiver == edge.receiver or known[receiver] < edge.at_ms - MEET_MS:
                continue
            payee = self.nodes.get(receiver)
            if payee is None:
                continue
            senders = {
                other.sender
                for other in payee.ins[-EDGES_MAX:]
                if other.amount >= AMOUNT_MIN and other.is_new and abs(edge.at_ms - other.at_ms) <= MEET_MS
            }
            for sender in senders & beside:
                shared[sender] += 1
        return 1 + sum(count >= 2 for count in shared.values())

    def mirror(self, edge: Edge) -> float | None:
        """Return this sum as a share of the closest one that its sender received within a day."""
        shares = [
            edge.amount / before.amount
            for before in self.nodes[edge.sender].ins[-EDGES_MAX:]
            if 0 <= edge.at_ms - before.at_ms <= MIRROR_MS and before.amount > 0
        ]
        return min(shares, key=lambda share: abs(share - 1), default=None)

    def _recent(self, edge: Edge) -> Iterator[Edge]:
        """Give the latest new transfers to the receiver of this one that are worth looking at."""
        for other in self.nodes[edge.receiver].ins[-EDGES_MAX:]:
            if other.is_new and other.amount >= AMOUNT_MIN and abs(edge.at_ms - other.at_ms) <= MEET_MS:
                yield other

    def merge(self, alias: str, key: str) -> None:
        """Give a party what was remembered under another name of it."""
        old = self.nodes.pop(alias, None)
        if old is None:
            return
        node = self.node(key)
        node.ins = sorted((*old.ins, *node.ins), key=lambda edge: edge.at_ms)[-2 * EDGES_MAX :]
        node.known = {**old.known, **node.known}
        node.last_ms = max(node.last_ms, old.last_ms)
        node.split_ms = node.split_ms or old.split_ms


def _hands_on(before: Edge, after: Edge) -> bool:
    return (
        before.amount >= AMOUNT_MIN
        and HANDED_ON_MIN * before.amount <= after.amount <= HANDED_ON_MAX * before.amount
    )
