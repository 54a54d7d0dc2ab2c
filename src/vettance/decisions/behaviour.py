"""How the person at a page behaved: rhythm of keys, way of the mouse, and how fields came to be filled.

The figures are for one-sided limits: what people do varies more, turns more and takes longer than a limit
that nearly all of them pass. They are not for telling apart programs that copy people well.
"""

import math
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from vettance.clock import HOUR_MS
from vettance.decisions.browser import KEYSTROKES, NO_SIGNALS, signals_of
from vettance.decisions.field_readers import bounded
from vettance.decisions.typing_shape import (
    is_coarse,
    jitter,
    log_deviation,
    low_spread,
    median,
    middle_spread,
    quantile,
    range_of_middle,
    spread,
)
from vettance.decisions.utc_offsets import shows_clock_of
from vettance.decisions.value_domains import MEASURED
from vettance.events.event import Event
from vettance.events.event_spellings import once
from vettance.rules.domain import ANYTHING, SHARE
from vettance.rules.schema import Field, Type, reads

_READ_MAX: Final = 512  # More numbers than a form gives; the rest would only cost time.
_INTERVAL_MS_MAX: Final = HOUR_MS
_DWELLS: Final = ("keystrokeDwells", "keystroke_dwells")
_GAPS: Final = ("keystrokeGaps", "keystroke_gaps")
_PRESSES: Final = ("pressDwells", "press_dwells")


class Behaviour(NamedTuple):
    """What the signals say of behaviour; None where they do not say. The manual lines are in `_DOCS`."""

    keystroke_median_ms: float | None = None
    keystroke_min_ms: float | None = None
    keystroke_log_sd: float | None = None
    keystroke_spread: float | None = None
    keystroke_low_spread: float | None = None
    keystroke_jitter: float | None = None
    dwell_count: float | None = None
    dwell_low_ms: float | None = None
    dwell_median_ms: float | None = None
    dwell_high_ms: float | None = None
    dwell_cv: float | None = None
    keystroke_gap_count: float | None = None
    keystroke_gap_low_ms: float | None = None
    keystroke_gap_median_ms: float | None = None
    keystroke_gap_spread_ms: float | None = None
    keystroke_gap_jitter: float | None = None
    keystroke_overlap: float | None = None
    press_count: float | None = None
    press_median_ms: float | None = None
    press_jumps: float | None = None
    interactions: float | None = None
    session_interactions: float | None = None
    untrusted: float | None = None
    untrusted_clicks: float | None = None
    fields_filled: float | None = None
    fields_typed: float | None = None
    fields_pasted: float | None = None
    fields_autofilled: float | None = None
    fields_inserted: float | None = None
    fields_injected: float | None = None
    fill_seconds: float | None = None
    mouse_strokes: float | None = None
    mouse_turn: float | None = None
    mouse_deviation: float | None = None
    mouse_speed_cv: float | None = None
    mouse_speed_spread: float | None = None
    mouse_step_spread: float | None = None
    mouse_timer_cv: float | None = None


