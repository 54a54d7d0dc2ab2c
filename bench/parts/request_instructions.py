"""Counts the instructions of each part of a request, by Valgrind: the same however busy the machine is.

Two runs of the same code differ by less than a hundredth, so a change of two in a hundred can be seen where
times of the clock, and of the processor, say nothing. Instructions are not all equally long: what this finds
is to be measured once more by time. Parts are those of `request_parts`, and each has all of the line above.

    apt-get install valgrind
    python bench request_instructions [--only "decided and stored: evaluate"] [--json]
"""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import uvloop

from bench.fixtures.processes import machine, say
from bench.parts.request_parts import parts_of, round_us, run
from vettance.server.application import Service

NAMES = (
    "a handler that answers at once",
    "+ routing, key, limits, body",
    "+ body parsed",
    "+ event checked",
    "+ job stored: POST /events/async",
    "decided and stored: POST /events",
    "decided and stored: evaluate",
)
_WARM_ROUNDS = 3
_REQUESTS = 400  # In a round: few enough that no chunk of the history is made meanwhile.
_COUNTED = re.compile(r"Collected : (\d+)")


async def count(service: Service, key: str, name: str) -> dict[str, float]:
    """Have Valgrind count one round of a part; it prints the sum when the process ends."""
    app, sent = (await parts_of(service, key))[name]
    for number in range(_WARM_ROUNDS):
        await round_us(app, sent, number * _REQUESTS, _REQUESTS)
    _control("on")
    await round_us(app, sent, _WARM_ROUNDS * _REQUESTS, _REQUESTS)
    _control("off")
    return {}


def _control(state: str) -> None:
    subprocess.run(["callgrind_control", "-i", state, str(os.getpid())], check=True, capture_output=True)


def counted(name: str) -> float:
    """Return the instructions of one request of a part, counted in a process of its own."""
    valgrind = ("valgrind", "--tool=callgrind", "--instr-atstart=no", "--callgrind-out-file=/dev/null")
    done = subprocess.run(
        [*valgrind, sys.executable, "-m", "bench.parts.request_instructions", "--inside", name],
        capture_output=True,
        text=True,
        check=False,
    )
    found = _COUNTED.search(done.stderr)
    if done.returncode or found is None:
        raise SystemExit(f"{name}: nothing was counted\n{done.stderr[-2000:]}")
    return int(found[1]) / _REQUESTS


def main(arguments: Sequence[str] | None = None) -> None:
    """Count and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", choices=NAMES, help="one part")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--inside", choices=NAMES, help=argparse.SUPPRESS)
    asked = parser.parse_args(arguments)
    if asked.inside:
        with tempfile.TemporaryDirectory(prefix="vettance-counted-") as folder:
            uvloop.run(run(Path(folder) / "data", lambda service, key: count(service, key, asked.inside)))
        return
    if shutil.which("callgrind_control") is None:
        raise SystemExit("Valgrind is not installed: apt-get install valgrind")
    found = {}
    for name in (asked.only,) if asked.only else NAMES:
        found[name] = counted(name)
        say(f"{name}: {found[name]:,.0f}")
    if asked.json:
        print(json.dumps({"machine": machine(), "instructions": found}))
        return
    for name, instructions in found.items():
        print(f"{name:<36} {instructions / 1000:7,.0f} thousand instructions")


if __name__ == "__main__":
    main()
