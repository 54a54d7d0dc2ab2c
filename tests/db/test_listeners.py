"""Messages are kept for those who hear of them, on every store, however many are written together."""

import asyncio
from collections import Counter
from typing import Any, cast

import pytest

from tests.webhooks.office import TENANT, Office
from vettance.db.engine import Clash, Lost, Statement, Store, everyone
from vettance.db.tables import AUDIT_ENTRY, CHANGE, DELIVERY, LIST_ENTRY
from vettance.events.event import read_event
from vettance.lists import sql as lists_sql
from vettance.lists.entry import EntryType, ListEntry, ListType
from vettance.lists.rule_additions import ADDED, CONTENDED, FULL, PRESENT, ListAdditions, RuleAdditions
from vettance.lists.write_additions import Written, write_additions
from vettance.outbox import FAN_OUT_MAX, MessageType, enqueue, select_fan_out
from vettance.rules.list_effect import effects_of
from vettance.rules.rule import ListEffect, Rule
from vettance.tenants.sql import note_change
from vettance.tenants.tenant import Tenant
from vettance.webhooks import sql
from vettance.webhooks.fan_out import FanOut
from vettance.wire.payload import encode

OTHER = "ten_" + "2" * 32
NOW_MS = 1_800_000_000_000
NOWHERE = "http://127.0.0.1:9/"


async def made(store: Store, tenant: str = TENANT) -> list[str]:
    """The subscriptions that a delivery was made for, in that order."""
    rows = await store.read(everyone(DELIVERY, "SELECT subscription, tenant FROM delivery ORDER BY seq"))
    return [row[0] for row in rows if row[1] == tenant]


async def test_of_messages_that_are_written_together_only_those_are_kept_that_somebody_hears(
    store: Store,
) -> None:
    office = Office(store)
    subscribed = [(await office.subscribe(NOWHERE)).id for _ in range(2)]
    blocked, settled = MessageType.BLOCKLIST_ENTRY_ADDED, MessageType.REVIEW_SETTLED
    of_other = (await office.subscribe(NOWHERE, settled, tenant=OTHER)).id

    async def tell(tenant: str, kind: MessageType) -> list[int]:
        return await store.write(*enqueue(tenant, kind, office.ids.make("msg"), "lst_x", 1, b"{}"))

    quiet = "ten_" + "3" * 32
    told = [(TENANT, blocked), (OTHER, blocked), (quiet, blocked), (OTHER, settled), (quiet, settled)] * 4
    counts = await asyncio.gather(*[tell(tenant, kind) for tenant, kind in told])
    assert counts == [[1, 2], [0, 0], [0, 0], [1, 1], [0, 0]] * 4
    assert Counter(await made(store)) == dict.fromkeys(subscribed, 4)
    assert await made(store, OTHER) == [of_other] * 4
    assert not await made(store, quiet)


async def test_a_message_whose_further_subscribers_have_gone_is_done(store: Store) -> None:
    office = Office(store)
    subscribed = [(await office.subscribe(NOWHERE)).id for _ in range(FAN_OUT_MAX + 1)]
    await office.tell()
    for subscription in subscribed:
        await store.write(*sql.delete_subscription(TENANT, subscription))
    pieces = FanOut(store)
    while await pieces.piece():
        pass
    assert not await store.read(select_fan_out(""))


class Deciding:
    """A process whose rules add the device of an event to the block list, and what it has recorded."""

    def __init__(self, office: Office, entries_max: int = 100) -> None:
        tenant = Tenant(id=TENANT, name="T", list_entries=entries_max)
        self.additions = RuleAdditions({}, office.ids, lambda _: tenant, lambda: NOW_MS)
        self.planned = 0

    def plan(self, device: str = "fp-1", *, adding: bool = True) -> ListAdditions:
        rule = Rule(
            id="bots",
            name="Bots",
            when="true",
            score=1,
            reason="BOTS",
            explanation="It is a bot.",
            adds=ListEffect(list="block", type="DEVICE", lasts="7d"),
        )
        sent = {"eventName": "a", "device": {"fingerprint": device}}
        self.planned += 1
        return self.additions.plan(
            TENANT,
            [rule],
            effects_of([rule]),
            [0],
            read_event(sent, encode(sent), NOW_MS),
            f"evt_{device}",
            NOW_MS,
            adding=adding,
        )

    async def decide(
        self, store: Store, device: str = "fp-1", more: tuple[Statement, ...] = ()
    ) -> tuple[str, str]:
        """Returns what became of the addition, and the id of its entry, as recorded."""
        last: list[ListAdditions] = []

        def again(*, adding: bool = True) -> Written:
            last.append(self.plan(device, adding=adding))
            return last[-1], [*last[-1].statements, *more]

        await write_additions(store, self.additions, again(), again)
        return last[-1].recorded[0][3:]


async def kept(store: Store) -> list[str]:
    """The ids of the entries; a subscription, other processes and the audit log have each once."""
    entries = await store.read(everyone(LIST_ENTRY, "SELECT id FROM list_entry ORDER BY id"))
    told = await store.read(everyone(DELIVERY, "SELECT subject FROM delivery ORDER BY subject"))
    assert told == entries
    noted = await store.read(
        everyone(CHANGE, "SELECT subject FROM change WHERE area = 'list' ORDER BY subject")
    )
    assert noted == entries
    audited = await store.read(everyone(AUDIT_ENTRY, "SELECT COUNT(*) FROM audit_entry"))
    assert audited == [(len(entries),)]
    return [entry_id for (entry_id,) in entries]


