"""The graph of an entity: a radial picture of two hops, hubs as one node each, and a table of its edges."""

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from markupsafe import Markup

from vettance.console.shown_values import ValueFormatter
from vettance.history.entity_graph import EntityGraph, EntityNode

_SIZE: Final = 620
_CENTER: Final = _SIZE / 2
_RADII: Final = {0: 0, 1: 130, 2: 252}
_NODE: Final = {0: 12, 1: 8, 2: 6}
#: How large a letter is in the picture's own units, by the class of its text; telephones halve it.
_LETTERS: Final = {"wide": 11, "narrow": 22}
#: How much of its height a letter is wide, at most on average.
_ASPECT: Final = 0.6
#: Longer labels are shortened in the middle where letters are large.
_NARROW_CHARS: Final = 11


class NodeLabel(NamedTuple):
    """What is written next to a node, and the box that it fills: left, top, right, bottom."""

    text: str
    anchor: str
    x: float
    y: float
    box: tuple[float, float, float, float]


class Place(NamedTuple):
    """Where a node is."""

    x: float
    y: float
    angle: float


def draw(
    graph: EntityGraph,
    titles: Mapping[EntityNode, str],
    urls: Mapping[EntityNode, str],
    text: str,
    show: ValueFormatter,
) -> Markup:
    """Return the picture; a table next to it lists the same edges.

    It is a group rather than an image: for screen readers nothing is in an image, not even its links.
    """
    places = place(graph)
    lines = Markup().join(
        Markup('<line x1="{}" y1="{}" x2="{}" y2="{}"><title>{}: {}</title></line>').format(
            round(places[edge.one].x),
            round(places[edge.one].y),
            round(places[edge.other].x),
            round(places[edge.other].y),
            f"{titles[edge.one]} – {titles[edge.other]}",
            show.count(edge.events, "event"),
        )
        for edge in graph.edges
    )
    written = {size: labels(graph, places, titles, size) for size in _LETTERS}
    nodes = Markup().join(
        _node(node, hop, places[node], titles[node], urls.get(node), graph, _texts(node, written))
        for node, hop in graph.hops.items()
    )
    return Markup(
        '<svg class="picture graph" viewBox="0 0 {s} {s}" role="group" aria-label="{t}">{l}{n}</svg>'
    ).format(s=_SIZE, t=text, l=lines, n=nodes)


def _texts(node: EntityNode, written: Mapping[str, Mapping[EntityNode, NodeLabel]]) -> Markup:
    return Markup().join(
        Markup('<text class="{}" x="{}" y="{}" text-anchor="{}">{}</text>').format(
            size, round(found[node].x), round(found[node].y), found[node].anchor, found[node].text
        )
        for size, found in written.items()
        if node in found
    )


def _node(
    node: EntityNode, hop: int, at: Place, title: str, url: str | None, graph: EntityGraph, texts: Markup
) -> Markup:
    kind = f"{node.kind}{' center' if hop == 0 else ''}{' hub' if node in graph.hubs else ''}"
    drawn = Markup('<circle cx="{}" cy="{}" r="{}"/>{}<title>{}</title>').format(
        round(at.x), round(at.y), _NODE[hop], texts, f"{node.kind} {title}"
    )
    if url is None or hop == 0:
        return Markup('<g class="{}">{}</g>').format(kind, drawn)
    return Markup('<a class="{}" href="{}" tabindex="-1">{}</a>').format(kind, url, drawn)


def labels(
    graph: EntityGraph, places: Mapping[EntityNode, Place], titles: Mapping[EntityNode, str], size: str
) -> dict[EntityNode, NodeLabel]:
    """Return the labels that can be read: inside the picture, and on no other label and no node.

    The centre comes first, then its neighbours; a node whose label has no room has its name on hover, and in
    the table.
    """
    nodes = {
        node: (at.x - _NODE[hop], at.y - _NODE[hop], at.x + _NODE[hop], at.y + _NODE[hop])
        for node, hop in graph.hops.items()
        for at in (places[node],)
    }
    found: dict[EntityNode, NodeLabel] = {}
    for node, hop in sorted(graph.hops.items(), key=lambda one: one[1]):
        taken = [box for other, box in nodes.items() if other != node]
        taken += [label.box for label in found.values()]
        for label in _tries(places[node], hop, titles[node], size):
            if _is_inside(label.box) and not any(_overlap(label.box, box) for box in taken):
                found[node] = label
                break
    return found


def _tries(at: Place, hop: int, title: str, size: str) -> Iterator[NodeLabel]:
    """Yield where a label may be: outwards, below, above, inwards."""
    letter = _LETTERS[size]
    if size == "narrow" and len(title) > _NARROW_CHARS:
        title = f"{title[:6]}…{title[-4:]}"
    width, gap = len(title) * letter * _ASPECT, _NODE[hop] + 5
    sides = {
        "end": (at.x - gap, at.y + letter * 0.36, at.x - gap - width),
        "start": (at.x + gap, at.y + letter * 0.36, at.x + gap),
        "below": (at.x, at.y + _NODE[hop] + letter + 2, at.x - width / 2),
        "above": (at.x, at.y - _NODE[hop] - 5, at.x - width / 2),
    }
    outwards, inwards = ("end", "start") if math.cos(at.angle) < 0 else ("start", "end")
    order = ("below", "above", "start", "end") if hop == 0 else (outwards, "below", "above", inwards)
    for side in order:
        x, y, left = sides[side]
        anchor = side if side in ("end", "start") else "middle"
        yield NodeLabel(title, anchor, x, y, (left, y - letter, left + width, y + letter * 0.25))


def _is_inside(box: tuple[float, float, float, float]) -> bool:
    return min(box) >= 0 and max(box) <= _SIZE


def _overlap(one: tuple[float, float, float, float], other: tuple[float, float, float, float]) -> bool:
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]


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
