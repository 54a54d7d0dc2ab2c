"""Bulk requests on a real store of each kind: a second person signs, and no piece is settled twice."""

import asyncio

import pytest

from tests.reviews.office import START_MS, TENANT, Office
from vettance.errors import Conflict, Unprocessable
from vettance.feedback.label import Label
from vettance.ids import IdSource
from vettance.reviews import sql as review_sql
from vettance.reviews.bulk_desk import BulkDesk, BulkKeeper
from vettance.reviews.bulk_request import (
    ASKED_MS_MAX,
    PIECE,
    REQUESTS_MAX,
    BulkRequest,
    BulkState,
    ReviewChoice,
)
from vettance.reviews.bulk_request import (
    START_MS as START_DELAY_MS,
)
from vettance.reviews.review import UNDO_MS, ReviewOutcome, ReviewState, Settlement

WRONG = Settlement(outcome=ReviewOutcome.APPROVE, label=Label.LEGIT, note="The rule was wrong.")


def desk_of(office: Office) -> BulkDesk:
    return BulkDesk(office.store, IdSource(), lambda: office.now_ms)


def keeper_of(office: Office) -> BulkKeeper:
    return BulkKeeper(office.store, lambda: office.now_ms)


async def asked(office: Office, count: int) -> tuple[list[str], BulkRequest]:
    made = await office.open(count)
    desk = desk_of(office)
    found = await desk.gather(TENANT.id, ReviewChoice(), "usr_ann")
    assert found == made
    return made, await desk.ask(TENANT.id, found, "all open reviews", WRONG, "usr_ann")


async def settled(office: Office) -> int:
    return (await office.desk.states(TENANT.id)).get("settled", 0)


async def test_a_second_person_signs_and_all_are_settled(office: Office) -> None:
    made, request = await asked(office, PIECE + 20)
    desk, keeper = desk_of(office), keeper_of(office)
    await keeper.look()
    assert await settled(office) == 0
    with pytest.raises(Conflict) as refused:
        await desk.approve(TENANT.id, request.id, "usr_ann")
    assert refused.value.details == {"reason": "own_request"}
    await desk.approve(TENANT.id, request.id, "usr_lea")
    with pytest.raises(Conflict):
        await desk.approve(TENANT.id, request.id, "usr_bo")
    await keeper.look()
    assert await settled(office) == 0, "it can be stopped for ten seconds"
    office.now_ms += START_DELAY_MS
    await keeper.look()
    assert (await desk.find(TENANT.id, request.id)).settled == PIECE
    await keeper.look()
    await keeper.look()
    done = await desk.find(TENANT.id, request.id)
    assert (done.state, done.settled, done.left_out) == (BulkState.DONE, PIECE + 20, 0)
    review = await office.desk.find(TENANT.id, made[0])
    assert (review.settled_by, review.label, review.bulk) == ("usr_ann", Label.LEGIT, request.id)
    office.now_ms += UNDO_MS
    await office.keeper.look(expiring=False)
    assert office.took == [Label.LEGIT] * (PIECE + 20)


async def test_what_others_hold_or_settled_is_left_to_them(office: Office) -> None:
    made, request = await asked(office, 60)
    await office.desk.claim(TENANT.id, made[0], "usr_bo")
    await office.desk.settle(TENANT, made[1], Settlement(outcome=ReviewOutcome.DENY), "usr_bo")
    await desk_of(office).approve(TENANT.id, request.id, "usr_lea")
    office.now_ms += START_DELAY_MS
    keeper = keeper_of(office)
    await keeper.look()
    await keeper.look()
    done = await desk_of(office).find(TENANT.id, request.id)
    assert (done.state, done.settled, done.left_out) == (BulkState.DONE, 58, 2)
    assert (await office.desk.find(TENANT.id, made[0])).state is ReviewState.CLAIMED
    assert (await office.desk.find(TENANT.id, made[1])).outcome is ReviewOutcome.DENY


