"""How well the default pack alone, without a label, ranks the frauds of a file of card payments.

    python bench payment_scores --data FILE.parquet [--from-day 63]

The file, as `bench learning` reads it, goes through the compiled pack, the state engine and the decision.
"""

import argparse
from pathlib import Path

import numpy as np

from bench.learning.labelled_stream import read_payments
from vettance.clock import DAY_MS
from vettance.decisions.decision import Outcome, decide
from vettance.decisions.features import fraud_schema
from vettance.events.event import read_taken_event
from vettance.learning.train import average_precision
from vettance.rules.packs import load_pack
from vettance.rules.ruleset import compile_ruleset
from vettance.velocity.memory.memory_velocity import MemoryVelocity


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--from-day", type=int, default=63, help="what came before only fills the past")
    options = parser.parse_args()
    ruleset, events = load_pack("fraud"), read_payments(options.data)
    compiled, velocity = compile_ruleset(ruleset, fraud_schema()), MemoryVelocity()
    velocity.install("bench", compiled.plan)
    scores, frauds, held = [], [], 0
    for number, one in enumerate(events):
        facts = compiled.facts(read_taken_event(one.body, one.at_ms))
        answer = velocity.observe("bench", str(number), one.at_ms, compiled.observe(facts))
        if one.at_ms - events[0].at_ms < options.from_day * DAY_MS:
            continue
        fired, _ = compiled.run(facts, answer.values)
        decision = decide(ruleset, 1, fired, ())
        scores.append(decision.score)
        frauds.append(one.fraud)
        held += decision.outcome is not Outcome.ALLOW
    if not scores:
        raise SystemExit(f"no payment is {options.from_day} days younger than the first: see --from-day")
    truths = np.array(frauds)
    precision = average_precision(truths, np.array(scores, dtype=float), np.ones(len(truths)))
    print(f"{len(truths)} payments, {truths.sum()} frauds: average precision of the score {precision:.3f}")
    print(f"held: {held / len(truths):.2%}")


if __name__ == "__main__":
    main()
