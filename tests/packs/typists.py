"""What a browser measures of people who type, of several kinds, and of programs that wait by chance.

Intervals between keys are log-normal or log-logistic around a pace of one's own (Dhakal and others, CHI 2018;
Heliyon 7, e08413, 2021), with pauses; keys are held for 60 to 130 ms, or for no time where a keyboard on the
screen or a remote desktop lets them go.
"""

import math
from collections.abc import Callable, Sequence
from itertools import pairwise
from random import Random
from typing import Any

Draw = Callable[[], float]
MOUSE = {
    "strokes": 3,
    "turn": 0.14,
    "deviation": 0.1,
    "speedVariation": 0.84,
    "speedSpread": 1.4,
    "stepSpread": 1.5,
}
COUNTS = (10, 14, 18, 24, 30, 34, 40)
#: Programs fill in an address and a password.
LOGIN_COUNTS = (20, 24, 30, 34, 40)


def typed(
    rng: Random,
    interval: Draw,
    hold: Draw,
    pauses: float = 0.0,
    clock_ms: float = 0.1,
    counts: Sequence[int] = COUNTS,
) -> dict[str, Any]:
    """Return the signals of a form that somebody typed, with a person's mouse and clicks."""
    at, keys = 0.0, []
    for _ in range(rng.choice(counts) + 1):
        keys.append((at, max(hold(), 0.3)))
        at += interval() + (rng.uniform(300, 1100) if rng.random() < pauses else 0)

    def read(value: float) -> float:
        return round(math.floor(value / clock_ms + rng.random()) * clock_ms, 3)

    return {
        "interactionCount": 40,
        "mouseMoves": 200,
        "keystrokeIntervals": [read(later[0] - key[0]) for key, later in pairwise(keys)],
        "keystrokeDwells": [read(hold_ms) for _, hold_ms in keys],
        "keystrokeGaps": [read(later[0] - key[0] - key[1]) for key, later in pairwise(keys)],
        "pressDwells": [round(max(40.0, rng.gauss(95, 25)), 1) for _ in range(3)],
        "mouse": MOUSE,
        "fields": {"filled": 2, "typed": 2},
        "touch": False,
        "fillSeconds": at / 1000,
    }


def _lognormal(rng: Random, pace_ms: float, spread: float) -> Draw:
    return lambda: max(25.0, rng.lognormvariate(math.log(pace_ms), spread))


def _held(rng: Random, low_ms: float, high_ms: float) -> Draw:
    own = rng.uniform(low_ms, high_ms)
    return lambda: max(35.0, rng.gauss(own, own * 0.22))


def _let_go_at_once(rng: Random) -> Draw:
    return lambda: rng.uniform(0.5, 5)


def any_typist(rng: Random) -> dict[str, Any]:
    pace = _lognormal(rng, rng.lognormvariate(math.log(190), 0.3), rng.uniform(0.28, 0.6))
    return typed(rng, pace, _held(rng, 70, 130), 0.04)


def fast_typist(rng: Random) -> dict[str, Any]:
    return typed(
        rng, _lognormal(rng, rng.uniform(90, 140), rng.uniform(0.28, 0.45)), _held(rng, 70, 100), 0.02
    )


def fluent_typist(rng: Random) -> dict[str, Any]:
    """Without a single pause."""
    pace = _lognormal(rng, rng.lognormvariate(math.log(180), 0.3), rng.uniform(0.28, 0.5))
    return typed(rng, pace, _held(rng, 70, 130))


def slow_typist(rng: Random) -> dict[str, Any]:
    pace = _lognormal(rng, rng.uniform(300, 700), rng.uniform(0.3, 0.6))
    return typed(rng, pace, _held(rng, 90, 180), 0.06)


def log_logistic_typist(rng: Random) -> dict[str, Any]:
    pace, shape = rng.uniform(110, 260), rng.uniform(0.17, 0.3)

    def interval() -> float:
        share = rng.uniform(0.01, 0.99)
        return pace * (share / (1 - share)) ** shape

    return typed(rng, interval, _held(rng, 80, 120), 0.03)


def rolling_typist(rng: Random) -> dict[str, Any]:
    """Some pairs of keys go down all but together."""
    usual = _lognormal(rng, rng.uniform(100, 150), rng.uniform(0.3, 0.45))
    return typed(
        rng, lambda: rng.uniform(8, 35) if rng.random() < 0.08 else usual(), _held(rng, 70, 110), 0.03
    )


