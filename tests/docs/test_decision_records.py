"""Every decision record is in the index with its number, title and status, and names files that exist."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "docs" / "adr"
INDEX = (FOLDER / "README.md").read_text("utf-8")
RECORDS = sorted(FOLDER.glob("[0-9]*.md"))
STATUSES = ("accepted", "proposed", "superseded")
#: Folders that records name files of.
TREES = ("src", "tests", "bench", "sdk", "deploy")
FILES = [
    path.relative_to(ROOT).as_posix()
    for tree in TREES
    for path in (ROOT / tree).rglob("*")
    if path.is_file() and "node_modules" not in path.parts
]


@pytest.mark.parametrize("record", RECORDS, ids=[path.name for path in RECORDS])
def test_every_record_is_in_the_index(record: Path) -> None:
    head, status = record.read_text("utf-8").split("\n\n", 2)[:2]
    number, title = re.fullmatch(r"# (\d+)\. (.+)", head).groups()  # type: ignore[union-attr]
    assert int(number) == int(record.name[:4]), "the number of the title is not that of the file"
    word = next((one for one in reversed(STATUSES) if one in status), None)
    assert re.match(r"\*\d{4}-\d\d-\d\d, ", status), (
        "the second line is date and status: *2026-11-21, accepted.*"
    )
    assert word is not None, f"the status is one of {STATUSES}"
    line = f"| {number} | [{title}]({record.name}) | {word}"
    assert INDEX.count(line) == 1, f"docs/adr/README.md needs this line in one of its tables:\n{line} |"


def test_every_number_is_given_once_and_the_index_names_no_other_record() -> None:
    numbers = [path.name[:4] for path in RECORDS]
    assert len(set(numbers)) == len(numbers), "two records have one number: give the newer one the next free"
    listed = re.findall(r"^\| \d+ \| \[.*?\]\((\S+?)\)", INDEX, re.MULTILINE)
    assert sorted(listed) == [path.name for path in RECORDS]


@pytest.mark.parametrize("record", RECORDS, ids=[path.name for path in RECORDS])
def test_a_record_names_only_files_that_exist(record: Path) -> None:
    named = re.findall(r"`([\w./-]+\.(?:py|ts|sql|lua|sh))`", record.read_text("utf-8"))
    gone = [name for name in named if not any(f"/{file}".endswith(f"/{name}") for file in FILES)]
    assert not gone, f"{record.name} names {gone}: say where that is now"
