"""Keeps the models that serve tenants in memory, in line with the store."""

import asyncio
from collections.abc import Sequence
from typing import Final

from vettance.db.engine import Store
from vettance.models import sql
from vettance.models.feature_set import FeatureSet, read_feature_set
from vettance.models.find_recorded import find_places
from vettance.models.serving_model import ModelMode, ServingModel, ServingModels
from vettance.models.sql import ModelSetting, StoredModel
from vettance.models.trees import TreeModel
from vettance.telemetry.logs import logger

_NO_FEATURES: Final = FeatureSet((), "")
#: Models of other versions that are kept ready, to explain decisions that they made; some megabytes each.
_READY_MAX: Final = 8

_log = logger()


class ModelMirror:
    """Fills `models`, into which those look who decide."""

    def __init__(self, store: Store, models: ServingModels) -> None:
        self._store = store
        self.models = models
        self._ready: dict[tuple[str, int], ServingModel] = {}

    async def load(self) -> None:
        """Read those of all tenants, at start."""
        for row in await self._store.read(sql.select_settings()):
            await self._put(sql.setting_of(row))

    async def reload(self, tenant: str) -> None:
        """Read that of one tenant again."""
        rows = await self._store.read(sql.select_setting(tenant))
        if rows:
            await self._put(sql.setting_of(rows[0]))
        else:
            self.forget(tenant)

    def forget(self, tenant: str) -> None:
        """Drop what is held of a tenant."""
        self.models.pop(tenant, None)
        for key in [key for key in self._ready if key[0] == tenant]:
            del self._ready[key]

    async def find(self, tenant: str, version: int) -> ServingModel | None:
        """Return a model by its version, to explain what it said; None when it is gone."""
        known = self._ready.pop((tenant, version), None)
        if known is None:
            rows = await self._store.read(sql.select_model(tenant, version))
            if not rows:
                return None
            known = await self._open(tenant, StoredModel(*rows[0]))
        self._ready[tenant, version] = known
        while len(self._ready) > _READY_MAX:
            del self._ready[next(iter(self._ready))]
        return known

    async def values_of(
        self, tenant: str, model: ServingModel, features: str, values: Sequence[float | None]
    ) -> Sequence[float | None] | None:
        """Return a model's own among the values of a decision; None where they are not there any more."""
        own = model.values_of(features, values)
        if own is None and model.places is not None and features not in model.places:
            model.places[features] = await find_places(self._store, tenant, model.features, features)
            own = model.values_of(features, values)
        return own

    async def _put(self, setting: ModelSetting) -> None:
        if setting.mode is ModelMode.OFF or setting.champion is None:
            self.models.pop(setting.tenant, None)
            return
        found = await self.find(setting.tenant, setting.champion)
        if found is None:
            fault = "the model is gone"
            found = _shadow(setting.champion, _NO_FEATURES, None, fault)
        self.models[setting.tenant] = found._replace(mode=setting.mode, may_block=setting.may_block)

    async def _open(self, tenant: str, stored: StoredModel) -> ServingModel:
        """Make a model ready, in a thread: it is compiled. One that is damaged says so in every record."""
        trees = fault = None
        features = _NO_FEATURES
        try:
            features = read_feature_set(stored.features)
            trees = await asyncio.to_thread(TreeModel, stored.body, stored.digest)
            if trees.features != tuple(one.name for one in features.features):
                trees, fault = None, "the model was made from other features"
        except Exception as error:  # noqa: BLE001  The rules answer alone then.
            fault = str(error)
            _log.exception("model_not_in_service", tenant=tenant, version=stored.version)
        return _shadow(stored.version, features, trees, fault)


def _shadow(version: int, features: FeatureSet, trees: TreeModel | None, fault: str | None) -> ServingModel:
    """Return a model that may do nothing yet."""
    return ServingModel(
        version, ModelMode.SHADOW, may_block=False, features=features, trees=trees, fault=fault, places={}
    )
