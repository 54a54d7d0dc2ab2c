"""The commands of the README and of the tutorials do what these pages say, pasted block by block."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.docs.shell import PROJECT, Shell, blocks_of, prints

README = (PROJECT / "README.md").read_text("utf-8")
TUTORIALS = sorted((PROJECT / "docs").glob("tutorial*.md"))


@pytest.fixture
def shell(tmp_path: Path) -> Iterator[Shell]:
    shell = Shell(tmp_path)
    yield shell
    shell.close()


@pytest.mark.slow
@pytest.mark.parametrize("page", TUTORIALS, ids=lambda page: page.stem)
def test_a_tutorial_works_from_its_first_line_to_its_last(shell: Shell, page: Path) -> None:
    blocks = blocks_of(page.read_text("utf-8"))
    assert len(blocks) > 5
    for block in blocks:
        output = shell.paste(block.commands)
        assert prints(block, output), (
            f"{block.commands}\nprints\n{output}\nand {page.name} says\n{block.printed}"
        )


def shape_of(answer: Any) -> Any:
    """An answer without what differs every time."""
    text = re.sub(r"\b(req|evt)_[0-9a-f]+", r"\1_…", json.dumps(answer))
    return json.loads(re.sub(r'"evaluatedAt": "[^"]+"', '"evaluatedAt": "…"', text))


@pytest.mark.slow
def test_the_commands_of_the_readme_do_what_it_says(shell: Shell) -> None:
    decision, rules = (block.commands for block in blocks_of(README)[1:])
    answers = [json.loads(line) for line in shell.paste(decision).splitlines() if line.startswith("{")]
    assert [answer["decision"] for answer in answers] == ["approve"] * 4 + ["review", "deny"]
    promised = json.loads(README.partition("```json\n")[2].partition("```")[0])
    assert shape_of(answers[-1]) == shape_of(promised)
    said = shell.paste(rules)
    assert "all passed" in said
    assert "6 events decided anew" in said
    assert "Version 2 is in force." in said


def test_the_two_commands_of_the_readme_are_targets() -> None:
    targets = re.findall(r"^make (\w+)", blocks_of(README)[0].commands, re.MULTILINE)
    makefile = (PROJECT / "Makefile").read_text("utf-8")
    assert targets == ["demo", "test"]
    assert all(re.search(rf"^{target}:", makefile, re.MULTILINE) for target in targets)
