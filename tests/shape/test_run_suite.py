"""The suite is run, and what failed is tried once more alone."""

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[1] / "run_suite.py"

ONCE = """
from pathlib import Path

def test_fails_once():
    seen = Path("seen")
    was_there = seen.exists()
    seen.touch()
    assert was_there
"""


def run(folder: Path, source: str) -> tuple[int, str]:
    (folder / "test_one.py").write_text(source)
    result = subprocess.run(
        [sys.executable, str(SCRIPT), "-q", "--rootdir", str(folder), "test_one.py"],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    return result.returncode, result.stdout


def test_what_passes_alone_passes_and_is_named(tmp_path: Path) -> None:
    code, said = run(tmp_path, ONCE)
    assert (code, said.splitlines()[-1]) == (
        0,
        "FAILED BESIDE OTHERS, passed alone: test_one.py::test_fails_once",
    )


@pytest.mark.parametrize(
    ("source", "tries"),
    [
        ("def test_fails():\n    assert False", 2),
        ("import pytest\n@pytest.mark.parametrize('n', range(13))\ndef test_fails(n):\n    assert n > 90", 1),
        ("raise ValueError", 1),
    ],
    ids=["both times", "many", "not collected"],
)
def test_what_fails_alone_too_fails(source: str, tries: int, tmp_path: Path) -> None:
    code, said = run(tmp_path, source)
    assert code
    assert said.count("Once more, alone") == tries - 1
