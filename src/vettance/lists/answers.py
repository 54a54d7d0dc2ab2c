"""What the list endpoints answer."""

import msgspec

from vettance.lists.entry import EntryType, ListEntry, ListType
from vettance.web.paging import PageAnswer, PageQuery
from vettance.web.query import From, To
from vettance.wire.payload import JSON, Wire, timestamp


class EntryAnswer(Wire, frozen=True, omit_defaults=True):
    """A list entry. `reason` and `expiresAt` are there when they were given."""

    id: str
    type: EntryType
    value: str
    list_type: ListType
    created_at: str
    updated_at: str
    reason: str | None = None
    expires_at: str | None = None


class EntryPage(PageAnswer[EntryAnswer], frozen=True):
    """A page of list entries; `nextCursor` leads to the next one at the same cost."""


class EntryRemoved(Wire, frozen=True):
    """What a removal answers."""

    success: bool
    message: str


class EntryQuery(PageQuery, frozen=True):
    """Which entries, and which page of them. `from` and `to` are about their creation."""

    type: EntryType | None = None
    list_type: ListType | None = None
    created_from: From | None = msgspec.field(name="from", default=None)
    created_to: To | None = msgspec.field(name="to", default=None)


class ScopeQuery(Wire, frozen=True):
    """Which list a scoped removal is about; both when left out."""

    list_type: ListType | None = None


def answer(entry: ListEntry) -> EntryAnswer:
    """Write an entry as the endpoints answer it."""
    return EntryAnswer(
        id=entry.id,
        type=entry.type,
        value=entry.value,
        list_type=entry.list_type,
        created_at=timestamp(entry.created_at_ms),
        updated_at=timestamp(entry.updated_at_ms),
        reason=entry.reason,
        expires_at=timestamp(entry.expires_at_ms) if entry.expires_at_ms is not None else None,
    )


def added_payload(entry: ListEntry) -> JSON:
    """Write the `data` of `BLOCKLIST_ENTRY_ADDED`."""
    told = {"id": entry.id, "type": entry.type, "value": entry.value, "listType": entry.list_type}
    return {**told, "reason": entry.reason, "createdAt": timestamp(entry.created_at_ms)}


def removed_payload(entry: ListEntry, now_ms: int) -> JSON:
    """Write the `data` of `BLOCKLIST_ENTRY_REMOVED`."""
    told = {"id": entry.id, "type": entry.type, "value": entry.value, "listType": entry.list_type}
    return {**told, "deletedAt": timestamp(now_ms)}
