"""What the store remembers for the history: counts written with each decision, columns laid out behind."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from vettance.db.engine import Statement, everyone, in_list, insert, scoped
from vettance.db.log_walk import END, walk_log
from vettance.db.tables import CHUNK, CHUNK_COLUMN, DECISION, ROLLUP, ROSTER, Insert
from vettance.decisions.decision import Outcome
from vettance.decisions.searchable_fields import FIELD_OF_COLUMN, REASONS, entity_sql
from vettance.decisions.sql import DAY_S, EVENTS, LABELLED
from vettance.history.result_page import Order
from vettance.history.search_criteria import FieldCondition, SearchCriteria
from vettance.history.segment import COUNTED_ENTITIES, OUTCOMES, ROW_COLUMNS, TERM, Array, Chunk

#: What the codes of feedback begin with, and the first text behind all that do.
_LABELLED: Final = (LABELLED, LABELLED[:-1] + chr(ord(LABELLED[-1]) + 1))


#: A part of the rollup: the width of its rows, its first start and its end (exclusive), all in seconds.
Part = tuple[int, int, int]


def select_counts(tenant: str, parts: Sequence[Part], bucket_s: int) -> Statement:
    """(bucket, evaluated, review, block, score sum) over parts of the rollup, by buckets of a width."""
    one = (
        "SELECT start_s - start_s % ? AS bucket_s, evaluated, review, block, score_sum FROM rollup "
        "WHERE tenant = ? AND width_s = ? AND start_s >= ? AND start_s < ? AND code = ?"
    )
    args: list[Any] = []
    for part in parts:
        args += (bucket_s, tenant, *part, EVENTS)
    return Statement(
        "SELECT bucket_s, SUM(evaluated), SUM(review), SUM(block), SUM(score_sum) FROM ("
        + " UNION ALL ".join([one] * len(parts))
        + ") AS part GROUP BY bucket_s ORDER BY bucket_s",
        args,
        tenant=tenant,
        tables=ROLLUP,
    )


def select_codes(tenant: str, parts: Sequence[Part]) -> Statement:
    """(code, evaluated) over parts of the rollup."""
    return _by_code(
        tenant, parts, "SUM(evaluated)", "code > ? AND (code < ? OR code >= ?)", (EVENTS, *_LABELLED)
    )


def select_labels(tenant: str, parts: Sequence[Part]) -> Statement:
    """(code, all, review, block) of the feedback that is counted in parts of the rollup."""
    counts = "SUM(evaluated), SUM(review), SUM(block)"
    return _by_code(tenant, parts, counts, "code >= ? AND code < ?", _LABELLED)


def _by_code(tenant: str, parts: Sequence[Part], counts: str, where: str, wanted: Sequence[str]) -> Statement:
    one = (
        "SELECT code, evaluated, review, block FROM rollup "
        f"WHERE tenant = ? AND width_s = ? AND start_s >= ? AND start_s < ? AND {where}"
    )
    args: list[Any] = []
    for part in parts:
        args += (tenant, *part, *wanted)
    return Statement(
        f"SELECT code, {counts} FROM (" + " UNION ALL ".join([one] * len(parts)) + ") AS part GROUP BY code",
        args,
        tenant=tenant,
        tables=ROLLUP,
    )


def select_first_day(tenant: str) -> Statement:
    """The first day that the rollup knows of, NULL when there is none."""
    return scoped(ROLLUP, tenant, f"SELECT MIN(start_s) FROM rollup WHERE tenant = ? AND width_s = {DAY_S}")


_ROW: Final = ", ".join(ROW_COLUMNS)


def select_tail_keys(tenant: str, after: int, wanted: SearchCriteria, order: Order) -> Statement:
    """(seqs, keys) of the decisions after a place in the log that a list asks for, and what it sorts them by.

    Each is one text with a number for each decision, the same order in both; NULL where there is none. Rows
    of their own would be thousands of small objects for every page.
    """
    where, args = _conditions(wanted)
    columns = ("seq", _KEYS.get(order, "0"))

    def ask(packed: str) -> Statement:
        what = ", ".join(packed.format(column) for column in columns)
        return scoped(
            DECISION,
            tenant,
            f"SELECT {what} FROM decision WHERE tenant = ? AND seq > ?{where}",
            (after, *args),
        )

    return ask("group_concat({})")._replace(postgres=ask("string_agg(CAST({} AS TEXT), ',')"))


def select_newer_keys(tenant: str, after: int, from_ms: int, to_ms: int) -> Statement:
    """(customer, device) of the decisions after a place in the log, each pair once."""
    return scoped(
        DECISION,
        tenant,
        f"SELECT DISTINCT {', '.join(map(entity_sql, COUNTED_ENTITIES))} FROM decision "
        "WHERE tenant = ? AND seq > ? AND occurred_at_ms >= ? AND occurred_at_ms < ?",
        (after, from_ms, to_ms),
    )


def select_tail(tenant: str, after: int, wanted: SearchCriteria, limit: int) -> Statement:
    """The next few decisions after a place in the log that match the filters of a list, not its search."""
    return _span(tenant, after, END, limit, *_conditions(wanted))


def _span(
    tenant: str, after: int, last: int, limit: int, where: str = "", args: Sequence[Any] = ()
) -> Statement:
    """The next few decisions beyond a place in the log, none beyond the place `last`."""
    text = f"SELECT {_ROW} FROM decision WHERE {{places}}{where} {{order}} LIMIT ?"
    return walk_log(DECISION, tenant, text, first=after + 1, last=last, rest=(*args, limit))


def count_newer(tenant: str, after: int, from_ms: int, to_ms: int, bucket_s: int) -> Statement:
    """(bucket, codes, evaluated, review, block, score sum) of the decisions after a place in the log."""
    return scoped(
        DECISION,
        tenant,
        "WITH newer AS (SELECT occurred_at_ms / 1000 AS at_s, reasons, decision, score FROM decision "
        "WHERE tenant = ? AND seq > ? AND occurred_at_ms >= ? AND occurred_at_ms < ?) "
        "SELECT at_s - at_s % ? AS bucket_s, reasons, COUNT(*), "
        "SUM(CASE WHEN decision = ? THEN 1 ELSE 0 END), SUM(CASE WHEN decision = ? THEN 1 ELSE 0 END), "
        "CAST(SUM(score) AS BIGINT) FROM newer GROUP BY 1, reasons",
        (after, from_ms, to_ms, bucket_s, Outcome.REVIEW.value, Outcome.BLOCK.value),
    )


def select_newer_of(tenant: str, after: int, entities: Mapping[str, str]) -> Statement:
    """The decisions after a place in the log that touch any of some entities (kind → value)."""
    either = " OR ".join(f"{entity_sql(kind)} = ?" for kind in entities) or "1 = 0"
    return _span(tenant, after, END, END, f" AND ({either})", list(entities.values()))


def select_newer_of_any(tenant: str, after: int, entities: Sequence[tuple[str, str]]) -> Statement:
    """The same for entities of which several are of one kind: pairs of kind and value."""
    values: dict[str, list[str]] = {}
    for kind, value in entities:
        values.setdefault(kind, []).append(value)
    conditions, args = [], []
    for kind, wanted in values.items():
        places, given = in_list(wanted)
        conditions.append(f"{entity_sql(kind)} IN ({places})")
        args += given
    either = " OR ".join(conditions) or "1 = 0"
    return _span(tenant, after, END, END, f" AND ({either})", args)


def select_span(tenant: str, after: int, limit: int, last: int = END) -> Statement:
    """The next few decisions after a place in the log, none beyond the place `last`."""
    return _span(tenant, after, last, limit)


def count_after(tenant: str, after: int, last: int = END) -> Statement:
    """How many decisions come after a place in the log, none beyond the place `last`."""
    text = "SELECT COUNT(*) FROM decision WHERE {places}"
    return walk_log(DECISION, tenant, text, first=after + 1, last=last)


def select_end() -> Statement:
    """(place,) where the log of all tenants ends now."""
    return everyone(DECISION, "SELECT COALESCE(MAX(seq), 0) FROM decision")


def count_new(after: int) -> Statement:
    """(tenant, count, place of the last) of the next decisions beyond a place in the log of all tenants."""
    return everyone(
        DECISION,
        "SELECT tenant, COUNT(*), MAX(seq) FROM (SELECT tenant, seq FROM decision WHERE seq > ? "
        "ORDER BY seq LIMIT 10000) AS fresh GROUP BY tenant",
        (after,),
    )


#: The codes of a decision are one text: without the code that is asked for it is another.
_HAS_REASON: Final = "replace(' ' || reasons || ' ', ?, '') <> ' ' || reasons || ' '"


def _conditions(wanted: SearchCriteria) -> tuple[str, list[Any]]:
    asked = list(wanted.conditions)
    if wanted.from_ms is not None:
        asked.append(FieldCondition(((wanted.moment, wanted.from_ms),), ">="))
    if wanted.to_ms is not None:
        asked.append(FieldCondition(((wanted.moment, wanted.to_ms),), "<"))
    where, values = "", []
    for one in asked:
        either = [_comparison(column, one.comparison, value) for column, value in one.choices]
        where += f" AND ({' OR '.join(text for text, _ in either)})"
        values += [value for _, value in either]
    return where, values


def _comparison(column: str, comparison: str, value: Any) -> tuple[str, Any]:
    return (_HAS_REASON, f" {value} ") if column == REASONS else (f"{column} {comparison} ?", value)


#: What a list is sorted by, as a column of `chunk_column`.
ORDER_COLUMNS: Final = {
    Order.RECEIVED: "received_at_ms",
    Order.SCORE: "score",
    Order.OUTCOME: "verdict",
}

#: What a decision in no chunk is sorted by.
_KEYS: Final = {
    Order.RECEIVED: "received_at_ms",
    Order.SCORE: "score",
    Order.OUTCOME: "CASE decision "
    + " ".join(f"WHEN '{outcome.value}' THEN {place}" for place, outcome in enumerate(OUTCOMES))
    + " END",
}

_CHUNK: Final = (
    "id, first_seq, size, evaluated_min_ms, evaluated_max_ms, received_min_ms, received_max_ms, "
    "occurred_min_ms, occurred_max_ms"
)


def select_chunks(tenant: str) -> Statement:
    """Every chunk of a tenant, oldest first."""
    return scoped(CHUNK, tenant, f"SELECT {_CHUNK} FROM chunk WHERE tenant = ? ORDER BY id")


def select_last_compacted(tenant: str) -> Statement:
    """The place in the log up to which a tenant's decisions are in chunks; NULL when none are."""
    return scoped(CHUNK, tenant, "SELECT MAX(id) FROM chunk WHERE tenant = ?")


