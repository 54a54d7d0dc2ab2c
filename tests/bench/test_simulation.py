"""The delivery worker keeps its promises on bad days (a few of them here; `make faults` for the rest)."""

import json
import subprocess
import sys
from typing import Any

import pytest

from bench import BENCH


def simulated(*arguments: str) -> tuple[int, dict[str, Any]]:
    done = subprocess.run(
        [sys.executable, str(BENCH), "simulate_webhooks", "--json", *arguments],
        capture_output=True,
        text=True,
        timeout=110,
        check=False,
    )
    assert done.returncode in (0, 1), done.stderr
    return done.returncode, json.loads(done.stdout)


def test_nothing_is_lost_or_sent_twice_without_an_excuse() -> None:
    code, result = simulated("--schedules", "80", "--seed", "100")
    assert result["violations"] == []
    assert code == 0
    assert result["attempts"] > 2000
    assert min(result["crashes"], result["jumps"], result["outages"], result["calm"]) > 10


def test_a_seed_takes_the_same_course_every_time() -> None:
    assert simulated("--schedules", "5", "--seed", "7") == simulated("--schedules", "5", "--seed", "7")


@pytest.mark.parametrize(
    ("plant", "sign"),
    [
        ("claim regardless", "by two at the same time"),
        ("retry early", "after the failure, promised"),
        ("forget leases", "was never settled"),
    ],
)
def test_a_worker_that_is_broken_on_purpose_is_found_out(plant: str, sign: str) -> None:
    code, result = simulated("--schedules", "50", "--seed", "100", "--plant", plant)
    assert code == 1
    assert any(sign in text for one in result["violations"] for text in one["found"])
