"""The board: numbers that every process of one server counts up, in memory that they share.

Each process has a slot of its own and nobody else writes to it, so counting takes no lock: an addition to a
64-bit word. Any process can add the slots up. The memory is a file without a name (nothing
of it ever goes to a disk, where writing pages back would hold up a decision); a child inherits its
descriptor, so its counts are kept when it dies and go on when it is started again.
"""

import mmap
import os
import tempfile
from collections.abc import Mapping
from typing import Final

#: Processes of one server that count: more than there will be on any machine.
SLOTS: Final = 64
#: The slot of the indexer, of which a server has one at most.
INDEXER_SLOT: Final = SLOTS - 1
#: 64-bit words of a slot: one page of 8 KiB. `meters.py` says what is where.
WORDS: Final = 1024
#: Processes that may search for one process; with more processors, several processes answer.
SEARCHERS_MAX: Final = 16
_WORD_BYTES: Final = 8
_SLOT_BYTES: Final = WORDS * _WORD_BYTES

#: The variable by which a child learns its place: `DESCRIPTOR.SLOT`. Set by its parent, never by people.
VARIABLE: Final = "VETTANCE_BOARD"


class SharedBoard:
    """The shared memory. `descriptor` is to be inherited by children; a private board has none."""

    def __init__(self, descriptor: int | None) -> None:
        self.descriptor = descriptor
        size = SLOTS * _SLOT_BYTES
        self._memory = mmap.mmap(-1 if descriptor is None else descriptor, size)
        self._words = memoryview(self._memory).cast("Q")

    @classmethod
    def shared(cls) -> "SharedBoard":
        """Make a board that children can inherit."""
        if hasattr(os, "memfd_create"):
            descriptor = os.memfd_create("vettance-board")
        else:
            with tempfile.TemporaryFile() as file:
                descriptor = os.dup(file.fileno())
        os.ftruncate(descriptor, SLOTS * _SLOT_BYTES)
        return cls(descriptor)

    def slot(self, number: int) -> memoryview:
        """Return the words of one process."""
        if not 0 <= number < SLOTS:
            raise ValueError(f"there are {SLOTS} slots")
        return self._words[number * WORDS : (number + 1) * WORDS]

    @property
    def descriptors(self) -> tuple[int, ...]:
        """What a child must inherit: one descriptor, or none."""
        return () if self.descriptor is None else (self.descriptor,)

    def place(self, slot: int) -> dict[str, str]:
        """Return the variable that tells a child its slot; pass `descriptors` on to it as well."""
        return {} if self.descriptor is None else {VARIABLE: f"{self.descriptor}.{slot}"}


def attach(environ: Mapping[str, str] = os.environ) -> tuple[SharedBoard, int]:
    """Return the board and the slot that the parent gave this process; else a board of its own and slot 0."""
    descriptor, dot, slot = environ.get(VARIABLE, "").partition(".")
    if dot and descriptor.isdigit() and slot.isdigit() and int(slot) < SLOTS:
        try:
            return SharedBoard(int(descriptor)), int(slot)
        except (OSError, ValueError):
            pass  # Counting is not worth failing for: this process then counts for itself.
    return SharedBoard.shared(), 0


def deliverer_slot(slot: int) -> int:
    """Return the slot of the process that delivers for a web process."""
    return slot + SLOTS // 2
