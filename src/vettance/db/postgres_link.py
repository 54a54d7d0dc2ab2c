"""Connections to PostgreSQL: every setting that durability or patience depends on, and what errors mean."""

import asyncio
import contextlib
import functools
import os
import re
import socket
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import asyncpg

from vettance.db.engine import Clash, Misuse, StoreDown
from vettance.db.migrate import migrations
from vettance.settings.urls import host_of, hosts_apart

#: The migrations.
FOLDER: Final = Path(__file__).parent / "schema" / "postgres"
#: How long a login may take, and again what is settled on the connection after it.
CONNECT_S_MAX: Final = 3.0
STATEMENTS_CACHED: Final = 512
#: The longest text that is kept prepared: inserts of many rows into several tables at once.
_STATEMENT_BYTES_MAX: Final = 32 * 1024
#: The role that does the daily work where the service was given one that no policy binds.
ROLE: Final = "vettance_service"

# A server or client that went away without a word is noticed within this time, and its transaction undone.
_SILENCE: Final = {
    "tcp_keepalives_idle": "3",
    "tcp_keepalives_interval": "1",
    "tcp_keepalives_count": "3",
    "tcp_user_timeout": "5000",
}
# The same at this end of the line, where the driver sets nothing.
_SILENCE_HERE: Final = (
    (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1),
    (socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, 3),
    (socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, 1),
    (socket.IPPROTO_TCP, socket.TCP_KEEPCNT, 3),
    (socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, 5_000),
)
#: A process that stops in the middle of a batch holds up every other one for this long, and no longer.
HOLD_MS_MAX: Final = 4_000

#: Classes and codes that say the store failed, not the statement
#: (postgresql.org/docs/15/errcodes-appendix.html).
_DOWN: Final = {
    "08": "the connection to PostgreSQL failed",
    "28": "PostgreSQL refuses the user from this host, or without TLS (pg_hba.conf)",
    "28P01": "PostgreSQL refuses user or password",
    "3D": "the database does not exist",
    "40": "PostgreSQL undid the transaction",
    "53": "PostgreSQL is out of resources",
    "53300": "PostgreSQL has no connection left (max_connections, or a limit of the role or database)",
    "55": "PostgreSQL is not in a state to do that",
    "55P03": "something in PostgreSQL is locked",
    "57": "PostgreSQL ended the request",
    "58": "the system of PostgreSQL failed",
    "XX": "PostgreSQL failed inside",
    "25P02": "PostgreSQL undid the transaction",
    "25P03": "PostgreSQL ended a transaction that stood still",
    "26000": "a prepared statement is gone",
    "57014": "the request to the store took too long",
}
_TOO_LONG: Final = "57014"
#: What to do about a write that was given up because it took too long.
TOO_LONG_DETAIL: Final = (
    "PostgreSQL is busy, or somebody holds a lock: see pg_stat_activity. The change may have been kept: "
    "look, and try again if it was not"
)


class RolledBack(StoreDown):
    """PostgreSQL undid a transaction for the sake of another one: nothing of it was kept, and it may be tried
    again at once."""


class StatementRefused(StoreDown):
    """The database refuses this statement in its present state, for want of a right, a table or room. That is
    for the deployment to mend; nothing of the write was kept, and other statements may be taken."""


class ReadOnly(StoreDown):
    """The database takes no writes at all until somebody promotes it, or sets it back."""

    def __init__(self) -> None:
        super().__init__("PostgreSQL takes no writes: it is a standby, or set read-only")


#: Why a server that takes writes is not read as a replica: it goes its own way.
NO_REPLICA: Final = "it is no replica: it takes writes itself"

_UNDONE: Final = {"40001", "40P01"}
_READ_ONLY: Final = "25006"
_NO_RIGHT: Final = "42501"
_NO_TABLE: Final = "42P01"
_NO_ROOM: Final = "53100"
_NOT_KNOWN: Final = "0A000"
#: What PgBouncer says to a setting that it does not pass on (pgbouncer.org/config.html).
_NOT_PASSED_ON: Final = "unsupported startup parameter"
_UNHEEDED: Final = (
    "SELECT name FROM pg_settings JOIN unnest($1::text[], $2::text[]) AS asked (name, value) USING (name) "
    "WHERE setting <> value ORDER BY name"
)
_CREATED: Final = re.compile(r"^CREATE TABLE (?:IF NOT EXISTS )?(\w+)", re.MULTILINE)


