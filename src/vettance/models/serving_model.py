"""A model in service for a tenant, and how its answer reaches a decision."""

import enum
import time
from collections.abc import Sequence
from typing import Final, NamedTuple

from vettance.models.feature_set import FeatureSet
from vettance.models.model_score import (
    REASONED_MIN,
    Contribution,
    ModelResult,
    contributions_of,
    reasons_of,
    score_of,
)
from vettance.models.trees import TreeModel
from vettance.rules.unknowns import message_of

#: What takes longer than this is thrown away, and said in the record.
TIME_NS_MAX: Final = 2_000_000


#: The places of the features of a model in what was recorded, by the digest of that; None without them.
Places = dict[str, tuple[int, ...] | None]


class ModelMode(enum.StrEnum):
    """What a model may do: nothing, be recorded, or raise scores."""

    OFF = "off"
    SHADOW = "shadow"
    ACTIVE = "active"


class ServingModel(NamedTuple):
    """The champion of a tenant with its features and what it may do; `fault` where it cannot be served.

    `places` has, by the digest of what was recorded, the places of those that the model was made from.
    """

    version: int
    mode: ModelMode
    may_block: bool
    features: FeatureSet
    trees: TreeModel | None
    fault: str | None = None
    places: Places | None = None

    def values_of(self, features: str, values: Sequence[float | None]) -> Sequence[float | None] | None:
        """Return the model's own among the values of a set of some digest; None where they are not there."""
        if features == self.features.digest:
            return values
        places = None if self.places is None else self.places.get(features)
        return [values[place] for place in places] if places else None

    def say(
        self, features: str, values: Sequence[float | None], recorded: FeatureSet | None = None
    ) -> ModelResult:
        """Score the values of a feature set of some digest, which is `recorded`. It does not raise."""
        if self.trees is None:
            return self._fail(self.fault or "there is no model")
        try:
            own = self.values_of(features, values)
            if own is None and recorded is not None and self.places is not None:
                self.places.setdefault(features, recorded.places_of(self.features))
                own = self.values_of(features, values)
            if own is None:
                return self._fail("the model was made from other features")
            began_ns = time.perf_counter_ns()
            log_odds = self.trees.log_odds(own)
            if time.perf_counter_ns() - began_ns > TIME_NS_MAX and _is_slow(self.trees, own):
                return self._fail("the model took too long")
            if not -1e6 < log_odds < 1e6:
                return self._fail("the model gave no number")
            reasons: tuple[tuple[str, str], ...] = ()
            if self.mode is ModelMode.ACTIVE and score_of(log_odds) >= REASONED_MIN:
                reasons = reasons_of(self.features.features, self.explain(own))
        except Exception as error:  # noqa: BLE001  The rules answer alone then.
            return self._fail(message_of(error))
        return ModelResult(self.version, self.mode, self.may_block, log_odds, reasons)

    def explain(self, values: Sequence[float | None]) -> list[Contribution]:
        """Return what each feature added, the largest first."""
        assert self.trees is not None
        return contributions_of(self.features.features, values, self.trees.contributions(values))

    def _fail(self, error: str) -> ModelResult:
        return ModelResult(self.version, self.mode, self.may_block, None, (), error)


def _is_slow(trees: TreeModel, values: Sequence[float | None]) -> bool:
    """Tell whether a model takes too long of the processor, once more than the time allowed has gone by.

    It is asked again for that: to look at the processor time of every answer would cost as much as an answer.
    """
    began_ns = time.thread_time_ns()
    trees.log_odds(values)
    return time.thread_time_ns() - began_ns > TIME_NS_MAX


#: By tenant, those that are in service.
ServingModels = dict[str, ServingModel]
