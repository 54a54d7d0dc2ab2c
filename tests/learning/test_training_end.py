"""How a training ends: without a result where there is too little to learn from, and with its server."""

import random
import subprocess
import sys
from pathlib import Path

from tests.learning.conftest import label, pay
from tests.live import Caller, started
from tests.ops.test_metrics_api import scrape

_WAITS = """
import time
from vettance.learning.training_process import end_with_parent
end_with_parent()
print("ready", flush=True)
time.sleep(60)
"""


def test_a_training_ends_with_the_process_that_asked_for_it() -> None:
    child = subprocess.Popen(
        [sys.executable, "-P", "-c", _WAITS], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        assert child.stdin is not None
        assert child.stdout is not None
        assert child.stdout.readline() == "ready\n"
        assert child.poll() is None
        child.stdin.close()
        assert child.wait(10) == 1
    finally:
        child.kill()
        child.wait(10)
        if child.stdout is not None:
            child.stdout.close()


def test_a_training_that_came_too_early_is_no_failed_one(tmp_path: Path) -> None:
    service = started(tmp_path, VETTANCE_METRICS="127.0.0.1:0")
    try:
        caller = Caller(service, service.tenant_id, service.api_key)
        event, fraud = pay(caller, 10, random.Random(5))
        label(caller, event, fraud=fraud)
        done = service.cli("model", "train", "--tenant", caller.id, "--wait", ok=False)
        assert "50 are needed" in done.stdout + done.stderr
        counted = scrape(service)
        trainings = "vettance_model_trainings_total"
        assert counted[f'{trainings}{{result="too_few_labels"}}'] >= 1
        assert counted[f'{trainings}{{result="failed"}}'] == 0
    finally:
        assert service.stop() == 0
