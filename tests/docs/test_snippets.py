"""Commands, paths and code of every page are ones that this version takes, where no test runs them, too."""

import ast
import json
import re
import shlex
import textwrap
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from tests.docs.shell import PROJECT
from vettance.cli import main

PAGES = sorted(
    (
        PROJECT / "README.md",
        *(page for page in (PROJECT / "docs").rglob("*.md") if "adr" not in page.parts),
        *PROJECT.glob("clients/*/README.md"),
    )
)
PATHS = set(json.loads((PROJECT / "clients" / "openapi.json").read_text("utf-8"))["paths"])
HELP = {"--help", "--version"}


def name_of(page: Path) -> str:
    return str(page.relative_to(PROJECT))


def blocks(page: Path, *languages: str) -> Iterator[str]:
    for language, body in re.findall(
        r"^```(\w+)[^\n]*\n(.*?)^```", page.read_text("utf-8"), re.DOTALL | re.MULTILINE
    ):
        if language in languages:
            yield body


def commands(page: Path) -> Iterator[list[str]]:
    """The words of each `vettance …` in the blocks and the prose of a page, up to what the shell adds."""
    text = page.read_text("utf-8")
    inline = re.findall(
        r"`(vettance [a-z][^`]*)`", re.sub(r"^```.*?^```", "", text, flags=re.DOTALL | re.MULTILINE)
    )
    lines = [
        line
        for body in blocks(page, "sh", "console", "text")
        for line in body.replace("\\\n", " ").splitlines()
    ]
    found = [
        piece
        for line in lines
        for piece in re.findall(r"(?:^|[ (;|])(vettance [a-z].*)", line.split(" # ")[0])
    ]
    for command in (*found, *inline):
        cut = re.split(r"\s[|;&>]|\s2>|\$\(|\)\s*$|\s…$", command.removeprefix("vettance "))[0]
        try:
            yield shlex.split(cut.replace("'s ", " ").rstrip(".,:"))
        except ValueError:
            continue  # A quotation goes on behind the cut.


def fault_of(words: list[str]) -> str | None:
    """What a command line names that there is not; alternatives such as `list|show` are each looked at."""
    command: click.Command = main
    context = click.Context(main)
    for index, word in enumerate(words):
        if not isinstance(command, click.Group) or word.startswith(("-", "…", "[")):
            break
        if word.isupper():
            return None
        for one in word.split("|"):
            found = command.get_command(context, one)
            if found is None:
                return f"there is no command {' '.join((*words[:index], one))}"
        command = found
    options = {
        option for parameter in command.params for option in (*parameter.opts, *parameter.secondary_opts)
    }
    for word in words:
        for option in re.findall(r"(?<![\w-])--[a-z][a-z-]*", word) if word.startswith(("-", "[-")) else ():
            if option not in options | HELP and not isinstance(command, click.Group):
                return f"{' '.join(words[:3])} has no option {option}"
    return None


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_commands_of_a_page_exist(page: Path) -> None:
    faults = [fault for words in commands(page) if (fault := fault_of(words))]
    assert not faults, f"{name_of(page)}: {faults}"


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_endpoints_of_a_page_exist(page: Path) -> None:
    patterns = [re.compile(re.sub(r"\{[^}]+\}", "[^/]+", path)) for path in PATHS]
    named = {
        path.rstrip("/.")
        for path in re.findall(r"/api/v1/[A-Za-z0-9_{}:$/.…-]+", page.read_text("utf-8"))
        if not path.endswith(("…", "-"))
    }
    missing = [
        path
        for path in sorted(named)
        if not any(pattern.match(path) for pattern in patterns)
        and not any(known.startswith(path + "/") for known in PATHS)
    ]
    assert not missing, f"{name_of(page)} names endpoints that do not exist: {missing}"


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_python_of_a_page_is_python(page: Path) -> None:
    for body in blocks(page, "python"):
        # Some blocks are what stands in a handler, and return.
        ast.parse(f"async def handler():\n{textwrap.indent(body, '    ')}", name_of(page))
