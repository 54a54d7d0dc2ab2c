"""Old screenings go unless they belong to a case; an erased customer is no longer screened again."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from vettance.aml.screening.screen import Screener
from vettance.aml.screening.screening_request import read_screen_request
from vettance.clock import DAY_MS
from vettance.db.engine import Statement
from vettance.db.sqlite import SqliteStore
from vettance.ids import IdSource
from vettance.retention.erasure import Eraser
from vettance.retention.expiry import Retainer
from vettance.settings.retention_policy import Policy
from vettance.tenants.sql import insert_tenant
from vettance.tenants.tenant import Tenant
from vettance.watchlists.refresh import IndexKeeper, import_list
from vettance.wire.payload import decode, encode

NOW_MS = 1_790_000_000_000


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[SqliteStore]:
    opened = await SqliteStore.open(tmp_path / "vettance.db", writer="thread")
    await opened.migrate()
    await opened.write(insert_tenant(Tenant(id="ten_a", name="A", aml=True), NOW_MS))
    yield opened
    await opened.close()


async def screen(store: SqliteStore, data: Path, name: str, external_id: str, now_ms: int) -> str:
    keeper = IndexKeeper(store, data)
    await keeper.reload()
    screener = Screener(store, IdSource(), keeper, lambda: now_ms)
    body = {"inputName": name, "externalId": external_id}
    answer = decode(await screener.screen("ten_a", read_screen_request(body), encode(body)))
    screener.close()
    screening_id: str = answer["id"]
    return screening_id


async def test_old_screenings_without_a_case_go_and_an_erased_subject_is_forgotten(
    store: SqliteStore, tmp_path: Path
) -> None:
    path = tmp_path / "list.csv"
    path.write_text("name,type\nRosalind Achterberg,INDIVIDUAL\n")
    await import_list(store, tmp_path, "csv", [path], NOW_MS)
    await screen(store, tmp_path, "Wilhelmina Oakes", "old", NOW_MS - 40 * DAY_MS)
    held = await screen(store, tmp_path, "Rosalind Achterberg", "held", NOW_MS - 40 * DAY_MS)
    young = await screen(store, tmp_path, "Wilhelmina Oakes", "young", NOW_MS)
    retainer = Retainer(store, Policy(screenings=30), lambda: NOW_MS)
    assert (await retainer.run(dry_run=True))["screenings"] == 1
    assert (await retainer.run())["screenings"] == 1
    left = await store.read(Statement("SELECT id FROM aml_screening ORDER BY id", tenant="ten_a"))
    assert left == [(held,), (young,)]

    erased = await Eraser(store, b"s" * 32, NOW_MS).erase("ten_a", "held")
    assert any((kept.what, kept.count) == ("screenings", 1) for kept in erased.kept)
    watched = await store.read(
        Statement("SELECT external_id FROM aml_subject ORDER BY external_id", tenant="ten_a")
    )
    assert watched == [("old",), ("young",)]
