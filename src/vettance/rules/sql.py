"""What the store remembers of rule sets: every version that was ever saved; the newest is in force."""

import hashlib

from vettance.db.engine import Statement, everyone, scoped

AREA = "ruleset"


def document_digest(document: str) -> str:
    """Name the content of a rule set document (SHA-256, hex)."""
    return hashlib.sha256(document.encode()).hexdigest()


def insert_version(tenant: str, version: int, document: str, note: str, now_ms: int) -> Statement:
    """Store a new version; `Clash` when somebody else stored that number first."""
    return scoped(
        tenant,
        "INSERT INTO ruleset (tenant, version, document, digest, note, created_at_ms) "
        "VALUES (?, ?, ?, ?, ?, ?)",
        (version, document, document_digest(document), note, now_ms),
    )


def select_newest() -> Statement:
    """(tenant, version, document) of the rule set in force for every tenant."""
    return everyone(
        "SELECT tenant, version, document FROM ruleset WHERE version = "
        "(SELECT MAX(version) FROM ruleset AS other WHERE other.tenant = ruleset.tenant)"
    )


def select_newest_of(tenant: str) -> Statement:
    """(version, document, digest) of the rule set in force for one tenant."""
    return scoped(
        tenant,
        "SELECT version, document, digest FROM ruleset WHERE tenant = ? ORDER BY version DESC LIMIT 1",
    )


def select_version(tenant: str, version: int) -> Statement:
    """(document,) of one version."""
    return scoped(tenant, "SELECT document FROM ruleset WHERE tenant = ? AND version = ?", (version,))


def select_versions(tenant: str) -> Statement:
    """(version, digest, note, created_at_ms) of every version, newest first."""
    return scoped(
        tenant,
        "SELECT version, digest, note, created_at_ms FROM ruleset WHERE tenant = ? ORDER BY version DESC",
    )