def input_method(rng: Random) -> dict[str, Any]:
    """Bursts of keys for a word, then a choice from a list."""
    burst = _lognormal(rng, rng.uniform(110, 200), 0.35)
    return typed(rng, lambda: rng.uniform(350, 900) if rng.random() < 0.15 else burst(), _held(rng, 60, 110))


def tremor(rng: Random) -> dict[str, Any]:
    """Keys that are hit twice, and held for very unequal times."""
    usual, hold = _lognormal(rng, rng.uniform(250, 600), 0.5), rng.uniform(60, 250)
    return typed(
        rng,
        lambda: rng.uniform(20, 70) if rng.random() < 0.12 else usual(),
        lambda: hold * rng.lognormvariate(0, 0.5),
        0.06,
    )


def switch_access(rng: Random) -> dict[str, Any]:
    """A keyboard on the screen that is scanned row by row."""
    return typed(rng, _lognormal(rng, rng.uniform(700, 1400), 0.35), _let_go_at_once(rng), 0.05)


def screen_keyboard(rng: Random) -> dict[str, Any]:
    """A keyboard on the screen under a quick mouse."""
    return typed(rng, _lognormal(rng, rng.uniform(380, 600), 0.35), _let_go_at_once(rng), 0.03)


def remote_desktop(rng: Random) -> dict[str, Any]:
    """Fingers far away; what carries them lets each key go at once."""
    pace = _lognormal(rng, rng.uniform(130, 230), rng.uniform(0.38, 0.55))
    return typed(rng, pace, _let_go_at_once(rng), 0.02)


def coarse_clock(rng: Random) -> dict[str, Any]:
    """A browser that tells time in tenths or sixtieths of a second only."""
    pace = _lognormal(rng, rng.lognormvariate(math.log(190), 0.3), rng.uniform(0.28, 0.6))
    return typed(rng, pace, _held(rng, 60, 120), 0.03, rng.choice((100.0, 16.67)))


def password_manager(rng: Random) -> dict[str, Any]:
    """It types both fields, in no time."""
    return typed(rng, lambda: rng.uniform(3, 12), lambda: rng.uniform(0.4, 2))


def phone(rng: Random) -> dict[str, Any]:
    """Fingers on glass, whose keys have no length."""
    pace = _lognormal(rng, rng.uniform(180, 350), rng.uniform(0.3, 0.5))
    return {**typed(rng, pace, _let_go_at_once(rng)), "touch": True, "mouse": {}, "mouseMoves": 0}


def dictation(rng: Random) -> dict[str, Any]:
    """Spoken text that is typed word by word, with the page told of it."""
    pace = _lognormal(rng, rng.uniform(20, 60), 0.3)
    return {**typed(rng, pace, _let_go_at_once(rng)), "assistive": True}


PEOPLE = (
    any_typist,
    fast_typist,
    fluent_typist,
    slow_typist,
    log_logistic_typist,
    rolling_typist,
    input_method,
    tremor,
    switch_access,
    screen_keyboard,
    remote_desktop,
    coarse_clock,
    password_manager,
    phone,
    dictation,
)

#: Pauses of programs by name: how they are drawn.
PAUSES: dict[str, Callable[[Random], float]] = {
    "even 50 to 200": lambda rng: rng.uniform(50, 200),
    "even 80 to 160": lambda rng: rng.uniform(80, 160),
    "even 100 to 300": lambda rng: rng.uniform(100, 300),
    "bell 120 +- 30": lambda rng: max(5.0, rng.gauss(120, 30)),
}
#: Holds of programs by name.
HOLDS: dict[str, Callable[[Random], float]] = {
    "none": lambda rng: rng.uniform(0.4, 0.9),
    "bell 90 +- 20": lambda rng: max(1.0, rng.gauss(90, 20)),
    "even 40 to 120": lambda rng: rng.uniform(40, 120),
}


def program(rng: Random, pause: str, hold: str) -> dict[str, Any]:
    """Return the signals of a program that presses, waits by chance, and moves the mouse as a person does."""
    held: list[float] = []

    def holding() -> float:
        held.append(HOLDS[hold](rng))
        return held[-1]

    # What is waited is from the release to the next press; the machine adds a little.
    return typed(
        rng, lambda: held[-1] + PAUSES[pause](rng) + rng.expovariate(0.5), holding, counts=LOGIN_COUNTS
    )
