"""Backups: a folder with store, watchlists and a manifest, made whole or not at all, verified, restored.

    manifest.json          what is in it, with the size and the SHA-256 of every file
    vettance.db            the store as it was at one moment
    watchlists/…           the versions of the lists (the index over them is built again)
    secret.key             the secret of the deployment, only when it was asked for

Memory snapshots are left out: they are rebuilt from the log.
"""

import hashlib
import os
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Final

import msgspec

from vettance import __version__
from vettance.db.connection import BESIDE, STORE_FILE, failure, open_reader
from vettance.db.engine import Row, Statement, StoreDown
from vettance.db.sqlite_backup import Contents, check_store, copy_store
from vettance.ops.sql import select_table
from vettance.settings.secret_key import SECRET_FILE
from vettance.tenants.sql import select_any_key, select_secret_digest
from vettance.tenants.vault import secret_digest
from vettance.watchlists.list_store import FOLDER as WATCHLISTS
from vettance.watchlists.list_store import shelf_path, version_path
from vettance.watchlists.sql import select_all_current

MANIFEST: Final = "manifest.json"
FORMAT: Final = 1
#: What a data folder that is in use holds; the secret may be there before its store.
_TAKEN: Final = (STORE_FILE, *(STORE_FILE + end for end in BESIDE), "memory", WATCHLISTS)
#: The schema from which on the versions of lists have owners.
_OWNED: Final = 9
_CHUNK_BYTES: Final = 1 << 20

#: Told what is being done, how far it has come and how far it goes.
Progress = Callable[[str, int, int], None]


class BackupFault(Exception):
    """A backup that cannot be made, trusted or restored; the message says why. Nothing was changed."""


class BackupFile(msgspec.Struct, frozen=True, rename="camel"):
    """One file of a backup."""

    bytes: int
    sha256: str


class Manifest(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """What a backup is. `secret` is a digest by which the right secret is known, and tells nothing of it."""

    format: int
    version: str
    made_at: str
    schema: int
    events: int
    newest_at_ms: int | None
    secret: str
    files: dict[str, BackupFile]
    tables: dict[str, int] = {}  # Table → its rows; backups of the first versions do not tell.


def make_backup(
    data: Path, target: Path, secret: bytes | None, made_at: str, progress: Progress, *, with_secret: bool
) -> Manifest:
    """Make a backup of a data folder, be a server running or not.

    `secret` is the one that is here, if one is: a store knows its own by a digest. The backup is written
    next to `target` and takes that name only when it is complete and was checked. Raises `BackupFault`,
    `StoreDown` or `OSError`.
    """
    if target.exists():
        raise BackupFault(f"{target} is there already; a backup never overwrites anything")
    if not (data / STORE_FILE).is_file():
        raise BackupFault(f"{data} holds no store")
    if not target.absolute().parent.is_dir():
        raise BackupFault(f"{target.absolute().parent} is no folder")
    draft = target.with_name(f".{target.name}.{os.getpid()}.draft")
    draft.mkdir(mode=0o700)
    try:
        copy_store(data / STORE_FILE, draft / STORE_FILE, lambda done, of: progress("copying", done, of))
        progress("checking", 0, 1)
        contents = check_store(draft / STORE_FILE)
        for path in sorted((data / WATCHLISTS).rglob("*.jsonl.gz")):
            copy = draft / path.relative_to(data)
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, copy)
        digest = _digest_of(draft / STORE_FILE, secret, is_wanted=with_secret)
        if with_secret and secret is not None:
            _write_secret(draft / SECRET_FILE, secret)
        manifest = Manifest(
            format=FORMAT,
            version=__version__,
            made_at=made_at,
            schema=contents.schema,
            events=contents.events,
            newest_at_ms=contents.newest_at_ms,
            tables=dict(contents.tables),
            secret=digest,
            files={str(path.relative_to(draft)): _entry(path) for path in _files(draft)},
        )
        text = msgspec.json.format(msgspec.json.encode(manifest), indent=2)
        (draft / MANIFEST).write_bytes(text + b"\n")
        _settle(draft)
        draft.rename(target)
        _sync(target.absolute().parent)
    except BaseException:
        shutil.rmtree(draft, ignore_errors=True)
        raise
    return manifest


def needs_secret(store: Path) -> bool:
    """Tell whether something in a store hangs on a secret already. Raises `StoreDown`."""
    return _recorded(store) is not None or bool(_ask(store, select_any_key()))


def _digest_of(store: Path, secret: bytes | None, *, is_wanted: bool) -> str:
    """Return the digest of the secret that a store was made with."""
    digest = _recorded(store) or (None if secret is None else secret_digest(secret))
    if digest is None or (is_wanted and secret is None):
        raise BackupFault(
            f"the secret of this store is not here: set VETTANCE_SECRET, or put {SECRET_FILE} back"
        )
    if is_wanted and secret is not None and digest != secret_digest(secret):
        raise BackupFault("the secret that is here is not the one that this store was made with")
    return digest


def _recorded(store: Path) -> str | None:
    has_place = _ask(store, select_table("deployment"))
    rows = _ask(store, select_secret_digest()) if has_place else []
    return rows[0][0] if rows else None


