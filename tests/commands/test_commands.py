"""What holds for every command: help with an example, --json for scripts, and faults in one line."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result

from tests.live import run_cli
from vettance.cli import main
from vettance.option_types import Decimal, Whole
from vettance.rules.packs import load_pack_text

#: The one that answers nothing: it runs on, and its log is JSON.
NO_JSON = {"serve"}


def commands(
    command: click.Command = main, path: tuple[str, ...] = ()
) -> Iterator[tuple[str, click.Command]]:
    yield " ".join(path), command
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            below = command.get_command(context, name)
            assert below is not None
            yield from commands(below, (*path, name))


EVERY = dict(commands())


def run(*arguments: str, env: dict[str, str] | None = None) -> Result:
    """Run a command in this process, which is faster by far than one of its own."""
    return CliRunner().invoke(main, arguments, env=env)


def assert_one_line(done: Result, begin: str = "") -> None:
    assert done.exit_code == 1
    assert done.stderr.startswith(f"Error: {begin}")
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("name", EVERY)
def test_every_command_has_help_with_an_example(name: str) -> None:
    command = EVERY[name]
    said = f"{command.help} {command.epilog or ''}"
    assert f"vettance {name}" in said.partition("Example")[2]
    for option in command.params:
        if isinstance(option, click.Option) and not option.hidden:
            assert option.help, option.opts


@pytest.mark.parametrize("name", [name for name, one in EVERY.items() if not isinstance(one, click.Group)])
def test_every_command_answers_scripts_in_json(name: str) -> None:
    options = {text for option in EVERY[name].params for text in option.opts}
    assert ("--json" in options) == (name not in NO_JSON)


@pytest.mark.parametrize("name", EVERY)
def test_every_number_of_a_command_is_read_as_plain_digits(name: str) -> None:
    for option in EVERY[name].params:
        if isinstance(option.type, click.IntRange | click.types.IntParamType):
            assert isinstance(option.type, Whole), option.opts
        if isinstance(option.type, click.FloatRange | click.types.FloatParamType):
            assert isinstance(option.type, Decimal), option.opts


def test_help_is_shown_by_the_real_command() -> None:
    done = run_cli(Path(), "rules", "pull", "--help", data=False)
    assert "Example: vettance rules pull" in done.stdout


@pytest.mark.parametrize(
    "arguments",
    [
        ("tenant", "list"),
        ("key", "list"),
        ("rules", "pull", "--tenant", "ten_x"),
        ("aml", "list", "--tenant", "ten_x"),
        ("export", "events", "--tenant", "ten_x"),
        ("retention", "run"),
        ("websdk", "rotate"),
        ("watchlist", "list"),
        ("backup", "copy"),
    ],
)
def test_a_data_folder_that_is_not_there_is_said_and_not_made(
    tmp_path: Path, arguments: tuple[str, ...]
) -> None:
    data = tmp_path / "mistyped"
    done = run(*arguments, "--data", str(data))
    assert_one_line(done)
    assert "mistyped" in done.stderr
    assert not data.exists()


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, ...]:
    """The options that name a data folder and a tenant in it."""
    data = tmp_path_factory.mktemp("shop")
    made = json.loads(run("tenant", "create", "Shop", "--json", "--data", str(data)).stdout)
    return "--data", str(data), "--tenant", made["tenantId"]


def test_rules_are_pulled_and_packs_shown_as_json(tmp_path: Path, shop: tuple[str, ...]) -> None:
    pulled = json.loads(run("rules", "pull", *shop, "--json").stdout)
    assert pulled == {"tenantId": shop[-1], "version": 1, "document": load_pack_text("fraud")}
    out = tmp_path / "rules.yaml"
    told = json.loads(run("rules", "pull", *shop, "--output", str(out), "--json").stdout)
    assert told == {"tenantId": shop[-1], "version": 1, "output": str(out)}
    assert out.read_text("utf-8") == load_pack_text("fraud") == run("rules", "pull", *shop).stdout
    pack = json.loads(run("rules", "pack", "aml", "--json").stdout)
    assert pack == {"pack": "aml", "document": load_pack_text("aml")}


@pytest.mark.parametrize(
    "arguments",
    [
        ("rules", "pull", "--output", "{there}/nowhere/rules.yaml"),
        ("export", "events", "--out", "{there}/nowhere/events.csv"),
        ("import", "{there}/bad.ndjson", "--errors", "{there}/nowhere/errors.ndjson"),
    ],
)
def test_a_file_that_cannot_be_written_is_named_in_one_line(
    tmp_path: Path, shop: tuple[str, ...], arguments: tuple[str, ...]
) -> None:
    (tmp_path / "bad.ndjson").write_text("not json\n")
    assert_one_line(run(*(word.format(there=tmp_path) for word in arguments), *shop), f"{tmp_path}/nowhere/")


def test_a_url_of_no_database_is_said_in_one_line() -> None:
    done = run("tenant", "list", env={"VETTANCE_DATABASE_URL": "postgresql://[::bad/x"})
    assert_one_line(done, "VETTANCE_DATABASE_URL ")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="Linux only")
@pytest.mark.parametrize("words", [("--help",), ("rules", "pack")])
def test_a_full_disk_behind_standard_output_is_said_in_one_line(words: tuple[str, ...]) -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "vettance.cli", *words],
            stdout=full, stderr=subprocess.PIPE, text=True, timeout=60, check=False,
        )  # fmt: skip
    assert done.returncode == 1
    assert done.stderr == "Error: No space left on device\n"


def test_a_reader_that_has_read_enough_is_no_fault() -> None:
    read, write = os.pipe()
    os.close(read)
    try:
        done = subprocess.run(
            [sys.executable, "-m", "vettance.cli", "rules", "pack"],
            stdout=write, stderr=subprocess.PIPE, text=True, timeout=60, check=False,
        )  # fmt: skip
    finally:
        os.close(write)
    assert done.returncode == 1
    assert done.stderr == ""


def test_money_out_of_this_age_is_refused_as_other_traffic_is(tmp_path: Path) -> None:
    for kind in ("fraud", "aml"):
        done = run("generate", kind, "--customers", "5", "--days", "9999999", "--out", str(tmp_path))
        assert done.exit_code == 2
        assert "between the years 1970 and 9999" in done.stderr
        assert done.stderr.count("\n") == 1


def test_refreshed_lists_are_an_array_even_when_one_fails(tmp_path: Path) -> None:
    list_url = (tmp_path / "nowhere.csv").as_uri()
    words = (
        "watchlist",
        "refresh",
        "--source",
        "un_sc",
        "--url",
        list_url,
        "--json",
        "--data",
        str(tmp_path),
    )
    done = run(*words)
    assert_one_line(done, "un_sc: ")
    assert json.loads(done.stdout) == []


def test_a_file_without_rows_is_said_to_be_one(tmp_path: Path, shop: tuple[str, ...]) -> None:
    for name, text in (("header.csv", "eventName,label\n"), ("empty.ndjson", "\n")):
        (tmp_path / name).write_text(text)
        done = run("import", str(tmp_path / name), *shop)
        assert (done.exit_code, done.stderr) == (0, "")
        assert done.stdout == f"{tmp_path / name} holds no rows: there was nothing to import.\n"
        assert json.loads(run("import", str(tmp_path / name), *shop, "--json").stdout)["accepted"] == 0


def test_a_script_can_tell_pending_migrations_from_a_failure(tmp_path: Path) -> None:
    check = ("migrate", "--check", "--data", str(tmp_path))
    assert run(*check).exit_code == 3
    assert run("migrate", "--data", str(tmp_path)).exit_code == 0
    assert run(*check).exit_code == 0
    (tmp_path / "vettance.db").write_bytes(b"no store at all " * 1000)
    assert_one_line(run(*check))


@pytest.mark.skipif(sys.platform != "linux", reason="priorities belong to threads on Linux alone")
@pytest.mark.parametrize(("only_reads", "expected"), [(False, "10 0"), (True, "19 5")])
def test_what_shows_how_far_it_is_gives_way_with_every_thread(only_reads: bool, expected: str) -> None:
    script = f"""
import os, threading
from vettance.commands import progress
ready, over = threading.Event(), threading.Event()
thread = threading.Thread(target=lambda: (ready.set(), over.wait()))
thread.start()
ready.wait()
with progress("Exporting", 1, only_reads={only_reads}):
    for one in (os.getpid(), thread.native_id):
        print(os.getpriority(os.PRIO_PROCESS, one), os.sched_getscheduler(one))
over.set()
"""
    environment = {**os.environ, "VETTANCE_BACKGROUND": "low"}
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, env=environment
    )
    # Policy 0 is the usual one, 5 is SCHED_IDLE: what holds a lock may not wait for an idle processor.
    assert done.stdout.splitlines() == [expected, expected]
