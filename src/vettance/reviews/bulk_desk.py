"""Bulk requests: asked for by one person, decided by a second one, and settled piece by piece."""

import asyncio
import contextlib
from collections.abc import Callable, Sequence
from typing import Final

from vettance import clock
from vettance.audit.act import Act, acting
from vettance.db.engine import Lost, Store, StoreDown
from vettance.errors import Conflict, NotFound, Unprocessable
from vettance.fairness.isolation import Isolation
from vettance.ids import IdSource
from vettance.reviews import bulk_sql as sql
from vettance.reviews.bulk_request import (
    BULK_MAX,
    REQUEST_MAX,
    REQUESTS_MAX,
    START_MS,
    BulkRequest,
    BulkState,
    ReviewChoice,
    pieces_of,
)
from vettance.reviews.review import UNDO_MS, Settlement

#: Reviews read at a time while those of a request are gathered.
_READ: Final = 2_000
#: A piece of each tenant in so long: what follows it, a message and a label each, is done in that time.
_LOOK_S: Final = 0.5
#: What the audit log calls the end of a request; its begin is the page by which it was asked for.
DONE: Final = "reviews settled in bulk"


class BulkDesk:
    """Takes bulk requests and decides them, for pages."""

    def __init__(self, store: Store, ids: IdSource, now_ms: Callable[[], int] = clock.now_ms) -> None:
        self._store = store
        self._ids = ids
        self._now_ms = now_ms

    async def gather(self, tenant: str, choice: ReviewChoice, by: str) -> list[str]:
        """Return the decisions of the free reviews of a choice, the most urgent first.

        Up to one more than a request may hold. What others hold is left out; what `by` holds is not.
        """
        found: list[str] = []
        after: tuple[int, str] | None = None
        while len(found) <= REQUEST_MAX:
            rows = await self._store.read(
                sql.select_candidates(tenant, choice, by, self._now_ms(), after, _READ)
            )
            found += [str(decision) for _, decision, codes in rows if choice.is_met_by(codes)]
            if len(rows) < _READ:
                break
            after = rows[-1][0], rows[-1][1]
        return found[: REQUEST_MAX + 1]

    async def ask(
        self, tenant: str, decisions: Sequence[str], chosen: str, said: Settlement, by: str
    ) -> BulkRequest:
        """Keep a request for a second person; `chosen` says in words how its reviews were chosen.

        Raises `Unprocessable` when it is about too few or too many or says no reason, and `Conflict`
        (`too_many_requests`) while too many others wait.
        """
        if not BULK_MAX < len(decisions) <= REQUEST_MAX:
            raise Unprocessable(
                f"A request is about more than {BULK_MAX} and up to {REQUEST_MAX} reviews. Choose fewer."
            )
        if not said.note:
            raise Unprocessable(
                "Say why, for the person who signs second.", {"note": "is needed in a bulk request"}
            )
        current = await self.current(tenant)
        if sum(current.values()) >= REQUESTS_MAX:
            raise Conflict(
                f"{REQUESTS_MAX} bulk requests wait or run already. Have one decided first.",
                "too_many_requests",
            )
        now_ms = self._now_ms()
        request = BulkRequest(
            tenant=tenant,
            id=self._ids.make("blk", now_ms),
            state=BulkState.ASKED,
            outcome=said.outcome,
            label=said.label,
            note=said.note,
            chosen=chosen,
            wanted=len(decisions),
            asked_by=by,
            asked_at_ms=now_ms,
        )
        await self._store.write(*sql.insert_request(request, pieces_of(decisions)))
        return request

    async def waiting(self, tenant: str, decisions: Sequence[str]) -> list[str]:
        """Return those of some decisions whose reviews wait, in their order."""
        if not decisions:
            return []
        rows = await self._store.read(sql.select_waiting(tenant, decisions))
        found = {str(decision) for (decision,) in rows}
        return [one for one in decisions if one in found]

    async def find(self, tenant: str, request_id: str) -> BulkRequest:
        """Return a request. Raises `NotFound`."""
        rows = await self._store.read(sql.select_request(tenant, request_id))
        if not rows:
            raise NotFound
        return sql.request_of(rows[0])

    async def newest(self, tenant: str, limit: int) -> list[BulkRequest]:
        """Return the requests that wait or run, then the newest others."""
        return [sql.request_of(row) for row in await self._store.read(sql.select_newest(tenant, limit))]

    async def current(self, tenant: str) -> dict[str, int]:
        """Count the requests that wait or run, by state."""
        return dict(await self._store.read(sql.count_current(tenant)))

    async def next_piece(self, request: BulkRequest) -> list[str]:
        """Return decisions whose reviews a request settles next, as an example; none when it is over."""
        rows = await self._store.read(sql.select_piece(request.tenant, request.id))
        return str(rows[0][1]).split() if rows else []

    async def approve(self, tenant: str, request_id: str, by: str) -> None:
        """Sign second; the first piece follows ten seconds later. Raises `NotFound` and `Conflict`."""
        now_ms = self._now_ms()
        decided = sql.decide(tenant, request_id, BulkState.RUNNING, by, now_ms, now_ms + START_MS)
        try:
            await self._store.write(decided)
        except Lost:
            raise _refusal(await self.find(tenant, request_id), by) from None

    async def refuse(self, tenant: str, request_id: str, by: str) -> None:
        """Turn a request down. Raises `NotFound` and `Conflict`."""
        decided = sql.decide(tenant, request_id, BulkState.REFUSED, by, self._now_ms(), None)
        try:
            await self._store.write(decided, sql.remove_pieces(tenant, request_id))
        except Lost:
            raise _refusal(await self.find(tenant, request_id), by) from None

    async def stop(self, tenant: str, request_id: str, by: str, *, is_lead: bool) -> None:
        """Withdraw one's own request that waits, or stop one that runs, one's own or, as a lead, any.

        What is settled stays settled. Raises `NotFound` and `Conflict`.
        """
        request = await self.find(tenant, request_id)
        if request.state is BulkState.ASKED and request.asked_by == by:
            after = BulkState.WITHDRAWN
        elif request.state is BulkState.RUNNING and (is_lead or request.asked_by == by):
            after = BulkState.STOPPED
        else:
            raise _refusal(request, by)
        ended = sql.end(tenant, request_id, request.state, after, by, self._now_ms())
        try:
            await self._store.write(ended, sql.remove_pieces(tenant, request_id))
        except Lost:
            raise _refusal(await self.find(tenant, request_id), by) from None


