"""The benchmarks run: their parts work together, and what they report is what happened."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from bench import BENCH
from tests.databases import absence


def run(script: str, *arguments: str, timeout_s: float = 110) -> Any:
    done = subprocess.run(
        [sys.executable, str(BENCH), script, *arguments, "--json"],
        capture_output=True,
        text=True,
        timeout=timeout_s,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_the_load_client_counts_what_it_sent() -> None:
    found = run("load", "--self-test", "--connections", "4", "--seconds", "0.5")
    assert found["statuses"] == {"200": found["requests"]}
    assert found["requests"] > 1000
    assert found["p50_ms"] <= found["p95_ms"] <= found["p99_ms"] <= found["max_ms"]


def test_the_load_client_drives_nothing_but_this_machine(tmp_path: Path) -> None:
    (tmp_path / "bodies").write_text("{}")
    command = [sys.executable, str(BENCH), "load", "--url", "http://192.0.2.1/", "--bodies"]
    done = subprocess.run(
        [*command, str(tmp_path / "bodies")], capture_output=True, timeout=60, check=False, text=True
    )
    assert done.returncode == 2
    assert "127.0.0.1" in done.stderr


@pytest.mark.slow
def test_the_throughput_benchmark_measures_both_handlers(tmp_path: Path) -> None:
    found = run("evaluate", "--quick", "--folder", str(tmp_path / "bench"))
    (row,) = found["http"]
    for part in ("bare", "evaluate"):
        assert row[part]["requests"] > 0
        assert row[part]["not_2xx"] == row[part]["broken"] == 0
    assert 0 < row["ratio"] < 1
    assert found["inside"]["state, cold"] > 0


@pytest.mark.slow
def test_nothing_acknowledged_is_lost_when_the_whole_service_is_killed(tmp_path: Path) -> None:
    found = run("kill", "--rounds", "3", "--folder", str(tmp_path / "bench"))
    assert len(found["rounds"]) == 3
    assert sum(one["acknowledged"] for one in found["rounds"]) > 0
    assert all(one["lost"] == one["changed"] == 0 for one in found["rounds"])
    store = found["store"]
    assert store["integrity"] == "ok"
    assert store["acknowledgedNotStored"] == 0
    assert store["eventsWithoutDecision"] == store["decisionsWithoutEvent"] == 0


@pytest.mark.slow
def test_the_memory_benchmark_weighs_before_and_after_a_restart(tmp_path: Path) -> None:
    found = run("memory", "--events", "3000", "--customers", "500", "--folder", str(tmp_path / "bench"))
    assert found["events"] == 3000
    assert min(found["weights"][-1].values()) > 0
    assert found["startSeconds"] > 0
    assert not (tmp_path / "bench").exists()


def test_the_classes_of_names_are_made_of_the_sample_list_and_judged() -> None:
    found = run("name_classes", "--count", "3", "--only", "Cyrillic")
    assert found["classes"]
    assert all(1 <= row["cases"] <= 3 for row in found["classes"].values())
    assert 0.0 < found["total"]["recall"] <= 1.0


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("store", ["sqlite", "postgres"])
def test_the_benchmark_of_grown_stores_compares_every_kind_of_request(tmp_path: Path, store: str) -> None:
    if store == "postgres" and (why := absence()):
        pytest.skip(why)
    size = ("--rows", "300", "--times", "2", "--rounds", "1", "--count", "3", "--store", store)
    found = run("grown_stores", *size, "--folder", str(tmp_path / "bench"), timeout_s=280)
    assert found["rows"] == [300, 600]
    assert {"evaluate", "screening with match", "AML event with alert", "list add"} <= found["kinds"].keys()
    for one in found["kinds"].values():
        assert one["requests"] == 3
        assert min(*one["cpuUs"], *one["p50Ms"], *one["p95Ms"]) > 0
    assert not (tmp_path / "bench").exists()


@pytest.mark.slow
@pytest.mark.parametrize("store", ["sqlite", "postgres"])
def test_whatever_is_sent_no_answer_is_500_and_every_start_succeeds(tmp_path: Path, store: str) -> None:
    if store == "postgres" and (why := absence()):
        pytest.skip(why)
    sent = ("--count", "480", "--rounds", "2", "--seed", "3", "--store", store)
    found = run("fuzz_requests", *sent, "--folder", str(tmp_path / "data"))
    assert found["examples"] == []
    assert found["starts"] == 3
    assert found["answers"] > 470
