"""What the store remembers of reviews."""

from collections.abc import Sequence
from typing import Any, Final

import msgspec

from vettance.db.engine import COUNTED, NOTHING, Row, Statement, everyone, in_list, in_pieces, insert, scoped
from vettance.db.tables import REVIEW, REVIEW_COUNT, Insert
from vettance.feedback.label import Label
from vettance.reviews.review import Review, ReviewOutcome, ReviewState, Settlement

_OPENED: Final = (
    "tenant, decision, state, score, amount_points, rank, opened_at_ms, due_at_ms, expires_at_ms, customer, "
    "email"
)
#: What `review_of` makes a review of.
COLUMNS: Final = (
    f"{_OPENED}, claimed_by, free_at_ms, outcome, label, note, settled_by, settled_at_ms, entries, "
    "tell_at_ms, check_state, check_outcome, checked_by, bulk"
)
_INSERT: Final = Insert(REVIEW, _OPENED)
#: In the words of the indexes, so that both stores use them.
_WAITING: Final = "state IN ('open', 'claimed')"
STEP: Final = 200
#: A queue by age counts so far and no further: what it costs must not grow with the queue.
AGES_COUNTED: Final = 100
#: Found by the indexes of both names.
_NAMED: Final = (
    "decision IN (SELECT decision FROM review WHERE tenant = ? AND customer IN (?, ?) "
    "UNION ALL SELECT decision FROM review WHERE tenant = ? AND email = ?)"
)
#: Later than any moment.
_FAR_MS: Final = 2**62


def insert_review(review: Review) -> Statement:
    """Store a new review; belongs into the commit of its decision."""
    values = msgspec.structs.asdict(review) | {"state": review.state.value}
    return insert(_INSERT, review.tenant, [values[name] for name in _OPENED.split(", ")[1:]])


def review_of(row: Row) -> Review:
    """Make a review of a row."""
    values: dict[str, Any] = dict(zip(COLUMNS.split(", "), row, strict=True))
    values["state"] = ReviewState(values["state"])
    for name, kind in (("outcome", ReviewOutcome), ("label", Label), ("check_outcome", ReviewOutcome)):
        values[name] = kind(values[name]) if values[name] else None
    values["entries"] = tuple(values["entries"].split()) if values["entries"] else ()
    return Review(**values)


def select_review(tenant: str, decision: str) -> Statement:
    """The review of a decision."""
    return scoped(
        REVIEW, tenant, f"SELECT {COLUMNS} FROM review WHERE tenant = ? AND decision = ?", (decision,)
    )


def select_reviews(tenant: str, decisions: Sequence[str]) -> Statement:
    """The reviews of some decisions."""
    places, args = in_list(decisions)
    return in_pieces(
        scoped(
            REVIEW,
            tenant,
            f"SELECT {COLUMNS} FROM review WHERE tenant = ? AND decision IN ({places})",
            args,
        )
    )


def select_next(tenant: str, now_ms: int, limit: int) -> Statement:
    """(decision,) of the first reviews of the queue that nobody holds."""
    return scoped(
        REVIEW,
        tenant,
        f"SELECT decision FROM review WHERE tenant = ? AND {_WAITING} AND free_at_ms <= ? "
        "ORDER BY rank DESC, decision LIMIT ?",
        (now_ms, limit),
    )


def select_held(tenant: str, by: str) -> Statement:
    """(decision,) of what somebody holds; one at a time, but for what leads took for them."""
    return scoped(
        REVIEW,
        tenant,
        "SELECT decision FROM review WHERE tenant || '' = ? AND claimed_by = ? AND state = 'claimed'",
        (by,),
    )


def claim(
    tenant: str, decision: str, by: str, now_ms: int, until_ms: int, *, taking: bool = False
) -> Statement:
    """Claim a waiting review, or renew the claim; `Lost` while somebody else holds it, unless it is taken."""
    free = "" if taking else " AND (free_at_ms <= ? OR claimed_by = ?)"
    args = () if taking else (now_ms, by)
    return _update(
        tenant,
        decision,
        # What a lead has assigned for longer is not shortened by its page being open.
        "state = 'claimed', "
        "free_at_ms = CASE WHEN claimed_by = ? AND free_at_ms > ? THEN free_at_ms ELSE ? END, "
        f"claimed_by = ? WHERE tenant = ? AND decision = ? AND {_WAITING}{free}",
        (by, until_ms, until_ms, by),
        args,
    )


def assign(tenant: str, decision: str, to: str, until_ms: int) -> Statement:
    """Give a waiting review to somebody, even if another holds it; `Lost` when it does not wait."""
    return _update(
        tenant,
        decision,
        f"state = 'claimed', claimed_by = ?, free_at_ms = ? WHERE tenant = ? AND decision = ? AND {_WAITING}",
        (to, until_ms),
    )


