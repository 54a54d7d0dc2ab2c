"""What the store remembers of second looks: reviews that wait for one, and what came of them."""

from collections.abc import Sequence

from vettance.db.engine import Statement, in_list, in_pieces, scoped
from vettance.db.tables import REVIEW
from vettance.reviews.review import UNDO_MS
from vettance.reviews.sql import COLUMNS


def select_checks(tenant: str, by: str, limit: int) -> Statement:
    """Settled reviews that a second person is to look at, but for those that `by` settled; oldest first."""
    return in_pieces(
        scoped(
            REVIEW,
            tenant,
            f"SELECT {COLUMNS} FROM review WHERE tenant = ? AND check_state = 'asked' AND settled_by <> ? "
            "ORDER BY settled_at_ms LIMIT ?",
            (by, limit),
        )
    )


def select_unchecked(tenant: str, settled_at_ms: Sequence[int]) -> Statement:
    """Reviews that were settled at some moments and wait for a second person, or are not final yet."""
    places, args = in_list(settled_at_ms)
    return in_pieces(
        scoped(
            REVIEW,
            tenant,
            f"SELECT {COLUMNS} FROM review WHERE tenant = ? AND check_state = 'asked' "
            f"AND settled_at_ms IN ({places}) UNION ALL "
            # What is not final is found by when it will be: so much later.
            f"SELECT {COLUMNS} FROM review WHERE tenant || '' = ? AND tell_at_ms IS NOT NULL "
            f"AND tell_at_ms IN ({places})",
            (*args, tenant, *(one + UNDO_MS for one in args)),
        )
    )


def count_checked(tenant: str, from_ms: int, to_ms: int) -> Statement:
    """(outcome, outcome of the second person, how many) of what was settled in a span and checked."""
    return scoped(
        REVIEW,
        tenant,
        "SELECT outcome, check_outcome, COUNT(*) FROM review WHERE tenant = ? AND check_state = 'done' "
        "AND settled_at_ms >= ? AND settled_at_ms < ? GROUP BY outcome, check_outcome",
        (from_ms, to_ms),
    )
