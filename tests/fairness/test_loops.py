"""Every loop over tenants does the others when one cannot be done, and that one as soon as it can be."""

import asyncio
import itertools
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.databases import absence, database
from tests.fairness.broken import breaking
from vettance.aml.screening.rescreening import Rescreener
from vettance.aml.screening.screen import Screener
from vettance.aml.screening.screening_request import read_screen_request
from vettance.db import postgres_schema
from vettance.db.engine import Store, everyone
from vettance.db.postgres import PostgresStore
from vettance.db.sqlite import SqliteStore
from vettance.db.tables import ANSWER, DECISION, EVENT, JOB, table_of
from vettance.fairness.isolation import failing
from vettance.ids import IdSource
from vettance.limits.quota import Quota
from vettance.limits.quota_usage import OwnQuotaUsage
from vettance.limits.sql import select_quota_use
from vettance.ops.gauges import Measurer, keep_noting
from vettance.ops.sql import select_failing
from vettance.replays.replay import StoredReplays
from vettance.retention.expiry import Retainer
from vettance.settings.retention_policy import Policy
from vettance.telemetry.meters import take_place
from vettance.tenants.sql import insert_tenant
from vettance.tenants.tenant import Tenant
from vettance.tenants.vault import Vault
from vettance.velocity.sync.velocity_snapshots import VelocitySnapshots
from vettance.watchlists.refresh import IndexKeeper, import_list
from vettance.wire.payload import encode

NOW_MS = 1_800_000_000_000
DAY_MS = 86_400_000
_numbers = itertools.count()


class Place(NamedTuple):
    """A store, where it is, and two tenants of it: the one that breaks comes first."""

    store: Store
    at: str | Path
    broken: str
    sound: str


@pytest.fixture(params=["sqlite", "postgres"])
async def place(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Place]:
    names = [f"ten_{next(_numbers):032x}" for _ in range(2)]
    tenants = [insert_tenant(Tenant(id=name, name="t", aml=True), NOW_MS) for name in names]
    if request.param == "sqlite":
        async with await SqliteStore.open(tmp_path / "vettance.db", writer="thread") as store:
            await store.migrate()
            await store.write(*tenants)
            yield Place(store, tmp_path / "vettance.db", *names)
        return
    if (reason := absence()) is not None:
        pytest.skip(reason)
    with database() as url:
        await postgres_schema.migrate(url)
        async with await PostgresStore.open(url) as shared:
            await shared.write(*tenants)
            yield Place(shared, url, *names)


def told(place: Place, work: str) -> list[tuple[str, str]]:
    """What fails of a kind of work for the tenants of this test."""
    return [
        (one.key, one.error)
        for one in failing()
        if one.work == work and one.key.startswith((place.broken, place.sound))
    ]


async def count(place: Place, table: str, tenant: str) -> int:
    rows = await place.store.read(
        everyone(table_of(table), f"SELECT COUNT(*) FROM {table} WHERE tenant = ?", (tenant,))
    )
    return int(rows[0][0])


async def test_retention_removes_of_others_what_it_cannot_of_one(place: Place) -> None:
    for number, (tenant, at_ms) in enumerate([(place.broken, 1), (place.sound, 1), (place.sound, NOW_MS)]):
        name = f"evt_{number}"
        await place.store.write(
            everyone(
                EVENT,
                "INSERT INTO event (id, tenant, source, received_at_ms, occurred_at_ms, sent) "
                "VALUES (?, ?, 'events', 1, 1, '')",
                (name, tenant),
            ),
            everyone(
                DECISION,
                "INSERT INTO decision (id, tenant, evaluated_at_ms, occurred_at_ms, event_name, "
                "event_category, decision, score, level, record) "
                "VALUES (?, ?, ?, 1, 'a', 'OTHER', 'ALLOW', 0, 'low', '')",
                (name, tenant, at_ms),
            ),
        )
    retainer = Retainer(place.store, Policy(events=1), lambda: NOW_MS)
    with breaking(place.at, "event", place.broken, "DELETE"):
        assert (await retainer.run())["events"] == 1
        assert await count(place, "event", place.sound) == 1
        assert [one.key for one in retainer.failing] == [place.broken]
    assert (await retainer.run())["events"] == 1
    assert retainer.failing == ()


async def test_quotas_of_others_are_written_down_when_one_cannot_be(place: Place) -> None:
    quota = Quota()
    tally = OwnQuotaUsage(place.store, quota)
    hour, _ = quota.used()
    quota.restore(hour, {place.broken: 3, place.sound: 5})
    with breaking(place.at, "quota_use", place.broken):
        await tally.save()
        assert dict(await place.store.read(select_quota_use(hour))) == {place.sound: 5}
        assert told(place, "quota") == [(place.broken, "Misuse")]
    await tally.save()
    assert dict(await place.store.read(select_quota_use(hour))) == {place.broken: 3, place.sound: 5}


