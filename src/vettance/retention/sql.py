"""What is removed from the store, and rewritten in it."""

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from vettance.db.engine import (
    EVERYBODY,
    Row,
    Statement,
    bounded_key,
    everyone,
    in_list,
    in_pieces,
    scoped,
)
from vettance.outbox import remove_deliveries
from vettance.retention.stored_texts import NAMING, TextColumns

# Rows removed in one commit: some milliseconds of the writer, so that requests hardly notice.
STEP: Final = 500


class Class(NamedTuple):
    """One class of data: how its rows are told to be old, and how a step removes some of them.

    `old` counts the rows older than a moment (Unix milliseconds, or seconds where `seconds` says so).
    """

    name: str
    table: str
    old: str
    seconds: bool = False


#: Classes that are removed row by row; events and their decisions go by places in the log.
CLASSES: Final = (
    Class("jobs", "job", "settled_at_ms IS NOT NULL AND settled_at_ms < ?"),
    # The newest stays: the embedded store would give its number again, which deliverers have read past.
    Class(
        "deliveries",
        "delivery",
        "state <> 'pending' AND settled_at_ms < ? AND seq < (SELECT MAX(seq) FROM delivery)",
    ),
    # What alerted belongs to its case, which the law has kept.
    Class("screenings", "aml_screening", "case_id IS NULL AND created_at_ms < ?"),
    Class("statistics", "rollup", "start_s < ?", seconds=True),
)
_KEYS: Final = {
    "job": "seq",
    "delivery": "seq",
    "aml_screening": "seq",
    "rollup": "tenant, width_s, start_s, code",
}


def count_old(one: Class, before: int) -> Statement:
    """How many rows of a class are too old."""
    return everyone(f"SELECT COUNT(*) FROM {one.table} WHERE {one.old}", (before,))


def remove_old(one: Class, before: int) -> list[Statement]:
    """Remove some rows of a class that are too old; the last statement tells how many."""
    keys = _KEYS[one.table]
    if one.table == "delivery":
        # All statements must mean the same rows, and only an order makes sure of that.
        return remove_deliveries(
            f"SELECT seq FROM delivery WHERE {one.old} ORDER BY seq LIMIT {STEP}", (before,)
        )
    some = f"SELECT {keys} FROM {one.table} WHERE {one.old} LIMIT {STEP}"
    return [everyone(f"DELETE FROM {one.table} WHERE ({keys}) IN ({some})", (before,))]


def select_newest() -> Statement:
    """(seq,) of the newest event of the log, whoever's it is, or null.

    It stays, so that the embedded store gives no later event its place again.
    """
    return everyone("SELECT MAX(seq) FROM decision")


def select_oldest(tenant: str, after: int, before: int, limit: int) -> Statement:
    """(seq, id, evaluated_at_ms) of the oldest events of a tenant between two places, both exclusive."""
    return scoped(
        tenant,
        "SELECT seq, id, evaluated_at_ms FROM decision WHERE tenant = ? AND seq > ? AND seq < ? "
        "ORDER BY seq LIMIT ?",
        (after, before, limit),
    )


def remove_events(tenant: str, ids: Sequence[str]) -> list[Statement]:
    """Remove some events with their decisions and their feedback."""
    places, args = in_list(ids)
    return [
        scoped(tenant, f"DELETE FROM {table} WHERE tenant = ? AND {column} IN ({places})", args)
        for table, column in (("feedback", "target"), ("decision", "id"), ("event", "id"))
    ]


def remove_chunks(tenant: str, through: int) -> Statement:
    """Remove the chunks of a tenant whose decisions all stand at or before a place in the log."""
    return scoped(tenant, "DELETE FROM chunk WHERE tenant = ? AND id <= ?", (through,))


def select_term_ids(tenant: str, after: int, limit: int) -> Statement:
    """(id, value, fields) of the next terms of a tenant."""
    return scoped(
        tenant,
        "SELECT id, value, fields FROM term WHERE tenant = ? AND id > ? ORDER BY id LIMIT ?",
        (after, limit),
    )


