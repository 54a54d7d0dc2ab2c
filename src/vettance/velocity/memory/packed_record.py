"""Packed records: what is remembered of an ordinary key, as one short `bytes` value.

Most keys are seen a few times in a window, and there are many of them; what counts is how few bytes each
takes. A record is a header (number of entries, then how many of them belong to each lane, a byte each), the
entries in the order of their moments as 64-bit words (`moment << 20 | lanes`), and for each lane with a value
its values in the same order, 64 bits each: fingerprints first, then numbers. It is replaced, never changed.

The functions that run for every event are written for each group by `packed_codegen.py`; here is what they
call, and what happens seldom.
"""

import struct
from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

from vettance.velocity.plan_layout import SERIES_BITS, Group

#: A key with more entries than this is remembered series by series (`series.py`), where each lookup costs
#: less.
ENTRIES_MAX: Final = 32

Word = int | float
Unpack = Callable[[bytes, int], tuple[Any, ...]]

#: By number of words (a header counts up to 255): how so many fingerprints, moments or numbers are read.
INTEGERS: Final[tuple[Unpack, ...]] = tuple(struct.Struct(f"<{count}q").unpack_from for count in range(256))
NUMBERS: Final[tuple[Unpack, ...]] = tuple(struct.Struct(f"<{count}d").unpack_from for count in range(256))
PACK_INTEGER: Final[Callable[[Any], bytes]] = struct.Struct("<q").pack
PACK_NUMBER: Final[Callable[[Any], bytes]] = struct.Struct("<d").pack


def among(heads: Iterable[int], local_bit: int) -> int:
    """Return how many of some entries belong to a lane."""
    return len([True for head in heads if head & local_bit])


def before(heads: Sequence[int], place: int, local_bit: int, count: int) -> int:
    """Return how many of the entries before `place` belong to a lane that has `count` of them in all."""
    if place + place > len(heads):
        behind = heads[place:]
        return count - len([True for head in behind if head & local_bit]) if behind else count
    return len([True for head in heads[:place] if head & local_bit])


def first_ms(heads: Sequence[int], start: int, local_bit: int) -> int:
    """Return the moment of the first entry of a lane from `start` on."""
    while not heads[start] & local_bit:
        start += 1
    return heads[start] >> SERIES_BITS


def moments_of(heads: Sequence[int], start: int, local_bit: int) -> list[int]:
    """Return the moments of the entries of a lane from `start` on."""
    return [head >> SERIES_BITS for head in heads[start:] if head & local_bit]


def last_ms(heads: Sequence[int], local_bit: int) -> int:
    """Return the moment of the last entry of a lane."""
    place = len(heads) - 1
    while not heads[place] & local_bit:
        place -= 1
    return heads[place] >> SERIES_BITS


def unpack(group: Group, record: bytes) -> tuple[tuple[int, ...], list[tuple[Any, ...]]]:
    """Return the entries of a record, and the values of each lane (none where a lane keeps only moments)."""
    place = group.header_bytes
    heads = INTEGERS[record[0]](record, place)
    place += 8 * record[0]
    values: list[tuple[Any, ...]] = []
    for lane, count in zip(group.lanes, record[1:], strict=False):
        if lane.slot < 0:
            values.append(())
            continue
        values.append((INTEGERS if lane.textual else NUMBERS)[count](record, place))
        place += 8 * count
    return heads, values


def pack(group: Group, heads: Sequence[int], values: Sequence[Sequence[Any]]) -> bytes:
    """Return the record of some entries, which `unpack` takes apart again."""
    counts = [among(heads, lane.local_bit) for lane in group.lanes]
    parts = [bytes((len(heads), *counts)), struct.pack(f"<{len(heads)}q", *heads)]
    for lane, column in zip(group.lanes, values, strict=True):
        parts.append(struct.pack(f"<{len(column)}{'q' if lane.textual else 'd'}", *column))
    return b"".join(parts)


def insert(group: Group, record: bytes, at_ms: int, lanes: int, words: Sequence[Any]) -> bytes:
    """Return a record with one more entry, at its own time and after those of the same moment."""
    heads, columns = unpack(group, record)
    place = bisect_left(heads, at_ms + 1 << SERIES_BITS)
    changed = []
    for lane, column in zip(group.lanes, columns, strict=True):
        if lanes & lane.local_bit and lane.slot >= 0:
            earlier = among(heads[:place], lane.local_bit)
            changed.append((*column[:earlier], words[lane.slot], *column[earlier:]))
        else:
            changed.append(column)
    return pack(group, (*heads[:place], at_ms << SERIES_BITS | lanes, *heads[place:]), changed)


def drop(group: Group, record: bytes, until_ms: int) -> bytes:
    """Return the record without the entries at or before `until_ms`."""
    heads, columns = unpack(group, record)
    gone = bisect_left(heads, until_ms + 1 << SERIES_BITS)
    kept = [
        column[among(heads[:gone], lane.local_bit) :] if lane.slot >= 0 else column
        for lane, column in zip(group.lanes, columns, strict=True)
    ]
    return pack(group, heads[gone:], kept)


def newest_ms(group: Group, record: bytes) -> int:
    """Return the moment of the newest entry."""
    (head,) = INTEGERS[1](record, group.header_bytes + 8 * record[0] - 8)
    newest: int = head >> SERIES_BITS
    return newest
