"""Stores with a made-up history, and a service running on each: what `grown_stores.py` measures."""

import asyncio
import contextlib
import os
import shutil
import sqlite3
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import closing
from pathlib import Path
from typing import Final, NamedTuple

from bench.fixtures.private_stores import Postgres
from bench.fixtures.processes import cpu_s, processes_of, say
from bench.neighbours.neighbour import subscribe
from bench.store.grown_rows import Setting, fill_postgres, fill_sqlite
from vettance import clock
from vettance.db.engine import Store
from vettance.db.sqlite import store_path
from vettance.demo.launch import QUOTA, THROTTLE, RunningService, command, serving
from vettance.deployment.connect import connect_store
from vettance.history.compaction import Compactor
from vettance.history.segment import CHUNK
from vettance.settings.settings import read_settings
from vettance.watchlists.match import Subject
from vettance.watchlists.refresh import IndexKeeper
from vettance.watchlists.tenant_index import list_set_id

#: Tenants of a store. The first is asked; the others have as much, which nobody must read.
TENANTS: Final = 3
#: A name of the sample list.
LISTED: Final = "Sergei Viktorovich Lavrov"
_URL: Final = "VETTANCE_DATABASE_URL"


class Grown(NamedTuple):
    """A running service, and how many rows of each kind its store held before it started."""

    rows: int
    service: RunningService
    postgres: Postgres | None

    def cpu_s(self) -> float:
        """Return the processor seconds of all processes of the service and of its own PostgreSQL so far."""
        roots = [self.service.process.pid]
        if self.postgres is not None:
            roots.append(int((self.postgres.folder / "data" / "postmaster.pid").read_text().split()[0]))
        total = 0.0
        for pid in (pid for root in roots for pid in processes_of(root)):
            with contextlib.suppress(OSError):  # It has ended since.
                total += cpu_s(pid)
        return total


@contextlib.contextmanager
def grown(folder: Path, rows: int, engine: str, hook: str) -> Iterator[Grown]:
    """Make a store with `rows` of each kind, in equal parts of its tenants, and run a service on it."""
    folder.mkdir()
    with contextlib.ExitStack() as stack:
        postgres = stack.enter_context(_own_postgres()) if engine == "postgres" else None
        stack.enter_context(_named(postgres))
        tenants = [
            command(folder, "tenant", "create", f"Grown {n}", "--aml")["tenantId"] for n in range(TENANTS)
        ]
        asked = tenants[0]
        command(folder, "tenant", "set", asked, "--throttle", str(THROTTLE), "--quota", str(QUOTA))
        key = command(folder, "key", "create", "--tenant", asked)["apiKey"]
        command(folder, "watchlist", "import", "--source", "sample")
        settings = asyncio.run(settings_of(folder, tenants, hook))
        each = rows // TENANTS
        if postgres is None:
            fill_sqlite(store_path(folder), settings, each)
        else:
            asyncio.run(fill_postgres(postgres.url("grown"), settings, each))
        say(f"{each * TENANTS:,} rows of each kind are stored")
        asyncio.run(_seal(folder, tenants))
        # Both engines count their tables now and then; here they have, whatever the size.
        if postgres is None:
            with closing(sqlite3.connect(store_path(folder))) as file:
                file.execute("ANALYZE")
        else:
            postgres.ask("VACUUM ANALYZE", database="grown")
        yield Grown(each * TENANTS, stack.enter_context(serving(folder, asked, key)), postgres)


@contextlib.contextmanager
def _own_postgres() -> Iterator[Postgres]:
    place = Path(tempfile.mkdtemp(prefix="vettance-grown-"))
    place.chmod(0o755)
    postgres = Postgres(place / "postgres")
    postgres.start()
    try:
        postgres.ask("CREATE DATABASE grown")
        yield postgres
    finally:
        postgres.stop()
        shutil.rmtree(place, ignore_errors=True)


@contextlib.contextmanager
def _named(postgres: Postgres | None) -> Iterator[None]:
    """Name the database to what is started in the block; without one, the folder is the store."""
    before = os.environ.pop(_URL, None)
    if postgres is not None:
        os.environ[_URL] = postgres.url("grown")
    try:
        yield
    finally:
        os.environ.pop(_URL, None)
        if before is not None:
            os.environ[_URL] = before


@contextlib.asynccontextmanager
async def _opened(folder: Path) -> AsyncIterator[Store]:
    store = await connect_store(read_settings(data=str(folder)), writer="thread")
    try:
        yield store
    finally:
        await store.close()


async def settings_of(folder: Path, tenants: list[str], hook: str) -> list[Setting]:
    """Say what the rows of each tenant refer to: a subscription, and an entity of the list in force."""
    subscriptions = [(await subscribe(folder, tenant, [hook]))[0] for tenant in tenants]
    async with _opened(folder) as store:
        keeper = IndexKeeper(store, folder)
        await keeper.reload()
        reach = await keeper.reach("*")
        assert reach is not None
        list_set, entity = list_set_id(reach.versions), reach.search(Subject(name=LISTED))[0].entity.id
    return [
        Setting(tenant, place, subscription, list_set, entity, clock.now_ms())
        for place, (tenant, subscription) in enumerate(zip(tenants, subscriptions, strict=True))
    ]


async def _seal(folder: Path, tenants: list[str]) -> None:
    """Lay the decisions out by columns, as a service has done long since."""
    async with _opened(folder) as store:
        compactor = Compactor(store)
        for tenant in tenants:
            while await compactor.compact(tenant, CHUNK):
                pass
