"""The table of aggregates: each row is everything the project knows of one aggregate.

The rule language, the plan, both engines, the code they generate and the texts of alerts read this table. A
new aggregate is one row here and its naive version (`tests/velocity/oracle.py`).

An answer is written as a Python expression over named ingredients in braces. `from_entries` computes it from
the observations in a window that is not empty, `from_summary` from what is kept of a window with more
observations than are kept one by one. The ingredients that a summary uses decide what an engine keeps: no
sums are kept where nothing asks for a total.

Labels are observations as well, of a series of their own: each adds 1 to the labels of its key, and one that
is taken back adds -1 at the moment of the label that it takes back.

The ingredients of entries: `count`, `first_ms`, `last_ms` and `moments`; `values` in that order, their
sum `total`, the set `distinct` of them, `members` (the values or the set, whichever is at hand); `own`, the
value of the asking event; `at_ms`, its moment, which a summary may use as well.
"""

import enum
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from string import Formatter
from typing import Final, NamedTuple

from vettance.clock import DAY_MS
from vettance.velocity.port import Value

WINDOW_MS_MAX: Final = 90 * DAY_MS  # How long a velocity memory remembers.


class Summary(enum.Enum):
    """Where the answer of a busy window comes from, and the ingredients that it offers."""

    TOTALS = frozenset({"count", "total", "least", "greatest", "first_ms"})
    NEWEST = frozenset({"newest_ms", "newest_value"})
    DISTINCT = frozenset({"distinct_count"})
    OWN = frozenset({"own_last_ms", "start_ms"})  # when the event's own value was last observed


#: The ingredients of entries that are made from the values.
VALUE_INGREDIENTS: Final = frozenset({"values", "total", "distinct", "members"})


def standing(moments: Sequence[int], values: Sequence[float]) -> list[int]:
    """Return the moments whose labels were not all taken back, in their order."""
    left: dict[int, float] = {}
    for moment, value in zip(moments, values, strict=True):
        left[moment] = left.get(moment, 0.0) + value
    return [moment for moment, value in left.items() if value > 0]


def seconds_since(at_ms: int, moment_ms: Sequence[int]) -> float | None:
    """Return how long ago the only moment of a list was; None where there is none."""
    return (at_ms - moment_ms[0]) / 1000 if moment_ms else None


class Range(enum.Enum):
    """Which values an aggregate can have, for the check that a comparison can hold."""

    ANY = "any"
    COUNT = "whole numbers from 0"
    DISTINCT = "at most as many as the expression has values"
    SECONDS = "seconds up to the window"
    SUM = "sums of the expression's values"
    VALUES = "the expression's values"


@dataclass(frozen=True, eq=False)
class AggregateKind:
    """One aggregate; its `doc` is its entry in the manual of the rule language."""

    name: str
    takes: str  # the first argument: "condition" | "number" | "scalar"; "labels" take none
    keeps: str  # the kind of series: "moments" | "numbers" | "texts"
    result: str  # the type in the rule language: "number" | "true/false"
    default: Value  # the answer where nothing was recorded in the window
    from_entries: str
    from_summary: str
    range: Range
    phrase: str | None  # in the summary of an AML alert; None: an alert does not mention it
    doc: str
    window_ms: int | None = None  # the window when `within` is left out; None: it must be written
    fraud: bool | None = None  # whether labels of fraud or of legitimate events count; None: events do

    @cached_property
    def entry_needs(self) -> frozenset[str]:
        """The ingredients of `from_entries`."""
        return _ingredients(self.from_entries)

    @cached_property
    def summary_needs(self) -> frozenset[str]:
        """The ingredients of `from_summary`, all of one source."""
        return _ingredients(self.from_summary) - {"at_ms"}

    @cached_property
    def summary(self) -> Summary:
        """What answers in a busy window."""
        return next(source for source in Summary if self.summary_needs <= source.value)

    @property
    def needs_value(self) -> bool:
        """Whether it asks about the values of a series rather than its moments."""
        return self.takes != "condition"

    @property
    def asks_own(self) -> bool:
        """Whether it compares with the value of the asking event, and is unknown without one."""
        return "own" in self.entry_needs

    @property
    def reads_extremes(self) -> bool:
        """Whether it is exact only where the least and the greatest value are."""
        return bool(self.summary_needs & {"least", "greatest"})