_DOCS: Final = {
    "keystroke_median_ms": "Median interval between keystrokes in milliseconds.",
    "keystroke_min_ms": "Shortest interval between keystrokes in milliseconds.",
    "keystroke_log_sd": "Standard deviation of the natural logarithms of the intervals between keystrokes.",
    "keystroke_spread": "Range of the middle half of the keystroke intervals, as a share of their median; "
    "unknown where the browser's clock is coarse.",
    "keystroke_low_spread": "How far the lowest tenth of keystroke intervals is below the median, a share; "
    "unknown where the browser's clock is coarse.",
    "keystroke_jitter": "How much likelier the intervals are where a program draws pauses evenly or by a "
    "bell curve than where a person types: natural logarithm; below 0 for most people.",
    "dwell_count": "How many times a key was held down and let go.",
    "dwell_low_ms": "Time below which a quarter of the keys were held down, in milliseconds.",
    "dwell_median_ms": "Median time that a key was held down, in milliseconds.",
    "dwell_high_ms": "Time below which nine tenths of the keys were held down, in milliseconds.",
    "dwell_cv": "Spread of the times that keys were held down: standard deviation divided by mean.",
    "keystroke_gap_count": "How many gaps between one key's release and the next key's press were measured.",
    "keystroke_gap_low_ms": "Gap below which a quarter of these gaps lie, in milliseconds.",
    "keystroke_gap_median_ms": "Median gap from one key's release to the next key's press in milliseconds.",
    "keystroke_gap_spread_ms": "Range of the middle half of these gaps in milliseconds; "
    "unknown where the browser's clock is coarse.",
    "keystroke_gap_jitter": "The same as `keystroke_jitter` of these gaps; unknown where keys overlap.",
    "keystroke_overlap": "Share of these gaps that are negative: the next key went down first.",
    "press_count": "How many presses of mouse, pen or finger were measured.",
    "press_median_ms": "Median time that mouse, pen or finger was held down, in milliseconds.",
    "press_jumps": "How many presses of the mouse came far from the one before, with no way between them.",
    "interactions": "How many actions of a person the browser itself vouched for: keys, presses, scrolling.",
    "session_interactions": "How many such actions there were on this page or before it in the session.",
    "untrusted": "How many input events a script made up.",
    "untrusted_clicks": "How many clicks a script made up.",
    "fields_filled": "How many fields were filled in.",
    "fields_typed": "How many fields were typed into, at least in part.",
    "fields_pasted": "How many fields were pasted into.",
    "fields_autofilled": "How many fields the browser itself filled in.",
    "fields_inserted": "How many fields got text at once, without keys, paste or autofill.",
    "fields_injected": "How many fields were filled in without keys, paste or autofill: by a program.",
    "fill_seconds": "Seconds from the first to the last change of a field.",
    "mouse_strokes": "How many movements of the mouse were long enough to be measured.",
    "mouse_turn": "Median over movements of the mean change of direction, in radians.",
    "mouse_deviation": "Median over movements of the greatest distance from the straight line, as its share.",
    "mouse_speed_cv": "Median over movements of the spread of speed: standard deviation divided by mean.",
    "mouse_speed_spread": "Median over movements of the range of the middle half of speeds, as a share.",
    "mouse_step_spread": "Median over movements of the range of the middle half of step lengths, as a share.",
    "mouse_timer_cv": "Median over movements of the spread of the time between mouse events.",
}

#: Which members of the signals each figure is made of.
_READ_FROM: Final[Mapping[str, tuple[str, ...]]] = {
    **dict.fromkeys(
        (
            *("keystroke_median_ms", "keystroke_min_ms", "keystroke_log_sd", "keystroke_spread"),
            *("keystroke_low_spread", "keystroke_jitter"),
        ),
        KEYSTROKES,
    ),
    **dict.fromkeys(("dwell_count", "dwell_low_ms", "dwell_median_ms", "dwell_high_ms", "dwell_cv"), _DWELLS),
    **dict.fromkeys(
        (
            *("keystroke_gap_count", "keystroke_gap_low_ms", "keystroke_gap_median_ms"),
            *("keystroke_gap_spread_ms", "keystroke_gap_jitter", "keystroke_overlap"),
        ),
        _GAPS,
    ),
    "press_count": ("pressDwells",),
    "press_median_ms": _PRESSES,
    "press_jumps": ("jumpCount",),
    "interactions": ("interactionCount",),
    "session_interactions": ("interactionCount",),
    "untrusted": ("untrustedCount",),
    "untrusted_clicks": ("untrustedClickCount",),
    "fields_filled": ("fields.filled",),
    "fields_typed": ("fields.typed",),
    "fields_pasted": ("fields.pasted",),
    "fields_autofilled": ("fields.autofilled",),
    "fields_inserted": ("fields.inserted",),
    "fields_injected": ("fields.inserted", "fields.scripted", "fields.silent"),
    "fill_seconds": ("fillSeconds",),
    "mouse_strokes": ("mouse.strokes",),
    "mouse_turn": ("mouse.turn",),
    "mouse_deviation": ("mouse.deviation",),
    "mouse_speed_cv": ("mouse.speedVariation",),
    "mouse_speed_spread": ("mouse.speedSpread",),
    "mouse_step_spread": ("mouse.stepSpread",),
    "mouse_timer_cv": ("mouse.timerVariation",),
}
#: Gaps are negative where the next key went down first; all else is not below 0.
_DOMAINS: Final = {
    "keystroke_gap_low_ms": ANYTHING,
    "keystroke_gap_median_ms": ANYTHING,
    "keystroke_jitter": ANYTHING,
    "keystroke_gap_jitter": ANYTHING,
    "keystroke_overlap": SHARE,
    "keystroke_low_spread": SHARE,
}

