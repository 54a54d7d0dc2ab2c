"""What an evaluation costs inside: 50 rules, and 10 aggregates on a cold and on a hot key, in microseconds.

python bench inside [--json]
"""

import argparse
import json
import statistics
import time
from collections.abc import Callable
from typing import Any

from bench.fixtures.fifty_rules import fifty_rules
from bench.fixtures.payments import payment_bodies
from vettance import clock
from vettance.decisions.features import fraud_schema
from vettance.events.event import Event, read_taken_event
from vettance.rules.ruleset import RuleSetRefused, admit, read_ruleset
from vettance.velocity.memory.memory_velocity import MemoryVelocity
from vettance.wire.payload import parse_object

HOT_EVENTS = 100_000
BATCH = 2_000
ROUNDS = 9
TENANT = "ten_bench"


def _parse(body: dict[str, Any], now_ms: int) -> Event:
    return read_taken_event(body, now_ms)


def measure() -> dict[str, float]:
    """Return microseconds per event: best of several batches, the parts interleaved."""
    try:
        compiled = admit(read_ruleset(fifty_rules()), fraud_schema(), _parse, MemoryVelocity)
    except RuleSetRefused as refused:
        raise SystemExit(str(refused)) from None
    now_ms = clock.now_ms()
    events = [read_taken_event(parse_object(body), now_ms) for body in payment_bodies(BATCH * ROUNDS)]
    facts = [compiled.facts(event) for event in events]
    seen = [compiled.observe(fact) for fact in facts]

    velocity = MemoryVelocity()
    velocity.install(TENANT, compiled.plan)
    # A day of one busy customer, a key that every aggregate of the set asks: 100,000 events.
    hot = seen[0]
    step_ms = 86_400_000 // HOT_EVENTS
    for number in range(HOT_EVENTS):
        answer = velocity.observe(TENANT, f"evt_hot{number}", now_ms - 86_400_000 + number * step_ms, hot)

    def rules(first: int) -> None:
        for fact in facts[first : first + BATCH]:
            compiled.observe(fact)
            compiled.run(fact, answer.values)

    def whole(first: int) -> None:
        for event in events[first : first + BATCH]:
            fact = compiled.facts(event)
            compiled.observe(fact)
            compiled.run(fact, answer.values)

    def cold(first: int) -> None:
        for number, one in enumerate(seen[first : first + BATCH]):
            velocity.observe(TENANT, f"evt_cold{first + number}", now_ms, one)

    def heat(first: int) -> None:
        for number in range(BATCH):
            velocity.observe(TENANT, f"evt_heat{first + number}", now_ms, hot)

    found = _interleaved({"rules": rules, "rules with facts": whole, "state, cold": cold, "state, hot": heat})
    found["hot over cold"] = found["state, hot"] / found["state, cold"]
    return found


def _interleaved(parts: dict[str, Callable[[int], None]]) -> dict[str, float]:
    """Run the parts in turn over fresh batches; the median of the three best batches, in µs per event."""
    times: dict[str, list[float]] = {name: [] for name in parts}
    for number in range(ROUNDS):
        for name, part in parts.items():
            began = time.perf_counter()
            part(number * BATCH)
            times[name].append((time.perf_counter() - began) / BATCH * 1e6)
    return {name: statistics.median(sorted(taken)[:3]) for name, taken in times.items()}


def lines(found: dict[str, float]) -> list[str]:
    """Say it to people."""
    return [
        f"50 rules (observation and rules)      {found['rules']:7.2f} µs per event",
        f"50 rules with the facts they read     {found['rules with facts']:7.2f} µs per event   (bound 25)",
        f"10 aggregates, cold key               {found['state, cold']:7.2f} µs per event   (bound 50)",
        f"10 aggregates, hot key ({HOT_EVENTS:,})     {found['state, hot']:7.2f} µs per event   "
        f"({found['hot over cold']:.2f} × cold, bound 2)",
    ]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    found = measure()
    print(json.dumps(found) if options.json else "\n".join(lines(found)))
