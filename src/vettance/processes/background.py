"""Who goes first where all want a processor: decisions, then commands, then what is worked out behind them.

    python -P -m vettance.processes.background MODULE [ARGUMENTS]

runs a module as `python -m` would, in the background from its first import on: for processes that only read,
since one that holds a lock while it gets no processor keeps everybody waiting.
"""

import contextlib
import os
import runpy
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

#: What a command and a companion of the server give way by; the system calls it niceness, -20 to 19.
NICENESS: Final = 10
_NICENESS_MAX: Final = 19
#: With the word, nothing here touches a priority. Read here, since settings are imports and come too late.
_VARIABLE: Final = "VETTANCE_BACKGROUND"
_USUAL: Final = "usual"
_THREADS: Final = Path("/proc/self/task")
#: Linux adds it, in thousandths, to the share of memory by which it chooses what to end when none is left:
#: what decides has the most of it, and is not to go for the sake of work behind it.
_SCORE: Final = Path("/proc/self/oom_score_adj")
_ENDED_FIRST: Final = "1000"


def in_background(module: str, *arguments: str) -> tuple[str, ...]:
    """Return the command line of a Python module that runs in the background."""
    return (sys.executable, "-P", "-m", __name__, module, *arguments)


def be_nicer(by: int) -> None:
    """Have this process let others go first, where the system lets it: a unit that filters system calls may
    refuse even that, which is no reason to end."""
    if _is_usual():
        return
    with contextlib.suppress(OSError):
        os.nice(by)


def give_way() -> None:
    """Have all threads of this process let a server on the same machine go first."""
    if _is_usual():
        return
    for thread in _threads():
        with contextlib.suppress(OSError):  # It has ended since.
            priority = os.getpriority(os.PRIO_PROCESS, thread)
            os.setpriority(os.PRIO_PROCESS, thread, max(priority, NICENESS))


def go_to_background() -> None:
    """Have all threads of this process work only while nobody else wants the processor.

    A nice process may still finish its slice, some milliseconds, before one that wakes; one of Linux's policy
    `SCHED_IDLE` is stopped at once. Where the system has no such policy, it is as nice as can be.
    Where memory runs out, it is ended before all others.
    """
    with contextlib.suppress(OSError):
        _SCORE.write_text(_ENDED_FIRST)
    if _is_usual():
        return
    for thread in _threads():
        with contextlib.suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, thread, _NICENESS_MAX)
        with contextlib.suppress(AttributeError, OSError):
            os.sched_setscheduler(thread, os.SCHED_IDLE, os.sched_param(0))


def _is_usual() -> bool:
    return os.environ.get(_VARIABLE) == _USUAL


def _threads() -> Iterator[int]:
    if not _THREADS.is_dir():
        yield os.getpid()
        return
    yield from [int(one.name) for one in _THREADS.iterdir()]


if __name__ == "__main__":
    go_to_background()
    del sys.argv[0]
    runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
