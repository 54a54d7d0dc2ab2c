"""What the store is asked for files: spans of the log, and how far an import has come."""

from typing import Any, Final, NamedTuple

from vettance.db.engine import Row, Statement, everyone, in_pieces, insert, scoped
from vettance.db.tables import CHUNK, DECISION, EVENT, FEEDBACK, IMPORT_MARK, IMPORT_RUN, JOB, Insert
from vettance.decisions.searchable_fields import COLUMNS, Texts


class ExportedEvent(NamedTuple):
    """One event with its decision, as it is exported; `texts` are those of `COLUMNS`."""

    seq: int
    id: str
    source: str
    received_at_ms: int
    evaluated_at_ms: int
    occurred_at_ms: int
    event_category: str
    decision: str
    score: int
    level: str
    reasons: str
    record: bytes
    sent: bytes
    texts: Texts


_EXPORTED: Final = (
    "decision.seq, decision.id, event.source, decision.received_at_ms, decision.evaluated_at_ms, "
    "decision.occurred_at_ms, decision.event_category, decision.decision, decision.score, decision.level, "
    f"decision.reasons, decision.record, event.sent, {', '.join(f'decision.{column}' for column in COLUMNS)}"
)


def select_exported(
    tenant: str, after: int, moment: str, from_ms: int | None, to_ms: int | None, limit: int
) -> Statement:
    """The next events of a tenant in the order of the log; `moment` is the column of `from` and `to`."""
    where, args = "", [after]
    for condition, value in ((f"decision.{moment} >= ?", from_ms), (f"decision.{moment} < ?", to_ms)):
        if value is not None:
            where += f" AND {condition}"
            args.append(value)
    return in_pieces(
        scoped(
            DECISION.reading(EVENT),
            tenant,
            f"SELECT {_EXPORTED} FROM decision JOIN event ON event.id = decision.id "
            f"WHERE decision.tenant = ? AND decision.seq > ?{where} ORDER BY decision.seq LIMIT ?",
            (*args, limit),
        )
    )


def exported_of(row: Row) -> ExportedEvent:
    """Make an exported event of a row."""
    texts = len(row) - len(COLUMNS)
    return ExportedEvent._make((*row[:texts], tuple(row[texts:])))


def select_start(tenant: str, moment: str, from_ms: int) -> Statement:
    """The place in the log before which there is nothing of a span, as far as whole chunks show."""
    column = moment.removesuffix("_at_ms") + "_max_ms"
    return scoped(
        CHUNK,
        tenant,
        "SELECT COALESCE(MAX(id), 0) FROM chunk WHERE tenant = ? AND id < COALESCE("
        f"(SELECT MIN(id) FROM chunk AS later WHERE later.tenant = chunk.tenant AND later.{column} >= ?), "
        "9223372036854775807)",
        (from_ms,),
    )


def select_labels(tenant: str, first: str, last: str) -> Statement:
    """(event, label) of the feedback on the events of a span of ids, oldest first."""
    return scoped(
        FEEDBACK,
        tenant,
        "SELECT target, label FROM feedback WHERE tenant = ? AND target >= ? AND target <= ? ORDER BY id",
        (first, last),
    )


class ImportMark(NamedTuple):
    """How many lines of a file are done, and how many of them were accepted and refused."""

    lines: int = 0
    accepted: int = 0
    refused: int = 0


def select_import_mark(tenant: str, digest: str) -> Statement:
    """How far the import of a file (named by the SHA-256 of its content) has come."""
    return scoped(
        IMPORT_MARK,
        tenant,
        "SELECT lines, accepted, refused FROM import_mark WHERE tenant = ? AND digest = ?",
        (digest,),
    )


_INSERT_MARK: Final = Insert(IMPORT_MARK, "tenant, digest, lines, accepted, refused")


def move_import_mark(tenant: str, digest: str, before: ImportMark, after: ImportMark) -> Statement:
    """Note how far an import has come; `Lost` or `Clash` when another one of the same file is faster."""
    if before.lines == 0:
        return insert(_INSERT_MARK, tenant, (digest, *after))
    args: tuple[Any, ...] = (*after, tenant, digest, before.lines)
    return Statement(
        "UPDATE import_mark SET lines = ?, accepted = ?, refused = ? "
        "WHERE tenant = ? AND digest = ? AND lines = ?",
        args,
        rows=1,
        tenant=tenant,
        tables=IMPORT_MARK,
    )


#: Kinds of imported events, as the store names them.
FRAUD: Final = "fraud"
AML: Final = "aml"
#: The state of an import whose events are all decided. First its file is `reading`, then they are `waiting`.
DECIDED: Final = "decided"


_BEGIN_IMPORT: Final = Insert(IMPORT_RUN, "tenant, id, kind, state, begun_at_ms", key="tenant, id")


