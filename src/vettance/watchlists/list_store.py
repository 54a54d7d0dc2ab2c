"""The shelf: the files of list versions and indexes in the data folder.

    watchlists/<source>/<version>.jsonl.gz   the entities of one version, one JSON object a line
    watchlists/index/<id>/                   an index, mapped into memory by every process
    watchlists/changes.<…>/                  an index over what is new on the lists, while it is searched
    watchlists/lock                          held by the importer, so that two imports never mix
    watchlists/tenants/<tenant>/             the same again, with the lists of one tenant

A version is named by the first 16 hex digits of the SHA-256 of its entities, so the same list is the same
version however it was packed, and a file on the shelf never changes.
"""

import fcntl
import gzip
import hashlib
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import msgspec

from vettance.telemetry.logs import logger, logs_are_configured
from vettance.watchlists.entity import Entity
from vettance.watchlists.sources.formats import SourceFault

_log = logger()
#: What the self check of an index found, in its folder.
SELF_CHECK_FILE = "self_check.json"

FOLDER = "watchlists"
#: The owner of the lists that everybody is screened against; other owners are ids of tenants.
EVERYBODY = "*"
_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder(Entity)
_CHUNK_BYTES = 1 << 20
#: Indexes kept besides the current one: a process may still be opening the one before.
_INDEXES_KEPT = 2
_LEFT_BEHIND_S = 86_400


class Version(msgspec.Struct, frozen=True, kw_only=True):
    """One version of one list: what it is called, how much it holds and of which files it was read."""

    source: str
    version: str
    entities: int
    names: int
    #: File name → SHA-256 of what was read, in hexadecimal.
    files: Mapping[str, str] = {}
    #: The moment that the publisher states its data to be of; None where its files state none.
    data_as_of_ms: int | None = None


def shelf_path(data: Path, owner: str = EVERYBODY) -> Path:
    """Return where an owner's watchlists belong in a data folder, be they there or not."""
    return data / FOLDER if owner == EVERYBODY else data / FOLDER / "tenants" / owner


def shelf_of(data: Path, owner: str = EVERYBODY) -> Path:
    """Return the folder of an owner's watchlists in a data folder, made if it is not there."""
    folder = shelf_path(data, owner)
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return folder


@contextmanager
def locked(shelf: Path) -> Iterator[None]:
    """Lock the folder against other importers; waits for the one that has the lock."""
    with (shelf / "lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def put(
    shelf: Path,
    source: str,
    entities: Iterable[Entity],
    paths: Sequence[Path],
    progress: Callable[[int], None] = lambda _: None,
) -> Version:
    """Write the entities of a list onto the shelf and return the version they are.

    Entities that bear an id twice get a number behind it, in their order. Raises what reading raises, and
    then leaves nothing behind.
    """
    folder = shelf / source
    folder.mkdir(parents=True, exist_ok=True)
    digest, counts, seen = hashlib.sha256(), [0, 0], dict[str, int]()
    handle, draft = tempfile.mkstemp(dir=folder, suffix=".draft")
    try:
        with os.fdopen(handle, "wb") as raw, gzip.GzipFile("", "wb", 5, raw, mtime=0) as packed:
            for one in entities:
                entity = _unique(one, seen)
                line = _encoder.encode(entity) + b"\n"
                digest.update(line)
                packed.write(line)
                counts[0] += 1
                counts[1] += len(entity.names)
                if not counts[0] % 500:
                    progress(counts[0])
        progress(counts[0])
        version = digest.hexdigest()[:16]
        _settle(Path(draft), version_path(shelf, source, version))
    except BaseException:
        Path(draft).unlink(missing_ok=True)
        with suppress(OSError):
            folder.rmdir()  # Only where this was to be the first version.
        raise
    files = {path.name: _file_digest(path) for path in paths}
    return Version(source=source, version=version, entities=counts[0], names=counts[1], files=files)


