"""What the store remembers of list entries."""

from collections.abc import Sequence
from typing import Any, Final

from vettance.db.engine import OF_TENANT, Row, Statement, everyone, in_list, in_pieces, scoped
from vettance.db.tables import LIST_COUNT, LIST_ENTRY
from vettance.lists.entry import EntryType, ListEntry, ListType

AREA = "list"

_COLUMNS = "id, tenant, type, value, list_type, reason, expires_at_ms, created_at_ms, updated_at_ms"
_LIVE = "(expires_at_ms IS NULL OR expires_at_ms > ?)"


#: Entries that have ended go with the next that is added, so many at most: an addition costs the same always.
_SWEPT: Final = 100
_ENDED: Final = (
    f"FROM list_entry WHERE tenant = ? AND expires_at_ms <= ? ORDER BY expires_at_ms LIMIT {_SWEPT}"
)
_SWEEP: Final = f"DELETE FROM list_entry WHERE {OF_TENANT} AND id IN (SELECT id {_ENDED})"
#: By where they are: where PostgreSQL has not counted the entries of a tenant, it goes through all of them.
_SWEEP_BY_PLACE: Final = (
    f"DELETE FROM list_entry WHERE {OF_TENANT} AND ctid = ANY(ARRAY(SELECT ctid {_ENDED}))"
)
#: What has ended is counted only where it decides: a sweep may leave some of it after a limit was lowered.
_ROOM: Final = (
    "CASE WHEN COALESCE((SELECT entries FROM list_count WHERE tenant = ?), 0) < ? THEN 1 = 1 "
    "ELSE (SELECT entries FROM list_count WHERE tenant = ?) "
    "- (SELECT COUNT(*) FROM list_entry WHERE tenant = ? AND expires_at_ms <= ?) < ? END"
)


def insert_entry(entry: ListEntry, entries_max: int) -> tuple[Statement, Statement, Statement]:
    """Store a new entry in place of an expired one of the same value.

    `Clash` when a live one is there, `Lost` when the lists of the tenant hold as many as they may.
    """
    one = entry
    bury = scoped(
        LIST_ENTRY,
        one.tenant,
        "DELETE FROM list_entry WHERE tenant = ? AND type = ? AND value = ? AND list_type = ? "
        "AND expires_at_ms <= ?",
        (one.type.value, one.value, one.list_type.value, one.created_at_ms),
    )
    ended = (one.tenant, one.created_at_ms)
    sweep = scoped(LIST_ENTRY, one.tenant, _SWEEP, ended)._replace(
        postgres=scoped(LIST_ENTRY, one.tenant, _SWEEP_BY_PLACE, ended)
    )
    add = scoped(
        LIST_ENTRY,
        one.tenant,
        "INSERT INTO list_entry (tenant, id, type, value, list_type, reason, expires_at_ms, created_at_ms, "
        f"updated_at_ms) SELECT ?, ?, ?, ?, ?, ?, ?, ?, ? WHERE {_ROOM}",
        (
            *(one.id, one.type.value, one.value, one.list_type.value, one.reason),
            *(one.expires_at_ms, one.created_at_ms, one.updated_at_ms),
            *(one.tenant, entries_max, one.tenant, one.tenant, one.created_at_ms, entries_max),
        ),
        rows=1,
    )
    return bury, sweep, add


def extend_entry(entry: ListEntry) -> Statement:
    """Have an entry end no earlier than this; `Lost` when it is not there any more."""
    return scoped(
        LIST_ENTRY,
        entry.tenant,
        "UPDATE list_entry SET tenant = ?, expires_at_ms = CASE WHEN expires_at_ms < ? THEN ? "
        "ELSE expires_at_ms END, updated_at_ms = ? WHERE tenant = ? AND id = ?",
        (entry.expires_at_ms, entry.expires_at_ms, entry.updated_at_ms, entry.tenant, entry.id),
        rows=1,
    )


def require_entry(tenant: str, entry_id: str) -> Statement:
    """Change nothing; `Lost` when an entry is not there."""
    return scoped(
        LIST_ENTRY,
        tenant,
        "UPDATE list_entry SET updated_at_ms = updated_at_ms WHERE tenant = ? AND id = ?",
        (entry_id,),
        rows=1,
    )


def count_live(tenant: str, now_ms: int) -> Statement:
    """How many entries of a tenant have not expired; costs the same however many there are."""
    return scoped(
        LIST_COUNT.reading(LIST_ENTRY),
        tenant,
        "SELECT entries - (SELECT COUNT(*) FROM list_entry WHERE tenant = ? AND expires_at_ms <= ?) "
        "FROM list_count WHERE tenant = ?",
        (now_ms, tenant),
    )


