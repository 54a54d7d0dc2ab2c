"""Steps along a tenant's log read what they return, whoever else is in the database of PostgreSQL."""

import asyncio
from collections.abc import Mapping
from typing import Final

import pytest

from bench.store.grown_rows import OLD_MS, Setting, fill_postgres
from tests.databases import absence, ask, database
from tests.grown.probes import tell_plans, watched_postgres
from vettance.aml.quality import sql as aml_quality_sql
from vettance.db.engine import Statement
from vettance.db.postgres import PostgresStore
from vettance.decisions import sql as decisions_sql
from vettance.history import sql as history_sql
from vettance.learning import drift_sql
from vettance.learning import sql as learning_sql
from vettance.quality import sql as quality_sql
from vettance.suggestions import sql as suggestions_sql
from vettance.tenants import sql as tenants_sql
from vettance.tenants.tenant import Tenant

pytestmark = pytest.mark.skipif(absence() is not None, reason=absence() or "")

BUSY, QUIET = "ten_" + "2" * 32, "ten_" + "1" * 32
ROWS, STEP = 3_000, 50
#: A row of a step is seen by the parts of its plan, and may be on a page of its own with its event.
SEEN_MAX: Final = STEP * 12
STEPS: Final[Mapping[str, Statement]] = {
    "compaction": history_sql.select_span(BUSY, 200, STEP),
    "relayout": history_sql.select_span(BUSY, 200, STEP, ROWS),
    "rule counts": quality_sql.select_decided(BUSY, 200, STEP),
    "training": learning_sql.select_decided(BUSY, 200, STEP),
    "suggestions": suggestions_sql.select_outlines(BUSY, 200, STEP),
    "suggested keys": suggestions_sql.select_keys(BUSY, 200, STEP),
    "backtest": decisions_sql.select_record_beginnings(BUSY, (0, OLD_MS), 200, STEP),
    "drift": drift_sql.select_records(BUSY, ROWS, STEP),
    "newest records": quality_sql.select_newest_records(BUSY, STEP),
    "newest bodies": learning_sql.select_recent_bodies(BUSY, STEP),
    "newest events": decisions_sql.select_newest_sent(BUSY, STEP, 1_000),
    "newest AML events": aml_quality_sql.select_newest_records(BUSY, STEP),
}


def _setting(tenant: str, place: int) -> Setting:
    return Setting(tenant, place, f"whs_{place}", "lists", "entity", OLD_MS)


@pytest.mark.parametrize("tenants", [(BUSY,), (BUSY, QUIET)], ids=["alone", "with a quiet one"])
async def test_a_step_reads_no_more_than_it_returns(
    tenants: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    with database() as url:
        store = await PostgresStore.open(url)
        await store.migrate()
        for name in tenants:
            await store.write(tenants_sql.insert_tenant(Tenant(id=name, name=name), 1))
        await store.close()
        for place, name in enumerate(tenants):
            await fill_postgres(url, [_setting(name, place)], ROWS if name == BUSY else STEP)
        await asyncio.to_thread(ask, url, "ANALYZE")
        await tell_plans(url)
        with watched_postgres(monkeypatch, url) as probe:
            store = await PostgresStore.open(url)
            probe.is_open = True
            worse = []
            for name, step in STEPS.items():
                probe.dearest.clear()
                found = await store.read(step)
                assert found, name
                if (seen := max(probe.dearest.values())) > SEEN_MAX:
                    worse.append(f"{name}: {seen} rows and pages\n" + "\n".join(probe.plans.values()))
            await store.close()
        assert not worse, "\n\n".join(worse)
