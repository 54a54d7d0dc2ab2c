"""PostgreSQL is backed up by its own tools, as docs/operations.md says: every table comes back."""

import asyncio
import datetime
import os
import secrets
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.databases import SERVER, absence, ask, database, url_of
from tests.db.filled import fill
from tests.db.rows import decided
from tests.live import run_cli
from tests.servers import programs
from vettance.db import postgres_schema
from vettance.db.engine import Statement, everyone
from vettance.db.migrate import migrate
from vettance.db.postgres import PostgresStore
from vettance.db.tables import EVENT

#: What the owner of a database says beside its name: the walls between tenants bind it too.
OF_ALL = {"PGOPTIONS": "-c vettance.tenant=*"}
DUMP = ("pg_dump", "--format=custom", "--enable-row-security")


def run(*command: str | Path, env: dict[str, str] | None = None, ok: bool = True) -> str:
    """Run a program of PostgreSQL; returns what it complained of."""
    folder = programs()
    program = shutil.which(str(command[0])) or (folder and shutil.which(str(command[0]), path=str(folder)))
    if not program:
        pytest.skip(f"there is no {command[0]} here")
    done = subprocess.run(
        [program, *command[1:]],
        check=False,
        env={**os.environ, **(env or {})},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert (done.returncode == 0) == ok, done.stderr
    return done.stderr


def contents(url: str) -> dict[str, list[str]]:
    """Return every row of every table as a text, those of partitions under their table."""
    names = ask(
        url,
        "SELECT relname FROM pg_class WHERE relkind IN ('r', 'p') AND NOT relispartition "
        "AND relnamespace = 'public'::regnamespace ORDER BY 1",
    )
    return {
        name: [row for (row,) in ask(url, f"SELECT one::text FROM {name} AS one ORDER BY 1")]
        for (name,) in names
    }


@pytest.fixture
def owned() -> Iterator[tuple[str, str]]:
    """Two empty databases of a role that owns them and nothing more."""
    if (reason := absence()) is not None:
        pytest.skip(reason)
    owner = f"vettance_owner_{secrets.token_hex(4)}"
    ask(SERVER, f"CREATE ROLE {owner} LOGIN")
    with database() as one, database() as two:
        for made in (one, two):
            ask(SERVER, f"ALTER DATABASE {made.rpartition('/')[2]} OWNER TO {owner}")
        yield one.replace("postgres@", f"{owner}@"), two.replace("postgres@", f"{owner}@")
    ask(SERVER, f"DROP ROLE {owner}")


async def test_every_table_comes_back_from_a_dump_that_was_made_while_others_wrote(
    owned: tuple[str, str], tmp_path: Path
) -> None:
    url, again = owned
    above = {name: url_of(name.rpartition("/")[2]) for name in owned}
    migrate(tmp_path / "here" / "vettance.db")
    tables = fill(tmp_path / "here" / "vettance.db", rows=50)
    await asyncio.to_thread(
        run_cli, tmp_path, "copy", "--from", f"sqlite:{tmp_path / 'here'}", "--to", url, data=False
    )
    before = contents(above[url])
    assert {name: len(before[name]) for name in tables} == dict.fromkeys(tables, 50)
    refused = await asyncio.to_thread(
        run, "pg_dump", "--format=custom", f"--file={tmp_path / 'x'}", url, ok=False
    )
    assert "row-level security" in refused
    dump = tmp_path / "dump"
    async with await PostgresStore.open(url) as store:
        dumping = asyncio.create_task(asyncio.to_thread(run, *DUMP, f"--file={dump}", url, env=OF_ALL))
        month = postgres_schema.bound("evt", datetime.datetime.now(datetime.UTC))
        written = 0
        is_over = False
        while not is_over:
            is_over = dumping.done()  # Once more after it.
            await asyncio.gather(*(store.write(*decided(f"{month}{written + one:08x}")) for one in range(8)))
            written += 8
        await dumping
    after = contents(above[url])
    await asyncio.to_thread(run, "pg_restore", "--no-acl", f"--dbname={again}", "--exit-on-error", dump)
    found = contents(above[again])
    busy = ("event", "decision", "delivery")
    assert found.keys() == before.keys()
    for table, rows in found.items():
        if table in busy:
            assert set(before[table]) <= set(rows) < set(after[table])
        else:
            assert rows == before[table] == after[table], table
    assert len({len(found[table]) for table in busy}) == 1
    async with await PostgresStore.open(again) as store:
        assert await store.migrate() == len(before["schema_version"])
        newest = (await store.read(everyone(EVENT, "SELECT MAX(seq) FROM event")))[0][0]
        await store.write(*decided(f"{month}ffffffff"))
        assert (await store.read(everyone(EVENT, "SELECT MAX(seq) FROM event")))[0][0] > newest
        # The walls came back as well.
        assert await store.read(Statement("SELECT * FROM event")) == []
