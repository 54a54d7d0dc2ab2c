"""The trail: which callers were admitted in the last minute, in a file that outlives the process.

The file is mapped into memory, so that a record costs no system call and is kept by the kernel when the
process is killed. It is never flushed to disk: after a failure of the machine its last minute is over anyway.
"""

import errno
import mmap
import os
import struct
from array import array
from pathlib import Path
from typing import Final

# More than 8,700 a second, kept up for a minute, which no process admits; it would forget some of the oldest.
RECORDS: Final = 1 << 19
_RECORD: Final = struct.Struct("<Qd")


class ThrottleJournal:
    """A ring of (caller, moment) with room for `records`; moments never run backwards, in seconds since boot.

    A caller is a number of 64 bits. A moment below zero takes the newest of that caller back.
    """

    def __init__(self, path: Path, records: int = RECORDS) -> None:
        """Open the file of a trail, or begin one. Raises `OSError`."""
        size = records * _RECORD.size
        file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            if os.fstat(file).st_size != size:
                os.ftruncate(file, 0)
                # A hole would be filled while it is mapped, and a full disk would then kill the process.
                if os.pwrite(file, bytes(size), 0) != size:
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            self._map = mmap.mmap(file, size)
        finally:
            os.close(file)
        self._end = size
        self._at = 0

    def restore(self, since_s: float, now_s: float) -> "dict[int, array[float]]":
        """Return the moments in (since_s, now_s] of each caller, oldest first, and go on behind the newest.

        A trail that tells of the future was written before the machine was started anew; it is forgotten.
        """
        told = self._map[: self._used()]
        newest_s, newest = 0.0, -1
        for place, (_, moment_s) in enumerate(_RECORD.iter_unpack(told)):
            if abs(moment_s) >= newest_s:
                newest_s, newest = abs(moment_s), place
        if newest_s > now_s:
            self._map[:] = bytes(self._end)
            told, newest = b"", -1
        split = (newest + 1) * _RECORD.size
        self._at = split % self._end
        found: dict[int, array[float]] = {}
        for part in (told[split:], told[:split]):
            for caller, moment_s in _RECORD.iter_unpack(part):
                if moment_s > since_s:
                    found.setdefault(caller, array("d")).append(moment_s)
                elif -moment_s > since_s and found.get(caller):
                    found[caller].pop()
        return found

    def note(self, caller: int, moment_s: float) -> None:
        """Add a record over the oldest one."""
        at = self._at
        _RECORD.pack_into(self._map, at, caller, moment_s)
        at += _RECORD.size
        self._at = at if at < self._end else 0

    def _used(self) -> int:
        """Return how many bytes from the beginning may hold records: all of them once the ring has closed."""
        used = len(self._map[:].rstrip(b"\0"))
        return -(-used // _RECORD.size) * _RECORD.size
