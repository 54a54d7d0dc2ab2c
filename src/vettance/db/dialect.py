"""Dialect: turns statements into what PostgreSQL takes, and knows which of them commute."""

# ruff: noqa: S608 - only texts of ours, from the files that hold SQL, are put together here

import functools
import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from vettance.db.engine import COUNTED, Statement
from vettance.db.tables import Insert, Tables

_CHANGES: Final = ("INSERT", "UPDATE", "DELETE")
#: A text for each number of rows would fill the cache of prepared statements; these waste less than half.
_BULK_SIZES: Final = tuple(1 << power for power in range(9))
#: Most arguments of one bulk insert, which is a text of eight kilobytes then: 64 decisions, or 256 texts.
_BULK_ARGS_MAX: Final = 1_300


@dataclass(frozen=True, slots=True, eq=False)
class Form:
    """How statements of one text are sent; made once for each text.

    `width`, for an insert of given rows, is how many arguments one row takes; the text inserts one row then,
    and as many rows change as are given. `bulk` is that insert where many rows may go in one statement,
    since they cannot update each other. With `key`, they cannot once rows that agree in these arguments are
    one, their other arguments added up. `counted` answers with the number of rows that changed, for any other
    change. `heard` tells of which tenants of a list a statement may change anything.
    """

    text: str
    tables: Tables | None
    width: int = 0
    bulk: Insert | None = None
    key: tuple[int, ...] = ()
    counted: str | None = None
    heard: str | None = None


def form_of(one: Statement) -> Form:
    """Return how a statement is sent."""
    if type(one.tables) is Insert and one.tables.certain:
        return _form_of_insert(one.tables)
    return _form_of_text(one.sql, one.tables)


@functools.lru_cache(maxsize=500)
def _form_of_insert(into: Insert) -> Form:
    text = numbered(into.text)
    return Form(text, into, into.width, into if into.key or not into.tail else None, into.key)


@functools.lru_cache(maxsize=2_000)
def _form_of_text(sql: str, tables: Tables | None) -> Form:
    text = _by_digest(numbered(sql), tables.long if tables is not None else ())
    counted = None
    if text.lstrip().startswith(_CHANGES):
        counted = f"WITH changed AS ({text} RETURNING 1) {COUNTED}"
    elif text.endswith(COUNTED):
        counted = text
    listeners = tables.listeners if tables is not None else ""
    return Form(text, tables, counted=counted, heard=_heard(listeners) if listeners else None)


def _heard(listeners: str) -> str:
    return (
        "SELECT tenant FROM unnest($1::text[]) AS given (tenant) "
        f"WHERE EXISTS (SELECT 1 FROM {listeners} WHERE {listeners}.tenant = given.tenant)"
    )


def digest(text: str) -> str:
    """Return the digest by which a text is looked for: the content of a column next to that of the text.

    Row level security takes no condition on the text's own column into an index, for it calls functions. A
    cast is the only way from a text to its bytes that an index may hold, and reads backslashes as escapes.
    """
    return f"sha256(replace({text}, '\\', '\\\\')::bytea)"


def _by_digest(text: str, long: Collection[str]) -> str:
    """Have conditions on long columns ask the index by its digest, and then compare the texts themselves."""
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
    # Between quotes is every second part; a doubled quote leaves an empty part outside of them.
    parts = sql.split("'")
    for place in range(0, len(parts), 2):
        first, *others = parts[place].split("?")
        for other in others:
            count += 1
            first += f"${count}{other}"
        parts[place] = first
    return "'".join(parts)


def bulk_size(rows: int) -> int:
    """Return the least number of rows that a bulk insert is written for and that holds so many."""
    return next((size for size in _BULK_SIZES if size >= rows), _BULK_SIZES[-1])


@functools.cache
def bulk_rows(into: Insert) -> int:
    """Return the most rows that go in one insert of a table."""
    return max(size for size in _BULK_SIZES if size == 1 or size * into.width <= _BULK_ARGS_MAX)


def bulk_text(into: Insert, types: Sequence[str], size: int, before: int = 0) -> str:
    """Build the insert of up to `size` rows, given one behind the other, and last how many of them there are.

    Rows that are there only to fill it up are not looked at. The order of the rows is kept. `before` is how
    many arguments come first that are another statement's.
    """
    width = len(types)
    end = before + size * width
    first = ", ".join(f"${place}::{kind}" for place, kind in enumerate(types, before + 1))
    others = (
        ", ".join(f"${place}" for place in range(start, start + width))
        for start in range(before + width + 1, end, width)
    )
    given = ", ".join(f"({row})" for row in (first, *others))
    return f"{into.head} SELECT * FROM (VALUES {given}) AS given LIMIT ${end + 1}{into.tail}"


class ExecutionRun(NamedTuple):
    """Executions of one text in a row, each with the number of its write and its place there."""

    form: Form
    write: list[int]
    place: list[int]
    args: list[Sequence[Any]]


def arrange(writes: Sequence[Sequence[Statement]]) -> list[ExecutionRun]:
    """Sort the statements of a batch so that as many as possible share an execution.

    Statements commute unless one may change a table that the other touches, directly or by way of others of
    the batch; each group of those that do not gets its statements in the order in which they were given.
    """
    forms = [[form_of(one) for one in write] for write in writes]
    group_of = _groups(frozenset([form for row in forms for form in row if form.text]))
    groups: dict[str, list[ExecutionRun]] = {}
    for number, (write, row) in enumerate(zip(writes, forms, strict=True)):
        for place, (one, form) in enumerate(zip(write, row, strict=True)):
            if not form.text:  # `NOTHING`
                continue
            steps = groups.setdefault(group_of[form], [])
            if not steps or steps[-1].form is not form:
                steps.append(ExecutionRun(form, [], [], []))
            for args in _rows(form, one.args):
                steps[-1].write.append(number)
                steps[-1].place.append(place)
                steps[-1].args.append(args)
    return [step for steps in groups.values() for step in steps]


@functools.lru_cache(maxsize=500)
def _groups(forms: frozenset[Form]) -> dict[Form, str]:
    """Name, for each form of a batch, the group of those that must keep their order among each other."""
    declared = [(form, form.tables) for form in forms if form.tables is not None]
    if len(declared) < len(forms):
        return dict.fromkeys(forms, "")
    owner: dict[str, str] = {}

    def root(table: str) -> str:
        while owner.setdefault(table, table) != table:
            table = owner[table]
        return table

    changed = frozenset[str]().union(*[tables.changed for _, tables in declared])
    for _, tables in declared:
        first, *others = tables.touched & changed or ("",)
        for other in others:
            owner[root(other)] = root(first)
    return {form: root(next(iter(tables.touched & changed), "")) for form, tables in declared}


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
