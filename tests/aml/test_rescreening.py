"""Whoever was screened before is screened again when a list changes: once, and against what changed."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.live import Caller, Service, started
from vettance.aml.screening import sql
from vettance.aml.screening.rescreening import Rescreener
from vettance.aml.screening.screen import Screener
from vettance.aml.screening.screening_request import read_screen_request
from vettance.db.engine import Statement
from vettance.db.sqlite import SqliteStore
from vettance.ids import IdSource
from vettance.tenants.sql import insert_tenant
from vettance.tenants.tenant import Tenant
from vettance.watchlists.refresh import IndexKeeper, import_list, remove_list
from vettance.watchlists.tenant_index import list_set_id
from vettance.wire.payload import decode, encode

ROSALIND = "1,Rosalind Achterberg,INDIVIDUAL,1969-10-11,{remarks}\n"
OTHERS = "2,Quillon Vandermeersch,INDIVIDUAL,1971-02-03,\n3,Ottoline Brakspear,INDIVIDUAL,1980-05-06,\n"
HEADER = "id,name,type,birth_dates,remarks\n"
NOW_MS = 1_790_000_000_000
#: Processes are started for it, on a machine that may be busy.
PATIENCE_S = 120.0


class World(NamedTuple):
    store: SqliteStore
    data: Path
    keeper: IndexKeeper
    screener: Screener
    rescreener: Rescreener

    async def put(self, text: str, source: str = "csv", owner: str = "*") -> None:
        """Import a list and follow it, as a running service does."""
        path = self.data / "list.csv"
        path.write_text(HEADER + text)
        await import_list(self.store, self.data, source, [path], NOW_MS, owner=owner)
        await self.keeper.reload(owner)

    async def screen(self, name: str, external_id: str, tenant: str = "ten_a", **more: str) -> Any:
        body = {"inputName": name, "externalId": external_id, **more}
        answer = await self.screener.screen(tenant, read_screen_request(body), encode(body))
        return decode(answer)

    async def alerts(self, external_id: str, tenant: str = "ten_a") -> list[tuple[Any, ...]]:
        """(id, case_id, state, subject, events) of the alerts of a subject, oldest first."""
        return await self.store.read(
            Statement(
                "SELECT id, case_id, state, subject, events FROM aml_alert "
                "WHERE tenant = ? AND customer = ? ORDER BY id",
                (tenant, external_id),
            )
        )

    async def progress(self, tenant: str = "ten_a") -> tuple[Any, ...] | None:
        """(finished, subjects, alerts) of screening again against the current versions."""
        reach = await self.keeper.reach(tenant)
        assert reach is not None
        rows = await self.store.read(sql.select_rescreening(tenant, list_set_id(reach.versions)))
        return (rows[0][1] is not None, *rows[0][2:]) if rows else None


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    store = await SqliteStore.open(tmp_path / "vettance.db", writer="thread")
    await store.migrate()
    for name in ("ten_a", "ten_b"):
        await store.write(insert_tenant(Tenant(id=name, name=name, aml=True), NOW_MS))
    keeper = IndexKeeper(store, tmp_path)
    screener = Screener(store, IdSource(), keeper)
    yield World(store, tmp_path, keeper, screener, Rescreener(store, screener, keeper, tmp_path))
    screener.close()
    await store.close()


async def test_a_new_entry_alerts_whoever_was_clear_and_only_him(world: World) -> None:
    await world.put(OTHERS)
    assert (await world.screen("Rosalind Achterberg", "rosa"))["decision"] == "AUTO_CLEAR"
    first = await world.screen("Quillon Vandermeersch", "quill")
    await world.screen("Wilhelmina Oakes", "oakes")
    await world.put(OTHERS + ROSALIND.format(remarks=""))
    await world.rescreener.catch_up()
    ((_, case_id, state, screening_id, _),) = await world.alerts("rosa")
    assert state == "OPEN"
    kept = decode(await world.screener.find("ten_a", screening_id) or b"")
    assert (kept["trigger"], kept["decision"], kept["caseId"]) == ("LIST_CHANGE", "REVIEW", case_id)
    assert [match["entityName"] for match in kept["matches"]] == ["Rosalind Achterberg"]
    # The entry that did not change says nothing new of the other one, whose alert is as it was.
    assert [alert[0] for alert in await world.alerts("quill")] == [first["alertId"]]
    assert await world.alerts("oakes") == []
    assert await world.progress() == (True, 3, 1)


async def test_nobody_is_screened_twice_against_one_version(world: World) -> None:
    await world.put(OTHERS)
    for number in range(30):
        await world.screen("Rosalind Achterberg", f"rosa-{number}")
    await world.put(OTHERS + ROSALIND.format(remarks=""))
    other = Rescreener(world.store, world.screener, world.keeper, world.data)
    # Two processes at once, and one that comes late.
    await asyncio.gather(world.rescreener.catch_up(), other.catch_up())
    await other.catch_up()
    for number in range(30):
        assert [alert[4] for alert in await world.alerts(f"rosa-{number}")] == [1]
    kept = await world.store.read(
        Statement("SELECT COUNT(*) FROM aml_screening WHERE CAST(answer AS TEXT) LIKE '%LIST_CHANGE%'")
    )
    assert kept == [(30,)]
    progress = await world.progress()
    assert progress is not None
    assert (progress[0], progress[2]) == (True, 30)


async def test_a_new_hit_joins_the_open_case_and_a_remembered_mistake_stays_quiet(world: World) -> None:
    await world.put(OTHERS + ROSALIND.format(remarks=""))
    quill = await world.screen("Quillon Vandermeersch", "quill")
    mistaken = await world.screen("Rosalind Achterberg", "rosa")
    await world.store.write(
        Statement(
            "UPDATE aml_alert SET state = 'CLOSED', resolution = 'FALSE_POSITIVE' WHERE id = ?",
            (mistaken["alertId"],),
        ),
        Statement("UPDATE aml_case SET state = 'CLOSED' WHERE id = ?", (mistaken["caseId"],)),
    )
    # Only a namesake is new: what was found not to be her is not asked about again.
    await world.put(OTHERS + ROSALIND.format(remarks="") + "4,Quillon Vandermeersch,INDIVIDUAL,1955,\n")
    await world.rescreener.catch_up()
    assert len(await world.alerts("rosa")) == 1
    alerts = await world.alerts("quill")
    assert [alert[1] for alert in alerts] == [quill["caseId"]] * 2
    # Once her entry changes, it is another question.
    await world.put(
        OTHERS + ROSALIND.format(remarks="Convicted") + "4,Quillon Vandermeersch,INDIVIDUAL,1955,\n"
    )
    await world.rescreener.catch_up()
    assert [alert[2] for alert in await world.alerts("rosa")] == ["CLOSED", "OPEN"]
    assert len(await world.alerts("quill")) == 2


async def test_a_tenants_own_list_has_its_own_subjects_screened_again(world: World) -> None:
    await world.put(OTHERS)
    for tenant in ("ten_a", "ten_b"):
        await world.screen("Rosalind Achterberg", "rosa", tenant)
    await world.put(ROSALIND.format(remarks=""), "own", "ten_b")
    await world.rescreener.catch_up()
    assert await world.alerts("rosa", "ten_a") == []
    assert len(await world.alerts("rosa", "ten_b")) == 1


async def test_a_list_that_goes_alerts_nobody(world: World) -> None:
    await world.put(OTHERS)
    await world.put(ROSALIND.format(remarks=""), "sample")
    await world.screen("Rosalind Achterberg", "rosa")
    await remove_list(world.store, world.data, "sample", NOW_MS)
    await world.keeper.reload()
    await world.rescreener.catch_up()
    assert len(await world.alerts("rosa")) == 1
    assert await world.progress() == (True, 1, 0)


async def test_what_was_asked_last_is_what_is_screened_again(world: World) -> None:
    await world.put(OTHERS)
    await world.screen("Wilhelmina Oakes", "married")
    await world.screen("Rosalind Achterberg", "married", inputDob="1990-01-30", entityType="INDIVIDUAL")
    await world.put(OTHERS + ROSALIND.format(remarks=""))
    await world.rescreener.catch_up()
    # Born at another time, she is a namesake, which the tenant's profile does not hold.
    assert await world.alerts("married") == []
    assert await world.progress() == (True, 1, 0)


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Service]:
    running = started(tmp_path)
    yield running
    assert running.stop() == 0


@pytest.mark.timeout(600)
def test_a_running_service_screens_again_also_what_changed_while_it_was_down(
    service: Service, tmp_path: Path
) -> None:
    def put(text: str) -> None:
        path = tmp_path / "list.csv"
        path.write_text(HEADER + text)
        service.cli("watchlist", "import", "--source", "csv", str(path))

    def count(external_id: str) -> int:
        total: int = clerk.get(f"/api/v1/aml/cases?customer={external_id}").json["total"]
        return total

    put(OTHERS)
    tenant_id, key = service.new_tenant("Watched")
    service.cli("tenant", "set", tenant_id, "--aml", "on", "--json")
    clerk = Caller(service, tenant_id, key)
    body = {"inputName": "Rosalind Achterberg", "externalId": "rosa"}
    service.wait_for(lambda: clerk.post("/api/v1/aml/screen", body).status == 200)
    put(OTHERS + ROSALIND.format(remarks=""))
    service.wait_for(lambda: count("rosa") == 1, PATIENCE_S)
    body = {"inputName": "Peregrine Stallworthy", "externalId": "perry"}
    assert clerk.post("/api/v1/aml/screen", body).json["decision"] == "AUTO_CLEAR"
    assert service.stop(9) != 0
    put(OTHERS + ROSALIND.format(remarks="") + "4,Peregrine Stallworthy,INDIVIDUAL,,\n")
    service.start()
    service.wait_for(lambda: count("perry") == 1, PATIENCE_S)
    service.wait_for(lambda: clerk.get("/api/v1/aml/watchlists").json["rescreening"]["finished"], PATIENCE_S)


async def test_tenants_with_many_subjects_take_turns(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vettance.aml.screening.rescreening.CHUNK", 2)
    await world.put(OTHERS)
    for tenant in ("ten_a", "ten_b"):
        for number in range(6):
            await world.screen("Wilhelmina Oakes", f"oakes-{number}", tenant)
    await world.store.write(
        Statement("CREATE TABLE moved (tenant TEXT)"),
        Statement(
            "CREATE TRIGGER moving AFTER UPDATE OF list_set ON aml_subject "
            "BEGIN INSERT INTO moved VALUES (NEW.tenant); END"
        ),
    )
    await world.put(OTHERS + ROSALIND.format(remarks=""))
    await Rescreener(world.store, world.screener, world.keeper, world.data, turn_s=0).catch_up()
    moved = await world.store.read(Statement("SELECT tenant FROM moved ORDER BY rowid"))
    assert [row[0] for row in moved] == ["ten_a", "ten_a", "ten_b", "ten_b"] * 3
    assert await world.progress("ten_a") == await world.progress("ten_b") == (True, 6, 0)