_INSERT_CHUNK: Final = Insert(CHUNK, f"tenant, {_CHUNK}")
_INSERT_COLUMN: Final = Insert(CHUNK_COLUMN, "chunk, name, data")


def insert_chunk(tenant: str, chunk: Chunk, columns: Mapping[str, Array]) -> list[Statement]:
    """Store a chunk; `Clash` when another process has stored it."""
    statements = [insert(_INSERT_CHUNK, tenant, chunk)]
    statements += [
        insert(_INSERT_COLUMN, tenant, (chunk.id, name, column.tobytes())) for name, column in columns.items()
    ]
    return statements


def delete_chunk(tenant: str, chunk_id: int) -> Statement:
    """Remove a chunk with its columns, before it is laid out anew."""
    return scoped(CHUNK, tenant, "DELETE FROM chunk WHERE tenant = ? AND id = ?", (chunk_id,))


def select_column(tenant: str, name: str, after: int, through: int, limit: int) -> Statement:
    """(chunk, size, data) of one column, for the next chunks in order.

    `data` is NULL in chunks from before there was a column of this field.
    """
    join = "LEFT JOIN" if name in FIELD_OF_COLUMN else "JOIN"
    return Statement(
        "SELECT chunk.id, chunk.size, chunk_column.data FROM chunk "
        f"{join} chunk_column ON chunk_column.chunk = chunk.id AND chunk_column.name = ? "
        "WHERE chunk.tenant = ? AND chunk.id > ? AND chunk.id <= ? ORDER BY chunk.id LIMIT ?",
        (name, tenant, after, through, limit),
        tenant=tenant,
        tables=CHUNK.reading(CHUNK_COLUMN),
    )


