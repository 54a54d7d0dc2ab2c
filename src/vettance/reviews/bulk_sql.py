"""What the store remembers of bulk requests."""

from collections.abc import Sequence
from typing import Any, Final

import msgspec

from vettance.db.engine import Row, Statement, everyone, in_list, insert, scoped
from vettance.db.tables import DECISION, REVIEW, REVIEW_BULK, REVIEW_BULK_PIECE, Insert
from vettance.feedback.label import Label
from vettance.reviews.bulk_request import ASKED_MS_MAX, BulkRequest, BulkState, ReviewChoice
from vettance.reviews.review import ReviewOutcome

_COLUMNS: Final = (
    "tenant, id, state, outcome, label, note, chosen, wanted, asked_by, asked_at_ms, decided_by, "
    "decided_at_ms, start_at_ms, looked, settled, ended_by, ended_at_ms"
)
_INSERT: Final = Insert(REVIEW_BULK, _COLUMNS)
_INSERT_PIECES: Final = Insert(REVIEW_BULK_PIECE, "tenant, bulk, number, decisions")
#: In the words of the indexes of reviews, so that both stores use them.
_WAITING: Final = "state IN ('open', 'claimed')"
#: Requests looked at in one step of the background work.
STEP: Final = 200


def insert_request(request: BulkRequest, pieces: Sequence[Sequence[str]]) -> list[Statement]:
    """Store a request with the decisions that it is about."""
    values = msgspec.structs.asdict(request)
    stored = [insert(_INSERT, request.tenant, [_plain(values[name]) for name in _COLUMNS.split(", ")[1:]])]
    args: list[Any] = []
    for number, decisions in enumerate(pieces):
        args += [request.tenant, request.id, number, " ".join(decisions)]
    return [*stored, insert(_INSERT_PIECES, request.tenant, args[1:])]


def request_of(row: Row) -> BulkRequest:
    """Make a request of a row."""
    values: dict[str, Any] = dict(zip(_COLUMNS.split(", "), row, strict=True))
    values["state"] = BulkState(values["state"])
    values["outcome"] = ReviewOutcome(values["outcome"])
    values["label"] = Label(values["label"]) if values["label"] else None
    return BulkRequest(**values)


def select_request(tenant: str, request_id: str) -> Statement:
    """One request."""
    return scoped(
        REVIEW_BULK,
        tenant,
        f"SELECT {_COLUMNS} FROM review_bulk WHERE tenant = ? AND id = ?",
        (request_id,),
    )


def select_newest(tenant: str, limit: int) -> Statement:
    """The requests of a tenant, those that wait first, then the newest."""
    return scoped(
        REVIEW_BULK,
        tenant,
        f"SELECT {_COLUMNS} FROM review_bulk WHERE tenant = ? "
        "ORDER BY CASE WHEN state IN ('asked', 'running') THEN 0 ELSE 1 END, id DESC LIMIT ?",
        (limit,),
    )


def count_current(tenant: str) -> Statement:
    """(state, how many) of the requests of a tenant that wait or run."""
    return scoped(
        REVIEW_BULK,
        tenant,
        "SELECT state, COUNT(*) FROM review_bulk WHERE tenant = ? AND state IN ('asked', 'running') "
        "GROUP BY state",
    )


def select_candidates(
    tenant: str, choice: ReviewChoice, by: str, now_ms: int, after: tuple[int, str] | None, limit: int
) -> Statement:
    """(rank, decision, reason codes) of free reviews beyond a place, in the queue's order.

    The codes have blanks between, and are read where the choice names one.
    """
    conditions: list[tuple[str, Sequence[Any]]] = [("(free_at_ms <= ? OR claimed_by = ?)", (now_ms, by))]
    if choice.customer is not None:
        conditions.append(("customer = ?", (choice.customer,)))
    if choice.score_from is not None:
        conditions.append(("score >= ?", (choice.score_from,)))
    if choice.score_to is not None:
        conditions.append(("score <= ?", (choice.score_to,)))
    if after is not None:
        rank, decision = after
        conditions.append(("rank <= ? AND (rank < ? OR decision > ?)", (rank, rank, decision)))
    where = " AND ".join(text for text, _ in conditions)
    args = [value for _, values in conditions for value in values]
    free = (
        f"SELECT rank, decision FROM review WHERE tenant = ? AND {_WAITING} AND {where} "
        "ORDER BY rank DESC, decision LIMIT ?"
    )
    if choice.reason is None:
        text = f"SELECT rank, decision, '' FROM ({free}) AS one ORDER BY rank DESC, decision"
        return scoped(REVIEW, tenant, text, (*args, limit))
    text = (
        f"SELECT one.rank, one.decision, COALESCE(decision.reasons, '') FROM ({free}) AS one "
        "LEFT JOIN decision ON decision.tenant = ? AND decision.id = one.decision "
        "ORDER BY one.rank DESC, one.decision"
    )
    return scoped(REVIEW.reading(DECISION), tenant, text, (*args, limit, tenant))


def select_waiting(tenant: str, decisions: Sequence[str]) -> Statement:
    """(decision,) of those of some reviews that wait."""
    places, args = in_list(decisions)
    return scoped(
        REVIEW,
        tenant,
        f"SELECT decision FROM review WHERE tenant = ? AND {_WAITING} AND decision IN ({places})",
        args,
    )