def failure(error: BaseException) -> Exception:
    """Tell what an error means: a `Clash`, a `Misuse` or a `StoreDown`; sentences hold no stored values."""
    if isinstance(error, asyncpg.PostgresError):
        return _refusal(error)
    if isinstance(error, OSError | TimeoutError | EOFError):
        return StoreDown("PostgreSQL cannot be reached")
    if isinstance(error, asyncpg.TargetServerAttributeNotMatched):
        return ReadOnly()
    if isinstance(error, asyncpg.InterfaceError | asyncpg.InternalClientError):
        if "argument" in str(error):
            return Misuse("the arguments do not fit the statement")
        # Whatever else the driver complains of is the state of a line that broke.
        return StoreDown("the connection to PostgreSQL failed")
    return Misuse(f"an argument cannot be stored ({type(error).__name__})")


def _refusal(error: Any) -> Exception:
    code = error.sqlstate or ""
    if code == "23505":
        return Clash(error.message or "a unique constraint refused the write")
    if (refused := _want(error, code)) is not None:
        return refused
    if (down := _down(str(error.message), code)) is not None:
        return down
    if code[:2] in ("22", "23"):
        # Texts of these classes hold the values that were refused.
        return Misuse(f"PostgreSQL does not take a value ({type(error).__name__})")
    return Misuse(" ".join(str(error.message or type(error).__name__).split()))


def _down(message: str, code: str) -> StoreDown | None:
    """Tell how the store failed; None where it was the statement."""
    if code == _READ_ONLY:
        return ReadOnly()
    if _NOT_PASSED_ON in message:
        return StoreDown(f"the pooler before PostgreSQL refuses a setting: {message}")
    if code == _NOT_KNOWN and "cached plan" in message:
        return StoreDown("a statement was prepared for an older schema")
    said = _DOWN.get(code) or _DOWN.get(code[:2])
    if said is None:
        return None
    if code in _UNDONE:
        return RolledBack(said)
    return StoreDown(said, TOO_LONG_DETAIL if code == _TOO_LONG else "")


def _want(error: Any, code: str) -> StatementRefused | None:
    """Tell what the database lacks; None where the statement itself is wrong."""
    message = " ".join(str(error.message or "").split())
    if code == _NO_ROOM:
        return StatementRefused("the disk of PostgreSQL is full")
    # Row level security refuses with the same code; that would be a bug of this program.
    if code == _NO_RIGHT and str(error.server_source_function).startswith("aclcheck_error"):
        return StatementRefused(f"PostgreSQL refuses a right that the service needs: {message}")
    if code == _NO_TABLE and tables_of_ours().intersection(re.findall(r"\w+", message)):
        return StatementRefused(f"the database lacks a table that a migration made: {message}")
    return None


@functools.cache
def tables_of_ours() -> frozenset[str]:
    """Name the tables that migrations make."""
    return frozenset(name for one in migrations(FOLDER) for name in _CREATED.findall(one.text))


#: Whatever may come out of the driver.
ERRORS: Final = (
    asyncpg.PostgresError,
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,
    OSError,
    EOFError,
    TimeoutError,
    ValueError,
    TypeError,
    OverflowError,
)


