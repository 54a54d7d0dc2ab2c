"""What the store remembers of decisions."""

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import msgspec

from vettance.db.engine import OF_TENANT, Row, Statement, everyone, in_list, in_pieces, insert, scoped
from vettance.db.log_walk import walk_log, walk_newest
from vettance.db.tables import DECISION, EVENT, ROLLUP, Insert
from vettance.decisions.decision import Decision, DecisionRecordData, Outcome
from vettance.decisions.searchable_fields import COLUMNS, ENTITIES, by_column, entity_sql, texts_of_event
from vettance.events.event import Event

MINUTE_S: Final = 60
DAY_S: Final = 86_400
EVENTS: Final = ""  # The code whose row counts all decisions.
#: What the code of a row begins with that counts feedback, with the label behind it; reasons have no colon.
LABELLED: Final = "label:"
#: The entities that events are looked through for; see `coverage`.
COVERED: Final = ("customer", "device", "ip", "session")

_encode_record = msgspec.json.Encoder().encode
_decode_record = msgspec.json.Decoder(DecisionRecordData).decode

#: What is read of a record that cannot be read: nothing but that. The row itself has the outcome.
DAMAGED: Final = DecisionRecordData(
    ruleset_version=-1,
    outcome=Outcome.ALLOW,
    score=0,
    level="low",
    facts=(),
    answers=(),
    inexact=0,
    fired=[],
    failed=[],
    lists=[],
    request_id="",
    processing_ms=0.0,
    unknown=[("record", "what was recorded of the decision is damaged")],
)

_INSERT_DECISION: Final = Insert(
    DECISION,
    "tenant, id, evaluated_at_ms, occurred_at_ms, event_category, decision, score, level, record, "
    f"received_at_ms, reasons, {', '.join(COLUMNS)}",
)


def insert_decision(
    tenant: str, event_id: str, event: Event, decision: Decision, record: DecisionRecordData, now_ms: int
) -> Statement:
    """Store the decision about an event of the same id."""
    return insert(
        _INSERT_DECISION,
        tenant,
        (
            event_id,
            now_ms,
            event.occurred_at_ms,
            event.category.value,
            decision.outcome.value,
            decision.score,
            decision.level,
            _encode_record(record),
            event.received_at_ms,
            " ".join([reason.code for reason in decision.reasons]),
            *texts_of_event(event),
        ),
    )


class StoredDecision(NamedTuple):
    """An event and its decision, read back. `sent` is the body as received; moments are Unix milliseconds.

    `signals` is what the browser had queued for the session when the event was decided, as JSON.
    """

    id: str
    source: str
    received_at_ms: int
    evaluated_at_ms: int
    sent: bytes
    record: DecisionRecordData
    entities: dict[str, str | None]  # what the event is linked by (`ENTITIES`), in canonical form
    signals: bytes | None


_BODIES: Final = ("event.sent", "event.signals")
_STORED: Final = (
    "event.id",
    "event.source",
    "event.received_at_ms",
    "decision.evaluated_at_ms",
    "decision.record",
    *_BODIES,
    *(entity_sql(kind, "decision") for kind in ENTITIES),
)


def select_decision(tenant: str, event_id: str) -> Statement:
    """One event with its decision."""
    return scoped(
        EVENT.reading(DECISION),
        tenant,
        f"SELECT {', '.join(_STORED)} FROM event JOIN decision ON decision.id = event.id "
        "WHERE event.tenant = ? AND event.id = ?",
        (event_id,),
    )


class ListedDecision(NamedTuple):
    """A stored decision with the texts of its fields, by their columns."""

    seq: int
    stored: StoredDecision
    texts: dict[str, Any]


def select_listed_decisions(tenant: str, seqs: Sequence[int], *, bodies: bool) -> Statement:
    """Some decisions by their places in the log, in any order; `sent` as well with `bodies`."""
    places, args = in_list(seqs)
    stored = [one if bodies or one not in _BODIES else "NULL" for one in _STORED]
    texts = [f"decision.{column}" for column in COLUMNS]
    return in_pieces(
        scoped(
            DECISION.reading(EVENT),
            tenant,
            f"SELECT decision.seq, {', '.join((*stored, *texts))} "
            "FROM decision JOIN event ON event.id = decision.id "
            f"WHERE decision.tenant = ? AND decision.seq IN ({places})",
            args,
        )
    )


def select_places(tenant: str, ids: Sequence[str]) -> Statement:
    """(id, place in the log) of some decisions."""
    places, args = in_list(ids)
    return scoped(
        DECISION, tenant, f"SELECT id, seq FROM decision WHERE {OF_TENANT} AND id IN ({places})", args
    )


def listed_decision_of(row: Row) -> ListedDecision:
    """Make a listed decision of a row of `select_listed_decisions`."""
    end = 1 + len(_STORED)
    return ListedDecision(row[0], stored_of(row[1:end]), by_column(tuple(row[end:])))


