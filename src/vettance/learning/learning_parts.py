"""Puts the parts of learning together."""

from pathlib import Path
from typing import NamedTuple

from vettance.db.engine import Store
from vettance.learning.api import ModelDoors
from vettance.learning.keep_learning import ModelKeeper
from vettance.models.keep_models import ModelMirror
from vettance.models.serving_model import ServingModels
from vettance.telemetry.meters import Meters


class LearningParts(NamedTuple):
    """What serves models, what has them trained, and the endpoints."""

    mirror: ModelMirror
    keeper: ModelKeeper
    doors: ModelDoors


def assemble_learning(store: Store, data: Path, models: ServingModels, meters: Meters) -> LearningParts:
    """Return the parts; `models` is where those look who decide."""
    return LearningParts(ModelMirror(store, models), ModelKeeper(store, data, meters), ModelDoors(store))
