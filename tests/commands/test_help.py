"""The help of every command: quick, with an example, and in one vocabulary."""

import re
import subprocess
import sys

import click
import pytest

from vettance.cli import COMMANDS, main

#: What takes a tenth of a second or more to load, and no help needs.
HEAVY = (
    *(
        "asyncpg",
        "cryptography",
        "httptools",
        "numpy",
        "pyarrow",
        "redis",
        "rich",
        "structlog",
        "uvicorn",
        "uvloop",
    ),
    *("vettance.server.application", "vettance.deployment.connect"),
)
#: Screening a file is nothing but searching and reading columns.
NEEDED = {"screen": {"numpy"}}


def commands() -> dict[str, click.Command]:
    """Return every command and subcommand by its words."""
    found: dict[str, click.Command] = {}

    def look(words: str, command: click.Command) -> None:
        found[words] = command
        if isinstance(command, click.Group):
            for name, below in command.commands.items():
                look(f"{words} {name}", below)

    for name in COMMANDS:
        command = main.get_command(click.Context(main), name)
        assert command is not None
        look(name, command)
    return found


@pytest.mark.parametrize("name", list(COMMANDS))
def test_help_loads_nothing_heavy(name: str) -> None:
    text = (
        "import sys\nfrom vettance.cli import main\n"
        f"try:\n    main([{name!r}, '--help'])\nexcept SystemExit:\n    pass\n"
        f"print(*sorted(set({HEAVY!r}) & set(sys.modules)), file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", text], capture_output=True, text=True, timeout=60, check=True
    )
    assert "Usage:" in done.stdout
    assert set(done.stderr.split()) <= NEEDED.get(name, set())


@pytest.mark.parametrize("words", list(commands()))
def test_every_command_shows_an_example(words: str) -> None:
    command = commands()[words]
    assert re.search(rf"Examples?:\s+vettance {words.split(maxsplit=1)[0]}\b", command.help or "")


@pytest.mark.parametrize("words", list(commands()))
@pytest.mark.parametrize("columns", [80, 100, 200])
def test_no_line_is_wider_than_a_window(words: str, columns: int) -> None:
    command = commands()[words]
    text = command.get_help(click.Context(command, info_name=f"vettance {words}", terminal_width=columns))
    assert [line for line in text.splitlines() if len(line) > max(columns, 100)] == []


def test_values_that_an_option_takes_are_named() -> None:
    for words, values in (
        ("watchlist refresh", ("us_ofac_sdn", "opensanctions")),
        ("webhooks listen", ("EVENT_RISK_EVALUATED", "REVIEW_SETTLED")),
    ):
        text = commands()[words].get_help(click.Context(commands()[words]))
        assert all(value in text for value in values), words


def test_options_of_one_name_are_explained_alike() -> None:
    helps: dict[str, dict[str | None, list[str]]] = {}
    for words, command in commands().items():
        for option in command.params:
            if isinstance(option, click.Option) and not option.hidden:
                helps.setdefault(option.opts[0], {}).setdefault(option.help, []).append(words)
    # A stream of messages is no one object; places of a copy, streams and versions of rules are no moments.
    others = {
        "--json": {"webhooks listen", "consume"},
        "--from": {"copy", "consume"},
        "--to": {
            "copy",
            "consume",
            "rules diff",
            "rules rollback",
            "aml rollback",
            "model features rollback",
        },
    }
    for name in ("--data", "--json", "--force", "--from", "--to"):
        texts = {text for text, words in helps[name].items() if not set(words) & others.get(name, set())}
        assert len(texts) == 1, helps[name]


def test_what_a_command_writes_to_is_named_by_one_option() -> None:
    for words, command in commands().items():
        assert "--out" not in re.findall(r"--[a-z-]+", command.get_help(click.Context(command))), words


def test_the_former_name_of_that_option_is_still_understood() -> None:
    for words in ("export", "generate fraud", "screen", "rules backtest"):
        assert any("--out" in option.opts for option in commands()[words].params), words
