"""How a training ends: with the server that asked for it."""

import subprocess
import sys


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
