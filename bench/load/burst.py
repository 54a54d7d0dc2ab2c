"""How a burst of events is taken: accepted per second against decided at once, then drained across a kill.

    python bench burst [--events 50000] [--seconds 5] [--rules pack] [--json]

The rules are the default pack, which a new tenant has, or the fifty small ones of other benchmarks.
"""

import argparse
import json
import sqlite3
import sys
import tempfile
import time
from contextlib import closing
from pathlib import Path
from typing import Any

from bench.client.load import measure_apart
from bench.fixtures.payments import payment_bodies, put_fifty_rules_in_force
from bench.fixtures.processes import cpu_s, machine
from vettance.demo.launch import launched, make_fresh, serving
from vettance.history.segment import CHUNK

SYNC, ASYNC = "/api/v1/events", "/api/v1/events/async"
CONNECTIONS = 64


def counts(folder: Path) -> dict[str, int]:
    """Ask the store itself."""
    asked = {
        "waiting": "SELECT COUNT(*) FROM job WHERE state = 'accepted'",
        "completed": "SELECT COUNT(*) FROM job WHERE state = 'completed'",
        "failed": "SELECT COUNT(*) FROM job WHERE state = 'failed'",
        "events": "SELECT COUNT(*) FROM event WHERE source = 'async'",
        "different": "SELECT COUNT(DISTINCT event) FROM job WHERE event IS NOT NULL",
    }
    with closing(sqlite3.connect(folder / "vettance.db", timeout=30)) as connection:
        return {name: connection.execute(query).fetchone()[0] for name, query in asked.items()}


def drained(folder: Path, seconds: float = 600.0) -> float:
    """Wait until no job waits; returns how long that took."""
    began = time.monotonic()
    while counts(folder)["waiting"]:
        if time.monotonic() - began > seconds:
            raise SystemExit("the jobs were not drained")
        time.sleep(0.2)
    return time.monotonic() - began


def settled(folder: Path, seconds: float = 300.0) -> None:
    """Wait until what was decided before is drained and laid out, so that it takes no time later."""
    drained(folder)
    query = "SELECT COUNT(*) FROM decision WHERE seq > COALESCE((SELECT MAX(id) FROM chunk), 0)"
    until = time.monotonic() + seconds
    with closing(sqlite3.connect(folder / "vettance.db", timeout=30)) as connection:
        while connection.execute(query).fetchone()[0] >= CHUNK:
            if time.monotonic() > until:
                raise SystemExit("the chunks were not made")
            time.sleep(0.2)


def run(folder: Path, events: int, seconds: float, rules: str) -> dict[str, Any]:
    """Measure both doors, kill the service in the middle of draining, and start it again."""
    make_fresh(folder)
    bodies = payment_bodies(20_000)
    file = folder / "bodies.ndjson"
    file.write_bytes(b"\n".join(bodies))
    report: dict[str, Any] = {}
    with launched(folder) as service:
        if rules == "fifty":
            put_fifty_rules_in_force(service, folder, bodies[0])
        key = [f"x-api-key: {service.target.api_key}"]
        for name, path, count in (("sync", SYNC, None), ("async", ASYNC, events)):
            url = service.target.base_url + path
            measure_apart(url, file, key, CONNECTIONS, 1.0)
            settled(folder)
            before = cpu_s(service.process.pid)
            result = measure_apart(url, file, key, CONNECTIONS, 600.0 if count else seconds, count)
            report[name] = {
                "per_second": round(result.per_second),
                "p99_ms": round(result.p99_ms, 1),
                "requests": result.requests,
                "not_2xx": result.not_2xx,
                "cpu_us": round((cpu_s(service.process.pid) - before) / max(1, result.requests) * 1e6, 1),
            }
            if not count:
                continue
            report["waiting_at_kill"] = counts(folder)["waiting"]
            service.process.kill()
            service.process.wait(15)
        tenant, api_key = service.tenant_id, service.target.api_key
    with serving(folder, tenant, api_key):
        report["drained_s"] = round(drained(folder), 1)
        report["counts"] = counts(folder)
    report["cpu_ratio"] = round(report["sync"]["cpu_us"] / report["async"]["cpu_us"], 2)
    report["ratio"] = round(report["async"]["per_second"] / max(1, report["sync"]["per_second"]), 2)
    return report


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--events", type=int, default=50_000)
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--rules", choices=("pack", "fifty"), default="pack")
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="vettance-burst-") as folder:
        report = run(Path(folder) / "data", asked.events, asked.seconds, asked.rules)
    print(json.dumps({"machine": machine(), **report}, indent=None if asked.json else 2))
    found = report["counts"]
    if found["waiting"] or found["failed"] or not found["completed"] == found["events"] == found["different"]:
        sys.exit("an event was lost or decided twice")
