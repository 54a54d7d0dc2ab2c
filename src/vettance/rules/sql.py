"""What the store remembers of rule sets: every version that was ever saved; the newest is in force."""

import functools
import hashlib
from dataclasses import dataclass
from typing import Final

from vettance.db.engine import Statement, everyone, insert, scoped
from vettance.db.tables import RULESET, Insert, Table


def document_digest(document: str) -> str:
    """Name the content of a rule set document (SHA-256, hex)."""
    return hashlib.sha256(document.encode()).hexdigest()


@functools.cache
def _insert_into(table: Table) -> Insert:
    return Insert(table, "tenant, version, document, digest, note, created_at_ms, pushed")


@dataclass(frozen=True, slots=True)
class RuleSets:
    """The statements about the rule sets of one kind: those of fraud decide, those of AML watch."""

    table: Table
    #: What a change of them is noted as.
    area: str
    #: The pack that tenants of it begin with.
    pack: str

    def insert(
        self, tenant: str, version: int, document: str, note: str, now_ms: int, pushed: str | None = None
    ) -> Statement:
        """Store a new version; `Clash` when somebody else stored that number first.

        `document` is complete by itself; `pushed` is the text it was made of, where that built on a pack.
        """
        values = (version, document, document_digest(document), note, now_ms, pushed)
        return insert(_insert_into(self.table), tenant, values)

    def select_newest_of_all(self) -> Statement:
        """(tenant, version, document) of the rule set in force for every tenant."""
        return everyone(
            self.table,
            f"SELECT tenant, version, document FROM {self.table} AS newest WHERE version = "
            f"(SELECT MAX(version) FROM {self.table} WHERE tenant = newest.tenant) ORDER BY tenant",
        )

    def select_newest(self, tenant: str) -> Statement:
        """(version, document, digest) of the rule set in force for one tenant."""
        return scoped(
            self.table,
            tenant,
            f"SELECT version, document, digest FROM {self.table} WHERE tenant = ? "
            "ORDER BY version DESC LIMIT 1",
        )

    def select_version(self, tenant: str, version: int) -> Statement:
        """(document,) of one version."""
        return scoped(
            self.table,
            tenant,
            f"SELECT document FROM {self.table} WHERE tenant = ? AND version = ?",
            (version,),
        )

    def select_pushed(self, tenant: str, version: int | None = None) -> Statement:
        """(version, document, pushed) of one version, or of the one in force."""
        which, asked = ("", ()) if version is None else ("AND version = ? ", (version,))
        return scoped(
            self.table,
            tenant,
            f"SELECT version, document, pushed FROM {self.table} WHERE tenant = ? {which}"
            "ORDER BY version DESC LIMIT 1",
            asked,
        )

    def select_versions(self, tenant: str) -> Statement:
        """(version, digest, note, created_at_ms) of every version, newest first."""
        return scoped(
            self.table,
            tenant,
            f"SELECT version, digest, note, created_at_ms FROM {self.table} WHERE tenant = ? "
            "ORDER BY version DESC",
        )


DECIDING: Final = RuleSets(RULESET, "ruleset", "fraud")
