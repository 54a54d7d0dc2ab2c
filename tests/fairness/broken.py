"""A table that takes no rows of one tenant, by a real rule of the store: what breaks for one only."""

import contextlib
import sqlite3
from collections.abc import Iterator
from pathlib import Path

from tests.databases import ask


@contextlib.contextmanager
def breaking(store: str | Path, table: str, tenant: str, act: str = "INSERT") -> Iterator[None]:
    """While the block lasts, refuse to insert (or `act`) rows of a tenant into a table of a store.

    `store` is the URL of a database, or the file of an embedded store.
    """
    name = f"refuse_{table}_{act.lower()}"
    row = "OLD" if act == "DELETE" else "NEW"
    column = "id" if table == "tenant" else "tenant"
    if isinstance(store, str):
        refuse = (
            f"CREATE FUNCTION {name}() RETURNS TRIGGER LANGUAGE plpgsql AS $$ BEGIN "
            f"RAISE EXCEPTION 'a broken row' USING ERRCODE = 'check_violation'; END $$;",
            f"CREATE TRIGGER {name} BEFORE {act} ON {table} FOR EACH ROW "
            f"WHEN ({row}.{column} = '{tenant}') EXECUTE FUNCTION {name}()",
        )
        for text in refuse:
            ask(store, text)
        try:
            yield
        finally:
            ask(store, f"DROP TRIGGER {name} ON {table}")
            ask(store, f"DROP FUNCTION {name}")
        return
    _change(
        store,
        f"CREATE TRIGGER {name} BEFORE {act} ON {table} WHEN {row}.{column} = '{tenant}' "
        "BEGIN SELECT RAISE(ABORT, 'a broken row'); END",
    )
    try:
        yield
    finally:
        _change(store, f"DROP TRIGGER {name}")


def _change(path: Path, text: str) -> None:
    with contextlib.closing(sqlite3.connect(path, timeout=10)) as connection, connection:
        connection.execute(text)