def select_assigned(tenant: str, people: Sequence[str], until_ms: int) -> Statement:
    """(decision, by whom) of what some people hold beyond a moment, which a lead has assigned; best first."""
    places, args = in_list(people)
    return scoped(
        REVIEW,
        tenant,
        f"SELECT decision, claimed_by FROM review WHERE tenant || '' = ? AND claimed_by IN ({places}) "
        "AND state = 'claimed' AND free_at_ms > ? ORDER BY rank DESC, decision",
        (*args, until_ms),
    )


def release_claims(tenant: str, by: str, until_ms: int = _FAR_MS) -> Statement:
    """Give back what somebody holds up to a moment; without one, everything."""
    return Statement(
        "UPDATE review SET state = 'open', claimed_by = NULL, free_at_ms = 0 "
        "WHERE tenant || '' = ? AND claimed_by = ? AND state = 'claimed' AND free_at_ms <= ?",
        (tenant, by, until_ms),
        tenant=tenant,
        tables=REVIEW,
    )


def take(
    tenant: str, decision: str, by: str, brief_ms: int, now_ms: int, until_ms: int
) -> tuple[Statement, Statement]:
    """Give back what somebody holds up to `brief_ms`, and claim another one for them; see `claim`."""
    released, claimed = release_claims(tenant, by, brief_ms), claim(tenant, decision, by, now_ms, until_ms)
    # Those who ask at once take one round trip together, which two statements in turn would not (ADR 159).
    at_once = Statement(
        f"WITH released AS ({released.sql} AND decision <> ?), "
        f"changed AS ({claimed.sql} RETURNING 1) {COUNTED}",
        (*released.args, decision, *claimed.args),
        rows=1,
        tenant=tenant,
        tables=REVIEW,
    )
    return released._replace(postgres=NOTHING), claimed._replace(postgres=at_once)


def settle(
    review: Review,
    said: Settlement,
    entries: Sequence[str],
    by: str,
    now_ms: int,
    tell_at_ms: int,
    *,
    held: bool,
) -> Statement:
    """Settle a waiting review; `Lost` when somebody was faster, or, with `held`, when another holds it."""
    free = " AND (free_at_ms <= ? OR claimed_by = ?)" if held else ""
    return _update(
        review.tenant,
        review.decision,
        "state = 'settled', outcome = ?, label = ?, note = ?, settled_by = ?, settled_at_ms = ?, "
        f"entries = ?, tell_at_ms = ?, free_at_ms = 0 WHERE tenant = ? AND decision = ? AND {_WAITING}{free}",
        (
            said.outcome.value,
            said.label.value if said.label is not None else None,
            said.note,
            by,
            now_ms,
            " ".join(entries) or None,
            tell_at_ms,
        ),
        (now_ms, by) if held else (),
    )


def undo(tenant: str, decision: str, by: str, now_ms: int, until_ms: int) -> Statement:
    """Take a settlement back; its author holds the review again. `Lost` when it is too late."""
    return _update(
        tenant,
        decision,
        "state = 'claimed', claimed_by = settled_by, free_at_ms = ?, outcome = NULL, label = NULL, "
        "note = NULL, settled_by = NULL, settled_at_ms = NULL, entries = NULL, tell_at_ms = NULL, "
        "bulk = NULL "
        "WHERE tenant = ? AND decision = ? AND state = 'settled' AND settled_by = ? AND tell_at_ms > ?",
        (until_ms,),
        (by, now_ms),
    )


def select_untold(now_ms: int) -> Statement:
    """Settlements that can be taken back no more, and that nobody has heard of; the oldest first."""
    return in_pieces(
        everyone(
            REVIEW,
            f"SELECT {COLUMNS} FROM review WHERE tell_at_ms IS NOT NULL AND tell_at_ms <= ? "
            f"ORDER BY tell_at_ms LIMIT {STEP}",
            (now_ms,),
        )
    )


def finish(review: Review, check_state: str | None) -> Statement:
    """Make a settlement final, in the commit of what tells of it. `Lost` when another process has."""
    return _update(
        review.tenant,
        review.decision,
        "tell_at_ms = NULL, check_state = ? WHERE tenant = ? AND decision = ? AND tell_at_ms = ?",
        (check_state,),
        (review.tell_at_ms,),
    )


def free_claims(now_ms: int) -> Statement:
    """Give back what was claimed too long ago."""
    return everyone(
        REVIEW,
        "UPDATE review SET state = 'open', claimed_by = NULL, free_at_ms = 0 WHERE (tenant, decision) IN "
        f"(SELECT tenant, decision FROM review WHERE state = 'claimed' AND free_at_ms <= ? LIMIT {STEP})",
        (now_ms,),
    )


def expire(now_ms: int) -> Statement:
    """End reviews that have waited far too long; a step."""
    return everyone(
        REVIEW,
        "UPDATE review SET state = 'expired', claimed_by = NULL, free_at_ms = 0 WHERE (tenant, decision) IN "
        f"(SELECT tenant, decision FROM review WHERE {_WAITING} AND expires_at_ms <= ? LIMIT {STEP})",
        (now_ms,),
    )


