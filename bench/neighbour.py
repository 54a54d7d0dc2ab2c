"""What one tenant's decisions suffer while another tenant knocks far beyond its limit.

The quiet tenant asks for decisions at a steady, modest rate; its latency counts from the moment a request was
due. Rounds take turns, so that what else the machine does weighs on all alike:

    alone    nobody else asks
    tenfold  another tenant, whose key may ask 300 times a minute, asks 3,000 times
    flood    that key asks over eight connections as fast as it is answered

    python bench/neighbour.py [--rounds 6] [--seconds 10] [--rate 40] [--json]
"""

import argparse
import json
import statistics
import subprocess
import sys
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import uvloop
from load import post
from paced import Ask, Paced, quantile
from stage import cpu_s, machine, payment_bodies, say

from vettance.demo.drive import PATH
from vettance.demo.launch import Launched, LaunchFault, command, launched, make_fresh

WAYS = ("alone", "tenfold", "flood")
THROTTLE = 300  # requests of a key in a minute: the default
TENFOLD = 10 * THROTTLE / 60
FLOODS = 8  # connections
BODIES = 5_000
BEFORE_S = 1.0  # The neighbour is at work before the first request counts.


def neighbour(
    service: Launched, file: Path, key: str, way: str, seconds: float
) -> subprocess.Popen[bytes] | None:
    """Have another process ask in the name of the other tenant."""
    if way == "alone":
        return None
    here, url = Path(__file__), service.target.base_url + PATH
    common = ["--bodies", str(file), "--seconds", str(seconds)]
    if way == "flood":
        options = ["--connections", str(FLOODS), "--header", f"x-api-key: {key}", "--json"]
        asker = [str(here.with_name("load.py")), "--url", url, *options]
    else:
        asker = [str(here), "--knock", url, "--key", key]
    return subprocess.Popen([sys.executable, *asker, *common], stdout=subprocess.PIPE)


def knock(url: str, bodies: list[bytes], key: str, rate: float, seconds: float) -> Paced:
    """Ask at a steady rate and return what came of it."""
    host, _, port = url.removeprefix("http://").partition("/")[0].partition(":")
    asks = [Ask("asked", post(url, body, [f"x-api-key: {key}"])) for body in bodies]
    pool = Paced(host, int(port), connections=16)
    uvloop.run(pool.run(asks, rate, seconds))
    return pool


def measure(folder: Path, rounds: int, seconds: float, rate: float, workers: int) -> dict[str, Any]:
    """Run everything and return what was measured, by way."""
    make_fresh(folder)
    quiet, loud = folder / "quiet.ndjson", folder / "loud.ndjson"
    quiet.write_bytes(b"\n".join(payment_bodies(BODIES, 1)))
    loud.write_bytes(b"\n".join(payment_bodies(BODIES, 2)))
    with launched(folder, workers=workers) as service:
        other = command(folder, "tenant", "create", "Neighbour")["tenantId"]
        command(folder, "tenant", "set", other, "--throttle", str(THROTTLE), "--quota", "100000000")
        key = command(folder, "key", "create", "--tenant", other)["apiKey"]
        url, bodies = service.target.base_url + PATH, quiet.read_bytes().splitlines()
        knock(url, bodies, service.target.api_key, rate, BEFORE_S)
        taken: dict[str, list[float]] = defaultdict(list)
        each: dict[str, list[float]] = defaultdict(list)
        said: dict[str, Counter[str]] = defaultdict(Counter)
        spent: dict[str, float] = defaultdict(float)
        for number in range(rounds):
            for way in WAYS:
                before_s = cpu_s(service.process.pid)
                process = neighbour(service, loud, key, way, seconds + 2 * BEFORE_S)
                try:
                    knock(url, bodies, service.target.api_key, rate, BEFORE_S)
                    heard = knock(url, bodies, service.target.api_key, rate, seconds)
                finally:
                    if process is not None:
                        told = json.loads(process.communicate(timeout=60)[0])
                        said[way].update(told["statuses"])
                spent[way] += cpu_s(service.process.pid) - before_s
                said[f"quiet {way}"].update({str(k): v for k, v in heard.statuses["asked"].items()})
                taken[way] += heard.latencies_ms["asked"]
                each[way].append(quantile(heard.latencies_ms["asked"], 0.95))
                say(f"round {number + 1}  {way:<8} p95 {each[way][-1]:.2f} ms")
    return {
        "machine": machine(),
        "ways": {
            way: {
                "p50Ms": quantile(taken[way], 0.5),
                "p95Ms": quantile(taken[way], 0.95),
                "p95MsByRound": each[way],
                "ratio": statistics.median(
                    beside / alone for beside, alone in zip(each[way], each["alone"], strict=True)
                ),
                "neighbour": dict(said[way]),
                "quiet": dict(said[f"quiet {way}"]),
                "webCpuSeconds": spent[way],
            }
            for way in WAYS
        },
    }


def show(found: dict[str, Any]) -> None:
    """Print the results for people."""
    about = found["machine"]
    print(
        f"{about['cpu']}, {about['cores']} cores, load {about['load']} at the end, Python {about['python']}\n"
    )
    print("neighbour    p50 ms   p95 ms   p95 to alone (median of rounds)   web CPU s   answers to it")
    for way, one in found["ways"].items():
        print(
            f"{way:<10}{one['p50Ms']:>9.2f}{one['p95Ms']:>9.2f}{one['ratio']:>14.2f}"
            f"{one['webCpuSeconds']:>31.1f}   {one['neighbour']}"
        )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--rate", type=float, default=40, help="decisions a second of the quiet tenant")
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--folder", type=Path, default=Path("bench-data"))
    for hidden in ("--knock", "--bodies", "--key"):
        parser.add_argument(hidden, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.knock:
        bodies = Path(options.bodies).read_bytes().splitlines()
        done = knock(options.knock, bodies, options.key, TENFOLD, options.seconds)
        print(json.dumps({"statuses": done.statuses["asked"]}))
        return
    try:
        found = measure(options.folder, options.rounds, options.seconds, options.rate, options.workers)
    except LaunchFault as fault:
        raise SystemExit(str(fault)) from None
    if options.json:
        print(json.dumps(found))
    else:
        show(found)


if __name__ == "__main__":
    main()
