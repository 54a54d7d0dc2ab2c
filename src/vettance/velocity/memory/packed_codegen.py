"""Writes, for one group, the function that answers from a packed record and adds an event to it.

It is straight-line Python without a loop over lanes, windows or questions: what differs between groups has
become constants, and what a window does not need is not written. A group of one lane that keeps texts, asked
for the distinct values of an hour (aggregate 7), reads like this:

    def ask(record, at_ms, high_ms, lanes, words, answers):
        entries, n0, = record[:2]
        heads = INTEGERS[entries](record, 2)
        after = at_ms + 1 << 20
        newest = heads[-1] < after
        if not newest:
            heads = heads[:bisect_left(heads, after)]
            if not heads:
                return None
        b0 = 0 if heads[0] >= after - 3774873600000 else bisect_left(heads, after - 3774873600000)
        end = len(heads)
        cut = 2 + 8 * entries
        p0 = cut + 8 * n0
        if n0 and b0 < end:
            count = n0 if newest else among(heads, 1)
            values = INTEGERS[n0](record, cut)
            start = b0
            if b0 and n0 != entries:
                start = before(heads, b0, 1, count)
            if start < count:
                held = values[start:count]
                held_once = set(held)
                answers[7] = len(held_once)
        ...

`heads` are the entries no newer than the event, `b0` is where a window begins among them, `p0` where the
words of a lane end. Nothing but numbers and names made here gets into the source.
"""

from collections.abc import Sequence

from vettance.velocity.aggregates import VALUE_INGREDIENTS, entry_needs
from vettance.velocity.answer_codegen import entry_answers
from vettance.velocity.plan_layout import SERIES_BITS, SLACK, Group, SeriesSlot


def packed_source(group: Group) -> str:
    """Return the source of `ask`.

    `ask(record, at_ms, high_ms, lanes, words, answers)` puts the answers of every window that is not empty
    into `answers` and returns the record with the event in it, the record itself when the event belongs to no
    lane, or None when the event is older than others: it is then for `packed.insert` to add it.
    """
    counts = "".join(f" n{place}," for place in range(len(group.lanes)))
    lines = [
        "def ask(record, at_ms, high_ms, lanes, words, answers):",
        f"    entries,{counts} = record[:{group.header_bytes}]",
        f"    heads = INTEGERS[entries](record, {group.header_bytes})",
        f"    after = at_ms + 1 << {SERIES_BITS}",
        "    newest = heads[-1] < after",
        "    if not newest:",
        "        heads = heads[:bisect_left(heads, after)]",
        "        if not heads:",
        "            return None if lanes else record",
        "    oldest = heads[0]",
        "    end = len(heads)",
        f"    cut = {group.header_bytes} + 8 * entries",
    ]
    spans = sorted({window.span_ms for lane in group.lanes for window in lane.windows})
    for name, span_ms in enumerate(spans):
        reach = span_ms << SERIES_BITS
        lines.append(f"    b{name} = 0 if oldest >= after - {reach} else bisect_left(heads, after - {reach})")
    ends = ["cut"]
    for place, lane in enumerate(group.lanes):
        if lane.slot >= 0:
            lines.append(f"    p{place} = {ends[-1]} + 8 * n{place}")
            ends.append(f"p{place}")
    values_from = iter(ends)
    for place, lane in enumerate(group.lanes):
        where = next(values_from) if lane.slot >= 0 else ""
        lines += _lane(lane, place, spans, where)
    return "\n".join(lines + _growth(group)) + "\n"


def _lane(lane: SeriesSlot, place: int, spans: Sequence[int], where: str) -> list[str]:
    """Write how the questions about a lane are answered."""
    count, bit = f"n{place}", lane.local_bit
    lines = [
        f"    if {count} and b{spans.index(lane.windows[-1].span_ms)} < end:",
        f"        count = {count} if newest else among(heads, {bit})",
    ]
    if any(entry_needs(window.questions) & VALUE_INGREDIENTS for window in lane.windows):
        kind = "INTEGERS" if lane.textual else "NUMBERS"
        lines.append(f"        values = {kind}[{count}](record, {where})")
    for window in lane.windows:
        begin = f"b{spans.index(window.span_ms)}"
        lines += [
            f"        start = {begin}",
            f"        if {begin} and {count} != entries:",
            f"            start = before(heads, {begin}, {bit}, count)",
            "        if start < count:",
        ]
        answers = entry_answers(
            window.questions,
            first_ms=f"first_ms(heads, {begin}, {bit})",
            last_ms=f"last_ms(heads, {bit})",
            own=f"words[{lane.slot}]",
            moments=f"moments_of(heads, {begin}, {bit})",
        )
        lines += [f"            {line}" for line in answers]
    return lines


def _growth(group: Group) -> list[str]:
    """Write how the event is added behind all others, and how what has expired leaves."""
    size = group.header_bytes
    lines = [
        "    if not lanes:",
        "        return record",
        "    if not newest:",
        "        return None",
        f"    header = from_bytes(record[:{size}], 'little') + (steps.get(lanes) or step(lanes))",
        f"    parts = [header.to_bytes({size}, 'little'), record[{size}:cut],",
        f"             PACK_INTEGER(at_ms << {SERIES_BITS} | lanes)]",
    ]
    last = "cut"
    if any(lane.slot >= 0 for lane in group.lanes):
        lines.append("    done = cut")
    for place, lane in enumerate(group.lanes):
        if lane.slot >= 0:
            last = f"p{place}"
            how = "PACK_INTEGER" if lane.textual else "PACK_NUMBER"
            lines += [
                f"    if lanes & {lane.local_bit}:",
                f"        parts += record[done:{last}], {how}(words[{lane.slot}])",
                f"        done = {last}",
            ]
    if last != "cut":
        lines.append("    parts.append(record[done:])")
    stale_ms = group.kept_ms + group.kept_ms // SLACK
    lines += [
        f"    if oldest >> {SERIES_BITS} <= high_ms - {stale_ms}:",
        f"        return drop(group, join(parts), high_ms - {group.kept_ms})",
        "    return join(parts)",
    ]
    return lines
