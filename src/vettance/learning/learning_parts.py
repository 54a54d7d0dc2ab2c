"""Puts the parts of learning together."""

from collections.abc import Awaitable, Sequence
from typing import NamedTuple

from vettance.db.engine import Store
from vettance.governance.check_documents import DocumentChecker
from vettance.learning.api import FeatureDoors, ModelDoors
from vettance.learning.keep_alert_order import AlertOrderKeeper
from vettance.learning.keep_learning import ModelKeeper, can_train
from vettance.models.keep_models import ModelMirror
from vettance.models.serving_model import ServingModels
from vettance.settings.settings import Settings
from vettance.telemetry.meters import Meters
from vettance.web.routing import Route


class LearningParts(NamedTuple):
    """What serves models, and what has them trained."""

    mirror: ModelMirror
    duties: tuple[ModelKeeper, AlertOrderKeeper]

    def begin_features(self, tenant: str, bodies: Sequence[bytes]) -> Awaitable[bool]:
        """See `ModelKeeper.begin_features`."""
        return self.duties[0].begin_features(tenant, bodies)

    def routes(self, store: Store, checker: DocumentChecker) -> tuple[Route, ...]:
        """The endpoints; `checker` checks features."""
        return (*ModelDoors(store).routes(), *FeatureDoors(store, checker).routes())


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
    )
