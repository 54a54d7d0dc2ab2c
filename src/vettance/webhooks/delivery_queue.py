"""The outbox as the worker sees it: what waits, who holds it, and what became of it."""

# ruff: noqa: S608 - only names of ours and placeholders are put into the texts

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from vettance.db.engine import EVERYBODY, Row, Statement, everyone, in_list, in_pieces, insert, scoped
from vettance.db.tables import ATTEMPT, DELIVERY, MESSAGE, SUBSCRIPTION, Insert
from vettance.outbox import MESSAGE_OF_DELIVERY, remove_deliveries
from vettance.webhooks.sql import SECRETS, Secrets
from vettance.webhooks.webhook import AttemptOutcome, DeliveryState


def select_feed(after: int, limit: int) -> Statement:
    """(seq, tenant, subscription, due_at_ms, state) of deliveries queued after a number, in order."""
    return everyone(
        DELIVERY,
        "SELECT seq, tenant, subscription, due_at_ms, state FROM delivery WHERE seq > ? ORDER BY seq LIMIT ?",
        (after, limit),
    )


def select_last_delivery() -> Statement:
    """The number of the newest delivery, 0 when there is none."""
    return everyone(DELIVERY, "SELECT COALESCE(MAX(seq), 0) FROM delivery")


# Every subscription is looked for in the index of what waits: that is quick however much waits for one.
_LANES: Final = (
    "SELECT tenant, id FROM subscription WHERE EXISTS (SELECT 1 FROM delivery "
    "WHERE delivery.subscription = subscription.id AND delivery.state = 'pending'{})"
)


def select_pending_lanes() -> Statement:
    """(tenant, subscription) of the subscriptions that something waits for."""
    return everyone(SUBSCRIPTION.reading(DELIVERY), _LANES.format(""))


# A lease that seems to last for twice its time was taken while a clock stood wrong, and holds nobody up.
_FREE: Final = "(lease IS NULL OR leased_until_ms <= ? OR leased_until_ms > ?)"


def select_lane(subscription_id: str, now_ms: int, lease_ms: int, limit: int) -> Statement:
    """(seq, due_at_ms) of what waits for one subscription and nobody holds, what is due first."""
    return everyone(
        DELIVERY,
        "SELECT seq, due_at_ms FROM delivery WHERE subscription = ? AND state = 'pending' "
        f"AND {_FREE} ORDER BY due_at_ms, seq LIMIT ?",
        (subscription_id, now_ms, now_ms + 2 * lease_ms, limit),
    )


def select_overdue_lanes(now_ms: int, overdue_ms: int, ahead_ms_max: int) -> Statement:
    """(tenant, subscription) where something has been due for a while, or seems to be due too far ahead.

    Leases are not looked at: the index has none.
    """
    late = " AND (delivery.due_at_ms <= ? OR delivery.due_at_ms > ?)"
    return everyone(
        SUBSCRIPTION.reading(DELIVERY), _LANES.format(late), (now_ms - overdue_ms, now_ms + ahead_ms_max)
    )


#: So many deliveries are claimed, or settled, in one commit: decisions that are to be written meanwhile wait
#: for it, and what comes next takes its turn behind them. It takes a few milliseconds.
COMMIT_MAX: Final = 100


def claim(numbers: Sequence[int], lease: str, now_ms: int, lease_ms: int, ahead_ms_max: int) -> Statement:
    """Take the lease of those of these deliveries that are due, free, and still subscribed to."""
    places, args = in_list(numbers)
    return everyone(
        DELIVERY.reading(SUBSCRIPTION),
        "UPDATE delivery SET lease = ?, leased_until_ms = ? "
        f"WHERE seq IN ({places}) AND state = 'pending' "
        f"AND (due_at_ms <= ? OR due_at_ms > ?) AND {_FREE} "
        "AND EXISTS (SELECT 1 FROM subscription WHERE subscription.id = delivery.subscription)",
        (
            *(lease, now_ms + lease_ms, *args, now_ms, now_ms + ahead_ms_max),
            *(now_ms, now_ms + 2 * lease_ms),
        ),
    )


class ClaimedDelivery(NamedTuple):
    """A delivery whose lease this worker holds, with everything that sending it takes."""

    seq: int
    id: str
    tenant: str
    subscription: str
    type: str
    attempts: int
    attempts_ever: int
    body: bytes
    url: str
    secrets: Secrets


