"""Turns the expressions of the table of aggregates into Python, for both engines.

The source is made of the table's expressions and of names and numbers made here; no text of a rule set or a
tenant gets into it.
"""

from collections.abc import Callable, Sequence
from functools import cache
from math import fsum
from typing import Any, Final

from vettance.velocity.aggregates import (
    VALUE_INGREDIENTS,
    AggregateKind,
    Questions,
    Summary,
    entry_needs,
    seconds_since,
    standing,
)
from vettance.velocity.port import Value

#: `scan(moments, values, start, count, at_ms, own, answers)` answers from the entries at [start, count).
Scan = Callable[[Sequence[int], Any, int, int, int, Any, list[Value]], None]
#: `summarize(at_ms, start_ms, kept)` answers from what its summary keeps, see `_OF_KEPT`.
Summarize = Callable[[int, int, Any], Value]

BUILTINS: Final = {
    "len": len,
    "set": set,
    "min": min,
    "max": max,
    "type": type,
    "str": str,
    "float": float,
    "standing": standing,
    "seconds_since": seconds_since,
}

_OF_KEPT: Final = {
    # Of `WindowTotals`.
    Summary.TOTALS: {
        "count": "kept.entries",
        "total": "kept.total",
        "least": "kept.least",
        "greatest": "kept.greatest",
        "first_ms": "kept.first_ms",
    },
    # Of a pair: the moment and the value of the newest entry.
    Summary.NEWEST: {"newest_ms": "kept[0]", "newest_value": "kept[1]"},
    # Of a number: how many values, or a moment.
    Summary.DISTINCT: {"distinct_count": "kept"},
    Summary.OWN: {"own_last_ms": "kept", "start_ms": "start_ms"},
}


def define(name: str, source: str, names: dict[str, Any]) -> Any:
    """Compile the source of one function."""
    scope = {**names, "__builtins__": BUILTINS}
    # Written by this project, of its own constants.
    exec(compile(source, f"<velocity {name}>", "exec"), scope)  # noqa: S102
    return scope[name]


def entry_answers(questions: Questions, first_ms: str, last_ms: str, own: str, moments: str) -> list[str]:
    """Write the answers of one window that is not empty from the entries at [start, count).

    `first_ms`, `last_ms`, `own` and `moments` are the source of these ingredients.
    """
    needs, lines = entry_needs(questions), []
    if needs & VALUE_INGREDIENTS:
        lines.append("held = values[start:count]")
    if "total" in needs:
        lines.append("total = fsum(held)")
    if "distinct" in needs:
        lines.append("held_once = set(held)")
    ingredients = {
        "at_ms": "at_ms",
        "count": "(count - start)",
        "values": "held",
        "total": "total",
        "distinct": "held_once",
        "members": "held_once" if "distinct" in needs else "held",
        "own": own,
        "first_ms": first_ms,
        "last_ms": last_ms,
        "moments": moments,
    }
    return lines + [
        f"answers[{index}] = {kind.from_entries.format_map(ingredients)}" for index, kind in questions
    ]


def scan_of(questions: Questions) -> Scan:
    """Return the function that answers one window from its entries."""
    lines = entry_answers(questions, "moments[start]", "moments[count - 1]", "own", "moments[start:count]")
    source = "def scan(moments, values, start, count, at_ms, own, answers):\n    " + "\n    ".join(lines)
    made: Scan = define("scan", source + "\n", {"fsum": fsum})
    return made


@cache
def summarize_of(kind: AggregateKind) -> Summarize:
    """Return the function that answers one aggregate from its summary."""
    ingredients = {"at_ms": "at_ms", **_OF_KEPT[kind.summary]}
    body = kind.from_summary.format_map(ingredients)
    made: Summarize = define("summarize", f"def summarize(at_ms, start_ms, kept):\n    return {body}\n", {})
    return made
