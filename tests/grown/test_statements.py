"""No statement of a hot path costs more because the store has grown."""

import asyncio
import gc
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from bench.store.grown_rows import Setting, fill_postgres, fill_sqlite
from tests.databases import absence, ask, database
from tests.grown.builders import called_builders, outdated, unreached
from tests.grown.probes import Probe, led_by_tenant, tell_plans, watched_postgres, watched_sqlite
from tests.grown.whole_service import ROUNDS, Grown, go_through, grown_service, look_around
from vettance.db.sqlite import store_path

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1200)]

#: Rows of a tenant in each table that grows, and how many times as many are compared with that.
ROWS, TIMES = 1_000, 10
#: What a deeper tree and a page more or less cost.
FACTOR, SLACK = 2, 200
#: What may cost more, by a part of its text, and why.
WHOLE = {
    "FROM list_entry WHERE tenant = ? AND (expires_at_ms IS NULL": (
        "A list is kept by people, read whole into memory at the start, and its total is exact."
    ),
    "SELECT COUNT(*) FROM delivery WHERE tenant = ? AND subscription": (
        "The log of deliveries says how many there are. They are forgotten in time, and only people ask."
    ),
    "FROM review WHERE tenant = ? ORDER BY": (
        "PostgreSQL sorts what it takes for a few rows until it counts them (ADR 69)."
    ),
    "SELECT COUNT(*) FROM (SELECT 1 FROM review WHERE tenant = ? AND state = 'open'": (
        "It counts to a hundred and no further, however many there are."
    ),
    "record FROM decision WHERE tenant >=": (
        "Only people ask. PostgreSQL sorts what it takes for a few rows until it counts them (ADR 69)."
    ),
    "record FROM aml_event WHERE tenant >=": (
        "Only people ask. PostgreSQL sorts what it takes for a few rows until it counts them (ADR 69)."
    ),
    "CASE WHEN LENGTH(event.sent)": (
        "Asked once a minute. PostgreSQL sorts what it takes for a few rows until it counts them (ADR 69)."
    ),
    "INSERT INTO id_search": "FTS5 merges its own index now and then, a little for each row on the whole.",
}


@pytest.fixture(autouse=True)
def collector() -> Iterator[None]:
    """A service sets the garbage collector of its process; the tests have theirs back."""
    thresholds = gc.get_threshold()
    yield
    gc.set_threshold(*thresholds)
    gc.unfreeze()


async def _measure(one: Grown, probe: Probe) -> None:
    await go_through(one, 1)
    await asyncio.sleep(1.2)  # The looks that come once a second have all been made once.
    probe.is_open = True
    with called_builders(probe.builders):
        for number in range(2, 2 + ROUNDS):
            await go_through(one, number)
            await look_around(one)
        await asyncio.sleep(1.0)
    probe.is_open = False


@pytest.fixture(params=["sqlite", "postgres"])
def engine(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    if name == "postgres" and (reason := absence()):
        pytest.skip(reason)
    return name


async def _on_sqlite(patch: pytest.MonkeyPatch, data: Path, rows: int, *, counted: bool) -> Probe:
    async def fill(settings: list[Setting]) -> None:
        await asyncio.to_thread(fill_sqlite, store_path(data), settings, rows)

    async def count() -> None:
        with closing(sqlite3.connect(store_path(data))) as file:
            file.execute("ANALYZE" if counted else "SELECT 1")

    with watched_sqlite(patch, store_path(data)) as probe:
        async with grown_service(data, None, fill, count) as one:
            await _measure(one, probe)
    return probe


async def _on_postgres(patch: pytest.MonkeyPatch, data: Path, rows: int, *, counted: bool) -> Probe:
    with database() as url:

        async def fill(settings: list[Setting]) -> None:
            await fill_postgres(url, settings, rows)

        async def count() -> None:
            await asyncio.to_thread(ask, url, "ANALYZE" if counted else "SELECT 1")
            await tell_plans(url)

        with watched_postgres(patch, url) as probe:
            async with grown_service(data, url, fill, count) as one:
                await _measure(one, probe)
        return probe


@pytest.mark.parametrize("counted", [False, True], ids=["without statistics", "with statistics"])
async def test_no_statement_costs_more_on_a_store_that_has_grown(
    engine: str, counted: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = _on_sqlite if engine == "sqlite" else _on_postgres
    # An answer that is given again for some seconds would be computed on one of the two stores only.
    monkeypatch.setattr("vettance.aml.coverage.api._KEPT_MS", 0)
    small = await run(monkeypatch, tmp_path / "small", ROWS, counted=counted)
    grown = await run(monkeypatch, tmp_path / "grown", ROWS * TIMES, counted=counted)
    assert not outdated(), "COLD of builders.py names functions that are gone"
    missed = "\n".join(unreached(grown.builders))
    assert not missed, (
        "nothing of `go_through` or `look_around` reaches these; have something reach them, or say in "
        f"COLD of builders.py why they may cost what they like:\n{missed}"
    )
    worse = [
        f"{cost} after {small.dearest.get(text, 0)} with a tenth of the rows:\n{text}\n{grown.plans[text]}"
        for text, cost in sorted(grown.dearest.items(), key=lambda pair: -pair[1])
        if cost > FACTOR * small.dearest.get(text, 0) + SLACK and not any(part in text for part in WHOLE)
    ]
    assert not worse, (
        f"{len(worse)} statements cost more the more rows there are. Give the plan an index that leads "
        "to the rows of the answer, hold SQLite to the right order by CROSS JOIN, or bound what is read.\n\n"
        + "\n\n".join(worse)
    )
    if engine == "sqlite" and not counted:
        led = led_by_tenant(store_path(tmp_path / "small"), small.whole.values())
        assert not led, "\n".join(
            ("Of many ids SQLite goes through all of the tenant; see `OF_TENANT`:", *led)
        )
