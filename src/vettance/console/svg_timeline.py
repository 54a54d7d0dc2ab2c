"""A time line made on the server: marks in lanes over a span, each a link where it has a page."""

from collections.abc import Sequence
from typing import Final, NamedTuple

from markupsafe import Markup

_WIDTH: Final = 1000
_LEFT: Final = 80
_LANE: Final = 34
_FOOT: Final = 22


class TimelineMark(NamedTuple):
    """Something at a moment: its lane, its colour, and what hovering says."""

    at_ms: int
    lane: str
    colour: str
    title: str
    url: str


def timeline(
    marks: Sequence[TimelineMark],
    lanes: Sequence[str],
    span: tuple[int, int],
    labels: tuple[str, str],
    text: str,
) -> Markup:
    """Return the picture; lanes without a mark are left out. It has links, so it is a group and no image."""
    used = [lane for lane in lanes if any(mark.lane == lane for mark in marks)]
    height = _LANE * max(len(used), 1) + _FOOT
    start_ms, end_ms = span
    width_ms = max(end_ms - start_ms, 1)
    drawn = Markup()
    for index, lane in enumerate(used):
        middle = _LANE * index + _LANE // 2
        drawn += Markup(
            '<text x="0" y="{}">{}</text><line class="axis" x1="{}" x2="{}" y1="{}" y2="{}"/>'
        ).format(middle + 4, lane, _LEFT, _WIDTH - 8, middle, middle)
    for mark in marks:
        x = _LEFT + (mark.at_ms - start_ms) / width_ms * (_WIDTH - _LEFT - 16) + 4
        y = _LANE * used.index(mark.lane) + _LANE // 2
        dot = Markup('<circle class="fill-{}" cx="{}" cy="{}" r="6"/><title>{}</title>').format(
            mark.colour, round(x, 1), y, mark.title
        )
        whole = Markup('<a href="{}" tabindex="-1">{}</a>').format(mark.url, dot)
        drawn += whole if mark.url else Markup("<g>{}</g>").format(dot)
    foot = height - 6
    drawn += Markup('<text x="{}" y="{}">{}</text>').format(_LEFT, foot, labels[0])
    drawn += Markup('<text x="{}" y="{}" text-anchor="end">{}</text>').format(_WIDTH - 8, foot, labels[1])
    return Markup('<svg class="picture" viewBox="0 0 {} {}" role="group" aria-label="{}">{}</svg>').format(
        _WIDTH, height, text, drawn
    )
