"""Has the models that order alerts trained, and gives open alerts their priority."""

import asyncio
import contextlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

import msgspec

from vettance import clock
from vettance.aml.case import NO_PRIORITY
from vettance.aml.features import aml_schema
from vettance.db.engine import Clash, Lost, Row, Statement, Store, StoreDown
from vettance.fairness.isolation import Isolation
from vettance.learning import alert_sql
from vettance.learning.alert_facts import AlertFacts
from vettance.learning.alert_sql import AlertModelSetting
from vettance.learning.alert_values import (
    CUSTOMER_ALERTS_MAX,
    CustomerAlert,
    OrderedAlert,
    Resolutions,
    priority_of,
    values_of,
)
from vettance.learning.change_alert_models import (
    after_alert_training,
    change_alert_setting,
    enter_alert_model,
)
from vettance.learning.run_training import is_due, run_training
from vettance.learning.training_process import ALERTS
from vettance.learning.training_rows import says_too_few
from vettance.models.trees import TreeModel
from vettance.reference.jurisdictions import Jurisdictions
from vettance.telemetry.logs import logger
from vettance.telemetry.meters import Meters

#: New alerts get their priority within this time, and a second for what it takes.
_ORDER_S: Final = 1.0
_TRAIN_S: Final = 5.0
_ROWS: Final = 200
#: So many rows of one tenant are ordered anew before the next tenant has its turn.
_PIECES_MAX: Final = 5
_MODELS_MAX: Final = 32

_log = logger()


