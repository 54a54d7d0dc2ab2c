"""Run pytest, and what failed once more, alone: `python tests/run_suite.py ARGUMENTS OF PYTEST`.

Four workers on two cores keep a test of real processes and clocks waiting for seconds now and then, and a
machine that others use stops for a moment. A test that fails among them and passes alone has found that, not
a fault; it is named in the last lines, so that it can be mended. Many failures, an interrupted run and a test
that fails both times are failures.
"""

import json
import subprocess
import sys
from pathlib import Path

PYTEST = [sys.executable, "-m", "pytest"]
RETRIED_MAX = 12
"""More failures than this are not for want of a processor."""

FAILED = Path(".pytest_cache/v/cache/lastfailed")
"""What pytest writes down for `--last-failed`."""

TESTS_FAILED = 1
"""pytest's exit code when it ran to its end and tests failed."""


def main(arguments: list[str]) -> int:
    """Run the tests, and return pytest's exit code."""
    FAILED.unlink(missing_ok=True)
    code = subprocess.run([*PYTEST, *arguments], check=False).returncode
    failed = sorted(json.loads(FAILED.read_text("utf-8"))) if code == TESTS_FAILED else []
    if not 0 < len(failed) <= RETRIED_MAX:
        return code
    print(f"\nOnce more, alone: {', '.join(failed)}", flush=True)
    code = subprocess.run([*PYTEST, *failed], check=False).returncode
    if not code:
        for test in failed:
            print(f"FAILED BESIDE OTHERS, passed alone: {test}")
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
