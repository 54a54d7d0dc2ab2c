"""The store of snapshots: files, each named by the event of the log up to which it reaches."""

import contextlib
import os
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Final, NamedTuple

#: Snapshots of before 2026-11-22 name no event, and are not read any more.
_NAME: Final = re.compile(
    r"(?P<tenant>[A-Za-z0-9_]+)\.(?P<seq>[0-9]{1,19})(?:\.(?P<event>[A-Za-z0-9_]+))?\.memory"
)
_PIECE_BYTES: Final = 1024 * 1024
#: A draft that nobody has added to for so long is of a process that died. Younger ones may be those of
#: other processes of the same data folder.
DRAFT_S_MAX: Final = 600.0


class Snapshot(NamedTuple):
    """A stored snapshot: how far in the log it reaches, and the id of the event at that place."""

    tenant: str
    seq: int
    event: str | None
    path: Path


class Draft:
    """A snapshot being written. It appears in the store whole, when it is `finish`ed, or not at all."""

    def __init__(self, folder: Path, tenant: str, seq: int, event: str) -> None:
        self._folder = folder
        self._tenant = tenant
        self._name = f"{tenant}.{seq}.{event}.memory"
        self._path = folder / f".{self._name}.{os.getpid()}"
        self._file: IO[bytes] = self._path.open("wb")

    def write(self, piece: bytes) -> None:
        """Append a piece."""
        self._file.write(piece)

    def finish(self) -> None:
        """Put the snapshot into the store, durably, and remove the tenant's older ones."""
        self._file.flush()
        os.fsync(self._file.fileno())
        self._file.close()
        self._path.replace(self._folder / self._name)
        folder = os.open(self._folder, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
        for one in _snapshots(self._folder, self._tenant)[1:]:
            one.path.unlink(missing_ok=True)

    def abandon(self) -> None:
        """Leave no trace of the draft."""
        self._file.close()
        self._path.unlink(missing_ok=True)


class SnapshotStore:
    """The folder of snapshots of one deployment."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def draft(self, tenant: str, seq: int, event: str) -> Draft:
        """Begin a snapshot of a tenant's memory that has seen the log up to an event. Raises `OSError`."""
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        return Draft(self._folder, tenant, seq, event)

    def newest(self, tenant: str) -> Snapshot | None:
        """Return the newest snapshot of a tenant."""
        found = _snapshots(self._folder, tenant)
        return found[0] if found else None

    def remove(self, tenant: str) -> None:
        """Remove every snapshot of a tenant."""
        for one in _snapshots(self._folder, tenant):
            one.path.unlink(missing_ok=True)

    def sweep(self) -> None:
        """Remove drafts that a crash left behind."""
        before_s = time.time() - DRAFT_S_MAX
        for path in self._folder.glob(".*"):
            # Another process of the same data folder may be sweeping, too.
            with contextlib.suppress(FileNotFoundError):
                if path.stat().st_mtime < before_s:
                    path.unlink()


def pieces(path: Path) -> Iterator[bytes]:
    """Read a snapshot file piece by piece."""
    with path.open("rb") as file:
        while piece := file.read(_PIECE_BYTES):
            yield piece


def _snapshots(folder: Path, tenant: str) -> list[Snapshot]:
    """Return a tenant's snapshots, the furthest first."""
    try:
        names = list(folder.iterdir())
    except FileNotFoundError:
        return []
    matches = ((_NAME.fullmatch(path.name), path) for path in names)
    found = [
        Snapshot(match["tenant"], int(match["seq"]), match["event"], path)
        for match, path in matches
        if match is not None and match["tenant"] == tenant
    ]
    return sorted(found, key=lambda one: -one.seq)
