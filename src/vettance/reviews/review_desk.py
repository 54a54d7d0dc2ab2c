"""The desk: who takes which review, how it is settled, taken back, made final and checked."""

import asyncio
import contextlib
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Final

from vettance import clock
from vettance.clock import DAY_MS, HOUR_MS
from vettance.db.engine import Clash, Lost, Statement, Store, StoreDown
from vettance.errors import Conflict, NotFound
from vettance.fairness.isolation import Isolation
from vettance.feedback.answers import feedback_payload
from vettance.feedback.feedback_port import FeedbackFull, TakeFeedback
from vettance.feedback.label import Feedback, FeedbackTarget, Label
from vettance.ids import IdSource
from vettance.lists import sql as lists_sql
from vettance.lists.answers import added_payload
from vettance.lists.entry import ListBook, ListEntry, ListType
from vettance.lists.entry_bodies import NewEntry
from vettance.outbox import MessageType, enqueue
from vettance.reviews import check_sql, sql
from vettance.reviews.answers import settled_payload
from vettance.reviews.queue_looks import FREE_READ, QueueLooks
from vettance.reviews.review import (
    CLAIM_MS,
    UNDO_MS,
    Review,
    ReviewOutcome,
    ReviewState,
    Settlement,
    is_drawn_for_check,
)
from vettance.tenants.sql import note_change
from vettance.tenants.tenant import Tenant
from vettance.wire.payload import encode

#: How often the queue is read anew when others were faster each time.
_READ_AGAIN_MAX: Final = 16
_LOOK_S: Final = 0.5
_EXPIRY_S: Final = 30.0


