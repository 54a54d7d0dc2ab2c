"""Removing a little costs the same however much stays, and so does each step of an erasure."""

import asyncio
from pathlib import Path

import pytest

from bench.store.grown_rows import MINUTE_MS, OLD_MS, Setting, fill_postgres, fill_sqlite
from tests.databases import absence, ask, database
from tests.grown.probes import Probe, led_by_tenant, tell_plans, watched_postgres, watched_sqlite
from vettance.clock import DAY_MS
from vettance.db.engine import Store, everyone
from vettance.db.sqlite import store_path
from vettance.db.tables import ATTEMPT
from vettance.deployment.connect import connect_store
from vettance.history.compaction import Compactor
from vettance.history.segment import CHUNK
from vettance.retention.erasure import Eraser
from vettance.retention.expiry import Retainer
from vettance.retention.sql import LOOKED_AT
from vettance.retention.tenant_deletion import TenantDeleter
from vettance.settings.retention_policy import Policy
from vettance.settings.settings import Settings
from vettance.tenants import sql as tenants_sql
from vettance.tenants.tenant import Tenant

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1200)]

STAYS = "ten_" + "1" * 32
GOES = "ten_" + "2" * 32
SECRET = b"s" * 32
#: A customer of the tenant that stays, whom one receiver has named.
NAMED = "c-1001-named"
#: An erasure that was begun is looked for among all changes, once; a column laid out is read whole.
GROWS = ("FROM change WHERE tenant", "FROM chunk LEFT JOIN chunk_column")
#: Rows of the tenant that stays in each table that grows; ten times as many are compared with that.
ROWS, TIMES, REMOVED = 2 * LOOKED_AT, 10, 20
#: What a deeper tree and a page more or less cost.
FACTOR, SLACK = 2, 200


def _setting(tenant: str, place: int) -> Setting:
    return Setting(tenant, place, f"whs_{place}", "lists", "entity", OLD_MS)


async def _remove(data: Path, url: str | None, probe: Probe, rows: int) -> None:
    store: Store = await connect_store(Settings(data=data, database_url=url, secret=SECRET), writer="thread")
    try:
        await store.migrate()
        for name in (STAYS, GOES):
            await store.write(tenants_sql.insert_tenant(Tenant(id=name, name=name), 1))
        for setting, count in ((_setting(STAYS, 0), rows), (_setting(GOES, 1), REMOVED)):
            if url is None:
                await asyncio.to_thread(fill_sqlite, store_path(data), [setting], count)
            else:
                await fill_postgres(url, [setting], count)
    finally:
        await store.close()
    if url is not None:  # The embedded store never counts its rows.
        await asyncio.to_thread(ask, url, "ANALYZE")
        await tell_plans(url)
    store = await connect_store(Settings(data=data, database_url=url, secret=SECRET), writer="thread")
    try:
        named = "UPDATE attempt SET answer = ? WHERE delivery = 160"
        await store.write(everyone(ATTEMPT, named, (f"no customer {NAMED}".encode(),)))
        while await Compactor(store).compact(STAYS, CHUNK):
            pass
        probe.is_open = True
        # The rows of a tenant are a minute apart, from number 101 on.
        now_ms = OLD_MS + (101 + REMOVED // 2) * MINUTE_MS + DAY_MS
        policy = Policy(
            screenings=1, statistics=1, jobs=1, deliveries=1, stream_messages=1, changes=1, events=1
        )
        removed = await Retainer(store, policy, lambda: now_ms).run()
        assert removed["jobs"] == removed["statistics"] == REMOVED, removed
        # Those of the tenant that goes stand behind all others, as if they were younger.
        assert removed["deliveries"] == REMOVED // 2, removed
        gone = await TenantDeleter(store, lambda: now_ms, settle_s=0).delete(GOES)
        assert removed["events"] == REMOVED, removed
        assert gone["event"] == REMOVED // 2, gone
        assert gone["aml_case_entry"] == REMOVED, gone
        assert gone["job"] == REMOVED // 2, gone
        erased = await Eraser(store, SECRET, now_ms).erase(STAYS, NAMED)
        # Answers of this history do not open, so that they go: nobody knows whom they name.
        assert (erased.events, erased.rows) == (0, rows + 1), erased
        probe.is_open = False
    finally:
        await store.close()


async def _on_sqlite(patch: pytest.MonkeyPatch, data: Path, rows: int) -> Probe:
    with watched_sqlite(patch, store_path(data)) as probe:
        await _remove(data, None, probe, rows)
    return probe


async def _on_postgres(patch: pytest.MonkeyPatch, data: Path, rows: int) -> Probe:
    with database() as url, watched_postgres(patch, url) as probe:
        await _remove(data, url, probe, rows)
    return probe


def _folder(above: Path, name: str) -> Path:
    (above / name).mkdir()
    return above / name


@pytest.mark.parametrize("engine", ["sqlite", "postgres"])
async def test_no_removal_costs_more_the_more_stays(
    engine: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if engine == "postgres" and (reason := absence()):
        pytest.skip(reason)
    run = _on_sqlite if engine == "sqlite" else _on_postgres
    small = await run(monkeypatch, _folder(tmp_path, "small"), ROWS)
    grown = await run(monkeypatch, _folder(tmp_path, "grown"), ROWS * TIMES)
    worse = [
        f"{cost} after {small.dearest.get(text, 0)} with a tenth of the rows:\n{text}\n"
        f"{grown.plans.get(text)}"
        for text, cost in sorted(grown.dearest.items(), key=lambda pair: -pair[1])
        if cost > FACTOR * small.dearest.get(text, 0) + SLACK and not any(part in text for part in GROWS)
    ]
    assert not worse, f"{len(worse)} statements cost more the more stays.\n\n" + "\n\n".join(worse)
    if engine == "sqlite":
        led = led_by_tenant(store_path(tmp_path / "small"), small.whole.values())
        assert not led, "\n".join(
            ("Of many ids SQLite goes through all of the tenant; see `OF_TENANT`:", *led)
        )
