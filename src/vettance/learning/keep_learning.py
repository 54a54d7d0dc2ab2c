"""Watches labels come in, begins to record features, and has models trained, each tenant in its turn."""

import asyncio
import contextlib
import importlib.util
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Final

import msgspec

from vettance import clock
from vettance.db.engine import Clash, Lost, Store, StoreDown
from vettance.fairness.isolation import Isolation
from vettance.ids import IdSource
from vettance.learning import sql
from vettance.learning.change_models import enter_model, find_setting, save_failure
from vettance.learning.grow_features import FeatureGrowth
from vettance.learning.run_training import is_due, run_training
from vettance.learning.training_rows import says_too_few
from vettance.learning.watch_drift import DriftWatcher
from vettance.models.serving_model import ModelMode
from vettance.models.sql import ModelSetting, select_states, setting_of
from vettance.telemetry.logs import logger
from vettance.telemetry.meters import Meters

LOOK_S: Final = 1.0

_log = logger()


def can_train() -> bool:
    """Tell whether what models are trained with is installed."""
    return importlib.util.find_spec("lightgbm") is not None


def is_training_due(setting: ModelSetting, frauds: int, now_ms: int) -> bool:
    """Tell whether a model is to be trained, with so many labels of fraud given so far."""
    if setting.wanted:
        return True
    return is_due(frauds, setting.trained_frauds, setting.trained_at_ms, now_ms)


class ModelKeeper:
    """One process of a deployment does this. Features begin with a tenant's first label."""

    def __init__(
        self,
        store: Store,
        data: Path,
        meters: Meters | None = None,
        now_ms: Callable[[], int] = clock.now_ms,
    ) -> None:
        self._store = store
        self._data = data
        self._now_ms = now_ms
        self._isolation, self._training = Isolation("learning"), Isolation("learning")
        self._ids = IdSource()
        self._drift = DriftWatcher(store)
        self._growth = FeatureGrowth(store, now_ms)
        self._meters = meters or Meters()
        self._after = 0
        self._frauds: dict[str, int] = {}

    async def run(self) -> None:
        """Watch until cancelled; a training of one tenant, which takes minutes, keeps no other from being
        watched. Without the extra, only trainings that were asked for are answered.
        """
        async with asyncio.TaskGroup() as group:
            group.create_task(self._repeat(self.look))
            group.create_task(self._repeat(self.train_due))

    async def _repeat(self, step: Callable[[], Awaitable[None]]) -> None:
        while True:
            with contextlib.suppress(StoreDown):
                await step()
            await asyncio.sleep(LOOK_S)

    async def look(self) -> None:
        """Do what is due for each tenant, but for trainings."""
        for tenant, last, frauds in await self._store.read(sql.select_new_labels(self._after)):
            self._after = max(self._after, last)
            self._frauds[tenant] = self._frauds.get(tenant, 0) + frauds
            self._growth.look_soon(tenant)
        for tenant, setting in (await self._watched()).items():
            if not self._isolation.is_due(tenant):
                continue
            # Of two processes that lead for a moment one is first; the other looks again in a second.
            with self._isolation.of(tenant), contextlib.suppress(Clash, Lost):
                if setting.champion is not None:
                    await self._drift.look(tenant, setting.champion, self._now_ms())
                if not can_train():
                    if setting.wanted:
                        known = await find_setting(self._store, tenant)
                        await save_failure(self._store, known, "vettance[learning] is not installed")
                elif setting.features:
                    await self._growth.look(tenant)
                elif not await self._growth.begin(tenant) and setting.wanted:
                    known = await find_setting(self._store, tenant)
                    await save_failure(self._store, known, "the tenant has no events yet")

    async def begin_features(self, tenant: str, bodies: Sequence[bytes]) -> bool:
        """Have features recorded before labelled history is decided, so that it can be learned from.

        `bodies` are some of its events. False where none are to be, or some are already.
        """
        setting = await find_setting(self._store, tenant)
        if setting.features or setting.mode is ModelMode.OFF or not can_train():
            return False
        await self._growth.begin_by(tenant, bodies)
        return True

    async def train_due(self) -> None:
        """Have models trained for the tenants for which that is due, one after the other."""
        if not can_train():
            return
        for tenant, setting in (await self._watched()).items():
            due = is_training_due(setting, self._frauds.get(tenant, 0), self._now_ms())
            if setting.features and due and self._training.is_due(tenant):
                with self._training.of(tenant), contextlib.suppress(Clash, Lost):
                    await self._train(setting)

    async def _watched(self) -> dict[str, ModelSetting]:
        """Return how models of the tenants are set that have labels or a setting and want models."""
        settings = {row[0]: setting_of(row) for row in await self._store.read(select_states())}
        found = {
            tenant: settings.get(tenant) or ModelSetting(tenant)
            for tenant in sorted(self._frauds.keys() | settings.keys())
        }
        return {
            one: set_so for one, set_so in found.items() if set_so.mode is not ModelMode.OFF or set_so.wanted
        }

    async def _train(self, setting: ModelSetting) -> None:
        tenant = setting.tenant
        await self._growth.grow(tenant)
        setting = await find_setting(self._store, tenant)
        order = {"tenant": tenant, "features": setting.features, "champion": setting.champion}
        # Labels that come meanwhile are for the next one.
        frauds = self._frauds.get(tenant, 0)
        said = await run_training(self._data, order)
        current = msgspec.structs.replace(
            setting,
            features=str(said.get("features", setting.features)),
            trained_frauds=frauds,
            trained_at_ms=self._now_ms(),
        )
        if "error" in said:
            failure = str(said["error"])
            self._meters.trained("too_few_labels" if says_too_few(failure) else "failed")
            _log.warning("model_not_trained", tenant=tenant, reason=failure)
            await save_failure(self._store, current, failure)
            return
        version = await enter_model(self._store, current, said, self._ids, self._now_ms())
        self._meters.trained("better" if said["isBetter"] else "not_better")
        _log.info("model_trained", tenant=tenant, version=version, promoted=said["isBetter"])