_NOTHING: Final = Behaviour()
_PRIMARY: Final = re.compile(r"[-,;\s]")


def _number(holder: Mapping[str, Any], name: str) -> float | None:
    value = holder.get(name)
    if isinstance(value, int | float) and type(value) is not bool and math.isfinite(value):
        return float(value)
    return None


def _numbers(signals: Mapping[str, Any], names: Sequence[str], lowest: float = 0) -> list[float]:
    for name in names:
        if type(value := signals.get(name)) is list:
            newest = value[-_READ_MAX:]
            return [
                float(item)
                for item in newest
                if type(item) in (int, float) and lowest <= item < _INTERVAL_MS_MAX
            ]
    return []


@once
def behaviour_of(event: Event) -> Behaviour:
    """Return what the signals of an event say of behaviour."""
    signals = signals_of(event)
    if signals is NO_SIGNALS:
        return _NOTHING
    intervals, dwells = sorted(_numbers(signals, KEYSTROKES)), sorted(_numbers(signals, _DWELLS))
    presses, gaps = sorted(_numbers(signals, _PRESSES)), sorted(_numbers(signals, _GAPS, -_INTERVAL_MS_MAX))
    on_coarse_clock = is_coarse(intervals)
    fields, mouse = _object(signals, "fields"), _object(signals, "mouse")
    injected = [_number(fields, way) for way in ("inserted", "scripted", "silent")]
    return Behaviour(
        keystroke_median_ms=median(intervals),
        keystroke_min_ms=min(intervals, default=None),
        keystroke_log_sd=log_deviation(intervals),
        # On a coarse clock, half of anybody's intervals are equal.
        keystroke_spread=None if on_coarse_clock else middle_spread(intervals),
        keystroke_low_spread=None if on_coarse_clock else low_spread(intervals),
        keystroke_jitter=jitter(intervals),
        dwell_count=float(len(dwells)) if dwells else None,
        dwell_low_ms=quantile(dwells, 0.25),
        dwell_median_ms=median(dwells),
        dwell_high_ms=quantile(dwells, 0.9),
        dwell_cv=spread(dwells),
        keystroke_gap_count=float(len(gaps)) if gaps else None,
        keystroke_gap_low_ms=quantile(gaps, 0.25),
        keystroke_gap_median_ms=median(gaps),
        keystroke_gap_spread_ms=None if on_coarse_clock else range_of_middle(gaps),
        keystroke_gap_jitter=jitter(gaps),
        keystroke_overlap=sum(each < 0 for each in gaps) / len(gaps) if gaps else None,
        press_count=float(len(presses)) if type(signals.get("pressDwells")) is list else None,
        press_median_ms=median(presses),
        press_jumps=_number(signals, "jumpCount"),
        interactions=_number(signals, "interactionCount"),
        session_interactions=_greater(
            _number(signals, "interactionCount"), _number(event.session_signals, "interactionCount")
        ),
        untrusted=_number(signals, "untrustedCount"),
        untrusted_clicks=_number(signals, "untrustedClickCount"),
        fields_filled=_number(fields, "filled"),
        fields_typed=_number(fields, "typed"),
        fields_pasted=_number(fields, "pasted"),
        fields_autofilled=_number(fields, "autofilled"),
        fields_inserted=_number(fields, "inserted"),
        fields_injected=sum(bounded(each) for each in injected if each is not None) if fields else None,
        fill_seconds=_number(signals, "fillSeconds"),
        mouse_strokes=_number(mouse, "strokes"),
        mouse_turn=_number(mouse, "turn"),
        mouse_deviation=_number(mouse, "deviation"),
        mouse_speed_cv=_number(mouse, "speedVariation"),
        mouse_speed_spread=_number(mouse, "speedSpread"),
        mouse_step_spread=_number(mouse, "stepSpread"),
        mouse_timer_cv=_number(mouse, "timerVariation"),
    )


