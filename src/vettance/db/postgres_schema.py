"""The schema on PostgreSQL: migrations, the partitions of months, and the role that the policies bind."""

# ruff: noqa: S608 - only names of ours are put into the texts

import asyncio
import contextlib
import datetime
import functools
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any, Final

import asyncpg

from vettance import clock
from vettance.db.engine import StoreDown
from vettance.db.migrate import Migration, SchemaRefused, hold_against, migrations
from vettance.db.postgres_batch import TURN
from vettance.db.postgres_link import (
    ERRORS,
    FOLDER,
    ROLE,
    bypasses_row_security,
    connect,
    failure,
    part,
    tables_of_ours,
)
from vettance.telemetry.logs import logger

PATIENCE_S: Final = 60.0
#: How long a change may stand in line for a table, with everybody who comes later behind it, and how long
#: it then lets them through. Less than the second after which PostgreSQL looks for processes that wait for
#: each other, and ends one: it is the change that has to give way then, not somebody's request.
LOCK_MS_MAX: Final = 300
LOCK_PAUSE_S: Final = 0.5
# One process at a time changes the schema. The number is "schema" in ASCII.
_SCHEMA: Final = 0x736368656D61
#: Months that have their partitions before they begin.
AHEAD: Final = 2
#: Months of the past that get partitions when they are copied; older rows share one.
BACK_MAX: Final = 120
#: Tables with a partition for each month; their ids begin with this prefix and the moment in hex digits.
PARTITIONED: Final = {"event": "evt", "decision": "evt"}

# Somebody holds what a change wants.
_BUSY: Final = (asyncpg.LockNotAvailableError, asyncpg.DeadlockDetectedError)
_TABLE: Final = """CREATE TABLE IF NOT EXISTS schema_version (
    version BIGINT PRIMARY KEY,
    name TEXT NOT NULL,
    digest TEXT NOT NULL,
    applied_at_ms BIGINT NOT NULL
)"""

# The rights are given together, so that one of them stands for all.
_LACKS: Final = """SELECT EXISTS (SELECT 1 FROM pg_class
    WHERE relnamespace = 'public'::regnamespace AND NOT relispartition AND CASE
        WHEN relkind IN ('r', 'p') THEN NOT has_table_privilege($1::name, oid, 'INSERT')
        WHEN relkind = 'S' THEN NOT has_sequence_privilege($1::name, oid, 'USAGE')
        ELSE FALSE END)"""
#: Asked as the role that does the daily work.
_LACKING: Final = """SELECT string_agg(wanted, ', ') || ' on ' || relname, current_user FROM pg_class,
    unnest(ARRAY['SELECT', 'INSERT', 'UPDATE', 'DELETE']) AS wanted
    WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p') AND NOT relispartition
    AND relname = ANY ($1::text[]) AND NOT has_table_privilege(oid, wanted)
    GROUP BY relname ORDER BY relname"""
_OPEN: Final = """SELECT whole.relname, one.relname FROM pg_inherits
    JOIN pg_class AS whole ON whole.oid = inhparent JOIN pg_class AS one ON one.oid = inhrelid
    WHERE whole.relname = ANY ($1::text[]) AND whole.relnamespace = 'public'::regnamespace
    AND NOT (one.relrowsecurity AND one.relforcerowsecurity) ORDER BY 2"""

_log = logger()


async def migrate(url: str, folder: Path = FOLDER) -> int:
    """Apply what is pending, each migration in one transaction, and return the version reached.

    Two processes may do so at once. Raises `SchemaRefused` when the database was made for newer programs only
    or from other migrations, `StoreDown` when it cannot be used.
    """
    known = migrations(folder)
    await prepare(url)
    async with owning(url) as connection:
        await connection.execute(f"SELECT pg_advisory_lock({_SCHEMA})")
        applied = await _applied(connection, known)
        for migration in known[applied:]:
            await _apply(connection, migration)
        if await bypasses_row_security(connection):
            await _let_work(connection)
        await _look_ahead(connection, patience_s=0)
    return len(known)


async def check(url: str, folder: Path = FOLDER, *, within_s: float | None = None) -> list[str]:
    """Name the pending migrations without applying any. Raises `TimeoutError` where it takes longer."""
    known = migrations(folder)
    async with asyncio.timeout(within_s), owning(url, writes=False) as connection:
        return [migration.name for migration in known[await _applied(connection, known) :]]


async def tend(url: str) -> None:
    """Make the partitions of the months to come, and drop those of the past that retention has emptied."""
    async with owning(url) as connection:
        await connection.execute(f"SELECT pg_advisory_lock({_SCHEMA})")
        await _look_ahead(connection, patience_s=PATIENCE_S)
        await _drop_empty(connection)


