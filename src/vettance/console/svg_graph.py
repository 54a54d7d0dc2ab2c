"""The graph of an entity: a radial picture of two hops, hubs as one node each, and a table of its edges."""

import math
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from markupsafe import Markup

from vettance.history.entity_graph import EntityGraph, EntityNode

_SIZE: Final = 620
_CENTER: Final = _SIZE / 2
_RADII: Final = {0: 0, 1: 130, 2: 252}
_NODE: Final = {0: 12, 1: 8, 2: 6}


class Place(NamedTuple):
    """Where a node is."""

    x: float
    y: float
    angle: float


def draw(
    graph: EntityGraph, titles: Mapping[EntityNode, str], urls: Mapping[EntityNode, str], text: str
) -> Markup:
    """Return the picture; a table next to it lists the same edges."""
    places = place(graph)
    lines = Markup().join(
        Markup('<line x1="{}" y1="{}" x2="{}" y2="{}"><title>{}: {} events</title></line>').format(
            round(places[edge.one].x),
            round(places[edge.one].y),
            round(places[edge.other].x),
            round(places[edge.other].y),
            f"{titles[edge.one]} – {titles[edge.other]}",
            edge.events,
        )
        for edge in graph.edges
    )
    nodes = Markup().join(
        _node(node, hop, places[node], titles[node], urls.get(node), graph)
        for node, hop in graph.hops.items()
    )
    return Markup(
        '<svg class="picture graph" viewBox="0 0 {s} {s}" role="img" aria-label="{t}">{l}{n}</svg>'
    ).format(s=_SIZE, t=text, l=lines, n=nodes)


def _node(node: EntityNode, hop: int, at: Place, title: str, url: str | None, graph: EntityGraph) -> Markup:
    kind = f"{node.kind}{' center' if hop == 0 else ''}{' hub' if node in graph.hubs else ''}"
    is_left = math.cos(at.angle) < 0 and hop > 0
    gap = _NODE[hop] + 5
    anchor = "middle" if hop == 0 else "end" if is_left else "start"
    x = at.x if hop == 0 else at.x - gap if is_left else at.x + gap
    y = at.y + (_NODE[0] + 15 if hop == 0 else 4)
    drawn = Markup(
        '<circle cx="{}" cy="{}" r="{}"/><text x="{}" y="{}" text-anchor="{}">{}</text><title>{}</title>'
    ).format(round(at.x), round(at.y), _NODE[hop], round(x), round(y), anchor, title, f"{node.kind} {title}")
    if url is None or hop == 0:
        return Markup('<g class="{}">{}</g>').format(kind, drawn)
    return Markup('<a class="{}" href="{}" tabindex="-1">{}</a>').format(kind, url, drawn)


def place(graph: EntityGraph) -> dict[EntityNode, Place]:
    """Return the places: the first hop around the centre, the second behind the node it hangs on."""
    first = [node for node, hop in graph.hops.items() if hop == 1]
    behind: dict[EntityNode, list[EntityNode]] = {node: [] for node in first}
    for node, hop in graph.hops.items():
        if hop == 2:
            behind[graph.parents[node]].append(node)
    places = {node: Place(_CENTER, _CENTER, 0.0) for node, hop in graph.hops.items() if hop == 0}
    # Nodes of the first hop keep apart, however few hang on them.
    weights = [1 + math.sqrt(len(behind[node])) for node in first]
    angle, whole = -math.pi / 2, sum(weights) or 1
    for node, weight in zip(first, weights, strict=True):
        width = 2 * math.pi * weight / whole
        places[node] = _at(1, angle + width / 2)
        places.update(_fan(behind[node], angle, width))
        angle += width
    return places


def _fan(nodes: Sequence[EntityNode], start: float, width: float) -> dict[EntityNode, Place]:
    step = width / max(len(nodes), 1)
    return {node: _at(2, start + step * (index + 0.5)) for index, node in enumerate(nodes)}


def _at(hop: int, angle: float) -> Place:
    # Labels need room at the sides: the picture is a little wider than high.
    x = _CENTER + _RADII[hop] * math.cos(angle) * 0.82
    return Place(x, _CENTER + _RADII[hop] * math.sin(angle), angle)
