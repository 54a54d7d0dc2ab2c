"""Probes: what each statement costs that a store really runs, counted by its engine and not by a clock."""

import json
import re
import sqlite3
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, Final

import asyncpg
import pytest

from vettance.db.connection import open_writer

_AUTO_EXPLAIN: Final = {
    "session_preload_libraries": "auto_explain",
    "auto_explain.log_min_duration": "0",
    "auto_explain.log_analyze": "on",
    "auto_explain.log_buffers": "on",
    "auto_explain.log_timing": "off",
    "auto_explain.log_format": "json",
    "auto_explain.log_level": "notice",
}
#: Lists of any length are one text, whatever numbers the places behind them have.
_PLACE: Final = re.compile(r"\$\d+")
_LISTED: Final = re.compile(r"\((?:\?, )*\?\)|\((?:\$\d+, )*\$\d+\)")
#: The first of several given rows says of what types all are.
_TYPED: Final = re.compile(r"CAST\((\?|\$\d+) AS [A-Z]+\)")
#: Rows of one insert: any number of them is one text, and the cost is that of one row.
_ROWS: Final = re.compile(r"VALUES \(\?, …\)(?:, \(\?, …\))+")
_OURS: Final = re.compile(r"\s*(?:SELECT|INSERT|UPDATE|DELETE|WITH)\b")
#: Questions about no table of ours.
_BESIDE: Final = re.compile(r"set_config|pg_|FROM unnest\(\$1::text\[\], \$2::text\[\]\) AS asked")


_IN_LIST: Final = re.compile(r"IN \(\?(?:, \?)*\)")
#: How much of a list is asked about where anything may be: more than any guess of SQLite makes up for.
_LONG: Final = 50


def led_by_tenant(path: Path, texts: Iterable[str]) -> list[str]:
    """Texts that look up one id of a list by itself, and for many ids go through all rows of the tenant.

    Asked of the tables of a store without its rows, and without what was counted of them.
    """
    found = []
    with closing(sqlite3.connect(path)) as store:
        made = [
            row[0]
            for row in store.execute(
                "SELECT sql FROM sqlite_master WHERE sql IS NOT NULL AND name NOT GLOB 'sqlite_*' "
                "AND name NOT GLOB '*_search_*' ORDER BY rowid"
            )
        ]
    with closing(sqlite3.connect(":memory:")) as file:
        file.executescript(";\n".join(made) + ";")
        for text in sorted(texts):
            short, long = (_IN_LIST.sub(f"IN ({', '.join('?' * count)})", text) for count in (1, _LONG))
            if short == long:
                continue
            plans = [
                [step[3] for step in file.execute(f"EXPLAIN QUERY PLAN {wide}", [None] * wide.count("?"))]
                for wide in (short, long)
            ]
            by_tenant = [sum("(tenant=?)" in step for step in plan) for plan in plans]
            if by_tenant[1] > by_tenant[0]:
                found.append(f"{text}\n{plans[1]}")
    return found


class Probe:
    """The dearest run of each text, in units of the engine: steps, or pages with rows."""

    def __init__(self) -> None:
        self.dearest: dict[str, int] = defaultdict(int)
        self.plans: dict[str, str] = {}
        self.whole: dict[str, str] = {}
        #: What built the statements.
        self.builders: set[str] = set()
        self.is_open = False

    def note(self, text: str, cost: int, plan: Callable[[], str] | None = None) -> None:
        """Note a run of a text."""
        # Lists of several lengths are one text, and so are the numbers of the places behind them.
        whole, text = text, _PLACE.sub("?", _LISTED.sub("(?, …)", _TYPED.sub(r"\1", text)))
        if (rows := _ROWS.search(text)) is not None:
            cost //= rows[0].count("…")
            text = _ROWS.sub("VALUES (?, …)", text)
        if self.is_open and _OURS.match(text) and not _BESIDE.search(text):
            if cost >= self.dearest[text] and plan is not None:
                self.plans[text] = plan()
            self.whole[text] = whole
            self.dearest[text] = max(self.dearest[text], cost)


