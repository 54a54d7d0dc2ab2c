"""The outbox: what subscribers must hear of, written in the same commit as what it tells."""

# ruff: noqa: S608 - only names of ours and placeholders are put into the texts

import enum
from collections.abc import Sequence
from typing import Any, Final

from vettance.db.engine import Statement, everyone, scoped
from vettance.db.tables import ATTEMPT, DELIVERY, INTEREST, MESSAGE
from vettance.wire.payload import timestamp


class MessageType(enum.StrEnum):
    """What subscribers can hear of."""

    EVENT_RISK_EVALUATED = "EVENT_RISK_EVALUATED"
    EVENT_FEEDBACK_SUBMITTED = "EVENT_FEEDBACK_SUBMITTED"
    BLOCKLIST_ENTRY_ADDED = "BLOCKLIST_ENTRY_ADDED"
    BLOCKLIST_ENTRY_REMOVED = "BLOCKLIST_ENTRY_REMOVED"
    REVIEW_SETTLED = "REVIEW_SETTLED"


# Subscriptions are matched by the store itself, inside the commit: whoever subscribed in a commit before this
# one is told, whoever unsubscribed is not. Where nobody listens these are two looks into an index.
# A delivery's id is that of its message, its last four digits those of the subscription.
#: So many deliveries of a message are made in one commit, those to its tenant's oldest subscriptions first: a
#: thousand at once keep every other write waiting for 20 to 60 ms. As many subscriptions as a tenant may have
#: by default are served at once; for others further commits are made (see `webhooks.fan_out`).
FAN_OUT_MAX: Final = 25
_INSERT_MESSAGE: Final = (
    "INSERT INTO message (tenant, id, created_at_ms, body, message_type, message_subject, "
    "next_subscription, last_subscription) SELECT ?, ?, ?, ?, ?, ?, (SELECT subscription FROM interest "
    f"WHERE tenant = ? AND type = ? ORDER BY subscription LIMIT 1 OFFSET {FAN_OUT_MAX}), "
    "(SELECT MAX(subscription) FROM interest WHERE tenant = ? AND type = ?) "
    "WHERE EXISTS (SELECT 1 FROM interest WHERE tenant = ? AND type = ?)"
)
_DELIVERY_COLUMNS: Final = (
    "INSERT INTO delivery (tenant, id, subscription, type, subject, created_at_ms, state, due_at_ms, body, "
    "body_bytes) "
)
_INSERT_DELIVERIES: Final = (
    f"{_DELIVERY_COLUMNS}SELECT ?, ? || slot, subscription, type, ?, ?, 'pending', ?, ?, ? FROM interest "
    f"WHERE tenant = ? AND type = ? ORDER BY subscription LIMIT {FAN_OUT_MAX}"
)
_INSERT_MORE_DELIVERIES: Final = (
    f"{_DELIVERY_COLUMNS}SELECT message.tenant, message.id || interest.slot, interest.subscription, "
    "message.message_type, message.message_subject, message.created_at_ms, 'pending', message.created_at_ms, "
    "substr(message.body, 1, 0), length(message.body) FROM message JOIN interest "
    "ON interest.tenant = message.tenant AND interest.type = message.message_type "
    "AND interest.subscription >= message.next_subscription "
    "AND interest.subscription <= message.last_subscription "
    "WHERE message.tenant = ? AND message.id = ? AND message.next_subscription = ? "
    f"ORDER BY interest.subscription LIMIT {FAN_OUT_MAX}"
)
_ADVANCE_MESSAGE: Final = (
    "UPDATE message SET tenant = ?, next_subscription = (SELECT interest.subscription FROM interest "
    "WHERE interest.tenant = message.tenant AND interest.type = message.message_type "
    "AND interest.subscription >= message.next_subscription "
    "AND interest.subscription <= message.last_subscription "
    f"ORDER BY interest.subscription LIMIT 1 OFFSET {FAN_OUT_MAX}) "
    "WHERE tenant = ? AND id = ? AND next_subscription = ?"
)
_MESSAGE: Final = MESSAGE.heard_by(INTEREST)
_DELIVERIES: Final = DELIVERY.heard_by(INTEREST)
_SLOT_DIGITS: Final = 4
#: How long the id of a message is: `dlv_` and 28 digits.
_MESSAGE_ID_CHARS: Final = 32
#: The id of the message of a delivery, in SQL.
MESSAGE_OF_DELIVERY: Final = f"substr(delivery.id, 1, {_MESSAGE_ID_CHARS})"
#: Whether a delivery belongs to a message, in SQL: by the index of their ids; no digit comes after "f".
DELIVERY_OF_MESSAGE: Final = (
    "delivery.tenant = message.tenant AND delivery.id > message.id AND delivery.id < message.id || 'g'"
)


