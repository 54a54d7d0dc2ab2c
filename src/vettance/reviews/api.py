"""The doors of reviews, for those who have a back office of their own."""

from collections.abc import Callable
from typing import Final

from vettance import clock
from vettance.db.engine import Store, bounded_key
from vettance.decisions.searchable_fields import normalized_email
from vettance.errors import NotFound
from vettance.ids import is_id
from vettance.reviews import sql
from vettance.reviews.answers import ReviewAnswer, ReviewPage, ReviewQuery, ReviewSort, review_answer
from vettance.reviews.review import Review, Settlement, read_settlement
from vettance.reviews.review_desk import ReviewDesk
from vettance.web.paging import bad_cursor
from vettance.web.query import read_query
from vettance.web.routing import Call, Route, RouteReply

_TAG: Final = "Reviews"
_ROOT: Final = "/api/v1/reviews"


class ReviewDoors:
    """Lists, shows and settles reviews."""

    def __init__(self, store: Store, desk: ReviewDesk, now_ms: Callable[[], int] = clock.now_ms) -> None:
        self._store = store
        self._desk = desk
        self._now_ms = now_ms

    def routes(self) -> tuple[Route, ...]:
        """The rows of the route table."""
        return (
            Route(
                "GET",
                _ROOT,
                self.page,
                "Reviews, the most urgent first",
                _TAG,
                query=ReviewQuery,
                answers=ReviewPage,
            ),
            Route(
                "GET",
                f"{_ROOT}/{{decisionId}}",
                self.one,
                "The review of a decision",
                _TAG,
                answers=ReviewAnswer,
                refusals=(404,),
            ),
            Route(
                "POST",
                f"{_ROOT}/{{decisionId}}/settle",
                self.settle,
                "Settle a review",
                _TAG,
                takes=Settlement,
                answers=ReviewAnswer,
                refusals=(404, 409, 422),
            ),
        )

    async def page(self, call: Call) -> RouteReply:
        """GET /reviews."""
        query = read_query(call.query_string, ReviewQuery)
        customer = email = None
        if query.customer is not None:
            customer, email = bounded_key(query.customer), bounded_key(normalized_email(query.customer))
        chosen = sql.ReviewFilter(
            call.tenant.id, query.state, customer, email, query.opened_from, query.opened_to
        )
        total = (await self._store.read(chosen.count()))[0][0]
        # The oldest are the most urgent by age: `desc` shows the largest first, of ages too.
        by_age = query.sort_by is ReviewSort.AGE
        rows = await self._store.read(
            chosen.page(
                query.limit + 1,
                query.offset,
                _read_cursor(query.cursor),
                by_age=by_age,
                descending=query.descending is not by_age,
            )
        )
        reviews = [sql.review_of(row) for row in rows[: query.limit]]
        now_ms = self._now_ms()
        following = _cursor(reviews[-1], query.sort_by) if len(rows) > query.limit else None
        return RouteReply(
            ReviewPage.of(query, [review_answer(one, now_ms) for one in reviews], total, following)
        )

    async def one(self, call: Call) -> RouteReply:
        """GET /reviews/{decisionId}."""
        review = await self._desk.find(call.tenant.id, _decision_of(call))
        return RouteReply(review_answer(review, self._now_ms()))

    async def settle(self, call: Call) -> RouteReply:
        """POST /reviews/{decisionId}/settle."""
        said, decision = read_settlement(call.json()), _decision_of(call)
        review = await self._desk.settle(call.tenant, decision, said, call.actor or call.key.id)
        return RouteReply(review_answer(review, self._now_ms()))


def _decision_of(call: Call) -> str:
    decision = call.path["decisionId"]
    if not is_id(decision, "evt"):
        raise NotFound
    return decision


def _cursor(review: Review, sort_by: ReviewSort) -> str:
    place = review.rank if sort_by is ReviewSort.PRIORITY else review.opened_at_ms
    return f"{place}.{review.decision}"


def _read_cursor(cursor: str | None) -> tuple[int, str] | None:
    """Return the place that a page begins beyond. Raises `Invalid` (400)."""
    if cursor is None:
        return None
    place, _, decision = cursor.partition(".")
    digits = place.removeprefix("-")
    if not (digits.isascii() and digits.isdigit() and len(digits) < 18 and is_id(decision, "evt")):
        raise bad_cursor()
    return int(place), decision
