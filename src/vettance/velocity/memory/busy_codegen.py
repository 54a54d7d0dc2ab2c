"""Writes, for one group, the function that answers from the series of a busy key and adds an event to them.

As in `packed_source.py`, it is straight-line Python in which what differs between groups has become
constants. A lane of numbers asked for the sum of an hour (aggregate 4) reads like this:

    s0, = series
    if s0 is None:
        if lanes & 1:
            series[0] = s0 = Series(LANES[0])
            grown += s0.add(LANES[0], at_ms, words)
    elif at_ms < s0.asked_ms:
        inexact |= s0.ask_late(LANES[0], at_ms, words, answers)
        if lanes & 1:
            grown += s0.add(LANES[0], at_ms, words)
    else:
        s0.asked_ms = at_ms
        r0, = s0.runs
        if at_ms >= r0.until_ms:
            r0.renew(s0, at_ms)
        inexact |= r0.inexact
        held0 = r0.entries
        if held0:
            answers[4] = r0.total + r0.spare
        if lanes & 1:
            ...

While events come in order, an answer is read off running totals (`running.py`) and the event added to them.
"""

from typing import Final

from vettance.velocity.plan_layout import (
    AVG,
    COUNT,
    DISTINCT,
    FIRST_SEEN,
    LAST,
    LAST_SEEN,
    MAX,
    MIN,
    OF_TOTALS,
    SEEN,
    SUM,
    Group,
    SeriesSlot,
    Window,
)

_OF_RUN: Final = {
    COUNT: "held{n}",
    SUM: "r{n}.total + r{n}.spare",
    AVG: "(r{n}.total + r{n}.spare) / held{n}",
    MIN: "r{n}.least",
    MAX: "r{n}.greatest",
    FIRST_SEEN: "(at_ms - r{n}.first_ms) / 1000",
}


def busy_source(group: Group) -> str:
    """Return the source of `busy`.

    `busy(keys, series, at_ms, high_ms, lanes, words, answers)` puts the answers of every window that is not
    empty into `answers`, records the event in the series of `lanes` and returns the inexact bits.
    """
    names = "".join(f"s{place}, " for place in range(len(group.lanes)))
    lines = [
        "def busy(keys, series, at_ms, high_ms, lanes, words, answers):",
        "    inexact = grown = 0",
        f"    {names}= series",
    ]
    for place, lane in enumerate(group.lanes):
        add = f"grown += s{place}.add(LANES[{place}], at_ms, words)"
        lines += [
            f"    if s{place} is None:",
            f"        if lanes & {lane.local_bit}:",
            f"            series[{place}] = s{place} = Series(LANES[{place}])",
            f"            {add}",
            f"    elif at_ms < s{place}.asked_ms:",
            f"        inexact |= s{place}.ask_late(LANES[{place}], at_ms, words, answers)",
            f"        if lanes & {lane.local_bit}:",
            f"            {add}",
            "    else:",
            f"        s{place}.asked_ms = at_ms",
        ]
        lines += [f"        {line}" for line in _ask(lane, place)]
        lines.append(f"        if lanes & {lane.local_bit}:")
        lines += [f"            {line}" for line in _add(lane, place)]
    lines += ["    if grown:", "        keys.raw += grown", "    return inexact"]
    return "\n".join(lines) + "\n"


def _has_totals(window: Window) -> bool:
    return any(code in OF_TOTALS for _, code in window.questions)


def _has_latest(lane: SeriesSlot) -> bool:
    return any(code in (DISTINCT, SEEN) for window in lane.windows for _, code in window.questions)


