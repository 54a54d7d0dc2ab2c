"""A time line made on the server: marks in lanes over a span, each a link where it has a page."""

from collections.abc import Sequence
from typing import Final, NamedTuple

from markupsafe import Markup

_LANE: Final = 44
_FOOT: Final = 22
#: Marks keep so much of the width free at each end, in per cent.
_EDGE: Final = 2


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
    """Return the picture; lanes without a mark are left out. It has links, so it is a group and no image.

    It is as wide as there is room, by shares of the width: its letters and marks are as large on a telephone.
    """
    used = [lane for lane in lanes if any(mark.lane == lane for mark in marks)]
    height = _LANE * max(len(used), 1) + _FOOT
    start_ms, end_ms = span
    width_ms = max(end_ms - start_ms, 1)
    drawn = Markup()
    for index, lane in enumerate(used):
        drawn += Markup(
            '<text x="0" y="{}">{}</text><line class="axis" x1="0" x2="100%" y1="{}" y2="{}"/>'
        ).format(_LANE * index + 14, lane, _middle(index), _middle(index))
    for mark in marks:
        share = (mark.at_ms - start_ms) / width_ms
        dot = Markup('<circle class="fill-{}" cx="{}%" cy="{}" r="6"/><title>{}</title>').format(
            mark.colour,
            round(_EDGE + share * (100 - 2 * _EDGE), 2),
            _middle(used.index(mark.lane)),
            mark.title,
        )
        whole = Markup('<a href="{}" tabindex="-1">{}</a>').format(mark.url, dot)
        drawn += whole if mark.url else Markup("<g>{}</g>").format(dot)
    foot = height - 6
    drawn += Markup('<text x="0" y="{}">{}</text>').format(foot, labels[0])
    drawn += Markup('<text x="100%" y="{}" text-anchor="end">{}</text>').format(foot, labels[1])
    return Markup(
        '<svg class="time-line" width="100%" height="{}" role="group" aria-label="{}">{}</svg>'
    ).format(height, text, drawn)


def _middle(lane: int) -> int:
    """Return the height of a lane's line, below its name."""
    return _LANE * lane + 30
