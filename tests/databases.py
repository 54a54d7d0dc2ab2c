"""Databases for tests: each has one of its own, on the server of VETTANCE_TEST_POSTGRES."""

import asyncio
import atexit
import contextlib
import functools
import os
import secrets
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

import asyncpg

Answer = TypeVar("Answer")

SERVER = os.environ.get("VETTANCE_TEST_POSTGRES", "postgresql://postgres@127.0.0.1:5432/postgres")


@functools.cache
def absence() -> str | None:
    """Why there is no server to test on, or None when there is one."""
    try:
        _ask("SELECT 1")
    except (OSError, TimeoutError, asyncpg.PostgresError, asyncpg.InterfaceError) as error:
        return f"no PostgreSQL at {SERVER.rpartition('@')[2]} ({type(error).__name__})"
    return None


def url_of(name: str) -> str:
    """Name a database of the server."""
    return f"{SERVER.rpartition('/')[0]}/{name}"


@contextlib.contextmanager
def database() -> Iterator[str]:
    """Make an empty database, and drop it at the end of the block whoever still uses it."""
    name = f"vettance_test_{secrets.token_hex(6)}"
    _ask(f"CREATE DATABASE {name}")
    try:
        yield url_of(name)
    finally:
        _ask(f"DROP DATABASE {name} WITH (FORCE)")


def lasting_database() -> str:
    """Make an empty database that lasts until this process ends."""
    held = database()
    url = held.__enter__()
    atexit.register(held.__exit__, None, None, None)
    return url


def ask(url: str, sql: str, *args: Any) -> list[Any]:
    """Ask a database as its superuser, past every wall."""
    return run_beside(lambda: _fetch(url, sql, *args))


def run_beside(act: Callable[[], Coroutine[Any, Any, Answer]]) -> Answer:
    """Run a coroutine to its end, be there an event loop in this thread already."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(act())
    with ThreadPoolExecutor(1) as beside:
        return beside.submit(lambda: asyncio.run(act())).result()


def _ask(sql: str) -> None:
    ask(SERVER, sql)


async def _fetch(url: str, sql: str, *args: Any) -> list[Any]:
    connection = await asyncpg.connect(url, timeout=5)
    try:
        return [tuple(row) for row in await connection.fetch(sql, *args)]
    finally:
        await connection.close()
