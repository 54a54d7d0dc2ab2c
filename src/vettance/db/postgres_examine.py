"""Examine: what a command asks a PostgreSQL database once, without becoming a service on it."""

import asyncio
import datetime
import functools
from typing import Any, Final, NamedTuple

from vettance.db.engine import ANSWER_S_MAX, Row, Statement, StoreDown
from vettance.db.postgres_link import ERRORS, connect, failure, part
from vettance.db.postgres_read import ReadConnection
from vettance.db.postgres_schema import AHEAD, PARTITIONED, lacking, month_of, owning
from vettance.db.replica_link import ReplicaLink

#: What decides whether a commit that was acknowledged can be lost, and what each must say
#: (postgresql.org/docs/15/runtime-config-wal.html).
DURABLE: Final = {"fsync": "on", "full_page_writes": "on"}
#: The service asks for it itself; a pooler in between may keep that from the server.
COMMIT: Final = "synchronous_commit"
#: Without it, dead rows are never removed.
VACUUM: Final = "autovacuum"
COMMITS: Final = ("on", "remote_apply", "remote_write", "local")


class DatabaseHealth(NamedTuple):
    """How a database stands. `partless` names the months to come that have no partition yet."""

    version: int  # such as 150004
    settings: dict[str, str]
    is_standby: bool
    now_ms: int  # by its clock
    connections_max: int
    partless: tuple[str, ...]
    #: The rights that the service lacks, with the mend.
    lacking: str | None


async def ask(url: str, statement: Statement) -> list[Row]:
    """Return the rows of a query. Raises `StoreDown`, `Misuse`, `TimeoutError`."""
    async with asyncio.timeout(ANSWER_S_MAX):
        connection = await connect(url, statement_s_max=ANSWER_S_MAX, writes=False)
        try:
            return await ReadConnection(connection).fetch(statement)
        except ERRORS as error:
            raise failure(error) from None
        finally:
            await part(connection)


async def examine(url: str) -> DatabaseHealth:
    """Look at what durability and the next months depend on. Raises `StoreDown`, `TimeoutError`."""
    async with asyncio.timeout(ANSWER_S_MAX), owning(url, writes=False) as connection:
        names = (*DURABLE, COMMIT, VACUUM, "server_version_num", "max_connections")
        settings = {name: await connection.fetchval("SELECT current_setting($1)", name) for name in names}
        return DatabaseHealth(
            version=int(settings.pop("server_version_num")),
            connections_max=int(settings.pop("max_connections")),
            settings=settings,
            is_standby=await connection.fetchval("SELECT pg_is_in_recovery()"),
            now_ms=await connection.fetchval("SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint"),
            partless=await _partless(connection),
            lacking=await _lacking(url),
        )


async def lag_of(url: str, replica_url: str) -> float | None:
    """Return how many seconds a replica is behind; None where the primary does not say how far it is.

    Raises `StoreDown`.
    """
    link = ReplicaLink(replica_url, functools.partial(ask, url), lag_s_max=0.0, read_s_max=ANSWER_S_MAX)
    try:
        async with asyncio.timeout(ANSWER_S_MAX):
            return await link.measure()
    except ERRORS as error:
        reason = failure(error)
        raise reason if isinstance(reason, StoreDown) else StoreDown(str(reason)) from None
    finally:
        await link.close()


async def _lacking(url: str) -> str | None:
    try:
        connection = await connect(url, statement_s_max=ANSWER_S_MAX, writes=False)
    except StoreDown:
        return None  # Before the first start there is no role for the daily work.
    try:
        return await lacking(connection)
    finally:
        await part(connection)


async def _partless(connection: Any) -> tuple[str, ...]:
    now = datetime.datetime.now(datetime.UTC)
    missing = set()
    for table in PARTITIONED:
        if await connection.fetchval("SELECT to_regclass($1)", table) is None:
            continue
        for later in range(AHEAD + 1):
            month = f"{month_of(now, later):%Y_%m}"
            if await connection.fetchval("SELECT to_regclass($1)", f"{table}_{month}") is None:
                missing.add(month.replace("_", "-"))
    return tuple(sorted(missing))
