"""Messages are kept for those who hear of them, on every store, however many are written together."""

import asyncio
from collections import Counter

from tests.webhooks.office import TENANT, Office
from vettance.db.engine import Store, everyone
from vettance.db.tables import CHANGE, DELIVERY, LIST_ENTRY
from vettance.events.event import read_event
from vettance.lists.rule_additions import PRESENT, ListAdditions, RuleAdditions
from vettance.outbox import FAN_OUT_MAX, MessageType, enqueue, select_fan_out
from vettance.rules.list_effect import effects_of
from vettance.rules.rule import ListEffect, Rule
from vettance.webhooks import sql
from vettance.webhooks.fan_out import FanOut

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


def adding(process: RuleAdditions) -> ListAdditions:
    """What a process plans when a rule adds the device of an event to the block list."""
    rule = Rule(
        id="bots",
        name="Bots",
        when="true",
        score=1,
        reason="BOTS",
        explanation="It is a bot.",
        adds=ListEffect(list="block", type="DEVICE", lasts="7d"),
    )
    body = b'{"eventName":"a","device":{"fingerprint":"fp-1"}}'
    event = read_event({"eventName": "a", "device": {"fingerprint": "fp-1"}}, body, NOW_MS)
    return process.plan(TENANT, [rule], effects_of([rule]), [0], event, "evt_1", NOW_MS)


async def kept(store: Store) -> list[tuple[str]]:
    """The ids of the entries; each was told of to a subscription, and to other processes."""
    entries = await store.read(everyone(LIST_ENTRY, "SELECT id FROM list_entry"))
    assert await store.read(everyone(DELIVERY, "SELECT DISTINCT subject FROM delivery")) == entries
    noted = await store.read(everyone(CHANGE, "SELECT DISTINCT subject FROM change WHERE area = 'list'"))
    assert set(entries) <= set(noted)
    return entries  # type: ignore[return-value]


async def test_of_processes_that_add_a_value_at_once_only_the_first_tells_of_its_entry(store: Store) -> None:
    office = Office(store)
    await office.subscribe(NOWHERE)
    plans = [adding(RuleAdditions({}, office.ids, lambda _: None)) for _ in range(3)]
    await asyncio.gather(*[store.write(*plan.statements) for plan in plans])
    assert len(await kept(store)) == 1


async def test_an_event_that_found_an_entry_on_its_way_tells_of_the_one_it_made_instead(store: Store) -> None:
    office = Office(store)
    await office.subscribe(NOWHERE)
    process = RuleAdditions({}, office.ids, lambda _: None)
    first = adding(process)
    with process.under_way(first):
        second = adding(process)
    assert second.recorded[0][3] == PRESENT
    await store.write(*second.statements)  # The commit of the first one has failed.
    assert len(await kept(store)) == 1