def _ask(store: Path, statement: Statement) -> list[Row]:
    try:
        with closing(open_reader(store)) as reader:
            return reader.execute(statement.sql, statement.args).fetchall()
    except sqlite3.Error as error:
        raise StoreDown(f"{store}: {failure(error)[1]}") from None


def read_manifest(backup: Path) -> Manifest:
    """Read what a backup says it is. Raises `BackupFault`."""
    try:
        manifest = msgspec.json.decode((backup / MANIFEST).read_bytes(), type=Manifest)
    except OSError:
        raise BackupFault(f"{backup} is no backup: it has no {MANIFEST}") from None
    except msgspec.DecodeError as error:
        raise BackupFault(f"{backup / MANIFEST} cannot be read: {error}") from None
    if manifest.format != FORMAT:
        raise BackupFault(f"{backup} has format {manifest.format}; this program reads {FORMAT}")
    for name in manifest.files:
        if Path(name).is_absolute() or ".." in Path(name).parts:
            raise BackupFault(f"{backup / MANIFEST} names a file outside of the backup")
    return manifest


def check_backup(backup: Path, progress: Progress) -> Manifest:
    """Hold every file of a backup against its manifest, and look at every page of the store.

    Raises `BackupFault` or `StoreDown`.
    """
    manifest = read_manifest(backup)
    for number, (name, entry) in enumerate(manifest.files.items()):
        progress("verifying", number, len(manifest.files))
        path = backup / name
        if not path.is_file():
            raise BackupFault(f"{path} is missing")
        if path.stat().st_size != entry.bytes or _entry(path) != entry:
            raise BackupFault(f"{path} is not what was backed up")
    found = check_store(backup / STORE_FILE)
    tables = manifest.tables or found.tables
    if found != Contents(manifest.schema, manifest.events, manifest.newest_at_ms, tables):
        raise BackupFault(f"{backup / STORE_FILE} does not hold what its manifest says")
    return msgspec.structs.replace(manifest, tables=dict(tables))


def missing_lists(folder: Path, schema: int) -> list[str]:
    """Name the files of lists that count in a store, of every owner, and that are not next to it."""
    if schema < _OWNED:
        return []
    rows = _ask(folder / STORE_FILE, select_all_current())
    paths = (version_path(shelf_path(folder, owner), source, version) for owner, source, version, *_ in rows)
    return [str(path.relative_to(folder)) for path in paths if not path.is_file()]


def restore_backup(
    backup: Path, data: Path, secret: bytes | None, progress: Progress, *, other_secret: bool
) -> Manifest:
    """Put a backup into a data folder that holds no store. Raises `BackupFault`, `StoreDown` or `OSError`.

    `secret` is the one this deployment has, if it has one. The store gets its name last, so that a restore
    that was cut off is not mistaken for a whole one.
    """
    manifest = check_backup(backup, progress)
    taken = [name for name in _TAKEN if (data / name).exists()]
    if taken:
        raise BackupFault(f"{data} holds {taken[0]} already; a restore never overwrites anything")
    has_secret = SECRET_FILE in manifest.files
    if not other_secret:
        _check_secret(manifest, secret, has_secret=has_secret)
    data.mkdir(mode=0o700, parents=True, exist_ok=True)
    draft = data / f".{STORE_FILE}.restoring"
    try:
        for number, name in enumerate(name for name in manifest.files if name.startswith(WATCHLISTS + "/")):
            progress("restoring", number, len(manifest.files))
            (data / name).parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            shutil.copyfile(backup / name, data / name)
        if has_secret and secret is None and not other_secret:
            _write_secret(data / SECRET_FILE, bytes.fromhex((backup / SECRET_FILE).read_text("ascii")))
        shutil.copyfile(backup / STORE_FILE, draft)
        _settle(data)
        draft.rename(data / STORE_FILE)
        _sync(data)
    except BaseException:
        draft.unlink(missing_ok=True)
        shutil.rmtree(data / WATCHLISTS, ignore_errors=True)
        raise
    return manifest


def _check_secret(manifest: Manifest, secret: bytes | None, *, has_secret: bool) -> None:
    if secret is None and not has_secret:
        raise BackupFault(
            f"the secret of this backup is not here: set VETTANCE_SECRET, or put {SECRET_FILE} into the data "
            "folder first (--other-secret goes on without it: API keys and webhooks must then be made anew)"
        )
    if secret is not None and secret_digest(secret) != manifest.secret:
        raise BackupFault(
            "the secret that is here is not the one of this backup: no API key would work and no webhook "
            "could be signed (--other-secret goes on all the same)"
        )


def _files(folder: Path) -> Iterator[Path]:
    return (path for path in sorted(folder.rglob("*")) if path.is_file())


def _entry(path: Path) -> BackupFile:
    with path.open("rb") as file:
        return BackupFile(path.stat().st_size, hashlib.file_digest(file, "sha256").hexdigest())


def _write_secret(path: Path, secret: bytes) -> None:
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(secret.hex() + "\n")


def _settle(folder: Path) -> None:
    """Bring every file of a folder, and their names, to the disk."""
    for path in _files(folder):
        _sync(path)
    for path in folder.rglob("*"):
        if path.is_dir():
            _sync(path)
    _sync(folder)


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