class ReviewDesk:
    """Changes reviews, for pages and endpoints. `books` are the lists that evaluations look into."""

    def __init__(
        self,
        store: Store,
        ids: IdSource,
        take_feedback: TakeFeedback,
        books: dict[str, ListBook],
        now_ms: Callable[[], int] = clock.now_ms,
    ) -> None:
        self._store = store
        self._ids = ids
        self._take_feedback = take_feedback
        self._books = books
        self._now_ms = now_ms
        #: By tenant, the decisions whose reviews are being claimed at this moment.
        self._giving: dict[str, set[str]] = {}
        self._looks = QueueLooks(store, now_ms)

    async def find(self, tenant: str, decision: str) -> Review:
        """Return the review of a decision. Raises `NotFound`."""
        rows = await self._store.read(sql.select_review(tenant, decision))
        if not rows:
            raise NotFound
        return sql.review_of(rows[0])

    async def find_several(self, tenant: str, decisions: Sequence[str]) -> list[Review]:
        """Return the reviews of some decisions, in their order; those that are gone are left out."""
        if not decisions:
            return []
        rows = await self._store.read(sql.select_reviews(tenant, decisions))
        found = {one.decision: one for one in map(sql.review_of, rows)}
        return [found[one] for one in decisions if one in found]

    async def take_next(self, tenant: str, by: str) -> str | None:
        """Claim the first free review of the queue and return its decision; None when there is none.

        What a lead has assigned to somebody comes first. Of any number of people who ask at once no two get
        the same. What they held goes back in the same commit; when nothing else is free, they keep it.
        """
        brief_ms = self._now_ms() + CLAIM_MS
        if (assigned := await self._looks.first_assigned(tenant, by, brief_ms)) is not None:
            return assigned
        giving = self._giving.setdefault(tenant, set())
        for _ in range(_READ_AGAIN_MAX):
            free = await self._looks.first_free(tenant)
            for decision in free:
                if decision in giving:
                    continue
                giving.add(decision)
                now_ms = self._now_ms()
                try:
                    until_ms = now_ms + CLAIM_MS
                    await self._store.write(*sql.take(tenant, decision, by, brief_ms, now_ms, until_ms))
                except Lost:
                    continue  # Another process was faster.
                finally:
                    giving.discard(decision)
                return decision
            if len(free) < FREE_READ:
                break
        return await self._take_own(tenant, by)

    async def _take_own(self, tenant: str, by: str) -> str | None:
        """Renew the claim of somebody for whom nothing else is free."""
        for (decision,) in await self._store.read(sql.select_held(tenant, by)):
            with contextlib.suppress(Conflict, NotFound):  # It was settled or taken a moment ago.
                await self.claim(tenant, decision, by)
                return str(decision)
        return None

    async def claim(self, tenant: str, decision: str, by: str, *, taking: bool = False) -> None:
        """Claim a review, or renew the claim; with `taking`, although somebody else holds it.

        Raises `NotFound`, and `Conflict` while another person holds it or when it is settled.
        """
        now_ms = self._now_ms()
        try:
            await self._store.write(sql.claim(tenant, decision, by, now_ms, now_ms + CLAIM_MS, taking=taking))
        except Lost:
            raise _refusal(await self.find(tenant, decision)) from None

    async def assign(self, tenant: str, decision: str, to: str) -> None:
        """Give a review to somebody until it is due, for an hour at least, even if another person holds it.

        Raises `NotFound`, and `Conflict` when it does not wait.
        """
        review = await self.find(tenant, decision)
        until_ms = max(review.due_at_ms, self._now_ms() + HOUR_MS)
        try:
            await self._store.write(sql.assign(tenant, decision, to, until_ms))
        except Lost:
            raise _refusal(await self.find(tenant, decision)) from None

    async def held(self, tenant: str, by: str) -> list[Review]:
        """Return what somebody holds, the most urgent first."""
        rows = await self._store.read(sql.select_assigned(tenant, [by], self._now_ms()))
        return await self.find_several(tenant, [str(decision) for decision, _ in rows])

    async def release(self, tenant: str, by: str) -> None:
        """Give back everything that somebody holds."""
        await self._store.write(sql.release_claims(tenant, by))

    async def settle(
        self,
        tenant: Tenant,
        decision: str,
        said: Settlement,
        by: str,
        entries: Sequence[NewEntry] = (),
        *,
        held: bool = False,
    ) -> Review:
        """Settle a review, with list entries in the same commit; subscribers hear of it ten seconds later.

        Settling again in the same way changes nothing. With `held`, nobody else may hold it. Raises
        `NotFound`, and `Conflict` when it is settled otherwise, held by another, or has expired.
        """
        review = await self.find(tenant.id, decision)
        if review.is_settled_as(said):
            return review
        if not review.is_waiting():
            raise _refusal(review)
        now_ms = self._now_ms()
        made = await self._new_entries(tenant, entries, now_ms)
        ids = [one.id for one in made]
        statements = [sql.settle(review, said, ids, by, now_ms, now_ms + UNDO_MS, held=held)]
        for one in made:
            statements += [*lists_sql.insert_entry(one, tenant.list_entries), self._change(one, now_ms)]
        try:
            await self._store.write(*statements)
        except Clash:
            raise Conflict(
                "Somebody has just put that value on the list. Try again.", "duplicate_entry"
            ) from None
        except Lost:
            review = await self.find(tenant.id, decision)
            if review.is_settled_as(said):
                return review
            if made and review.is_waiting() and not await self._have_room(tenant, len(made), now_ms):
                raise Conflict("The lists are full. Remove some entries first.", "too_many_entries") from None
            raise _refusal(review) from None
        for one in made:
            self._books.setdefault(tenant.id, ListBook()).put(one)
        return await self.find(tenant.id, decision)

    async def undo(self, tenant: str, decision: str, by: str) -> None:
        """Take one's settlement back within ten seconds, with its list entries.

        Raises `NotFound`, and `Conflict`: `not_yours` when others settled, `too_late` when it is final.
        """
        review, now_ms = await self.find(tenant, decision), self._now_ms()
        statements: list[Statement] = [sql.undo(tenant, decision, by, now_ms, now_ms + CLAIM_MS)]
        removed = await self._entries(tenant, review.entries)
        for one in removed:
            statements += [lists_sql.delete_entry(tenant, one.id), self._change(one, now_ms)]
        try:
            await self._store.write(*statements)
        except Lost:
            if review.settled_by not in (None, by):
                raise Conflict("Only the person who settled a review takes it back.", "not_yours") from None
            raise Conflict("It is too late to take this back.", "too_late") from None
        book = self._books.get(tenant)
        for one in removed:
            if book is not None:
                book.drop(one.id)

    async def checks(self, tenant: str, by: str, limit: int) -> list[Review]:
        """Return settled reviews that a second person is to look at blind; none of their own."""
        return [
            sql.review_of(row) for row in await self._store.read(check_sql.select_checks(tenant, by, limit))
        ]

    async def check(self, tenant: str, decision: str, outcome: ReviewOutcome, by: str) -> None:
        """Keep what a second person decides of a settled review. Raises `NotFound` and `Conflict`."""
        review = await self.find(tenant, decision)
        try:
            await self._store.write(sql.check(tenant, decision, outcome, by))
        except Lost:
            if review.check_state is None:
                raise NotFound from None
            if review.settled_by == by:
                raise Conflict(
                    "The second look is another person's than the one who settled.", "second_person_needed"
                ) from None
            raise Conflict("This review needs no second look of yours.", "not_asked") from None

    async def agreement(self, tenant: str, from_ms: int, to_ms: int) -> dict[tuple[str, str], int]:
        """Count what was settled in a span and checked, by both outcomes."""
        rows = await self._store.read(check_sql.count_checked(tenant, from_ms, to_ms))
        return {(first, second): count for first, second, count in rows}

    async def states(self, tenant: str) -> dict[str, int]:
        """Count the reviews of a tenant by state."""
        return dict(await self._store.read(sql.count_states(tenant)))

    async def ages(self, tenant: str) -> list[int]:
        """Count the open reviews of the last hour, of the day before that, and older ones.

        Each up to `sql.AGES_COUNTED`.
        """
        now_ms = self._now_ms()
        moments = (now_ms + HOUR_MS, now_ms - HOUR_MS, now_ms - DAY_MS, 0)
        counted = [
            self._store.read(sql.count_open(tenant, from_ms, to_ms)) for to_ms, from_ms in pairwise(moments)
        ]
        return [int(rows[0][0]) for rows in await asyncio.gather(*counted)]

    async def finish(self, review: Review, check_share: int) -> None:
        """Make a settlement final: it becomes feedback where it has a label, and subscribers hear of it."""
        tenant, now_ms = review.tenant, self._now_ms()
        is_checked = is_drawn_for_check(review.decision, check_share)
        statements: list[Statement] = [sql.finish(review, "asked" if is_checked else None)]
        statements += self._message(
            MessageType.REVIEW_SETTLED, review.decision, tenant, settled_payload(review)
        )
        for one in await self._entries(tenant, review.entries):
            if one.list_type is ListType.BLOCK:
                payload = encode(added_payload(one))
                statements += self._message(MessageType.BLOCKLIST_ENTRY_ADDED, one.id, tenant, payload)
        try:
            if review.label is not None:
                with contextlib.suppress(FeedbackFull):
                    await self._label(review, review.label, statements, now_ms)
                    return
            await self._store.write(*statements)
        except Lost:
            return  # Another process has, or its author took it back.

    async def _label(self, review: Review, label: Label, statements: list[Statement], now_ms: int) -> None:
        feedback = Feedback(
            id=self._ids.make("fbk", now_ms),
            tenant=review.tenant,
            target=review.decision,
            type=FeedbackTarget.DECISION,
            label=label,
            notes=review.note,
            external_case_id=None,
            created_at_ms=now_ms,
            updated_at_ms=now_ms,
        )
        told = enqueue(
            review.tenant,
            MessageType.EVENT_FEEDBACK_SUBMITTED,
            feedback.id,
            feedback.id,
            now_ms,
            feedback_payload(feedback),
        )
        await self._take_feedback(feedback, [*statements, *told])

    async def _new_entries(self, tenant: Tenant, wanted: Sequence[NewEntry], now_ms: int) -> list[ListEntry]:
        """Make entries of those values that are not on their list yet."""
        made = []
        for one in wanted:
            rows = await self._store.read(lists_sql.select_by_value(tenant.id, one.type, one.value, now_ms))
            if any(row[4] == one.list_type.value for row in rows):
                continue
            made.append(
                ListEntry(
                    id=self._ids.make("lst", now_ms),
                    tenant=tenant.id,
                    created_at_ms=now_ms,
                    updated_at_ms=now_ms,
                    **one._asdict(),
                )
            )
        return made

    async def _have_room(self, tenant: Tenant, entries: int, now_ms: int) -> bool:
        """Tell whether the lists of a tenant can have so many further entries."""
        rows = await self._store.read(lists_sql.count_live(tenant.id, now_ms))
        return not rows or bool(rows[0][0] + entries <= tenant.list_entries)

    async def _entries(self, tenant: str, ids: Sequence[str]) -> list[ListEntry]:
        found = []
        for entry_id in ids:
            rows = await self._store.read(lists_sql.select_entry(tenant, entry_id))
            found += [lists_sql.entry_of(row) for row in rows]
        return found

    def _change(self, entry: ListEntry, now_ms: int) -> Statement:
        return note_change(lists_sql.AREA, entry.tenant, entry.id, now_ms)

    def _message(self, kind: MessageType, subject: str, tenant: str, payload: bytes) -> tuple[Statement, ...]:
        now_ms = self._now_ms()
        return enqueue(tenant, kind, self._ids.make("msg", now_ms), subject, now_ms, payload)


