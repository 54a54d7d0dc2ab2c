"""Puts the parts of learning together."""

from typing import NamedTuple

from vettance.db.engine import Store
from vettance.learning.api import ModelDoors
from vettance.learning.keep_alert_order import AlertOrderKeeper
from vettance.learning.keep_learning import ModelKeeper, can_train
from vettance.models.keep_models import ModelMirror
from vettance.models.serving_model import ServingModels
from vettance.settings.settings import Settings
from vettance.telemetry.meters import Meters


class LearningParts(NamedTuple):
    """What serves models, what has them trained, and the endpoints."""

    mirror: ModelMirror
    duties: tuple[ModelKeeper, AlertOrderKeeper]
    doors: ModelDoors


def assemble_learning(
    store: Store, settings: Settings, models: ServingModels, meters: Meters
) -> LearningParts:
    """Return the parts; `models` is where those look who decide."""
    return LearningParts(
        ModelMirror(store, models),
        (
            ModelKeeper(store, settings.data, meters),
            AlertOrderKeeper(store, settings.data, settings.jurisdictions, meters, can_train),
        ),
        ModelDoors(store),
    )
