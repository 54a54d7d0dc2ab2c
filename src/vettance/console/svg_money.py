"""The money of a case: who it came from on the left, who it went to on the right, as wide as the sums."""

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from markupsafe import Markup

from vettance.aml.transfer import Transfer
from vettance.console.shown_values import ValueFormatter

_WIDTH: Final = 900
_ROW: Final = 34
_SHOWN: Final = 12
_LINE_MAX: Final = 16.0
_MIDDLE: Final = _WIDTH / 2
_EDGE: Final = 250
_NAME_CHARS: Final = 26


class MoneyFlow(NamedTuple):
    """What came from somebody, or went to them."""

    who: str
    is_in: bool
    amount: float
    times: int
    currency: str


def flows_of(transfers: Iterable[Transfer]) -> list[MoneyFlow]:
    """Add up transfers by whom they came from or went to, each currency by itself; largest first."""
    sums: dict[tuple[str, bool, str], tuple[float, int]] = {}
    for one in transfers:
        who = party_of(one)
        if one.amount is None or who is None:
            continue
        key = (who, one.incoming, one.currency or "")
        total, count = sums.get(key, (0.0, 0))
        sums[key] = (total + float(one.amount), count + 1)
    found = [MoneyFlow(who, is_in, *made, currency) for (who, is_in, currency), made in sums.items()]
    return sorted(found, key=lambda one: -one.amount)


def party_of(transfer: Transfer) -> str | None:
    """Return by what people know the other side of a transfer."""
    return transfer.counterparty_name or transfer.counterparty_id or transfer.counterparty_account


def draw_money(customer: str, flows: Sequence[MoneyFlow], show: ValueFormatter) -> Markup | None:
    """Return the picture, or None where no event says whom money came from or went to."""
    sides = [
        sorted((one for one in flows if one.is_in is is_in), key=lambda one: -one.amount)[:_SHOWN]
        for is_in in (True, False)
    ]
    if not any(sides):
        return None
    height = max(map(len, sides)) * _ROW + _ROW
    largest = max(one.amount for side in sides for one in side) or 1.0
    parts = [
        _flow(one, row, len(side), height, largest, show) for side in sides for row, one in enumerate(side)
    ]
    return Markup(
        '<svg class="picture money wide-only" viewBox="0 0 {w} {h}" role="img" aria-label="Money of {who}">'
        "{parts}"
        '<circle class="now" cx="{x}" cy="{y}" r="9"/>'
        '<text x="{x}" y="{t}" text-anchor="middle">{name}</text></svg>'
    ).format(
        w=_WIDTH,
        h=height,
        who=customer,
        parts=Markup().join(parts),
        x=round(_MIDDLE),
        y=round(height / 2),
        t=round(height / 2) + 26,
        name=_short(customer),
    )


def _flow(one: MoneyFlow, row: int, rows: int, height: float, largest: float, show: ValueFormatter) -> Markup:
    y = height / 2 + (row - (rows - 1) / 2) * _ROW
    x = _EDGE if one.is_in else _WIDTH - _EDGE
    said = f"{show.money(round(one.amount, 2), one.currency)} in {one.times}"
    return Markup(
        '<path class="{kind}" d="M{x} {y}C{b} {y} {b} {m} {c} {m}" stroke-width="{width}" fill="none">'
        "<title>{title}</title></path>"
        '<text x="{tx}" y="{ty}" text-anchor="{anchor}">{name}</text>'
        '<text class="quiet" x="{tx}" y="{uy}" text-anchor="{anchor}">{said}</text>'
    ).format(
        kind="flow in" if one.is_in else "flow out",
        x=x,
        y=round(y),
        b=round((x + _MIDDLE) / 2),
        m=round(height / 2),
        c=round(_MIDDLE),
        width=round(max(1.0, _LINE_MAX * one.amount / largest), 1),
        title=f"{one.who}: {said}",
        tx=x - 8 if one.is_in else x + 8,
        ty=round(y) - 1,
        uy=round(y) + 13,
        anchor="end" if one.is_in else "start",
        name=_short(one.who),
        said=said,
    )


def _short(text: str) -> str:
    return text if len(text) <= _NAME_CHARS else f"{text[: _NAME_CHARS - 1]}…"
