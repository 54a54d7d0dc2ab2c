"""Claims, settlements, undo and checks, on a real store of each kind."""

import asyncio

import pytest

from tests.reviews.office import DENY, START_MS, TENANT, Office
from vettance.clock import DAY_MS, HOUR_MS
from vettance.errors import Conflict, NotFound
from vettance.feedback.label import Label
from vettance.lists.entry import EntryType, ListType
from vettance.lists.entry_bodies import NewEntry
from vettance.reviews.review import (
    CLAIM_MS,
    UNDO_MS,
    ReviewOutcome,
    ReviewState,
    Settlement,
    points_of_amount,
    rank_of,
)


async def test_twenty_people_at_two_processes_never_meet(office: Office) -> None:
    made = await office.open(60)
    desks = [office.desk, office.another()]
    got = await asyncio.gather(*(desks[n % 2].take_next(TENANT.id, f"usr_{n}") for n in range(20)))
    assert len(set(got)) == 20
    assert set(got) == set(made[:20])


async def test_who_asks_again_gives_back_what_they_held(office: Office) -> None:
    first, second = await office.open(2)
    assert await office.desk.take_next(TENANT.id, "usr_a") == first
    assert await office.desk.take_next(TENANT.id, "usr_b") == second
    assert await office.desk.take_next(TENANT.id, "usr_b") == second
    assert await office.desk.take_next(TENANT.id, "usr_c") is None


async def test_a_claim_that_ran_out_goes_back(office: Office) -> None:
    (decision,) = await office.open(1)
    await office.desk.take_next(TENANT.id, "usr_a")
    office.now_ms += CLAIM_MS - 1
    assert await office.desk.take_next(TENANT.id, "usr_b") is None
    await office.desk.claim(TENANT.id, decision, "usr_a")
    office.now_ms += CLAIM_MS - 1
    with pytest.raises(Conflict, match="Somebody else holds"):
        await office.desk.claim(TENANT.id, decision, "usr_b")
    office.now_ms += 1
    await office.keeper.look(expiring=False)
    assert (await office.desk.find(TENANT.id, decision)).state is ReviewState.OPEN
    assert await office.desk.take_next(TENANT.id, "usr_b") == decision
    with pytest.raises(Conflict):
        await office.desk.settle(TENANT, decision, DENY, "usr_a", held=True)
    await office.desk.claim(TENANT.id, decision, "usr_a", taking=True)
    assert (await office.desk.settle(TENANT, decision, DENY, "usr_a", held=True)).settled_by == "usr_a"


async def test_of_two_who_settle_at_once_one_is_refused(office: Office) -> None:
    (decision,) = await office.open(1)
    approve = Settlement(outcome=ReviewOutcome.APPROVE)
    ends = await asyncio.gather(
        office.desk.settle(TENANT, decision, DENY, "usr_a"),
        office.another().settle(TENANT, decision, approve, "usr_b"),
        return_exceptions=True,
    )
    assert sum(isinstance(end, Conflict) for end in ends) == 1
    with pytest.raises(NotFound):
        await office.desk.settle(TENANT, "evt_" + "9" * 32, DENY, "usr_a")


async def test_undo_takes_everything_back_within_ten_seconds(office: Office) -> None:
    (decision,) = await office.open(1)
    await office.desk.take_next(TENANT.id, "usr_a")
    block = NewEntry(EntryType.EMAIL, "bad@example.com", ListType.BLOCK, "Review.", None)
    said = Settlement(outcome=ReviewOutcome.DENY, label=Label.FRAUD)
    settled = await office.desk.settle(
        TENANT, decision, said, "usr_a", [block, block._replace(value="b@c.example")]
    )
    assert len(settled.entries) == len(office.books[TENANT.id]) == 2
    with pytest.raises(Conflict, match="Only the person"):
        await office.desk.undo(TENANT.id, decision, "usr_b")
    office.now_ms += UNDO_MS - 1
    await office.keeper.look(expiring=False)
    await office.desk.undo(TENANT.id, decision, "usr_a")
    review = await office.desk.find(TENANT.id, decision)
    assert (review.state, review.claimed_by, review.label) == (ReviewState.CLAIMED, "usr_a", None)
    assert len(office.books[TENANT.id]) == 0
    assert office.took == []
    await office.desk.settle(TENANT, decision, said, "usr_a", [block])
    office.now_ms += UNDO_MS
    with pytest.raises(Conflict, match="too late"):
        await office.desk.undo(TENANT.id, decision, "usr_a")
    await office.keeper.look(expiring=False)
    assert office.took == [Label.FRAUD]
    await office.keeper.look(expiring=False)
    assert office.took == [Label.FRAUD]


async def test_reviews_expire_and_are_counted_by_state(office: Office) -> None:
    made = await office.open(3)
    await office.desk.settle(TENANT, made[0], DENY, "usr_a")
    assert await office.desk.states(TENANT.id) == {"open": 2, "settled": 1}
    office.now_ms += 40 * DAY_MS
    await office.keeper.look(expiring=True)
    assert await office.desk.states(TENANT.id) == {"expired": 2, "settled": 1}
    with pytest.raises(Conflict, match="expired"):
        await office.desk.settle(TENANT, made[1], DENY, "usr_a")


async def test_a_second_person_checks_blind_and_never_their_own(office: Office) -> None:
    (decision,) = await office.open(1)
    await office.desk.settle(TENANT, decision, DENY, "usr_a")
    office.now_ms += UNDO_MS
    await office.keeper.look(expiring=False)
    assert await office.desk.checks(TENANT.id, "usr_a", 10) == []
    assert [one.decision for one in await office.desk.checks(TENANT.id, "usr_b", 10)] == [decision]
    with pytest.raises(Conflict):
        await office.desk.check(TENANT.id, decision, ReviewOutcome.DENY, "usr_a")
    await office.desk.check(TENANT.id, decision, ReviewOutcome.APPROVE, "usr_b")
    counted = await office.desk.agreement(TENANT.id, START_MS, START_MS + DAY_MS)
    assert counted == {("deny", "approve"): 1}


def test_what_a_point_is_worth() -> None:
    assert points_of_amount(100, 50) == 10
    assert points_of_amount(50, 50) == points_of_amount(None, 50) == points_of_amount(10, None) == 0
    assert points_of_amount(1e300, 1e-9) == 30
    day_later = rank_of(60, START_MS + 24 * HOUR_MS)
    assert day_later > rank_of(60, START_MS + 25 * HOUR_MS)
    assert rank_of(61, START_MS + 24 * HOUR_MS) > day_later