def select_claimed(numbers: Sequence[int], lease: str) -> Statement:
    """Those of these deliveries that a lease holds; what is too much for one piece is given back."""
    places, args = in_list(numbers)
    columns = (
        "SELECT seq, delivery.id, delivery.tenant, subscription, type, attempts, attempts_ever, "
        f"COALESCE(message.body, delivery.body), url, {SECRETS} "
    )
    joined = "JOIN subscription ON subscription.id = delivery.subscription LEFT JOIN message "
    held = f"WHERE seq IN ({places}) AND lease = ?"
    claimed = everyone(
        DELIVERY.reading(SUBSCRIPTION, MESSAGE),
        f"{columns} FROM delivery {joined} "
        f"ON message.tenant = delivery.tenant AND message.id = {MESSAGE_OF_DELIVERY} {held}",
        (*args, lease),
    )
    # Behind the walls PostgreSQL computes no part of a text before it knows whose the row is: the id of the
    # message has to be there first, or every message of the tenant is read.
    apart = everyone(
        DELIVERY.reading(SUBSCRIPTION, MESSAGE),
        f"WITH delivery AS MATERIALIZED (SELECT *, {MESSAGE_OF_DELIVERY} AS message_id FROM delivery {held}) "
        f"{columns} FROM delivery {joined} "
        "ON message.tenant = delivery.tenant AND message.id = delivery.message_id",
        (*args, lease),
    )
    return in_pieces(claimed._replace(postgres=apart))


def claimed_of(row: Row) -> ClaimedDelivery:
    """Make a claimed delivery of a row. Raises `ValueError` for one that cannot be sent as it is."""
    if not row[7] or not all(type(count) is int for count in row[5:7]):
        raise ValueError("the row of a delivery is damaged")
    return ClaimedDelivery._make((*row[:9], Secrets._make(row[9:13])))


_INSERT_ATTEMPT: Final = Insert(
    ATTEMPT, "delivery, number, started_at_ms, duration_ms, status, error, answer"
)


class RecordedAttempt(NamedTuple):
    """What an attempt makes of its delivery: the lease under which it was made, how it went, the state that
    follows, and when it is due again (Unix milliseconds)."""

    one: ClaimedDelivery
    lease: str
    outcome: AttemptOutcome
    state: DeliveryState
    due_at_ms: int


def settle(recorded: Sequence[RecordedAttempt]) -> tuple[Statement, Statement]:
    """Record attempts and what follows from them; `Lost` when the lease of one is not held any more.

    There is one at least, and none of them twice.
    """
    numbers, args = in_list([one.one.seq for one in recorded])
    given, rows = _given("BIGINT TEXT TEXT BIGINT BIGINT", [_settled_row(one) for one in recorded])
    return (
        everyone(
            DELIVERY,
            f"WITH given (seq, held, state, due_at_ms, settled_at_ms) AS (VALUES {given}) "
            "UPDATE delivery SET state = given.state, due_at_ms = given.due_at_ms, "
            "settled_at_ms = given.settled_at_ms, attempts = attempts + 1, "
            "attempts_ever = attempts_ever + 1, lease = NULL, leased_until_ms = NULL "
            f"FROM given WHERE delivery.seq IN ({numbers}) AND delivery.seq = given.seq "
            "AND delivery.lease = given.held",
            (*rows, *args),
            rows=len(recorded),
        ),
        insert(_INSERT_ATTEMPT, EVERYBODY, [value for one in recorded for value in _attempt_row(one)]),
    )


def _settled_row(settled: RecordedAttempt) -> tuple[Any, ...]:
    settled_at_ms = None if settled.state is DeliveryState.PENDING else settled.outcome.ended_at_ms
    return settled.one.seq, settled.lease, settled.state.value, settled.due_at_ms, settled_at_ms


def _attempt_row(settled: RecordedAttempt) -> tuple[Any, ...]:
    one, outcome = settled.one, settled.outcome
    return (
        one.seq,
        one.attempts_ever + 1,
        outcome.started_at_ms,
        outcome.duration_ms,
        outcome.status or None,
        outcome.failure.value if outcome.failure is not None else None,
        outcome.answer,
    )


