"""What fraud rules are checked with: their words, how their tests read events, and the pack they build on."""

from collections.abc import Callable
from typing import Any, Final

from vettance.decisions.features import fraud_schema
from vettance.events.event import read_event
from vettance.rules.gate import Context
from vettance.rules.packs import default_pack
from vettance.rules.schema import Schema
from vettance.velocity.port import Velocity
from vettance.wire.payload import JSON, encode

PACK: Final = "fraud"


def fraud_context(make_velocity: Callable[[], Velocity], schema: Schema | None = None) -> Context:
    """Return what a document is held against; `make_velocity` makes an empty memory for its tests."""
    return Context(schema or fraud_schema(), _parse, make_velocity, default_pack(PACK))


def _parse(body: JSON, now_ms: int) -> Any:
    return read_event(body, encode(body), now_ms)
