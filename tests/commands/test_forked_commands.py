"""A command that is forked for a test is the command that a shell starts."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.forked_commands import run_command, start_command


def anew(*words: str, **variables: str) -> tuple[int, str, str]:
    done = subprocess.run(
        [sys.executable, "-m", "vettance.cli", *words],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env={**os.environ, **variables},
    )
    return done.returncode, done.stdout, done.stderr


def forked(*words: str, **variables: str) -> tuple[int, str, str]:
    done = run_command(words, {**os.environ, **variables}, timeout_s=60)
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize(
    "words",
    [
        ("--version",),
        ("tenant", "--help"),
        ("tenant", "crate"),
        ("tenant", "list", "--data", "nowhere"),
        ("rules", "check", "none.yaml"),
        (),
    ],
    ids=" ".join,
)
def test_it_says_what_a_new_process_says_and_ends_as_that_does(words: tuple[str, ...]) -> None:
    assert forked(*words) == anew(*words)


def test_it_has_the_environment_and_the_folder_of_its_caller(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    code, said, _ = forked("tenant", "create", "Shop", "--json", VETTANCE_DATA="here")
    assert code == 0
    assert (tmp_path / "here" / "vettance.db").exists()
    assert said.startswith('{"tenantId"')
    code, _, fault = forked("tenant", "list", VETTANCE_DATA="here", VETTANCE_KEEP_EVENTS="never ever")
    assert (code, "VETTANCE_KEEP_EVENTS" in fault) == (1, True)
    assert "VETTANCE_DATA" not in os.environ


def test_it_reads_what_is_typed(tmp_path: Path) -> None:
    data = ("--data", str(tmp_path))
    tenant = json.loads(forked("tenant", "create", "Shop", "--json", *data)[1])["tenantId"]
    words = ("user", "create", "ada@example.com", "--tenant", tenant, "--role", "admin", "--password-stdin")
    short, long = (
        run_command((*words, *data), dict(os.environ), timeout_s=60, typed=typed)
        for typed in ("short\n", "correct horse battery staple\n")
    )
    assert (short.returncode, "12 to 256" in short.stderr) == (1, True)
    assert long.returncode == 0, long.stderr


def test_it_is_killed_when_it_takes_too_long(tmp_path: Path) -> None:
    """Its service would listen until it is stopped."""
    serve = ("serve", "--port", "0", "--data", str(tmp_path))
    with pytest.raises(subprocess.TimeoutExpired):
        run_command(serve, dict(os.environ), timeout_s=0.5)
    assert forked("tenant", "list", "--json", "--data", str(tmp_path))[0] in {0, 1}


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_one_that_goes_on_ends_by_the_signal_that_it_is_sent(number: signal.Signals, tmp_path: Path) -> None:
    words = ("serve", "--port", "0", "--data", str(tmp_path))
    process = start_command(words, os.environ)
    assert process.stderr is not None
    with process.stderr:
        assert "listens on" in process.stderr.readline()
        assert process.poll() is None
        process.send_signal(number)
        assert process.wait(20) == (0 if number is signal.SIGTERM else -number)
        assert process.poll() == process.returncode


def test_what_an_interpreter_reads_as_it_starts_is_read() -> None:
    assert "import time:" in forked("--version", PYTHONPROFILEIMPORTTIME="1")[2]
