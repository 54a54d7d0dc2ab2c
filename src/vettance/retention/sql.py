"""What is removed from the store, and rewritten in it."""

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from vettance.aml.sql import AREA as AML_AREA
from vettance.db.engine import (
    EVERYBODY,
    OF_TENANT,
    Row,
    Statement,
    bounded_key,
    everyone,
    in_list,
    in_pieces,
    scoped,
)
from vettance.db.tables import (
    AML_CASE_COUNT,
    AML_SUBJECT,
    ATTEMPT,
    CHANGE,
    CHUNK,
    DECISION,
    DELIVERY,
    EVENT,
    FEEDBACK,
    LABEL,
    REVIEW,
    ROLLUP,
    TERM,
    TERM_EPOCH,
    table_of,
)
from vettance.decisions.searchable_fields import COLUMNS, Texts, by_column
from vettance.outbox import remove_deliveries
from vettance.retention.stored_texts import TextColumns
from vettance.tenants.sql import DELETED, PRUNED, note_change

# Rows removed in one commit: some milliseconds of the writer, so that requests hardly notice.
STEP: Final = 500


class DataClass(NamedTuple):
    """One class of data, and which of its rows are older than a moment (Unix milliseconds): `old`.

    Where no index leads to old rows, they are looked for in the order of `seq`; `made` is the column that
    grows with it, at or after whose moment nothing is old.
    """

    name: str
    table: str
    old: str
    made: str | None = None


#: What the change table calls the beginning and the end of an erasure; its subject stands for the customer.
BEGUN: Final = "erasing"
DONE: Final = "erased"
#: That AML records were rewritten too, whose memory is one of its own.
DONE_AML: Final = "erased_aml"
_KEPT_CHANGES: Final = ", ".join(f"'{area}'" for area in (DELETED, BEGUN, DONE, DONE_AML, AML_AREA))

#: Classes that are removed row by row; events and their decisions go by places in the log.
CLASSES: Final = (
    DataClass("jobs", "job", "settled_at_ms IS NOT NULL AND settled_at_ms < ?"),
    DataClass("stream_messages", "stream_message", "accepted_at_ms < ?", "accepted_at_ms"),
    # The newest stays: the embedded store would give its number again, which deliverers have read past.
    DataClass(
        "deliveries",
        "delivery",
        "state <> 'pending' AND settled_at_ms < ? AND seq < (SELECT MAX(seq) FROM delivery)",
        "created_at_ms",
    ),
    # Processes read them within a second. Those of some areas are asked about later, and are few.
    DataClass("changes", "change", f"at_ms < ? AND area NOT IN ({_KEPT_CHANGES})", "at_ms"),
    # What alerted belongs to its case, which the law has kept.
    DataClass("screenings", "aml_screening", "case_id IS NULL AND created_at_ms < ?", "created_at_ms"),
)
#: Counts, which go by tenants.
STATISTICS: Final = "statistics"
#: Rows looked at in one read, of which the old ones are removed.
LOOKED_AT: Final = 2_000


def count_old(one: DataClass, before: int) -> Statement:
    """How many rows of a class are too old."""
    return everyone(table_of(one.table), f"SELECT COUNT(*) FROM {one.table} WHERE {one.old}", (before,))


def remove_indexed(one: DataClass, before: int) -> Statement:
    """Remove some rows of a class that an index leads to; tells how many."""
    some = f"SELECT seq FROM {one.table} WHERE {one.old} LIMIT {STEP}"
    return everyone(table_of(one.table), f"DELETE FROM {one.table} WHERE seq IN ({some})", (before,))


def select_looked_at(one: DataClass, after: int, before: int) -> Statement:
    """(seq, whether it is old, whether later ones may be) of the next rows of a class behind a place."""
    return everyone(
        table_of(one.table),
        f"SELECT seq, {one.old}, {one.made} < ? FROM {one.table} WHERE seq > ? "
        f"ORDER BY seq LIMIT {LOOKED_AT}",
        (before, before, after),
    )


