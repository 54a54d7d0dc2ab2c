"""Group commit on PostgreSQL: applies the writes of many callers in one transaction and answers each."""

from collections.abc import Collection, Sequence
from itertools import chain
from typing import Any, Final, NamedTuple

from vettance.db.dialect import BULK_ROWS, ExecutionRun, Form, add_up, arrange, bulk_size, bulk_text
from vettance.db.engine import EVERYBODY, Clash, Lost, Misuse, Statement, StoreDown
from vettance.db.postgres_link import ERRORS, RolledBack, StatementRefused, failure
from vettance.db.tables import Insert

#: How many rows each statement of a write changed, or why none of it was kept.
Reply = list[int] | Clash | Lost | Misuse | StoreDown

# One batch at a time in the whole database. Places in the log are then in the order of the commits, so that
# a reader that has reached one has missed none; and batches, which touch the same counts in any order,
# cannot deadlock. The number is the word "vettance" in ASCII, so that nobody else will take the same one.
TURN: Final = 0x76657474616E6365
BEGIN: Final = f"BEGIN; SELECT pg_advisory_xact_lock({TURN})"
#: Which of some tenants have listeners, by the question and the tenants.
Hearing = dict[tuple[str, frozenset[str]], set[str]]
_TENANTS: Final = "SELECT set_config('vettance.tenant', $1, true)"


class CommitBatch(NamedTuple):
    """Writes that are committed together, and the tenants whose rows they are about."""

    writes: list[Sequence[Statement]]
    tenants: set[str]


class WrongRowCount(Exception):
    """A statement changed another number of rows than its write demands."""


