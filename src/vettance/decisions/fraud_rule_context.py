"""What fraud rule sets are checked with: the names they may use, how their tests are run, their pack."""

from collections.abc import Callable
from typing import Any

from vettance.decisions.features import fraud_schema
from vettance.events.event import read_event
from vettance.rules.gate import Context
from vettance.rules.packs import default_pack
from vettance.rules.sql import DECIDING
from vettance.velocity.port import Velocity
from vettance.wire.payload import JSON, encode


def fraud_context(make_velocity: Callable[[], Velocity]) -> Context:
    """Return it; tests know of an address only what it says itself."""
    return Context(fraud_schema(), _parse, make_velocity, default_pack(DECIDING.pack))


def _parse(body: JSON, now_ms: int) -> Any:
    return read_event(body, encode(body), now_ms)
