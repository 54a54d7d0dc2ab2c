"""The outbox: what subscribers must hear of, written in the same commit as what it tells."""

import enum
from typing import Final

from vettance.db.engine import Statement, scoped
from vettance.wire import timestamp


class MessageType(enum.StrEnum):
    """What subscribers can hear of."""

    EVENT_RISK_EVALUATED = "EVENT_RISK_EVALUATED"
    EVENT_FEEDBACK_SUBMITTED = "EVENT_FEEDBACK_SUBMITTED"
    BLOCKLIST_ENTRY_ADDED = "BLOCKLIST_ENTRY_ADDED"
    BLOCKLIST_ENTRY_REMOVED = "BLOCKLIST_ENTRY_REMOVED"


# Subscriptions are matched by the store itself, inside the commit: whoever subscribed in a commit before this
# one is told, whoever unsubscribed is not. Where nobody listens this is one look into an index.
# A delivery's id is that of its message, its last four digits those of the subscription.
_INSERT: Final = (
    "INSERT INTO delivery (tenant, id, subscription, type, subject, created_at_ms, state, due_at_ms, body) "
    "SELECT ?, ? || slot, subscription, type, ?, ?, 'pending', ?, ? FROM interest "
    "WHERE tenant = ? AND type = ?"
)
_SLOT_DIGITS: Final = 4


def envelope(message_type: MessageType, now_ms: int, data: bytes) -> bytes:
    """Write the body that a receiver gets; `data` is JSON, `now_ms` its timestamp."""
    return b'{"eventType":"%s","timestamp":"%s","data":%s}' % (
        message_type.value.encode(),
        timestamp(now_ms).encode(),
        data,
    )


def enqueue(
    tenant: str, message_type: MessageType, message_id: str, subject: str, now_ms: int, data: bytes
) -> Statement:
    """Queue a message: one delivery for each subscription of the tenant that wants this type.

    `message_id` is an id of any prefix that no other message has; what happens once (an evaluation) may give
    its own. `subject` is the id of what is told of, `data` the `data` member of the envelope as JSON; all
    attempts of all deliveries send the bytes made here. `now_ms` is the envelope's timestamp.
    """
    delivery = "dlv_" + message_id[-32:-_SLOT_DIGITS]
    body = envelope(message_type, now_ms, data)
    args = (delivery, subject, now_ms, now_ms, body, tenant, message_type.value)
    return scoped(tenant, _INSERT, args)