def remove_found(one: DataClass, seqs: Sequence[int], before: int, now_ms: int) -> list[Statement]:
    """Remove those of some rows that are still old; the last statement tells how many."""
    places, args = in_list(seqs)
    found = f"seq IN ({places}) AND {one.old}"
    if one.table == "delivery":
        return remove_deliveries(f"SELECT seq FROM delivery WHERE {found}", (*args, before))
    if one.table == "change":
        # A process that has not read them learns by this that it has missed something.
        mark = note_change(PRUNED, EVERYBODY, f"{seqs[-1]}", now_ms)
        return [mark, everyone(CHANGE, f"DELETE FROM change WHERE {found}", (*args, before))]
    return [everyone(table_of(one.table), f"DELETE FROM {one.table} WHERE {found}", (*args, before))]


def count_old_statistics(tenant: str, before_s: int) -> Statement:
    """How many counts of a tenant are too old."""
    return scoped(ROLLUP, tenant, "SELECT COUNT(*) FROM rollup WHERE tenant = ? AND start_s < ?", (before_s,))


def remove_old_statistics(tenant: str, width_s: int, before_s: int) -> Statement:
    """Remove some counts of a tenant over spans of one width that are too old; tells how many."""
    keys = "tenant, width_s, start_s, code"
    some = (
        f"SELECT {keys} FROM rollup WHERE tenant = ? AND width_s = ? AND start_s < ? "
        f"ORDER BY start_s, code LIMIT {STEP}"
    )
    return scoped(ROLLUP, tenant, f"DELETE FROM rollup WHERE ({keys}) IN ({some})", (width_s, before_s))


def select_newest() -> Statement:
    """(seq,) of the newest event of the log, of any tenant, or null.

    It stays, so that the embedded store gives no later event its place again.
    """
    return everyone(DECISION, "SELECT MAX(seq) FROM decision")


def select_oldest(tenant: str, after: int, before: int, limit: int) -> Statement:
    """(seq, id, evaluated_at_ms) of the oldest events of a tenant between two places, both exclusive."""
    return scoped(
        DECISION,
        tenant,
        "SELECT seq, id, evaluated_at_ms FROM decision WHERE tenant = ? AND seq > ? AND seq < ? "
        "ORDER BY seq LIMIT ?",
        (after, before, limit),
    )


def remove_events(tenant: str, ids: Sequence[str]) -> list[Statement]:
    """Remove some events with their decisions and their feedback."""
    places, args = in_list(ids)
    return [
        scoped(table, tenant, f"DELETE FROM {table} WHERE {whose} AND {column} IN ({places})", args)
        for table, whose, column in (
            (FEEDBACK, "tenant = ?", "target"),
            (LABEL, "tenant = ?", "event"),
            (REVIEW, "tenant = ?", "decision"),
            (DECISION, OF_TENANT, "id"),
            (EVENT, OF_TENANT, "id"),
        )
    ]


def remove_chunks(tenant: str, through: int) -> Statement:
    """Remove the chunks of a tenant whose decisions are all at or before a place in the log."""
    return scoped(CHUNK, tenant, "DELETE FROM chunk WHERE tenant = ? AND id <= ?", (through,))


def select_next_terms(tenant: str, after: Any, limit: int) -> Statement:
    """(id, value, fields, place) of the next terms of a tenant behind a place; None is before them all.

    They come as the index has them in which each text of a tenant is once: by the text, or by its digest.
    """
    text = "SELECT id, value, fields, {0} FROM term WHERE tenant = ? AND {0} > ? ORDER BY {0} LIMIT ?"
    by_digest = scoped(TERM, tenant, text.format("value_digest"), (after or b"", limit))
    return scoped(TERM, tenant, text.format("value"), (after or "", limit))._replace(postgres=by_digest)


def remove_term(tenant: str, term_id: int) -> Statement:
    """Remove a term that nothing refers to."""
    return scoped(TERM, tenant, "DELETE FROM term WHERE tenant = ? AND id = ?", (term_id,))


