"""No benchmark is dead: each is in the index, imports and answers `--help` with an example."""

import importlib
import importlib.util
import re
import subprocess
import sys

import pytest

from bench import BENCH
from bench.__main__ import scripts
from bench.fixtures.processes import MODULES

INDEX = (BENCH / "README.md").read_text("utf-8")
FIGURES = (BENCH.parent / "docs" / "benchmarks.md").read_text("utf-8")
COMMANDS = re.compile(r"(?:python bench |make bench-)([a-z_-]+)")


@pytest.mark.parametrize("name", sorted(scripts()))
def test_every_script_is_in_the_index_and_answers_help_with_an_example(
    name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert f"`{name}`" in INDEX or name in named(INDEX), f"bench/README.md does not name {name}"
    monkeypatch.setattr(sys, "argv", [f"bench {name}", "--help"])
    with pytest.raises(SystemExit) as ended:
        importlib.import_module(f"bench.{scripts()[name].parent.name}.{name}").main()
    assert ended.value.code == 0
    said = capsys.readouterr().out
    assert said.startswith(f"usage: bench {name}")
    assert re.search(rf"^ *(?:[A-Z_]+=\S+ )*python bench {name}\b", said, re.MULTILINE), "no example"


def test_no_name_is_given_twice() -> None:
    files = [path.stem for path in BENCH.glob("*/*.py") if path.stem != "__init__"]
    assert len(files) == len(set(files))


@pytest.mark.parametrize("page", ["README.md", "benchmarks.md"])
def test_every_command_of_a_page_is_a_script(page: str) -> None:
    assert named(INDEX if page == "README.md" else FIGURES) <= scripts().keys()


def test_a_module_that_a_process_is_known_by_is_there() -> None:
    assert all(importlib.util.find_spec(module) for module in MODULES.values())


def test_a_name_that_is_none_is_refused_with_the_list() -> None:
    done = subprocess.run(
        [sys.executable, BENCH, "evalute"], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 1
    assert "there is no benchmark 'evalute'" in done.stderr
    assert "evaluate " in done.stdout


def named(page: str) -> set[str]:
    """Return the scripts that the commands of a page name."""
    return {name.replace("-", "_").rstrip("_") for name in COMMANDS.findall(page)}
