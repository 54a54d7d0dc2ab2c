"""`vettance demo` from a clean folder to its results, through a real service."""

import json
import os
import pty
import re
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path
from urllib.request import Request, urlopen

import pytest

from tests.live import run_cli
from vettance.demo.cli import start_line
from vettance.demo.launch import LaunchFault, make_fresh
from vettance.demo.report import curl_line

DEMO = (sys.executable, "-m", "vettance.cli", "demo")


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*DEMO, *arguments], capture_output=True, text=True, timeout=100, check=False)


def children_of(folder: Path) -> list[str]:
    """Return the command lines of processes that name the folder."""
    found = []
    for process in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = process.read_bytes().decode("utf-8", "replace")
        except OSError:
            continue
        if str(folder) in words and process.parent.name != str(os.getpid()):
            found.append(words)
    return found


def test_the_demo_decides_everything_and_says_what_it_caught(tmp_path: Path) -> None:
    folder = tmp_path / "demo"
    done = run("--customers", "40", "--days", "4", "--fraud-share", "0.1", "--folder", str(folder))
    assert done.returncode == 0, done.stderr
    assert re.search(r"[\d,]+ decisions in [\d.]+ s: [\d,]+ per second", done.stdout)
    for words in (
        "p99",
        "Decision against the truth",
        "takeover",
        "Most frequent reasons",
        "curl -s",
    ):
        assert words in done.stdout
    assert '"riskScore"' in done.stdout
    assert "not decided" not in done.stdout
    assert not children_of(folder)


@pytest.mark.slow
def test_the_demo_stops_its_service_when_it_is_stopped(tmp_path: Path) -> None:
    folder = tmp_path / "demo"
    command = [*DEMO, "--customers", "3000", "--days", "60", "--folder", str(folder)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None
    for line in process.stdout:
        if "listens on" in line:
            break
    time.sleep(0.5)
    process.send_signal(signal.SIGTERM)
    _, errors = process.communicate(timeout=40)
    assert process.returncode == 1
    assert "interrupted" in errors
    assert not children_of(folder)


def test_a_folder_with_other_things_in_it_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("years of work")
    with pytest.raises(LaunchFault, match="not a demo's"):
        make_fresh(tmp_path)
    assert (tmp_path / "thesis.txt").exists()


def test_an_input_that_cannot_be_read_is_one_clear_line(tmp_path: Path) -> None:
    (tmp_path / "payments.parquet").write_text("a,b,c")
    done = run("--input", str(tmp_path / "payments.parquet"), "--folder", str(tmp_path / "demo"))
    assert done.returncode == 1
    assert done.stderr.startswith("Error: ")
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "demo").exists()


@pytest.mark.parametrize("called", ["vettance", "/shop/.venv/bin/vettance"])
def test_the_demo_says_how_to_start_again_as_it_was_called(
    called: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", [called, "demo"])
    assert start_line(tmp_path) == f"{called} serve --data {tmp_path} --port 8080"
    monkeypatch.setattr(sys, "argv", ["cli.py", "demo"])
    assert start_line(tmp_path).startswith("vettance serve ")


def test_the_curl_line_is_one_a_shell_takes() -> None:
    words = shlex.split(curl_line("http://127.0.0.1:8080", "vtc_test_x"))
    assert words[0] == "curl"
    assert "x-api-key: vtc_test_x" in words


def test_a_script_gets_the_results_of_both_demos_as_json_and_each_begins_anew(tmp_path: Path) -> None:
    size = ("--customers", "20", "--days", "8", "--folder", str(tmp_path / "demo"), "--json")
    done = run("--fraud-share", "0.1", *size)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    decisions = found["decisions"].values()
    assert found["decided"] == sum(one["legit"] + one["fraud"] for one in decisions) > 100
    assert found["refused"] == 0
    assert found["link"].startswith("/console/enter/")
    assert 0 < found["averagePrecision"] <= 1
    assert found["latencyMs"]["p50"] <= found["latencyMs"]["p99"]
    assert sum(one["events"] for one in found["scenarios"].values()) == sum(one["fraud"] for one in decisions)
    assert found["apiKey"].startswith("vtc_test_")
    first = found["tenantId"]
    done = run("--aml", *size)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert all(one["caught"] <= one["cases"] for one in found["typologies"].values())
    assert found["events"] > found["ordinaryEvents"] > found["ordinaryAlerted"]
    assert sum(found["alerts"].values()) > 0
    # The second run began anew, on the folder of the first.
    assert found["tenantId"] != first
    assert [one["tenantId"] for one in run_cli(tmp_path / "demo", "tenant", "list", "--json")] == [
        found["tenantId"]
    ]


def test_the_demo_of_aml_says_what_was_planted_and_caught(tmp_path: Path) -> None:
    folder = tmp_path / "demo"
    done = run("--aml", "--customers", "20", "--days", "8", "--exit", "--folder", str(folder))
    assert done.returncode == 0, done.stderr
    for words in ("scatter gather", "planted cases caught", "alerts:", "/api/v1/aml/cases"):
        assert words in done.stdout
    assert not children_of(folder)


@pytest.mark.slow
def test_at_a_terminal_traffic_goes_on_until_it_is_stopped(tmp_path: Path) -> None:
    folder = tmp_path / "demo"
    ours, theirs = pty.openpty()
    size = ("--customers", "20", "--days", "2", "--folder", str(folder))
    process = subprocess.Popen([*DEMO, *size], stdin=theirs, stdout=theirs, stderr=theirs)
    os.close(theirs)
    try:
        shown = read_until(ours, "Log in and pay")
        address = re.search(r"runs on at (http://127[.0-9:]+)", shown)
        key = re.search(r"x-api-key: (vtc_\w+)", shown)
        assert address is not None
        assert key is not None
        assert f"{address[1]}/console/enter/" in shown

        def decided() -> int:
            request = Request(f"{address[1]}/api/v1/decisions?limit=1", headers={"x-api-key": key[1]})
            with urlopen(request, timeout=10) as answer:
                return int(json.load(answer)["total"])

        before, until = decided(), time.monotonic() + 40
        while decided() < before + 3 and time.monotonic() < until:
            time.sleep(0.2)
        assert decided() >= before + 3
        process.send_signal(signal.SIGINT)
        read_until(ours, "Stopping.")
        assert process.wait(40) == 0
    finally:
        process.kill()
        process.wait()
        os.close(ours)
    assert not children_of(folder)


def read_until(terminal: int, words: str) -> str:
    """Read what a program writes to a terminal until it has written some words."""
    shown = ""
    while words not in shown:
        shown += os.read(terminal, 65_536).decode()
    return shown