def remove_term(tenant: str, term_id: int) -> Statement:
    """Remove a term that nothing refers to."""
    return scoped(tenant, "DELETE FROM term WHERE tenant = ? AND id = ?", (term_id,))


def raise_epoch(tenant: str, epoch: int, newest_chunk: int) -> Statement:
    """Have every chunk that is being laid out now laid out anew.

    `Lost` when another one was stored since `epoch` and the tenant's newest chunk were looked at.
    """
    return Statement(
        "UPDATE term_epoch SET epoch = epoch + 1 WHERE id = 1 AND epoch = ? "
        "AND (SELECT COALESCE(MAX(id), 0) FROM chunk WHERE tenant = ?) = ?",
        (epoch, tenant, newest_chunk),
        rows=1,
        tenant=tenant,
    )


_NAMED: Final = (
    f"SELECT decision.seq, decision.id, {', '.join(f'decision.{name}' for name in NAMING)}, event.sent, "
    "decision.record, event.signals FROM decision JOIN event ON event.id = decision.id WHERE "
)


def select_events(tenant: str, seqs: Sequence[int]) -> Statement:
    """(place, and what `NamedEvent` has) of some events by their places, in any order."""
    places, args = in_list(seqs)
    return in_pieces(scoped(tenant, f"{_NAMED}decision.tenant = ? AND decision.seq IN ({places})", args))


def select_log(tenant: str, after: int) -> Statement:
    """The same of the next events behind a place of the log."""
    text = f"{_NAMED}decision.tenant = ? AND decision.seq > ? ORDER BY decision.seq LIMIT {STEP}"
    return in_pieces(scoped(tenant, text, (after,)))


def select_customers(tenant: str, after: int) -> Statement:
    """(place, customer, e-mail address) of the next decisions behind a place of the log."""
    return in_pieces(
        scoped(
            tenant,
            "SELECT seq, customer_id, email FROM decision WHERE tenant = ? AND seq > ? "
            f"ORDER BY seq LIMIT {10 * STEP}",
            (after,),
        )
    )


class NamedEvent(NamedTuple):
    """An event with everything in it that may name its customer; first what `NAMING` has, in its order."""

    id: str
    customer_id: str | None
    email: str | None
    device_id: str | None
    fingerprint: str | None
    session_id: str | None
    event_name: str
    country: str | None
    ip: str | None
    sent: bytes
    record: bytes
    signals: bytes | None


def rewrite_event(tenant: str, event: NamedEvent) -> list[Statement]:
    """Store an event and its decision with what they are named by now."""
    texts = ", ".join(f"{name} = ?" for name in NAMING)
    return [
        Statement(
            f"UPDATE decision SET {texts}, record = ? WHERE tenant = ? AND id = ?",
            (*event[1 : 1 + len(NAMING)], event.record, tenant, event.id),
            tenant=tenant,
        ),
        Statement(
            "UPDATE event SET sent = ?, signals = ? WHERE tenant = ? AND id = ?",
            (event.sent, event.signals, tenant, event.id),
            tenant=tenant,
        ),
    ]


def rename_term(tenant: str, term_id: int, value: str) -> Statement:
    """Give a term another text."""
    return Statement(
        "UPDATE term SET value = ?, folded = ? WHERE tenant = ? AND id = ?",
        (value, None if value.isascii() else value.casefold(), tenant, term_id),
        tenant=tenant,
    )


#: How the rows of a tenant are found in tables without a column of that name.
_WHOSE: Final = {"attempt": "delivery IN (SELECT seq FROM delivery WHERE tenant = ?)", "tenant": "id = ?"}


def _whose(place: TextColumns) -> str:
    return _WHOSE.get(place.table, "tenant = ?")


