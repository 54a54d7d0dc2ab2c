"""Measures the memory engine: microseconds for each event on a cold and a hot key, and bytes for each event.

python bench velocity_in_memory                 both measurements
python bench velocity_in_memory --speed         the first only
python bench velocity_in_memory --memory        the second only (a million events, about two minutes)
"""

import argparse
import gc
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from bench import BENCH
from vettance.velocity.memory.memory_velocity import MemoryVelocity
from vettance.velocity.port import Aggregate, Observation, Plan, Series

MINUTE = 60_000
HOUR = 60 * MINUTE
DAY = 24 * HOUR
NOW = 1_790_000_000_000
FIELDS = ("customer", "ip", "device", "card", "merchant")


def make_plan(keys: tuple[str, ...], series: list[Series], aggregates: list[Aggregate]) -> Plan:
    names = tuple(f"{one.kind} of {one.value} by {keys[one.key]}" for one in series)
    asked = tuple(f"{one.kind} of {names[one.series]} within {one.window_ms}" for one in aggregates)
    return Plan(keys, tuple(series), names, tuple(aggregates), asked)


def ten_aggregates() -> Plan:
    """Ten aggregates as rules ask them of one customer: attempts, amounts, devices."""
    series = [
        Series(0, None, "moments"),
        Series(0, 0, "numbers"),
        Series(0, 1, "texts"),
        Series(0, 2, "texts"),
    ]
    aggregates = [
        Aggregate("count", 0, 10 * MINUTE),
        Aggregate("count", 0, HOUR),
        Aggregate("last_seen", 0, 30 * DAY),
        Aggregate("sum", 1, HOUR),
        Aggregate("sum", 1, DAY),
        Aggregate("avg", 1, 30 * DAY),
        Aggregate("max", 1, 30 * DAY),
        Aggregate("distinct", 2, HOUR),
        Aggregate("distinct", 3, DAY),
        Aggregate("seen", 2, 30 * DAY),
    ]
    return make_plan(("customer",), series, aggregates)


def rule_pack() -> Plan:
    """The shape of a whole rule pack: 5 key fields, 17 series of which an event meets 11, 35 aggregates."""
    series: list[Series] = []
    aggregates: list[Aggregate] = []

    def ask(key: int, value: int | None, kind: str, *questions: tuple[str, int]) -> None:
        aggregates.extend(Aggregate(what, len(series), span) for what, span in questions)
        series.append(Series(key, value, kind))

    customer, ip, device, card, merchant = range(5)
    # Values of the observation: 0 amount, 1 customer, 2 device, 3 ip, 4 country.
    ask(
        customer,
        None,
        "moments",
        ("count", HOUR),
        ("count", DAY),
        ("first_seen", 90 * DAY),
        ("last_seen", 90 * DAY),
    )
    ask(customer, 0, "numbers", ("sum", DAY), ("avg", 30 * DAY), ("max", 30 * DAY), ("count", 30 * DAY))
    ask(customer, 2, "texts", ("seen", 90 * DAY), ("distinct", DAY), ("distinct", 7 * DAY))
    ask(customer, 3, "texts", ("distinct", DAY), ("distinct", HOUR))
    ask(customer, None, "moments", ("count", HOUR), ("count", 10 * MINUTE))
    ask(ip, 1, "texts", ("distinct", 10 * MINUTE), ("distinct", 90 * DAY), ("count", HOUR))
    ask(ip, None, "moments", ("count", 10 * MINUTE), ("count", 90 * DAY))
    ask(ip, 1, "texts", ("distinct", 10 * MINUTE), ("distinct", HOUR))
    ask(device, 1, "texts", ("distinct", DAY), ("distinct", 90 * DAY), ("count", HOUR))
    ask(device, None, "moments", ("count", HOUR))
    ask(device, 4, "texts", ("distinct", DAY), ("distinct", 90 * DAY))
    ask(card, 1, "texts", ("distinct", 90 * DAY), ("count", HOUR))
    ask(card, 0, "numbers", ("sum", DAY), ("min", HOUR))
    ask(card, None, "moments", ("count", 10 * MINUTE))
    ask(merchant, 0, "numbers", ("avg", 28 * DAY), ("count", 28 * DAY))
    ask(merchant, None, "moments", ("count", DAY))
    ask(merchant, None, "moments", ("count", HOUR))
    return make_plan(FIELDS, series, aggregates)


#: The series of the pack that an event belongs to: the rest are of failures and of other kinds of event.
_ORDINARY = sum(1 << index for index in (0, 1, 2, 3, 5, 6, 8, 9, 11, 12, 14))
_UNUSUAL = sum(1 << index for index in (4, 7, 10, 13, 15, 16))


