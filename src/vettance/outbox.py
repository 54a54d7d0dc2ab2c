"""The outbox: what subscribers must hear of, written in the same commit as what it tells."""

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
_INSERT_MESSAGE: Final = (
    "INSERT INTO message (tenant, id, created_at_ms, body) SELECT ?, ?, ?, ? "
    "WHERE EXISTS (SELECT 1 FROM interest WHERE tenant = ? AND type = ?)"
)
_INSERT_DELIVERIES: Final = (
    "INSERT INTO delivery (tenant, id, subscription, type, subject, created_at_ms, state, due_at_ms, body, "
    "body_bytes) SELECT ?, ? || slot, subscription, type, ?, ?, 'pending', ?, ?, ? FROM interest "
    "WHERE tenant = ? AND type = ?"
)
_MESSAGE: Final = MESSAGE.reading(INTEREST)
_DELIVERIES: Final = DELIVERY.reading(INTEREST)
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

    `message_id` is an id of any prefix that no other message has; what happens once (an evaluation) may give
    its own. `subject` is the id of what is told of, `data` the `data` member of the envelope as JSON; all
    attempts of all deliveries send the bytes made here. `now_ms` is the envelope's timestamp.
    """
    message = "dlv_" + message_id[-32:-_SLOT_DIGITS]
    body, kind = envelope(message_type, now_ms, data), message_type.value
    deliveries = (message, subject, now_ms, now_ms, b"", len(body), tenant, kind)
    return (
        scoped(_MESSAGE, tenant, _INSERT_MESSAGE, (message, now_ms, body, tenant, kind)),
        scoped(_DELIVERIES, tenant, _INSERT_DELIVERIES, deliveries),
    )


def remove_deliveries(some: str, args: Sequence[Any]) -> list[Statement]:
    """Remove deliveries with their attempts, and the messages that they were the last of.

    `some` selects their numbers, in an order that makes them the same each time; the last statement tells how
    many there were.
    """
    last_of = f"SELECT delivery.tenant, {MESSAGE_OF_DELIVERY} FROM delivery WHERE seq IN ({some})"  # noqa: S608 - texts of ours
    return [
        everyone(ATTEMPT, f"DELETE FROM attempt WHERE delivery IN ({some})", args),  # noqa: S608 - texts of ours
        everyone(
            MESSAGE.reading(DELIVERY),
            f"DELETE FROM message WHERE (tenant, id) IN ({last_of}) AND NOT EXISTS (SELECT 1 FROM delivery "  # noqa: S608
            f"WHERE {DELIVERY_OF_MESSAGE} AND delivery.seq NOT IN ({some}))",
            (*args, *args),
        ),
        everyone(DELIVERY, f"DELETE FROM delivery WHERE seq IN ({some})", args),  # noqa: S608 - texts of ours
    ]