class _Run:
    def __init__(self, text: str) -> None:
        self.text = text
        self.steps = 0

    def step(self) -> int:
        self.steps += 1
        return 0


@contextmanager
def watched_sqlite(patch: pytest.MonkeyPatch, path: Path) -> Iterator[Probe]:
    """Count the steps (jumps of SQLite's virtual machine) of what connections of this block run."""
    probe = Probe()

    class Counted(sqlite3.Connection):
        run: _Run | None = None

        def _begin(self, text: str) -> None:
            self._end()
            if probe.is_open:  # Calling Python for each step takes ten times as long as the step.
                self.run = _Run(text)
                super().set_progress_handler(self.run.step, 1)

        def _end(self) -> None:
            if self.run is not None:
                probe.note(self.run.text, self.run.steps)
                self.run = None
                super().set_progress_handler(None, 0)

        def execute(self, sql: str, *args: Any) -> sqlite3.Cursor:
            self._begin(sql)
            return super().execute(sql, *args)

        def executemany(self, sql: str, rows: Any) -> sqlite3.Cursor:
            if not probe.is_open:
                return super().executemany(sql, rows)
            for row in rows:
                self._begin(sql)
                cursor = super().execute(sql, row)
            return cursor

        def set_progress_handler(self, handler: Any, n: int) -> None:
            """The store's own handler gives up what takes too long; nothing here does."""
            if handler is None:
                self._end()

    real = sqlite3.connect

    def connect(*args: Any, **options: Any) -> sqlite3.Connection:
        return real(*args, **{"factory": Counted, **options})

    with patch.context() as during:
        during.setattr(sqlite3, "connect", connect)
        yield probe
    with closing(open_writer(path)) as file:
        for text, whole in probe.whole.items():
            plan = file.execute("EXPLAIN QUERY PLAN " + whole, [None] * whole.count("?")).fetchall()
            probe.plans[text] = "\n".join(row[3] for row in plan)


@contextmanager
def watched_postgres(patch: pytest.MonkeyPatch, url: str) -> Iterator[Probe]:
    """Have PostgreSQL tell the plan of everything that connections of this block run, as it was run."""
    probe = Probe()

    def heard(_connection: Any, message: Any) -> None:
        _, found, told = str(message.message).partition("plan:\n")
        if found:
            plan = json.loads(told)
            probe.note(plan["Query Text"], _work(plan["Plan"]), lambda: _lines(plan["Plan"]))

    real = asyncpg.connect

    async def connect(*args: Any, **options: Any) -> Any:
        connection = await real(*args, **options)
        connection.add_log_listener(heard)
        return connection

    with patch.context() as during:
        during.setattr(asyncpg, "connect", connect)
        yield probe


async def tell_plans(url: str) -> None:
    """Have a database tell the plans of everything from the next connection on."""
    connection = await asyncpg.connect(url)
    name = url.rpartition("/")[2]
    for setting, value in _AUTO_EXPLAIN.items():
        await connection.execute(f"ALTER DATABASE {name} SET {setting} = '{value}'")
    await connection.close()


def _work(plan: dict[str, Any]) -> int:
    """Pages touched, and rows seen in all parts of a plan."""
    pages = plan.get("Shared Hit Blocks", 0) + plan.get("Shared Read Blocks", 0)
    return int(pages + sum(_rows(part) for part in _parts(plan)))


def _parts(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield plan
    for part in plan.get("Plans", ()):
        yield from _parts(part)


def _rows(part: dict[str, Any]) -> int:
    seen = sum(value for name, value in part.items() if name == "Actual Rows" or "Rows Removed" in name)
    return int(seen * part.get("Actual Loops", 1))


def _lines(plan: dict[str, Any], depth: int = 0) -> str:
    where = plan.get("Index Name") or plan.get("Relation Name") or ""
    conditions = [f"{name}: {plan[name]}" for name in ("Index Cond", "Filter", "Sort Key") if name in plan]
    text = f"{'  ' * depth}{plan['Node Type']} {where} rows={_rows(plan)} {'; '.join(conditions)}"
    return "\n".join([text, *(_lines(part, depth + 1) for part in plan.get("Plans", ()))])
