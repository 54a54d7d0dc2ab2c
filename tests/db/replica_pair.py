"""A primary with a real streaming replica, for tests: its replay can be held up."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from tests.databases import ask, run_beside
from tests.db.rows import until
from tests.servers import private, programs
from vettance.db import postgres_schema

running = contextmanager(private)


class Pair(NamedTuple):
    """A primary with its replica."""

    primary: str
    replica: str
    folder: Path


@contextmanager
def pair() -> Iterator[Pair]:
    folder = programs()
    assert folder is not None
    with ExitStack() as stack:
        homes = [Path(stack.enter_context(TemporaryDirectory(prefix="vettance-postgres-"))) for _ in range(2)]
        primary = stack.enter_context(running(folder, homes[0]))
        assert primary is not None
        run_beside(partial(postgres_schema.migrate, primary))
        replica = stack.enter_context(running(folder, homes[1], primary))
        assert replica is not None
        yield Pair(primary, replica, homes[1])


@contextmanager
def paused(servers: Pair) -> Iterator[None]:
    """Hold up the replay of the replica."""
    ask(servers.replica, "SELECT pg_wal_replay_pause()")
    try:
        yield
    finally:
        ask(servers.replica, "SELECT pg_wal_replay_resume()")


async def replayed(servers: Pair) -> None:
    """Wait until the replica has all that is written."""
    (position,) = ask(servers.primary, "SELECT pg_current_wal_flush_lsn()::text")
    await until(
        lambda: (
            ask(servers.replica, "SELECT pg_last_wal_replay_lsn() >= $1::text::pg_lsn", *position)
            == [(True,)]
        )
    )
