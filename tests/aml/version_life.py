"""Takes versions of AML rules from their making until they are in force, in forks that die at a given point.

Run as a program with the place of a store and a tenant. Reads a number from each line: the point at which
the fork kills itself, 0 for none. Answers with the exit code, and how many points it has passed if it lived.
"""

import asyncio
import itertools
import os
import signal
import sys
import threading
from pathlib import Path
from types import FrameType
from typing import Any

from vettance.aml.sql import RULE_SETS
from vettance.db.engine import Store
from vettance.db.postgres import PostgresStore
from vettance.db.sqlite import SqliteStore
from vettance.ids import IdSource
from vettance.rules.versioning import NewRules, Versioning

#: The modules in which points are counted: those that take the steps, and those that write them.
_COUNTED = ("vettance.rules.versioning", "vettance.rules.sql", "vettance.db.")
_EVENTS = ("call", "c_call", "c_return")


async def open_store(place: str) -> Store:
    """Open a store by the path of its file, or by its address."""
    if "://" in place:
        return await PostgresStore.open(place)
    return await SqliteStore.open(Path(place), writer="thread")


def live(place: str, tenant: str, point: int) -> int:
    """Propose, approve and activate a version, and return how many points that has."""
    numbers, reached, is_counting = itertools.count(1), 0, False

    def pass_by(frame: FrameType, event: str, _: Any) -> None:
        nonlocal reached
        if is_counting and event in _EVENTS and frame.f_globals.get("__name__", "").startswith(_COUNTED):
            reached = next(numbers)
            if reached == point:
                os.kill(os.getpid(), signal.SIGKILL)

    async def take_steps() -> None:
        nonlocal is_counting
        store = await open_store(place)
        ana, ben = (Versioning(store, RULE_SETS, tenant, actor, IdSource()) for actor in ("ana", "ben"))
        is_counting = True
        made = await ana.propose_new(NewRules(f"killed at {point}", None), "Try")
        await ben.approve(made.version)
        await ana.activate(made.version)
        is_counting = False
        await store.close()

    threading.setprofile(pass_by)
    sys.setprofile(pass_by)
    asyncio.run(take_steps())
    return reached


def main(place: str, tenant: str) -> None:
    """Fork for each point that is asked for."""
    for line in sys.stdin:
        read, write = os.pipe()
        fork = os.fork()
        if not fork:
            os.write(write, str(live(place, tenant, int(line))).encode())
            os._exit(0)
        os.close(write)
        with os.fdopen(read) as told:
            passed = told.read() or "0"
        _, status = os.waitpid(fork, 0)
        print(os.waitstatus_to_exitcode(status), passed, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
