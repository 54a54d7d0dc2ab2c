"""The book: the parties of one tenant, under one name each, with what is remembered of them."""

from typing import Final, NamedTuple

import msgspec

from vettance.aml.graph import Graph, GraphNode
from vettance.aml.peers import PeerGroup, Peers
from vettance.clock import DAY_MS

KEPT_MS: Final = 180 * DAY_MS  # The transfers of a party without a new one for so long are forgotten.
OWN_MS: Final = 400 * DAY_MS  # A customer who was silent for so long is forgotten.
# Parties looked at for each event; the whole tenant within half as many events as it has parties.
_SWEEP: Final = 2


class OwnCustomer(msgspec.Struct, array_like=True, gc=False):
    """What is remembered of a party as the tenant's own customer: digits, moments, segment, turnover.

    Without a transfer so far `last_ms` is 0. `turnover` is what came in, as of `turned_ms` and fading by
    a month; `sampled_ms` is when it last counted among its peers. `age` is that of the book, as with
    `graph.Node`.
    """

    digits: list[int]
    last_ms: int = 0
    woke_ms: int | None = None
    age: int = 0
    segment: str | None = None
    turnover: float = 0.0
    turned_ms: int = 0
    sampled_ms: int | None = None


class Parties:
    """The parties of one tenant: names, own customers, their peers and the graph."""

    def __init__(self) -> None:
        self.graph = Graph()
        self.own: dict[str, OwnCustomer] = {}
        self.alias: dict[str, str] = {}
        self.peers = Peers()
        self.first_ms: int | None = None
        self.high_ms = 0
        self._age = 0
        self._round: list[str] = []

    def hold(self) -> "PartiesState":
        """Return everything as it is now; from now on it is copied before it changes."""
        self._age += 1
        return PartiesState(
            self.first_ms,
            self.high_ms,
            self.alias.copy(),
            self.own.copy(),
            self.graph.hold(),
            self.peers.hold(),
        )

    def customer(self, party: str) -> OwnCustomer:
        """Return what is remembered of an own customer, to be changed; made when there is nothing."""
        found = self.own.get(party)
        if found is None:
            found = self.own[party] = OwnCustomer([0] * 10, age=self._age)
        elif found.age != self._age:
            found = self.own[party] = msgspec.structs.replace(
                found, digits=found.digits.copy(), age=self._age
            )
        return found

    def put(self, party: str, own: OwnCustomer) -> None:
        """Give an own customer what a snapshot remembers of it."""
        own.age = self._age
        self.own[party] = own

    def sweep(self) -> None:
        """Look at a few parties, and forget those that have been silent for long."""
        if not self._round:
            self._round = [*self.own, *self.graph.nodes]
        for _ in range(min(_SWEEP, len(self._round))):
            key = self._round.pop()
            node = self.graph.nodes.get(key)
            if node is not None and node.last_ms < self.high_ms - KEPT_MS:
                del self.graph.nodes[key]
            own = self.own.get(key)
            if own is not None and own.last_ms and own.last_ms < self.high_ms - OWN_MS:
                del self.own[key]


class PartiesState(NamedTuple):
    """A book as it was at one moment."""

    first_ms: int | None
    high_ms: int
    alias: dict[str, str]
    own: dict[str, OwnCustomer]
    nodes: dict[str, GraphNode]
    peers: dict[str, PeerGroup]
