"""Charts made on the server: lines over time, shares as bars, sparklines. Each is an SVG with its text."""

from collections.abc import Sequence
from typing import Final, NamedTuple

from markupsafe import Markup

_WIDTH: Final = 520
_HEIGHT: Final = 96
#: Room above the highest value and below the lowest, for the width of the line.
_EDGE: Final = 2
_SPARK: Final = (80, 20)
_CURVE: Final = (520, 200)


class ChartPoint(NamedTuple):
    """A value at a place of the axis, and what the axis calls the place."""

    label: str
    value: float


def sparkline(values: Sequence[float], text: str) -> Markup:
    """Return a line of 80 × 20 that shows a course; `text` says the same in words."""
    width, height = _SPARK
    path = _path(values, max(values, default=0), width - 2, height - 4, 1, 2)
    return Markup(
        '<svg class="spark" viewBox="0 0 {} {}" role="img" aria-label="{}"><path d="{}"/></svg>'
    ).format(width, height, text, path)


def time_series(
    points: Sequence[ChartPoint], before: Sequence[float], text: str, most: str, colour: str = ""
) -> Markup:
    """Return a line over time with the span before as a pale line; `most` labels the highest value."""
    values = [point.value for point in points]
    top = max([*values, *before], default=0)
    now, then = (_path(one, top, _WIDTH, _HEIGHT - 2 * _EDGE, 0, _EDGE) for one in (values, before))
    line = f"now stroke-{colour}" if colour else "now"
    first, last = (points[0].label, points[-1].label) if points else ("", "")
    drawn = Markup('<path class="before" d="{}"/><path class="{}" d="{}"/>').format(then, line, now)
    return _chart((_WIDTH, _HEIGHT), drawn, text, (most, first, last))


def share_bar(parts: Sequence[tuple[str, float]], text: str) -> Markup:
    """Return shares of a whole as one bar; each part has a colour's name."""
    whole = sum(value for _, value in parts) or 1
    start = 0.0
    drawn = Markup()
    for colour, value in parts:
        width = 100 * value / whole
        drawn += Markup('<rect class="fill-{}" x="{}" y="0" width="{}" height="6"/>').format(
            colour, _short(start), _short(width)
        )
        start += width
    return Markup(
        '<svg class="bar" viewBox="0 0 100 6" preserveAspectRatio="none" role="img" aria-label="{}">{}</svg>'
    ).format(text, drawn)


def share_mark(share: float, colour: str = "accent") -> Markup:
    """Return how large a share is as a bar next to its number, which says it in words."""
    return Markup(
        '<svg class="bar" viewBox="0 0 100 6" preserveAspectRatio="none" aria-hidden="true">'
        '<rect class="fill-{}" width="{}" height="6"/></svg>'
    ).format(colour, _short(max(0.0, min(1.0, share)) * 100))


class Curve(NamedTuple):
    """Points of a curve, both coordinates from 0 to 1; its class in the style sheet is `now` or `before`."""

    style: str
    points: Sequence[tuple[float, float]]


def curve_chart(curves: Sequence[Curve], text: str, axes: tuple[str, str]) -> Markup:
    """Return curves whose coordinates go from 0 to 1; `axes` names what goes right and what goes up."""
    width, height = _CURVE[0], _CURVE[1] - 2 * _EDGE
    drawn = Markup()
    for curve in curves:
        places = [f"{_short(x * width)} {_short(_EDGE + (1 - y) * height)}" for x, y in curve.points]
        if places:
            drawn += Markup('<path class="{}" d="M{}"/>').format(curve.style, "L".join(places))
    across, up = axes
    return _chart(_CURVE, drawn, text, (f"{up}, 1 at the top", "0", f"{across} 1"))


def _chart(size: tuple[int, int], drawn: Markup, text: str, labels: tuple[str, str, str]) -> Markup:
    """Return a picture as wide as its place, with labels above, below at the left and at the right.

    They are text of the page: in the picture they would be made smaller with it.
    """
    width, height = size
    above, left, right = labels
    return Markup(
        '<div class="chart" role="img" aria-label="{text}"><span>{above}</span>'
        '<svg class="picture" viewBox="0 0 {w} {h}" height="{h}" preserveAspectRatio="none" '
        'aria-hidden="true">'
        '<line class="axis" x1="0" x2="{w}" y1="{base}" y2="{base}"/>{drawn}</svg>'
        '<span class="ends"><span>{left}</span><span>{right}</span></span></div>'
    ).format(
        text=text, above=above, w=width, h=height, base=height - _EDGE, drawn=drawn, left=left, right=right
    )


def _path(values: Sequence[float], top: float, width: float, height: float, left: float, above: float) -> str:
    """Return the path of a line through values, the first at the left and 0 at the bottom."""
    if not values:
        return ""
    step = width / max(len(values) - 1, 1)
    scale = height / top if top else 0
    places = (
        f"{_short(left + index * step)} {_short(above + height - value * scale)}"
        for index, value in enumerate(values)
    )
    return "M" + "L".join(places)


def _short(number: float) -> str:
    return f"{number:.1f}".removesuffix(".0")
