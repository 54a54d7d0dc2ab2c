"""Asking: what is said between a process that waits for a search and one that makes it.

A message is its length in four bytes, big end first, and that many bytes of MessagePack.
"""

from typing import Final

import msgspec

from vettance.watchlists.match import Subject

LENGTH_BYTES: Final = 4
#: In a word, why a search was not made: its time was up, an index could not be opened, or it went wrong.
LATE: Final = "late"
INDEX_GONE: Final = "index gone"
FAILED: Final = "the search failed"


class SearchCall(msgspec.Struct, frozen=True, array_like=True):
    """A search that somebody waits for until `deadline` (of `time.monotonic`, which processes share).

    The first of the folders holds the index whose word counts matter.
    """

    deadline: float
    folders: list[str]
    subject: Subject


def framed(body: bytes) -> bytes:
    """Return a message with its length in front."""
    return len(body).to_bytes(LENGTH_BYTES) + body
