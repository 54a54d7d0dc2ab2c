"""What a rate of decisions takes, and what breaks first: computed from what requests were measured to cost.

Reads bench/scaling/costs.json, which `python bench request_costs --keep` writes, and says for each rate how
many web processes, Redis shards, database cores, disk, memory and network it takes when each part is busy at
most so much of its time; then simulates the queues of that deployment, in peace and while parts fail.

    python bench capacity [--rate 1000 --rate 10000 --rate 100000] [--busy 0.6] [--days 90] [--json]

A database commits one batch at a time. Beyond what one can commit tenants are spread over several
deployments, each with stores of its own ("cells").
"""

import argparse
import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

from bench.scaling.queue_simulation import Failure, Parts, Simulated, simulate
from bench.scaling.request_costs import COSTS

RATES: Final = (1_000.0, 10_000.0, 100_000.0)
DAY_S: Final = 86_400
#: How many other requests come with each decision. A shop's day; `--mix` takes another.
OTHERS: Final = {"mint": 0.1, "collect": 0.2, "feedback": 0.01, "look": 0.02, "find": 0.01}
#: Of a day's mean rate, the busiest minute. Payments by the hour of the day are about as uneven.
PEAK: Final = 2.5
#: Bytes that one event takes in Redis (docs/benchmarks.md, "Velocity in Redis"), while its keys remember it.
REDIS_EVENT_BYTES: Final = 215
#: Parts of which a database has one, with the cores of the largest machine that one can have.
ALONE: Final = {"writer": 1, "postgres": 64, "commits": 1}
#: Moments of a simulated run at which things fail, and for how long: seconds.
_SECONDS: Final = 40.0
_CALM: Final = (2.0, 10.0)
_WEB_AT, _REDIS_AT, _REDIS_S = 10.0, 20.0, 2.0
_DATABASE_AT, _DATABASE_S = 28.0, 5.0
#: A simulation of more requests a second would take minutes; cells are alike, so one of them is run.
_SIMULATED_RATE_MAX: Final = 12_000.0


class Part(NamedTuple):
    """One part of a deployment: what one of it bears, in decisions a second, and how many there are."""

    name: str
    one_bears: float
    number: int


class Plan(NamedTuple):
    """What a rate of decisions takes. Bytes are of a day; memory is of Redis, at most."""

    rate: float
    cells: int
    parts: list[Part]
    web_mb: float
    stored_gb_day: float
    logged_gb_day: float
    redis_gb: float
    network_mbit: float
    breaks_first: str


def cost_us(costs: Mapping[str, Any], part: str, others: Mapping[str, float]) -> float:
    """Return the processor microseconds of a part for one decision with the requests that come with it."""
    kinds = costs["kinds"]
    own = kinds["evaluate"].get(part, 0.0)
    return float(own + sum(share * kinds[kind].get(part, 0.0) for kind, share in others.items()))


def plan(
    costs: Mapping[str, Any], rate: float, busy: float, days: float, others: Mapping[str, float]
) -> Plan:
    """Compute what a peak of `rate` decisions a second takes, with each part busy that share of its time."""
    commit = costs["commit"]
    database_bears = 1000 / commit["writeMs"] * busy if commit["writeMs"] else math.inf
    # An embedded store belongs to one process; with shared stores any number of processes share a database.
    own_bears = math.inf if "postgres" in costs["kinds"]["evaluate"] else 1e6 / cost_us(costs, "web", others)
    cells = max(1, math.ceil(rate / min(database_bears, own_bears * busy)))
    each = rate / cells
    parts = []
    for name in ("web", "webhooks", "redis", "writer", "postgres"):
        us = cost_us(costs, name, others)
        if us:
            bears = 1e6 / us * busy
            parts.append(Part(name, bears, math.ceil(each / bears)))
    parts.append(Part("commits", database_bears, 1))
    mean = rate / PEAK
    own = costs["kinds"]["evaluate"]
    return Plan(
        rate=rate,
        cells=cells,
        parts=parts,
        web_mb=costs["webMb"],
        stored_gb_day=mean * DAY_S * own.get("storedBytes", 0.0) / 1e9,
        logged_gb_day=mean * DAY_S * own.get("loggedBytes", 0.0) / 1e9,
        redis_gb=mean * DAY_S * days * REDIS_EVENT_BYTES / 1e9 if own.get("redis") else 0.0,
        network_mbit=rate * (2 * own["sentBytes"] + own.get("redisBytes", 0.0)) * 8 / 1e6,
        breaks_first=min(
            (part for part in parts if part.name in ALONE), key=lambda one: one.one_bears * ALONE[one.name]
        ).name,
    )


def parts_of(costs: Mapping[str, Any], made: Plan, others: Mapping[str, float]) -> Parts:
    """Return one cell of a plan as the simulation takes it: service times spread as latencies alone were."""
    counts = {part.name: part.number for part in made.parts}
    alone = costs["evaluateAloneMs"]
    mean = sum(alone) / len(alone)
    web_s = cost_us(costs, "web", others) / 1e6
    return Parts(
        webs=counts["web"],
        shards=counts.get("redis", 0),
        web_s=[web_s * each / mean for each in alone],
        redis_s=cost_us(costs, "redis", others) / 1e6,
        commit_fixed_s=costs["commit"]["fixedMs"] / 1000,
        commit_write_s=costs["commit"]["writeMs"] / 1000,
    )