def decide(
    tenant: str, request_id: str, state: BulkState, by: str, now_ms: int, start_at_ms: int | None
) -> Statement:
    """Approve or refuse a request; `Lost` when it waits no more, or is one's own."""
    ended = None if state is BulkState.RUNNING else now_ms
    return _change(
        tenant,
        request_id,
        "state = ?, decided_by = ?, decided_at_ms = ?, start_at_ms = ?, ended_at_ms = ?",
        (state.value, by, now_ms, start_at_ms, ended),
        "state = 'asked' AND asked_by <> ?",
        (by,),
    )


def end(
    tenant: str, request_id: str, before: BulkState, after: BulkState, by: str | None, now_ms: int
) -> Statement:
    """End a request that is in a state; `Lost` when it is not."""
    return _change(
        tenant,
        request_id,
        "state = ?, ended_by = ?, ended_at_ms = ?",
        (after.value, by, now_ms),
        "state = ?",
        (before.value,),
    )


def remove_pieces(tenant: str, request_id: str) -> Statement:
    """Let go of what is not settled any more."""
    return scoped(
        REVIEW_BULK_PIECE,
        tenant,
        "DELETE FROM review_bulk_piece WHERE tenant = ? AND bulk = ?",
        (request_id,),
    )


def select_running(now_ms: int) -> Statement:
    """The request of each tenant that runs and was asked for first; what began first in front."""
    runs = "state = 'running' AND start_at_ms <= ?"
    return everyone(
        REVIEW_BULK,
        f"SELECT {_COLUMNS} FROM review_bulk WHERE {runs} AND (tenant, id) IN "
        f"(SELECT tenant, MIN(id) FROM review_bulk WHERE {runs} GROUP BY tenant) "
        f"ORDER BY start_at_ms LIMIT {STEP}",
        (now_ms, now_ms),
    )


def select_overdue(now_ms: int) -> Statement:
    """The requests of all tenants that nobody has decided for too long."""
    return everyone(
        REVIEW_BULK,
        f"SELECT {_COLUMNS} FROM review_bulk WHERE state = 'asked' AND asked_at_ms <= ? "
        f"ORDER BY asked_at_ms LIMIT {STEP}",
        (now_ms - ASKED_MS_MAX,),
    )


def select_piece(tenant: str, request_id: str) -> Statement:
    """(number, decisions) of what a request settles next."""
    return scoped(
        REVIEW_BULK_PIECE,
        tenant,
        "SELECT number, decisions FROM review_bulk_piece WHERE tenant = ? AND bulk = ? "
        "ORDER BY number LIMIT 1",
        (request_id,),
    )


def settle_piece(
    request: BulkRequest, number: int, decisions: Sequence[str], now_ms: int, tell_at_ms: int
) -> list[Statement]:
    """Settle the reviews of a piece that are free, count them, and let go of the piece: one commit.

    `Lost` when the piece was settled before, or the request was stopped: no piece is settled twice.
    """
    tenant, (places, args) = request.tenant, in_list(decisions)
    said = request.settlement
    taken = Statement(
        "DELETE FROM review_bulk_piece WHERE tenant = ? AND bulk = ? AND number = ?",
        (tenant, request.id, number),
        rows=1,
        tenant=tenant,
        tables=REVIEW_BULK_PIECE,
    )
    settled = Statement(
        "UPDATE review SET state = 'settled', outcome = ?, label = ?, note = ?, settled_by = ?, "
        "settled_at_ms = ?, entries = NULL, tell_at_ms = ?, free_at_ms = 0, bulk = ? "
        f"WHERE tenant = ? AND {_WAITING} AND (free_at_ms <= ? OR claimed_by = ?) "
        f"AND decision IN ({places})",
        (
            *(said.outcome.value, said.label.value if said.label is not None else None, said.note),
            *(request.asked_by, now_ms, tell_at_ms, request.id, tenant, now_ms, request.asked_by, *args),
        ),
        tenant=tenant,
        tables=REVIEW,
    )
    counted = Statement(
        "UPDATE review_bulk SET looked = looked + ?, settled = settled + "
        f"(SELECT COUNT(*) FROM review WHERE tenant = ? AND bulk = ? AND decision IN ({places})) "
        "WHERE tenant = ? AND id = ? AND state = 'running'",
        (len(decisions), tenant, request.id, *args, tenant, request.id),
        rows=1,
        tenant=tenant,
        tables=REVIEW_BULK.reading(REVIEW),
    )
    return [taken, settled, counted]


def _change(
    tenant: str, request_id: str, text: str, first: Sequence[Any], condition: str, last: Sequence[Any]
) -> Statement:
    return Statement(
        f"UPDATE review_bulk SET {text} WHERE tenant = ? AND id = ? AND {condition}",
        (*first, tenant, request_id, *last),
        rows=1,
        tenant=tenant,
        tables=REVIEW_BULK,
    )


def _plain(value: Any) -> Any:
    return value.value if isinstance(value, BulkState | ReviewOutcome | Label) else value
