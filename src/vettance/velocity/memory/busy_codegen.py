"""Writes, for one group, the function that answers from the series of a busy key and adds an event to them.

As in `packed_codegen.py`, it is straight-line Python in which what differs between groups has become
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

While events come in order, an answer is read off running totals (`running_totals.py`) and the event is
added to them.
"""

from vettance.velocity.aggregates import AggregateKind, Summary, questions_of, summary_needs
from vettance.velocity.plan_layout import Group, SeriesSlot, Window


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
    return bool(questions_of(window.questions, Summary.TOTALS))


def _ask(lane: SeriesSlot, place: int) -> list[str]:
    """Write how the questions about a lane are answered when no observation is newer than the event."""
    lines = []
    if any(_has_totals(window) for window in lane.windows):
        runs = (f"r{n}" if _has_totals(window) else "_" for n, window in enumerate(lane.windows))
        lines.append(f"{', '.join(runs)}, = s{place}.runs")
    if lane.keeps_latest:
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
        run = {
            "at_ms": "at_ms",
            "count": f"held{number}",
            "total": f"(r{number}.total + r{number}.spare)",
            "least": f"r{number}.least",
            "greatest": f"r{number}.greatest",
            "first_ms": f"r{number}.first_ms",
        }
        for index, kind in questions_of(window.questions, Summary.TOTALS):
            lines.append(f"    answers[{index}] = {kind.from_summary.format_map(run)}")
        for index, kind in window.questions:
            if kind.summary is not Summary.TOTALS:
                lines += _ask_other(place, lane.slot, window.span_ms, index, kind)
    return lines


def _ask_other(place: int, slot: int, span_ms: int, index: int, kind: AggregateKind) -> list[str]:
    """Write the answer of the newest entry, or of the latest moment of each value."""
    ingredients = {
        "at_ms": "at_ms",
        "start_ms": f"at_ms - {span_ms}",
        "newest_ms": f"s{place}.newest_ms",
        "newest_value": f"s{place}.values[-1]",
        "distinct_count": f"(len(known) - bisect_right(known, at_ms - {span_ms}))",
        "own_last_ms": "last_ms",
    }
    answer = f"answers[{index}] = {kind.from_summary.format_map(ingredients)}"
    if kind.summary is Summary.NEWEST:
        return [f"if s{place}.newest_ms > at_ms - {span_ms}:", f"    {answer}"]
    forgotten = [f"if at_ms - {span_ms} < latest.forgotten_ms:", f"    inexact |= {1 << index}"]
    if kind.summary is Summary.DISTINCT:
        return [answer, *forgotten]
    return [
        f"last_ms = latest.of.get(words[{slot}])",
        "if last_ms is not None:",
        f"    {answer}",
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
            lines += _count(f"r{number}", f"held{number}", summary_needs(window.questions))
    if lane.keeps_latest:
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


def _count(run: str, held: str, needs: frozenset[str]) -> list[str]:
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
    if "total" in needs:
        lines += [
            f"    total = {run}.total",
            "    more = total + word",
            "    back = more - total",
            f"    {run}.spare += (total - (more - back)) + (word - back)",
            f"    {run}.total = more",
        ]
        buckets.append("    buckets.sums[head] += word")
    for sign, name in (("<", "least"), (">", "greatest")):
        if name in needs:
            lines += [f"    if word {sign} {run}.{name}:", f"        {run}.{name} = word"]
            buckets += [
                f"    if word {sign} buckets.{name}[head]:",
                f"        buckets.{name}[head] = word",
            ]
    return lines + buckets
