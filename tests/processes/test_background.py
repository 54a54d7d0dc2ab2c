"""What runs in the background leaves the processor to everybody else, from its first import on."""

import subprocess
import sys
from pathlib import Path

import pytest

from vettance.processes.background import in_background

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the policy SCHED_IDLE is of Linux")

_MODULE = """
import os, sys, threading
said = [os.sched_getscheduler(0) == os.SCHED_IDLE, os.getpriority(os.PRIO_PROCESS, 0)]
said.append(open('/proc/self/oom_score_adj').read().strip())
thread = threading.Thread(target=lambda: said.append(os.sched_getscheduler(0) == os.SCHED_IDLE))
thread.start()
thread.join()
print(__name__, *said, *sys.argv[1:])
"""


def test_a_module_runs_in_the_background_as_it_would_by_itself(tmp_path: Path) -> None:
    (tmp_path / "looks.py").write_text(_MODULE)
    run = subprocess.run(
        in_background("looks", "one", "two"),
        env={"PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (run.stdout, run.returncode) == ("__main__ True 19 1000 True one two\n", 0), run.stderr


def test_where_operators_want_it_nothing_gives_way(tmp_path: Path) -> None:
    (tmp_path / "looks.py").write_text(_MODULE)
    usual = {"PYTHONPATH": str(tmp_path), "VETTANCE_BACKGROUND": "usual"}
    run = subprocess.run(in_background("looks"), env=usual, capture_output=True, text=True, check=False)
    assert (run.stdout, run.returncode) == ("__main__ False 0 1000 False\n", 0), run.stderr


def test_how_a_module_ends_is_how_the_process_ends(tmp_path: Path) -> None:
    (tmp_path / "ends.py").write_text("raise SystemExit(7)")
    run = subprocess.run(in_background("ends"), env={"PYTHONPATH": str(tmp_path)}, check=False)
    assert run.returncode == 7
