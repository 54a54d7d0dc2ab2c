"""The known: which ids of events a tenant has used, in a byte or two each, so that new ones cost no query."""

import hashlib
from typing import Final

#: Bits set for each id; with ten bits of room an unused id is taken for a used one once in a hundred times.
#: B. H. Bloom, "Space/time trade-offs in hash coding with allowable errors", CACM 13 (7), 1970.
_BITS_SET: Final = 7
_BITS_EACH: Final = 10
_ROOM_MIN: Final = 1 << 16  # ids
_ROOM_MAX: Final = 1 << 25


class UsedIds:
    """Remembers ids for ever. It may take a new id for a known one, seldom, and never a known one for new."""

    def __init__(self) -> None:
        self._layers: list[bytearray] = []
        self._room = 0
        self._left = 0

    def may_hold(self, name: str) -> bool:
        """Tell whether an id may have been added; False is certain."""
        first, step = _numbers(name)
        for layer in self._layers:
            size = len(layer) * 8
            place = first
            for _ in range(_BITS_SET):
                bit = place % size
                if not layer[bit >> 3] >> (bit & 7) & 1:
                    break
                place += step
            else:
                return True
        return False

    def add(self, name: str) -> None:
        """Remember an id."""
        if not self._left:
            # Each layer has twice the room of the one before, so that there are few of them.
            self._room = min(_ROOM_MAX, max(_ROOM_MIN, 2 * self._room))
            self._left = self._room
            self._layers.append(bytearray(self._room * _BITS_EACH // 8))
        self._left -= 1
        layer = self._layers[-1]
        size = len(layer) * 8
        place, step = _numbers(name)
        for _ in range(_BITS_SET):
            bit = place % size
            layer[bit >> 3] |= 1 << (bit & 7)
            place += step

    def dump(self) -> list[tuple[int, int, bytes]]:
        """Return (room, ids that still fit, bits) of each layer, as they are now."""
        last = len(self._layers) - 1
        return [
            (len(layer) * 8 // _BITS_EACH, self._left if place == last else 0, bytes(layer))
            for place, layer in enumerate(self._layers)
        ]

    @classmethod
    def load(cls, layers: list[tuple[int, int, bytes]]) -> "UsedIds":
        """Make one of what `dump` returned."""
        known = cls()
        for known._room, known._left, bits in layers:
            known._layers.append(bytearray(bits))
        return known


def _numbers(name: str) -> tuple[int, int]:
    """Return where the bits of an id begin and how far apart they lie (double hashing)."""
    digest = hashlib.blake2b(name.encode("utf-8", "surrogatepass"), digest_size=16).digest()
    return int.from_bytes(digest[:8], "little"), int.from_bytes(digest[8:], "little") | 1
