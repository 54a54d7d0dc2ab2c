"""Measures the rule language: microseconds to extract, observe and run typical rule sets.

    python bench rule_language [--json] [--quick]

The rule sets are made here: every rule tests the kind of event and one or two fields with bounds of its own,
and every fifth asks the memory. Rounds of all sizes are interleaved and the best counts: on a busy machine
that is the one nearest to the truth.
"""

import argparse
import json
import time
import timeit
from collections.abc import Callable
from typing import Any

from vettance.rules.compiler import CompiledRules, compile_rules
from vettance.rules.language import check
from vettance.rules.schema import Field, Namespace, Schema, Type

FIELDS = (
    ("event.kind", Type.TEXT, "kind"),
    ("ip", Type.TEXT, "ip"),
    ("country", Type.TEXT, "country"),
    ("user_agent", Type.TEXT, "user_agent"),
    ("customer.key", Type.TEXT, "customer"),
    ("device.key", Type.TEXT, "device"),
    ("session_id", Type.TEXT, "session_id"),
    ("amount", Type.NUMBER, "amount"),
    ("is_new", Type.BOOL, "is_new"),
    ("latitude", Type.NUMBER, "latitude"),
    ("longitude", Type.NUMBER, "longitude"),
    ("occurred_at_ms", Type.NUMBER, "occurred_at_ms"),
)
SCHEMA = Schema(
    [Field(name, type_, lambda event: event, "A field.", attribute) for name, type_, attribute in FIELDS],
    [Namespace("metadata", lambda event: event.metadata, "Anything.", "metadata")],
)
AGGREGATES = (
    'count(event.kind == "login", by=ip, within="10m") > {n}',
    'count(by=customer.key, within="1h") > {n}',
    'distinct(customer.key, by=device.key, within="24h") > {n}',
    'distinct(customer.key, by=ip, within="1h") > {n}',
    'amount > {n} * avg(amount, by=customer.key, within="30d")',
    'sum(amount, by=customer.key, within="24h") > 1000{n}',
    'max(amount, by=device.key, within="7d") < {n}',
    'not seen(device.key, by=customer.key, within="90d") and amount > {n}',
    'last_seen(event.kind == "password_change", by=customer.key) < {n}',
    'count(event.kind == "payment", by=(customer.key, device.key), within="5m") > {n}',
)
PLAIN = (
    'event.kind == "{kind}" and amount > {n}00 and country not in ["GB", "FR", "DE"]',
    'event.kind == "{kind}" and is_new and amount > {n}0',
    'event.kind == "{kind}" and metadata.items > {n} and metadata.channel == "web"',
    'event.kind in ["payment", "{kind}"] and starts_with(lower(country), "x") or amount % 1{n} == 7',
    'event.kind == "{kind}" and distance_km(latitude, longitude, 51.5, 0.{n}) > 5000 and not is_new',
    "missing(session_id) and default(metadata.age, 99) < {n}",
    'event.kind == "{kind}" and hour_of(occurred_at_ms) < 5 and amount * 2 > {n}000',
    'event.kind == "signup" and contains(user_agent, "headless{n}")',
)
KINDS = ("login", "payment", "signup", "transfer")


class Event:
    """An event with everything the rules read."""

    kind = "payment"
    ip = "203.0.113.9"
    country = "GB"
    user_agent = (
        "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/126.0 Safari/537.36"
    )
    customer = "customer-1234567"
    device = "b6f1c2d3e4f5a6b7"
    session_id = "session-1"
    amount = 49.9
    is_new = False
    latitude = 51.5074
    longitude = -0.1278
    occurred_at_ms = 1_768_478_400_000

    def __init__(self) -> None:
        self.metadata = {"items": 3, "channel": "web", "age": 40}


ANSWERS: dict[str, Any] = {"seen": True, "avg": 40.0, "max": 90.0, "last_seen": None}


def texts_of(count: int) -> list[str]:
    """Make as many typical rules, no two alike; every fifth asks the memory, in ten different ways."""
    texts = []
    for number in range(count):
        parts = {"n": number + 1, "kind": KINDS[number % len(KINDS)]}
        source = AGGREGATES[number // 5 % 10] if number % 5 == 0 else PLAIN[number % len(PLAIN)]
        texts.append(source.format(**parts))
    return texts


def compiled_set(count: int) -> tuple[CompiledRules, float]:
    """Return a rule set and the milliseconds it took to check and compile it."""
    texts = texts_of(count)
    started = time.perf_counter()
    compiled = compile_rules([(f"r{at}", check(text, SCHEMA)) for at, text in enumerate(texts)], SCHEMA)
    return compiled, (time.perf_counter() - started) * 1000


def steps_of(compiled: CompiledRules) -> dict[str, Callable[[], Any]]:
    """Return what is measured."""
    event = Event()
    facts = compiled.facts(event)
    answers = tuple(ANSWERS.get(name.partition("(")[0], 2) for name in compiled.plan.aggregate_names)
    assert compiled.run(facts, answers)[1] == []

    def whole() -> None:
        extracted = compiled.facts(event)
        compiled.observe(extracted)
        compiled.run(extracted, answers)

    return {
        "facts": lambda: compiled.facts(event),
        "observe": lambda: compiled.observe(facts),
        "run": lambda: compiled.run(facts, answers),
        "whole": whole,
    }


def measure(*, quick: bool) -> list[dict[str, Any]]:
    """Return a row for each size; times are microseconds for one event."""
    rows: list[dict[str, Any]] = []
    steps: list[dict[str, Callable[[], Any]]] = []
    for count in (10, 50, 200, 500):
        compiled, compile_ms = compiled_set(count)
        aggregates = len(compiled.plan.aggregates)
        rows.append({"rules": count, "aggregates": aggregates, "compile_ms": round(compile_ms, 1)})
        steps.append(steps_of(compiled))
    best: list[dict[str, float]] = [dict.fromkeys(each, float("inf")) for each in steps]
    for _ in range(5 if quick else 25):
        for at, each in enumerate(steps):
            for name, step in each.items():
                best[at][name] = min(best[at][name], timeit.timeit(step, number=500) / 500 * 1e6)
    return [{**row, **{name: round(us, 2) for name, us in best[at].items()}} for at, row in enumerate(rows)]


def main() -> None:
    """Print a table, or JSON."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--quick", action="store_true")
    chosen = parser.parse_args()
    rows = measure(quick=chosen.quick)
    if chosen.json:
        print(json.dumps({"rules": rows}))
        return
    print("microseconds for one event (best of interleaved rounds)")
    print(" ".join(f"{name:>10}" for name in rows[0]))
    for row in rows:
        print(" ".join(f"{value:>10}" for value in row.values()))