async def test_subjects_of_others_are_screened_again_when_those_of_one_cannot_be(
    place: Place, tmp_path: Path
) -> None:
    header = "id,name,type\n"

    async def put(text: str) -> None:
        path = tmp_path / "list.csv"
        path.write_text(header + text)
        await import_list(place.store, tmp_path, "csv", [path], NOW_MS)
        await keeper.reload()

    keeper = IndexKeeper(place.store, tmp_path)
    screener = Screener(place.store, IdSource(), keeper)
    rescreener = Rescreener(place.store, screener, keeper, tmp_path)
    await put("1,Quillon Vandermeersch,INDIVIDUAL\n")
    body = {"inputName": "Rosalind Achterberg", "externalId": "rosa"}
    for tenant in (place.broken, place.sound):
        await screener.screen(tenant, read_screen_request(body), encode(body))
    await put("1,Quillon Vandermeersch,INDIVIDUAL\n2,Rosalind Achterberg,INDIVIDUAL\n")
    with breaking(place.at, "aml_alert", place.broken):
        await rescreener.catch_up()
        assert (
            await count(place, "aml_alert", place.broken),
            await count(place, "aml_alert", place.sound),
        ) == (0, 1)
        assert [key.partition(":")[0] for key, _ in told(place, "rescreening")] == [place.broken]
        await rescreener.catch_up()

    async def is_alerted() -> bool:
        await rescreener.catch_up()
        return await count(place, "aml_alert", place.broken) == 1

    await until(is_alerted)
    assert told(place, "rescreening") == []
    screener.close()


class Memories:
    """Memories of tenants of which one cannot be written down, as one that a bug has left in disorder."""

    def __init__(self, broken: str, *sound: str) -> None:
        self.broken = broken
        self.rules = (broken, *sound)
        self.astray: set[str] = set()
        self.decided = dict.fromkeys(self.rules, 1)
        self.saved: list[str] = []

    async def pause(self, tenant: str) -> None:
        if tenant == self.broken:
            raise KeyError(tenant)

    def resume(self, tenant: str) -> None:
        self.saved.append(tenant)


async def test_memories_of_others_are_written_down_when_that_of_one_cannot_be(place: Place) -> None:
    memories = Memories(place.broken, place.sound)
    preserver = VelocitySnapshots(place.store, memories, memories, None)  # type: ignore[arg-type]
    await preserver.save_all()
    assert memories.saved == [place.sound]
    assert told(place, "snapshot") == [(place.broken, "KeyError")]


async def until(done: Callable[[], Awaitable[bool]]) -> None:
    async with asyncio.timeout(20):
        while not await done():  # noqa: ASYNC110 - it is in the store that it shows
            await asyncio.sleep(0.02)


async def test_answers_to_retries_are_removed_again_when_they_can_be(place: Place) -> None:
    replays = StoredReplays(place.store, Vault(b"s" * 32), lambda: NOW_MS)
    for tenant in (place.broken, place.sound):
        await place.store.write(
            everyone(
                ANSWER,
                "INSERT INTO answer (tenant, path, key, status, content, headers, expires_at_ms) "
                "VALUES (?, '/', 'k', 200, '', '', 1)",
                (tenant,),
            )
        )

    async def is_told() -> bool:
        return any(one.key == "purge" for one in failing())

    async def is_done() -> bool:
        return not await count(place, "answer", place.broken)

    with breaking(place.at, "answer", place.broken, "DELETE"):
        running = asyncio.create_task(replays.run(pause_s=0.01))
        await until(is_told)
    await until(is_done)
    running.cancel()
    with suppress(asyncio.CancelledError):
        await running


async def test_figures_are_shown_but_for_those_that_cannot_be_asked_for(tmp_path: Path) -> None:
    async with await SqliteStore.open(tmp_path / "vettance.db", writer="thread") as store:
        await store.migrate()
        await store.write(everyone(JOB, "DROP TABLE job"))
        text = (await Measurer(take_place().board, store, tmp_path, {}).text()).decode()
    assert "vettance_webhook_deliveries_waiting 0" in text
    assert "vettance_store_up 1" in text
    assert "vettance_jobs_waiting 0" not in text
    assert ("_jobs", "Misuse") in [(one.key, one.error) for one in failing() if one.work == "metrics"]


async def test_what_fails_is_in_the_store_for_the_doctor_until_it_is_mended(place: Place) -> None:
    noting = asyncio.create_task(keep_noting(place.store, lambda: NOW_MS))
    tally_quota = Quota()
    tally = OwnQuotaUsage(place.store, tally_quota)
    hour, _ = tally_quota.used()
    tally_quota.restore(hour, {place.broken: 3})

    async def is_noted() -> bool:
        return ("quota", place.broken) in [row[:2] for row in await place.store.read(select_failing(0, 10))]

    async def is_mended() -> bool:
        await tally.save()
        return not told(place, "quota") and not await is_noted()

    with breaking(place.at, "quota_use", place.broken):
        await tally.save()
        await until(is_noted)
    await until(is_mended)
    noting.cancel()
    with suppress(asyncio.CancelledError):
        await noting