#: What is asked of a window: pairs of (index of the aggregate in the plan, its kind).
Questions = tuple[tuple[int, AggregateKind], ...]


class WindowTotals(NamedTuple):
    """The totals of a window or a part of one; `first_ms` is None where it is empty."""

    entries: int
    total: float
    least: float
    greatest: float
    first_ms: int | None


def questions_of(questions: Questions, source: Summary) -> Questions:
    """Return the questions that one kind of summary answers."""
    return tuple(pair for pair in questions if pair[1].summary is source)


def summary_needs(questions: Sequence[tuple[int, AggregateKind]]) -> frozenset[str]:
    """Return what must be kept of a busy window: the ingredients of all its summaries."""
    return frozenset[str]().union(*(kind.summary_needs for _, kind in questions))


def entry_needs(questions: Sequence[tuple[int, AggregateKind]]) -> frozenset[str]:
    """Return the ingredients of the answers from entries."""
    return frozenset[str]().union(*(kind.entry_needs for _, kind in questions))


def _ingredients(expression: str) -> frozenset[str]:
    return frozenset(name for _, name, _, _ in Formatter().parse(expression) if name)


_ROWS: Final = (
    AggregateKind(
        name="count",
        takes="condition",
        keeps="moments",
        result="number",
        default=0,
        from_entries="{count}",
        from_summary="{count}",
        range=Range.COUNT,
        phrase="{value:,.0f} {order} {events}{which} within {window}",
        doc="""How many events, or how many that fulfil the condition. 0 when there were none.

        Example: `count(event_name == "user.login_failed", by=ip, within="10m") > 5`
        """,
    ),
    AggregateKind(
        name="sum",
        takes="number",
        keeps="numbers",
        result="number",
        default=0.0,
        from_entries="{total}",
        from_summary="{total}",
        range=Range.SUM,
        phrase="{value:,.2f} in all in {order} events{which} within {window}",
        doc="""The sum of a number over the events. 0 when there were none.

        Example: `sum(metadata.amount, by=customer.external_id, within="24h") > 5000`
        """,
    ),
    AggregateKind(
        name="avg",
        takes="number",
        keeps="numbers",
        result="number",
        default=None,
        from_entries="{total} / {count}",
        from_summary="{total} / {count}",
        range=Range.VALUES,
        phrase="{value:,.2f} on average in {order} events{which} within {window}",
        doc="""The mean of a number over the events. Unknown when there were none.

        Example: `metadata.amount > 3 * avg(metadata.amount, by=customer.external_id, within="30d")`
        """,
    ),
    AggregateKind(
        name="min",
        takes="number",
        keeps="numbers",
        result="number",
        default=None,
        from_entries="min({values})",
        from_summary="{least}",
        range=Range.VALUES,
        phrase="{value:,.2f} at least in {order} events{which} within {window}",
        doc="""The least value of a number among the events. Unknown when there were none.

        Example: `min(metadata.amount, by=device.fingerprint, within="1h") < 1`
        """,
    ),
    AggregateKind(
        name="max",
        takes="number",
        keeps="numbers",
        result="number",
        default=None,
        from_entries="max({values})",
        from_summary="{greatest}",
        range=Range.VALUES,
        phrase="{value:,.2f} at most in {order} events{which} within {window}",
        doc="""The greatest value of a number among the events. Unknown when there were none.

        Example: `metadata.amount > 2 * max(metadata.amount, by=customer.external_id, within="90d")`
        """,
    ),
    AggregateKind(
        name="distinct",
        takes="scalar",
        keeps="texts",
        result="number",
        default=0,
        from_entries="len({distinct})",
        from_summary="{distinct_count}",
        range=Range.DISTINCT,
        phrase="{value:,.0f} {what} in {order} events{which} within {window}",
        doc="""How many different values of an expression the events had. 0 when there were none.

        Example: `distinct(customer.external_id, by=device.fingerprint, within="24h") >= 3`
        """,
    ),
    AggregateKind(
        name="seen",
        takes="scalar",
        keeps="texts",
        result="true/false",
        default=False,
        from_entries="{own} in {members}",
        from_summary="{own_last_ms} > {start_ms}",
        range=Range.ANY,
        phrase=None,
        doc="""Whether an event before this one had the value that this event has.

        Example: `not seen(device.fingerprint, by=customer.external_id, within="90d")`
        """,
    ),
    AggregateKind(
        name="first_seen",
        takes="condition",
        keeps="moments",
        result="number",
        default=None,
        from_entries="({at_ms} - {first_ms}) / 1000",
        from_summary="({at_ms} - {first_ms}) / 1000",
        range=Range.SECONDS,
        phrase="{span} since the first{which}",
        doc="""Seconds since the oldest event in the window. Unknown when there was none. The window is 90
        days when left out.

        Example: `first_seen(by=customer.external_id) < 3600`
        """,
        window_ms=WINDOW_MS_MAX,
    ),
    AggregateKind(
        name="last_seen",
        takes="condition",
        keeps="moments",
        result="number",
        default=None,
        from_entries="({at_ms} - {last_ms}) / 1000",
        from_summary="({at_ms} - {newest_ms}) / 1000",
        range=Range.SECONDS,
        phrase="{span} since the last{which}",
        doc="""Seconds since the newest event in the window. Unknown when there was none. The window is 90
        days when left out.

        Example: `last_seen(event_name == "password.changed", by=customer.external_id) < 86400`
        """,
        window_ms=WINDOW_MS_MAX,
    ),
    AggregateKind(
        name="last",
        takes="number",
        keeps="numbers",
        result="number",
        default=None,
        from_entries="{values}[-1]",
        from_summary="{newest_value}",
        range=Range.VALUES,
        phrase=None,
        doc="""The number in the newest event that had one. Unknown when none had. The window is 90 days when
        left out.

        Example: `abs(location.latitude - last(location.latitude, by=customer.external_id)) > 5`
        """,
        window_ms=WINDOW_MS_MAX,
    ),
    AggregateKind(
        name="frauds",
        takes="labels",
        keeps="numbers",
        result="number",
        default=0.0,
        from_entries="max({total}, 0.0)",
        from_summary="max({total}, 0.0)",
        range=Range.COUNT,
        phrase=None,
        doc="""How many events of this key were labelled as fraud, by the newest label of each. A label counts
        from when it was given. 0 when there were none.

        Example: `frauds(by=device.key, within="30d") > 0`
        """,
        fraud=True,
    ),
    AggregateKind(
        name="legits",
        takes="labels",
        keeps="numbers",
        result="number",
        default=0.0,
        from_entries="max({total}, 0.0)",
        from_summary="max({total}, 0.0)",
        range=Range.COUNT,
        phrase=None,
        doc="""How many events of this key were labelled as legitimate, as `frauds` counts those of fraud.

        Example: `frauds(by=ip, within="30d") > legits(by=ip, within="30d")`
        """,
        fraud=False,
    ),
    AggregateKind(
        name="first_fraud",
        takes="labels",
        keeps="numbers",
        result="number",
        default=None,
        from_entries="seconds_since({at_ms}, standing({moments}, {values})[:1])",
        from_summary="({at_ms} - {first_ms}) / 1000",
        range=Range.SECONDS,
        phrase=None,
        doc="""Seconds since the oldest label of fraud in the window was given. Unknown when there was none.
        The window is 90 days when left out.

        Example: `first_fraud(by=customer.key) > 86400`
        """,
        window_ms=WINDOW_MS_MAX,
        fraud=True,
    ),
    AggregateKind(
        name="last_fraud",
        takes="labels",
        keeps="numbers",
        result="number",
        default=None,
        from_entries="seconds_since({at_ms}, standing({moments}, {values})[-1:])",
        from_summary="({at_ms} - {newest_ms}) / 1000",
        range=Range.SECONDS,
        phrase=None,
        doc="""Seconds since the newest label of fraud was given. Unknown when there was none. The window is
        90 days when left out.

        Example: `last_fraud(by=customer.key) < 604800`
        """,
        window_ms=WINDOW_MS_MAX,
        fraud=True,
    ),
)

#: Every aggregate by its name, in the order of the manual.
AGGREGATES: Final = {row.name: row for row in _ROWS}
