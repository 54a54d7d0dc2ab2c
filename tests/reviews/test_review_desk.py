"""Claims, settlements, undo and checks, on a real store of each kind."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.databases import absence, database
from vettance.clock import DAY_MS, HOUR_MS
from vettance.db.engine import Store
from vettance.deployment.connect import connect_store
from vettance.errors import Conflict, NotFound
from vettance.feedback.label import Label
from vettance.ids import IdSource
from vettance.lists.entry import EntryType, ListBook, ListType
from vettance.lists.entry_bodies import NewEntry
from vettance.reviews import sql
from vettance.reviews.review import (
    CLAIM_MS,
    UNDO_MS,
    Review,
    ReviewOutcome,
    ReviewState,
    Settlement,
    points_of_amount,
    rank_of,
)
from vettance.reviews.review_desk import ReviewDesk, ReviewKeeper
from vettance.settings.settings import Settings
from vettance.tenants import sql as tenants_sql
from vettance.tenants.tenant import Tenant

TENANT = Tenant(id="ten_" + "1" * 32, name="Desk", review_checks=100)
START_MS = 1_790_000_000_000
DENY = Settlement(outcome=ReviewOutcome.DENY, note="No.")


class Office:
    """A desk on a store, with a clock of its own; `took` is the feedback that came of it."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.now_ms = START_MS
        self.took: list[Label] = []
        self.books: dict[str, ListBook] = {}
        self.desk = self.another()
        self.keeper = ReviewKeeper(store, self.desk, lambda _: TENANT, lambda: self.now_ms)

    def another(self) -> ReviewDesk:
        """The desk of another process."""
        return ReviewDesk(self.store, IdSource(), self.take, self.books, lambda: self.now_ms)

    async def take(self, feedback, statements) -> None:  # type: ignore[no-untyped-def]
        await self.store.write(*statements)
        self.took.append(feedback.label)

    async def open(self, count: int, score: int = 60) -> list[str]:
        made = [f"evt_{number + score * 1000:032x}" for number in range(count)]
        for place, decision in enumerate(made):
            due_ms = self.now_ms + place + 24 * HOUR_MS
            await self.store.write(
                sql.insert_review(
                    Review(
                        tenant=TENANT.id,
                        decision=decision,
                        state=ReviewState.OPEN,
                        score=score,
                        amount_points=0,
                        rank=rank_of(score, due_ms),
                        opened_at_ms=self.now_ms,
                        due_at_ms=due_ms,
                        expires_at_ms=due_ms + 30 * DAY_MS,
                    )
                )
            )
        return made


@pytest.fixture(params=["sqlite", "postgres"])
async def office(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Office]:
    if request.param == "postgres" and (reason := absence()):
        pytest.skip(reason)
    if request.param == "sqlite":
        async with opened(tmp_path, None) as store:
            yield Office(store)
        return
    with database() as url:
        async with opened(tmp_path, url) as store:
            yield Office(store)


class opened:  # noqa: N801 - used like a function
    def __init__(self, folder: Path, url: str | None) -> None:
        self.settings = Settings(data=folder, database_url=url, secret=b"s" * 32)

    async def __aenter__(self) -> Store:
        self.store = await connect_store(self.settings, writer="thread")
        await self.store.migrate()
        await self.store.write(tenants_sql.insert_tenant(TENANT, START_MS))
        return self.store

    async def __aexit__(self, *_: object) -> None:
        await self.store.close()


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
    with pytest.raises(Conflict, match="too late"):
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
