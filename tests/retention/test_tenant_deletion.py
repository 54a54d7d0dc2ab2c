"""Deleting a tenant: everything of it goes, from every table, and nothing of anybody else."""

import asyncio
import gc
import os
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.databases import absence, ask, database, run_beside
from tests.live import Service, started
from tests.redis_link.redis_server import PrivateRedis
from vettance.aml.aml_event import read_aml_event
from vettance.db.engine import Store
from vettance.db.postgres import PostgresStore
from vettance.db.sqlite import SqliteStore
from vettance.deployment.connect import connect_store
from vettance.events.event import EventSource, read_event
from vettance.history.segment import SEARCHED_BITS
from vettance.retention.deletion_sql import remove_tenant, select_tables_of_tenants
from vettance.retention.tenant_deletion import TenantDeleter
from vettance.rules.packs import load_pack_text
from vettance.rules.sql import DECIDING
from vettance.server.lifecycle import running
from vettance.settings.settings import ProcessRole, Settings
from vettance.tenants import sql as tenants_sql
from vettance.tenants.tenant import Tenant
from vettance.wire.payload import encode

GONE = "ten_" + "a" * 32
OTHER = "ten_" + "b" * 32
ROWS = 3


def login(customer: str) -> dict[str, Any]:
    return {"eventName": "user.login", "customer": {"externalId": customer}, "ip": "203.0.113.9"}


def tables_of(service_rows: Any, engine: str) -> dict[str, list[tuple[str, str]]]:
    """Return each table of the store with its columns and their types."""
    if engine == "postgres":
        rows = service_rows(
            "SELECT relname::text, attname::text, format_type(atttypid, NULL) FROM pg_class "
            "JOIN pg_attribute ON attrelid = pg_class.oid AND attnum > 0 AND NOT attisdropped "
            "WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p') AND NOT relispartition "
            "AND attgenerated = ''"
        )
    else:
        rows = service_rows(
            "SELECT t.name, c.name, c.type FROM sqlite_master AS t JOIN pragma_table_info(t.name) AS c "
            "WHERE t.type = 'table' AND t.name NOT LIKE 'sqlite_%' AND t.name NOT LIKE '%_search%'"
        )
    tables: dict[str, list[tuple[str, str]]] = {}
    for table, column, kind in rows:
        tables.setdefault(table, []).append((column, kind.lower()))
    return tables


def value_of(tenant: str, column: str, kind: str, number: int) -> str:
    """Write a value of a column that no other row has; what has places is given them by number."""
    if column == "tenant":
        return f"'{tenant}'"
    if kind == "text":
        return f"'{column}_{tenant[-2:]}{number:030x}'"
    if kind in ("blob", "bytea"):
        digits = f'{{"{tenant[-2:]}": {number}}}'.encode().hex()
        return f"X'{digits}'" if kind == "blob" else f"'\\x{digits}'"
    return str(number)


def fill(rows: Any, engine: str) -> dict[str, list[tuple[str, str]]]:
    """Put rows of two tenants into every table with a tenant; those of the one to go are the newest."""
    tables = tables_of(rows, engine)
    for place, tenant in enumerate((OTHER, GONE)):
        insert(rows, "tenant", tables["tenant"], tenant, place, {"id": f"'{tenant}'", "settings": "'{}'"})
        for name, columns in tables.items():
            if "tenant" not in dict(columns) or name.endswith("_count") or name == "interest":
                continue
            for number in range(ROWS):
                given = {"fields": str(SEARCHED_BITS)} if name == "term" else {}
                insert(rows, name, columns, tenant, place * ROWS + number + 1, given)
    if engine == "postgres":
        rows("SELECT setval(pg_get_serial_sequence('change', 'seq'), 1000)")
    rows("INSERT INTO id_search (rowid, digits) SELECT seq, SUBSTR(id, 4) FROM decision")
    rows("INSERT INTO term_search (rowid, value) SELECT id, value FROM term")
    return tables


def found_of(rows: Any, engine: str) -> tuple[list[Any], list[Any]]:
    """Return what searches find: places by the digits of their ids, and terms."""
    ids, terms = "digits LIKE '%0000%'", "value LIKE '%value%'"
    if engine == "sqlite":
        ids, terms = "id_search MATCH '0000'", "term_search MATCH 'value'"
    return (
        rows(f"SELECT rowid FROM id_search WHERE {ids} ORDER BY 1"),
        rows(f"SELECT rowid FROM term_search WHERE {terms} ORDER BY 1"),
    )


def insert(
    rows: Any, name: str, columns: list[tuple[str, str]], tenant: str, number: int, given: dict[str, str]
) -> None:
    names = ", ".join(column for column, _ in columns)
    values = ", ".join(
        given.get(column) or value_of(tenant, column, kind, number) for column, kind in columns
    )
    # A few tables have one row of a tenant.
    rows(f"INSERT INTO {name} ({names}) VALUES ({values}) ON CONFLICT DO NOTHING")


