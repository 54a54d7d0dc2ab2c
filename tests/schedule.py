"""Which tests go to which process, and in which order: the longest first, so that none begins at the end.

A file's tests share their servers and stay together, but for the files of `INDEPENDENT`, whose tests share
nothing. `seconds.txt` says how long each takes; `RECORD_SECONDS=1 make test` writes it anew.
"""

import os
from collections import Counter
from pathlib import Path
from typing import Final

import pytest
from xdist.scheduler.loadscope import LoadScopeScheduling

PROJECT: Final = Path(__file__).parents[1]
SECONDS: Final = PROJECT / "tests" / "seconds.txt"
#: Shorter ones are not written down: they fill up what the long ones leave.
RECORDED_S_MIN: Final = 2.0
#: Files of long tests that each begin from nothing.
INDEPENDENT: Final = {
    "tests/bench/test_benchmarks.py",
    "tests/bench/test_faults.py",
    "tests/grown/test_statements.py",
    "tests/release/test_release.py",
    "tests/web/test_schemathesis.py",
}


def unit_of(nodeid: str) -> str:
    """Name what goes to one process: a file, or a test of an independent one."""
    file = nodeid.partition("::")[0]
    return nodeid if file in INDEPENDENT else file


def recorded_seconds() -> dict[str, float]:
    """Return how long the units took when it was last written down."""
    rows = (line.split(" ", 1) for line in SECONDS.read_text("utf-8").splitlines())
    return {unit: float(seconds) for seconds, unit in rows}


class LongestFirst(LoadScopeScheduling):
    """Gives processes whole units, in the order in which they were collected."""

    def _split_scope(self, nodeid: str) -> str:
        return unit_of(nodeid)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> LongestFirst:
    """Keep the order of collection, where xdist would begin with the units of most tests."""
    config.option.loadscopereorder = False
    return LongestFirst(config, log)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the longest units first where several processes share the work."""
    if "PYTEST_XDIST_WORKER" in os.environ:
        seconds = recorded_seconds()
        items.sort(key=lambda item: -seconds.get(unit_of(item.nodeid), 0.0))


class Recorder:
    """Adds up how long the tests of each unit take, and writes it down at the end."""

    def __init__(self) -> None:
        self._seconds: Counter[str] = Counter()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Count a part of a test: its fixtures, the test itself, or what comes after it."""
        self._seconds[unit_of(report.nodeid)] += report.duration

    def pytest_sessionfinish(self) -> None:
        """Write the units from the longest to the shortest; those that did not run keep their times."""
        known = {**recorded_seconds(), **self._seconds}
        rows = [
            f"{seconds:.0f} {unit}"
            for unit, seconds in sorted(known.items(), key=lambda pair: -pair[1])
            if seconds >= RECORDED_S_MIN and (PROJECT / unit.partition("::")[0]).exists()
        ]
        SECONDS.write_text("\n".join(rows) + "\n", "utf-8")


def pytest_configure(config: pytest.Config) -> None:
    """Write the times down where that is asked for, once for all processes."""
    second_run = os.environ.get("VETTANCE_TEST_ENGINE", "sqlite") != "sqlite"
    if os.environ.get("RECORD_SECONDS") and not second_run and "PYTEST_XDIST_WORKER" not in os.environ:
        config.pluginmanager.register(Recorder())
