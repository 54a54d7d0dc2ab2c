"""Stores with rows in every table, whatever the table is for, and what they hold."""

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

#: Tables that are not copied: what they hold is made anew, or there already.
MADE = {
    "schema_version",
    "term_search",
    "id_search",
    "term_epoch",
    "aml_alert_count",
    "aml_case_count",
    "review_count",
    "list_count",
}


def fill(path: Path, rows: int = 1) -> list[str]:
    """Put rows into every table; returns the names of the tables. No two rows are alike."""
    with closing(sqlite3.connect(path)) as file:
        names = [
            name
            for (name,) in file.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
            if not name.startswith(("sqlite_", "term_search", "id_search")) and name not in MADE
        ]
        for name in names:
            columns = {column: kind for _, column, kind, *_ in file.execute(f"PRAGMA table_info({name})")}
            places = ", ".join("?" * len(columns))
            text = f"INSERT INTO {name} ({', '.join(columns)}) VALUES ({places})"
            file.executemany(
                text, ([value_of(kind, number) for kind in columns.values()] for number in range(1, rows + 1))
            )
        file.commit()
    return names


def value_of(kind: str, number: int) -> bytes | str | int:
    """Make a value for a column; JSON stands as bytes in some, and is a text in PostgreSQL."""
    if kind == "BLOB":
        return b"{}" if number == 1 else f'{{"number": {number}, "name": "Zoë 王"}}'.encode()
    if kind == "TEXT":
        return "text" if number == 1 else f"text {number} Zoë 'quoted' \\ 王"
    return number


def contents(path: Path, tables: list[str]) -> dict[str, list[Any]]:
    """Return the rows of every table, as they stand there."""
    with closing(sqlite3.connect(path)) as file:
        return {name: file.execute(f"SELECT * FROM {name}").fetchall() for name in tables}