def stored_of(row: Row) -> StoredDecision:
    """Make a stored decision of a row of `select_decision`."""
    event_id, source, received_at_ms, evaluated_at_ms, record, sent, signals, *entities = row
    return StoredDecision(
        event_id,
        source,
        received_at_ms,
        evaluated_at_ms,
        sent or b"",
        _readable(record),
        dict(zip(ENTITIES, entities, strict=True)),
        signals,
    )


def select_decided_log(tenant: str, after: int, since_ms: int, limit: int) -> Statement:
    """The same with the record of each decision, the door its event came in by, and when it happened."""
    return in_pieces(
        scoped(
            EVENT.reading(DECISION),
            tenant,
            "SELECT event.seq, event.tenant, event.id, event.received_at_ms, event.sent, event.signals, "
            "decision.record, event.source, decision.occurred_at_ms "
            "FROM event JOIN decision ON decision.id = event.id "
            "WHERE event.tenant = ? AND event.seq > ? AND event.received_at_ms >= ? "
            "ORDER BY event.seq LIMIT ?",
            (after, since_ms, limit),
        )
    )


def select_record_beginnings(tenant: str, span: tuple[int, int], after: int, limit: int) -> Statement:
    """(beginning, place) of the next decisions of the log, a row for each beginning of their records.

    The beginning is the first bytes of a record, null of events outside of a span (Unix milliseconds, from
    and before); the place is that of its last decision among these.
    """
    text = (
        "SELECT beginning, MAX(seq) FROM (SELECT seq, CASE WHEN occurred_at_ms >= ? AND occurred_at_ms < ? "
        "THEN substr(record, 1, 12) END AS beginning FROM decision WHERE {places} {order} LIMIT ?) AS step "
        "GROUP BY beginning"
    )
    return walk_log(DECISION, tenant, text, first=after + 1, before=span, rest=(limit,))


def select_outcome(tenant: str, event_id: str) -> Statement:
    """(decision, score, level) of one decision, whatever is the matter with its record."""
    text = "SELECT decision, score, level FROM decision WHERE tenant = ? AND id = ?"
    return scoped(DECISION, tenant, text, (event_id,))


def select_counted(tenant: str, event_id: str) -> Statement:
    """(moment of the event, decision) by which one decision is counted."""
    text = "SELECT occurred_at_ms, decision FROM decision WHERE tenant = ? AND id = ?"
    return scoped(DECISION, tenant, text, (event_id,))


def _readable(stored: bytes) -> DecisionRecordData:
    try:
        return _decode_record(stored)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return DAMAGED


def record_of(stored: bytes) -> DecisionRecordData:
    """Read a record of the log."""
    return _decode_record(stored)


def select_last_evaluated() -> Statement:
    """When the newest decision of the log was made (Unix milliseconds)."""
    return everyone(DECISION, "SELECT evaluated_at_ms FROM decision ORDER BY seq DESC LIMIT 1")


def select_newest_sent(tenant: str, limit: int, bytes_max: int) -> Statement:
    """(category, one column for each of `COVERED`, body) of the newest events of a tenant, newest first.

    Bodies beyond so many bytes are left out.
    """
    text = (
        f"SELECT decision.event_category, {', '.join(entity_sql(kind, 'decision') for kind in COVERED)}, "
        f"CASE WHEN LENGTH(event.sent) <= {bytes_max:d} THEN event.sent END "
        "FROM decision JOIN event ON event.id = decision.id WHERE {places} {order} LIMIT ?"
    )
    tables = DECISION.reading(EVENT)
    return in_pieces(walk_newest(tables, tenant, text, limit, table=str(DECISION)))


_COUNT: Final = Insert(
    ROLLUP,
    "tenant, width_s, start_s, code, evaluated, review, block, score_sum",
    key="tenant, width_s, start_s, code",
    adds="evaluated, review, block, score_sum",
)


def count_decision(tenant: str, occurred_at_ms: int, decision: Decision) -> Statement:
    """Count a decision, and each of its reason codes, in the minute and the day of its event time."""
    at_s = occurred_at_ms // 1000
    minute, day = at_s - at_s % MINUTE_S, at_s - at_s % DAY_S
    review = int(decision.outcome is Outcome.REVIEW)
    block = int(decision.outcome is Outcome.BLOCK)
    score = decision.score
    args: list[str | int] = [MINUTE_S, minute, EVENTS, 1, review, block, score]
    args += (tenant, DAY_S, day, EVENTS, 1, review, block, score)
    for reason in decision.reasons:
        args += (tenant, MINUTE_S, minute, reason.code, 1, review, block, score)
        args += (tenant, DAY_S, day, reason.code, 1, review, block, score)
    return insert(_COUNT, tenant, args)


def count_label(tenant: str, occurred_at_ms: int, outcome: Outcome, label: str) -> Statement:
    """Count a piece of feedback in the minute and the day of the event that it is on, by its outcome."""
    at_s, code = occurred_at_ms // 1000, f"{LABELLED}{label}"
    counts = 1, int(outcome is Outcome.REVIEW), int(outcome is Outcome.BLOCK), 0
    args: list[str | int] = [MINUTE_S, at_s - at_s % MINUTE_S, code, *counts]
    args += (tenant, DAY_S, at_s - at_s % DAY_S, code, *counts)
    return insert(_COUNT, tenant, args)
