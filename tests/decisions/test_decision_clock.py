"""Decisions are dated in their order, and rightly again as soon as a wrong clock is right."""

import pytest

from vettance.decisions.decision_clock import DecisionClock
from vettance.velocity.plan_layout import AHEAD_MS

NOW_MS = 1_800_000_000_000


class Clock:
    """A clock that shows what it is set to."""

    def __init__(self) -> None:
        self.ms = NOW_MS

    def __call__(self) -> int:
        return self.ms


@pytest.mark.parametrize("back_ms", [1, 5_000, AHEAD_MS])
def test_a_clock_set_back_a_little_dates_no_decision_before_the_last(back_ms: int) -> None:
    clock = Clock()
    decided = DecisionClock(clock)
    assert decided.date() == NOW_MS
    clock.ms -= back_ms
    assert decided.date() == NOW_MS
    clock.ms = NOW_MS + 1
    assert decided.date() == NOW_MS + 1


@pytest.mark.parametrize("ahead_ms", [AHEAD_MS + 1, 3_600_000, 40 * 86_400_000])
def test_a_clock_that_was_far_ahead_dates_decisions_rightly_once_it_is_right(ahead_ms: int) -> None:
    clock = Clock()
    decided = DecisionClock(clock)
    clock.ms += ahead_ms
    assert decided.date() == NOW_MS + ahead_ms
    clock.ms = NOW_MS
    assert decided.date() == NOW_MS
    # So does a process that starts on a log with such decisions at its end.
    started = DecisionClock(clock)
    started.floor(NOW_MS + ahead_ms)
    assert started.date() == NOW_MS