def select_place(tenant: str, place: TextColumns, after: Sequence[Any]) -> Statement:
    """(keys, columns) of the next rows of a place, those behind the keys `after`."""
    keys = ", ".join(place.keys)
    return in_pieces(
        scoped(
            tenant,
            f"SELECT {keys}, {', '.join(place.columns)} FROM {place.table} WHERE {_whose(place)} "
            f"AND ({keys}) > ({', '.join('?' * len(place.keys))}) ORDER BY {keys} LIMIT {STEP}",
            after,
        )
    )


def rewrite_row(
    tenant: str, place: TextColumns, keys: Sequence[Any], changed: Mapping[str, Any]
) -> Statement:
    """Store some columns of a row of a place anew."""
    texts = ", ".join(f"{name} = ?" for name in changed)
    return Statement(
        f"UPDATE {place.table} SET {texts} WHERE {_whose(place)} AND {_row_of(place)}",
        (*changed.values(), tenant, *keys),
        tenant=tenant,
    )


def remove_row(tenant: str, place: TextColumns, keys: Sequence[Any]) -> Statement:
    """Remove a row of a place."""
    return scoped(tenant, f"DELETE FROM {place.table} WHERE {_whose(place)} AND {_row_of(place)}", keys)


def _row_of(place: TextColumns) -> str:
    return " AND ".join(f"{key} = ?" for key in place.keys)


def forget_subject(tenant: str, external_id: str) -> Statement:
    """Have a customer screened again no longer when a watchlist changes."""
    # Long ids are kept as digests; the embedded store has kept them as they are before.
    names = (external_id, bounded_key(external_id))
    return scoped(tenant, "DELETE FROM aml_subject WHERE tenant = ? AND external_id IN (?, ?)", names)


def remove_empty_counts(tenant: str) -> Statement:
    """Remove the counts of AML cases that have come to nothing, which name an officer still."""
    return scoped(tenant, "DELETE FROM aml_case_count WHERE tenant = ? AND cases = 0")


#: What the change table calls the beginning and the end of an erasure; its subject stands for the customer.
BEGUN: Final = "erasing"
DONE: Final = "erased"
#: That AML records were rewritten too, whose memory is one of its own.
DONE_AML: Final = "erased_aml"


def select_erasure(tenant: str, subject: str) -> Statement:
    """(area, at_ms) of the newest thing noted of the erasures of a customer."""
    return scoped(
        tenant,
        f"SELECT area, at_ms FROM change WHERE tenant = ? AND subject = ? AND area IN ('{BEGUN}', '{DONE}') "
        "ORDER BY seq DESC LIMIT 1",
        (subject,),
    )


class Table(NamedTuple):
    """A table with rows of tenants, and the columns of its primary key."""

    name: str
    keys: tuple[str, ...]


def select_tables_of_tenants() -> Statement:
    """(table, column of its primary key) of every table with a column `tenant`, as the schema has it."""
    return everyone(
        "SELECT tables.name, columns.name FROM sqlite_master AS tables "
        "JOIN pragma_table_info(tables.name) AS columns ON columns.pk > 0 WHERE tables.type = 'table' "
        "AND EXISTS (SELECT 1 FROM pragma_table_info(tables.name) AS one WHERE one.name = 'tenant') "
        "ORDER BY tables.name, columns.pk"
    )._replace(
        postgres=everyone(
            "SELECT pg_class.relname::text, pg_attribute.attname::text FROM pg_class "
            "JOIN pg_index ON pg_index.indrelid = pg_class.oid AND pg_index.indisprimary "
            "CROSS JOIN LATERAL unnest(pg_index.indkey::int2[]) WITH ORDINALITY AS part (number, place) "
            "JOIN pg_attribute ON pg_attribute.attrelid = pg_class.oid AND pg_attribute.attnum = part.number "
            "WHERE pg_class.relkind IN ('r', 'p') AND NOT pg_class.relispartition "
            "AND pg_class.relnamespace = 'public'::regnamespace AND EXISTS ("
            "SELECT 1 FROM pg_attribute AS one WHERE one.attrelid = pg_class.oid AND one.attname = 'tenant' "
            "AND NOT one.attisdropped) ORDER BY 1, part.place"
        )
    )