def delete_entry(tenant: str, entry_id: str) -> Statement:
    """Remove one entry; `Lost` when it is not there any more."""
    return scoped(
        LIST_ENTRY, tenant, "DELETE FROM list_entry WHERE tenant = ? AND id = ?", (entry_id,), rows=1
    )


def select_entry(tenant: str, entry_id: str) -> Statement:
    """One entry by its id."""
    return scoped(
        LIST_ENTRY, tenant, f"SELECT {_COLUMNS} FROM list_entry WHERE tenant = ? AND id = ?", (entry_id,)
    )


def select_entries(tenant: str, entry_ids: Sequence[str]) -> Statement:
    """Some entries by their ids, in no order."""
    places, args = in_list(entry_ids)
    text = f"SELECT {_COLUMNS} FROM list_entry WHERE tenant = ? AND id IN ({places})"
    return in_pieces(scoped(LIST_ENTRY, tenant, text, args))


def select_by_value(tenant: str, entry_type: EntryType, value: str, now_ms: int) -> Statement:
    """The live entries of one value, at most one for each list."""
    # Two rows are sorted sooner than an index is read in that order, which SQLite would do.
    return scoped(
        LIST_ENTRY,
        tenant,
        f"SELECT {_COLUMNS} FROM list_entry WHERE tenant = ? AND type = ? AND value = ? AND {_LIVE} "
        "ORDER BY id || ''",
        (entry_type.value, value, now_ms),
    )


def select_by_values(tenant: str, entry_type: EntryType, values: Sequence[str], now_ms: int) -> Statement:
    """The live entries of some values of one type."""
    places, args = in_list(values)
    return scoped(
        LIST_ENTRY,
        tenant,
        f"SELECT {_COLUMNS} FROM list_entry WHERE tenant = ? AND type = ? AND value IN ({places}) "
        f"AND {_LIVE} ORDER BY id || ''",
        (entry_type.value, *args, now_ms),
    )


def select_all(after: str, limit: int) -> Statement:
    """The entries of every tenant behind an id, in the order of ids, for the mirror."""
    return in_pieces(
        everyone(
            LIST_ENTRY, f"SELECT {_COLUMNS} FROM list_entry WHERE id > ? ORDER BY id LIMIT ?", (after, limit)
        )
    )


def entry_of(row: Row) -> ListEntry:
    """Make an entry of a row."""
    return ListEntry(
        id=row[0],
        tenant=row[1],
        type=EntryType(row[2]),
        value=row[3],
        list_type=ListType(row[4]),
        reason=row[5],
        expires_at_ms=row[6],
        created_at_ms=row[7],
        updated_at_ms=row[8],
    )


class Filter:
    """The live entries of a tenant that a page of the list endpoint asks for. Moments are milliseconds."""

    def __init__(
        self,
        tenant: str,
        now_ms: int,
        entry_type: EntryType | None,
        list_type: ListType | None,
        from_ms: int | None,
        to_ms: int | None,
    ) -> None:
        self._tenant = tenant
        self._args: list[Any] = [now_ms]
        self._where = f"tenant = ? AND {_LIVE}"
        self._narrow("type = ?", entry_type and entry_type.value)
        self._narrow("list_type = ?", list_type and list_type.value)
        self._narrow("created_at_ms >= ?", from_ms)
        self._narrow("created_at_ms < ?", to_ms)

    def _narrow(self, condition: str, value: Any) -> None:
        if value is not None:
            self._where += f" AND {condition}"
            self._args.append(value)

    def count(self) -> Statement:
        """How many entries there are in all."""
        return scoped(
            LIST_ENTRY, self._tenant, f"SELECT COUNT(*) FROM list_entry WHERE {self._where}", self._args
        )

    def page(self, limit: int, offset: int, last: str | None, *, descending: bool) -> Statement:
        """One page, by creation. Ids sort by it; `last` is the last id of the page before."""
        where, args = self._where, list(self._args)
        beyond, order = ("<", "DESC") if descending else (">", "ASC")
        if last is not None:
            where += f" AND id {beyond} ?"
            args.append(last)
        return scoped(
            LIST_ENTRY,
            self._tenant,
            f"SELECT {_COLUMNS} FROM list_entry WHERE {where} ORDER BY id {order} LIMIT ? OFFSET ?",
            [*args, limit, offset],
        )
