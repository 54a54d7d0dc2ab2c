"""How many events a second a backtest of the default pack takes: by records, and decided anew.

    python bench backtests [--kind fraud|aml] [--events 15000] [--rounds 3] [--json]

A generated stream is imported into a service of its own. Then its rules are tried on it in this process, in
both ways by turns; the best round of each counts, in processor time of the thread. Both must find no change.
"""

import argparse
import asyncio
import itertools
import json
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from bench.fixtures.processes import machine, say
from vettance.aml.features import aml_schema
from vettance.aml.sql import RULE_SETS
from vettance.backtests.aml_backtest import AmlBacktest
from vettance.db.engine import Store
from vettance.db.sqlite import SqliteStore, store_path
from vettance.decisions.active_rulesets import RuleCache
from vettance.decisions.features import fraud_schema
from vettance.decisions.load_ruleset import load_active
from vettance.demo.launch import command, launched, make_fresh
from vettance.generate.aml_stream import Watch, aml_events
from vettance.generate.fraud_stream import Traffic, reference, stream
from vettance.history.backtest import Backtest
from vettance.history.rollup import END_MS
from vettance.rules.ruleset import compile_document
from vettance.velocity.memory.memory_velocity import MemoryVelocity
from vettance.wire.payload import JSON, encode, parse_object

SEED = 76_301
IMPORT_S_MAX = 1_800.0
WAYS = {"records": True, "anew": False}


def write_events(path: Path, kind: str, count: int) -> None:
    """Write so many events of a generated stream, as `import` takes them."""
    customers = max(50, count // 20)
    with path.open("wb") as file:
        for body in itertools.islice(EVENTS[kind](customers), count):
            file.write(encode(body) + b"\n")


def _payments(customers: int) -> Iterator[JSON]:
    traffic = Traffic(customers=customers, days=30, seed=SEED, fraud_share=0.01)
    return (parse_object(one.body(reference(number))) for number, one in enumerate(stream(traffic)))


def _transfers(customers: int) -> Iterator[JSON]:
    return (body for _, body in aml_events(Watch(customers, 60, SEED)))


#: Bodies of events, by the kind of rules.
EVENTS: dict[str, Callable[[int], Iterator[JSON]]] = {"fraud": _payments, "aml": _transfers}


async def try_rules(store: Store, tenant: str, *, by_records: bool) -> tuple[int, int, float]:
    """Try the rules in force; return events, changes and events a second of processor time."""
    schema = fraud_schema()
    active = await load_active(store, RuleCache(lambda text: compile_document(text, schema)), tenant)
    run = Backtest(store, tenant, active, MemoryVelocity, by_records=by_records)
    changes: list[Any] = []
    began_s = time.thread_time()
    await run.run((0, END_MS), changes.append, lambda _count: None)
    rate = sum(run.counts.values()) / (time.thread_time() - began_s)
    return sum(run.counts.values()), len(changes), rate


async def try_aml_rules(store: Store, tenant: str, *, by_records: bool) -> tuple[int, int, float]:
    """The same of AML: what changes is whether an event is behind an alert."""
    schema = aml_schema()
    cache = RuleCache(lambda text: compile_document(text, schema))
    active = await load_active(store, cache, tenant, RULE_SETS)
    run = AmlBacktest(store, tenant, active, MemoryVelocity, by_records=by_records)
    began_s = time.thread_time()
    await run.run((0, END_MS), lambda _tried: None, lambda _count: None)
    rate = sum(run.counts.values()) / (time.thread_time() - began_s)
    assert run.is_by_records == by_records
    return sum(run.counts.values()), run.flips, rate


TRIALS = {"fraud": try_rules, "aml": try_aml_rules}


async def measure(folder: Path, kind: str, tenant: str, rounds: int) -> dict[str, Any]:
    """Try both ways by turns."""
    found: dict[str, Any] = {way: {"events": 0, "changes": 0, "perSecond": 0.0} for way in WAYS}
    async with await SqliteStore.open(store_path(folder), writer="thread") as store:
        for number in range(rounds):
            for way, by_records in WAYS.items():
                events, changes, rate = await TRIALS[kind](store, tenant, by_records=by_records)
                say(f"round {number + 1}  {way:<8}{rate:10,.0f} events/s, {changes} changes")
                best = max(rate, found[way]["perSecond"])
                found[way] = {"events": events, "changes": changes, "perSecond": round(best)}
    return found


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        prog="bench backtests", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--kind", choices=EVENTS, default="fraud")
    parser.add_argument("--events", type=int, default=15_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="vettance-backtests-") as place:
        folder = Path(place) / "data"
        make_fresh(folder)
        tenant = command(folder, "tenant", "create", "Backtests")["tenantId"]
        if options.kind == "aml":
            command(folder, "tenant", "set", tenant, "--aml", "on")
        events = Path(place) / "events.ndjson"
        write_events(events, options.kind, options.events)
        with launched(folder):
            say(f"importing {options.events:,} events")
            command(folder, "import", str(events), "--tenant", tenant, "--wait", seconds_max=IMPORT_S_MAX)
        found = asyncio.run(measure(folder, options.kind, tenant, options.rounds))
    if options.json:
        print(json.dumps({"machine": machine(), **found}))
        return
    print(machine())
    for way, one in found.items():
        print(f"{way:<8}{one['perSecond']:>10,} events/s of processor time, {one['changes']} changes")


if __name__ == "__main__":
    main()
