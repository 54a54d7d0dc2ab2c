"""Charts made on the server: lines over time, shares as bars, sparklines. Each is an SVG with its text."""

from collections.abc import Sequence
from typing import Final, NamedTuple

from markupsafe import Markup

_WIDTH: Final = 520
_HEIGHT: Final = 132
_LEFT: Final = 4
_TOP: Final = 16
_BOTTOM: Final = 20
_SPARK: Final = (80, 20)
_CURVE: Final = (520, 240)
_CURVE_X: Final = 8


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
    inner_width, inner_height = _WIDTH - 2 * _LEFT, _HEIGHT - _TOP - _BOTTOM
    now = _path(values, top, inner_width, inner_height, _LEFT, _TOP)
    then = _path(before, top, inner_width, inner_height, _LEFT, _TOP)
    base = _HEIGHT - _BOTTOM
    line = f"now stroke-{colour}" if colour else "now"
    first, last = (points[0].label, points[-1].label) if points else ("", "")
    return Markup(
        '<svg class="picture" viewBox="0 0 {w} {h}" role="img" aria-label="{text}">'
        '<line class="axis" x1="{x}" x2="{r}" y1="{base}" y2="{base}"/>'
        '<path class="before" d="{then}"/><path class="{line}" d="{now}"/>'
        '<text x="{x}" y="11">{most}</text>'
        '<text x="{x}" y="{foot}">{first}</text>'
        '<text x="{r}" y="{foot}" text-anchor="end">{last}</text></svg>'
    ).format(
        w=_WIDTH,
        h=_HEIGHT,
        text=text,
        x=_LEFT,
        r=_WIDTH - _LEFT,
        base=base,
        then=then,
        line=line,
        now=now,
        most=most,
        foot=_HEIGHT - 5,
        first=first,
        last=last,
    )


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
    right, foot = _CURVE[0] - _LEFT, _CURVE[1] - 5
    base = _CURVE[1] - _BOTTOM
    width, height = right - _CURVE_X, base - _TOP
    drawn = Markup()
    for curve in curves:
        places = [
            f"{_short(_CURVE_X + x * width)} {_short(_TOP + (1 - y) * height)}" for x, y in curve.points
        ]
        if places:
            drawn += Markup('<path class="{}" d="M{}"/>').format(curve.style, "L".join(places))
    across, up = axes
    return Markup(
        '<svg class="picture" viewBox="0 0 {w} {h}" role="img" aria-label="{text}">'
        '<line class="axis" x1="{x}" x2="{r}" y1="{base}" y2="{base}"/>'
        '<line class="axis" x1="{x}" x2="{x}" y1="{t}" y2="{base}"/>{drawn}'
        '<text x="{x}" y="11">{up}, 1 at the top</text>'
        '<text x="{x}" y="{foot}">0</text>'
        '<text x="{r}" y="{foot}" text-anchor="end">{across} 1</text></svg>'
    ).format(
        w=_CURVE[0],
        h=_CURVE[1],
        text=text,
        x=_CURVE_X,
        r=right,
        t=_TOP,
        base=base,
        drawn=drawn,
        up=up,
        across=across,
        foot=foot,
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
