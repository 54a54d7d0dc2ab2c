"""The aggregates of the rule language: questions about earlier events that share a key with this one."""

import re
from typing import Final, NamedTuple

from vettance.clock import DAY_MS, HOUR_MS, MINUTE_MS
from vettance.rules.schema import Type

SECOND_MS: Final = 1_000
WINDOW_MS_MAX: Final = 90 * DAY_MS  # How long the state engine remembers.
KEY_PARTS_MAX: Final = 5  # A key is stored for each event; more parts would only make keys that never repeat.
AGGREGATE_COST: Final = 250  # About 5 µs of the state engine's time, in units of 20 ns.

_WINDOW = re.compile(r"([1-9][0-9]{0,6})([smhd])", re.ASCII)
_UNITS_MS: Final = {"d": DAY_MS, "h": HOUR_MS, "m": MINUTE_MS, "s": SECOND_MS}


class AggregateWord(NamedTuple):
    """One aggregate: what stands first in its brackets, what it keeps of each event, and what it gives."""

    name: str
    first: str  # "condition" | "number" | "scalar"
    keeps: str  # the kind of series: "moments" | "numbers" | "texts"
    result: Type
    doc: str
    window_ms: int | None = None  # the window when `within` is left out; None: it must be written


AGGREGATES: Final = {
    word.name: word
    for word in (
        AggregateWord(
            "count",
            "condition",
            "moments",
            Type.NUMBER,
            """How many events, or how many that fulfil the condition. 0 when there were none.

            Example: `count(event_name == "user.login_failed", by=ip, within="10m") > 5`
            """,
        ),
        AggregateWord(
            "sum",
            "number",
            "numbers",
            Type.NUMBER,
            """The sum of a number over the events. 0 when there were none.

            Example: `sum(metadata.amount, by=customer.external_id, within="24h") > 5000`
            """,
        ),
        AggregateWord(
            "avg",
            "number",
            "numbers",
            Type.NUMBER,
            """The mean of a number over the events. Unknown when there were none.

            Example: `metadata.amount > 3 * avg(metadata.amount, by=customer.external_id, within="30d")`
            """,
        ),
        AggregateWord(
            "min",
            "number",
            "numbers",
            Type.NUMBER,
            """The least value of a number among the events. Unknown when there were none.

            Example: `min(metadata.amount, by=device.fingerprint, within="1h") < 1`
            """,
        ),
        AggregateWord(
            "max",
            "number",
            "numbers",
            Type.NUMBER,
            """The greatest value of a number among the events. Unknown when there were none.

            Example: `metadata.amount > 2 * max(metadata.amount, by=customer.external_id, within="90d")`
            """,
        ),
        AggregateWord(
            "distinct",
            "scalar",
            "texts",
            Type.NUMBER,
            """How many different values of an expression the events had. 0 when there were none.

            Example: `distinct(customer.external_id, by=device.fingerprint, within="24h") >= 3`
            """,
        ),
        AggregateWord(
            "seen",
            "scalar",
            "texts",
            Type.BOOL,
            """Whether an event before this one had the value that this event has.

            Example: `not seen(device.fingerprint, by=customer.external_id, within="90d")`
            """,
        ),
        AggregateWord(
            "first_seen",
            "condition",
            "moments",
            Type.NUMBER,
            """Seconds since the oldest event in the window. Unknown when there was none. The window is 90
            days when left out.

            Example: `first_seen(by=customer.external_id) < 3600`
            """,
            WINDOW_MS_MAX,
        ),
        AggregateWord(
            "last_seen",
            "condition",
            "moments",
            Type.NUMBER,
            """Seconds since the newest event in the window. Unknown when there was none. The window is 90
            days when left out.

            Example: `last_seen(event_name == "password.changed", by=customer.external_id) < 86400`
            """,
            WINDOW_MS_MAX,
        ),
        AggregateWord(
            "last",
            "number",
            "numbers",
            Type.NUMBER,
            """The number in the newest event that had one. Unknown when none had. The window is 90 days when
            left out.

            Example: `abs(location.latitude - last(location.latitude, by=customer.external_id)) > 5`
            """,
            WINDOW_MS_MAX,
        ),
    )
}


def read_window(text: str) -> int | None:
    """Read a window such as "10m" or "30d" as milliseconds; None when it is not one of 1 s to 90 days."""
    match = _WINDOW.fullmatch(text)
    if match is None:
        return None
    window_ms = int(match[1]) * _UNITS_MS[match[2]]
    return window_ms if window_ms <= WINDOW_MS_MAX else None


def window_text(window_ms: int) -> str:
    """Write a window with the largest unit that divides it, so that "60m" and "1h" are one."""
    for unit, unit_ms in _UNITS_MS.items():
        if window_ms % unit_ms == 0:
            return f"{window_ms // unit_ms}{unit}"
    raise AssertionError("windows are whole seconds")