@contextlib.asynccontextmanager
async def owning(url: str, *, writes: bool = True) -> AsyncIterator[Any]:
    """Connect with the rights of the user that was given, to change the schema or to look at it."""
    connection = await connect(url, statement_s_max=PATIENCE_S, writes=writes, plain=True)
    try:
        await connection.execute("SET idle_in_transaction_session_timeout = 0")
        if (encoding := connection.get_settings().server_encoding) != "UTF8":
            raise StoreDown(
                f"the database has the encoding {encoding}, which cannot hold every text: "
                "make one with `createdb --encoding UTF8 --template template0`"
            )
        yield connection
    except ERRORS as error:
        reason = failure(error)
        raise reason if isinstance(reason, StoreDown) else StoreDown(f"PostgreSQL: {reason}") from None
    finally:
        await part(connection)


async def _applied(connection: Any, known: list[Migration]) -> int:
    """Count the migrations that the database has seen, holding each against the one we know."""
    if await connection.fetchval("SELECT to_regclass('schema_version')") is None:
        return 0
    rows = await connection.fetch("SELECT version, name, digest FROM schema_version ORDER BY version")
    return hold_against(rows, known, "the database")


async def _apply(connection: Any, migration: Migration) -> None:
    async def change() -> None:
        # It has its turn by now, and the waits for tables have a limit of their own; an index over a long log
        # takes its time, whenever it is tried.
        await connection.execute("SET LOCAL statement_timeout = 0")
        await connection.execute(_TABLE)
        await connection.execute(migration.text)
        await connection.execute(
            "INSERT INTO schema_version (version, name, digest, applied_at_ms) VALUES ($1, $2, $3, $4)",
            *(migration.version, migration.name, migration.digest, clock.now_ms()),
        )

    try:
        await _in_turns(connection, change, PATIENCE_S)
    except ERRORS as error:
        reason = failure(error)
        if isinstance(reason, StoreDown):
            raise reason from None
        raise SchemaRefused(f"migration {migration.name}: {reason}") from None


async def _in_turns(connection: Any, change: Callable[[], Awaitable[None]], patience_s: float) -> None:
    """Change the schema in one transaction while the service is working.

    It has the turn of the batches, so that no writer can hold one of its tables and want another. What waits
    for a table holds up everybody who comes after, so it waits for moments, and lets others through between.
    """
    until_s = time.monotonic() + patience_s
    while True:
        try:
            async with connection.transaction():
                await connection.execute(f"SET LOCAL lock_timeout = {LOCK_MS_MAX}")
                await connection.execute(f"SELECT pg_advisory_xact_lock({TURN})")
                # Row level security binds the owner of the tables too.
                await connection.execute("SELECT set_config('vettance.tenant', '*', true)")
                return await change()
        except _BUSY:
            if time.monotonic() > until_s:
                raise
        await asyncio.sleep(LOCK_PAUSE_S)


async def lacking(connection: Any) -> str | None:
    """Name the rights that a connection lacks, with the mend, or None where it has all."""
    rows = await connection.fetch(_LACKING, sorted(tables_of_ours()))
    if not rows:
        return None
    user = rows[0][1]
    return (
        f"{user} lacks {'; '.join(row[0] for row in rows)}: "
        f"`GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO {user}`"
    )


async def prepare(url: str) -> None:
    """Where the user that was given is bound by no policy, have a role that is, for the daily work."""
    async with owning(url) as connection:
        if await bypasses_row_security(connection) and not await connection.fetchval(
            "SELECT 1 FROM pg_roles WHERE rolname = $1", ROLE
        ):
            # Another database of this server may be set up at the same moment.
            with contextlib.suppress(asyncpg.DuplicateObjectError, asyncpg.UniqueViolationError):
                await connection.execute(f"CREATE ROLE {ROLE} NOLOGIN; GRANT {ROLE} TO CURRENT_USER")


async def _let_work(connection: Any) -> None:
    """Give that role what it needs in this database, where it lacks anything: a start may have ended between
    its last migration and this."""
    if not await connection.fetchval(_LACKS, ROLE):
        return
    await connection.execute(
        f"GRANT USAGE ON SCHEMA public TO {ROLE};"
        f"GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO {ROLE};"
        f"GRANT USAGE, SELECT, UPDATE ON ALL SEQUENCES IN SCHEMA public TO {ROLE}"
    )