async def test_of_processes_that_add_a_value_at_once_each_records_the_one_entry(
    store: Store,
) -> None:
    office = Office(store)
    await office.subscribe(NOWHERE)
    recorded = await asyncio.gather(*[Deciding(office).decide(store) for _ in range(4)])
    (entry_id,) = await kept(store)
    assert sorted(recorded) == [(ADDED, entry_id), *[(PRESENT, entry_id)] * 3]


class Outrun:
    """A store to which another process always comes first: it replaces the entry of the value."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.writes = 0
        self.entry = entry_of(1, expires_at_ms=NOW_MS + 1)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    async def write(self, *statements: Statement) -> list[int]:
        self.writes += 1
        if self.writes > 1:
            await self._store.write(lists_sql.delete_entry(TENANT, self.entry.id))
        self.entry = entry_of(1, expires_at_ms=NOW_MS + self.writes)
        await self._store.write(*lists_sql.insert_entry(self.entry, 100))
        return await self._store.write(*statements)


async def test_an_event_is_stored_though_others_come_first_each_time(store: Store) -> None:
    outrun, noted = Outrun(store), note_change("noted", TENANT, "evt_1", NOW_MS)
    became, entry_id = await Deciding(Office(store)).decide(cast(Store, outrun), more=(noted,))
    assert became == CONTENDED
    assert entry_id != outrun.entry.id, "the entry that it would have extended has gone"
    kept_rows = await store.read(everyone(CHANGE, "SELECT area FROM change WHERE area IN ('list', 'noted')"))
    assert kept_rows == [("noted",)], "once, and nothing of a plan that was refused"


async def test_what_an_event_demands_besides_its_additions_is_still_refused(store: Store) -> None:
    demanded = lists_sql.delete_entry(TENANT, "lst_none")
    with pytest.raises(Lost):
        await Deciding(Office(store)).decide(store, more=(demanded,))
    assert not await store.read(everyone(LIST_ENTRY, "SELECT id FROM list_entry"))


async def test_of_processes_that_add_the_last_entries_none_passes_the_limit(store: Store) -> None:
    office = Office(store)
    await office.subscribe(NOWHERE)
    processes = [Deciding(office, entries_max=3) for _ in range(2)]
    asked = [processes[number % 2].decide(store, f"fp-{number}") for number in range(8)]
    recorded = await asyncio.gather(*asked)
    entries = await kept(store)
    assert len(entries) == 3
    assert sorted(recorded) == [*sorted((ADDED, entry_id) for entry_id in entries), *[(FULL, "")] * 5]
    before = processes[0].planned
    assert await processes[0].decide(store, "fp-9") == (FULL, "")
    assert processes[0].planned == before + 1, "what is known to be full is not tried again"


async def test_an_event_that_found_an_entry_on_its_way_makes_its_own_when_none_came(
    store: Store,
) -> None:
    office = Office(store)
    await office.subscribe(NOWHERE)
    process = Deciding(office)
    with process.additions.under_way(process.plan()):
        second = process.plan()
    assert second.recorded[0][3] == PRESENT
    with pytest.raises(Lost):
        await store.write(*second.statements)  # The commit of the first one has failed.
    became, entry_id = await Deciding(office).decide(store)
    assert (became, await kept(store)) == (ADDED, [entry_id])


async def test_lists_are_counted_whatever_becomes_of_their_entries(store: Store) -> None:
    async def counted(now_ms: int = NOW_MS) -> int:
        return int((await store.read(lists_sql.count_live(TENANT, now_ms)))[0][0])

    entries = [entry_of(number, expires_at_ms=NOW_MS + 10 * number) for number in range(1, 4)]
    for entry in entries:
        await store.write(*lists_sql.insert_entry(entry, 3))
    with pytest.raises(Lost):
        await store.write(*lists_sql.insert_entry(entry_of(4), 3))
    with pytest.raises(Clash):
        await store.write(*lists_sql.insert_entry(entry_of(3), 4))
    await store.write(lists_sql.extend_entry(entries[2]))
    assert (await counted(), await counted(NOW_MS + 20)) == (3, 1)
    await store.write(*lists_sql.insert_entry(entry_of(4, at_ms=NOW_MS + 10), 3))
    assert await counted() == 3, "what has expired makes room"
    await store.write(lists_sql.delete_entry(TENANT, entries[2].id))
    assert await counted() == 2


async def test_what_has_expired_takes_no_room_however_much_it_is(store: Store) -> None:
    # More than one addition sweeps away, and than a limit that was lowered since.
    for number in range(120):
        await store.write(*lists_sql.insert_entry(entry_of(number, expires_at_ms=NOW_MS + 1), 1000))
    await store.write(*lists_sql.insert_entry(entry_of(200), 1000))
    later_ms = NOW_MS + 1
    with pytest.raises(Lost):
        await store.write(*lists_sql.insert_entry(entry_of(201), 2))
    await store.write(*lists_sql.insert_entry(entry_of(201, at_ms=later_ms), 2))
    with pytest.raises(Lost):
        await store.write(*lists_sql.insert_entry(entry_of(202, at_ms=later_ms), 2))
    live = await store.read(
        lists_sql.select_by_values(TENANT, EntryType.DEVICE, ["fp-200", "fp-201"], later_ms)
    )
    assert len(live) == 2


def entry_of(number: int, expires_at_ms: int | None = None, at_ms: int = NOW_MS) -> ListEntry:
    return ListEntry(
        id=f"lst_{number}_{at_ms}_{expires_at_ms}",
        tenant=TENANT,
        type=EntryType.DEVICE,
        value=f"fp-{number}",
        list_type=ListType.BLOCK,
        reason=None,
        expires_at_ms=expires_at_ms,
        created_at_ms=at_ms,
        updated_at_ms=at_ms,
    )