def _given(types: str, rows: Sequence[Sequence[Any]]) -> tuple[str, list[Any]]:
    """Return the rows of a `VALUES` and the arguments for them, the last row repeated as in `in_list`."""
    first = ", ".join(f"CAST(? AS {kind})" for kind in types.split())
    other = ", ".join("?" * len(types.split()))
    padded = [*rows, *[rows[-1]] * ((1 << (len(rows) - 1).bit_length()) - len(rows))]
    text = ", ".join([f"({first})", *[f"({other})"] * (len(padded) - 1)])
    return text, [value for row in padded for value in row]


def release(numbers: Sequence[int], lease: str) -> Statement:
    """Give a lease back without an attempt."""
    places, args = in_list(numbers)
    return everyone(
        DELIVERY,
        f"UPDATE delivery SET lease = NULL, leased_until_ms = NULL WHERE seq IN ({places}) AND lease = ?",
        (*args, lease),
    )


def release_all() -> Statement:
    """Give every lease back: at the start of the only worker of a store, all of them are of dead ones."""
    return everyone(
        DELIVERY,
        "UPDATE delivery SET lease = NULL, leased_until_ms = NULL "
        "WHERE state = 'pending' AND lease IS NOT NULL",
    )


#: How a lease begins that tells who holds it. Those of earlier versions are hexadecimal digits alone.
_OWNED: Final = "w"
_OWNER_DIGITS: Final = 8


def make_lease(owner: int, token: str) -> str:
    """Return a lease of a deliverer, by its number; `token` is hexadecimal and never the same."""
    return f"{_owned_by(owner)}{token}"


def _owned_by(owner: int) -> str:
    return f"{_OWNED}{owner:0{_OWNER_DIGITS}x}"


def owner_of(lease: str) -> int:
    """Return the number of the deliverer that holds a lease, or of the beginning of one."""
    return int(lease[len(_OWNED) : len(_OWNED) + _OWNER_DIGITS], 16)


def select_lease_owners() -> Statement:
    """(the beginning of a lease,) of every deliverer that holds one."""
    return everyone(
        DELIVERY,
        "SELECT DISTINCT substr(lease, 1, ?) FROM delivery WHERE lease >= ? AND lease < ?",
        (len(_OWNED) + _OWNER_DIGITS, _OWNED, chr(ord(_OWNED) + 1)),
    )


def release_of(owner: int) -> Statement:
    """Give back every lease of a deliverer that is gone."""
    return everyone(
        DELIVERY,
        "UPDATE delivery SET lease = NULL, leased_until_ms = NULL WHERE lease >= ? AND lease < ?",
        (_owned_by(owner), f"{_owned_by(owner)}g"),  # "g" comes after every hexadecimal digit.
    )


class QueueProgress(NamedTuple):
    """What a round of settlements says about one subscription. Moments are of the newest, or None."""

    subscription: str
    triggered_at_ms: int
    success_at_ms: int | None
    failure_at_ms: int | None
    failures: int
    error: str | None


def note_health(tallies: Sequence[QueueProgress]) -> Statement:
    """Add tallies, one at least, to the health of their subscriptions. `failures` in a row go on unless there
    was a success."""
    names, args = in_list([tally.subscription for tally in tallies])
    given, rows = _given("TEXT BIGINT BIGINT BIGINT BIGINT TEXT", tallies)
    return everyone(
        SUBSCRIPTION,
        f"WITH given (id, triggered, succeeded, failed, failures, error) AS (VALUES {given}) "
        "UPDATE subscription SET last_triggered_at_ms = given.triggered, "
        "last_success_at_ms = COALESCE(given.succeeded, last_success_at_ms), "
        "last_failure_at_ms = COALESCE(given.failed, last_failure_at_ms), "
        "last_error = COALESCE(given.error, last_error), failures_in_a_row = given.failures "
        "+ CASE WHEN given.succeeded IS NULL THEN failures_in_a_row ELSE 0 END "
        f"FROM given WHERE subscription.id IN ({names}) AND subscription.id = given.id",
        (*rows, *args),
    )


#: What may wait for one tenant: some hundred thousand deliveries, minutes of the most that is sent at all.
#: Beyond it the oldest is given up.
BACKLOG_BYTES_MAX: Final = 256 * 1024 * 1024
#: What a delivery takes besides its body: its row and its places in four indexes.
_ROW_BYTES: Final = 512


