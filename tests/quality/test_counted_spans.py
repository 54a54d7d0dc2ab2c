"""The counts that make a span of time: all of it, nothing twice, and few."""

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vettance.quality.counted_spans import parts_of, whole_hours
from vettance.quality.rule_counts import DAY_S, HOUR_S, HOURS_ASKED_S, HOURS_KEPT_S

_HOURS = 2_000


@settings(max_examples=300, deadline=None)
@given(*[st.integers(0, _HOURS)] * 3)
def test_parts_make_the_span_and_nothing_else(one: int, other: int, now: int) -> None:
    begin, end = sorted((one, other))
    covered: Counter[int] = Counter()
    for width_s, first_s, end_s, is_added in parts_of(begin * HOUR_S, end * HOUR_S, now * HOUR_S):
        assert first_s % width_s == end_s % width_s == 0
        for hour in range(first_s // HOUR_S, end_s // HOUR_S):
            covered[hour] += 1 if is_added else -1
    assert {hour: times for hour, times in covered.items() if times} == dict.fromkeys(range(begin, end), 1)


@pytest.mark.parametrize("hour", range(24))
def test_a_month_up_to_now_is_read_from_few_counts(hour: int) -> None:
    end_s = 20_000 * DAY_S + hour * HOUR_S
    read = Counter[int]()
    for width_s, first_s, last_s, _ in parts_of(end_s - 30 * DAY_S, end_s, end_s):
        read[width_s] += max(min(last_s, end_s) - first_s + width_s - 1, 0) // width_s
    assert read[HOUR_S] <= 12
    assert 30 <= read[DAY_S] <= 31


@pytest.mark.parametrize("aged_s", range(HOURS_ASKED_S - 2 * DAY_S, HOURS_ASKED_S + DAY_S, 7 * HOUR_S))
def test_hours_that_are_asked_for_are_kept(aged_s: int) -> None:
    now_s = 20_000 * DAY_S + 12_345
    begin_s, end_s = whole_hours((now_s - aged_s) * 1000, now_s * 1000, now_s * 1000)
    asked = [part for part in parts_of(begin_s, end_s, now_s) if part.width_s == HOUR_S]
    assert all(part.first_s > now_s - HOURS_KEPT_S for part in asked)
