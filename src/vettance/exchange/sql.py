"""What the store is asked for files: spans of the log, and how far an import has come."""

from typing import Any, Final, NamedTuple

from vettance.db.engine import Row, Statement, scoped

_COLUMNS: Final = (
    "decision.seq, decision.id, event.source, decision.received_at_ms, decision.evaluated_at_ms, "
    "decision.occurred_at_ms, decision.event_name, decision.event_category, decision.decision, "
    "decision.score, decision.level, decision.reasons, decision.customer_id, decision.email, "
    "decision.device_id, decision.fingerprint, decision.ip, decision.country, decision.session_id, "
    "decision.record, event.sent"
)


class Exported(NamedTuple):
    """One event with its decision, as it is exported."""

    seq: int
    id: str
    source: str
    received_at_ms: int
    evaluated_at_ms: int
    occurred_at_ms: int
    event_name: str
    event_category: str
    decision: str
    score: int
    level: str
    reasons: str
    customer_id: str | None
    email: str | None
    device_id: str | None
    fingerprint: str | None
    ip: str | None
    country: str | None
    session_id: str | None
    record: bytes
    sent: bytes


def select_exported(
    tenant: str, after: int, moment: str, from_ms: int | None, to_ms: int | None, limit: int
) -> Statement:
    """The next events of a tenant in the order of the log; `moment` is the column of `from` and `to`."""
    where, args = "", [after]
    for condition, value in ((f"decision.{moment} >= ?", from_ms), (f"decision.{moment} < ?", to_ms)):
        if value is not None:
            where += f" AND {condition}"
            args.append(value)
    return scoped(
        tenant,
        f"SELECT {_COLUMNS} FROM decision JOIN event ON event.id = decision.id "
        f"WHERE decision.tenant = ? AND decision.seq > ?{where} ORDER BY decision.seq LIMIT ?",
        (*args, limit),
    )


def exported_of(row: Row) -> Exported:
    """Make an exported event of a row."""
    return Exported._make(row)


def select_start(tenant: str, moment: str, from_ms: int) -> Statement:
    """The place in the log before which nothing of a span stands, as far as whole chunks tell."""
    column = moment.removesuffix("_at_ms") + "_max_ms"
    return scoped(
        tenant,
        "SELECT COALESCE(MAX(id), 0) FROM chunk WHERE tenant = ? AND id < COALESCE("
        f"(SELECT MIN(id) FROM chunk AS later WHERE later.tenant = chunk.tenant AND later.{column} >= ?), "
        "9223372036854775807)",
        (from_ms,),
    )


def select_labels(tenant: str, first: str, last: str) -> Statement:
    """(event, label) of the feedback on the events of a span of ids, oldest first."""
    return scoped(
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
        tenant,
        "SELECT lines, accepted, refused FROM import_mark WHERE tenant = ? AND digest = ?",
        (digest,),
    )


def move_import_mark(tenant: str, digest: str, before: ImportMark, after: ImportMark) -> Statement:
    """Note how far an import has come; `Lost` or `Clash` when another one of the same file is faster."""
    if before.lines == 0:
        return scoped(
            tenant,
            "INSERT INTO import_mark (tenant, digest, lines, accepted, refused) VALUES (?, ?, ?, ?, ?)",
            (digest, *after),
        )
    args: tuple[Any, ...] = (*after, tenant, digest, before.lines)
    return Statement(
        "UPDATE import_mark SET lines = ?, accepted = ?, refused = ? "
        "WHERE tenant = ? AND digest = ? AND lines = ?",
        args,
        rows=1,
        tenant=tenant,
    )
