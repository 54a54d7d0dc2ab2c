"""The graph around an entity: what was seen with it, what was seen with that, and which values are hubs."""

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

import msgspec

#: The kinds of entities that people look at, in the order in which they are shown.
GRAPH_KINDS: Final = ("customer", "device", "ip", "email")
NODES_MAX: Final = 60
#: So many of the first hop are shown and looked behind; the tables list more of them.
FIRST_HOP_MAX: Final = 16
#: A value with which so many others were seen says little of any of them: an office, a carrier, a test card.
HUB_MIN: Final = 100


class EntityNode(NamedTuple):
    """A value of a kind."""

    kind: str
    value: str


class EntityEdge(NamedTuple):
    """Two values that were seen in the same events, and in how many."""

    one: EntityNode
    other: EntityNode
    events: int


class Neighbours(NamedTuple):
    """What a value was seen with: how many of each kind, and the most frequent with their events."""

    own_events: int
    counts: Mapping[str, int]
    events: Mapping[EntityNode, int]

    @property
    def distinct(self) -> int:
        """How many different values of other kinds there are."""
        return sum(self.counts.values())


class EntityGraph(msgspec.Struct, frozen=True):
    """A graph of two hops. `hops` has its nodes from the centre outwards.

    `hubs` says with how many values a hub was seen; `parents` names, for each node of the second hop, the one
    of the first that it hangs on.
    """

    center: EntityNode
    hops: dict[EntityNode, int]
    parents: dict[EntityNode, EntityNode]
    edges: list[EntityEdge]
    hubs: dict[EntityNode, int]
    left_out: int


def first_hop(neighbours: Neighbours) -> list[EntityNode]:
    """Choose the nodes of the first hop: the most frequent, and of each kind its share."""
    by_kind = {
        kind: [node for node in ranked(neighbours.events) if node.kind == kind] for kind in GRAPH_KINDS
    }
    chosen: list[EntityNode] = []
    while len(chosen) < FIRST_HOP_MAX and any(by_kind.values()):
        for nodes in by_kind.values():
            if nodes and len(chosen) < FIRST_HOP_MAX:
                chosen.append(nodes.pop(0))
    return sorted(
        chosen, key=lambda node: (GRAPH_KINDS.index(node.kind), -neighbours.events[node], node.value)
    )


def ranked(events: Mapping[EntityNode, int]) -> list[EntityNode]:
    """Return nodes, those with the most events first."""
    return sorted(events, key=lambda node: (-events[node], node))


def build_graph(
    center: EntityNode,
    around: Neighbours,
    first: Sequence[EntityNode],
    behind: Mapping[EntityNode, Neighbours],
) -> EntityGraph:
    """Put a graph together of what is around its centre and around the nodes of the first hop."""
    hops = {center: 0} | dict.fromkeys(first, 1)
    edges = [EntityEdge(center, node, around.events[node]) for node in first]
    hubs = {node: behind[node].distinct for node in first if behind[node].distinct >= HUB_MIN}
    found: dict[EntityNode, dict[EntityNode, int]] = {}
    for node in first:
        if node in hubs:
            continue
        for other, events in behind[node].events.items():
            if other not in hops and other not in around.events:
                found.setdefault(other, {})[node] = events
    # What hangs on several nodes of the first hop ties them together: it is shown first.
    second = sorted(found, key=lambda node: (-len(found[node]), -sum(found[node].values()), node))
    room = NODES_MAX - len(hops)
    parents: dict[EntityNode, EntityNode] = {}
    for node in second[:room]:
        hops[node] = 2
        parents[node] = max(found[node], key=lambda one: (found[node][one], one))
        edges += [EntityEdge(one, node, events) for one, events in found[node].items()]
    left_out = len(around.events) - len(first) + max(0, len(second) - room)
    return EntityGraph(center, hops, parents, edges, hubs, left_out)
