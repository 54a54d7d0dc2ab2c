"""How much of a bare handler's throughput a durable decision keeps.

Drives POST /api/v1/decisions/evaluate (1 KB body, 50 rules, 10 aggregates, event and decision on disk before
the answer) and, on the same server stack with the same settings, a handler that parses the body and answers
600 bytes. The two take turns, and of several rounds the best of each counts, so that what else the machine
does affects both alike.

    python bench evaluate [--quick] [--json] [--seconds 5] [--rounds 3]

With `--workers 2` two processes answer; VETTANCE_DATABASE_URL then names an empty database, and
VETTANCE_REDIS_URL a Redis.
"""

import argparse
import json
from pathlib import Path
from typing import Any

from bench.client.load import Result, measure_apart
from bench.fixtures.payments import payment_bodies, put_fifty_rules_in_force
from bench.fixtures.processes import cpu_s, machine, processes_of, resident_mb, say
from bench.load.bare_handler import bare_server
from bench.parts import inside
from vettance.demo.drive import PATH
from vettance.demo.launch import LaunchFault, RunningService, launched, make_fresh

CONNECTIONS = (1, 32, 128)
BODIES = 50_000
WARM_S = 1.0


def measure(
    folder: Path, seconds: float, rounds: int, connections: tuple[int, ...], workers: int = 1
) -> dict[str, Any]:
    """Run everything over HTTP and return what was measured, by part and number of connections."""
    make_fresh(folder)
    bodies = payment_bodies(BODIES)
    file = folder / "bodies.ndjson"
    file.write_bytes(b"\n".join(bodies))
    with bare_server() as bare, launched(folder, workers=workers) as service:
        put_fifty_rules_in_force(service, folder, bodies[0])
        url = service.target.base_url + PATH
        key = [f"x-api-key: {service.target.api_key}"]
        for address, headers in ((bare, []), (url, key)):
            measure_apart(address, file, headers, 32, WARM_S)
        best: dict[tuple[str, int], tuple[Result, float]] = {}
        for number in range(rounds):
            for count in connections:
                for part, address, headers in (("bare", bare, []), ("evaluate", url, key)):
                    before = _cpu_s(service)
                    result = measure_apart(address, file, headers, count, seconds)
                    spent_us = (_cpu_s(service) - before) / max(1, result.requests) * 1e6
                    say(f"round {number + 1}  {part:<9}{count:>4} connections  {result.line()}")
                    known = best.get((part, count))
                    if known is None or result.per_second > known[0].per_second:
                        best[part, count] = (result, spent_us)
        return _report(best, connections, service)


def _cpu_s(service: RunningService) -> float:
    """Return the processor seconds of the web process, or of all of a crew and its children."""
    return sum(cpu_s(pid) for pid in _weighed(service))


def _weighed(service: RunningService) -> list[int]:
    # With the embedded store its writer is not counted, nor are the workers of a web process.
    family = processes_of(service.process.pid)
    crew = [pid for pid in family if b"--seat" in Path(f"/proc/{pid}/cmdline").read_bytes()]
    return crew or family[:1]


def _report(
    best: dict[tuple[str, int], tuple[Result, float]], connections: tuple[int, ...], service: RunningService
) -> dict[str, Any]:
    rows = []
    for count in connections:
        bare, (evaluate, cpu_us) = best["bare", count][0], best["evaluate", count]
        rows.append(
            {
                "connections": count,
                "bare": bare._asdict(),
                "evaluate": evaluate._asdict(),
                "ratio": evaluate.per_second / bare.per_second,
                "webCpuMicrosecondsPerDecision": cpu_us,
            }
        )
    resident = sum(resident_mb(pid) for pid in processes_of(service.process.pid))
    return {"http": rows, "residentMegabytes": resident}


def show(found: dict[str, Any]) -> None:
    """Print the results as a table for people."""
    about = found["machine"]
    cpu, cores, load = about["cpu"], about["cores"], about["load"]
    print(f"{cpu}, {cores} cores, load {load} at the start, Python {about['python']}\n")
    print("connections      bare/s   p50 ms   p99 ms   evaluate/s   p50 ms   p99 ms    ratio   web CPU µs")
    for row in found["http"]:
        bare, evaluate = row["bare"], row["evaluate"]
        print(
            f"{row['connections']:>11}  {bare['per_second']:>10,.0f} {bare['p50_ms']:>8.2f}"
            f" {bare['p99_ms']:>8.2f}  {evaluate['per_second']:>11,.0f} {evaluate['p50_ms']:>8.2f}"
            f" {evaluate['p99_ms']:>8.2f}  {row['ratio']:>6.1%}"
            f"  {row['webCpuMicrosecondsPerDecision']:>10.0f}"
        )
        if evaluate["not_2xx"] or evaluate["broken"]:
            print(f"{evaluate['not_2xx']:>11} answers not 2xx, {evaluate['broken']} connections broken")
    print(f"\nresident memory of the service afterwards: {found['residentMegabytes']:.0f} MB\n")
    print("\n".join(inside.lines(found["inside"])))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=5.0, help="how long each run takes")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--connections", type=int, nargs="+", default=CONNECTIONS)
    parser.add_argument("--workers", type=int, default=1, help="how many processes answer")
    parser.add_argument("--quick", action="store_true", help="one round of 2 s at 32 connections")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--folder", type=Path, default=Path("bench-data"))
    options = parser.parse_args()
    if options.quick:
        options.seconds, options.rounds, options.connections = 2.0, 1, (32,)
    about = machine()
    try:
        found = measure(
            options.folder, options.seconds, options.rounds, tuple(options.connections), options.workers
        )
    except LaunchFault as fault:
        raise SystemExit(str(fault)) from None
    found = {"machine": about, **found, "inside": inside.measure()}
    if options.json:
        print(json.dumps(found))
    else:
        show(found)
