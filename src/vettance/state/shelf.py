"""The shelf: snapshots of memories as files, each named by how far in the log it reaches."""

import contextlib
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Final

_NAME: Final = re.compile(r"(?P<tenant>[A-Za-z0-9_]+)\.(?P<seq>[0-9]{1,19})\.memory")
_PIECE_BYTES: Final = 1024 * 1024


class Draft:
    """A snapshot being written. It appears on the shelf whole, when it is `finish`ed, or not at all."""

    def __init__(self, folder: Path, tenant: str, seq: int) -> None:
        self._folder = folder
        self._tenant = tenant
        self._name = f"{tenant}.{seq}.memory"
        self._path = folder / f".{self._name}.{os.getpid()}"
        self._file: IO[bytes] = self._path.open("wb")

    def write(self, piece: bytes) -> None:
        """Append a piece."""
        self._file.write(piece)

    def finish(self) -> None:
        """Put the snapshot on the shelf, durably, and take the tenant's older ones away."""
        self._file.flush()
        os.fsync(self._file.fileno())
        self._file.close()
        self._path.replace(self._folder / self._name)
        folder = os.open(self._folder, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
        for _, _, path in _snapshots(self._folder, self._tenant)[1:]:
            path.unlink(missing_ok=True)

    def abandon(self) -> None:
        """Leave no trace of the draft."""
        self._file.close()
        self._path.unlink(missing_ok=True)


class Shelf:
    """The folder of snapshots of one deployment."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def draft(self, tenant: str, seq: int) -> Draft:
        """Begin a snapshot of a tenant's memory that has seen the log up to `seq`. Raises `OSError`."""
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        return Draft(self._folder, tenant, seq)

    def newest(self, tenant: str, seq_max: int) -> tuple[int, Path] | None:
        """Return (seq, file) of the newest snapshot of a tenant, if it reaches no further than the log."""
        found = _snapshots(self._folder, tenant)
        if not found or found[0][1] > seq_max:
            return None
        return found[0][1], found[0][2]

    def remove(self, tenant: str) -> None:
        """Take every snapshot of a tenant away."""
        for _, _, path in _snapshots(self._folder, tenant):
            path.unlink(missing_ok=True)

    def sweep(self) -> None:
        """Remove drafts that a crash left behind; call it when no other process writes here."""
        with contextlib.suppress(FileNotFoundError):
            for path in self._folder.iterdir():
                if path.name.startswith("."):
                    path.unlink(missing_ok=True)


def pieces(path: Path) -> Iterator[bytes]:
    """Read a snapshot file piece by piece."""
    with path.open("rb") as file:
        while piece := file.read(_PIECE_BYTES):
            yield piece


def _snapshots(folder: Path, tenant: str) -> list[tuple[str, int, Path]]:
    """Return (tenant, seq, file) of a tenant's snapshots, the furthest first."""
    try:
        names = list(folder.iterdir())
    except FileNotFoundError:
        return []
    matches = ((_NAME.fullmatch(path.name), path) for path in names)
    found = [(match["tenant"], int(match["seq"]), path) for match, path in matches if match is not None]
    return sorted((one for one in found if one[0] == tenant), key=lambda one: -one[1])
