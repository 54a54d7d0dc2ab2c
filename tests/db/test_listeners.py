"""Messages are kept for those who hear of them, on every store, however many are written together."""

import asyncio
from collections import Counter

from tests.webhooks.office import TENANT, Office
from vettance.db.engine import Store, everyone
from vettance.db.tables import DELIVERY, LIST_ENTRY
from vettance.events.event import read_event
from vettance.lists.rule_additions import RuleAdditions
from vettance.outbox import FAN_OUT_MAX, MessageType, enqueue, select_fan_out
from vettance.rules.list_effect import effects_of
from vettance.rules.rule import ListEffect, Rule
from vettance.webhooks import sql
from vettance.webhooks.fan_out import FanOut

OTHER = "ten_" + "2" * 32
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


async def test_of_processes_that_add_a_value_at_once_only_the_first_tells_of_its_entry(store: Store) -> None:
    office = Office(store)
    for _ in range(2):
        await office.subscribe(NOWHERE)
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
    event = read_event({"eventName": "a", "device": {"fingerprint": "fp-1"}}, body, 1_800_000_000_000)
    processes = [RuleAdditions({}, office.ids, lambda _: None) for _ in range(3)]
    plans = [
        process.plan(TENANT, [rule], effects_of([rule]), [0], event, "evt_1", event.received_at_ms)
        for process in processes
    ]
    await asyncio.gather(*[store.write(*plan.statements) for plan in plans])
    entries = await store.read(everyone(LIST_ENTRY, "SELECT id FROM list_entry"))
    assert len(entries) == 1
    assert await store.read(everyone(DELIVERY, "SELECT subject FROM delivery")) == entries * 2
