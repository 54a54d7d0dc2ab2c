"""Changes what models may do: at once, or once somebody else approves where the tenant's rules need that."""

import contextlib
from collections.abc import Callable
from typing import Final, NamedTuple

from vettance import clock
from vettance.db.engine import Clash, Lost, Statement, Store
from vettance.errors import Conflict, NotFound
from vettance.ids import IdSource
from vettance.learning import model_change_sql
from vettance.learning.change_models import (
    TRIES,
    changed_meanwhile,
    find_approval,
    find_setting,
    recorded_anew,
    setting_statements,
)
from vettance.learning.model_change import (
    ChangeState,
    ModelChange,
    ProposedChange,
    change_of,
    check_open,
    check_other,
)
from vettance.models import sql
from vettance.models.sql import ModelSetting
from vettance.rules.versioning import BROKE_GLASS
from vettance.tenants.sql import note_change

#: Changes of a tenant that may wait for approval.
OPEN_MAX: Final = 20


class SteeredModels(NamedTuple):
    """How a tenant's models are used after a step; `proposed` is a change that waits for approval."""

    setting: ModelSetting
    proposed: ProposedChange | None = None


class ModelSteering:
    """The steps that `actor` takes with a tenant's models."""

    def __init__(
        self,
        store: Store,
        tenant: str,
        actor: str,
        ids: IdSource,
        now_ms: Callable[[], int] = clock.now_ms,
    ) -> None:
        self._store = store
        self._tenant = tenant
        self._actor = actor
        self._ids = ids
        self._now_ms = now_ms

    async def change(
        self, wanted: ModelChange, note: str = "", break_glass: str | None = None
    ) -> SteeredModels:
        """Change something, or propose it where it needs approval. Raises `NotFound`, `Conflict`.

        `break_glass` says why it does not wait for that.
        """
        for _ in range(TRIES):
            setting = await find_setting(self._store, self._tenant)
            await self._check_version(wanted)
            demand, approval = await find_approval(self._store, self._tenant)
            waits = approval and wanted.needs_approval(setting)
            with contextlib.suppress(Clash, Lost):
                if waits and break_glass is None:
                    return SteeredModels(setting, await self._propose(wanted, note, demand))
                broken = self._broken_glass(wanted, setting, note, break_glass) if waits else ()
                return SteeredModels(await self._apply(wanted, setting, demand, *broken))
        raise changed_meanwhile()

    async def approve(self, change_id: str) -> SteeredModels:
        """Agree to a change, which puts it in effect. Raises `NotFound`, `Conflict`.

        It needs another person or key than its author's while the tenant's rules need approval.
        """
        for _ in range(TRIES):
            one = await self.find(change_id)
            check_open(one)
            demand, approval = await find_approval(self._store, self._tenant)
            if approval:
                check_other(one, self._actor)
            setting = await find_setting(self._store, self._tenant)
            await self._check_version(one.change)
            decided = self._decided(one, ChangeState.APPROVED)
            with contextlib.suppress(Clash, Lost):
                return SteeredModels(await self._apply(one.change, setting, demand, decided))
        raise changed_meanwhile()

    async def reject(self, change_id: str) -> ProposedChange:
        """Turn a change down, for good. Raises `NotFound`, `Conflict`."""
        one = await self.find(change_id)
        check_open(one)
        try:
            await self._store.write(self._decided(one, ChangeState.REJECTED))
        except Lost:
            raise changed_meanwhile() from None
        return await self.find(change_id)

    async def find(self, change_id: str) -> ProposedChange:
        """Return a change. Raises `NotFound`."""
        rows = await self._store.read(model_change_sql.select_change(self._tenant, change_id))
        if not rows:
            raise NotFound
        return change_of(rows[0])

    async def _check_version(self, wanted: ModelChange) -> None:
        """Demand that the version to put in service is there."""
        if wanted.champion is None:
            return
        if not await self._store.read(sql.select_features_of(self._tenant, (wanted.champion,))):
            raise NotFound

    async def _propose(self, wanted: ModelChange, note: str, demand: Statement) -> ProposedChange:
        open_rows = await self._store.read(model_change_sql.select_open(self._tenant))
        for known in map(change_of, open_rows):
            if (known.change, known.author) == (wanted, self._actor):
                return known
        if len(open_rows) >= OPEN_MAX:
            raise Conflict(
                f"{OPEN_MAX} changes wait for approval already; approve or reject some first.", "too_many"
            )
        one = self._new(wanted, ChangeState.PROPOSED, note)
        await self._store.write(demand, model_change_sql.insert_change(self._tenant, one))
        return one

    async def _apply(self, wanted: ModelChange, setting: ModelSetting, *with_it: Statement) -> ModelSetting:
        changed = wanted.applied_to(setting)
        await self._store.write(
            *with_it,
            *sql.demand_setting(setting),
            *setting_statements(setting, changed, self._now_ms()),
            *await recorded_anew(self._store, setting, changed, self._now_ms()),
        )
        return changed

    def _broken_glass(
        self, wanted: ModelChange, setting: ModelSetting, note: str, why: str | None
    ) -> tuple[Statement, ...]:
        """Keep the change with why it did not wait, and note it for every process to say so."""
        one = self._new(wanted, ChangeState.APPROVED, note, broken_glass=why)
        version = wanted.champion or setting.champion or 0
        return (
            model_change_sql.insert_change(self._tenant, one),
            note_change(BROKE_GLASS, self._tenant, f"model {version}", one.created_at_ms),
        )

    def _new(
        self, wanted: ModelChange, state: ChangeState, note: str, broken_glass: str | None = None
    ) -> ProposedChange:
        now_ms = self._now_ms()
        decided = (self._actor, broken_glass, now_ms, now_ms) if broken_glass is not None else None
        by, why, made_ms, decided_ms = decided or (None, None, now_ms, None)
        change_id = self._ids.make("mch", now_ms)
        return ProposedChange(change_id, wanted, state, note, self._actor, by, why, made_ms, decided_ms)

    def _decided(self, one: ProposedChange, state: ChangeState) -> Statement:
        return model_change_sql.decide_change(self._tenant, one.id, state, self._actor, self._now_ms())
