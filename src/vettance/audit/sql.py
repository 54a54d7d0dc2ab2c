"""What the store remembers of the audit log. Entries are only ever added; the head is kept apart."""

from collections.abc import Sequence
from typing import Final

from vettance.audit.chain import AuditEntry, AuditPart, KeptEntry, content_of, parts_of
from vettance.db.engine import COUNTED, NOTHING, Row, Statement, everyone, in_list, insert, scoped
from vettance.db.tables import AUDIT_ENTRY, AUDIT_HEAD, AUDIT_PART, Insert, Tables

_INSERT_PARTS: Final = Insert(AUDIT_PART, "tenant, entry, name, salt, content")
# The store itself computes the chain, so that an entry is in the commit of its change and needs no read.
_LINK: Final = "vettance_sha256({} || ?)"
_LINK_POSTGRES: Final = "encode(sha256(convert_to({} || ?, 'UTF8')), 'hex')"
_ADVANCE: Final = (
    "INSERT INTO audit_head (tenant, seq, chain) VALUES (?, 1, {}) "
    "ON CONFLICT (tenant) DO UPDATE SET seq = audit_head.seq + 1, chain = {}"
)
_ENTRY: Final = "seq, id, at_ms, action, digests, chain"
_INSERT: Final = f"INSERT INTO audit_entry (tenant, {_ENTRY}) SELECT tenant, seq, ?, ?, ?, ?, chain FROM "
_ADVANCE_SQLITE, _ADVANCE_POSTGRES = (
    _ADVANCE.format(link.format("''"), link.format("audit_head.chain")) for link in (_LINK, _LINK_POSTGRES)
)
# The entries of a commit take one round trip together, which two statements in turn would not (ADR 159).
_RECORD_POSTGRES: Final = (
    f"WITH head AS ({_ADVANCE_POSTGRES} RETURNING tenant, seq, chain), "
    f"changed AS ({_INSERT}head RETURNING 1) {COUNTED}"
)
_CHAIN: Final = Tables(
    AUDIT_HEAD.changed | AUDIT_ENTRY.changed, AUDIT_HEAD.read | AUDIT_ENTRY.read, frozenset()
)


def record(entry: AuditEntry) -> list[Statement]:
    """Add an entry to the chain of its tenant; belongs into the commit of what it is about."""
    parts = parts_of(entry)
    digests = " ".join(part.digest for part in parts)
    content = content_of(entry.id, entry.at_ms, entry.action, digests)
    values = [value for part in parts for value in (entry.tenant, entry.id, part.name, part.salt, part.text)]
    advanced = (entry.tenant, content, content)
    inserted = (entry.id, entry.at_ms, entry.action, digests)
    at_once = Statement(_RECORD_POSTGRES, (*advanced, *inserted), rows=1, tenant=entry.tenant, tables=_CHAIN)
    return [
        Statement(
            _ADVANCE_SQLITE,
            advanced,
            rows=1,
            tenant=entry.tenant,
            postgres=NOTHING,
            tables=AUDIT_HEAD,
        ),
        Statement(
            f"{_INSERT}audit_head WHERE tenant = ?",
            (*inserted, entry.tenant),
            rows=1,
            tenant=entry.tenant,
            postgres=at_once,
            tables=AUDIT_ENTRY.reading(AUDIT_HEAD),
        ),
        insert(_INSERT_PARTS, entry.tenant, values[1:]),
    ]


def is_entry(one: Statement) -> bool:
    """Tell whether a statement adds an entry."""
    return one.tables is not None and "audit_entry" in one.tables.changed


def select_chains() -> Statement:
    """(tenant, last seq, last chain value or NULL) of every chain, also one that has lost its head."""
    return everyone(
        AUDIT_HEAD.reading(AUDIT_ENTRY),
        "SELECT tenant, seq, chain FROM audit_head UNION ALL "
        "SELECT DISTINCT tenant, 0, NULL FROM audit_entry WHERE NOT EXISTS "
        "(SELECT 1 FROM audit_head WHERE audit_head.tenant = audit_entry.tenant) ORDER BY 1",
    )


def select_lost_chains() -> Statement:
    """(tenant,) of the parts whose chain is gone, entries and head.

    Steps from one tenant to the next, in the index: there are far more parts than tenants.
    """
    return everyone(
        AUDIT_PART.reading(AUDIT_HEAD).reading(AUDIT_ENTRY),
        "WITH RECURSIVE owner (tenant) AS (SELECT MIN(tenant) FROM audit_part UNION ALL "
        "SELECT (SELECT MIN(tenant) FROM audit_part WHERE audit_part.tenant > owner.tenant) FROM owner "
        "WHERE owner.tenant IS NOT NULL) SELECT tenant FROM owner WHERE tenant IS NOT NULL "
        "AND NOT EXISTS (SELECT 1 FROM audit_head WHERE audit_head.tenant = owner.tenant) "
        "AND NOT EXISTS (SELECT 1 FROM audit_entry WHERE audit_entry.tenant = owner.tenant) ORDER BY 1",
    )


def select_entries(tenant: str, after: int, limit: int) -> Statement:
    """The entries of a chain after a place, in order."""
    return scoped(
        AUDIT_ENTRY,
        tenant,
        f"SELECT tenant, {_ENTRY} FROM audit_entry WHERE tenant = ? AND seq > ? ORDER BY seq LIMIT ?",
        (after, limit),
    )


def select_newest(tenant: str, before: int, limit: int) -> Statement:
    """The entries of a chain before a place, newest first."""
    return scoped(
        AUDIT_ENTRY,
        tenant,
        f"SELECT tenant, {_ENTRY} FROM audit_entry WHERE tenant = ? AND seq < ? ORDER BY seq DESC LIMIT ?",
        (before, limit),
    )


def select_parts(tenant: str, entries: Sequence[str]) -> Statement:
    """(entry, name, salt, content) of the parts of some entries."""
    places, args = in_list(entries)
    return scoped(
        AUDIT_PART,
        tenant,
        f"SELECT entry, name, salt, content FROM audit_part WHERE tenant = ? AND entry IN ({places})",
        args,
    )


def count_parts(tenant: str) -> Statement:
    """How many parts a chain has in all."""
    return scoped(AUDIT_PART, tenant, "SELECT COUNT(*) FROM audit_part WHERE tenant = ?", ())


def replace_part(tenant: str, entry: str, part: AuditPart) -> Statement:
    """Put another text in the place of one that named an erased customer."""
    return Statement(
        "UPDATE audit_part SET salt = ?, content = ? WHERE tenant = ? AND entry = ? AND name = ?",
        (part.salt, part.text, tenant, entry, part.name),
        rows=1,
        tenant=tenant,
        tables=AUDIT_PART,
    )


def kept_of(rows: Sequence[Row], parts: Sequence[Row]) -> list[KeptEntry]:
    """Make entries of rows of `select_entries` and of `select_parts`."""
    by_entry: dict[str, dict[str, AuditPart]] = {}
    for entry, name, salt, content in parts:
        by_entry.setdefault(entry, {})[name] = AuditPart(name, salt, content)
    return [
        KeptEntry(
            tenant=row[0],
            seq=row[1],
            id=row[2],
            at_ms=row[3],
            action=row[4],
            digests=row[5],
            chain=row[6],
            parts=by_entry.get(row[2], {}),
        )
        for row in rows
    ]
