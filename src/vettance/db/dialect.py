"""Dialect: turns the statements of the house into what PostgreSQL takes, and knows which of them commute."""

# ruff: noqa: S608 - only texts of ours, from the files that hold SQL, are put together here

import functools
import re
from collections.abc import Collection, Sequence
from typing import Any, Final, NamedTuple

from vettance.db.engine import Statement

_PIECE: Final = re.compile(r"'(?:[^']|'')*'|\?")
_TABLE: Final = re.compile(r"\b(?:INTO|UPDATE|FROM|JOIN)\s+([a-z_]+)", re.ASCII)
_UPSERT_SET: Final = re.compile(r"\bDO\s+UPDATE\s+SET\b", re.ASCII)
_INSERT: Final = re.compile(
    r"\s*(INSERT INTO ([a-z_]+)\s*\([^()]*\))\s*VALUES\s*(\([^()]*\)(?:\s*,\s*\([^()]*\))*)"
    r"\s*(ON CONFLICT\s*\([^()]*\)\s*DO UPDATE SET\b(?:(?!\bWHERE\b).)*)?",
    re.ASCII | re.DOTALL,
)
_CONFLICT: Final = re.compile(r"ON CONFLICT\s*\(([^()]*)\)\s*DO UPDATE SET\b(.*)", re.ASCII | re.DOTALL)
_ROW: Final = re.compile(r"\([^()]*\)")
_CHANGES: Final = re.compile(r"\s*(?:INSERT|UPDATE|DELETE)\b", re.ASCII)

#: Columns whose texts may be longer than an index row of PostgreSQL, which holds 2,704 bytes. They are looked
#: for by their digests, which stand in columns beside them there (`by_digest`).
LONG: Final = {
    "term": ("value",),
    "signal_batch": ("sdk_session", "batch_id"),
    "aml_event": ("external_id",),
    "aml_case": ("customer",),
    "aml_alert": ("customer",),
    "aml_alert_entity": ("customer",),
    "aml_screening": ("external_id",),
}

#: Tables that a statement on another one touches without naming them: by a reference, or by its wall.
BESIDE: Final = {
    "api_key": "tenant",
    "interest": "subscription",
    "attempt": "delivery",
    "chunk_column": "chunk",
}


class Form(NamedTuple):
    """How a statement is sent.

    `width`, for an insert of given rows, is how many arguments one row takes; the text inserts one row then,
    and as many rows change as are given. `many` inserts any number of rows, given as one list for each
    argument (`{0}` … stand for the types of the arguments), and is there where rows of one statement cannot
    update each other. With `key`, they cannot once rows that agree in these arguments are one, their other
    arguments added up. `counted` answers with the number of rows that changed, for any other change.
    """

    text: str
    tables: frozenset[str]
    width: int = 0
    many: str | None = None
    key: tuple[int, ...] = ()
    counted: str | None = None


@functools.lru_cache(maxsize=2_000)
def form_of(sql: str) -> Form:
    """Read a text and tell how it is sent; texts are few, and each is read once."""
    tables = set(_TABLE.findall(_UPSERT_SET.sub("", sql)))
    long = {name for table in tables for name in LONG.get(table, ())}
    tables |= {BESIDE[name] for name in tables if name in BESIDE}
    insert = _INSERT.fullmatch(sql)
    if insert is not None:
        rows = set(_ROW.findall(insert.group(3)))
        row = rows.pop()
        width = row.count("?")
        if width and not rows:
            rest = f" {insert.group(4)}" if insert.group(4) else ""
            text = numbered(f"{insert.group(1)} VALUES {row}{rest}")
            key = _key(insert.group(1), insert.group(2), row, rest)
            many = _many(insert.group(1), row, width) + rest if key or not rest else None
            return Form(text, frozenset(tables), width, many, key)
    text = _by_digest(numbered(sql), long)
    counted = None
    if _CHANGES.match(text):
        counted = f"WITH changed AS ({text} RETURNING 1) SELECT count(*) FROM changed"
    return Form(text, frozenset(tables), counted=counted)


def digest(text: str) -> str:
    """Return the digest by which a text is looked for: what a column beside that of the text holds.

    Of the text's own column the walls would take no condition into an index, for it calls functions. A cast
    is the only way from a text to its bytes that an index may hold, and reads backslashes as escapes.
    """
    return f"sha256(replace({text}, '\\', '\\\\')::bytea)"