def count_of_tenant(tenant: str, table: str) -> Statement:
    """How many rows of a table are a tenant's."""
    return scoped(tenant, f"SELECT COUNT(*) FROM {table} WHERE tenant = ?")


def remove_of_tenant(tenant: str, table: Table, limit: int) -> Statement:
    """Remove some rows of a tenant from a table."""
    keys = ", ".join(table.keys)
    text = f"SELECT {keys} FROM {table.name} WHERE tenant = ? LIMIT {limit}"
    return scoped(tenant, f"DELETE FROM {table.name} WHERE tenant = ? AND ({keys}) IN ({text})", (tenant,))


def select_log_of(tenant: str, limit: int) -> Statement:
    """(seq, id) of the oldest events in the log of a tenant."""
    return scoped(tenant, "SELECT seq, id FROM decision WHERE tenant = ? ORDER BY seq LIMIT ?", (limit,))


def remove_deliveries_of(tenant: str) -> list[Statement]:
    """Remove some deliveries of a tenant with their attempts; the last statement tells how many."""
    some = f"SELECT seq FROM delivery WHERE tenant = ? ORDER BY seq LIMIT {STEP}"
    return [
        scoped(tenant, f"DELETE FROM attempt WHERE delivery IN ({some})"),
        scoped(tenant, f"DELETE FROM delivery WHERE tenant = ? AND seq IN ({some})", (tenant,)),
    ]


def remove_terms_of(tenant: str, ids: Sequence[int]) -> Statement:
    """Remove some terms of a tenant."""
    places, args = in_list(ids)
    return scoped(tenant, f"DELETE FROM term WHERE tenant = ? AND id IN ({places})", args)


#: Where processes read on from the newest place they have seen, and name snapshots by what stands there.
PLACED: Final = ("event", "decision", "aml_event", "delivery")


def select_columns(table: str) -> Statement:
    """(column, whether it must have a value) of the texts of a table, where its places could be given again.

    PostgreSQL gives each number once, so there are none.
    """
    return Statement(
        "SELECT name, \"notnull\" FROM pragma_table_info(?) WHERE type IN ('TEXT', 'BLOB') "
        "AND name NOT IN ('id', 'tenant')",
        (table,),
        postgres=Statement("SELECT '', 0 WHERE ?::text IS NULL", (table,)),
    )


def empty_newest(tenant: str, table: str, columns: Sequence[Row]) -> list[Statement]:
    """Have the newest row of a table hold nothing but its place and id, if it is the tenant's.

    The embedded store would give the place again, which others have read past.
    """
    texts = "".join(f", {name} = {chr(39) * 2 if needed else 'NULL'}" for name, needed in columns)
    newest = f"(SELECT MAX(seq) FROM {table})"
    statements = [everyone(f"DELETE FROM {table} WHERE tenant = '' AND seq < {newest}")]
    if table == "delivery":
        mine = f"SELECT seq FROM delivery WHERE tenant = ? AND seq = {newest}"
        statements.append(scoped(tenant, f"DELETE FROM attempt WHERE delivery IN ({mine})"))
    changed = f"UPDATE {table} SET tenant = ''{texts} WHERE tenant = ? AND seq = {newest}"
    return [*statements, scoped(tenant, changed)._replace(tenant=EVERYBODY)]


def end_subscriptions(tenant: str) -> list[Statement]:
    """Remove the subscriptions of a tenant; nothing is delivered for it any more."""
    return [scoped(tenant, f"DELETE FROM {table} WHERE tenant = ?") for table in ("interest", "subscription")]


def remove_failing_of(tenant: str) -> Statement:
    """Forget what has failed for a tenant."""
    return everyone("DELETE FROM failing_work WHERE subject LIKE ?", (f"%{tenant}%",))


def remove_tenant(tenant: str) -> Statement:
    """Remove the tenant itself."""
    return Statement("DELETE FROM tenant WHERE id = ?", (tenant,), tenant=tenant)
