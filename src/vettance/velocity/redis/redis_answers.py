"""What the script in Redis replies, as answers: exact from entries, else from totals of sub-buckets."""

import struct
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from vettance.velocity.aggregates import Questions, Summary, WindowTotals, questions_of
from vettance.velocity.answer_codegen import Scan, summarize_of
from vettance.velocity.plan_layout import LATE_MS_MIN, SERIES_BITS, Group, PlanLayout
from vettance.velocity.port import EVERYTHING, Value, VelocityAnswer
from vettance.velocity.redis.redis_layout import PlacedGroup, PlacedLane
from vettance.velocity.redis.script_constants import WINDOW

_HEAD: Final = struct.Struct("<Bddd")
_PART: Final = struct.Struct("<BI")
_LANE: Final = struct.Struct("<Bddd8sI")
_NUMBER: Final = struct.Struct("<d")
_ORDINARY: Final = 0

_DEGRADED: Final = 1
Word = int | float


class ScriptReply(NamedTuple):
    """A reply of the script: flags and high water of the memory, and for each group its part."""

    flags: int
    high_ms: float
    reach_ms: float  # what is older than this, less the time it is kept, may be gone
    at_ms: int  # when the event counts as observed
    parts: list[tuple[int, bytes]]


def read_reply(reply: bytes) -> ScriptReply:
    """Take a reply apart."""
    flags, high_ms, reach_ms, at_ms = _HEAD.unpack_from(reply)
    parts, place, length = [], _HEAD.size, len(reply)
    while place < length:
        kind, size = _PART.unpack_from(reply, place)
        place += _PART.size
        parts.append((kind, reply[place : place + size]))
        place += size
    return ScriptReply(flags, high_ms, reach_ms, int(at_ms), parts)


def answer_event(
    layout: PlanLayout,
    placed: Sequence[PlacedGroup],
    replies: Sequence[tuple[ScriptReply, Sequence[PlacedGroup]]],
    words: Sequence[Word | None],
) -> VelocityAnswer:
    """Return the answer from replies, each with the groups that were asked for it; `placed`: all of them."""
    answers = list(layout.defaults)
    flags = inexact = 0
    present = set()
    for reply, groups in replies:
        at_ms = reply.at_ms
        flags |= reply.flags
        # Beyond its longest window a series is kept for LATE_MS_MIN at least.
        is_behind = at_ms < max(reply.high_ms, reply.reach_ms) - LATE_MS_MIN
        for group, (kind, part) in zip(groups, reply.parts, strict=True):
            present.add(group.group.key)
            inexact |= answer_group(group, kind, part, at_ms, words, answers)
            if is_behind:
                inexact |= _beyond(group.group, at_ms, reply)
    for group in placed:
        if group.group.key not in present:
            for index, _ in group.group.aggregates:
                answers[index] = None
    if None in words:
        for word, slot in zip(words, layout.slots, strict=True):
            if word is None:
                for index in slot.asked:
                    answers[index] = None
    if flags & _DEGRADED:
        inexact = EVERYTHING
    return VelocityAnswer(tuple(answers), inexact)


def _beyond(group: Group, at_ms: int, reply: ScriptReply) -> int:
    """Return the bits of the aggregates whose window, for a late event, reaches what may be forgotten."""
    inexact = 0
    forgotten_ms = max(reply.high_ms, reply.reach_ms) - group.kept_ms
    for index, span_ms in group.aggregates:
        if at_ms - span_ms < forgotten_ms:
            inexact |= 1 << index
    return inexact


def answer_group(
    placed: PlacedGroup,
    kind: int,
    part: bytes,
    at_ms: int,
    words: Sequence[Word | None],
    answers: list[Value],
) -> int:
    """Put the answers of every window that is not empty into `answers`; return the inexact bits."""
    if not part:
        return 0
    if kind == _ORDINARY:
        _answer_entries(placed, part, at_ms, words, answers)
        return 0
    inexact = place = 0
    for lane in placed.lanes:
        if not part[place]:
            place += 1
            continue
        place, more = _answer_lane(lane, part, place, at_ms, words, answers)
        inexact |= more
    return inexact


def _answer_entries(
    placed: PlacedGroup, record: bytes, at_ms: int, words: Sequence[Word | None], answers: list[Value]
) -> None:
    """Answer from the entries of an ordinary key, exactly."""
    columns = list(zip(*placed.entry.iter_unpack(record), strict=True))
    heads = columns[0]
    # The entries are in the order of their moments; those newer than the event do not count.
    after = at_ms + 1 << SERIES_BITS
    end = len(heads) if heads[-1] < after else bisect_left(heads, after)
    oldest = heads[0]
    begins: dict[int, int] = {}
    for lane, column, _ in placed.lanes:
        bit = lane.local_bit
        span_ms = lane.windows[-1].span_ms
        begin = begins.get(span_ms)
        if begin is None:
            since = after - (span_ms << SERIES_BITS)
            begins[span_ms] = begin = 0 if oldest >= since else bisect_left(heads, since)
        if begin >= end:
            continue
        inside = heads[begin:end]
        moments = [head >> SERIES_BITS for head in inside if head & bit]
        if not moments:
            continue
        values: list[Word] = []
        if column:
            held = columns[column][begin:end]
            values = [value for value, head in zip(held, inside, strict=True) if head & bit]
        own = words[lane.slot] if column else None
        for span_ms, _, scan in lane.windows:
            _answer_window(scan, moments, values, at_ms - span_ms, at_ms, own, answers)


