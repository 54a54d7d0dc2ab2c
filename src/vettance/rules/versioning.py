"""Takes a version of a rule set from one state to the next: propose, approve, reject, activate, roll back.

Each step is one commit that demands what it has seen: of two that meet, one is refused. A version comes into
force in the commit that retires the one before it, so there are never two, wherever a process is killed.
"""

import contextlib
from collections.abc import Awaitable, Callable
from typing import Final, NamedTuple

from vettance import clock
from vettance.db.engine import Clash, Lost, Statement, Store
from vettance.errors import Conflict, NotFound
from vettance.ids import IdSource
from vettance.rules.gate import GateResult
from vettance.rules.packs import load_pack_text
from vettance.rules.ruleset import write_ruleset
from vettance.rules.sql import RuleSets
from vettance.rules.version import (
    RuleSetVersion,
    VersionState,
    VersionStep,
    check_activable,
    check_approvable,
    check_proposable,
    check_rejectable,
    check_returnable,
    version_of,
)
from vettance.tenants import sql as tenants_sql
from vettance.tenants.sql import note_change
from vettance.tenants.tenant import Tenant

#: What a change of the rules past their approval is noted as, for every process to say so.
BROKE_GLASS: Final = "rules_break_glass"
#: Times that a step is tried again when somebody else changed what it depends on.
_TRIES: Final = 5


class NewRules(NamedTuple):
    """A document as it is saved: the text as written, and whole, where that builds on a pack."""

    document: str
    pushed: str | None


class _Standing(NamedTuple):
    """What a step depends on: the version in force, the newest number, and the approval as it is set."""

    active: int | None
    newest: int
    settings: str
    needs_approval: bool


def resolved(text: str, found: GateResult) -> NewRules:
    """Return what is saved of a text that was examined; as written, where it is broken."""
    if found.broken or found.extends is None:
        return NewRules(text, None)
    # The same file must become the same document, whatever its name.
    document = f"# What was pushed came to this on {found.extends}.\n{write_ruleset(found.ruleset)}"
    return NewRules(document, text)


