"""A PostgreSQL that takes no writes for a while, and one that another server follows and replaces."""

import asyncio
import contextlib
import os
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from tests.databases import ask
from tests.db.rows import all_uses, until, use
from tests.servers import private, programs
from vettance.db import postgres_examine, postgres_schema
from vettance.db.engine import StoreDown
from vettance.db.postgres import PostgresStore
from vettance.db.postgres_link import ReadOnly, connect, part

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(programs() is None, reason="no programs of PostgreSQL here"),
]

running = contextmanager(private)


@contextmanager
def place() -> Iterator[Path]:
    # Not below tmp_path, which the user that PostgreSQL runs as may not enter.
    with TemporaryDirectory(prefix="vettance-postgres-") as made:
        yield Path(made)


def start_again(data: Path) -> None:
    folder = programs()
    assert folder is not None
    as_user = (
        ["setpriv", "--reuid=postgres", "--regid=postgres", "--init-groups"] if os.geteuid() == 0 else []
    )
    subprocess.run(
        [*as_user, folder / "pg_ctl", "-D", data, "-w", "-m", "fast", "-l", data / "log", "restart"],
        check=True,
        capture_output=True,
    )


async def insist_kept(store: PostgresStore, hour: int) -> None:
    """Write until it is kept, and not for longer than a database may take to be found again."""
    async with asyncio.timeout(5):
        while True:
            with contextlib.suppress(StoreDown):
                await store.write(use("ten_a", hour))
                return
            await asyncio.sleep(0.05)


async def test_a_server_that_became_a_standby_is_read_and_takes_writes_again_when_it_is_promoted() -> None:
    folder = programs()
    assert folder is not None
    with place() as home, running(folder, home) as url:
        assert url is not None
        await postgres_schema.migrate(url)
        async with await PostgresStore.open(url) as store:
            await store.write(use("ten_a", 1))
            (home / "data" / "standby.signal").touch()
            await asyncio.to_thread(start_again, home / "data")
            with pytest.raises(StoreDown):
                await store.write(use("ten_a", 2))
            await until(lambda: "takes no writes" in str(store.trouble))
            for _ in range(20):
                with pytest.raises(StoreDown, match="takes no writes"):
                    await store.write(use("ten_a", 2))
                with pytest.raises(ReadOnly):
                    async with store.turn():
                        pass
                assert not store.healthy()
            assert await store.read(all_uses()) == [("ten_a", 1, 1)]
            with pytest.raises(ReadOnly):
                await PostgresStore.open(url)
            assert (await postgres_examine.examine(url)).is_standby
            assert await postgres_schema.check(url) == []
            await asyncio.to_thread(ask, url, "SELECT pg_promote()")
            await insist_kept(store, 3)
            assert store.healthy()
            assert await store.read(all_uses()) == [("ten_a", 1, 1), ("ten_a", 3, 1)]


async def test_of_several_hosts_the_one_that_takes_writes_is_used_and_its_successor_found() -> None:
    folder = programs()
    assert folder is not None
    with place() as one, place() as other, ExitStack() as first:
        primary = first.enter_context(running(folder, one))
        assert primary is not None
        await postgres_schema.migrate(primary)
        with running(folder, other, primary) as standby:
            assert standby is not None
            hosts = [url.partition("@")[2].partition("/")[0] for url in (standby, primary)]
            url = f"postgresql://postgres@{','.join(hosts)}/postgres"
            async with await PostgresStore.open(url) as store:
                await store.write(use("ten_a", 1))
                reader = await connect(url, statement_s_max=5, writes=False)
                assert not await reader.fetchval("SELECT pg_is_in_recovery()"), "it would lag behind"
                await part(reader)
                await until(lambda: ask(standby, "SELECT count(*) FROM quota_use") == [(1,)])
                first.close()
                with pytest.raises(StoreDown):
                    await store.write(use("ten_a", 2))
                await until(lambda: "takes no writes" in str(store.trouble))
                await asyncio.to_thread(ask, standby, "SELECT pg_promote()")
                await insist_kept(store, 3)
                assert await store.read(all_uses()) == [("ten_a", 1, 1), ("ten_a", 3, 1)]
