"""What roll-outs, dates, snoozes and a hold-out add to a decision, in microseconds of processor time.

    python bench steering_cost [--customers 400] [--days 30] [--seed 4207] [--rounds 9] [--json]

Generated events with the default pack, decided over and over from the same facts and aggregates: as the
pack is, and with one or all of: each rule acting for half of the customers, each rule within dates, a
thousand snoozes on busy rules, and a hold-out of 5 per cent. The ways take turns in every round; the best
round of each counts. `events that rules fire on` are those alone, which is where all of it happens.
"""

import argparse
import gc
import json
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

import msgspec

from bench.fixtures.processes import machine
from bench.learning.labelled_stream import generated, moved_to
from vettance import clock
from vettance.clock import DAY_MS, HOUR_MS
from vettance.decisions.active_rulesets import ActiveRules, RuleCache, RuleInputs, consider
from vettance.decisions.evaluated_event import EvaluationInput, conclude
from vettance.decisions.features import fraud_schema
from vettance.events.event import Event, read_taken_event
from vettance.rules.packs import load_pack
from vettance.rules.rule import Explore, RuleSet
from vettance.rules.ruleset import compile_document, write_ruleset
from vettance.snoozes.snooze import SNOOZES_MAX, Snooze, SnoozeBook, SnoozeType
from vettance.velocity.memory.memory_velocity import MemoryVelocity

_TENANT: Final = "ten_bench"
_PLAIN: Final = "the pack alone"
_SNOOZED_RULES: Final = 10
_DATES: Final = {"active_from": "2000-01-01T00:00:00Z", "active_until": "2200-01-01T00:00:00Z"}
_EXPLORE: Final = Explore(percent=5, below=1_000_000)


class _Way(NamedTuple):
    """Rules as one way has them, and snoozes."""

    active: ActiveRules
    snoozes: SnoozeBook | None


class _Considered(NamedTuple):
    """An event with its facts and what the memory said of it."""

    event: Event
    asked: RuleInputs
    fires: bool


class SteeringCost(NamedTuple):
    """The microseconds of an event by way, and the share of the events that rules fire on."""

    all_us: Mapping[str, float]
    firing_us: Mapping[str, float]
    firing_share: float


def measure(customers: int, days: int, seed: int, rounds: int) -> SteeringCost:
    """Decide the events of a stream in every way."""
    cache = RuleCache(lambda document: compile_document(document, fraud_schema()))
    pack = load_pack("fraud")
    plain = cache.active(1, write_ruleset(pack))
    considered, hits = _consider(plain, customers, days, seed)
    ways = _ways(cache, pack, considered, hits)
    firing = [one for one in considered if one.fires]
    return SteeringCost(
        _timed(ways, considered, rounds), _timed(ways, firing, rounds), len(firing) / len(considered)
    )


def _consider(
    active: ActiveRules, customers: int, days: int, seed: int
) -> tuple[list[_Considered], Counter[str]]:
    """Ask the memory about a stream; returns the second half of it, and how often each rule fired."""
    events = moved_to(generated(customers, days, seed), clock.now_ms() - HOUR_MS)
    velocity = MemoryVelocity()
    velocity.install(_TENANT, active.asked.plan)
    found: list[_Considered] = []
    hits: Counter[str] = Counter()
    for number, one in enumerate(events):
        event = read_taken_event(one.body, one.at_ms)
        asked = consider(velocity, active, _TENANT, f"evt_{number}", event)
        if number >= len(events) // 2:
            fired, _ = active.asked.run(asked.facts, asked.answer.values)
            hits.update(active.ruleset.running[place].id for place in fired)
            found.append(_Considered(event, asked, bool(fired)))
    return found, hits


def _ways(
    cache: RuleCache, pack: RuleSet, considered: Sequence[_Considered], hits: Counter[str]
) -> dict[str, _Way]:
    rules = pack.rules
    halves = [msgspec.structs.replace(rule, rollout=50) for rule in rules]
    dated = [msgspec.structs.replace(rule, **_DATES) for rule in rules]
    both = [msgspec.structs.replace(rule, rollout=50, **_DATES) for rule in rules]
    snoozes = _snoozes(considered, hits)

    def way(changed: RuleSet, book: SnoozeBook | None = None) -> _Way:
        return _Way(cache.active(1, write_ruleset(changed)), book)

    return {
        _PLAIN: way(pack),
        "roll-outs": way(msgspec.structs.replace(pack, rules=halves)),
        "dates": way(msgspec.structs.replace(pack, rules=dated)),
        "snoozes": way(pack, snoozes),
        "hold-out": way(msgspec.structs.replace(pack, explore=_EXPLORE)),
        "all of them": way(msgspec.structs.replace(pack, rules=both, explore=_EXPLORE), snoozes),
    }


def _snoozes(considered: Sequence[_Considered], hits: Counter[str]) -> SnoozeBook:
    """Snooze the rules that fire most for some of the customers that they fire on, and for devices."""
    customers = sorted({one.event.customer_key for one in considered if one.fires and one.event.customer_key})
    busy = [rule for rule, _ in hits.most_common(_SNOOZED_RULES)]
    return SnoozeBook(
        Snooze(
            id=f"snz_{number}",
            tenant=_TENANT,
            kind="fraud",
            rule=busy[number % len(busy)],
            type=SnoozeType.CUSTOMER if number % 2 else SnoozeType.DEVICE,
            value=customers[number * 7 % len(customers)] if number % 2 else f"device-{number}",
            reason="",
            author="",
            created_at_ms=0,
            until_ms=clock.now_ms() + DAY_MS,
            ended_at_ms=None,
        )
        for number in range(SNOOZES_MAX)
    )


def _timed(ways: Mapping[str, _Way], considered: Sequence[_Considered], rounds: int) -> dict[str, float]:
    best = dict.fromkeys(ways, float("inf"))
    gc.disable()
    for _ in range(rounds):
        for name, way in ways.items():
            questions = [
                EvaluationInput(
                    "evt_1", one.event, (), one.asked._replace(active=way.active), "", 0, snoozes=way.snoozes
                )
                for one in considered
            ]
            began_s = time.process_time()
            for question in questions:
                conclude(question, 0)
            best[name] = min(best[name], (time.process_time() - began_s) / len(considered) * 1e6)
    gc.enable()
    return {name: round(took_us, 2) for name, took_us in best.items()}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--customers", type=int, default=400)
    parser.add_argument("--days", type=int, default=30)
    parser.add_argument("--seed", type=int, default=4207)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    found = measure(options.customers, options.days, options.seed, options.rounds)
    if options.json:
        print(json.dumps({"machine": machine(), **found._asdict()}))
        return
    print(f"Rules fire on {found.firing_share:.1%} of the events.")
    for events, times in (("all events", found.all_us), ("events that rules fire on", found.firing_us)):
        print(f"\n{events}")
        for name, took_us in times.items():
            more = "" if name == _PLAIN else f"  {took_us - times[_PLAIN]:+6.2f}"
            print(f"  {name:<16}{took_us:8.2f} µs{more}")
