"""The deliveries of a message to many subscriptions: in pieces, in turns, and each exactly once."""

import asyncio
from collections import Counter

import pytest

from tests.webhooks.office import TENANT, Office
from vettance.db.engine import Lost, everyone
from vettance.db.tables import DELIVERY, MESSAGE
from vettance.outbox import FAN_OUT_MAX, MessageType, fan_out, select_fan_out
from vettance.webhooks import sql
from vettance.webhooks.fan_out import FanOut
from vettance.webhooks.subscription_queue import (
    FAILING_BURST,
    FAILING_PER_S,
    FAILING_ROUND,
    SubscriptionQueues,
)

OTHER = "ten_" + "2" * 32
NOWHERE = "http://127.0.0.1:9/"


async def subscribe(office: Office, count: int, tenant: str = TENANT) -> list[str]:
    return [(await office.subscribe(NOWHERE, tenant=tenant)).id for _ in range(count)]


async def made(office: Office, tenant: str = TENANT) -> list[str]:
    """The subscriptions that a delivery was made for, in that order."""
    rows = await office.store.read(
        everyone(DELIVERY, "SELECT subscription, tenant FROM delivery ORDER BY seq")
    )
    return [row[0] for row in rows if row[1] == tenant]


async def test_a_commit_makes_a_piece_of_the_deliveries_and_further_commits_the_others(
    office: Office,
) -> None:
    subscribed = await subscribe(office, 2 * FAN_OUT_MAX + 7)
    await office.tell()
    assert await made(office) == subscribed[:FAN_OUT_MAX]
    pieces = FanOut(office.store)
    assert await pieces.piece()
    assert await made(office) == subscribed[: 2 * FAN_OUT_MAX]
    assert await pieces.piece()
    while await pieces.piece():
        pass
    assert await made(office) == subscribed


async def test_few_subscriptions_leave_nothing_to_be_made(office: Office) -> None:
    subscribed = await subscribe(office, FAN_OUT_MAX)
    await office.tell()
    assert await made(office) == subscribed
    assert not await office.store.read(select_fan_out(""))


async def test_tenants_have_a_piece_each_in_turn(office: Office) -> None:
    for tenant in (TENANT, OTHER):
        await subscribe(office, 3 * FAN_OUT_MAX, tenant)
        await office.tell(tenant=tenant)
    pieces, order = FanOut(office.store), []
    before = dict.fromkeys((TENANT, OTHER), FAN_OUT_MAX)
    while await pieces.piece():
        for tenant in (TENANT, OTHER):
            if (now := len(await made(office, tenant))) > before[tenant]:
                order.append(tenant)
                before[tenant] = now
    assert order == [TENANT, OTHER, TENANT, OTHER]


async def test_a_piece_that_was_made_is_not_made_again(office: Office) -> None:
    await subscribe(office, 2 * FAN_OUT_MAX)
    await office.tell()
    step = (await office.store.read(select_fan_out("")))[0]
    await office.store.write(*fan_out(*step))
    with pytest.raises(Lost):
        await office.store.write(*fan_out(*step))
    assert len(await made(office)) == 2 * FAN_OUT_MAX


async def test_a_message_goes_to_those_who_were_subscribed_and_still_are(office: Office) -> None:
    subscribed = await subscribe(office, 2 * FAN_OUT_MAX)
    await office.tell()
    await office.store.write(*sql.delete_subscription(TENANT, subscribed[FAN_OUT_MAX]))
    await subscribe(office, 1)
    pieces = FanOut(office.store)
    while await pieces.piece():
        pass
    del subscribed[FAN_OUT_MAX]
    assert await made(office) == subscribed


async def test_only_those_who_want_its_type_are_counted(office: Office) -> None:
    await subscribe(office, FAN_OUT_MAX)
    for _ in range(3):
        await office.subscribe(NOWHERE, MessageType.REVIEW_SETTLED)
    await office.tell()
    assert not await office.store.read(select_fan_out(""))


async def test_a_worker_makes_every_delivery_once_though_others_crashed_between_pieces(
    office: Office,
) -> None:
    subscribed = await subscribe(office, 4 * FAN_OUT_MAX)
    await office.tell()
    await office.tell()
    office.begin()
    while len(await made(office)) < 3 * FAN_OUT_MAX:  # noqa: ASYNC110 - bounded by the test's own time
        await asyncio.sleep(0.001)
    await office.crash()
    assert len(await made(office)) < 8 * FAN_OUT_MAX
    office.begin(alone=False)
    office.begin(alone=False)
    while len(await made(office)) < 8 * FAN_OUT_MAX:  # noqa: ASYNC110 - bounded by the test's own time
        await asyncio.sleep(0.01)
    assert Counter(await made(office)) == dict.fromkeys(subscribed, 2)
    assert not await office.store.read(
        everyone(MESSAGE, "SELECT id FROM message WHERE next_subscription > ''")
    )


def test_attempts_at_failing_receivers_beyond_the_rate_go_in_rounds() -> None:
    lanes = SubscriptionQueues()
    for number in range(40):
        lane = lanes.lane(TENANT, f"whs_{number}")
        lane.failing = True
        for seq in range(100):
            lanes.add(lane, number * 100 + seq, 0, 0)
    taken: list[int] = []
    for now_ms in range(10_000, 20_000, 10):
        some = lanes.take(now_ms)
        for lane, seq in some:
            lanes.done(lane, seq)
        taken.append(len(some))
    made = [count for count in taken if count]
    burst_end = next(place for place, count in enumerate(made) if count < made[0])
    rounds = made[burst_end + 1 :]
    assert sum(taken) <= FAILING_BURST + 10 * FAILING_PER_S
    assert min(rounds) >= FAILING_ROUND
    assert len(rounds) <= 10 * FAILING_PER_S / FAILING_ROUND
