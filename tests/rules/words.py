"""A small schema for tests of the rule language: events are plain dicts."""

from collections.abc import Mapping, Sequence
from typing import Any

from vettance.rules.compiler import CompiledRules, compile_rules
from vettance.rules.language import check
from vettance.rules.schema import Field, Namespace, Schema, Type

FIELDS = {
    "event_name": Type.TEXT,
    "ip": Type.TEXT,
    "country": Type.TEXT,
    "user_agent": Type.TEXT,
    "customer.external_id": Type.TEXT,
    "customer.email": Type.TEXT,
    "device.fingerprint": Type.TEXT,
    "metadata.amount": Type.NUMBER,
    "metadata.limit": Type.NUMBER,
    "location.latitude": Type.NUMBER,
    "location.longitude": Type.NUMBER,
    "occurred_at_ms": Type.NUMBER,
    "customer.is_new": Type.BOOL,
    "ip.tags": Type.LIST,
}


def _reader(name: str) -> Any:
    return lambda event: event.get(name)


def small_schema() -> Schema:
    """Return a schema whose fields are the members of a flat dict, and a namespace `metadata`."""
    return Schema(
        [Field(name, type_, _reader(name), f"The {name}.") for name, type_ in FIELDS.items()],
        [Namespace("metadata", lambda event: event.get("metadata", {}), "What the product sends along.")],
    )


SCHEMA = small_schema()


def compile_texts(*texts: str) -> CompiledRules:
    """Compile texts; rule i has the id `ri`."""
    return compile_rules([(f"r{index}", check(text, SCHEMA)) for index, text in enumerate(texts)], SCHEMA)


def fires(text: str, event: Mapping[str, Any], answers: Sequence[Any] = ()) -> bool:
    """Tell whether one rule fires on an event."""
    compiled = compile_texts(text)
    fired, failures = compiled.run(compiled.facts(event), tuple(answers))
    assert failures == []
    return fired == [0]