def select_parts(tenant: str, names: Sequence[str], chunks: Sequence[int]) -> Statement:
    """(chunk, size, name, data) of some columns of some chunks; one row of NULLs for one that has none."""
    (numbers, chunk_args), (texts, name_args) = in_list(chunks), in_list(names)
    return Statement(
        "SELECT chunk.id, chunk.size, chunk_column.name, chunk_column.data FROM chunk "
        f"LEFT JOIN chunk_column ON chunk_column.chunk = chunk.id AND chunk_column.name IN ({texts}) "
        f"WHERE chunk.tenant = ? AND chunk.id IN ({numbers})",
        (*name_args, tenant, *chunk_args),
        tenant=tenant,
        tables=CHUNK.reading(CHUNK_COLUMN),
    )


def select_roster(tenant: str, first_day_s: int, end_day_s: int) -> Statement:
    """(kind, terms) of whole days."""
    return scoped(
        ROSTER,
        tenant,
        "SELECT kind, terms FROM roster WHERE tenant = ? AND day_s >= ? AND day_s < ?",
        (first_day_s, end_day_s),
    )


def select_roster_sizes(tenant: str, first_day_s: int, end_day_s: int) -> Statement:
    """(kind, day, bytes of terms) of whole days, without reading the terms."""
    return scoped(
        ROSTER,
        tenant,
        "SELECT kind, day_s, LENGTH(terms) FROM roster WHERE tenant = ? AND day_s >= ? AND day_s < ? "
        "ORDER BY kind, day_s",
        (first_day_s, end_day_s),
    )


def select_roster_day(tenant: str, day_s: int) -> Statement:
    """(kind, terms) of one day."""
    return select_roster(tenant, day_s, day_s + 1)


_SAVE_ROSTER: Final = Insert(
    ROSTER, "tenant, kind, day_s, terms", key="tenant, kind, day_s", replaces="terms"
)


def save_roster(tenant: str, kind: str, day_s: int, terms: Array) -> Statement:
    """Store who was seen on a day, as numbers of terms, in place of what was known of it."""
    return insert(_SAVE_ROSTER, tenant, (kind, day_s, terms.astype(TERM).tobytes()))
