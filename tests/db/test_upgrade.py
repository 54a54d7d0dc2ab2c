"""A newer schema under a running program: it goes on, it starts again, and it knows what it cannot use."""

import asyncio
import shutil
import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import asyncpg
import pytest

from tests.databases import absence, database
from tests.db.migration_rules import complaints, held
from tests.live import Service, started
from vettance.db import migrate as embedded
from vettance.db import postgres_schema

LOGIN = {"eventName": "user.login", "customer": {"externalId": "c-1"}}
#: What a version to come may bring: each kind of thing that only adds.
FUTURE = """
CREATE TABLE future (id TEXT PRIMARY KEY, tenant TEXT NOT NULL);
ALTER TABLE event ADD COLUMN future_text TEXT;
ALTER TABLE decision ADD COLUMN future_count BIGINT NOT NULL DEFAULT 7;
ALTER TABLE subscription ADD COLUMN future_flag BIGINT NOT NULL DEFAULT 0;
CREATE INDEX future_place ON event (tenant, future_text);
"""


class Upgrade:
    """A running service, and the schema of a version after it."""

    def __init__(self, service: Service, engine: str, folder: Path) -> None:
        self.service = service
        self._ours = (embedded if engine == "sqlite" else postgres_schema).FOLDER
        self._folder = folder
        shutil.copytree(self._ours, folder)

    def add(self, name: str, text: str) -> None:
        """Bring one more migration to the store, as the newer version would at its start."""
        number = len(list(self._folder.glob("*.sql"))) + 1
        (self._folder / f"{number:04d}_{name}.sql").write_text(text)
        url = self.service.env.get("VETTANCE_DATABASE_URL")
        if url is None:
            embedded.migrate(self.service.data / "vettance.db", self._folder)
        else:
            asyncio.run(postgres_schema.migrate(url, self._folder))


@pytest.fixture(params=["sqlite", "postgres"])
def upgrade(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Upgrade]:
    if request.param == "sqlite":
        service = started(tmp_path / "data")
        yield Upgrade(service, "sqlite", tmp_path / "schema")
        service.stop()
        return
    if (reason := absence()) is not None:
        pytest.skip(reason)
    with database() as url:
        service = started(tmp_path / "data", VETTANCE_DATABASE_URL=url)
        yield Upgrade(service, "postgres", tmp_path / "schema")
        service.stop()


def test_a_program_goes_on_and_starts_again_on_a_newer_schema(upgrade: Upgrade) -> None:
    service, statuses, ending = upgrade.service, Counter[int](), threading.Event()

    def ask() -> None:
        while not ending.is_set():
            statuses[service.post("/api/v1/decisions/evaluate", LOGIN).status] += 1
            statuses[service.get("/api/v1/events?limit=5").status] += 1

    asking = threading.Thread(target=ask)
    asking.start()
    try:
        service.wait_for(lambda: statuses[200] > 4, 30)
        upgrade.add("future", FUTURE)
        before = statuses[200]
        service.wait_for(lambda: statuses[200] > before + 4, 30)
    finally:
        ending.set()
        asking.join()
    assert set(statuses) == {200}
    assert service.rows("SELECT DISTINCT future_count FROM decision") == [(7,)]
    total = service.get("/api/v1/events").json["total"]
    service.stop()
    service.start()
    assert service.post("/api/v1/decisions/evaluate", LOGIN).status == 200
    assert service.get("/api/v1/events").json["total"] == total + 1
    assert service.cli("migrate", "--check", "--json") == {"pending": []}


def test_a_program_refuses_a_schema_that_says_it_breaks_with_it(upgrade: Upgrade) -> None:
    upgrade.add("future", FUTURE)
    upgrade.add("breaking_future", "DROP TABLE future;")
    done = upgrade.service.cli("migrate", "--check", ok=False)
    assert done.returncode == 1
    assert "start the newer version" in done.stderr


@pytest.mark.skipif(absence() is not None, reason="no PostgreSQL here")
def test_a_migration_that_waits_for_a_table_lets_others_through(tmp_path: Path) -> None:
    folder = tmp_path / "postgres"
    shutil.copytree(postgres_schema.FOLDER, folder)
    future = folder / f"{len(list(folder.glob('*.sql'))) + 1:04d}_future.sql"

    async def read(url: str) -> Any:
        connection = await asyncpg.connect(url)
        try:
            return await connection.fetchval("SELECT count(*) FROM event", timeout=10)
        finally:
            await connection.close()

    async def scene(url: str) -> None:
        await postgres_schema.migrate(url, folder)
        future.write_text(FUTURE)
        dump = await asyncpg.connect(url)
        async with dump.transaction():
            await dump.fetchval("SELECT count(*) FROM event")
            migrating = asyncio.create_task(postgres_schema.migrate(url, folder))
            for _ in range(10):
                assert await read(url) == 0
                await asyncio.sleep(0.2)
            assert not migrating.done()
        assert await asyncio.wait_for(migrating, 30) == len(list(folder.glob("*.sql")))
        await dump.close()

    with database() as url:
        asyncio.run(scene(url))


@pytest.mark.parametrize("folder", [embedded.FOLDER, postgres_schema.FOLDER], ids=lambda path: path.name)
def test_what_a_migration_does_is_what_its_name_allows(folder: Path) -> None:
    assert {
        file.name: said for file in held(folder) if (said := complaints(file.stem, file.read_text()))
    } == {}


@pytest.mark.parametrize(
    ("text", "allowed"),
    [
        (FUTURE, True),
        ("CREATE TABLE t (a TEXT NOT NULL); CREATE UNIQUE INDEX u ON t (a);", True),
        ("ALTER TABLE event ADD COLUMN a TEXT -- NOT NULL some day", True),
        ("DROP INDEX event_place; CREATE INDEX event_place ON event (seq, id);", True),
        (
            "ALTER TABLE job DROP CONSTRAINT job_id_key; CREATE UNIQUE INDEX job_name ON job (md5(id))",
            True,
        ),
        ("DROP INDEX job_id; CREATE UNIQUE INDEX job_name ON job (md5(id))", True),
        ("DROP INDEX event_place; CREATE UNIQUE INDEX job_name ON job (id)", False),
        ("DROP TABLE job", False),
        ("ALTER TABLE job DROP COLUMN label", False),
        ("ALTER TABLE job RENAME COLUMN label TO tag", False),
        ("ALTER TABLE job ADD COLUMN a TEXT NOT NULL", False),
        ("ALTER TABLE job ADD a BIGINT NOT NULL", False),
        ("ALTER TABLE job ALTER COLUMN label SET NOT NULL", False),
        ("ALTER TABLE job ALTER COLUMN label TYPE bytea", False),
        ("ALTER TABLE job ADD CONSTRAINT c CHECK (quiet < 2)", False),
        ("CREATE UNIQUE INDEX u ON job (label)", False),
        ("DELETE FROM job", False),
    ],
)
def test_what_only_adds_is_told_from_what_breaks(text: str, allowed: bool) -> None:
    assert (complaints("0099_x", text) == []) is allowed
    assert complaints("0099_breaking_x", text) == []
