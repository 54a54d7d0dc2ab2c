"""The quota journal: what each tenant used of its hour, in a file that outlives the process.

The file is mapped into memory, so that a count costs no system call and is kept by the kernel when the
process is killed. It is never flushed: after a failure of the machine the store has what was saved to it.
"""

import errno
import mmap
import os
from hashlib import blake2b
from pathlib import Path
from typing import Final

#: Tenants beyond so many have what the store has. A record takes 16 bytes: the tenant as a number, its count.
TENANTS_MAX: Final = 65_536
_WORDS: Final = 2
_WORD_BYTES: Final = 8
_COUNT_BITS: Final = 32
_COUNT_MAX: Final = (1 << _COUNT_BITS) - 1


class QuotaJournal:
    """Counts of an hour by tenant. Hour and count are one word, so that a kill leaves no half of a change."""

    def __init__(self, path: Path, tenants: int = TENANTS_MAX) -> None:
        """Open the file of a journal, or begin one. Raises `OSError`."""
        size = tenants * _WORDS * _WORD_BYTES
        file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            if os.fstat(file).st_size != size:
                os.ftruncate(file, 0)
                # A hole would be filled while it is mapped, and a full disk would then kill the process.
                if os.pwrite(file, bytes(size), 0) != size:
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            self._words = memoryview(mmap.mmap(file, size)).cast("Q")
        finally:
            os.close(file)
        self._names: dict[int, int] = {}
        for at in range(0, len(self._words), _WORDS):
            if not self._words[at]:
                break
            self._names.setdefault(self._words[at], at)
        self._end = len(self._names) * _WORDS
        self._places: dict[str, int] = {}

    def find(self, tenant: str, hour: int) -> int:
        """Return what a tenant used of an hour (Unix hours), as far as this file knows."""
        word = self._words[at + 1] if (at := self._place(tenant)) >= 0 else 0
        return word & _COUNT_MAX if word >> _COUNT_BITS == hour else 0

    def note(self, tenant: str, hour: int, used: int) -> None:
        """Note what a tenant has used of an hour."""
        at = self._places.get(tenant)
        if at is None:
            at = self._place(tenant)
        if at >= 0:
            self._words[at + 1] = hour << _COUNT_BITS | used

    def _place(self, tenant: str) -> int:
        """Return where the record of a tenant is; -1 where there is no room for one."""
        at = self._places.get(tenant)
        if at is not None:
            return at
        name = int.from_bytes(blake2b(tenant.encode(), digest_size=8).digest(), "little") or 1
        at = self._names.get(name)
        if at is None and self._end >= len(self._words):
            return -1
        if at is None:
            at, self._end = self._end, self._end + _WORDS
            self._words[at] = name
            self._names[name] = at
        self._places[tenant] = at
        return at
