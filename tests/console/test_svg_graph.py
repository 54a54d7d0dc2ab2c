"""Labels of the graph of an entity can be read: none lies on another, on a node, or beyond the edge."""

import re
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vettance.console import svg_graph
from vettance.console.shown_values import ValueFormatter
from vettance.history.entity_graph import EntityGraph, EntityNode

CENTER = EntityNode("customer", "c-0")


def graph_of(behind: list[int]) -> EntityGraph:
    """A graph with so many nodes behind each of the first hop."""
    hops, parents = {CENTER: 0}, {}
    first = [EntityNode("device", f"device-{number}-of-many") for number in range(len(behind))]
    hops |= dict.fromkeys(first, 1)
    for node, count in zip(first, behind, strict=True):
        for number in range(count):
            far = EntityNode("ip", f"{node.value}.{number}")
            hops[far], parents[far] = 2, node
    return EntityGraph(CENTER, hops, parents, [], {}, 0)


@pytest.mark.parametrize("size", ["wide", "narrow"])
@given(st.lists(st.integers(0, 6), min_size=0, max_size=16))
def test_labels_lie_on_nothing(size: str, behind: list[int]) -> None:
    graph = graph_of(behind)
    places = svg_graph.place(graph)
    labels = svg_graph.labels(graph, places, {node: node.value for node in graph.hops}, size)
    assert CENTER in labels
    for one, other in combinations((label.box for label in labels.values()), 2):
        assert one[2] <= other[0] or other[2] <= one[0] or one[3] <= other[1] or other[3] <= one[1]
    for label in labels.values():
        left, top, right, bottom = label.box
        assert min(left, top) >= 0
        assert max(right, bottom) <= 620
        for node, at in places.items():
            assert labels.get(node) is label or not (left < at.x < right and top < at.y < bottom)


def test_every_node_has_its_name_though_no_label() -> None:
    graph = graph_of([4] * 16)
    titles = {node: node.value for node in graph.hops}
    drawn = svg_graph.draw(graph, titles, {}, "what was seen together", ValueFormatter(0))
    assert len(re.findall("<title>", drawn)) == len(graph.hops)
