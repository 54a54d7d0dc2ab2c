"""Ids: a type prefix and a UUIDv7 in 32 hex digits, so that ids sort by the time they were made."""

import os
import re
import struct

from vettance import clock

# A UUIDv7 (RFC 9562, section 5.7) holds 48 bits of Unix milliseconds and 74 free bits. Twelve of those
# count up within a millisecond, so that ids made by one process are strictly increasing even when its clock
# jumps back.
_COUNTER_BITS = 12
_RANDOM_BYTES = 8
_RESERVED = 512  # Random numbers are drawn in bulk: a system call for each id costs more than the rest.
ID_DIGITS = 32
_SHAPE = re.compile(r"[0-9a-f]{32}")
#: What stands for the name of an erased customer.
PSEUDONYM_HEAD = "erased_"
PSEUDONYM_DIGITS = 24
_PSEUDONYM = re.compile(rf"{PSEUDONYM_HEAD}[0-9a-f]{{{PSEUDONYM_DIGITS}}}")


class IdSource:
    """Makes strictly increasing ids. One instance serves a whole process."""

    def __init__(self) -> None:
        self._last = 0
        self._reserve: list[str] = []
        self._taken = _RESERVED

    def floor(self, last_id: str) -> None:
        """Make every later id sort after `last_id`, an id read back from the store."""
        value = int(last_id.rpartition("_")[2], 16)
        moment = value >> 80 << _COUNTER_BITS | value >> 64 & 0xFFF
        self._last = max(self._last, moment)

    def make(self, prefix: str, now_ms: int | None = None) -> str:
        """Return `prefix_` + 32 hex digits. `now_ms` is Unix milliseconds, the clock's when left out."""
        moment = (now_ms if now_ms is not None else clock.now_ms()) << _COUNTER_BITS
        if moment <= self._last:
            moment = self._last + 1
        self._last = moment
        place = self._taken
        if place == _RESERVED:
            self._reserve, place = _random_halves(), 0
        self._taken = place + 1
        high = moment >> _COUNTER_BITS << 16 | 0x7000 | moment & 0xFFF
        return f"{prefix}_{high:016x}{self._reserve[place]}"


def _random_halves() -> list[str]:
    """Return lower halves of ids: the variant of a UUID, and 62 random bits."""
    drawn = os.urandom(_RESERVED * _RANDOM_BYTES)
    numbers = struct.unpack(f"{_RESERVED}Q", drawn)
    return [f"{0x8000000000000000 | number >> 2:016x}" for number in numbers]


def is_id(text: str, prefix: str) -> bool:
    """Tell whether `text` has the shape of an id of this type. A malformed id is simply not found."""
    head, _, digits = text.partition("_")
    return head == prefix and _SHAPE.fullmatch(digits) is not None


def made_at_ms(made: str) -> int:
    """Return the moment an id was made at, as it says itself (Unix ms)."""
    return int(made.rpartition("_")[2], 16) >> 80


def first_id(prefix: str, at_ms: int) -> str:
    """Return an id before all that are made from a moment on (Unix ms)."""
    return f"{prefix}_{max(at_ms, 0):012x}" + "0" * (ID_DIGITS - 12)


def is_pseudonym(name: str | None) -> bool:
    """Tell whether a name is what stands for an erased customer."""
    return name is not None and _PSEUDONYM.fullmatch(name) is not None