class AlertOrderKeeper:
    """One process of a deployment does this; all others read what it has stored."""

    def __init__(
        self,
        store: Store,
        data: Path,
        countries: Jurisdictions | None = None,
        meters: Meters | None = None,
        can_train: Callable[[], bool] = lambda: True,
        now_ms: Callable[[], int] = clock.now_ms,
    ) -> None:
        self._store = store
        self._data = data
        self._facts = AlertFacts(store, aml_schema(countries))
        self._meters = meters or Meters()
        self._can_train = can_train
        self._now_ms = now_ms
        self._training, self._ordering = Isolation("learning"), Isolation("learning")
        self._models: dict[tuple[str, int], TreeModel] = {}
        #: How far the open alerts of a tenant are ordered anew: by which version, and the last alert.
        self._anew: dict[str, tuple[int, str]] = {}

    async def run(self) -> None:
        """Train and order until cancelled; a training does not hold up the order."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._repeat(self.train_due, _TRAIN_S))
            group.create_task(self._repeat(self.order_all, _ORDER_S))

    async def _repeat(self, step: Callable[[], object], pause_s: float) -> None:
        while True:
            with contextlib.suppress(StoreDown):
                await step()  # type: ignore[misc]
            await asyncio.sleep(pause_s)

    async def train_due(self) -> None:
        """Have models trained for the tenants for which that is due."""
        matches: dict[str, int] = dict(await self._store.read(alert_sql.select_matches()))
        settings = await self._settings()
        for tenant in sorted(matches.keys() | settings.keys()):
            setting = settings.get(tenant) or AlertModelSetting(tenant)
            count = matches.get(tenant, 0)
            due = is_due(count, setting.trained_matches, setting.trained_at_ms, self._now_ms())
            if not (setting.wanted or (setting.is_on and due)) or not self._training.is_due(tenant):
                continue
            with self._training.of(tenant):
                await self._train(tenant, setting, count)

    async def _settings(self) -> dict[str, AlertModelSetting]:
        rows = await self._store.read(alert_sql.select_alert_settings())
        return {row[0]: alert_sql.alert_setting_of(row) for row in rows}

    async def _train(self, tenant: str, setting: AlertModelSetting, matches: int) -> None:
        if not self._can_train():
            if setting.wanted:
                await self._fail(setting, matches, "vettance[learning] is not installed")
            return
        order = {"tenant": tenant, "features": "", "champion": setting.champion, "kind": ALERTS}
        said = await run_training(self._data, order)
        if "error" in said:
            failure = str(said["error"])
            self._meters.trained("too_few_labels" if says_too_few(failure) else "failed")
            _log.warning("alert_model_not_trained", tenant=tenant, reason=failure)
            await self._fail(setting, matches, failure)
            return
        version = await enter_alert_model(self._store, setting, said, matches, self._now_ms())
        self._meters.trained("better" if said["isBetter"] else "not_better")
        _log.info("alert_model_trained", tenant=tenant, version=version, promoted=said["isBetter"])

    async def _fail(self, setting: AlertModelSetting, matches: int, failure: str) -> None:
        now_ms = self._now_ms()
        await change_alert_setting(
            self._store,
            setting.tenant,
            lambda known: after_alert_training(known, setting, matches, now_ms, failure),
        )

    async def order_all(self) -> None:
        """Give alerts that are new their priority; all open ones where another model is in service."""
        for tenant, setting in (await self._settings()).items():
            if not (setting.serving or setting.ordered_by) or not self._ordering.is_due(tenant):
                continue
            with self._ordering.of(tenant), contextlib.suppress(Clash, Lost):
                if setting.serving != setting.ordered_by:
                    await self._order_anew(tenant, setting)
                elif rows := await self._store.read(alert_sql.select_unordered(tenant, _ROWS)):
                    await self._order(tenant, setting.serving, rows)

    async def _order_anew(self, tenant: str, setting: AlertModelSetting) -> None:
        """Order some more of all open alerts by the version in service; the next round goes on from there."""
        version, after = self._anew.pop(tenant, (setting.serving, ""))
        if version != setting.serving:
            after = ""
        for _ in range(_PIECES_MAX):
            rows = await self._store.read(alert_sql.select_open_seen(tenant, after, _ROWS))
            if not rows:
                ordered = msgspec.structs.replace(setting, ordered_by=setting.serving)
                demand = alert_sql.demand_alert_setting(setting)
                await self._store.write(*demand, alert_sql.save_alert_setting(ordered))
                return
            await self._order(tenant, setting.serving, rows)
            after = rows[-1][0]
        self._anew[tenant] = setting.serving, after

    async def _order(self, tenant: str, version: int, rows: Sequence[Row]) -> None:
        alerts = [OrderedAlert._make(row) for row in rows]
        trees = await self._model(tenant, version)
        outcomes = Resolutions()
        for rule_id, typology, resolution, count in await self._store.read(alert_sql.select_ends(tenant)):
            outcomes.add(rule_id, typology, resolution, count)
        statements: list[Statement] = []
        for alert in alerts:
            priority = NO_PRIORITY
            if trees is not None:
                priority = await self._priority(tenant, trees, alert, outcomes)
            if priority != alert.priority:
                statements.append(alert_sql.set_priority(tenant, alert.id, priority))
        if statements:
            await self._store.write(*statements)

    async def _priority(
        self, tenant: str, trees: TreeModel, alert: OrderedAlert, outcomes: Resolutions
    ) -> int:
        past = await self._store.read(
            alert_sql.select_customer_past(tenant, alert.customer, alert.id, CUSTOMER_ALERTS_MAX)
        )
        facts = await self._facts.read(tenant, alert.record)
        values = values_of(alert, outcomes, [*map(CustomerAlert._make, past)], facts)
        return priority_of(trees.log_odds([values.get(name) for name in trees.features]))

    async def _model(self, tenant: str, version: int) -> TreeModel | None:
        """Return a model ready to serve; None for no order. Raises `ValueError` for one that is damaged."""
        if not version:
            return None
        known = self._models.pop((tenant, version), None)
        if known is None:
            rows = await self._store.read(alert_sql.select_alert_model(tenant, version))
            if not rows:
                raise ValueError("the model that orders alerts is gone")
            digest, body = rows[0]
            known = await asyncio.to_thread(TreeModel, body, digest)
        self._models[tenant, version] = known
        while len(self._models) > _MODELS_MAX:
            del self._models[next(iter(self._models))]
        return known
