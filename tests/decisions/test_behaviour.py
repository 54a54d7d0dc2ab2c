"""What signals say of behaviour: statistics, mismatches, and no failure on whatever a browser sends."""

import math
import statistics
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vettance.decisions.behaviour import Behaviour, behaviour_of
from vettance.decisions.features import fraud_schema
from vettance.decisions.utc_offsets import shows_clock_of
from vettance.events.event import Event

FIELDS = {name: field for name, field in fraud_schema().fields.items() if name.startswith("signals.")}


def event(signals: Any, **more: Any) -> Event:
    return Event(name="user.login", extra={"sdkSignals": signals}, **more)


def read(name: str, signals: Any, **more: Any) -> Any:
    return FIELDS[f"signals.{name}"].read(event(signals, **more))


@settings(deadline=None)
@given(st.lists(st.floats(0.5, 5000), min_size=4, max_size=60))
def test_statistics_of_typing_are_the_textbooks(intervals: list[float]) -> None:
    found = behaviour_of(event({"keystrokeIntervals": intervals}))
    assert found.keystroke_min_ms == min(intervals)
    assert found.keystroke_median_ms == statistics.median_high(intervals)
    assert found.keystroke_log_sd == pytest.approx(
        statistics.pstdev(math.log(each) for each in intervals), abs=1e-9
    )
    assert found.keystroke_spread is not None
    assert found.keystroke_spread >= 0


def test_an_event_without_signals_says_nothing() -> None:
    assert behaviour_of(Event(name="x")) == Behaviour()
    assert all(field.read(Event(name="x")) is None for field in FIELDS.values())


JUNK = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=8,
)
NAMES = [
    "keystrokeIntervals",
    "keystrokeDwells",
    "keystrokeGaps",
    "jumpCount",
    "pressDwells",
    "fields",
    "mouse",
    "languages",
    "acceptLanguage",
    "timezoneOffset",
    "interactionCount",
    "fingerprintChanged",
]


@settings(deadline=None)
@given(st.dictionaries(st.sampled_from(NAMES), JUNK))
def test_whatever_a_browser_sends_no_reader_fails_or_gives_another_type(signals: dict[str, Any]) -> None:
    sent = event(signals, metadata={"ipCountry": "DE"}, ip="203.0.113.1")
    for field in FIELDS.values():
        value = field.read(sent)
        assert value is None or isinstance(value, (bool, int, float))
        assert not isinstance(value, float) or math.isfinite(value)


@pytest.mark.parametrize(
    ("country", "offset_minutes", "mismatch"),
    [
        ("DE", -60, False),
        ("DE", -120, False),
        ("DE", 300, True),
        ("US", 300, False),
        ("US", 480, False),
        ("US", -60, True),
        ("IN", -330, False),
        ("NP", -345, False),
        ("BR", 180, False),
        ("XX", 0, None),
        (None, 0, None),
    ],
)
def test_the_clock_is_held_against_the_country_of_the_address(
    country: str | None, offset_minutes: int, mismatch: bool | None
) -> None:
    metadata = {} if country is None else {"ipCountry": country}
    found = read("timezone_mismatch", {"timezoneOffset": offset_minutes}, metadata=metadata, ip="203.0.113.1")
    assert found is mismatch


def test_every_country_of_the_clock_table_is_two_letters_and_known() -> None:
    assert shows_clock_of("FR", 60) is True
    assert shows_clock_of("FR", 75) is False


@pytest.mark.parametrize(
    ("languages", "header", "mismatch"),
    [
        (["de-DE", "en"], "de-DE,de;q=0.9", False),
        (["de-AT"], "de", False),
        (["de"], "en-US,en;q=0.9", True),
        (["de"], "*", None),
        ([], "de", None),
        (["de"], None, None),
    ],
)
def test_the_language_of_pages_is_held_against_that_of_requests(
    languages: list[str], header: str | None, mismatch: bool | None
) -> None:
    assert read("language_mismatch", {"languages": languages, "acceptLanguage": header}) is mismatch


def test_fields_filled_without_keys_are_counted_together() -> None:
    fields = {"filled": 5, "typed": 1, "inserted": 1, "scripted": 2, "silent": 1}
    assert read("fields_injected", {"fields": fields}) == 4
    assert read("fields_injected", {"fields": {"filled": 1, "typed": 1}}) == 0
    assert read("fields_injected", {}) is None