def run_speed(hot_events: int) -> dict[str, float]:
    """Time single events on fresh keys and on one key with many events, in turns; take the best of each."""
    velocity = MemoryVelocity()
    velocity.install("bench", ten_aggregates())
    at_ms, made = NOW, 0

    def batch(key: str | None, events: int) -> float:
        nonlocal at_ms, made
        seen = []
        for _ in range(events):
            made += 1
            values = (made % 977 / 7, f"device-{made % 5}", f"ip-{made % 23}")
            seen.append((f"event-{made}", at_ms, Observation((key or f"customer-{made}",), 0b1111, values)))
            at_ms += 1000
        began = time.perf_counter()
        for event_id, moment, observation in seen:
            velocity.observe("bench", event_id, moment, observation)
        return (time.perf_counter() - began) / events * 1e6

    batch("hot", hot_events)
    for round_number in range(20):
        batch(f"warm-{round_number % 100}", 20)
    gc.collect()
    cold, hot, ordinary = [], [], []
    for round_number in range(60):
        cold.append(batch(None, 200))
        hot.append(batch("hot", 200))
        ordinary.append(batch(f"ordinary-{round_number // 2}", 12))
    return {
        "hot_events": float(hot_events),
        "cold_us": min(cold),
        "hot_us": min(hot),
        "ordinary_us": min(ordinary[1::2]),
        "hot_over_cold": min(hot) / min(cold),
    }


def resident_mb() -> float:
    """Return the resident memory of this process, as Linux counts it."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


def run_memory(events: int, keys: int, *, skewed: bool, snapshot: bool) -> dict[str, float]:
    """Observe `events` over `keys` keys of each field within the windows, and measure this process."""
    draw = random.Random(1)
    before = resident_mb()
    velocity = MemoryVelocity()
    plan = rule_pack()
    velocity.install("bench", plan)
    began = time.perf_counter()
    for index in range(events):
        # A few keys of a skewed field get most of the events, as merchants and addresses do.
        pick = [int(keys * draw.random() ** 6) if skewed else draw.randrange(keys) for _ in FIELDS]
        who, ip, device, card, merchant = pick
        mask = _ORDINARY | (_UNUSUAL if index % 50 == 0 else 0)
        values = (draw.randrange(100, 50_000) / 100, f"c{who:08}", f"d{device:012}", f"10.{ip}", "DE")
        names = (f"c{who:08}", f"10.{ip}", f"d{device:012}", f"card{card:012}", f"m{merchant}")
        # Twenty days: within the longest windows, so that nothing expires.
        velocity.observe("bench", f"evt_{index:032x}", NOW + index * 1728, Observation(names, mask, values))
    seconds = time.perf_counter() - began
    size = velocity.size("bench")
    result = {
        "events": float(events),
        "keys": float(size.keys),
        "entries": float(size.entries),
        "estimated_mb": size.bytes / 2**20,
        "before_mb": before,
        "resident_mb": resident_mb(),
        "bytes_per_event": (resident_mb() - before) * 2**20 / events,
        "us_per_event_with_making_it": seconds / events * 1e6,
    }
    if snapshot:
        result |= run_snapshot(velocity, plan)
    return result


def run_snapshot(velocity: MemoryVelocity, plan: Plan) -> dict[str, float]:
    """Write a snapshot to a file and read it back, as a restart does."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "snapshot"
        began = time.perf_counter()
        with path.open("wb") as file:
            chunks = velocity.dump("bench")
            paused = time.perf_counter()
            for chunk in chunks:
                file.write(chunk)
        dumped = time.perf_counter()
        velocity.uninstall("bench")
        gc.collect()
        loading = time.perf_counter()
        with path.open("rb") as file:
            velocity.load("bench", plan, iter(lambda: file.read(1 << 20), b""))
        return {
            "snapshot_mb": path.stat().st_size / 2**20,
            "dump_pause_s": paused - began,
            "dump_s": dumped - began,
            "load_s": time.perf_counter() - loading,
            "resident_after_load_mb": resident_mb(),
        }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--speed", action="store_true", help="only the time of an event")
    parser.add_argument("--memory", action="store_true", help="only the memory run")
    parser.add_argument("--events", type=int, default=1_000_000)
    parser.add_argument("--keys", type=int, default=100_000, help="keys of each of the five fields")
    parser.add_argument("--skewed", action="store_true", help="give a few keys most of the events")
    parser.add_argument("--no-snapshot", action="store_true", help="leave the snapshot out of the memory run")
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.child:
        print(
            json.dumps(run_memory(args.events, args.keys, skewed=args.skewed, snapshot=not args.no_snapshot))
        )
        return
    results: dict[str, dict[str, float]] = {}
    if not args.memory:
        results["speed"] = run_speed(100_000)
    if not args.speed:
        # In a process of its own, so that it is the engine's memory that is measured.
        command = [sys.executable, str(BENCH), "velocity_in_memory", "--child", *sys.argv[1:]]
        child = subprocess.run(command, check=True, capture_output=True, text=True)
        results["memory"] = json.loads(child.stdout)
    if args.json:
        print(json.dumps(results))
        return
    for title, figures in results.items():
        print(title)
        for name, figure in figures.items():
            print(f"  {name:28} {figure:14,.2f}")