def contents(rows: Any, tables: dict[str, list[tuple[str, str]]], tenant: str) -> dict[str, list[Any]]:
    return {
        name: sorted(map(str, rows(f"SELECT * FROM {name} WHERE tenant = '{tenant}'")))
        for name, columns in tables.items()
        if "tenant" in dict(columns)
    }


def naming(rows: Any, tables: dict[str, list[tuple[str, str]]], tenant: str) -> list[str]:
    """Name the tables with a row that says the id of a tenant anywhere."""
    return [name for name in tables if any(tenant in str(row) for row in rows(f"SELECT * FROM {name}"))]


@pytest.mark.parametrize("engine", ["sqlite", "postgres"])
def test_every_table_with_tenants_is_emptied_of_one_and_holds_all_of_another(
    engine: str, tmp_path: Path
) -> None:
    if engine == "sqlite":
        check(engine, tmp_path / "vettance.db", None)
        return
    if reason := absence():
        pytest.skip(reason)
    with database() as url:
        check(engine, tmp_path, url)


def check(engine: str, path: Path, url: str | None) -> None:
    async def opened() -> Store:
        return await PostgresStore.open(url) if url else await SqliteStore.open(path, writer="thread")

    def rows(text: str) -> list[Any]:
        if url is not None:
            return ask(url, text)
        with closing(sqlite3.connect(path)) as file, file:
            return file.execute(text).fetchall()

    async def make() -> list[Any]:
        store = await opened()
        await store.migrate()
        found = await store.read(select_tables_of_tenants())
        await store.close()
        return found

    known = run_beside(make)
    tables = fill(rows, engine)
    assert {name for name, *_ in known} == {
        name for name, columns in tables.items() if "tenant" in dict(columns)
    }, "every table with a tenant needs a primary key"
    before = contents(rows, tables, OTHER)
    everything = [(number,) for number in range(1, 2 * ROWS + 1)]
    assert found_of(rows, engine) == (everything, everything)

    async def delete() -> dict[str, int]:
        store = await opened()
        try:
            return await TenantDeleter(store, lambda: 1, settle_s=0).delete(GONE)
        finally:
            await store.close()

    removed = run_beside(delete)
    assert removed["event"] == removed["decision"] == removed["term"] == removed["job"] == ROWS
    assert naming(rows, tables, GONE) == []
    assert contents(rows, tables, OTHER) == before
    assert found_of(rows, engine) == (everything[:ROWS], everything[:ROWS])
    if url is None:
        # No place is given a second time: processes have read past them.
        assert rows("SELECT MAX(seq), MAX(id) FROM decision WHERE tenant = ''")[0][0] == 2 * ROWS


def test_a_tenant_is_deleted_beside_a_running_server(own_service: Service) -> None:
    service = own_service
    tenant, key = service.new_tenant("Leaves")
    _, other_key = service.new_tenant("Stays")
    for owner in (key, other_key):
        for number in range(3):
            body = login(f"c-{owner[-4:]}-{number}")
            assert service.post("/api/v1/decisions/evaluate", body, key=owner).status == 200
        entry = {"type": "EMAIL", "value": "a@example.com", "listType": "BLOCK"}
        service.post("/api/v1/lists", entry, key=owner)
    before = service.get("/api/v1/decisions/stats", key=other_key).body

    refused = service.cli("tenant", "delete", tenant, ok=False)
    assert refused.returncode == 1
    assert "3 events" in refused.stderr
    assert "--yes" in refused.stderr
    assert service.cli("tenant", "delete", "ten_unknown", "--yes", ok=False).returncode == 1

    # Interrupted right behind its first commit, it is ended by calling it again.
    command = [sys.executable, "-m", "vettance.cli", "tenant", "delete", tenant, "--yes"]
    first = subprocess.Popen(
        [*command, "--data", str(service.data)], env={**os.environ, **service.env}, stdout=subprocess.DEVNULL
    )
    service.wait_for(lambda: service.get("/api/v1/lists", key=key).status == 401, seconds=20)
    first.send_signal(signal.SIGKILL)
    first.wait(10)
    assert tenant in str(service.cli("tenant", "list", "--json"))
    done = service.cli("tenant", "delete", tenant, "--yes", "--json")
    assert done["deleted"] is True
    assert done["rows"]["event"] == 3

    assert service.get("/api/v1/lists", key=key).status == 401
    assert service.get("/api/v1/decisions/stats", key=other_key).body == before
    assert service.post("/api/v1/decisions/evaluate", login("c-after"), key=other_key).status == 200
    service.stop()
    engine = "postgres" if service.env.get("VETTANCE_DATABASE_URL") else "sqlite"
    # The log of the operator goes on saying who deleted which tenant.
    assert naming(service.rows, tables_of(service.rows, engine), tenant) == ["audit_part"]
    said = service.rows(f"SELECT DISTINCT tenant FROM audit_part WHERE content LIKE '%{tenant}%'")
    assert [tuple(row) for row in said] == [("*",)]
    assert not list(service.data.rglob(f"*{tenant}*"))
    assert tenant not in str(service.cli("tenant", "list", "--json"))