async def test_two_processes_at_once_settle_no_piece_twice(office: Office) -> None:
    _, request = await asked(office, 3 * PIECE)
    await desk_of(office).approve(TENANT.id, request.id, "usr_lea")
    office.now_ms += START_DELAY_MS
    keepers = [keeper_of(office) for _ in range(4)]
    for _ in range(6):
        await asyncio.gather(*(keeper.look() for keeper in keepers))
    done = await desk_of(office).find(TENANT.id, request.id)
    assert (done.state, done.looked, done.settled) == (BulkState.DONE, 3 * PIECE, 3 * PIECE)
    assert await settled(office) == 3 * PIECE


async def test_a_request_is_stopped_between_two_pieces(office: Office) -> None:
    _, request = await asked(office, 2 * PIECE)
    desk, keeper = desk_of(office), keeper_of(office)
    await desk.approve(TENANT.id, request.id, "usr_lea")
    office.now_ms += START_DELAY_MS
    await keeper.look()
    with pytest.raises(Conflict):
        await desk.stop(TENANT.id, request.id, "usr_bo", is_lead=False)
    await desk.stop(TENANT.id, request.id, "usr_lea", is_lead=True)
    await keeper.look()
    assert await settled(office) == PIECE
    assert (await desk.find(TENANT.id, request.id)).state is BulkState.STOPPED


async def test_a_request_is_refused_withdrawn_or_expires(office: Office) -> None:
    _, first = await asked(office, 60)
    desk, keeper = desk_of(office), keeper_of(office)
    found = await desk.gather(TENANT.id, ReviewChoice(), "usr_ann")
    second, third = [await desk.ask(TENANT.id, found, "all", WRONG, "usr_ann") for _ in range(2)]
    await desk.refuse(TENANT.id, first.id, "usr_lea")
    await desk.stop(TENANT.id, second.id, "usr_ann", is_lead=False)
    office.now_ms += ASKED_MS_MAX
    await keeper.look()
    states = [(await desk.find(TENANT.id, one.id)).state for one in (first, second, third)]
    assert states == [BulkState.REFUSED, BulkState.WITHDRAWN, BulkState.EXPIRED]
    for one in (first, second, third):
        with pytest.raises(Conflict):
            await desk.approve(TENANT.id, one.id, "usr_lea")
        assert await desk.next_piece(one) == []
    assert await settled(office) == 0


async def test_one_of_many_is_taken_back_alone(office: Office) -> None:
    made, request = await asked(office, 60)
    await desk_of(office).approve(TENANT.id, request.id, "usr_lea")
    office.now_ms += START_DELAY_MS
    await keeper_of(office).look()
    await office.desk.undo(TENANT.id, made[3], "usr_ann")
    review = await office.desk.find(TENANT.id, made[3])
    assert (review.state, review.bulk) == (ReviewState.CLAIMED, None)


async def test_a_request_is_bounded_and_says_why(office: Office) -> None:
    made = await office.open(60)
    desk = desk_of(office)
    with pytest.raises(Unprocessable):
        await desk.ask(TENANT.id, made[:50], "fifty", WRONG, "usr_ann")
    with pytest.raises(Unprocessable):
        await desk.ask(TENANT.id, made, "all", Settlement(outcome=ReviewOutcome.DENY), "usr_ann")
    for _ in range(REQUESTS_MAX):
        await desk.ask(TENANT.id, made, "all", WRONG, "usr_ann")
    with pytest.raises(Conflict):
        await desk.ask(TENANT.id, made, "all", WRONG, "usr_ann")


async def test_a_choice_looks_at_score_and_holder(office: Office) -> None:
    low, high = await office.open(2, score=40), await office.open(2, score=80)
    desk = desk_of(office)
    assert await desk.gather(TENANT.id, ReviewChoice(score_from=50), "usr_ann") == high
    assert await desk.gather(TENANT.id, ReviewChoice(score_to=50), "usr_ann") == low
    await office.desk.claim(TENANT.id, high[0], "usr_bo")
    assert await desk.gather(TENANT.id, ReviewChoice(score_from=50), "usr_ann") == high[1:]
    assert await desk.gather(TENANT.id, ReviewChoice(score_from=50), "usr_bo") == high
    assert await desk.gather("ten_" + "2" * 32, ReviewChoice(), "usr_ann") == []
    assert (await office.store.read(review_sql.count_states(TENANT.id)))[0][1] > 0
    assert office.now_ms == START_MS
