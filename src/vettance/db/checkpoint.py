"""Checkpoints: moves committed pages from the log into the store file, next to the writer.

SQLite's own checkpoints run inside a commit, and make the slowest one in a hundred wait for tens of
milliseconds. Here a thread with a connection of its own does the work twice a second.

SQLite before 3.51.3 has a race in which a checkpoint that starts when there is nothing left to move, at the
very instant at which a commit starts the log over, marks pages as moved that were not: committed rows vanish
(sqlite.org/wal.html, "The WAL-Reset Bug"). Two rules keep it from ever happening here:

1. One process at a time checkpoints, the one that holds the lock file next to the store.
2. It starts a checkpoint only when a transaction that began after the last checkpoint has been committed.
   Then there is something left to move, nobody else moves it, and so no commit can start the log over.
"""

import fcntl
import json
import os
import sqlite3
import sys
import threading
import time
from pathlib import Path

from vettance.db.connection import LOG_BYTES_MAX, PAGE_BYTES, open_writer
from vettance.db.engine import StoreDown
from vettance.db.sqlite_batch import Committer

INTERVAL_S = 0.5
# A command that writes a few rows leaves them to the server, or to SQLite when the last connection closes.
_LOG_BYTES_WORTH_MOVING = 4 * 1024 * 1024
_OWNER_PATIENCE_S = 5.0
_COMMIT_PATIENCE_S = 0.1


def _line(reason: str) -> str:
    """Write a line as `logs.py` has them, whose library would double what starting the writer takes."""
    now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    line = {"event": "checkpoint_failed", "reason": reason, "level": "warning", "timestamp": now}
    return json.dumps(line) + "\n"


class FileLock:
    """The right to checkpoint, held by one process at a time; the kernel takes it back when that one ends."""

    def __init__(self, path: Path) -> None:
        self._path = path.with_name(path.name + ".lock")
        self._descriptor: int | None = None

    @property
    def held(self) -> bool:
        """Whether this process is the holder."""
        return self._descriptor is not None

    def take(self) -> bool:
        """Try to become the holder; tell whether this process is."""
        if self.held:
            return True
        descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(descriptor)
            return False
        self._descriptor = descriptor
        return True

    def insist(self) -> None:
        """Become the holder, waiting for one that is about to end. Raises `StoreDown` when it does not."""
        give_up_at = time.monotonic() + _OWNER_PATIENCE_S
        while not self.take():
            if time.monotonic() > give_up_at:
                raise StoreDown(f"{self._path.parent}: another server is using this folder")
            time.sleep(0.02)

    def release(self) -> None:
        """Let another process have it."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None


class Checkpointer:
    """A thread that checkpoints while it lives, and says in the log when it begins to fail."""

    def __init__(self, path: Path, committer: Committer, lock: FileLock, *, sync_ahead: bool = False) -> None:
        self._log = path.with_name(path.name + "-wal")
        self._committer = committer
        self._lock = lock
        self._mark: int | None = None
        self._stopping = threading.Event()
        self._connection = open_writer(path)
        # SQLite syncs the store file only in the pass that moves the last page, which is the one that holds
        # the writer; with all that earlier passes left to sync it took 0.1 s. So a process that does nothing
        # else syncs after every pass. It never closes this descriptor: that would drop every lock that SQLite
        # holds on the file (POSIX locks belong to the process), which only its end may do.
        self._ahead = os.open(path, os.O_RDWR | os.O_CLOEXEC) if sync_ahead else None
        self._trouble: str | None = None
        self._thread = threading.Thread(target=self._run, name="checkpoint", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End after the checkpoint that is running, and give up the lock."""
        self._stopping.set()
        self._thread.join()
        self._connection.close()
        self._lock.release()

    def _run(self) -> None:
        while not self._stopping.wait(INTERVAL_S):
            try:
                self._tick()
                self._trouble = None
            except (sqlite3.Error, OSError) as error:
                # A full or failing disk: the log keeps everything, and the next tick tries again.
                if self._trouble != str(error):
                    self._trouble = str(error)
                    sys.stderr.write(_line(str(error)))

    def _tick(self) -> None:
        if self._lock.held:
            self._move()
        elif self._log_bytes() >= _LOG_BYTES_WORTH_MOVING and self._lock.take():
            # A command that writes much while no server is there helps once, and lets go:
            # the server that starts next needs the lock.
            try:
                self._mark = self._committer.begun
                self._await_commit()
                self._move()
            finally:
                self._mark = None
                self._lock.release()

    def _move(self) -> None:
        if self._mark is None:
            # The process that held the lock before may have moved
            # everything: only later commits are sure to be left.
            self._mark = self._committer.begun
        if self._checkpoint() > LOG_BYTES_MAX:
            # The first pass took long, and much was written meanwhile; the second one is short, and what is
            # left for the third, which holds the writer, is little.
            self._await_commit()
            self._checkpoint()
            self._await_commit()
            with self._committer.gate:
                self._checkpoint()

    def _await_commit(self) -> None:
        """Wait a little for the commit that the second rule asks for."""
        give_up_at = time.monotonic() + _COMMIT_PATIENCE_S
        while not self._may_start() and time.monotonic() < give_up_at:
            time.sleep(0.0005)

    def _may_start(self) -> bool:
        return self._mark is not None and self._committer.kept > self._mark

    def _checkpoint(self) -> int:
        """Move what can be moved and return the bytes of log in use, if the second rule allows; else 0."""
        if not self._may_start():
            return 0
        try:
            _, pages, _ = self._connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
        finally:
            self._mark = self._committer.begun
        if self._ahead is not None:
            os.fdatasync(self._ahead)
        return int(pages) * PAGE_BYTES

    def _log_bytes(self) -> int:
        try:
            return self._log.stat().st_size
        except FileNotFoundError:
            return 0
