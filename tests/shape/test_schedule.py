"""Tests are ordered by times of files that exist, and files that are divided share nothing."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.schedule import INDEPENDENT, PROJECT, recorded_seconds

pytestmark = pytest.mark.slow


def test_times_are_recorded_for_files_that_exist_and_for_tests_of_independent_ones() -> None:
    units = recorded_seconds()
    files = {unit.partition("::")[0] for unit in units} | INDEPENDENT
    gone = sorted(file for file in files if not (PROJECT / file).exists())
    assert not gone, f"tests/seconds.txt or INDEPENDENT of tests/schedule.py names {gone}"
    divided = {unit.partition("::")[0] for unit in units if "::" in unit}
    assert divided <= INDEPENDENT


@pytest.mark.parametrize("file", sorted(INDEPENDENT))
def test_the_tests_of_an_independent_file_share_no_fixture_of_it(file: str) -> None:
    text = (PROJECT / file).read_text("utf-8")
    assert 'scope="module"' not in text, f"{file}: one test at a time would make it again for each"


def test_several_processes_begin_with_the_longest_files_and_keep_a_file_together(tmp_path: Path) -> None:
    for name, count in (("many", 6), ("long", 1), ("middle", 2)):
        body = "".join(f"def test_{number}() -> None: ...\n" for number in range(count))
        (tmp_path / f"test_{name}.py").write_text(body)
    (tmp_path / "seconds.txt").write_text("90 test_long.py\n8 test_middle.py\n")
    (tmp_path / "conftest.py").write_text(
        "from pathlib import Path\n"
        "from tests import schedule\n"
        "from tests.schedule import pytest_collection_modifyitems, pytest_xdist_make_scheduler\n"
        "schedule.SECONDS = Path(__file__).with_name('seconds.txt')\n"
    )
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-n",
        "1",
        "--dist",
        "loadfile",
        "-v",
        "-p",
        "no:cacheprovider",
    ]
    done = subprocess.run(
        [*command, "--rootdir", str(tmp_path), "-c", os.devnull, str(tmp_path)],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(PROJECT), "PYTEST_ADDOPTS": ""},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    ran = re.findall(r"PASSED (\S+?)::", done.stdout)
    assert ran == ["test_long.py"] + ["test_middle.py"] * 2 + ["test_many.py"] * 6
