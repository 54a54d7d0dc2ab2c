"""How a plan's groups are put into Redis: what an entry is, and what the script must know of busy keys."""

import hashlib
import hmac
import struct
from typing import Any, Final, NamedTuple

import msgspec

from vettance.velocity.aggregates import Summary, questions_of, summary_needs
from vettance.velocity.fingerprint import is_prime
from vettance.velocity.memory.sub_buckets import BUCKETS, LATE_BUCKETS_MAX
from vettance.velocity.plan_layout import SERIES_BITS, Group, PlanLayout, SeriesSlot, Window
from vettance.velocity.port import Plan
from vettance.velocity.redis.script_constants import GROUP, KEY

#: Goes into the digest of a plan: after a change of the layout in Redis every memory is built anew.
FORMAT: Final = 1
_DIGEST_BYTES: Final = 8


class PlacedLane(NamedTuple):
    """One series of a group, and the place of its value among the columns of a record (0: it has none)."""

    lane: SeriesSlot
    column: int
    raw: struct.Struct  # an entry of its own, once the key is busy


class PlacedGroup(NamedTuple):
    """One group of a plan as it is kept in Redis.

    An entry is a 64-bit word (moment << 20 | lanes) and one 64-bit word for each value that any of its lanes
    keeps: a fingerprint or a number, zero where there is none.
    """

    group: Group
    lanes: tuple[PlacedLane, ...]
    slots: tuple[int, ...]  # the words of an observation that an entry holds, in this order
    entry: struct.Struct
    ordinal: int
    known: bytes  # what the script needs to know of the group


def place(layout: PlanLayout) -> tuple[PlacedGroup, ...]:
    """Arrange a layout for Redis."""
    return tuple(_place_group(index, group) for index, group in enumerate(layout.groups))


def plan_digest(plan: Plan) -> bytes:
    """Return what tells one plan, and this format, from another."""
    return hashlib.blake2b(msgspec.json.encode((FORMAT, plan)), digest_size=_DIGEST_BYTES).digest()


def shared_modulus(secret: bytes) -> int:
    """Derive the secret prime of the fingerprints from the deployment's secret: the same in every process."""
    number = int.from_bytes(hmac.digest(secret, b"vettance velocity modulus", "sha256")[:8], "big")
    candidate = number >> 4 | 1 << 59 | 1
    while not is_prime(candidate):
        candidate = candidate + 2 | 1 << 59
        candidate &= (1 << 60) - 1
    return candidate


def key_and_entry(placed: PlacedGroup, fingerprint: int, at_ms: int, lanes: int, words: list[Any]) -> bytes:
    """Return how the key of a group is called below its memory, and the event's entry in it."""
    head = at_ms << SERIES_BITS | lanes
    return KEY.pack(placed.ordinal, fingerprint) + placed.entry.pack(
        head, *[words[slot] or 0 for slot in placed.slots]
    )


def _place_group(index: int, group: Group) -> PlacedGroup:
    slots: dict[int, bool] = {}
    for lane in group.lanes:
        if lane.slot >= 0:
            slots.setdefault(lane.slot, lane.textual)
    order = tuple(slots)
    columns = {slot: column for column, slot in enumerate(order, 1)}
    lanes = tuple(_place_lane(lane, columns.get(lane.slot, 0)) for lane in group.lanes)
    kinds = "".join("q" if textual else "d" for textual in slots.values())
    entry = struct.Struct(f"<q{kinds}")
    known = GROUP.pack(entry.size, group.kept_ms) + msgspec.msgpack.encode([_lane(lane) for lane in lanes])
    return PlacedGroup(group, lanes, order, entry, index, known)


def _place_lane(lane: SeriesSlot, column: int) -> PlacedLane:
    kind = "" if not column else "q" if lane.textual else "d"
    return PlacedLane(lane, column, struct.Struct(f"<d{kind}"))


def _lane(placed: PlacedLane) -> list[Any]:
    lane = placed.lane
    return [
        lane.local_bit,
        lane.kept_ms,
        8 * placed.column,
        int(lane.keeps_latest),
        int(lane.textual),
        [_window(window, lane.kept_ms) for window in lane.windows],
    ]


def _window(window: Window, kept_ms: int) -> list[int]:
    totals = questions_of(window.questions, Summary.TOTALS)
    with_values = summary_needs(totals) & {"total", "least", "greatest"}
    has_distinct, has_own = (
        bool(questions_of(window.questions, one)) for one in (Summary.DISTINCT, Summary.OWN)
    )
    width_ms = -(-window.span_ms // BUCKETS)
    late = -(-(kept_ms - window.span_ms) // width_ms)
    cells = BUCKETS + 2 + min(late, LATE_BUCKETS_MAX)
    kind = 2 if with_values else 1 if totals else 0
    return [window.span_ms, width_ms, cells, kind, int(has_distinct), int(has_own)]
