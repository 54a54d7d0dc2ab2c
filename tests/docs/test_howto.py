"""The how-tos name files that exist, and their examples fit the code as it is."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

PROJECT = Path(__file__).parents[2]
PAGES = sorted((PROJECT / "docs" / "howto").glob("*.md"))


def files_of(page: str) -> set[str]:
    """The files and folders that a page names, but for those that its example makes."""
    made = set(re.findall(r"^--- /dev/null\n\+\+\+ b/(\S+)", page, re.MULTILINE))
    prose = re.sub(r"^```.*?^```", "", page, flags=re.DOTALL | re.MULTILINE)
    return set(re.findall(r"\b(?:src|tests|docs|bench)/[\w/.]*\w/?", prose)) - made


def hunks_of(page: str) -> Iterator[tuple[str, str]]:
    """For each change of an example: the file, and the lines that must be there before it."""
    for example in re.findall(r"^```diff\n(.*?)^```", page, re.DOTALL | re.MULTILINE):
        for part in re.split(r"^--- ", example, flags=re.MULTILINE)[1:]:
            _, target, body = part.split("\n", 2)
            for hunk in re.split(r"^@@.*\n", body, flags=re.MULTILINE)[1:]:
                lines = [line[1:] for line in hunk.splitlines() if not line.startswith("+")]
                yield target.removeprefix("+++ b/"), "\n".join(lines)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_how_to_fits_the_code(page: Path) -> None:
    text = page.read_text("utf-8")
    missing = {file for file in files_of(text) if not (PROJECT / file).exists()}
    assert not missing, f"{page} names files that are gone: {missing}"
    for file, before in hunks_of(text):
        if before:
            code = (PROJECT / file).read_text("utf-8")
            assert before in code, (
                f"{page}: {file} no longer has these lines; make the example anew:\n{before}"
            )


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_how_to_touches_two_files_of_the_source_and_four_for_what_is_stored(page: Path) -> None:
    touched = set(re.findall(r"^\+\+\+ b/(src/\S+)", page.read_text("utf-8"), re.MULTILINE))
    files_max = 4 if any(file.endswith(".sql") for file in touched) else 2
    assert len(touched) <= files_max, f"{page} touches {sorted(touched)}; make it a row of a table"