def select_overfull() -> Statement:
    """(tenant,) of those for whom more waits than may."""
    return everyone(
        DELIVERY,
        "SELECT tenant FROM delivery WHERE state = 'pending' GROUP BY tenant "
        f"HAVING SUM(body_bytes) + COUNT(*) * {_ROW_BYTES} > ?",
        (BACKLOG_BYTES_MAX,),
    )


def select_last_beyond(tenant: str) -> Statement:
    """(seq,) of the newest of the oldest that waits for a tenant beyond what may; NULL where all may."""
    return scoped(
        DELIVERY,
        tenant,
        f"SELECT MAX(seq) FROM (SELECT seq, SUM(body_bytes + {_ROW_BYTES}) OVER (ORDER BY seq DESC) "
        "AS waiting FROM delivery WHERE tenant = ? AND state = 'pending') AS queue WHERE waiting > ?",
        (BACKLOG_BYTES_MAX,),
    )


def select_waiting_through(tenant: str, last: int, limit: int) -> Statement:
    """(seq, subscription) of the oldest that waits for a tenant, up to a number, and has no lease."""
    return scoped(
        DELIVERY,
        tenant,
        "SELECT seq, subscription FROM delivery WHERE tenant = ? AND state = 'pending' AND seq <= ? "
        "AND lease IS NULL ORDER BY seq LIMIT ?",
        (last, limit),
    )


def give_up(numbers: Sequence[int], now_ms: int) -> Statement:
    """Exhaust deliveries that wait and are not being sent; they can be replayed. `Lost` when one of them is
    being sent after all."""
    places, args = in_list(numbers)
    return everyone(
        DELIVERY,
        "UPDATE delivery SET state = 'exhausted', settled_at_ms = ? "
        f"WHERE seq IN ({places}) AND state = 'pending' AND lease IS NULL",
        (now_ms, *args),
        rows=len(numbers),
    )


def note_overflow(subscription: str, count: int, now_ms: int) -> Statement:
    """Add to a subscription's health that deliveries of it were given up because too much waited."""
    return everyone(
        SUBSCRIPTION,
        "UPDATE subscription SET overflowed = overflowed + ?, overflowed_at_ms = ? WHERE id = ?",
        (count, now_ms, subscription),
    )


def cancel_all_orphans(now_ms: int, limit: int) -> Statement:
    """Cancel what waits for whichever subscription is gone, `limit` rows at a time; reads all that waits."""
    return everyone(
        DELIVERY.reading(SUBSCRIPTION),
        "UPDATE delivery SET state = 'canceled', settled_at_ms = ? WHERE seq IN (SELECT seq FROM delivery "
        "WHERE state = 'pending' AND NOT EXISTS (SELECT 1 FROM subscription "
        "WHERE subscription.id = delivery.subscription) LIMIT ?)",
        (now_ms, limit),
    )


def cancel_orphans(subscription_id: str, now_ms: int, limit: int) -> Statement:
    """Cancel what still waits for a subscription that is gone, `limit` rows at a time."""
    return everyone(
        DELIVERY.reading(SUBSCRIPTION),
        "UPDATE delivery SET state = 'canceled', settled_at_ms = ? WHERE seq IN (SELECT seq FROM delivery "
        "WHERE subscription = ? AND state = 'pending' "
        "AND NOT EXISTS (SELECT 1 FROM subscription WHERE id = ?) LIMIT ?)",
        (now_ms, subscription_id, subscription_id, limit),
    )


def select_first_delivery() -> Statement:
    """The number of the oldest delivery, NULL when there is none."""
    return everyone(DELIVERY, "SELECT MIN(seq) FROM delivery")


def forget(first: int, before_ms: int, limit: int) -> list[Statement]:
    """Forget deliveries made before a moment, with their attempts, among `limit` numbers from `first` on.

    What still waits after so long is forgotten too. The newest row always stays, so that numbers are never
    given twice. Only the oldest rows are looked at: numbers go by time.
    """
    # Of bounds that it sees as values PostgreSQL knows that they are narrow; for `MIN(seq) + ?` it read the
    # whole table.
    old = (
        "SELECT seq FROM delivery WHERE seq >= ? AND seq < ? AND seq < (SELECT MAX(seq) FROM delivery) "
        "AND created_at_ms < ? AND lease IS NULL"
    )
    return remove_deliveries(old, (first, first + limit, before_ms))
