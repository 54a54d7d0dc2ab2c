"""Bulk inserts: rows of several tables on their way into PostgreSQL, as many as possible at once."""

import itertools
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from vettance.db.dialect import Form, add_up, bulk_rows, bulk_size, bulk_text
from vettance.db.tables import Insert, Tables

_FIRST_PLACE: Final = "$1"
#: Combinations of tables and numbers of rows whose texts are kept.
_TEXTS_MAX: Final = 500


class _Part(NamedTuple):
    form: Form
    into: Insert
    rows: Sequence[Sequence[Any]]

    def pieces(self) -> "list[_Part]":
        """Return it as parts that one insert takes each."""
        most = bulk_rows(self.into)
        return [
            self._replace(rows=self.rows[start : start + most]) for start in range(0, len(self.rows), most)
        ]


class WaitingRows:
    """Rows that wait to be inserted, each table's in their order. They may go in one statement, in which no
    part sees what another changes."""

    def __init__(self) -> None:
        self._changed: set[str] = set()
        self.parts: list[_Part] = []

    def concern(self, tables: Tables | None) -> bool:
        """Tell whether a statement about some tables has to come behind these rows."""
        return bool(self.parts) and (tables is None or not self._changed.isdisjoint(tables.touched))

    def add(self, form: Form, into: Insert, rows: Sequence[Sequence[Any]]) -> None:
        """Have the rows of one more table wait, one that does not `concern` those before."""
        self.parts.append(_Part(form, into, add_up(rows, form.key) if form.key else rows))
        self._changed |= into.changed

    def take(self) -> list[list[_Part]]:
        """Return what waited, as statements: of each table as many rows as one insert takes."""
        parts, self.parts = sorted(self.parts, key=lambda part: part.into.table), []
        self._changed.clear()
        pieces = [part.pieces() for part in parts]
        return [[piece for piece in together if piece] for together in itertools.zip_longest(*pieces)]


class BulkInserts:
    """Sends rows, and remembers the texts that take them."""

    def __init__(self) -> None:
        self._types: dict[Insert, list[str]] = {}
        self._texts: dict[tuple[str, tuple[tuple[Insert, int], ...]], str] = {}

    async def send(
        self, connection: Any, waiting: WaitingRows, question: str = "", asked: Any = None
    ) -> list[Any]:
        """Insert all rows that wait, and return the answer to a question with one argument, `asked`, if any.

        The question goes along with the last rows, and is about nothing that they change.
        """
        *firsts, last = waiting.take() or [[]]
        for parts in firsts:
            await self._send(connection, parts)
        return await self._send(connection, last, question, asked)

    async def _send(
        self, connection: Any, parts: Sequence[_Part], question: str = "", asked: Any = None
    ) -> list[Any]:
        if not question and len(parts) == 1 and len(parts[0].rows) == 1:
            await connection.execute(parts[0].form.text, *parts[0].rows[0])
            return []
        key = question, tuple([(part.into, bulk_size(len(part.rows))) for part in parts])
        text = self._texts.get(key) or await self._build(connection, parts, key)
        args: list[Any] = []
        for (into, size), part in zip(key[1], parts, strict=True):
            args += itertools.chain.from_iterable(part.rows)
            args += [None] * (into.width * (size - len(part.rows)))
            args.append(len(part.rows))
        if question:
            args.append(asked)
            return list(await connection.fetch(text, *args))
        if text:
            await connection.execute(text, *args)
        return []

    async def _build(
        self, connection: Any, parts: Sequence[_Part], key: tuple[str, tuple[tuple[Insert, int], ...]]
    ) -> str:
        question, sizes = key
        texts, before = [], 0
        for (into, size), part in zip(sizes, parts, strict=True):
            types = self._types.get(into) or await self._learn(connection, part)
            texts.append(bulk_text(into, types, size, before))
            before += size * into.width + 1
        if question:
            texts.append(question.replace(_FIRST_PLACE, f"${before + 1}"))
        *others, main = texts or [""]
        named = ", ".join(f"part_{number} AS ({other})" for number, other in enumerate(others))
        if len(self._texts) >= _TEXTS_MAX:
            self._texts.clear()
        text = self._texts[key] = f"WITH {named} {main}" if named else main
        return text

    async def _learn(self, connection: Any, part: _Part) -> list[str]:
        """Ask for the types of an insert's arguments."""
        prepared = await connection.prepare(part.form.text)
        types = self._types[part.into] = [kind.name for kind in prepared.get_parameters()]
        return types