async def connect(
    url: str, *, statement_s_max: float, writes: bool, plain: bool = False, standby: bool = False
) -> Any:
    """Open a connection. Raises `StoreDown`. With `plain` it keeps the rights of its user, for the schema.

    Commits return when the log is on the disk, whatever the default of the database is. A database that takes
    no writes is refused (`ReadOnly`) to who `writes`, and to everybody where the URL names several hosts: a
    standby does not know yet what was written last. With `standby`, only one that follows another is taken.
    """
    settings = {
        **_SILENCE,
        "application_name": "vettance",
        "statement_timeout": str(int(statement_s_max * 1000)),
        "idle_in_transaction_session_timeout": str(HOLD_MS_MAX),
        "idle_session_timeout": "0",
        "lock_timeout": "0",
        # A batch waits for its turn first, and must see what was written meanwhile.
        "default_transaction_isolation": "read committed",
        "synchronous_commit": "on",
        "jit": "off",  # No statement here runs long enough to be worth compiling.
        "search_path": "public",
    }
    if not writes:
        settings["default_transaction_read_only"] = "on"
    hosts = hosts_apart(url)
    wanted = "read-write" if writes else "standby" if standby else "primary" if len(hosts) > 1 else "any"
    try:
        connection = await _log_in(hosts, wanted, settings)
        try:
            async with asyncio.timeout(CONNECT_S_MAX):
                if lost := await unheeded(connection, settings):
                    raise StoreDown(f"the pooler before PostgreSQL drops settings: {', '.join(lost)}")
                await _settle(connection, plain=plain)
        except BaseException:
            connection.terminate()
            raise
    except ERRORS as error:
        reason = failure(error)
        if standby and isinstance(error, asyncpg.TargetServerAttributeNotMatched):
            reason = StoreDown(NO_REPLICA)
        said = str(reason)
        detail = f"{', '.join(map(host_of, hosts))}: {_said(error)}" if isinstance(error, OSError) else ""
        raise reason if isinstance(reason, StoreDown) and not detail else StoreDown(said, detail) from None
    return connection


def _said(error: OSError) -> str:
    """Say why a host was not reached."""
    if isinstance(error, TimeoutError):
        return f"no answer within {CONNECT_S_MAX:g} s"
    # Of a name with several addresses the driver gives the refusals of all in one error without a number.
    return os.strerror(error.errno) if error.errno and error.errno > 0 else str(error.strerror or error)


async def unheeded(connection: Any, settings: Mapping[str, str]) -> list[str]:
    """Name what a connection was asked for and the server knows nothing of: a pooler may drop it silently."""
    # What is told to the line itself has no meaning for every line, and a pooler has a name of its own.
    own = {*_SILENCE, "application_name"}
    asked = {name: value for name, value in settings.items() if name not in own}
    return [name for (name,) in await connection.fetch(_UNHEEDED, [*asked], [*asked.values()])]


async def _log_in(hosts: list[str], wanted: str, settings: dict[str, str]) -> Any:
    """Log in at all hosts at once, and stay at the first that is what is wanted: a host that is gone is no
    reason to wait. Raises what the driver does, from a host that answered if there is one.
    """
    tries = [
        asyncio.create_task(
            asyncpg.connect(
                host,
                timeout=CONNECT_S_MAX,
                statement_cache_size=STATEMENTS_CACHED,
                max_cached_statement_lifetime=0,
                max_cacheable_statement_size=_STATEMENT_BYTES_MAX,
                server_settings=settings,
                target_session_attrs=wanted,
            )
        )
        for host in hosts
    ]
    refusals: list[BaseException] = []
    chosen: Any = None
    try:
        for done in asyncio.as_completed(tries):
            try:
                chosen = await done
                return chosen
            except ERRORS as error:
                refusals.append(error)
        raise min(refusals, key=lambda error: isinstance(error, OSError | TimeoutError))
    finally:
        for one in tries:
            one.cancel()
        for found in await asyncio.gather(*tries, return_exceptions=True):
            if found is not chosen and not isinstance(found, BaseException):
                found.terminate()


async def _settle(connection: Any, *, plain: bool) -> None:
    # The driver has no other way to its socket.
    line = connection._transport.get_extra_info("socket")
    if line.family != socket.AF_UNIX:
        for level, option, value in _SILENCE_HERE:
            line.setsockopt(level, option, value)
    # Sums of whole numbers are of this type, and are whole numbers here too.
    await connection.set_type_codec(
        "numeric", schema="pg_catalog", encoder=str, decoder=_number, format="text"
    )
    if not plain and await bypasses_row_security(connection):
        await connection.execute(f"SET ROLE {ROLE}")


def _number(text: str) -> int | float:
    return float(text) if "." in text or "a" in text else int(text)


async def part(connection: Any) -> None:
    """Let go of a connection, politely if it still listens."""
    with contextlib.suppress(*ERRORS):
        async with asyncio.timeout(1.0):
            await connection.close()
    if not connection.is_closed():
        connection.terminate()


async def bypasses_row_security(connection: Any) -> bool:
    """Tell whether the user of a connection bypasses row level security."""
    above = "SELECT rolsuper OR rolbypassrls FROM pg_roles WHERE rolname = current_user"
    return bool(await connection.fetchval(above))