class BulkKeeper:
    """Background work of one process at a time: requests run, and end.

    Another process that does the same settles nothing twice: a piece goes in the commit that settles it.
    """

    def __init__(self, store: Store, now_ms: Callable[[], int] = clock.now_ms) -> None:
        self._store = store
        self._now_ms = now_ms
        self._isolation = Isolation("reviews")

    async def run(self) -> None:
        """Work until cancelled."""
        while True:
            with contextlib.suppress(StoreDown), self._isolation.of("*"):
                await self.look()
            await asyncio.sleep(_LOOK_S)

    async def look(self) -> None:
        """Settle a piece of the oldest request of each tenant, and end what nobody has decided for a week."""
        now_ms = self._now_ms()
        for row in await self._store.read(sql.select_running(now_ms)):
            request = sql.request_of(row)
            key = f"{request.tenant}:{request.id}"
            if self._isolation.is_due(key):
                with self._isolation.of(key), contextlib.suppress(Lost):
                    await self._advance(request, now_ms)
        for row in await self._store.read(sql.select_overdue(now_ms)):
            await self._end(sql.request_of(row), BulkState.EXPIRED, now_ms)

    async def _advance(self, request: BulkRequest, now_ms: int) -> None:
        rows = await self._store.read(sql.select_piece(request.tenant, request.id))
        if not rows:
            await self._end(request, BulkState.DONE, now_ms)
            return
        [(number, decisions)] = rows
        piece = str(decisions).split()
        await self._store.write(*sql.settle_piece(request, number, piece, now_ms, now_ms + UNDO_MS))

    async def _end(self, request: BulkRequest, state: BulkState, now_ms: int) -> None:
        """End a request, and have the audit log say what became of it."""
        told = {"state": state.value, "settled": request.settled, "leftOut": request.left_out}
        act = Act(request.asked_by, DONE, tenant=request.tenant, subject=request.id, after=told)
        ended = sql.end(request.tenant, request.id, request.state, state, None, now_ms)
        with acting(act), contextlib.suppress(Lost):  # Another process, or a person, was faster.
            await self._store.write(ended, sql.remove_pieces(request.tenant, request.id))


def _refusal(request: BulkRequest, by: str) -> Conflict:
    if request.state is BulkState.ASKED and request.asked_by == by:
        return Conflict("The second signature is another person's.", "own_request")
    if request.state is BulkState.ASKED:
        return Conflict("Only who asked withdraws a request; a lead refuses it.", "not_yours")
    if request.state is BulkState.RUNNING:
        return Conflict("This request was approved already.", "already_decided")
    return Conflict("This request has ended.", "already_decided")
