"""The layout: a plan arranged for answering, series by series of one key at a time."""

from collections.abc import Sequence
from typing import Final, NamedTuple

from vettance.velocity.aggregates import AGGREGATES, AggregateKind, Questions, Summary
from vettance.velocity.answer_codegen import Scan, scan_of
from vettance.velocity.port import Aggregate, Plan, Value

# A packed entry is one 64-bit word: 44 bits of Unix milliseconds (to the year 2248) above one bit for each
# series.
SERIES_BITS: Final = 20
MOMENT_MAX: Final = 2**43 - 1
# How long an observation is kept past its longest window, so that late events still find what they ask about:
# as long as the window again, between these two. It must exceed the five minutes that an event may be ahead
# of the clock.
LATE_MS_MIN: Final = 10 * 60 * 1000
LATE_MS_MAX: Final = 60 * 60 * 1000
#: How far ahead of the clock an event may count: beyond it, the clock that dated the event is wrong. Callers
#: may be five minutes ahead of a host, and hosts are seldom five minutes apart.
AHEAD_MS: Final = LATE_MS_MIN
#: What has expired is let go of when it is older yet by this part of the time it is kept: then a look finds
#: several entries, where one for each event would be found at once.
SLACK: Final = 16
_ORDER: Final = {"moments": 0, "texts": 1, "numbers": 2}


class Window(NamedTuple):
    """What is asked of one series over one span."""

    span_ms: int
    questions: Questions
    scan: Scan  # answers all of them from the entries in the span


class SeriesSlot(NamedTuple):
    """One series of a group: its bits in an observation and in a packed entry, its value, its questions."""

    bit: int  # in the mask of the observation
    local_bit: int  # in the word of a packed entry
    slot: int  # into the words of an observation; -1: only moments are kept
    textual: bool
    windows: tuple[Window, ...]  # in the order of their spans
    kept_ms: int  # longest window and allowance for late events

    @property
    def keeps_latest(self) -> bool:
        """Whether the latest moment of each value is needed."""
        kinds = [kind for window in self.windows for _, kind in window.questions]
        return any(kind.summary in (Summary.DISTINCT, Summary.OWN) for kind in kinds)


class Group:
    """At most 20 series that share a key, remembered together. Series that nobody asks about are left out."""

    __slots__ = ("aggregates", "header_bytes", "kept_ms", "key", "lanes")

    def __init__(self, key: int, lanes: tuple[SeriesSlot, ...]) -> None:
        self.key = key
        self.lanes = lanes
        self.aggregates = tuple(
            (index, window.span_ms)
            for lane in lanes
            for window in lane.windows
            for index, _ in window.questions
        )
        self.kept_ms = max(lane.kept_ms for lane in lanes)
        self.header_bytes = 1 + len(lanes)

    def meets(self, mask: int) -> int:
        """Return the lanes that an observation with this mask belongs to."""
        return sum(lane.local_bit for lane in self.lanes if mask & lane.bit)


class Slot(NamedTuple):
    """One word of an observation: a value as a fingerprint or as a number, computed once for all lanes."""

    value: int  # index into the values of an observation
    textual: bool
    bits: int  # of the series that keep it, as in the mask of an observation
    asked: tuple[int, ...]  # the aggregates that compare with it, whatever the mask says


class PlanLayout(NamedTuple):
    """A plan as groups of series, and what its aggregates answer before anything was observed."""

    plan: Plan
    groups: tuple[Group, ...]
    slots: tuple[Slot, ...]
    defaults: tuple[Value, ...]


def arrange(plan: Plan) -> PlanLayout:
    """Arrange a plan. Raises `ValueError` when an aggregate asks what its series cannot answer."""
    asked: dict[int, list[tuple[int, Aggregate]]] = {}
    for index, aggregate in enumerate(plan.aggregates):
        _check(plan, aggregate)
        asked.setdefault(aggregate.series, []).append((index, aggregate))
    slots: dict[tuple[int, bool], int] = {}
    groups = []
    for key in range(len(plan.keys)):
        members = [index for index in asked if plan.series[index].key == key]
        members.sort(key=lambda index: (_ORDER[plan.series[index].kind], index))
        for start in range(0, len(members), SERIES_BITS):
            chunk = members[start : start + SERIES_BITS]
            lanes = [_lane(plan, index, 1 << place, asked[index], slots) for place, index in enumerate(chunk)]
            groups.append(Group(key, tuple(lanes)))
    defaults = tuple(AGGREGATES[aggregate.kind].default for aggregate in plan.aggregates)
    lanes = [lane for group in groups for lane in group.lanes]
    made = tuple(
        _slot(value, textual, [lane for lane in lanes if lane.slot == place])
        for (value, textual), place in slots.items()
    )
    return PlanLayout(plan, tuple(groups), made, defaults)


def _slot(value: int, textual: bool, lanes: list[SeriesSlot]) -> Slot:
    questions = [pair for lane in lanes for window in lane.windows for pair in window.questions]
    asked = tuple(index for index, kind in questions if kind.asks_own)
    return Slot(value, textual, sum(lane.bit for lane in lanes), asked)


def _check(plan: Plan, aggregate: Aggregate) -> None:
    kind = plan.series[aggregate.series].kind
    asked = AGGREGATES.get(aggregate.kind)
    if asked is None or kind not in _ORDER:
        raise ValueError(f"there is no aggregate {aggregate.kind} or no series of {kind}")
    if (asked.takes == "number" and kind != "numbers") or (asked.needs_value and kind == "moments"):
        raise ValueError(f"a series of {kind} cannot answer {aggregate.kind}")
    if aggregate.window_ms < 1:
        raise ValueError("a window lasts at least a millisecond")


def _lane(
    plan: Plan,
    index: int,
    local_bit: int,
    asked: Sequence[tuple[int, Aggregate]],
    slots: dict[tuple[int, bool], int],
) -> SeriesSlot:
    series = plan.series[index]
    slot, textual = -1, series.kind == "texts"
    if series.kind != "moments":
        if series.value is None:
            raise ValueError(f"a series of {series.kind} needs a value")
        slot = slots.setdefault((series.value, textual), len(slots))
    spans: dict[int, list[tuple[int, AggregateKind]]] = {}
    for aggregate_index, aggregate in asked:
        spans.setdefault(aggregate.window_ms, []).append((aggregate_index, AGGREGATES[aggregate.kind]))
    windows = tuple(_window(span, tuple(spans[span])) for span in sorted(spans))
    longest_ms = max(spans)
    kept_ms = longest_ms + min(max(longest_ms, LATE_MS_MIN), LATE_MS_MAX)
    return SeriesSlot(1 << index, local_bit, slot, textual, windows, kept_ms)


def _window(span_ms: int, questions: Questions) -> Window:
    return Window(span_ms, questions, scan_of(questions))