def test_gaps_between_keys_may_be_negative_and_are_told_by_median_spread_and_overlap() -> None:
    found = behaviour_of(event({"keystrokeGaps": [30, -10, 50, 20, 90, -20, 60, 40]}))
    assert found.keystroke_gap_count == 8
    assert found.keystroke_gap_low_ms == 20
    assert found.keystroke_gap_median_ms == 40
    assert found.keystroke_gap_spread_ms == 60 - 20
    assert found.keystroke_overlap == 2 / 8


def test_stalls_that_only_add_time_leave_the_lower_half_of_the_intervals_alone() -> None:
    even = [50, 51, 50, 52, 50, 51, 51, 50, 50, 51]
    calm = read("keystroke_low_spread", {"keystrokeIntervals": even})
    stalled = read("keystroke_low_spread", {"keystrokeIntervals": [*even[:6], 400, 180, 260, 90]})
    assert calm < 0.05
    assert stalled < 0.1
    assert read("keystroke_low_spread", {"keystrokeIntervals": [90, 160, 70, 240, 130, 95, 310, 120]}) > 0.2


def test_a_quarter_of_the_keys_held_for_no_time_is_told() -> None:
    assert read("dwell_low_ms", {"keystrokeDwells": [1, 90, 2, 1, 80, 95, 1, 2]}) < 15
    assert read("dwell_low_ms", {"keystrokeDwells": [81, 90, 72, 99, 80, 95, 1, 102]}) > 50


def test_what_was_done_before_this_page_counts_for_the_session_only() -> None:
    arrived = event({"interactionCount": 0}, session_signals={"interactionCount": 61})
    assert behaviour_of(arrived).interactions == 0
    assert behaviour_of(arrived).session_interactions == 61
    assert behaviour_of(event({"interactionCount": 0})).session_interactions == 0


def test_pauses_drawn_evenly_or_by_a_bell_curve_are_told_from_the_rhythm_of_people() -> None:
    rng = Random(5)
    even = [rng.uniform(50, 200) for _ in range(60)]
    bell = [rng.gauss(180, 60) for _ in range(60)]
    person = [rng.lognormvariate(5, 0.45) for _ in range(60)]
    drawn = read("keystroke_jitter", {"keystrokeIntervals": even})
    assert drawn > 4
    assert read("keystroke_jitter", {"keystrokeIntervals": [max(20.0, each) for each in bell]}) > 0
    assert read("keystroke_jitter", {"keystrokeIntervals": person}) < -4
    assert read("keystroke_gap_jitter", {"keystrokeGaps": even}) == pytest.approx(drawn)
    assert read("keystroke_gap_jitter", {"keystrokeGaps": [-4, *even]}) is None
    assert read("keystroke_jitter", {"keystrokeIntervals": even[:11]}) is None


@pytest.mark.parametrize("intervals", [[0] * 40, [80] * 40, [0, 1e-300, 3e6] * 20, [5, *[0] * 20]])
def test_pauses_without_a_shape_have_no_jitter(intervals: list[float]) -> None:
    assert read("keystroke_jitter", {"keystrokeIntervals": intervals}) is None


def test_half_of_the_intervals_being_equal_says_nothing_on_a_coarse_clock() -> None:
    coarse = {"keystrokeIntervals": [200, 100, 200, 200, 300, 200, 200, 400, 200, 200]}
    assert read("keystroke_spread", coarse) is None
    assert read("keystroke_low_spread", coarse) is None
    assert read("keystroke_spread", {"keystrokeIntervals": [100.2, 100, 99.9, 100.1, 100, 180.3]}) < 0.01
    sixtieths = [round(steps * 1000 / 60, 1) for steps in (9, 10, 9, 9, 12, 9, 9, 9, 20)]
    assert read("keystroke_spread", {"keystrokeIntervals": sixtieths}) is None


def test_nine_tenths_of_the_keys_held_for_no_time_are_told() -> None:
    assert read("dwell_high_ms", {"keystrokeDwells": [*[0.6] * 19, 90]}) == 0.6
    assert read("dwell_high_ms", {"keystrokeDwells": [0, 100, 0, 0, 100, 0, 0, 100, 0, 0]}) == 100
