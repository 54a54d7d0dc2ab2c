"""Which counts make a span of time: as few as can be, of days and hours."""

from typing import NamedTuple

from vettance.quality.rule_counts import DAY_S, HOUR_S, HOURS_ASKED_S


class CountedPart(NamedTuple):
    """Counts of one width from a first start to before an end, in seconds; added up, or taken away."""

    width_s: int
    first_s: int
    end_s: int
    is_added: bool = True


def whole_hours(from_ms: int, to_ms: int, now_ms: int) -> tuple[int, int]:
    """Widen a span to whole hours (in seconds), or to whole days where hours are too old to be asked for."""
    begin_s, end_s = from_ms // 1000, -(-to_ms // 1000)
    hours_s = now_ms // 1000 - HOURS_ASKED_S
    width_s = HOUR_S if begin_s >= hours_s else DAY_S
    begin_s -= begin_s % width_s
    width_s = HOUR_S if end_s >= hours_s else DAY_S
    return begin_s, end_s + -end_s % width_s


def parts_of(begin_s: int, end_s: int, now_s: int) -> list[CountedPart]:
    """Return the counts that make a span of whole hours: days, and the hours at its ends.

    A day that the span has a part of is the hours of that part, or the whole day without the others: what is
    less to read. Hardly anything is counted beyond now, so a span up to now ends with the whole of today.
    """
    first_s, last_s = _nearest_day(begin_s, now_s), _nearest_day(end_s, now_s)
    if first_s >= last_s:
        return [CountedPart(HOUR_S, begin_s, end_s)]
    parts = [CountedPart(DAY_S, first_s, last_s)]
    for from_s, to_s in ((begin_s, first_s), (last_s, end_s)):
        if from_s < to_s:
            parts.append(CountedPart(HOUR_S, from_s, to_s))
        elif from_s > to_s:
            parts.append(CountedPart(HOUR_S, to_s, from_s, is_added=False))
    return parts


def _nearest_day(moment_s: int, now_s: int) -> int:
    """Return the start of a day from which the fewest hours are to be read up to a moment."""
    before_s, after_s = moment_s % DAY_S, -moment_s % DAY_S
    is_before = before_s <= min(after_s, max(now_s - moment_s, 0))
    return moment_s - before_s if is_before else moment_s + after_s
