"""Mirrors of configuration are kept equal to the store, each for itself."""

from pathlib import Path

import pytest

from vettance.db.engine import StoreDown
from vettance.db.sqlite import SqliteStore
from vettance.server.change_feed import ChangeFeed
from vettance.tenants.sql import AREA as KEYS
from vettance.tenants.sql import note_change


class Mirrors:
    """Notes what it is told to read again, and fails as it is told to."""

    def __init__(self, store: SqliteStore) -> None:
        self.failing: dict[str, Exception] = {}
        self.read: list[tuple[str, str]] = []
        self.now_s = 0.0
        reloads = dict.fromkeys(("rules", "keys", KEYS), self._reload)
        self.refresher = ChangeFeed(store, reloads, lambda: self.now_s)

    async def _reload(self, tenant: str, subject: str) -> None:
        if tenant in self.failing:
            raise self.failing[tenant]
        self.read.append((tenant, subject))


async def test_what_fails_for_one_tenant_is_tried_again_and_keeps_nobody_waiting(tmp_path: Path) -> None:
    async with await SqliteStore.open(tmp_path / "vettance.db", writer="thread") as store:
        await store.migrate()
        mirrors = Mirrors(store)
        await mirrors.refresher.start()
        mirrors.failing["ten_a"] = ValueError("a document of another time")
        await store.write(
            note_change("rules", "ten_a", "r", 1),
            note_change("unknown", "ten_a", "x", 1),
            note_change("rules", "ten_b", "r", 1),
            note_change("keys", "ten_b", "k", 1),
            note_change("rules", "ten_b", "r", 1),
        )
        for _ in range(2):
            await mirrors.refresher.look()
            assert mirrors.read == [("ten_b", "r"), ("ten_b", "k")]
        mirrors.failing.clear()
        mirrors.now_s = 10
        await store.write(note_change("keys", "ten_c", "k", 1))
        await mirrors.refresher.look()
        assert mirrors.read[2:] == [("ten_a", "r"), ("ten_c", "k")]
        await mirrors.refresher.look()
        assert len(mirrors.read) == 4


async def test_keys_that_cannot_be_read_are_a_fault_until_they_are(tmp_path: Path) -> None:
    async with await SqliteStore.open(tmp_path / "vettance.db", writer="thread") as store:
        await store.migrate()
        mirrors = Mirrors(store)
        await mirrors.refresher.start()
        mirrors.failing["ten_a"] = ValueError("a key of another time")
        await store.write(note_change(KEYS, "ten_a", "k", 1), note_change("rules", "ten_b", "r", 1))
        for _ in range(2):
            with pytest.raises(ValueError, match="another time"):
                await mirrors.refresher.look()
            assert mirrors.read == [("ten_b", "r")]
        mirrors.failing.clear()
        await mirrors.refresher.look()
        assert mirrors.read[1:] == [("ten_a", "k")]


async def test_what_was_due_when_the_store_went_away_is_read_when_it_is_back(tmp_path: Path) -> None:
    async with await SqliteStore.open(tmp_path / "vettance.db", writer="thread") as store:
        await store.migrate()
        mirrors = Mirrors(store)
        await mirrors.refresher.start()
        await store.write(note_change("rules", "ten_a", "r", 1), note_change("rules", "ten_b", "r", 1))
        mirrors.failing["ten_b"] = StoreDown("away")
        with pytest.raises(StoreDown):
            await mirrors.refresher.look()
        mirrors.failing.clear()
        mirrors.now_s = 10
        await mirrors.refresher.look()
        assert mirrors.read == [("ten_a", "r"), ("ten_b", "r")]


async def test_keys_are_read_before_everything_else(tmp_path: Path) -> None:
    async with await SqliteStore.open(tmp_path / "vettance.db", writer="thread") as store:
        await store.migrate()
        read: list[str] = []

        async def note(_tenant: str, subject: str) -> None:
            read.append(subject)

        refresher = ChangeFeed(store, {"lists": note, KEYS: note})
        await refresher.start()
        changes = [note_change("lists", "ten_a", f"entry {number}", 1) for number in range(3)]
        await store.write(*changes, note_change(KEYS, "ten_a", "key", 1))
        await refresher.look()
        assert read == ["key", "entry 0", "entry 1", "entry 2"]