def check(tenant: str, decision: str, outcome: ReviewOutcome, by: str) -> Statement:
    """Keep what a second person decided; `Lost` when one has, or it is their own."""
    return _update(
        tenant,
        decision,
        "check_state = 'done', check_outcome = ?, checked_by = ? "
        "WHERE tenant = ? AND decision = ? AND check_state = 'asked' AND settled_by <> ?",
        (outcome.value, by),
        (by,),
    )


def count_work(tenant: str, from_ms: int, to_ms: int) -> Statement:
    """(who, outcome, how many, milliseconds from opening to settling in all) of reviews opened in a span."""
    return scoped(
        REVIEW,
        tenant,
        "SELECT settled_by, outcome, COUNT(*), CAST(SUM(settled_at_ms - opened_at_ms) AS BIGINT) FROM review "
        "WHERE tenant = ? AND state = 'settled' AND opened_at_ms >= ? AND opened_at_ms < ? "
        "GROUP BY settled_by, outcome",
        (from_ms, to_ms),
    )


def count_states(tenant: str) -> Statement:
    """(state, how many) of all reviews of a tenant."""
    return scoped(
        REVIEW_COUNT, tenant, "SELECT state, reviews FROM review_count WHERE tenant = ? AND reviews > 0"
    )


def count_open(tenant: str, from_ms: int, to_ms: int) -> Statement:
    """How many open reviews were opened in `[from_ms, to_ms)`, up to `AGES_COUNTED`."""
    return scoped(
        REVIEW,
        tenant,
        "SELECT COUNT(*) FROM (SELECT 1 FROM review WHERE tenant = ? AND state = 'open' "
        f"AND opened_at_ms >= ? AND opened_at_ms < ? LIMIT {AGES_COUNTED}) AS counted",
        (from_ms, to_ms),
    )


def remove_reviews(tenant: str, decisions: Sequence[str]) -> Statement:
    """Remove the reviews of some decisions."""
    places, args = in_list(decisions)
    return scoped(REVIEW, tenant, f"DELETE FROM review WHERE tenant = ? AND decision IN ({places})", args)


class ReviewFilter(msgspec.Struct, frozen=True):
    """Which reviews a page of the list is about; `[from_ms, to_ms)` is when they were opened.

    `customer` is an id or an e-mail address. `email` is the same in the form in which addresses are kept.
    """

    tenant: str
    state: ReviewState | None = None
    customer: str | None = None
    email: str | None = None
    from_ms: int | None = None
    to_ms: int | None = None

    def count(self) -> Statement:
        """How many there are in all."""
        if (self.customer, self.from_ms, self.to_ms) == (None, None, None):
            of_state = "" if self.state is None else " AND state = ?"
            args = () if self.state is None else (self.state.value,)
            return scoped(
                REVIEW_COUNT,
                self.tenant,
                "SELECT CAST(COALESCE(SUM(reviews), 0) AS BIGINT) FROM review_count "
                f"WHERE tenant = ?{of_state}",
                args,
            )
        where, args = self._where()
        return scoped(REVIEW, self.tenant, f"SELECT COUNT(*) FROM review WHERE {where}", args)

    def page(
        self, limit: int, offset: int, last: tuple[int, str] | None, *, by_age: bool, descending: bool
    ) -> Statement:
        """One page by rank or by when they were opened; it begins beyond the place `last`."""
        where, args = self._where()
        column = "opened_at_ms" if by_age else "rank"
        sign = self._sign()
        beyond, order = ("<", "DESC") if descending else (">", "ASC")
        if last is not None:
            where += f" AND ({sign}{column}, decision) {beyond} (?, ?)"
            args = (*args, *last)
        return in_pieces(
            scoped(
                REVIEW,
                self.tenant,
                f"SELECT {COLUMNS} FROM review WHERE {where} "
                f"ORDER BY {sign}{column} {order}, decision {order} LIMIT ? OFFSET ?",
                (*args, limit, offset),
            )
        )

    def _sign(self) -> str:
        """Keep the few reviews of one customer from being looked for among all, by their order or state."""
        return "" if self.customer is None else "+"

    def _where(self) -> tuple[str, tuple[Any, ...]]:
        sign = self._sign()
        named = (self.tenant, self.customer, self.email, self.tenant, self.email)
        parts: list[tuple[str, tuple[Any, ...]]] = [
            (
                "state = ?" if self.customer is None else "state || '' = ?",
                (self.state.value if self.state is not None else None,),
            ),
            (_NAMED, named if self.customer is not None else (None,)),
            (f"{sign}opened_at_ms >= ?", (self.from_ms,)),
            (f"{sign}opened_at_ms < ?", (self.to_ms,)),
        ]
        given = [(text, values) for text, values in parts if values[0] is not None]
        args = tuple(value for _, values in given for value in values)
        return " AND ".join(["tenant = ?", *(text for text, _ in given)]), args


def _update(
    tenant: str, decision: str, text: str, first: Sequence[Any], last: Sequence[Any] = ()
) -> Statement:
    """Change one review; `Lost` when it is not as the conditions behind its keys ask for."""
    return Statement(
        f"UPDATE review SET {text}",
        (*first, tenant, decision, *last),
        rows=1,
        tenant=tenant,
        tables=REVIEW,
    )