class BatchCommitter:
    """Applies batches on a connection that is passed to it; caches the texts of bulk inserts."""

    def __init__(self) -> None:
        self._bulk: dict[tuple[Insert, int], str] = {}

    async def begin(self, connection: Any) -> None:
        """Open a transaction and wait for this process's turn."""
        await connection.execute(BEGIN)

    async def admit(self, connection: Any, tenants: Collection[str]) -> None:
        """Name the tenants whose rows the transaction touches; maintenance of all is shown every row."""
        if tenants:
            shown = EVERYBODY if EVERYBODY in tenants else ",".join(sorted(tenants))
            await connection.fetchval(_TENANTS, shown)

    async def apply(self, connection: Any, batch: CommitBatch) -> list[Reply]:
        """Commit all writes at once; if one fails, undo them and commit them apart, so that only it fails.

        So too when the server undid them for the sake of another transaction.

        Raises what the driver raises when it is the store that failed.
        """
        if any("," in tenant for tenant in batch.tenants):
            await connection.execute("ROLLBACK")
            return [Misuse("a tenant's name holds a comma")] * len(batch.writes)
        try:
            await self.admit(connection, batch.tenants)
            replies: list[Reply] = [*await self.together(connection, batch.writes)]
        except WrongRowCount:
            pass
        except ERRORS as error:
            reason = failure(error)
            failed = isinstance(reason, StoreDown) and not isinstance(reason, RolledBack | StatementRefused)
            if failed or connection.is_closed():
                raise
        else:
            await connection.execute("COMMIT")
            return replies
        # Even a single write: of several reasons against it, the first one in its own order counts.
        await connection.execute("ROLLBACK")
        await self.begin(connection)
        await self.admit(connection, batch.tenants)
        replies = await self._apart(connection, batch.writes)
        await connection.execute("COMMIT")
        return replies

    async def together(self, connection: Any, writes: Sequence[Sequence[Statement]]) -> list[list[int]]:
        """Apply writes in the transaction that is open, and return how many rows each statement changed.

        Raises `WrongRowCount`, and what the driver raises; the transaction is of no more use then.
        """
        counts = [[0] * len(write) for write in writes]
        hearing: Hearing = {}
        for step in arrange(writes):
            if step.form.heard is None:
                hearing.clear()  # It may be what adds or removes listeners.
            for number, place, changed in zip(
                step.write, step.place, await self._run(connection, step, hearing), strict=True
            ):
                counts[number][place] += changed
        for write, changed_rows in zip(writes, counts, strict=True):
            _insist(write, changed_rows)
        return counts

    async def _run(self, connection: Any, step: ExecutionRun, hearing: Hearing) -> list[int]:
        form, rows = step.form, step.args
        if form.heard is None:
            return await self._change(connection, form, rows)
        tenants = frozenset([row[0] for row in rows])
        heard = hearing.get((form.heard, tenants))
        if heard is None:
            found = await connection.fetch(form.heard, list(tenants))
            heard = hearing[form.heard, tenants] = {row[0] for row in found}
        told = [row for row in rows if row[0] in heard]
        counts = iter(await self._change(connection, form, told) if told else ())
        return [next(counts) if row[0] in heard else 0 for row in rows]

    async def _change(self, connection: Any, form: Form, rows: Sequence[Sequence[Any]]) -> list[int]:
        if len(rows) == 1:
            if form.counted is form.text:
                return [int(await connection.fetchval(form.text, *rows[0]))]
            return [_changed(await connection.execute(form.text, *rows[0]))]
        if form.bulk is not None:
            given = add_up(rows, form.key) if form.key else rows
            for start in range(0, len(given), BULK_ROWS):
                await self._insert(connection, form, form.bulk, given[start : start + BULK_ROWS])
            return [1] * len(rows)
        if form.width:
            await connection.executemany(form.text, rows)
            return [1] * len(rows)
        if form.counted is not None:
            return [row[0] for row in await connection.fetchmany(form.counted, rows)]
        return [_changed(await connection.execute(form.text, *args)) for args in rows]

    async def _insert(self, connection: Any, form: Form, into: Insert, rows: Sequence[Sequence[Any]]) -> None:
        if len(rows) == 1:
            await connection.execute(form.text, *rows[0])
            return
        size = bulk_size(len(rows))
        text = self._bulk.get((into, size)) or await self._write_bulk(connection, form, into, size)
        empty = [None] * (into.width * (size - len(rows)))
        await connection.execute(text, *chain.from_iterable(rows), *empty, len(rows))

    async def _write_bulk(self, connection: Any, form: Form, into: Insert, size: int) -> str:
        """Learn the types of an insert's arguments, and build the text that takes so many rows."""
        prepared = await connection.prepare(form.text)
        types = [kind.name for kind in prepared.get_parameters()]
        text = self._bulk[into, size] = bulk_text(into, types, size)
        return text

    async def _apart(self, connection: Any, writes: Sequence[Sequence[Statement]]) -> list[Reply]:
        replies: list[Reply] = []
        for write in writes:
            await connection.execute("SAVEPOINT one")
            try:
                counts = []
                for one in write:
                    steps = arrange([[one]])
                    counts.append(sum([sum(await self._run(connection, step, {})) for step in steps]))
                    _insist([one], counts[-1:])
            except WrongRowCount as unmet:
                replies.append(Lost(str(unmet)))
            except ERRORS as error:
                guilty = failure(error)
                if _is_down(guilty) or connection.is_closed():
                    raise
                replies.append(_reply(guilty))
            else:
                await connection.execute("RELEASE SAVEPOINT one")
                replies.append(counts)
                continue
            await connection.execute("ROLLBACK TO SAVEPOINT one; RELEASE SAVEPOINT one")
        return replies


def _insist(write: Sequence[Statement], counts: Sequence[int]) -> None:
    for one, changed in zip(write, counts, strict=True):
        if one.rows is not None and one.rows != changed:
            raise WrongRowCount(f"{changed} rows changed where {one.rows} must")


def _is_down(reason: Exception) -> bool:
    return isinstance(reason, StoreDown) and not isinstance(reason, StatementRefused)


def _changed(status: str) -> int:
    """Read the count from a command's status: INSERT 0 n, UPDATE n, DELETE n."""
    word = status.rpartition(" ")[2]
    return int(word) if word.isdigit() else 0


def _reply(guilty: Exception) -> Reply:
    assert isinstance(guilty, Clash | Lost | Misuse | StoreDown)
    return guilty