def raise_epoch(tenant: str, epoch: int, newest_chunk: int) -> Statement:
    """Have every compaction that is under way begin again.

    `Lost` when another one was stored since `epoch` and the tenant's newest chunk were read.
    """
    return Statement(
        "UPDATE term_epoch SET epoch = epoch + 1 WHERE id = 1 AND epoch = ? "
        "AND (SELECT COALESCE(MAX(id), 0) FROM chunk WHERE tenant = ?) = ?",
        (epoch, tenant, newest_chunk),
        rows=1,
        tenant=tenant,
        tables=TERM_EPOCH.reading(CHUNK),
    )


_NAMED: Final = (
    "SELECT decision.seq, decision.id, event.sent, decision.record, event.signals, "
    f"{', '.join(f'decision.{name}' for name in COLUMNS)} FROM decision "
)
_JOINED: Final = "JOIN event ON event.id = decision.id "
#: Event by event: PostgreSQL would rather read a log of some hundred thousand events for each piece of it.
_JOINED_ONE_BY_ONE: Final = (
    "CROSS JOIN LATERAL (SELECT sent, signals FROM event WHERE event.id = decision.id OFFSET 0) AS event "
)


def _named(tenant: str, where: str, args: Sequence[Any]) -> Statement:
    asked = scoped(DECISION.reading(EVENT), tenant, f"{_NAMED}{_JOINED}WHERE {where}", args)
    one_by_one = in_pieces(asked._replace(sql=f"{_NAMED}{_JOINED_ONE_BY_ONE}WHERE {where}"))
    return in_pieces(asked)._replace(postgres=one_by_one)


def select_events(tenant: str, seqs: Sequence[int]) -> Statement:
    """(place, and what `NamedEvent` has) of some events by their places, in any order."""
    places, args = in_list(seqs)
    return _named(tenant, f"decision.tenant = ? AND decision.seq IN ({places})", args)


def select_log(tenant: str, after: int) -> Statement:
    """The same of the next events behind a place of the log."""
    where = f"decision.tenant = ? AND decision.seq > ? ORDER BY decision.seq LIMIT {STEP}"
    return _named(tenant, where, (after,))


def select_customers(tenant: str, after: int) -> Statement:
    """(place, customer, e-mail address) of the next decisions behind a place of the log."""
    return in_pieces(
        scoped(
            DECISION,
            tenant,
            "SELECT seq, customer_id, email FROM decision WHERE tenant = ? AND seq > ? "
            f"ORDER BY seq LIMIT {10 * STEP}",
            (after,),
        )
    )


class NamedEvent(NamedTuple):
    """An event with everything in it that may name its customer; `texts` are those of `COLUMNS`."""

    id: str
    sent: bytes
    record: bytes
    signals: bytes | None
    texts: Texts

    @property
    def customer(self) -> tuple[str | None, str | None]:
        """The id and the e-mail address of its customer."""
        texts = by_column(self.texts)
        return texts["customer_id"], texts["email"]


def named_event_of(row: Row) -> NamedEvent:
    """Make an event of a row of `select_events` or `select_log`."""
    _, event_id, sent, record, signals, *texts = row
    return NamedEvent(event_id, sent, record, signals, tuple(texts))


def rewrite_event(tenant: str, event: NamedEvent) -> list[Statement]:
    """Store an event and its decision under their new names."""
    texts = ", ".join(f"{name} = ?" for name in COLUMNS)
    return [
        Statement(
            f"UPDATE decision SET {texts}, record = ? WHERE tenant = ? AND id = ?",
            (*event.texts, event.record, tenant, event.id),
            tenant=tenant,
            tables=DECISION,
        ),
        Statement(
            "UPDATE event SET sent = ?, signals = ? WHERE tenant = ? AND id = ?",
            (event.sent, event.signals, tenant, event.id),
            tenant=tenant,
            tables=EVENT,
        ),
    ]


