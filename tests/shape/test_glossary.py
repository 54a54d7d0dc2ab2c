"""docs/glossary.md names every file once, and no other.

`APPROVE=1 pytest tests/shape/test_glossary.py` removes the lines of files that are gone and drafts a line for
each new one from its docstring; make it short and plain before committing.
"""

import ast
import os
import re
from pathlib import Path

from tests.shape.source import NAMES, PROJECT, tree_of

PAGE = PROJECT / "docs" / "glossary.md"
HEADING = "## Every file\n"
FILES = [name for name in NAMES if Path(name).name != "__init__.py"]
LINE_CHARACTERS_MAX = 120


def listed() -> dict[str, str]:
    """What the glossary says of each file."""
    found: dict[str, str] = {}
    room = ""
    for line in PAGE.read_text("utf-8").partition(HEADING)[2].splitlines():
        if heading := re.fullmatch(r"### `(\w+/)`", line):
            room = heading[1]
        elif entry := re.fullmatch(r"- `([\w/]+\.py)`: (\S.*)", line):
            name = room + entry[1]
            assert name not in found, f"docs/glossary.md has two lines for {name}; keep one"
            found[name] = entry[2]
    return found


def page_of(lines: dict[str, str]) -> str:
    """The page with these lines, sorted: the root, then the rooms, in each its files before its folders."""
    text = PAGE.read_text("utf-8").partition(HEADING)[0] + HEADING
    for room in sorted({name.rpartition("/")[0].partition("/")[0] for name in lines}):
        text += f"\n### `{room}/`\n\n" if room else "\n### The root\n\n"
        files = [name for name in lines if name.rpartition("/")[0].partition("/")[0] == room]
        for name in sorted(files, key=lambda name: (name.count("/"), name)):
            text += f"- `{name.removeprefix(room + '/')}`: {lines[name]}\n"
    return text


def draft_of(name: str) -> str:
    doc = ast.get_docstring(tree_of(name)) or ""
    return doc.splitlines()[0]


if os.environ.get("APPROVE"):
    PAGE.write_text(page_of({name: listed().get(name) or draft_of(name) for name in FILES}), "utf-8")
LISTED = listed()


def test_every_file_has_a_line_in_the_glossary() -> None:
    missing = [name for name in FILES if name not in LISTED]
    assert not missing, (
        f"docs/glossary.md has no line for {missing}: write one, or have it drafted: {__doc__}"
    )


def test_every_line_of_the_glossary_is_one_short_sentence() -> None:
    long = [name for name in FILES if len(LISTED.get(name, "")) > LINE_CHARACTERS_MAX]
    assert not long, f"one short sentence, please: {long}"
    open_ended = [name for name in FILES if not LISTED.get(name, ".").endswith(".")]
    assert not open_ended, f"end these sentences with a full stop: {open_ended}"


def test_no_line_of_the_glossary_is_about_a_file_that_is_gone() -> None:
    gone = sorted(LISTED.keys() - set(NAMES))
    assert not gone, f"docs/glossary.md has lines for files that are gone; take them out: {gone}"


def test_the_lines_of_the_glossary_are_sorted() -> None:
    assert PAGE.read_text("utf-8") == page_of(LISTED), (
        "sort them: APPROVE=1 pytest tests/shape/test_glossary.py"
    )
