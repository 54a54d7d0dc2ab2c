"""What is suggested where the rules for one planted attack were taken out: precision, recall, seconds.

    python bench rule_suggestions [--attack bot] [--customers 5200] [--days 120] [--seed 7] [--json]

Traffic is generated, decided by the default pack without the rules whose hits on planted events are mostly
on that attack, and stored with a label of every fraud and of each twentieth other event. Recall on the
attack is by the truth of the generator, which the search does not see. `--attack none` takes no rule out and
plants no `bot`: nothing of a precision below one half may be suggested. Seconds are of the processor. A
million events take `--customers 5200 --days 120`; deciding them takes longer than the search. `--data FILE`
names a store that is made once and used again.
"""

import argparse
import asyncio
import json
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from bench.fixtures.decided_traffic import TENANT, rules_against, without_rules, write_store
from vettance.backtests.backtest_job import END_MS
from vettance.db.sqlite import SqliteStore
from vettance.decisions.active_rulesets import RuleCache
from vettance.decisions.load_ruleset import load_active
from vettance.generate.attacks import ATTACKS
from vettance.generate.fraud_stream import Traffic, stream
from vettance.rules.packs import load_pack
from vettance.rules.ruleset import RuleSet, compile_document
from vettance.suggestions.find_rules import FeatureSource
from vettance.suggestions.logged_values import LogReader
from vettance.suggestions.suggest import find_and_measure, read_log
from vettance.suggestions.suggested_rules import choose, measures_of


def main() -> int:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--attack", choices=[*(one.scenario for one in ATTACKS), "none"], default="bot")
    parser.add_argument("--customers", type=int, default=1500)
    parser.add_argument("--days", type=int, default=60)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args()
    weights = {"bot": 0.0} if asked.attack == "none" else {}
    traffic = Traffic(customers=asked.customers, days=asked.days, seed=asked.seed, weights=weights)
    pack = load_pack("fraud")
    with tempfile.TemporaryDirectory() as folder:
        path = asked.data or Path(folder) / "decided.db"
        if not path.exists():
            write_store(path, traffic, _taken_out(pack, asked.attack))
        found = asyncio.run(_suggest(path))
    scenarios = [one.scenario for one in stream(traffic)]
    result = _judged(found, scenarios, asked.attack)
    print(json.dumps(result) if asked.json else _text(result))
    return 0


def _taken_out(pack: RuleSet, attack: str) -> RuleSet:
    if attack == "none":
        return pack
    # Another seed, and more fraud: which rules are against an attack is seen on few events.
    trial = Traffic(customers=200, days=30, seed=99, fraud_share=0.05)
    return without_rules(pack, rules_against(pack, attack, trial))


async def _suggest(path: Path) -> dict[str, Any]:
    """Find and measure rules as a job does."""
    store = await SqliteStore.open(path, writer="thread")
    try:
        began_s = time.process_time()
        log = await read_log(store, TENANT, (0, END_MS), lambda _count: None)
        learned, later = log.known().split()
        reader = LogReader(store, TENANT)
        cache = RuleCache(lambda text: compile_document(text, reader.schema))
        active = await load_active(store, cache, TENANT)
        found = await find_and_measure(reader, learned, later, active, FeatureSource(), lambda _count: None)
        chosen = choose(measures_of(found))
        seconds = time.process_time() - began_s
    finally:
        await store.close()
    return {"events": len(log.places), "seconds": seconds, "kept": (found, chosen)}


def _judged(found: dict[str, Any], scenarios: list[str], attack: str) -> dict[str, Any]:
    measured, chosen = found["kept"]
    # Places of the log are numbered from 1 in the order of the stream.
    truth = np.array([scenarios[place - 1] for place in measured.log.places.tolist()])
    planted, of_attack = truth != "ordinary", truth == attack
    rows = [
        {
            "when": one.condition.text,
            "precision": round(float(planted[one.hits].mean()), 4),
            "recallOfAttack": round(float(one.hits[of_attack].mean()), 4) if of_attack.any() else None,
            "added": one.added,
        }
        for one in chosen
    ]
    return {
        "attack": attack,
        "events": found["events"],
        "attackEvents": int(of_attack.sum()),
        "seconds": round(found["seconds"], 1),
        "rules": rows,
    }


def _text(result: dict[str, Any]) -> str:
    lines = [
        f"{result['attack']}: {result['events']:,} events, {result['attackEvents']} of the attack in the "
        f"later part, {result['seconds']} s of the processor"
    ]
    for one in result["rules"]:
        recall = (
            "" if one["recallOfAttack"] is None else f", recall of the attack {one['recallOfAttack']:.3f}"
        )
        lines.append(f"  precision {one['precision']:.3f}{recall}, adds {one['added']}: {one['when']}")
    return "\n".join(lines)


if __name__ == "__main__":
    raise SystemExit(main())
