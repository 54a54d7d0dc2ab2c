"""Connections to the store file: every setting that durability or speed depends on."""

import hashlib
import os
import sqlite3
from pathlib import Path

from vettance.db.engine import StoreDown

STORE_FILE = "vettance.db"
#: The files that SQLite keeps next to a store. It would replay them over any file of the name.
BESIDE = ("-wal", "-shm", "-journal")

# Measured with rows of about 1 KB: pages of 8 KiB write a third less to the log than pages of 4 KiB
# (more rows share a page) and commit single rows faster than pages of 16 KiB.
PAGE_BYTES = 8192
# The writer appends; what it needs in memory are the right edges of a few trees.
WRITER_CACHE_KIB = 8192
# Each reader keeps its own, and beneath it the system keeps the file: more is mostly the same pages again.
READER_CACHE_KIB = 1024
STATEMENTS_CACHED = 512
# Above this size of the log the writer is held for the moment that moving its last pages takes, so that the
# log starts over. It bounds the disk space, and what must be read again after a crash. The file keeps its
# size: while it grows, each commit waits for the file system's journal too (measured: 3.9 ms, else 0.7 ms).
LOG_BYTES_MAX = 64 * 1024 * 1024

# SQLite sleeps up to 0.1 s between two looks at a lock that another process holds. Short waits, repeated by
# ourselves, find the gap between two commits of a busy server far sooner.
LOCK_WAIT_MS = 10
READ_LOCK_WAIT_S = 5.0

#: Primary result codes (sqlite.org/rescode.html) that say the store failed, not the statement.
DOWN: dict[int, str] = {
    sqlite3.SQLITE_INTERNAL: "the store failed inside",
    sqlite3.SQLITE_PERM: "the store file may not be opened",
    sqlite3.SQLITE_BUSY: "another process holds the store",
    sqlite3.SQLITE_LOCKED: "another connection holds the store",
    sqlite3.SQLITE_NOMEM: "the store is out of memory",
    sqlite3.SQLITE_READONLY: "the store file is read-only",
    sqlite3.SQLITE_INTERRUPT: "the request to the store took too long",
    sqlite3.SQLITE_IOERR: "the disk failed",
    sqlite3.SQLITE_CORRUPT: "the store file is damaged",
    sqlite3.SQLITE_FULL: "the disk is full",
    sqlite3.SQLITE_CANTOPEN: "the store file cannot be opened",
    sqlite3.SQLITE_PROTOCOL: "the locks of the store failed",
    sqlite3.SQLITE_NOTADB: "the file is not a Vettance store",
}
#: SQLite says that it cannot open the file, as it cannot make the log next to it.
_NOT_WRITTEN = (
    "this user cannot write to the store and its folder, as every command must; see `vettance doctor`"
)
_UNIQUE = (
    sqlite3.SQLITE_CONSTRAINT_UNIQUE,
    sqlite3.SQLITE_CONSTRAINT_PRIMARYKEY,
    sqlite3.SQLITE_CONSTRAINT_ROWID,
)


def failure(error: BaseException) -> tuple[str, str]:
    """Tell what an error of SQLite means: ("clash" | "down" | "wrong", one line that says it)."""
    code = getattr(error, "sqlite_errorcode", None)
    if isinstance(code, int):
        if code in _UNIQUE:
            return "clash", str(error)
        if code & 0xFF in DOWN:
            return "down", DOWN[code & 0xFF]
    return "wrong", " ".join(str(error).split()) or type(error).__name__


def open_writer(path: Path) -> sqlite3.Connection:
    """Open a connection that writes durably: a commit returns when the log is on the disk.

    SQLite never checkpoints by itself on it: see `checkpoint.py` for who does, and when.
    """
    connection = _connect(path, "rw")
    connection.create_function("vettance_sha256", 1, vettance_sha256, deterministic=True)
    connection.execute("PRAGMA synchronous=FULL")
    connection.execute("PRAGMA foreign_keys=ON")
    # What is removed is overwritten with zeros: an erasure is one of the file too. Some builds do so anyway.
    connection.execute("PRAGMA secure_delete=ON")
    connection.execute("PRAGMA wal_autocheckpoint=0")
    connection.execute(f"PRAGMA journal_size_limit={LOG_BYTES_MAX}")
    connection.execute(f"PRAGMA cache_size=-{WRITER_CACHE_KIB}")
    connection.execute(f"PRAGMA busy_timeout={LOCK_WAIT_MS}")
    return connection


def vettance_sha256(text: str) -> str:
    """Return the SHA-256 of a text in hex digits, for the chains of the audit log; SQLite has none."""
    return hashlib.sha256(text.encode()).hexdigest()


def open_reader(path: Path) -> sqlite3.Connection:
    """Open a connection that cannot write."""
    connection = _connect(path, "ro")
    connection.execute(f"PRAGMA cache_size=-{READER_CACHE_KIB}")
    return connection


def prepare(path: Path) -> None:
    """Make the folder and the store file where they are missing (for their owner only); see that both work.

    Raises `StoreDown` with one line that names the file when it cannot be opened, written or understood.
    """
    try:
        made = not path.parent.exists()
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not path.exists():
            path.touch(mode=0o600)  # SQLite makes its log alike.
        connection = _connect(path, "rwc")
    except (OSError, sqlite3.Error) as error:
        raise StoreDown(f"{path}: {failure(error)[1]}") from None
    try:
        connection.execute(f"PRAGMA page_size={PAGE_BYTES}")
        connection.execute("PRAGMA wal_autocheckpoint=0")
        if connection.execute("PRAGMA journal_mode=WAL").fetchone() != ("wal",):
            raise StoreDown(f"{path}: this file system cannot hold a store (no shared memory)")
        connection.execute("BEGIN IMMEDIATE")
        connection.execute("ROLLBACK")
    except sqlite3.Error as error:
        if not all(os.access(one, os.W_OK) for one in (path, path.parent)):
            raise StoreDown(f"{path}: {_NOT_WRITTEN}") from None
        raise StoreDown(f"{path}: {failure(error)[1]}") from None
    finally:
        connection.close()
    if made:
        # SQLite does so for the files inside it.
        keep_entry(path.parent)


def keep_entry(path: Path) -> None:
    """Bring the name of a new file or folder to the disk."""
    descriptor = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _connect(path: Path, mode: str) -> sqlite3.Connection:
    return sqlite3.connect(
        f"{path.absolute().as_uri()}?mode={mode}",
        uri=True,
        timeout=READ_LOCK_WAIT_S,
        isolation_level=None,
        check_same_thread=False,
        cached_statements=STATEMENTS_CACHED,
    )