def _unique(entity: Entity, seen: dict[str, int]) -> Entity:
    times = seen[entity.id] = seen.get(entity.id, 0) + 1
    return entity if times == 1 else msgspec.structs.replace(entity, id=f"{entity.id}~{times}")


def _settle(draft: Path, final: Path) -> None:
    with draft.open("rb") as file:
        os.fsync(file.fileno())
    draft.replace(final)
    folder = os.open(final.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def _file_digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def version_path(shelf: Path, source: str, version: str) -> Path:
    """Return where a version lies."""
    return shelf / source / f"{version}.jsonl.gz"


def take(shelf: Path, source: str, version: str) -> Iterator[Entity]:
    """Yield the entities of a version; raises `SourceFault` when its file is gone or damaged."""
    path = version_path(shelf, source, version)
    try:
        with gzip.open(path, "rb") as file:
            for line in file:
                yield _decoder.decode(line)
    except (OSError, EOFError, msgspec.DecodeError) as error:
        raise SourceFault(f"{path} cannot be read: {error}") from None


def index_id(versions: Mapping[str, str], owner: str = EVERYBODY) -> str:
    """Return the name of the index over these versions, made by this code."""
    # Numpy and all of matching: too much for commands that build nothing.
    from vettance.watchlists.index_build import FORMAT
    from vettance.watchlists.match import ALGORITHM

    text = f"{FORMAT}|{ALGORITHM}|" + "|".join(f"{name}={versions[name]}" for name in sorted(versions))
    if owner != EVERYBODY:
        text = f"{owner}|{text}"
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def index_path(shelf: Path, identity: str) -> Path:
    """Return the folder of an index."""
    return shelf / "index" / identity


def ensure_index(
    shelf: Path,
    versions: Mapping[str, str],
    progress: Callable[[str], None] = lambda _: None,
    owner: str = EVERYBODY,
) -> str:
    """Build the index over these versions unless it is there; return its name."""
    from vettance.watchlists.index import Index
    from vettance.watchlists.index_build import build_index
    from vettance.watchlists.self_check import check_names

    identity = index_id(versions, owner)
    folder = index_path(shelf, identity)
    if not folder.is_dir():
        entities = (entity for name in versions for entity in take(shelf, name, versions[name]))
        build_index(folder, entities, versions, progress)
        progress("names that find themselves")
        check = check_names(Index(folder))
        (folder / SELF_CHECK_FILE).write_bytes(msgspec.json.encode(check))
        if logs_are_configured():
            # Names may be of a tenant's own list, so the file alone has them.
            say = _log.warning if check.missed else _log.info
            say("index_checked", index=identity, searched=check.searched, missed=check.missed)
    return identity


def drop_old_indexes(shelf: Path, current: str) -> None:
    """Remove indexes that nobody opens any more; a process that has one mapped keeps it mapped."""
    folders = sorted(
        (path for path in (shelf / "index").iterdir() if path.is_dir() and path.name != current),
        key=lambda path: path.stat().st_mtime,
        reverse=True,
    )
    for folder in folders[_INDEXES_KEPT:]:
        shutil.rmtree(folder, ignore_errors=True)
    for folder in (*shelf.glob("changes.*"), *shelf.glob("fetch.*")):
        # What a process that was killed could not tidy up.
        if time.time() - folder.stat().st_mtime > _LEFT_BEHIND_S:
            shutil.rmtree(folder, ignore_errors=True)


class Difference(msgspec.Struct, frozen=True):
    """What changed between two versions, by entity id; names are for people."""

    added: dict[str, str]
    removed: dict[str, str]
    changed: dict[str, str]


def difference(old: Iterable[Entity], new: Iterable[Entity]) -> Difference:
    """Compare two versions of a list entity by entity."""
    before = {entity.id: entity for entity in old}
    added: dict[str, str] = {}
    changed: dict[str, str] = {}
    for entity in new:
        known = before.pop(entity.id, None)
        if known is None:
            added[entity.id] = entity.name
        elif known != entity:
            changed[entity.id] = entity.name
    return Difference(added, {key: entity.name for key, entity in before.items()}, changed)