def failing(costs: Mapping[str, Any], parts: Parts, rate: float) -> dict[str, Any]:
    """Simulate a cell in peace and while a web process, a shard and the database fail, one after another."""
    failures = [Failure("web", _WEB_AT, costs["readyS"]), Failure("database", _DATABASE_AT, _DATABASE_S)]
    if parts.shards:
        failures.append(Failure("redis", _REDIS_AT, _REDIS_S))
    run = simulate(parts, rate, _SECONDS, failures)
    usual_s = run.quantile_ms(0.99, *_CALM) / 1000
    return {
        "rate": rate,
        "calm": {"p50Ms": run.quantile_ms(0.5, *_CALM), "p99Ms": usual_s * 1000},
        "webDies": _during(run, _WEB_AT, costs["readyS"], usual_s),
        **({"redisFails": _during(run, _REDIS_AT, _REDIS_S, usual_s)} if parts.shards else {}),
        "databaseFails": _during(run, _DATABASE_AT, _DATABASE_S, usual_s),
        "askedAgain": run.lost,
        "refused": run.refused,
        "longestQueue": run.longest_queue,
    }


def _during(run: Simulated, at_s: float, lasts_s: float, usual_s: float) -> dict[str, float]:
    end = at_s + min(lasts_s, _REDIS_AT - _WEB_AT - 1)
    return {"p99Ms": run.quantile_ms(0.99, at_s, end), "usualAgainS": _calm_again(run, at_s, usual_s)}


def _calm_again(run: Simulated, from_s: float, usual_s: float) -> float:
    """Return the first second after a failure whose p99 is at most twice the usual one."""
    for second in range(math.ceil(from_s), math.floor(_SECONDS)):
        if run.quantile_ms(0.99, second, second + 1) <= 2000 * usual_s:
            return second + 1 - from_s
    return math.inf


def show(store: str, plans: list[tuple[Plan, dict[str, Any]]]) -> None:
    """Print what each rate takes."""
    print(f"{store}\n")
    for made, run in plans:
        counts = ", ".join(f"{part.number} {part.name}" for part in made.parts if part.name != "commits")
        cells = f"{made.cells} cells, each: " if made.cells > 1 else ""
        print(f"{made.rate:>9,.0f}/s   {cells}{counts} (processes or cores)")
        print(
            f"{'':13}disk {made.stored_gb_day:,.0f} GB a day, its log {made.logged_gb_day:,.0f} GB a day,"
            f" Redis ≤ {made.redis_gb:,.0f} GB, web {made.web_mb:.0f} MB each,"
            f" network {made.network_mbit:,.0f} Mbit/s"
        )
        bears = "; ".join(f"{part.name} {part.one_bears:,.0f}/s" for part in made.parts)
        print(f"{'':13}one bears: {bears}; first at its bound: {made.breaks_first}")
        calm = run["calm"]
        print(
            f"{'':13}simulated at {run['rate']:,.0f}/s: p50 {calm['p50Ms']:.1f}, p99 {calm['p99Ms']:.1f} ms;"
            f" {run['askedAgain']:,} asked again, {run['refused']:,} refused"
        )
        for name, told in (
            ("webDies", "a web process dies"),
            ("redisFails", "a shard is away for 2 s"),
            ("databaseFails", "the database for 5 s"),
        ):
            if name in run:
                print(
                    f"{'':13}{told}: p99 {_milliseconds(run[name]['p99Ms'])}, as usual"
                    f" {run[name]['usualAgainS']:.0f} s after it began"
                )
        print()


def _milliseconds(took: float) -> str:
    return "none, nothing is answered" if math.isnan(took) else f"{took:,.0f} ms"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rate", type=float, action="append", help="decisions a second at the peak")
    parser.add_argument("--busy", type=float, default=0.6, help="the share of its time that a part is busy")
    parser.add_argument("--days", type=float, default=30.0, help="days that velocity remembers")
    parser.add_argument(
        "--mix", type=json.loads, default=OTHERS, help="requests that come with one decision, JSON"
    )
    parser.add_argument("--costs", type=Path, default=COSTS)
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args()
    if not asked.costs.exists():
        parser.error(f"{asked.costs} is missing: run `python bench request_costs --store shared --keep`")
    told = {}
    for store, costs in json.loads(asked.costs.read_text()).items():
        plans = []
        for rate in asked.rate or RATES:
            made = plan(costs, rate, asked.busy, asked.days, asked.mix)
            each = min(rate / made.cells, _SIMULATED_RATE_MAX)
            plans.append((made, failing(costs, parts_of(costs, made, asked.mix), each)))
        told[store] = [{**made._asdict(), "simulated": run} for made, run in plans]
        if not asked.json:
            show(store, plans)
    if asked.json:
        print(json.dumps(told))
