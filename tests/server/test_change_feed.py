"""Mirrors of configuration are kept equal to the store, each for itself."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from vettance.aml.sql import AREA as AML_AREA
from vettance.clock import DAY_MS
from vettance.db.engine import Row, Statement, StoreDown, everyone
from vettance.db.sqlite import SqliteStore
from vettance.db.tables import CHANGE
from vettance.ids import IdSource
from vettance.lists import sql as lists_sql
from vettance.lists.api import ListDoors
from vettance.lists.entry import EntryType, ListBook, ListEntry, ListType
from vettance.redis_link.announcements import Announcements
from vettance.redis_link.redis_connection import RedisConnection
from vettance.retention import sql as retention_sql
from vettance.retention.expiry import Retainer
from vettance.server.change_feed import BATCH_MAX, ChangeFeed
from vettance.settings.retention_policy import Policy
from vettance.tenants.sql import AREA as KEYS
from vettance.tenants.sql import DELETED, PRUNED, note_change


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


class CountedReads:
    """A store that counts its reads."""

    def __init__(self, store: SqliteStore) -> None:
        self._store = store
        self.reads = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    async def read(self, statement: Statement) -> list[Row]:
        self.reads += 1
        return await self._store.read(statement)


def entry_of(tenant: str, number: int) -> ListEntry:
    return ListEntry(
        id=f"lst_{tenant}{number:04}",
        tenant=tenant,
        type=EntryType.DEVICE,
        value=f"device-{number}",
        list_type=ListType.BLOCK,
        reason=None,
        expires_at_ms=None,
        created_at_ms=1,
        updated_at_ms=1,
    )


async def test_a_flood_of_list_entries_is_read_many_at_a_time_and_in_turns(tmp_path: Path) -> None:
    async with await SqliteStore.open(tmp_path / "vettance.db", writer="thread") as store:
        await store.migrate()
        books: dict[str, ListBook] = {}
        counted = CountedReads(store)
        doors = ListDoors(counted, IdSource(), books)
        order: list[tuple[str, int]] = []

        async def reload(tenant: str, entry_ids: Sequence[str]) -> None:
            order.append((tenant, len(entry_ids)))
            await doors.reload(tenant, entry_ids)

        feed = ChangeFeed(counted, {}, batches={lists_sql.AREA: reload})
        await feed.start()
        loud = [entry_of("ten_loud", number) for number in range(1000)]
        quiet = entry_of("ten_quiet", 1)
        for entry in (*loud, quiet):
            note = note_change(lists_sql.AREA, entry.tenant, entry.id, 1)
            await store.write(*lists_sql.insert_entry(entry, 10_000), note)
        counted.reads = 0
        await feed.look()
        assert counted.reads == 1 + 1000 // BATCH_MAX + 1
        assert order.index(("ten_quiet", 1)) == 1
        assert [len(books[tenant]) for tenant in ("ten_loud", "ten_quiet")] == [1000, 1]
        gone = [note_change(lists_sql.AREA, one.tenant, one.id, 2) for one in (*loud[:3], quiet)]
        await store.write(*(lists_sql.delete_entry(one.tenant, one.id) for one in (*loud[:3], quiet)), *gone)
        await feed.look()
        assert [len(books[tenant]) for tenant in ("ten_loud", "ten_quiet")] == [997, 0]
        await feed.look()
        assert len(order) == 7


async def test_an_entry_that_cannot_be_read_keeps_no_other_of_its_batch_from_it(tmp_path: Path) -> None:
    async with await SqliteStore.open(tmp_path / "vettance.db", writer="thread") as store:
        await store.migrate()
        books: dict[str, ListBook] = {}
        doors, now_s = ListDoors(store, IdSource(), books), [0.0]
        feed = ChangeFeed(store, {}, lambda: now_s[0], {lists_sql.AREA: doors.reload})
        await feed.start()
        for number in range(5):
            entry = entry_of("ten_a", number)
            note = note_change(lists_sql.AREA, entry.tenant, entry.id, 1)
            await store.write(*lists_sql.insert_entry(entry, 10_000), note)
        broken = entry_of("ten_a", 2).id
        await store.write(Statement("UPDATE list_entry SET type = 'OTHER' WHERE id = ?", (broken,)))
        await feed.look()
        assert len(books["ten_a"]) == 4
        await store.write(Statement("UPDATE list_entry SET type = 'DEVICE' WHERE id = ?", (broken,)))
        await feed.look()
        assert len(books["ten_a"]) == 4, "it is tried again after a pause"
        now_s[0] = 10
        await feed.look()
        assert len(books["ten_a"]) == 5


async def test_what_a_request_could_not_take_in_the_next_one_takes_in(tmp_path: Path) -> None:
    async with await SqliteStore.open(tmp_path / "vettance.db", writer="thread") as store:
        await store.migrate()
        mirrors = Mirrors(store)
        await mirrors.refresher.start()
        announced = Announcements(
            RedisConnection("redis://127.0.0.1:1"), "c"
        )  # Only what a charge told is asked.
        freshen = mirrors.refresher.freshener(announced)
        assert freshen is not None
        mirrors.failing["ten_a"] = StoreDown("away")
        await store.write(note_change(KEYS, "ten_a", "k", 1))
        announced.newest["ten_a"] = 1
        await freshen("ten_a")  # The request goes on all the same.
        assert mirrors.read == []
        mirrors.failing.clear()
        await freshen("ten_a")
        await freshen("ten_a")
        assert mirrors.read == [("ten_a", "k")]


async def test_a_process_that_was_stopped_until_changes_had_gone_ends_itself(tmp_path: Path) -> None:
    async with await SqliteStore.open(tmp_path / "vettance.db", writer="thread") as store:
        await store.migrate()
        ended: list[str] = []
        awake, asleep = (ChangeFeed(store, {}, end=lambda name=name: ended.append(name)) for name in "ab")
        await asleep.start()
        await store.write(*(note_change("list", "ten_a", f"lst_{number}", number) for number in range(5)))
        await awake.catch_up()
        removed = await Retainer(store, Policy(changes=1), lambda: 3 + DAY_MS).run()
        assert removed["changes"] == 3
        await awake.catch_up()
        assert ended == []
        await asleep.catch_up()
        assert ended == ["b"]
        removed = await Retainer(store, Policy(changes=1), lambda: 4 + DAY_MS).run()
        assert removed["changes"] == 1  # The fourth; the mark is new.


async def test_changes_that_are_asked_about_later_are_kept(tmp_path: Path) -> None:
    async with await SqliteStore.open(tmp_path / "vettance.db", writer="thread") as store:
        await store.migrate()
        kept = (DELETED, retention_sql.BEGUN, retention_sql.DONE, retention_sql.DONE_AML, AML_AREA)
        await store.write(*(note_change(area, "ten_a", "x", 1) for area in (*kept, "list", "tenant")))
        await Retainer(store, Policy(changes=1), lambda: 2 + DAY_MS).run()
        left = await store.read(everyone(CHANGE, "SELECT area FROM change ORDER BY seq"))
        assert [row[0] for row in left] == [*kept, PRUNED]
