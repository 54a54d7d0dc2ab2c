"""The page of the console shows pictures that exist, and tells the truth about roles, files and keys."""

import re
from pathlib import Path

from bench.browser.screenshots import BYTES_MAX, DOCUMENTED, PICTURES, THEMES
from vettance.people.role import Role

PROJECT = Path(__file__).parents[2]
PAGE = (PROJECT / "docs" / "console.md").read_text("utf-8")
README = (PROJECT / "README.md").read_text("utf-8")


def test_every_picture_is_there_and_light() -> None:
    found = {path.name.rpartition(".")[0]: path for path in PICTURES.iterdir()}
    assert found.keys() == {f"{name}-{theme}" for name in DOCUMENTED for theme in THEMES}
    assert {path.name for path in found.values() if path.stat().st_size > BYTES_MAX} == set()
    shown = re.findall(r"!\[.+?\]\((pictures/[\w.-]+)\)", PAGE)
    assert len(shown) >= 6
    in_readme = re.findall(r"!\[.+?\]\((docs/pictures/[\w.-]+)\)", README)
    assert len(in_readme) == 2
    for path in (*(f"docs/{one}" for one in shown), *in_readme):
        assert (PROJECT / path).is_file(), path


def test_every_role_is_explained() -> None:
    assert {role.value for role in Role} <= set(re.findall(r"^\| (\w+) \|", PAGE, re.MULTILINE))


def test_every_file_that_it_names_is_there() -> None:
    for name in re.findall(r"`((?:src|tests)/[\w./]+)`", PAGE):
        assert (PROJECT / name).exists(), name
