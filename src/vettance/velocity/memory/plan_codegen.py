"""Generates the functions of a plan: what it does for every event, as Python made for this plan alone.

Generic loops over groups, lanes, windows and questions cost several times what they do. So the functions
that run for every event are written as straight-line source (`packed_codegen.py`, `busy_codegen.py`, and
`read_source` here) and compiled once for each plan. The source is made of numbers of the plan and of names
defined here; no text of a rule set or a tenant gets into it.
"""

import struct
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from functools import lru_cache
from math import fsum
from typing import Any, Final, NamedTuple

from vettance.velocity.answer_codegen import define
from vettance.velocity.fingerprint import number
from vettance.velocity.memory import packed_record
from vettance.velocity.memory.busy_codegen import busy_source
from vettance.velocity.memory.packed_codegen import packed_source
from vettance.velocity.memory.series import ObservedSeries
from vettance.velocity.plan_layout import SERIES_BITS, Group, PlanLayout, arrange
from vettance.velocity.port import Plan, Value

#: Plans whose functions are kept. Those of 44 aggregates take 0.13 MB, and 18 ms to write.
PLANS_MAX: Final = 32
_COMBINATIONS_MAX: Final = 1024  # of lanes that came together, for each group

Words = list[Any]
Known = dict[Value, int]
Read = Callable[[Sequence[Value], int, Known, Callable[[Value], int | None]], tuple[Words, int]]


class Written(NamedTuple):
    """What is written for one group."""

    group: Group
    begin: Callable[[int, int, Words], bytes]
    ask: Callable[[bytes, int, int, int, Words, list[Value]], bytes | None]
    busy: Callable[[Any, list[Any], int, int, int, Words, list[Value]], int]


class Programme(NamedTuple):
    """A plan as functions."""

    layout: PlanLayout
    read: Read
    groups: tuple[Written, ...]


@lru_cache(maxsize=PLANS_MAX)
def write(plan: Plan) -> Programme:
    """Write the functions of a plan. Raises `ValueError` when the plan asks what cannot be answered."""
    layout = arrange(plan)
    read: Read = define("read", read_source(layout), {"number": number})
    return Programme(layout, read, tuple(_write_group(group) for group in layout.groups))


def _write_group(group: Group) -> Written:
    names = {
        "INTEGERS": packed_record.INTEGERS,
        "NUMBERS": packed_record.NUMBERS,
        "PACK_INTEGER": packed_record.PACK_INTEGER,
        "PACK_NUMBER": packed_record.PACK_NUMBER,
        "LANES": group.lanes,
        "Series": ObservedSeries,
        "among": packed_record.among,
        "before": packed_record.before,
        "bisect_left": bisect_left,
        "bisect_right": bisect_right,
        "drop": packed_record.drop,
        "first_ms": packed_record.first_ms,
        "from_bytes": int.from_bytes,
        "fsum": fsum,
        "group": group,
        "join": b"".join,
        "last_ms": packed_record.last_ms,
        "moments_of": packed_record.moments_of,
        **_steps(group),
    }
    ask = define("ask", packed_source(group), names)
    return Written(group, _begin(group), ask, define("busy", busy_source(group), names))


def read_source(layout: PlanLayout) -> str:
    """Write how the words of an observation are made.

    `read(values, mask, known, fingerprint)` returns the word of each slot, None where there is nothing to
    remember or nobody needs it, and the mask without the series that such a slot keeps out. `known` are
    fingerprints of texts, which `fingerprint` makes where they are missing.
    """
    lines = ["def read(values, mask, known, fingerprint):"]
    for place, slot in enumerate(layout.slots):
        # What `seen` asks about is needed also where the event itself belongs to no series.
        is_needed = "True" if slot.asked else f"mask & {slot.bits}"
        lines += [
            f"    w{place} = None",
            f"    if {is_needed}:",
            f"        value = values[{slot.value}]",
        ]
        if slot.textual:
            lines += [
                "        if type(value) is str:",
                f"            w{place} = known.get(value)",
                f"        if w{place} is None:",
                f"            w{place} = fingerprint(value)",
                f"            if w{place} is None:",
                f"                mask &= ~{slot.bits}",
            ]
        else:
            lines += [
                f"        w{place} = number(value)",
                f"        if w{place} is None:",
                f"            mask &= ~{slot.bits}",
            ]
    words = ", ".join(f"w{place}" for place in range(len(layout.slots)))
    return "\n".join([*lines, f"    return [{words}], mask"]) + "\n"


def _begin(group: Group) -> Callable[[int, int, Words], bytes]:
    """Return the function that makes the first record of a key."""
    known: dict[int, tuple[bytes, Callable[..., bytes], tuple[int, ...]]] = {}

    def learn(lanes: int) -> tuple[bytes, Callable[..., bytes], tuple[int, ...]]:
        met = [lane for lane in group.lanes if lanes & lane.local_bit and lane.slot >= 0]
        kinds = "".join("q" if lane.textual else "d" for lane in met)
        header = bytes((1, *(1 if lanes & lane.local_bit else 0 for lane in group.lanes)))
        if len(known) >= _COMBINATIONS_MAX:
            known.clear()
        known[lanes] = made = header, struct.Struct(f"<q{kinds}").pack, tuple(lane.slot for lane in met)
        return made

    def begin(at_ms: int, lanes: int, words: Words) -> bytes:
        header, pack, slots = known.get(lanes) or learn(lanes)
        return header + pack(at_ms << SERIES_BITS | lanes, *[words[slot] for slot in slots])

    return begin


def _steps(group: Group) -> dict[str, Any]:
    """Return what an entry of some lanes adds to the header of a record, read as one number."""
    steps: dict[int, int] = {}

    def step(lanes: int) -> int:
        if len(steps) >= _COMBINATIONS_MAX:
            steps.clear()
        places = [place for place, lane in enumerate(group.lanes, 1) if lanes & lane.local_bit]
        steps[lanes] = 1 + sum(1 << 8 * place for place in places)
        return steps[lanes]

    return {"steps": steps, "step": step}
