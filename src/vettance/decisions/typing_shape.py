"""The shape of typing: how even, how bounded and how spread the times between keys are."""

import math
from collections.abc import Sequence
from typing import Final

#: Fewer pauses than this have no shape.
_JITTER_COUNT_MIN: Final = 12
_ROLLOVER_SHARE: Final = 0.35
_SD_MIN: Final = 1e-6
_HALF_LOG_2_PI_E: Final = 0.5 * math.log(2 * math.pi * math.e)
#: Clocks of browsers that resist fingerprinting: Firefox tells 100 ms, and 1/60 s in newer versions.
_COARSE_STEPS_MS: Final = (100.0, 1000 / 60)
_STEPS_MIN: Final = 3
_STEP_SLACK_MS: Final = 0.5


def median(ordered: Sequence[float]) -> float | None:
    """Return the value in the middle, the upper one of two."""
    return ordered[len(ordered) // 2] if ordered else None


def spread(values: Sequence[float]) -> float | None:
    """Return standard deviation divided by mean; None for fewer than two values or a mean of 0."""
    mean = math.fsum(values) / len(values) if values else 0.0
    if len(values) < 2 or mean <= 0:
        return None
    return math.sqrt(math.fsum((item - mean) ** 2 for item in values) / len(values)) / mean


def middle_spread(ordered: Sequence[float]) -> float | None:
    """Return the interquartile range divided by the median: a stall of the machine does not touch it."""
    count = len(ordered)
    if count < 4 or ordered[count // 2] <= 0:
        return None
    return (ordered[count * 3 // 4] - ordered[count // 4]) / ordered[count // 2]


def range_of_middle(ordered: Sequence[float]) -> float | None:
    """Return the interquartile range."""
    count = len(ordered)
    return ordered[count * 3 // 4] - ordered[count // 4] if count >= 4 else None


def quantile(ordered: Sequence[float], share: float) -> float | None:
    """Return the value below which a share of the others lie."""
    return ordered[int(len(ordered) * share)] if ordered else None


def low_spread(ordered: Sequence[float]) -> float | None:
    """Return how far the lowest tenth lies below the median, as its share: stalls only ever add time."""
    count = len(ordered)
    if count < 4 or ordered[count // 2] <= 0:
        return None
    return 1 - ordered[count // 10] / ordered[count // 2]


def log_deviation(values: Sequence[float]) -> float | None:
    """Return the standard deviation of the natural logarithms."""
    # An interval of 0 has no logarithm; below the resolution of a browser's clock, all are equal.
    logs = [math.log(max(item, 0.1)) for item in values]
    if len(logs) < 2:
        return None
    mean = math.fsum(logs) / len(logs)
    return math.sqrt(math.fsum((item - mean) ** 2 for item in logs) / len(logs))


def is_coarse(ordered: Sequence[float]) -> bool:
    """Tell whether a browser's clock shows only tenths or sixtieths of a second, as some do for privacy.

    Of a program that waits for the same time, all intervals fall on one step of such a clock.
    """
    for step_ms in _COARSE_STEPS_MS:
        # Almost always the first values settle it.
        if all(abs(each - step_ms * round(each / step_ms)) <= _STEP_SLACK_MS for each in ordered) and (
            len({round(each / step_ms) for each in ordered}) >= _STEPS_MIN
        ):
            return True
    return False


def jitter(ordered: Sequence[float]) -> float | None:
    """Return how much likelier pauses are as drawn by a program than as made by a person, as a logarithm.

    A program draws them evenly between two bounds or by a bell curve; people's are log-normal (Dhakal and
    others, CHI 2018), with a long tail of pauses. Each is fitted by maximum likelihood. Very short intervals,
    which fingers that roll over make, count as no shorter than about a third of the median. Unknown for few
    values, and where a coarse clock lets most of them be equal.
    """
    count = len(ordered)
    if count < _JITTER_COUNT_MIN or ordered[0] < 0 or ordered[count // 2] <= 0:
        return None
    if len(set(ordered)) * 2 < count:
        return None
    least = ordered[count // 2] * _ROLLOVER_SHARE
    values = [each if each > least else least for each in ordered]
    logs = list(map(math.log, values))
    mean_log, mean = sum(logs) / count, sum(values) / count
    log_sd = math.dist(logs, [mean_log] * count) / math.sqrt(count)
    sd = math.dist(values, [mean] * count) / math.sqrt(count)
    if log_sd < _SD_MIN or sd < _SD_MIN:
        return None
    # What all three have in common is left out: half the logarithm of 2 pi e.
    evenly = _HALF_LOG_2_PI_E - math.log((values[-1] - values[0]) * (count + 1) / (count - 1))
    return count * (max(-math.log(sd), evenly) + mean_log + math.log(log_sd))
