"""What the store remembers of rule sets: every version that was ever saved, and each step with it."""

import functools
import hashlib
from dataclasses import dataclass
from typing import Final

from vettance.db.engine import Statement, everyone, insert, scoped
from vettance.db.tables import RULE_STEP, RULESET, Insert, Table
from vettance.rules.version import COLUMNS, SERVICE, RuleSetVersion, VersionState, VersionStep


def document_digest(document: str) -> str:
    """Name the content of a rule set document (SHA-256, hex)."""
    return hashlib.sha256(document.encode()).hexdigest()


@functools.cache
def _insert_into(table: Table) -> Insert:
    return Insert(table, f"tenant, document, pushed, {COLUMNS}")


_INSERT_STEP: Final = Insert(RULE_STEP, "tenant, id, kind, version, step, actor, note, at_ms")
#: The one in force. A release that knows no states may have saved several as active; its newest counts.
_IN_FORCE: Final = "state = 'active' ORDER BY version DESC LIMIT 1"


@dataclass(frozen=True, slots=True)
class RuleSets:
    """The statements about the rule sets of one kind: those of fraud decide, those of AML watch."""

    table: Table
    #: What a change of them is noted as.
    area: str
    #: The pack that tenants of it begin with.
    pack: str

    def insert(
        self,
        tenant: str,
        version: int,
        document: str,
        note: str,
        now_ms: int,
        pushed: str | None = None,
        *,
        state: VersionState = VersionState.ACTIVE,
        author: str = SERVICE,
        broken_glass: str | None = None,
        origin: int | None = None,
    ) -> Statement:
        """Store a new version; `Clash` when somebody else stored that number first.

        `document` is complete by itself; `pushed` is the text it was made of, where that built on a pack.
        """
        activated_ms = now_ms if state is VersionState.ACTIVE else None
        one = RuleSetVersion(
            version=version,
            digest=document_digest(document),
            note=note,
            created_at_ms=now_ms,
            state=state,
            author=author,
            approved_by=None,
            decided_at_ms=None,
            activated_at_ms=activated_ms,
            broken_glass=broken_glass,
            origin=origin,
        )
        values = [getattr(one, name) for name in one.__struct_fields__]
        values[values.index(state)] = state.value
        return insert(_insert_into(self.table), tenant, (document, pushed, *values))

    def insert_step(
        self, tenant: str, step_id: str, version: int, step: VersionStep, actor: str, note: str, now_ms: int
    ) -> Statement:
        """Note in the log what was done with a version."""
        values = (step_id, self.pack, version, step.value, actor, note, now_ms)
        return insert(_INSERT_STEP, tenant, values)

    def move(
        self, tenant: str, version: int, before: VersionState, after: VersionState, **columns: object
    ) -> Statement:
        """Bring a version into another state; `Lost` when it is no longer in the state that was seen."""
        # What `scoped` builds begins with its tenant; an update that sets it to itself keeps that order.
        assigned = "".join(f", {name} = ?" for name in columns)
        return scoped(
            self.table,
            tenant,
            f"UPDATE {self.table} SET tenant = ?, state = ?{assigned} "
            "WHERE tenant = ? AND version = ? AND state = ?",
            (after.value, *columns.values(), tenant, version, before.value),
            rows=1,
        )

    def retire_others(self, tenant: str, version: int) -> Statement:
        """Retire every other active version: a release that knows no states leaves them active."""
        return scoped(
            self.table,
            tenant,
            f"UPDATE {self.table} SET state = 'retired' "
            "WHERE tenant = ? AND version <> ? AND state = 'active'",
            (version,),
        )

    def select_active_of_all(self) -> Statement:
        """(tenant, version, document) of the rule set in force for every tenant."""
        return everyone(
            self.table,
            f"SELECT tenant, version, document FROM {self.table} AS newest WHERE version = "
            f"(SELECT MAX(version) FROM {self.table} WHERE tenant = newest.tenant AND state = 'active') "
            "ORDER BY tenant",
        )

    def select_active(self, tenant: str) -> Statement:
        """(version, document, digest) of the rule set in force for one tenant."""
        return scoped(
            self.table,
            tenant,
            f"SELECT version, document, digest FROM {self.table} WHERE tenant = ? AND {_IN_FORCE}",
        )

    def select_active_number(self, tenant: str) -> Statement:
        """(number,) of the version in force for one tenant; no row while none is."""
        return scoped(
            self.table, tenant, f"SELECT version FROM {self.table} WHERE tenant = ? AND {_IN_FORCE}"
        )

    def select_newest_number(self, tenant: str) -> Statement:
        """(number,) of the version that was saved last; 0 when there is none."""
        return scoped(
            self.table, tenant, f"SELECT COALESCE(MAX(version), 0) FROM {self.table} WHERE tenant = ?"
        )

    def select_once_active(self, tenant: str) -> Statement:
        """(version,) of those that were in force once, the last one first."""
        return scoped(
            self.table,
            tenant,
            f"SELECT version FROM {self.table} WHERE tenant = ? AND state = 'retired' "
            "ORDER BY COALESCE(activated_at_ms, created_at_ms) DESC, version DESC",
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
        which, asked = (_IN_FORCE, ()) if version is None else ("version = ?", (version,))
        return scoped(
            self.table,
            tenant,
            f"SELECT version, document, pushed FROM {self.table} WHERE tenant = ? AND {which}",
            asked,
        )

    def select_versions(self, tenant: str, limit: int | None = None, offset: int = 0) -> Statement:
        """A row for `version_of` of every version, newest first."""
        page = "" if limit is None else f" LIMIT {limit:d} OFFSET {offset:d}"
        return scoped(
            self.table,
            tenant,
            f"SELECT {COLUMNS} FROM {self.table} WHERE tenant = ? ORDER BY version DESC{page}",
        )

    def select_one(self, tenant: str, version: int) -> Statement:
        """A row for `version_of` of one version."""
        return scoped(
            self.table,
            tenant,
            f"SELECT {COLUMNS} FROM {self.table} WHERE tenant = ? AND version = ?",
            (version,),
        )

    def count_versions(self, tenant: str, state: VersionState | None = None) -> Statement:
        """(count,) of all versions, or of those in a state."""
        where, asked = ("", ()) if state is None else (" AND state = ?", (state.value,))
        return scoped(self.table, tenant, f"SELECT COUNT(*) FROM {self.table} WHERE tenant = ?{where}", asked)

    def select_page(
        self,
        tenant: str,
        state: VersionState | None,
        beyond: int | None,
        limit: int,
        offset: int,
        *,
        descending: bool,
    ) -> Statement:
        """A row for `version_of` of a page of versions, beyond one where that is given."""
        where, asked = ("", ()) if state is None else (" AND state = ?", (state.value,))
        sign, order = ("<", "DESC") if descending else (">", "ASC")
        if beyond is not None:
            where, asked = f"{where} AND version {sign} ?", (*asked, beyond)
        return scoped(
            self.table,
            tenant,
            f"SELECT {COLUMNS} FROM {self.table} WHERE tenant = ?{where} "
            f"ORDER BY version {order} LIMIT ? OFFSET ?",
            (*asked, limit, offset),
        )

    def select_steps(self, tenant: str) -> Statement:
        """(id, version, step, actor, note, at_ms) of every step, newest first."""
        return scoped(
            RULE_STEP,
            tenant,
            "SELECT id, version, step, actor, note, at_ms FROM rule_step WHERE tenant = ? AND kind = ? "
            "ORDER BY id DESC",
            (self.pack,),
        )


DECIDING: Final = RuleSets(RULESET, "ruleset", "fraud")
