"""Vacuum: rewrites the store file without what SQLite has left of removed and rewritten rows."""

import sqlite3
from pathlib import Path

from vettance.db.checkpoint import FileLock
from vettance.db.connection import failure, open_writer
from vettance.db.engine import StoreDown

_MERGED = (
    "INSERT INTO term_search (term_search) VALUES ('optimize')",
    "INSERT INTO id_search (id_search) VALUES ('optimize')",
)


def compact(path: Path) -> bool:
    """Rewrite the file and empty its log; return whether that was possible, or a server has the file.

    Overwriting what is deleted (`secure_delete`) is not all: of rows that SQLite moved when it split a page,
    copies stay in what is free of the old page, and the indexes of searches keep what was taken out of them
    until their segments are merged. Raises `StoreDown`, upon which the file is as it was.
    """
    lock = FileLock(path)
    if not lock.take():
        return False
    try:
        connection = open_writer(path)
        try:
            for statement in _MERGED:
                connection.execute(statement)
            connection.execute("VACUUM")
            # There is something left to move, as checkpoint.py demands.
            busy, _, _ = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        finally:
            connection.close()
    except sqlite3.Error as error:
        raise StoreDown(f"{path}: {failure(error)[1]}") from None
    finally:
        lock.release()
    return not busy