def _answer_window(
    scan: Scan,
    moments: Sequence[int],
    values: Sequence[Word],
    start_ms: int,
    at_ms: int,
    own: Word | None,
    answers: list[Value],
) -> None:
    """Answer one window from moments that are no newer than the event."""
    start = 0 if moments[0] > start_ms else bisect_right(moments, start_ms)
    if start < len(moments):
        scan(moments, values, start, len(moments), at_ms, own, answers)


class _Busy(NamedTuple):
    """What is known of a busy lane besides the totals of its windows."""

    left_ms: float  # a window that begins there or later is covered by the entries
    forgotten_ms: float  # values last observed at or before this moment may be missing
    newest_ms: float
    last: bytes


def _answer_lane(
    placed: PlacedLane,
    part: bytes,
    place: int,
    at_ms: int,
    words: Sequence[Word | None],
    answers: list[Value],
) -> tuple[int, int]:
    """Answer for one lane of a busy key; return where the next one begins, and the inexact bits."""
    _, left_ms, forgotten_ms, newest_ms, last, size = _LANE.unpack_from(part, place)
    busy = _Busy(left_ms, forgotten_ms, newest_ms, last)
    place += _LANE.size
    moments: list[int] = []
    values: list[Word] = []
    if size:
        columns = list(zip(*placed.raw.iter_unpack(part[place : place + size]), strict=True))
        moments = [int(moment) for moment in columns[0]]
        values = list(columns[1]) if placed.column else []
        place += size
    if moments and moments[-1] > at_ms:
        end = bisect_right(moments, at_ms)
        del moments[end:], values[end:]
    inexact = 0
    own = words[placed.lane.slot] if placed.column else None
    for span_ms, questions, scan in placed.lane.windows:
        start_ms = at_ms - span_ms
        if start_ms < left_ms:
            totals = WINDOW.unpack_from(part, place)
            inexact |= _answer_totals(questions, totals, start_ms, at_ms, answers)
            inexact |= _answer_others(questions, totals, busy, start_ms, at_ms, moments, values, own, answers)
        elif moments:
            _answer_window(scan, moments, values, start_ms, at_ms, own, answers)
        place += WINDOW.size
    return place, inexact


def _answer_totals(
    questions: Questions, totals: tuple[float, ...], start_ms: int, at_ms: int, answers: list[Value]
) -> int:
    entries, first_ms, total, least, greatest, flags, _, _ = totals
    inexact = 0
    kept = WindowTotals(int(entries), total, least, greatest, int(first_ms))
    for index, kind in questions_of(questions, Summary.TOTALS):
        if not int(flags) & (2 if kind.reads_extremes else 1):
            inexact |= 1 << index
        if entries > 0:
            answers[index] = summarize_of(kind)(at_ms, start_ms, kept)
    return inexact


def _answer_others(
    questions: Questions,
    totals: tuple[float, ...],
    busy: _Busy,
    start_ms: int,
    at_ms: int,
    moments: Sequence[int],
    values: Sequence[Word],
    own: Word | None,
    answers: list[Value],
) -> int:
    """Answer what totals cannot, for a window beyond the entries; return the inexact bits."""
    inexact = 0
    is_late = at_ms < busy.newest_ms
    for index, kind in questions:
        if kind.summary is Summary.TOTALS:
            continue
        kept: Any
        is_known, is_exact = True, True
        if kind.summary is Summary.DISTINCT:
            kept, is_exact = int(totals[6]), not is_late and start_ms >= busy.forgotten_ms
        elif kind.summary is Summary.OWN:
            if own is None:
                continue  # Unknown, as the caller notes.
            kept = totals[7]
            is_known = kept > float("-inf")
            is_exact = kept <= at_ms if is_known else start_ms >= busy.forgotten_ms
        elif not is_late:
            is_known = busy.newest_ms > start_ms
            kept = int(busy.newest_ms) if is_known else 0, _NUMBER.unpack(busy.last)[0]
        elif moments:
            kept = moments[-1], values[-1] if values else None
        else:
            # Of what has left the entries the order is not known any more.
            answers[index], is_known, is_exact = None, False, False
        if is_known:
            answers[index] = summarize_of(kind)(at_ms, start_ms, kept)
        if not is_exact:
            inexact |= 1 << index
    return inexact