def _ask(lane: SeriesSlot, place: int) -> list[str]:
    """Write how the questions about a lane are answered when no observation is newer than the event."""
    lines = []
    if any(_has_totals(window) for window in lane.windows):
        runs = (f"r{n}" if _has_totals(window) else "_" for n, window in enumerate(lane.windows))
        lines.append(f"{', '.join(runs)}, = s{place}.runs")
    if _has_latest(lane):
        lines += [f"latest = s{place}.latest", "known = latest.moments"]
    for number, window in enumerate(lane.windows):
        if _has_totals(window):
            lines += [
                f"if at_ms >= r{number}.until_ms:",
                f"    r{number}.renew(s{place}, at_ms)",
                f"inexact |= r{number}.inexact",
                f"held{number} = r{number}.entries",
                f"if held{number}:",
            ]
        for index, code in window.questions:
            if code in OF_TOTALS:
                lines.append(f"    answers[{index}] = {_OF_RUN[code].format(n=number)}")
        for index, code in window.questions:
            if code not in OF_TOTALS:
                lines += _ask_other(place, lane.slot, window.span_ms, index, code)
    return lines


def _ask_other(place: int, slot: int, span_ms: int, index: int, code: int) -> list[str]:
    """Write the answer of the newest entry, or of the latest moment of each value."""
    if code == LAST_SEEN:
        return [
            f"if s{place}.newest_ms > at_ms - {span_ms}:",
            f"    answers[{index}] = (at_ms - s{place}.newest_ms) / 1000",
        ]
    if code == LAST:
        return [
            f"if s{place}.newest_ms > at_ms - {span_ms}:",
            f"    answers[{index}] = s{place}.values[-1]",
        ]
    forgotten = [
        f"if at_ms - {span_ms} < latest.forgotten_ms:",
        f"    inexact |= {1 << index}",
    ]
    if code == DISTINCT:
        return [
            f"answers[{index}] = len(known) - bisect_right(known, at_ms - {span_ms})",
            *forgotten,
        ]
    return [
        f"last_ms = latest.of.get(words[{slot}])",
        "if last_ms is not None:",
        f"    answers[{index}] = last_ms > at_ms - {span_ms}",
        f"el{forgotten[0]}",
        forgotten[1],
    ]


def _add(lane: SeriesSlot, place: int) -> list[str]:
    """Write how an event that no observation is newer than is recorded in a lane."""
    lines = [
        f"s{place}.newest_ms = at_ms",
        f"moments = s{place}.moments",
        "moments.append(at_ms)",
        "grown += 1",
    ]
    if lane.slot >= 0:
        lines += [f"word = words[{lane.slot}]", f"s{place}.values.append(word)"]
    for number, window in enumerate(lane.windows):
        if _has_totals(window):
            lines += _count(f"r{number}", f"held{number}", {code for _, code in window.questions})
    if _has_latest(lane):
        lines += [
            "was_ms = latest.of.get(word)",
            "latest.of[word] = at_ms",
            "if was_ms is not None:",
            "    del known[bisect_left(known, was_ms)]",
            "known.append(at_ms)",
            "if was_ms is None:",
            "    latest.fit()",
        ]
    return [
        *lines,
        f"if len(moments) > s{place}.room:",
        f"    grown -= s{place}.spill(LANES[{place}])",
        f"if high_ms >= s{place}.stale_ms:",
        f"    grown -= s{place}.tidy(LANES[{place}], high_ms)",
    ]


def _count(run: str, held: str, codes: set[int]) -> list[str]:
    """Write how an event is added to the totals of a window, and to its newest sub-bucket."""
    # A window that was empty has its totals made when it is next asked.
    lines = [f"if {held}:", f"    {run}.entries = {held} + 1"]
    buckets = [
        f"buckets = {run}.buckets",
        "if buckets is not None:",
        "    head = buckets.head if at_ms < buckets.head_until_ms else buckets.open(at_ms)",
        "    buckets.counts[head] += 1",
        "    buckets.lasts[head] = at_ms",
    ]
    if codes & {SUM, AVG}:
        lines += [
            f"    total = {run}.total",
            "    more = total + word",
            "    back = more - total",
            f"    {run}.spare += (total - (more - back)) + (word - back)",
            f"    {run}.total = more",
        ]
        buckets.append("    buckets.sums[head] += word")
    for code, sign, name in ((MIN, "<", "least"), (MAX, ">", "greatest")):
        if code in codes:
            lines += [f"    if word {sign} {run}.{name}:", f"        {run}.{name} = word"]
            buckets += [
                f"    if word {sign} buckets.{name}[head]:",
                f"        buckets.{name}[head] = word",
            ]
    return lines + buckets
