"""What the default fraud pack holds: each rule and all together, of ordinary traffic and of planted attacks.

    python bench pack_shares [--seeds 3] [--customers 400] [--days 60] [--first-seed N] [--roaming 0.3]
                             [--slow] [--json] [--write]

Traffic of `vettance generate fraud` with seeds that nobody tuned on, once with device ids and once without,
through the compiled pack, the state engine and the decision. The first third of the days only fills the past.
`--roaming` gives ordinary customers many networks, `--slow` adds stuffing with a login every ten minutes.
`--write` keeps the figures for docs/default-pack.md; then run `APPROVE=1 pytest tests/packs`.
"""

import argparse
import json
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from msgspec.structs import replace

from vettance.clock import DAY_MS
from vettance.decisions.decision import decide
from vettance.decisions.features import fraud_schema
from vettance.events.event import read_taken_event
from vettance.generate.fraud_stream import Traffic, reference, stream
from vettance.generate.generated_event import ORDINARY
from vettance.rules.packs import fraud_manual, load_pack
from vettance.rules.ruleset import compile_ruleset
from vettance.velocity.memory.memory_velocity import MemoryVelocity
from vettance.wire.payload import parse_object

FIRST_SEED = 76_101
FRAUD_SHARE = 0.02
#: Takeovers are few in ordinary traffic; more of them make their shares worth printing.
WEIGHTS = {"vpn_takeover": 4.0, "targeted_takeover": 4.0}
TAKEOVERS = ("account_takeover", "vpn_takeover", "targeted_takeover")


class Judged(NamedTuple):
    """One event as the pack saw it."""

    scenario: str
    kind: str
    outcome: str
    allowed: bool
    score: int
    fired: tuple[str, ...]


def judged(traffic: Traffic, *, devices: bool) -> Iterator[Judged]:
    """Yield the decisions about one stream, without those of its first third."""
    ruleset = load_pack("fraud")
    compiled, velocity = compile_ruleset(ruleset, fraud_schema()), MemoryVelocity()
    velocity.install("bench", compiled.plan)
    kind_at, outcome_at = (compiled.fact_names.index(name) for name in ("event.kind", "event.outcome"))
    for number, happening in enumerate(stream(traffic)):
        body = parse_object(happening.body(reference(number)))
        if not devices:
            body.pop("device", None)
        facts = compiled.facts(read_taken_event(body, happening.at_ms))
        seen = compiled.observe(facts)
        answer = velocity.observe("bench", str(number), happening.at_ms, seen)
        fired, _ = compiled.run(facts, answer.values)
        decision = decide(ruleset, 1, fired, ())
        if happening.at_ms - traffic.start_ms >= traffic.days * DAY_MS // 3:
            yield Judged(
                happening.scenario,
                str(facts[kind_at]),
                str(facts[outcome_at]),
                decision.outcome.value == "ALLOW",
                decision.score,
                tuple(ruleset.running[index].id for index in fired),
            )


class Shares:
    """Counts over several streams."""

    def __init__(self) -> None:
        self.events: Counter[str] = Counter()
        self.held: Counter[str] = Counter()
        self.fired: Counter[str] = Counter()
        self.decisive: Counter[str] = Counter()
        self.scores: Counter[int] = Counter()

    def add(self, one: Judged) -> None:
        """Count a decision under the name of its row."""
        is_login = one.kind == "login" and one.outcome != "failure"
        if one.scenario == ORDINARY:
            row = "ordinary logins" if is_login else "other ordinary events"
            self.fired.update(one.fired)
            self.decisive.update(() if one.allowed else one.fired)
            if is_login:
                self.scores[one.score] += 1
        elif one.scenario in TAKEOVERS and not is_login:
            return
        else:
            row = one.scenario
        self.events[row] += 1
        self.held[row] += not one.allowed

    def share(self, row: str) -> float:
        """Return the share of a row's events that were held."""
        return self.held[row] / self.events[row] if self.events[row] else 0.0


def measure(seeds: range, like: Traffic) -> dict[str, Any]:
    """Return the figures of traffic like one with other seeds, as they are kept."""
    found: dict[str, Any] = {
        "seeds": [seeds.start, seeds.stop - 1],
        "customers": like.customers,
        "days": like.days,
    }
    for name, devices in (("with", True), ("without", False)):
        shares = Shares()
        for seed in seeds:
            for one in judged(replace(like, seed=seed), devices=devices):
                shares.add(one)
        ordinary = shares.events["ordinary logins"] + shares.events["other ordinary events"]
        found[name] = {
            "held": {row: [round(shares.share(row), 5), count] for row, count in shares.events.items()},
            "scores": len(shares.scores),
            "events": ordinary,
        }
        found[name]["rules"] = {
            rule.id: [
                round(shares.fired[rule.id] / ordinary, 6),
                round(shares.decisive[rule.id] / ordinary, 6),
            ]
            for rule in load_pack("fraud").rules
        }
    return found


def main() -> None:
    """Measure, print and perhaps keep the figures."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--first-seed", type=int, default=FIRST_SEED)
    parser.add_argument("--customers", type=int, default=400)
    parser.add_argument("--days", type=int, default=60)
    parser.add_argument("--roaming", type=float, default=0.0, help="the part of sessions on the way")
    parser.add_argument("--slow", action="store_true", help="add stuffing that takes its time")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--write", action="store_true", help="keep the figures for docs/default-pack.md")
    options = parser.parse_args()
    started = time.process_time()
    seeds = range(options.first_seed, options.first_seed + options.seeds)
    like = Traffic(
        customers=options.customers,
        days=options.days,
        seed=seeds.start,
        fraud_share=FRAUD_SHARE,
        weights=WEIGHTS | ({"slow_stuffing": 1.0} if options.slow else {}),
        roaming=options.roaming,
    )
    found = measure(seeds, like)
    if options.write:
        path = Path(fraud_manual.__file__).with_name(fraud_manual.SHARES_FILE)
        path.write_text(json.dumps(found, indent=1) + "\n", "utf-8")
    if options.json:
        print(json.dumps(found, indent=1))
        return
    for name in ("with", "without"):
        print(f"{name} device ids: {found[name]['scores']} scores of ordinary logins")
        for row, (share, count) in sorted(found[name]["held"].items()):
            print(f"  {row:<24}{share:8.2%} of {count}")
        most = sorted(found[name]["rules"].items(), key=lambda item: -item[1][1])[:12]
        for rule, (fires, held) in most:
            print(f"    {rule:<40}{fires:9.3%} fires, {held:9.3%} among the held")
    print(f"{time.process_time() - started:.0f} s of processor time")


if __name__ == "__main__":
    main()