def _by_digest(text: str, long: Collection[str]) -> str:
    """Have conditions on long columns ask the index by its digest, and then hold the texts themselves."""
    for name in long:
        text = re.sub(
            rf"\b(WHERE|AND)\s+((?:[a-z_]+\.)?{name}) = (\$\d+)",
            lambda found: f"{found[1]} {found[2]}_digest = {digest(found[3])} AND {found[2]} = {found[3]}",
            text,
        )
    return text


def numbered(sql: str) -> str:
    """Number the placeholders, but for question marks inside texts."""
    count = 0

    def place(found: re.Match[str]) -> str:
        nonlocal count
        if found[0] != "?":
            return found[0]
        count += 1
        return f"${count}"

    return _PIECE.sub(place, sql)


def _key(head: str, table: str, row: str, rest: str) -> tuple[int, ...]:
    """Return which arguments name the row, where an insert adds all others to what stands there already."""
    conflict = _CONFLICT.search(rest)
    if conflict is None or set(row) - set("(?, )"):
        return ()
    columns = [name.strip() for name in head[head.index("(") + 1 : -1].split(",")]
    names = {name.strip() for name in conflict[1].split(",")}
    sums = {f"{name} = {table}.{name} + excluded.{name}" for name in columns if name not in names}
    if sums != {" ".join(change.split()) for change in conflict[2].split(",")}:
        return ()
    return tuple(place for place, name in enumerate(columns) if name in names)


def _many(head: str, row: str, width: int) -> str:
    """Build the insert of many rows, column by column; the order of the rows is kept."""
    count = 0

    def place(found: re.Match[str]) -> str:
        nonlocal count
        if found[0] != "?":
            return found[0]
        count += 1
        return f"given.c{count}"

    chosen = _PIECE.sub(place, row[1:-1])
    lists = ", ".join(f"${number}::{{{number - 1}}}[]" for number in range(1, width + 1))
    columns = ", ".join(f"c{number}" for number in range(1, width + 1))
    return (
        f"{head} SELECT {chosen.replace('{', '{{').replace('}', '}}')} "
        f"FROM unnest({lists}) WITH ORDINALITY AS given ({columns}, place) ORDER BY given.place"
    )


class ExecutionRun(NamedTuple):
    """Executions of one text in a row, each with the number of its write and its place there."""

    form: Form
    write: list[int]
    place: list[int]
    args: list[Sequence[Any]]


def arrange(writes: Sequence[Sequence[Statement]]) -> list[ExecutionRun]:
    """Sort the statements of a batch so that as many as possible share an execution.

    Statements commute when they touch no table in common, directly or by way of others of the batch; each
    such group of tables gets its statements in the order in which they were given.
    """
    owner: dict[str, str] = {}

    def root(table: str) -> str:
        while owner.setdefault(table, table) != table:
            table = owner[table]
        return table

    forms = [[form_of(one.sql) for one in write] for write in writes]
    for form in {form for row in forms for form in row}:
        first, *others = form.tables or ("",)
        for other in others:
            owner[root(other)] = root(first)
    groups: dict[str, list[ExecutionRun]] = {}
    for number, (write, row) in enumerate(zip(writes, forms, strict=True)):
        for place, (one, form) in enumerate(zip(write, row, strict=True)):
            steps = groups.setdefault(root(next(iter(form.tables), "")), [])
            if not steps or steps[-1].form is not form:
                steps.append(ExecutionRun(form, [], [], []))
            for args in _rows(form, one.args):
                steps[-1].write.append(number)
                steps[-1].place.append(place)
                steps[-1].args.append(args)
    return [step for steps in groups.values() for step in steps]


def add_up(rows: Sequence[Sequence[Any]], key: Sequence[int]) -> list[list[Any]]:
    """Make rows that agree in `key` one, with the sums of everything else."""
    sums: dict[tuple[Any, ...], list[Any]] = {}
    for row in rows:
        name = tuple([row[place] for place in key])
        if (known := sums.get(name)) is None:
            sums[name] = list(row)
            continue
        for place, value in enumerate(row):
            if place not in key:
                known[place] += value
    return list(sums.values())


def _rows(form: Form, args: Sequence[Any]) -> list[Sequence[Any]]:
    if not form.width or len(args) <= form.width:
        return [args]
    return [args[start : start + form.width] for start in range(0, len(args), form.width)]
