"""The graph around an entity equals a naive recount over the raw decisions, and stays small."""

from collections import Counter
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.history.past import MADE, Archive, Past
from vettance.history.entity_graph import (
    FIRST_HOP_MAX,
    GRAPH_KINDS,
    HUB_MIN,
    NODES_MAX,
    EntityNode,
    Neighbours,
    build_graph,
    first_hop,
)
from vettance.history.entity_neighbours import EntityNeighbours

LIVED = st.lists(st.tuples(st.integers(0, 1), MADE), min_size=1, max_size=30)
SEALS = st.lists(st.integers(0, 29), max_size=2, unique=True)


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Archive]:
    made = Archive(tmp_path_factory.mktemp("graph"))
    yield made
    made.close()


def known_by(past: Past, kind: str) -> str | None:
    made = past.made
    return {
        "customer": made.customer_id or made.email,
        "device": made.fingerprint or made.device_id,
        "ip": made.ip,
        "email": made.email,
    }[kind]


def seen_with(pasts: list[Past], node: EntityNode) -> Counter[EntityNode]:
    """Count, the slow and obvious way, what was seen with a value."""
    found: Counter[EntityNode] = Counter()
    for one in pasts:
        if known_by(one, node.kind) == node.value:
            others = [(kind, known_by(one, kind)) for kind in GRAPH_KINDS if kind != node.kind]
            found.update(EntityNode(kind, text) for kind, text in others if text not in (None, node.value))
    return found


@settings(max_examples=60, deadline=None)
@given(LIVED, SEALS, st.integers(0, 29), st.sampled_from(GRAPH_KINDS))
def test_neighbours_are_those_of_every_decision(archive: Archive, lived, seals, number, kind) -> None:
    tenants = [archive.tenant(), archive.tenant()]
    neighbours = EntityNeighbours(archive.store, archive.finder)

    async def scene() -> None:
        pasts = await archive.live(tenants, lived, seals)
        for tenant, past in zip(tenants, pasts, strict=True):
            values = [value for one in past if (value := known_by(one, kind)) is not None]
            node = EntityNode(kind, values[number % len(values)] if values else "never seen")
            found, graph = await neighbours.around(tenant, node)
            assert found.events == seen_with(past, node)
            assert found.own_events == sum(known_by(one, kind) == node.value for one in past)
            assert found.counts == {
                other: sum(one.kind == other for one in found.events) for other in GRAPH_KINDS
            }
            for edge in graph.edges:
                assert edge.events == seen_with(past, edge.one)[edge.other]
            assert graph.hops.keys() - {node} == {edge.other for edge in graph.edges}

    archive.runner.run(scene())


def test_a_graph_stays_small_and_looks_behind_no_hub() -> None:
    center = EntityNode("customer", "c")
    ips = {EntityNode("ip", f"i{number}"): number + 1 for number in range(40)}
    around = Neighbours(100, {"ip": 40}, ips)
    first = first_hop(around)
    assert len(first) == FIRST_HOP_MAX
    assert first[0] == EntityNode("ip", "i39")
    many = {EntityNode("customer", f"x{number}"): 1 for number in range(80)}
    behind = dict.fromkeys(first, Neighbours(200, {"customer": 80}, many))
    behind[first[0]] = Neighbours(9_000, {"customer": HUB_MIN}, many)
    graph = build_graph(center, around, first, behind)
    assert len(graph.hops) == NODES_MAX
    assert graph.hubs == {first[0]: HUB_MIN}
    assert first[0] not in graph.parents.values()
    assert graph.left_out == 40 - FIRST_HOP_MAX + 80 - (NODES_MAX - 1 - FIRST_HOP_MAX)


def test_the_first_hop_has_nodes_of_every_kind() -> None:
    ips = {EntityNode("ip", f"i{number}"): 1_000 for number in range(40)}
    around = Neighbours(100, {}, {**ips, EntityNode("email", "a@b.example"): 1, EntityNode("device", "d"): 1})
    assert {node.kind for node in first_hop(around)} == {"ip", "email", "device"}
