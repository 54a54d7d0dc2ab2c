"""What fraud rules are checked with: their words, how their tests read events, and the pack they build on."""

from collections.abc import Callable, Mapping
from typing import Any, Final

from vettance.decisions.features import fraud_schema
from vettance.events.event import read_event
from vettance.models.model_score import MODEL_PROBABILITY, MODEL_SCORE, score_of
from vettance.models.trees import log_odds_of
from vettance.rules.gate import Context
from vettance.rules.packs import default_pack
from vettance.rules.schema import Schema
from vettance.velocity.port import Velocity
from vettance.wire.payload import JSON, encode

PACK: Final = "fraud"


def fraud_context(make_velocity: Callable[[], Velocity], schema: Schema | None = None) -> Context:
    """Return what a document is held against; `make_velocity` makes an empty memory for its tests.

    Tests know of an address only what it says itself.
    """
    return Context(schema or fraud_schema(), _parse, make_velocity, default_pack(PACK), pretend_model)


def pretend_model(probability: float) -> Mapping[str, Any]:
    """Return what rules see of a model that says a probability (above 0, below 1)."""
    return {MODEL_PROBABILITY: probability, MODEL_SCORE: score_of(log_odds_of(probability))}


def _parse(body: JSON, now_ms: int) -> Any:
    return read_event(body, encode(body), now_ms)