def begin_import(tenant: str, import_id: str, kind: str, now_ms: int) -> Statement:
    """Note that a file is being read; nothing changes where that is noted already."""
    return insert(_BEGIN_IMPORT, tenant, (import_id, kind, "reading", now_ms))


def release_import(tenant: str, import_id: str) -> Statement:
    """Have the events of a file decided that is read to its end; done again, it changes nothing."""
    queued = "FROM job WHERE tenant = ? AND import_id = ? AND state = 'queued'"
    return Statement(
        "UPDATE import_run SET state = 'waiting', "
        f"first_ms = (SELECT MIN(occurred_at_ms) {queued}), last_ms = (SELECT MAX(occurred_at_ms) {queued}) "
        "WHERE tenant = ? AND id = ? AND state = 'reading'",
        (tenant, import_id) * 3,
        tenant=tenant,
        tables=IMPORT_RUN.reading(JOB),
    )


def forget_import(tenant: str, digest: str, import_id: str) -> list[Statement]:
    """Forget a file of which no event was taken."""
    return [
        scoped(
            IMPORT_MARK,
            tenant,
            "DELETE FROM import_mark WHERE tenant = ? AND digest = ? AND accepted = 0",
            (digest,),
        ),
        scoped(
            IMPORT_RUN,
            tenant,
            "DELETE FROM import_run WHERE tenant = ? AND id = ? AND base IS NULL",
            (import_id,),
        ),
    ]


def forget_mark(tenant: str, digest: str, import_id: str) -> Statement:
    """Forget how far a file is done, unless it was read to its end."""
    return Statement(
        "DELETE FROM import_mark WHERE tenant = ? AND digest = ? "
        "AND EXISTS (SELECT 1 FROM import_run WHERE tenant = ? AND id = ? AND state = 'reading')",
        (tenant, digest, tenant, import_id),
        tenant=tenant,
        tables=IMPORT_MARK.reading(IMPORT_RUN),
    )


def select_unreleased(tenant: str, import_id: str, limit: int) -> Statement:
    """The places of events of a file that was not read to its end."""
    return Statement(
        "SELECT seq FROM job WHERE tenant = ? AND import_id = ? AND state = 'queued' "
        "AND EXISTS (SELECT 1 FROM import_run WHERE tenant = ? AND id = ? AND state = 'reading') LIMIT ?",
        (tenant, import_id, tenant, import_id, limit),
        tenant=tenant,
        tables=JOB.reading(IMPORT_RUN),
    )


def delete_unreleased(tenant: str, seq: int) -> Statement:
    """Drop one of them; nobody decides it meanwhile."""
    return scoped(JOB, tenant, "DELETE FROM job WHERE tenant = ? AND seq = ? AND state = 'queued'", (seq,))


def forget_reading(tenant: str, import_id: str) -> Statement:
    """Forget that a file was being read."""
    return scoped(
        IMPORT_RUN,
        tenant,
        "DELETE FROM import_run WHERE tenant = ? AND id = ? AND state = 'reading'",
        (import_id,),
    )


class WaitingImport(NamedTuple):
    """An import whose events wait for their decisions; `base` is there when the first of them was decided."""

    tenant: str
    id: str
    kind: str
    base: int | None
    first_ms: int | None
    last_ms: int | None


def select_waiting() -> Statement:
    """The imports of all tenants that wait, those that were begun first, then in the order of their files."""
    return everyone(
        IMPORT_RUN,
        "SELECT tenant, id, kind, base, first_ms, last_ms FROM import_run WHERE state = 'waiting' "
        "ORDER BY CASE WHEN base IS NULL THEN 1 ELSE 0 END, begun_at_ms, id",
    )


def set_base(tenant: str, import_id: str, base: int) -> Statement:
    """Note up to which place of the log an import sees the events of others."""
    return Statement(
        "UPDATE import_run SET base = ? WHERE tenant = ? AND id = ? AND base IS NULL",
        (base, tenant, import_id),
        rows=1,
        tenant=tenant,
        tables=IMPORT_RUN,
    )


def end_import(tenant: str, import_id: str) -> Statement:
    """Note that every event of an import is decided."""
    return scoped(
        IMPORT_RUN,
        tenant,
        "UPDATE import_run SET state = 'decided' WHERE tenant = ? AND id = ? AND state = 'waiting'",
        (import_id,),
    )


def select_import(tenant: str, import_id: str) -> Statement:
    """(state, how many of its events are not decided yet) of an import."""
    return Statement(
        "SELECT state, (SELECT COUNT(*) FROM job WHERE tenant = ? AND import_id = ? AND state = 'queued') "
        "FROM import_run WHERE tenant = ? AND id = ?",
        (tenant, import_id) * 2,
        tenant=tenant,
        tables=JOB.reading(IMPORT_RUN),
    )