def _greater(one: float | None, other: float | None) -> float | None:
    return one if other is None else other if one is None else max(one, other)


def _object(signals: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    found = signals.get(name)
    return found if type(found) is dict else NO_SIGNALS


def _part(index: int) -> Callable[[Event], float | None]:
    def read(event: Event) -> float | None:
        return behaviour_of(event)[index]

    return reads(read, *(f"signals.{name}" for name in _READ_FROM[Behaviour._fields[index]]))


def _flag(name: str) -> Callable[[Event], bool | None]:
    def read(event: Event) -> bool | None:
        value = signals_of(event).get(name)
        return value if type(value) is bool else None

    return reads(read, f"signals.{name}")


def _language_mismatch(event: Event) -> bool | None:
    """Compare the language that a page reads from the browser with that of the browser's requests."""
    signals = signals_of(event)
    if signals is NO_SIGNALS:
        return None
    header, languages = signals.get("acceptLanguage"), signals.get("languages")
    if type(header) is not str or type(languages) is not list or not languages:
        return None
    if type(languages[0]) is not str or not header[:1].isalpha():
        return None
    return _primary(header) != _primary(languages[0])


def _primary(tag: str) -> str:
    """Return the language of a tag or of a header of tags (RFC 5646; RFC 9110, 12.5.4): `de` of `de-AT`."""
    return _PRIMARY.split(tag.strip(), maxsplit=1)[0].lower()


def behaviour_fields(country_of: Callable[[Event], str | None]) -> tuple[Field, ...]:
    """Return the names of behaviour that rules may use. `country_of` knows the country of an event's IP."""

    def timezone_mismatch(event: Event) -> bool | None:
        signals = signals_of(event)
        if signals is NO_SIGNALS:
            return None
        offset = _number(signals, "timezoneOffset")
        country = country_of(event) if offset is not None else None
        if offset is None or country is None:
            return None
        shown = shows_clock_of(country, -offset)
        return None if shown is None else not shown

    flags: tuple[tuple[str, Callable[[Event], bool | None], str], ...] = (
        (
            "timezone_mismatch",
            reads(timezone_mismatch, "signals.timezoneOffset", *getattr(country_of, "members", ())),
            "Whether the browser's clock is one that the country of the IP never shows.",
        ),
        (
            "language_mismatch",
            reads(_language_mismatch, "signals.acceptLanguage", "signals.languages"),
            "Whether pages are told another language than the browser's own requests ask for.",
        ),
        (
            "fingerprint_changed",
            _flag("fingerprintChanged"),
            "Whether the fingerprint of the device changed between the batches of this session.",
        ),
        (
            "automation_globals",
            _flag("automationGlobals"),
            "Whether a tool for driving browsers left its traces in the page.",
        ),
    )
    return (
        *(
            Field(
                f"signals.{name}",
                Type.NUMBER,
                _part(index),
                _DOCS[name],
                domain=_DOMAINS.get(name, MEASURED),
            )
            for index, name in enumerate(Behaviour._fields)
        ),
        *(Field(f"signals.{name}", Type.BOOL, read, doc) for name, read, doc in flags),
    )