def envelope(message_type: MessageType, now_ms: int, data: bytes) -> bytes:
    """Write the body that a receiver gets; `data` is JSON, `now_ms` its timestamp."""
    return b'{"eventType":"%s","timestamp":"%s","data":%s}' % (
        message_type.value.encode(),
        timestamp(now_ms).encode(),
        data,
    )


def enqueue(
    tenant: str, message_type: MessageType, message_id: str, subject: str, now_ms: int, data: bytes
) -> tuple[Statement, Statement]:
    """Queue a message: stored once, and one delivery for each subscription of the tenant that wants its type.

    Where there are more than `FAN_OUT_MAX`, the message says who is next, and `fan_out` makes the others.

    `message_id` is an id of any prefix that no other message has; what happens once (an evaluation) may give
    its own. `subject` is the id of what is told of, `data` the `data` member of the envelope as JSON; all
    attempts of all deliveries send the bytes made here. `now_ms` is the envelope's timestamp.
    """
    message = "dlv_" + message_id[-32:-_SLOT_DIGITS]
    body, kind = envelope(message_type, now_ms, data), message_type.value
    deliveries = (message, subject, now_ms, now_ms, b"", len(body), tenant, kind)
    listed = (tenant, kind) * 3
    return (
        scoped(_MESSAGE, tenant, _INSERT_MESSAGE, (message, now_ms, body, kind, subject, *listed)),
        scoped(_DELIVERIES, tenant, _INSERT_DELIVERIES, deliveries),
    )


def fan_out(tenant: str, message: str, next_subscription: str) -> tuple[Statement, Statement]:
    """Make the next deliveries of a message, from a subscription on; `Lost` when that has been done.

    Subscriptions made after the message was written get none, and neither do those removed since.
    """
    step = (message, next_subscription)
    return (
        scoped(DELIVERY.reading(INTEREST, MESSAGE), tenant, _INSERT_MORE_DELIVERIES, step),
        scoped(MESSAGE.reading(INTEREST), tenant, _ADVANCE_MESSAGE, (tenant, *step), rows=1),
    )


def select_fan_out(after: str) -> Statement:
    """(tenant, message, next subscription) of the oldest message with deliveries to make, of the first tenant
    whose id comes after `after`."""
    return everyone(
        MESSAGE,
        "SELECT tenant, id, next_subscription FROM message WHERE next_subscription IS NOT NULL "
        "AND tenant > ? ORDER BY tenant, id LIMIT 1",
        (after,),
    )


def remove_deliveries(some: str, args: Sequence[Any]) -> list[Statement]:
    """Remove deliveries with their attempts, and the messages that they were the last of.

    `some` selects their numbers, in an order that makes them the same each time; the last statement tells how
    many there were.
    """
    last_of = f"SELECT delivery.tenant, {MESSAGE_OF_DELIVERY} FROM delivery WHERE seq IN ({some})"
    return [
        everyone(ATTEMPT, f"DELETE FROM attempt WHERE delivery IN ({some})", args),
        everyone(
            MESSAGE.reading(DELIVERY),
            f"DELETE FROM message WHERE (tenant, id) IN ({last_of}) AND NOT EXISTS (SELECT 1 FROM delivery "
            f"WHERE {DELIVERY_OF_MESSAGE} AND delivery.seq NOT IN ({some}))",
            (*args, *args),
        ),
        everyone(DELIVERY, f"DELETE FROM delivery WHERE seq IN ({some})", args),
    ]
