"""Every statement declares the tables that its text touches, and the declarations agree with the schema."""

import importlib
import inspect
import re
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import vettance
from tests.shape.made_up import arguments_of
from vettance.db.connection import vettance_sha256
from vettance.db.engine import Statement
from vettance.db.migrate import migrate
from vettance.db.sqlite import store_path
from vettance.db.tables import CATALOG, TABLES, Tables

ROOT = Path(vettance.__file__).parent
FILES = sorted(path for name in ("*sql", "outbox", "delivery_queue") for path in ROOT.rglob(f"{name}.py"))
#: Tables that the store keeps for itself.
INTERNAL = {"schema_version", "sqlite_sequence"}
NAMED = re.compile(r"\b(?:INTO|UPDATE|FROM|JOIN)\s+([a-z_]+)", re.ASCII)
WRITES = {sqlite3.SQLITE_INSERT, sqlite3.SQLITE_UPDATE, sqlite3.SQLITE_DELETE}


def _builders() -> Iterator[tuple[str, Callable[..., Any], type | None]]:
    for path in FILES:
        parts = path.relative_to(ROOT.parent).with_suffix("").parts
        module = importlib.import_module(".".join(parts))
        for name, one in vars(module).items():
            if getattr(one, "__module__", None) != module.__name__:
                continue
            if inspect.isfunction(one) and _builds(one):
                yield f"{module.__name__}.{name}", one, None
            if inspect.isclass(one):
                for method in vars(one).values():
                    if inspect.isfunction(method) and _builds(method):
                        yield f"{module.__name__}.{name}.{method.__name__}", method, one


def _builds(one: Callable[..., Any]) -> bool:
    return not one.__name__.startswith("_") and "Statement" in str(inspect.signature(one).return_annotation)


def _statements(built: Callable[..., Any], owner: type | None) -> Iterator[Statement]:
    for full in (True, False):
        args = arguments_of(built, full=full)
        made = built(**args) if owner is None else built(owner(**arguments_of(owner, full=full)), **args)
        yield from [made] if isinstance(made, Statement) else made


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[sqlite3.Connection]:
    path = store_path(tmp_path_factory.mktemp("store"))
    migrate(path)
    connection = sqlite3.connect(path)
    connection.create_function("vettance_sha256", 1, vettance_sha256)
    yield connection
    connection.close()


class _Accesses:
    """What SQLite asks its authorizer for, while it prepares a text."""

    def __init__(self) -> None:
        self.named: set[str] = set()
        self.read: set[str] = set()
        self.written: set[str] = set()

    def __call__(self, action: int, table: str | None, _column: Any, _base: Any, trigger: str | None) -> int:
        if table in TABLES:
            (self.written if action in WRITES else self.read).add(table)
            if trigger is None:
                self.named.add(table)
        return sqlite3.SQLITE_OK


def _wrong(one: Statement, store: sqlite3.Connection, *, is_postgres: bool) -> str | None:
    """Say what is wrong with what a statement declares."""
    if one.tables is None:
        return "it declares no tables"
    accesses = _Accesses()
    if is_postgres or "::" in one.sql:
        accesses.named = accesses.read = {name for name in NAMED.findall(one.sql) if name in TABLES}
    else:
        store.set_authorizer(accesses)
        try:
            store.execute(f"EXPLAIN {one.sql}", [None] * one.sql.count("?"))
        finally:
            store.set_authorizer(None)
    return _difference(one.tables, accesses)


def _difference(declared: Tables, found: _Accesses) -> str | None:
    if found.written - declared.changed:
        return f"it changes {sorted(found.written - declared.changed)}, which the declaration must begin with"
    if found.read - declared.touched:
        return f"it reads {sorted(found.read - declared.touched)}: add `.reading(…)`"
    implied = frozenset[str]().union(
        *[TABLES[name].touched for name in found.named], found.read, found.written
    )
    if declared.touched - implied:
        return f"it does not touch {sorted(declared.touched - implied)}"
    return None


def test_every_statement_declares_the_tables_that_its_text_touches(store: sqlite3.Connection) -> None:
    wrong = [f"{name}: {fault}" for name, *built in _builders() for fault in _faults(*built, store)]
    assert not wrong, "\n\n".join(wrong)


def _faults(built: Callable[..., Any], owner: type | None, store: sqlite3.Connection) -> Iterator[str]:
    for one in _statements(built, owner):
        if (wrong := _wrong(one, store, is_postgres=False)) is not None:
            yield f"{wrong}\n{one.sql}"
        if one.postgres is not None and (wrong := _wrong(one.postgres, store, is_postgres=True)) is not None:
            yield f"{wrong}\n{one.postgres.sql}"


def test_every_table_of_the_schema_is_declared(store: sqlite3.Connection) -> None:
    rows = store.execute("SELECT name, sql FROM sqlite_master WHERE type = 'table'").fetchall()
    virtual = {name for name, text in rows if text.startswith("CREATE VIRTUAL")}
    shadows = {name for name, _ in rows if any(name.startswith(f"{one}_") for one in virtual)}
    assert {name for name, _ in rows} - shadows - INTERNAL == set(TABLES), "see db/tables.py"


def test_references_and_triggers_of_the_schema_are_declared(store: sqlite3.Connection) -> None:
    assert not CATALOG.touched
    for name, table in TABLES.items():
        parents = {row[2] for row in store.execute(f"PRAGMA foreign_key_list({name})")}
        assert parents <= table.read, f"{name} refers to {sorted(parents)}: say so in db/tables.py"
        if name.endswith("_search"):
            continue
        for text in (f"INSERT INTO {name} SELECT * FROM {name}", f"DELETE FROM {name}"):
            found = _Accesses()
            store.set_authorizer(found)
            store.execute(f"EXPLAIN {text}")
            store.set_authorizer(None)
            assert found.written <= table.changed, f"a change of {name} changes {found.written}"
            assert found.read <= table.touched, f"a change of {name} reads {found.read}"