class Versioning:
    """The steps that `actor` takes with a tenant's rule sets of one kind."""

    def __init__(
        self,
        store: Store,
        sets: RuleSets,
        tenant: str,
        actor: str,
        ids: IdSource,
        now_ms: Callable[[], int] = clock.now_ms,
    ) -> None:
        self._store = store
        self._sets = sets
        self._tenant = tenant
        self._actor = actor
        self._ids = ids
        self._now_ms = now_ms

    async def find(self, version: int) -> RuleSetVersion:
        """Return a version. Raises `NotFound`."""
        rows = await self._store.read(self._sets.select_one(self._tenant, version))
        if not rows:
            raise NotFound
        return version_of(rows[0])

    async def draft(self, rules: NewRules, note: str, also: tuple[Statement, ...] = ()) -> RuleSetVersion:
        """Save a document that may be broken."""
        return await self._add(rules, note, VersionState.DRAFT, also)

    async def propose_new(
        self, rules: NewRules, note: str, also: tuple[Statement, ...] = ()
    ) -> RuleSetVersion:
        """Save a document that has passed the gate, for somebody to approve."""
        return await self._add(rules, note, VersionState.PROPOSED, also)

    async def push(
        self, rules: NewRules, note: str, *, over: int | None, break_glass: str | None = None
    ) -> RuleSetVersion:
        """Save a document that has passed the gate, in force at once, or proposed where approval is needed.

        A version of the same rules that waits for its approval is returned as it is: a pipeline that runs
        again must not propose it again. `over` is the version in force that it was compared with. Raises
        `Conflict` when it is another by now.
        """
        standing = await self._standing()
        if standing.active != over:
            raise _changed()
        if standing.needs_approval and break_glass is None:
            if (waiting := await self._find_waiting(rules, standing)) is not None:
                return waiting
            return await self._add(rules, note, VersionState.PROPOSED, ())
        broken_glass = break_glass if standing.needs_approval else None
        step = VersionStep.ACTIVATED if broken_glass is None else VersionStep.BROKE_GLASS
        try:
            return await self._activate_new(rules, note, standing, step, broken_glass=broken_glass)
        except (Clash, Lost):
            raise _changed() from None

    async def _find_waiting(self, rules: NewRules, standing: _Standing) -> RuleSetVersion | None:
        """Return the newest version where it has these rules and waits to come into force."""
        rows = await self._store.read(self._sets.select_pushed(self._tenant, standing.newest))
        if not rows or NewRules(*rows[0][1:]) != rules:
            return None
        one = await self.find(standing.newest)
        return one if one.state in (VersionState.PROPOSED, VersionState.APPROVED) else None

    async def active_version(self) -> int | None:
        """Return the number of the version in force, where there is one."""
        return (await self._standing()).active

    async def propose(
        self, version: int, admit: Callable[[str], Awaitable[NewRules]], note: str = ""
    ) -> RuleSetVersion:
        """Pass a draft through the gate, for somebody to approve. Raises what `admit` does, `Conflict`."""
        one = await self.find(version)
        check_proposable(one)
        if one.state is VersionState.PROPOSED:
            return one
        _, document, pushed = (await self._store.read(self._sets.select_pushed(self._tenant, version)))[0]
        rules = await admit(document if pushed is None else pushed)
        return await self._move(
            one,
            VersionState.PROPOSED,
            VersionStep.PROPOSED,
            note or one.note,
            document=rules.document,
            pushed=rules.pushed,
        )

    async def approve(self, version: int, note: str = "") -> RuleSetVersion:
        """Agree to a proposed version. Raises `NotFound`, `Conflict`."""
        one = await self.find(version)
        if one.state is VersionState.APPROVED and one.approved_by == self._actor:
            return one
        standing = await self._standing()
        check_approvable(one, self._actor, needs_other=standing.needs_approval)
        return await self._move(
            one,
            VersionState.APPROVED,
            VersionStep.APPROVED,
            note,
            self._demand(standing),
            approved_by=self._actor,
            decided_at_ms=self._now_ms(),
        )

    async def reject(self, version: int, note: str) -> RuleSetVersion:
        """Turn a version down that is not in force yet. Raises `NotFound`, `Conflict`."""
        one = await self.find(version)
        check_rejectable(one)
        return await self._move(
            one, VersionState.REJECTED, VersionStep.REJECTED, note, decided_at_ms=self._now_ms()
        )

    async def activate(
        self, version: int, break_glass: str | None = None, note: str = "", over: int | None = None
    ) -> RuleSetVersion:
        """Put a version into force, and retire the one that is.

        The commit looks again at what stood in its way: the setting, the approval, the version in force.
        `over` is the version that it is to take the place of: of two people who put versions into force at
        once, the second would retire one that they have not seen. Raises `NotFound`, and `Conflict`, also
        when another version than `over` is in force.
        """
        for _ in range(_TRIES):
            one = await self.find(version)
            if one.state is VersionState.ACTIVE:
                return one
            standing = await self._standing()
            if over is not None and (standing.active or 0) != over:
                raise _changed()
            passes = break_glass is not None and standing.needs_approval
            check_activable(one, needs_approval=standing.needs_approval and not passes)
            step = VersionStep.BROKE_GLASS if passes else VersionStep.ACTIVATED
            columns = {"broken_glass": break_glass} if passes else {}
            now_ms = self._now_ms()
            with contextlib.suppress(Lost):
                await self._store.write(
                    *self._demand(standing),
                    *self._retire(standing),
                    self._sets.move(
                        self._tenant,
                        version,
                        one.state,
                        VersionState.ACTIVE,
                        activated_at_ms=now_ms,
                        **columns,
                    ),
                    *self._noted(version, step, break_glass if passes and break_glass else note, now_ms),
                )
                return await self.find(version)
        raise _changed()

    async def roll_back(self, to: int | None = None, over: int | None = None) -> RuleSetVersion:
        """Take the document of an earlier version back into force, as a new version.

        Without `to`, that of the last one before. `over` is the version that it is to take the place of: of
        two people who go back at once, the second would bring back what the first took out of force. Raises
        `NotFound`, and `Conflict`, also when another version than `over` is in force.
        """
        for _ in range(_TRIES):
            standing = await self._standing()
            if over is not None and (standing.active or 0) != over:
                raise _changed()
            if to is None:
                rows = await self._store.read(self._sets.select_once_active(self._tenant))
                if not rows:
                    raise Conflict("No other version was ever in force.", "never_active")
                origin = rows[0][0]
            else:
                origin = to
            one = await self.find(origin)
            check_returnable(one)
            _, document, pushed = (await self._store.read(self._sets.select_pushed(self._tenant, origin)))[0]
            note = f"Back to version {origin}."
            with contextlib.suppress(Clash, Lost):
                return await self._activate_new(
                    NewRules(document, pushed), note, standing, VersionStep.ROLLED_BACK, origin=origin
                )
        raise _changed()

    async def _activate_new(
        self,
        rules: NewRules,
        note: str,
        standing: _Standing,
        step: VersionStep,
        *,
        broken_glass: str | None = None,
        origin: int | None = None,
    ) -> RuleSetVersion:
        version, now_ms = standing.newest + 1, self._now_ms()
        await self._store.write(
            *(() if step is VersionStep.ROLLED_BACK else self._demand(standing)),
            *self._retire(standing),
            self._sets.insert(
                self._tenant,
                version,
                rules.document,
                note,
                now_ms,
                rules.pushed,
                author=self._actor,
                broken_glass=broken_glass,
                origin=origin,
            ),
            *self._noted(version, step, broken_glass or note, now_ms),
        )
        return await self.find(version)

    async def _add(
        self, rules: NewRules, note: str, state: VersionState, also: tuple[Statement, ...]
    ) -> RuleSetVersion:
        step = VersionStep.DRAFTED if state is VersionState.DRAFT else VersionStep.PROPOSED
        for _ in range(_TRIES):
            standing = await self._standing()
            if standing.active is None:
                await self._add_pack()
                continue
            version, now_ms = standing.newest + 1, self._now_ms()
            with contextlib.suppress(Clash):
                await self._store.write(
                    self._sets.insert(
                        self._tenant,
                        version,
                        rules.document,
                        note,
                        now_ms,
                        rules.pushed,
                        state=state,
                        author=self._actor,
                    ),
                    self._step(version, step, note, now_ms),
                    *also,
                )
                return await self.find(version)
        raise _changed()

    async def _add_pack(self) -> None:
        """Store the pack that decides for a tenant without rules of its own as its first version."""
        with contextlib.suppress(Clash):
            await self._store.write(
                self._sets.insert(
                    self._tenant, 1, load_pack_text(self._sets.pack), "The default pack.", self._now_ms()
                )
            )

    async def _move(
        self,
        one: RuleSetVersion,
        after: VersionState,
        step: VersionStep,
        note: str,
        demands: tuple[Statement, ...] = (),
        **columns: object,
    ) -> RuleSetVersion:
        try:
            await self._store.write(
                *demands,
                self._sets.move(self._tenant, one.version, one.state, after, **columns),
                self._step(one.version, step, note, self._now_ms()),
            )
        except Lost:
            raise _changed() from None
        return await self.find(one.version)

    async def _standing(self) -> _Standing:
        active = await self._store.read(self._sets.select_active(self._tenant))
        newest = await self._store.read(self._sets.select_newest_number(self._tenant))
        rows = await self._store.read(tenants_sql.select_tenant(self._tenant))
        if not rows:
            raise NotFound
        tenant: Tenant = tenants_sql.tenant_of(rows[0])
        return _Standing(active[0][0] if active else None, newest[0][0], rows[0][-1], tenant.rule_approval)

    def _demand(self, standing: _Standing) -> tuple[Statement, ...]:
        """Demand, in the commit, that nobody has changed whether approval is needed."""
        return (tenants_sql.demand_settings(self._tenant, standing.settings),)

    def _retire(self, standing: _Standing) -> tuple[Statement, ...]:
        """Retire the version in force, and demand that it is still the one that was seen."""
        if standing.active is None:
            return ()
        active = standing.active
        return (
            self._sets.retire_others(self._tenant, active),
            self._sets.move(self._tenant, active, VersionState.ACTIVE, VersionState.RETIRED),
        )

    def _noted(self, version: int, step: VersionStep, note: str, now_ms: int) -> tuple[Statement, ...]:
        """Note that a version comes into force, for the log and for every process."""
        noted = [
            self._step(version, step, note, now_ms),
            note_change(self._sets.area, self._tenant, str(version), now_ms),
        ]
        if step is VersionStep.BROKE_GLASS:
            noted.append(note_change(BROKE_GLASS, self._tenant, f"{self._sets.pack} {version}", now_ms))
        return tuple(noted)

    def _step(self, version: int, step: VersionStep, note: str, now_ms: int) -> Statement:
        step_id = self._ids.make("rst", now_ms)
        return self._sets.insert_step(self._tenant, step_id, version, step, self._actor, note, now_ms)


def _changed() -> Conflict:
    return Conflict("Somebody else changed these rules at the same moment. Look again.", "changed_meanwhile")
