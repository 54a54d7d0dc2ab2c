"""THIRD_PARTY.md names every file of another project, and the files are the published ones."""

import hashlib
import re

import pytest

from tests.shape.source import PROJECT

ROW = re.compile(
    r"^\| `(?P<file>[^`]+)` \| [^|]+ \| \[[^\]]+\]\((?P<licence>[^)]+)\) \| `(?P<sum>[0-9a-f]{64})` \|$"
)
ROWS = [
    found.groupdict()
    for line in (PROJECT / "THIRD_PARTY.md").read_text("utf-8").splitlines()
    if (found := ROW.match(line))
]
#: Folders that hold nothing of ours.
FOREIGN = ("src/vettance/console/static/vendor", "src/vettance/web/static/swagger", "tests/browser/axe")


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["file"])
def test_a_third_party_file_is_the_published_one(row: dict[str, str]) -> None:
    content = (PROJECT / row["file"]).read_bytes()
    assert hashlib.sha256(content).hexdigest() == row["sum"], f"{row['file']} is not what its row says"
    assert (PROJECT / row["licence"]).is_file()


def test_every_third_party_file_has_a_row() -> None:
    kept = {
        str(path.relative_to(PROJECT))
        for folder in FOREIGN
        for path in (PROJECT / folder).rglob("*")
        if path.suffix in {".js", ".css"}
    }
    assert kept == {row["file"] for row in ROWS}
