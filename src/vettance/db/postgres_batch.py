"""Group commit on PostgreSQL: applies the writes of many callers in one transaction and answers each."""

import re
from collections.abc import Collection, Sequence
from typing import Any, Final, NamedTuple

from vettance.db.bulk_inserts import BulkInserts, WaitingRows
from vettance.db.dialect import ExecutionRun, Form, arrange
from vettance.db.engine import EVERYBODY, Clash, Lost, Misuse, Statement, StoreDown
from vettance.db.postgres_link import ERRORS, RolledBack, StatementRefused, failure

#: How many rows each statement of a write changed, or why none of it was kept.
Reply = list[int] | Clash | Lost | Misuse | StoreDown

# One batch at a time in the whole database, but for what nobody follows (`UNFOLLOWED`). Places in the log are
# then in the order of the commits, so that a reader that has reached one has missed none; and batches, which
# touch the same counts in any order, cannot deadlock. The number is the word "vettance" in ASCII, so that
# nobody else will take the same one.
TURN: Final = 0x76657474616E6365
LOCK: Final = f"SELECT pg_advisory_xact_lock({TURN})"
#: Which of some tenants have listeners, by the question and the tenants.
Hearing = dict[tuple[str, frozenset[str]], set[str]]
_TENANTS: Final = "SELECT set_config('vettance.tenant', $1, true)"
#: Tenants that a text may name as they are.
_PLAIN: Final = re.compile(r"[A-Za-z0-9_,]+|\*")


class CommitBatch(NamedTuple):
    """Writes that are committed together, whose rows they are about, and whether they take a turn."""

    writes: list[Sequence[Statement]]
    tenants: set[str]
    in_turn: bool = True


class WrongRowCount(Exception):
    """A statement changed another number of rows than its write demands."""


class BatchCommitter:
    """Applies batches on a connection that is passed to it; caches the texts of bulk inserts."""

    def __init__(self) -> None:
        self._inserts = BulkInserts()

    async def begin(
        self, connection: Any, tenants: Collection[str] = (), *, in_turn: bool = True
    ) -> Collection[str]:
        """Open a transaction and wait for this process's turn, if it takes one.

        `tenants` are those whose rows it is likely to touch. Returns which of them are admitted, all or none:
        to admit them before the turn spares everybody who waits for one a round trip.
        """
        shown = _shown(tenants)
        is_plain = _PLAIN.fullmatch(shown) is not None
        admission = [_TENANTS.replace("$1", f"'{shown}'")] if is_plain else []
        await connection.execute("; ".join(["BEGIN", *admission, *([LOCK] if in_turn else [])]))
        return shown.split(",") if is_plain else ()

    async def admit(self, connection: Any, tenants: Collection[str]) -> None:
        """Name the tenants whose rows the transaction touches; maintenance of all is shown every row."""
        await connection.fetchval(_TENANTS, _shown(tenants))

    async def apply(self, connection: Any, batch: CommitBatch, admitted: Collection[str] = ()) -> list[Reply]:
        """Commit all writes at once; if one fails, undo them and commit them apart, so that only it fails.

        So too when the server undid them for the sake of another transaction. `admitted` are the tenants that
        `begin` has named.

        Raises what the driver raises when it is the store that failed.
        """
        if any("," in tenant for tenant in batch.tenants):
            await connection.execute("ROLLBACK")
            return [Misuse("a tenant's name holds a comma")] * len(batch.writes)
        try:
            if not batch.tenants or not batch.tenants.issubset(admitted):
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
        await self.begin(connection, in_turn=batch.in_turn)
        await self.admit(connection, batch.tenants)
        replies = await self._apart(connection, batch.writes)
        await connection.execute("COMMIT")
        return replies

    async def together(self, connection: Any, writes: Sequence[Sequence[Statement]]) -> list[list[int]]:
        """Apply writes in the transaction that is open, and return how many rows each statement changed.

        Raises `WrongRowCount`, and what the driver raises; the transaction is of no more use then.
        """
        counts = [[0] * len(write) for write in writes]
        for step, changes in await self._execute(connection, arrange(writes)):
            for number, place, changed in zip(step.write, step.place, changes, strict=True):
                counts[number][place] += changed
        for write, changed_rows in zip(writes, counts, strict=True):
            _insist(write, changed_rows)
        return counts

    async def _execute(
        self, connection: Any, steps: Sequence[ExecutionRun]
    ) -> list[tuple[ExecutionRun, Sequence[int]]]:
        """Execute steps in their order, and return with each how many rows its executions changed."""
        done: list[tuple[ExecutionRun, Sequence[int]]] = []
        waiting, hearing = WaitingRows(), Hearing()
        for step in steps:
            form = step.form
            if form.heard is not None:
                done.append((step, await self._tell(connection, step, form.heard, waiting, hearing)))
                continue
            hearing.clear()  # It may be what adds or removes listeners.
            if form.bulk is None or waiting.concern(form.tables):
                await self._inserts.send(connection, waiting)
            if form.bulk is None:
                done.append((step, await self._change(connection, form, step.args)))
            else:
                waiting.add(form, form.bulk, step.args)
                done.append((step, [1] * len(step.args)))
        await self._inserts.send(connection, waiting)
        return done

    async def _tell(
        self, connection: Any, step: ExecutionRun, question: str, waiting: WaitingRows, hearing: Hearing
    ) -> list[int]:
        """Execute what changes nothing where nobody listens, for those tenants that have listeners."""
        tenants = frozenset([row[0] for row in step.args])
        heard = hearing.get((question, tenants))
        if heard is None:
            if waiting.concern(step.form.tables):
                await self._inserts.send(connection, waiting)
            found = await self._inserts.send(connection, waiting, question, list(tenants))
            heard = hearing[question, tenants] = {row[0] for row in found}
        told = [row for row in step.args if row[0] in heard]
        if not told:
            return [0] * len(step.args)
        await self._inserts.send(connection, waiting)
        changes = iter(await self._change(connection, step.form, told))
        return [next(changes) if row[0] in heard else 0 for row in step.args]

    async def _change(self, connection: Any, form: Form, rows: Sequence[Sequence[Any]]) -> list[int]:
        if len(rows) == 1:
            if form.counted is form.text:
                return [int(await connection.fetchval(form.text, *rows[0]))]
            return [_changed(await connection.execute(form.text, *rows[0]))]
        if form.width:
            await connection.executemany(form.text, rows)
            return [1] * len(rows)
        if form.counted is not None:
            return [row[0] for row in await connection.fetchmany(form.counted, rows)]
        return [_changed(await connection.execute(form.text, *args)) for args in rows]

    async def _apart(self, connection: Any, writes: Sequence[Sequence[Statement]]) -> list[Reply]:
        replies: list[Reply] = []
        for write in writes:
            await connection.execute("SAVEPOINT one")
            try:
                counts = []
                for one in write:
                    executed = await self._execute(connection, arrange([[one]]))
                    counts.append(sum([sum(changes) for _, changes in executed]))
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


def _shown(tenants: Collection[str]) -> str:
    return EVERYBODY if EVERYBODY in tenants else ",".join(sorted(tenants))


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
