"""Room for large answers that clients have not read, shared by tenants and asked for before one is built."""

import re
from collections import OrderedDict
from typing import Final

from vettance.errors import Unavailable
from vettance.limits.shares import DynamicShares
from vettance.web.paging import PageQuery

#: Large answers that clients have not read yet may hold so many bytes at one time, of which tenants and their
#: keys have shares. Others, and what is written of large ones at a time, are held by their connection alone.
UNREAD_BYTES_MAX: Final = 128 * 1024 * 1024
SMALL_ANSWER_BYTES_MAX: Final = 64 * 1024
#: Tenants and paths whose answers were large, a hundred bytes each; beyond this the oldest is forgotten.
_KNOWN_MAX: Final = 4_096
_LIMIT: Final = re.compile(rb"(?:^|&)limit=([0-9]{1,3})(?:&|$)")
_UNREAD: Final = "You have not read as many large answers as can be held for you. Read them, or ask for less."


class AnswerRoom:
    """Divides the room. An answer takes it before it is built, as large as it is expected to be: for each
    row that is asked for as many bytes as the last answer of the same tenant and path had, and no more in all
    than its largest one: what was answered once is not refused for what was only expected. So a client that
    asks again and again and reads nothing has no pages built for it that there is no room for.
    """

    def __init__(self, bytes_max: int) -> None:
        self._shares = DynamicShares(bytes_max)
        #: By tenant and path: the bytes of a row in the last answer, and those of the largest answer.
        self._known: OrderedDict[tuple[str, str], tuple[float, int]] = OrderedDict()

    def reserve(self, path: str, query: bytes, holders: tuple[str, ...]) -> int:
        """Take the room that an answer is expected to need, and return how much. Raises `Unavailable`."""
        known = self._known.get((holders[0], path)) if holders else None
        if known is None:
            return 0
        row_bytes, largest = known
        return self.take(min(int(row_bytes * _rows(query)), largest), holders)

    def note(self, path: str, query: bytes, holders: tuple[str, ...], size: int) -> None:
        """Remember how large an answer was. Small ones are remembered only where large ones were."""
        if not holders:
            return
        place = holders[0], path
        _, largest = self._known.get(place, (0.0, 0))
        if size > SMALL_ANSWER_BYTES_MAX or largest:
            self._known[place] = size / _rows(query), max(size, largest)
            self._known.move_to_end(place)
            if len(self._known) > _KNOWN_MAX:
                self._known.popitem(last=False)

    def take(self, size: int, holders: tuple[str, ...]) -> int:
        """Take room for an answer, and return how much; a small one needs none. Raises `Unavailable`."""
        if size <= SMALL_ANSWER_BYTES_MAX:
            return 0
        if not self._shares.take(size, *holders):
            raise Unavailable(_UNREAD)
        return size

    def give(self, size: int, holders: tuple[str, ...]) -> None:
        """Give back what was taken."""
        if size:
            self._shares.give(size, *holders)


def _rows(query: bytes) -> int:
    """Return how many rows a query asks for."""
    found = _LIMIT.search(query)
    return max(1, int(found[1])) if found is not None else PageQuery().limit