class ReviewKeeper:
    """Background work of one process at a time: claims end, settlements become final, old reviews expire."""

    def __init__(
        self,
        store: Store,
        desk: ReviewDesk,
        tenant_of: Callable[[str], Tenant | None],
        now_ms: Callable[[], int] = clock.now_ms,
    ) -> None:
        self._store = store
        self._desk = desk
        self._tenant_of = tenant_of
        self._now_ms = now_ms
        self._isolation = Isolation("reviews")

    async def run(self) -> None:
        """Work until cancelled."""
        since_expiry = _EXPIRY_S
        while True:
            more = False
            # What is down concerns everybody, who hear of it from the store itself.
            with contextlib.suppress(StoreDown), self._isolation.of("*"):
                more = await self.look(expiring=since_expiry >= _EXPIRY_S)
                since_expiry = 0.0 if since_expiry >= _EXPIRY_S else since_expiry + _LOOK_S
            if more:
                continue
            await asyncio.sleep(_LOOK_S)

    async def look(self, *, expiring: bool) -> bool:
        """Do what is due once; tells whether there may be more."""
        now_ms = self._now_ms()
        freed = await self._store.write(sql.free_claims(now_ms))
        expired = await self._store.write(sql.expire(now_ms)) if expiring else [0]
        untold = [sql.review_of(row) for row in await self._store.read(sql.select_untold(now_ms))]
        finished = 0
        for review in untold:
            key = f"{review.tenant}:{review.decision}"
            if self._isolation.is_due(key):
                with self._isolation.of(key):
                    tenant = self._tenant_of(review.tenant)
                    await self._desk.finish(review, tenant.review_checks if tenant is not None else 0)
                    finished += 1
        return freed[0] >= sql.STEP or expired[0] >= sql.STEP or (finished > 0 and len(untold) >= sql.STEP)


def _refusal(review: Review) -> Conflict:
    if review.state is ReviewState.SETTLED:
        return Conflict("This review was settled otherwise.", "already_settled")
    if review.state is ReviewState.EXPIRED:
        return Conflict("This review has expired.", "expired")
    return Conflict("Somebody else holds this review.", "claimed")