def test_nothing_of_a_deleted_tenant_stays_in_redis_or_in_the_folder(tmp_path: Path) -> None:
    redis = PrivateRedis()
    redis.start()
    service = started(tmp_path, VETTANCE_REDIS_URL=redis.url)
    try:
        tenant, key = service.new_tenant("Leaves")
        other, other_key = service.new_tenant("Stays")
        for owner, owner_key in ((tenant, key), (other, other_key)):
            service.cli("tenant", "set", owner, "--aml", "on")
            service.wait_for(lambda: service.get("/api/v1/aml/cases", key=owner_key).status == 200)  # noqa: B023
            own = tmp_path / "own.csv"
            own.write_text("id,name\n1,Anna Example\n")
            service.cli("watchlist", "import", "--source", "own", str(own), "--tenant", owner)
            for number in range(3):
                answer = service.post(
                    "/api/v1/decisions/evaluate",
                    login(f"c-{number}"),
                    key=owner_key,
                    headers={"Idempotency-Key": f"k-{number}"},
                )
                assert answer.status == 200
            body = {"eventName": "transfer", "externalEventId": "a", "customer": {"externalId": "c"}}
            assert service.post("/api/v1/aml/events", body, key=owner_key).status == 200
            screened = {"inputName": "Anna Example", "externalId": "c"}
            service.wait_for(
                lambda: service.post("/api/v1/aml/screen", screened, key=owner_key).status == 200  # noqa: B023
            )

        def left(owner: str) -> list[str]:
            keys = subprocess.run(
                ["redis-cli", "-p", str(redis.port), "--scan"], capture_output=True, text=True, check=True
            ).stdout
            return [line for line in keys.splitlines() if owner in line] + [
                str(path) for path in service.data.rglob(f"*{owner}*")
            ]

        assert left(tenant)
        service.cli("tenant", "delete", tenant, "--yes")
        assert service.post("/api/v1/decisions/evaluate", login("c-1"), key=key).status == 401
        assert left(tenant) == []
        assert left(other)
        assert service.post("/api/v1/decisions/evaluate", login("c-1"), key=other_key).status == 200
        assert service.stop() == 0
        assert left(tenant) == []
    finally:
        if service.process is not None:
            service.stop()
        redis.close()


async def test_a_running_process_remembers_nothing_of_a_deleted_tenant(tmp_path: Path) -> None:
    settings = Settings(data=tmp_path, secret=b"s" * 32, role=ProcessRole.WEB, searchers=0)
    store = await connect_store(settings, writer="thread")
    await store.migrate()
    for tenant in (GONE, OTHER):
        await store.write(
            tenants_sql.insert_tenant(Tenant(id=tenant, name="One", aml=True), 0),
            DECIDING.insert(tenant, 1, load_pack_text("fraud"), "", 0),
        )
    await store.close()
    async with running(settings) as service:
        for tenant in (GONE, OTHER):
            now_ms = time.time_ns() // 1_000_000
            sent = encode(login("c-1"))
            event = read_event(login("c-1"), sent, now_ms)
            await service.evaluator.evaluate(
                tenant, event, sent, EventSource.EVENTS, "r", time.perf_counter_ns()
            )
            body = {"eventName": "transfer", "externalEventId": "a", "customer": {"externalId": "c"}}
            aml_event = read_aml_event(body, encode(body), now_ms)
            await service.aml.monitor.take(tenant, aml_event, b"d", encode(body))
        assert places_of(service, GONE)
        await service.store.write(
            remove_tenant(GONE), tenants_sql.note_change(tenants_sql.DELETED, GONE, GONE, 0)
        )
        async with asyncio.timeout(20):
            while GONE in service.evaluator.rules:  # noqa: ASYNC110 - nothing says it
                await asyncio.sleep(0.05)
        await asyncio.sleep(0.2)
        assert places_of(service, GONE) == []
        assert places_of(service, OTHER)


def places_of(service: Any, tenant: str) -> list[str]:
    """Show the dictionaries of a service that hold more of a tenant than a number or a lock."""
    found: list[str] = []
    seen: set[int] = set()
    todo: list[Any] = list(vars(service).values())
    while todo:
        one = todo.pop()
        ours = type(one).__module__.startswith("vettance.")
        if id(one) in seen or not (ours or isinstance(one, (dict, set, list, tuple))):
            continue
        seen.add(id(one))
        if isinstance(one, dict):
            held = [value for key, value in one.items() if key == tenant or key == (tenant,)]
            if not all(isinstance(value, (int, float, asyncio.Lock, asyncio.Event)) for value in held):
                found.append(str(one)[:100])
        todo += gc.get_referents(one)
    return found