def rename_term(tenant: str, term_id: int, value: str) -> Statement:
    """Give a term another text."""
    return Statement(
        "UPDATE term SET value = ?, folded = ? WHERE tenant = ? AND id = ?",
        (value, None if value.isascii() else value.casefold(), tenant, term_id),
        tenant=tenant,
        tables=TERM,
    )


#: How the rows of a tenant are found in tables without a column of that name.
_WHOSE: Final = {
    "attempt": "EXISTS (SELECT 1 FROM delivery WHERE seq = attempt.delivery AND delivery.tenant = ?)",
    "tenant": "id = ?",
}


#: Where SQLite has no index of a tenant's rows in the order of their keys, and would sort them all each time.
_UNORDERED: Final = ("delivery", "signal_batch")


def _whose(place: TextColumns) -> str:
    return _WHOSE.get(place.table, "tenant = ?")


def select_place(tenant: str, place: TextColumns, after: Sequence[Any]) -> Statement:
    """(keys, columns) of the next rows of a place, those behind the keys `after`."""
    keys = ", ".join(place.keys)
    text = (
        f"SELECT {keys}, {', '.join(place.columns)} FROM {place.table} WHERE {{}} "
        f"AND ({keys}) > ({', '.join('?' * len(place.keys))}) ORDER BY {keys} LIMIT {STEP}"
    )
    rows = scoped(table_of(place.table), tenant, text.format(_whose(place)), after)
    if place.table in _UNORDERED:
        rows = rows._replace(
            sql=text.format(OF_TENANT), postgres=scoped(table_of(place.table), tenant, rows.sql, after)
        )
    return in_pieces(rows)


def select_attempts(tenant: str, deliveries: Sequence[int]) -> Statement:
    """(delivery, number, answer) of the attempts of some deliveries; an answer has a kilobyte at most."""
    places, args = in_list(deliveries)
    whose = f"SELECT seq FROM delivery WHERE {OF_TENANT} AND seq IN ({places})"
    return scoped(
        ATTEMPT.reading(DELIVERY),
        tenant,
        f"SELECT delivery, number, answer FROM attempt WHERE delivery IN ({whose})",
        args,
    )


def rewrite_row(
    tenant: str, place: TextColumns, keys: Sequence[Any], changed: Mapping[str, Any]
) -> Statement:
    """Replace some columns of a row."""
    texts = ", ".join(f"{name} = ?" for name in changed)
    return Statement(
        f"UPDATE {place.table} SET {texts} WHERE {_whose(place)} AND {_row_of(place)}",
        (*changed.values(), tenant, *keys),
        tenant=tenant,
        tables=table_of(place.table),
    )


def remove_row(tenant: str, place: TextColumns, keys: Sequence[Any]) -> Statement:
    """Remove a row of a place."""
    return scoped(
        table_of(place.table),
        tenant,
        f"DELETE FROM {place.table} WHERE {_whose(place)} AND {_row_of(place)}",
        keys,
    )


def _row_of(place: TextColumns) -> str:
    return " AND ".join(f"{key} = ?" for key in place.keys)


def forget_subject(tenant: str, external_id: str) -> Statement:
    """Have a customer screened again no longer when a watchlist changes."""
    # Long ids are kept as digests; the embedded store has kept them as they are before.
    names = (external_id, bounded_key(external_id))
    return scoped(
        AML_SUBJECT, tenant, "DELETE FROM aml_subject WHERE tenant = ? AND external_id IN (?, ?)", names
    )


def remove_empty_counts(tenant: str) -> Statement:
    """Remove the counts of AML cases that are now 0, which still name an officer."""
    return scoped(AML_CASE_COUNT, tenant, "DELETE FROM aml_case_count WHERE tenant = ? AND cases = 0")


def select_erasure(tenant: str, subject: str) -> Statement:
    """(area, at_ms) of the newest thing noted of the erasures of a customer."""
    return scoped(
        CHANGE,
        tenant,
        f"SELECT area, at_ms FROM change WHERE tenant = ? AND subject = ? AND area IN ('{BEGUN}', '{DONE}') "
        "ORDER BY seq DESC LIMIT 1",
        (subject,),
    )
