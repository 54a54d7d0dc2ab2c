"""Breaks a running service, again and again, and compares what it acknowledged with what is stored.

While connections ask for decisions, and a careful client adds list entries, gives feedback and hands in
events for later (each with an Idempotency-Key, tried again until it is answered), something happens.

`--stage embedded`: one process with its store in a file.

    disk     the disk is full for a while (a small file system of its own where that may be mounted, else a
             limit on the size of files), and has room again
    writer   the process that writes to the store is killed with SIGKILL, several times
    stall    that process is stopped for a while, as a disk that hangs
    clock    the wall clock of the service jumps, ahead and back
    stop     the service gets SIGTERM and started again

`--stage servers`: several processes on a private PostgreSQL and a private Redis, each behind a cable of ours.

    web      a process that answers is killed with SIGKILL
    worker   a process that works in the background is killed with SIGKILL
    postgres PostgreSQL is ended as by a crash, and recovers
    redis    Redis is killed, and starts empty
    flush    Redis is emptied under the service's hands
    cut      connections to PostgreSQL, to Redis or to both are reset and refused, or nothing passes any more
    slow     everything on the way to one of them or both is delayed by 100 to 500 ms
    stop     all get SIGTERM and started again
    clock    the wall clocks of the hosts jump, each by itself
    disk     the disk of PostgreSQL is full for a while (needs a small file system that may be mounted)

Then: nothing acknowledged is missing, nothing is there twice, every answer was a success or the 503 of the
contract, and the service works again by itself; on servers also: counts are what the log says, every message
arrived, no limit was passed, no process and no connection was left behind.

    python bench faults --stage servers --rounds 20 [--kinds redis,cut] [--seed 1] [--json]
"""

import argparse
import json
from pathlib import Path

from bench.faults import fault_embedded, fault_servers
from bench.faults.ledger import Round
from bench.fixtures.private_stores import StoreFault
from vettance.demo.launch import LaunchFault

STAGES = {
    "embedded": (fault_embedded.KINDS, fault_embedded.break_embedded),
    "servers": (fault_servers.KINDS, fault_servers.break_servers),
}


def summary(done: list[Round]) -> list[str]:
    """Say what came out, a line for each kind and one for all."""
    lines = []
    for kind in dict.fromkeys(one.kind for one in done):
        ones = [one for one in done if one.kind == kind]
        lines.append(_sum_up(f"{kind:<9}", ones))
    return [*lines, _sum_up(f"{'all':<9}", done)]


def _sum_up(name: str, ones: list[Round]) -> str:
    backs = sorted(one.back_s for one in ones)
    steady = sorted(one.steady_s for one in ones)
    middle = len(ones) // 2
    return (
        f"{name}{len(ones):>5} faults, {sum(one.acknowledged for one in ones):>8,} acknowledged, "
        f"{sum(one.refused for one in ones):>7,} refused, back after {backs[middle]:.2f} s in the median and "
        f"{backs[-1]:.2f} s at most, last refusal after {steady[middle]:.2f} and {steady[-1]:.2f} s: "
        f"{sum(bool(one.found) for one in ones)} with something wrong"
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--stage", choices=STAGES, default="embedded")
    parser.add_argument("--rounds", type=int, default=20, help="faults in all, the kinds in turn")
    parser.add_argument(
        "--seed", type=int, default=1, help="of kinds and moments; what is under way differs still"
    )
    parser.add_argument("--kinds", help="some of those above, separated by commas")
    parser.add_argument("--folder", type=Path, help="default: fault-data/ and the stage")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    known, breaking = STAGES[options.stage]
    kinds = options.kinds.split(",") if options.kinds else list(known)
    if not set(kinds) <= set(known):
        parser.error(f"--kinds of this stage takes some of {', '.join(known)}")
    try:
        # Apart: what runs the service alone is shut to the user that runs PostgreSQL.
        folder = (options.folder or Path("fault-data") / options.stage).resolve()
        done = breaking(folder, options.rounds, options.seed, kinds)
    except (LaunchFault, StoreFault) as fault:
        raise SystemExit(str(fault)) from None
    print(json.dumps([one._asdict() for one in done]) if options.json else "\n".join(summary(done)))
    raise SystemExit(1 if any(one.found for one in done) else 0)