def month_of(moment: datetime.datetime, later: int) -> datetime.datetime:
    """Return the first instant of the month that is `later` months after that of a moment (UTC)."""
    months = moment.year * 12 + moment.month - 1 + later
    return datetime.datetime(months // 12, months % 12 + 1, 1, tzinfo=datetime.UTC)


def bound(prefix: str, month: datetime.datetime) -> str:
    """Return the least id of a month: its prefix and 48 bits of Unix milliseconds (RFC 9562, section 5.7)."""
    return f"{prefix}_{int(month.timestamp() * 1000):012x}"


async def partition(connection: Any, since: datetime.datetime) -> None:
    """Make the partitions of all months since a moment, and those of the months to come."""
    now = datetime.datetime.now(datetime.UTC)
    months = (since.year - now.year) * 12 + since.month - now.month
    for table, month in await _missing(connection, max(months, -BACK_MAX)):
        await _part_off(connection, table, month, PATIENCE_S)


async def _look_ahead(connection: Any, *, patience_s: float) -> None:
    """Make the partitions of this month and those to come, and their policies, where no lock is in the way.

    A dump does so for hours. Until a later turn makes them the last partition takes their rows.
    """
    for table, month in await _missing(connection, 0):
        try:
            await _part_off(connection, table, month, patience_s)
        except _BUSY:
            _log.warning("partition_not_made", partition=_name(table, month))
    # The last one, which a migration makes, and what versions before this one have made.
    for table, name in await connection.fetch(_OPEN, [*PARTITIONED]):
        try:
            await _in_turns(connection, functools.partial(_wall_in, connection, table, name), 0)
        except _BUSY:
            _log.warning("partition_without_wall", partition=name)


async def _missing(connection: Any, first: int) -> list[tuple[str, datetime.datetime]]:
    now = datetime.datetime.now(datetime.UTC)
    every = [(table, month_of(now, later)) for table in PARTITIONED for later in range(first, AHEAD + 1)]
    there = await connection.fetch(
        "SELECT one FROM unnest($1::text[]) AS one WHERE to_regclass(one) IS NOT NULL",
        [_name(table, month) for table, month in every],
    )
    names = {name for (name,) in there}
    return [(table, month) for table, month in every if _name(table, month) not in names]


def _name(table: str, month: datetime.datetime) -> str:
    return f"{table}_{month:%Y_%m}"


async def _part_off(connection: Any, table: str, month: datetime.datetime, patience_s: float) -> None:
    first, end = (bound(PARTITIONED[table], one) for one in (month, month_of(month, 1)))
    text = f"CREATE TABLE {_name(table, month)} PARTITION OF {table} FOR VALUES FROM ('{first}') TO ('{end}')"

    async def change() -> None:
        await connection.execute(text)
        await _wall_in(connection, table, _name(table, month))

    # Rows of this month may be in the last partition already, where they are as safe as anywhere.
    with contextlib.suppress(asyncpg.CheckViolationError):
        await _in_turns(connection, change, patience_s)


async def _wall_in(connection: Any, table: str, name: str) -> None:
    """Give a partition the policy of its table, for readers that name the partition, such as a dump."""
    condition = await connection.fetchval(
        "SELECT pg_get_expr(polqual, polrelid) FROM pg_policy WHERE polrelid = $1::regclass", table
    )
    await connection.execute(
        f"ALTER TABLE {name} ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;"
        f"DROP POLICY IF EXISTS tenant_wall ON {name};"
        f"CREATE POLICY tenant_wall ON {name} USING ({condition})"
    )


async def _drop_empty(connection: Any) -> None:
    """Drop the partitions of months that are over for long and hold nothing any more."""
    before = f"{month_of(datetime.datetime.now(datetime.UTC), -2):%Y_%m}"
    for table in PARTITIONED:
        rows = await connection.fetch(
            "SELECT child.relname FROM pg_inherits JOIN pg_class AS child ON child.oid = inhrelid "
            "WHERE inhparent = $1::regclass ORDER BY 1",
            table,
        )
        for (name,) in rows:
            month = name.removeprefix(f"{table}_")
            if month == "rest" or month >= before:
                continue
            # Nearly all of them hold something, and to know that nobody has to wait.
            async with connection.transaction():
                await connection.execute("SELECT set_config('vettance.tenant', '*', true)")
                is_empty = await _is_empty(connection, table, month)
            if is_empty:
                dropping = functools.partial(_drop_if_empty, connection, table, month)
                await _in_turns(connection, dropping, PATIENCE_S)


async def _drop_if_empty(connection: Any, table: str, month: str) -> None:
    await connection.execute(f"LOCK TABLE {table} IN ACCESS EXCLUSIVE MODE")
    if await _is_empty(connection, table, month):
        await connection.execute(f"DROP TABLE {table}_{month}")


async def _is_empty(connection: Any, table: str, month: str) -> bool:
    return not await connection.fetchval(
        f"SELECT EXISTS (SELECT 1 FROM {table} WHERE id >= $1 AND id < $2)", *_span(table, month)
    )


def _span(table: str, month: str) -> tuple[str, str]:
    year, number = month.split("_")
    first = datetime.datetime(int(year), int(number), 1, tzinfo=datetime.UTC)
    return bound(PARTITIONED[table], first), bound(PARTITIONED[table], month_of(first, 1))
