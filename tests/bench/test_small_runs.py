"""Every benchmark runs to its end in small: here, in a test of its own, or it says why it cannot."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from bench import BENCH
from bench.__main__ import scripts
from tests.databases import absence, database

#: The smallest run that does each thing once; `{}` is a folder.
SMALL = {
    "aml": "start --customers 20 --days 10 --events 100 --folder {}",
    "bulk_inserts": "--rows 2 --rounds 1",
    "client_overhead": "--calls 2 --rounds 2",
    "crash": "--rounds 1 --seed 1",
    "embedded_store": "--seconds 0.2 --warm 0.1 --callers 1 --writer process",
    "erasure": "--decisions 300 --rounds 1 --coded 20 --folder {}",
    "fifty_rules": "",
    "history_alternatives": "--decisions 1000 --passes 1 --folder {}",
    "history_writing": "--decisions 200 --rounds 1",
    "learning": "rows --rows 8000",
    "pack_shares": "--seeds 1 --customers 5 --days 6",
    "redis_backfill": "--events 100",
    "review_queue": "--open 100 --times 2",
    "row_security": "--decisions 300 --repeats 2",
    "self_search": "--data {}",
    "steering_cost": "--customers 5 --days 4 --rounds 1",
    "velocity_in_memory": "--speed --events 1000 --keys 100",
    "velocity_in_redis": "--customers 10",
}
#: Those that ask PostgreSQL too when they are given a database, or nothing else.
ON_POSTGRES = {"bulk_inserts", "history_alternatives", "review_queue", "row_security"}
ON_REDIS = {"redis_backfill", "velocity_in_redis"}
#: Those that other tests of this folder run.
TESTED = {
    "bare_handler",
    "capacity",
    "evaluate",
    "faults",
    "fuzz_requests",
    "grown_stores",
    "inside",
    "kill",
    "load",
    "memory",
    "name_classes",
    "simulate_webhooks",
    "wrong_clock",
}
#: Those whose smallest run takes a quarter of a minute and more, and why.
LONG = {
    "background_work": "imports, exports and trains in a service",
    "backtests": "imports into a service",
    "browser_study": "people in a browser take their time",
    "burst": "waits until a burst is drained, twice",
    "collect_cost": "960 requests each way",
    "console_crowd": "fills a history and compiles for two services",
    "console_pages": "every page of the console",
    "console_pieces": "every page of the console",
    "history_reading": "every question, in passes",
    "misbehave": "part of neighbour",
    "neighbour": "a service for each way",
    "payment_scores": "needs a file of card payments",
    "request_costs": "a service, and every kind of request",
    "request_instructions": "Valgrind is fifty times slower",
    "request_parts": "rounds of 64 requests for each part",
    "rule_language": "its largest rule sets take long to compile",
    "rule_suggestions": "searches rules for every attack",
    "screening": "builds an index of 300,000 names",
    "screening_aims": "needs lists with many people",
    "screenshots": "the demo, and every page in a browser",
    "sdk_start": "a browser",
    "soak": "minutes",
    "streams": "needs NATS",
    "webhooks": "waits for retries",
}


@pytest.mark.slow
@pytest.mark.timeout(400)
@pytest.mark.parametrize("name", SMALL)
def test_a_benchmark_runs_to_its_end_in_small(name: str, tmp_path: Path) -> None:
    if name == "self_search":
        import_two_names(tmp_path)
    if name in ON_REDIS and shutil.which("redis-server") is None:
        pytest.skip("no redis-server")
    arguments = SMALL[name].format(tmp_path).split()
    if name not in ON_POSTGRES:
        assert run(name, *arguments)
    elif why := absence():
        pytest.skip(why)
    else:
        with database() as url:
            assert run(name, *arguments, url=url)


def test_every_benchmark_is_run_or_says_why_it_is_not() -> None:
    named = [*SMALL, *TESTED, *LONG]
    assert sorted(named) == sorted(scripts())
    assert set(SMALL) >= ON_POSTGRES


def run(name: str, *arguments: str, url: str | None = None) -> str:
    """Run a benchmark, and return what it printed. Asserts that it succeeded."""
    environment = {key: value for key, value in os.environ.items() if not key.startswith("VETTANCE_")}
    if url is not None:
        environment["VETTANCE_DATABASE_URL"] = url
    done = subprocess.run(
        [sys.executable, str(BENCH), name, *arguments],
        env=environment,
        capture_output=True,
        text=True,
        timeout=140,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def import_two_names(folder: Path) -> None:
    """Import a list of two entities into a data folder."""
    file = folder / "list.csv"
    file.write_text("id,name\n1,Rosalind Achterberg\n2,Quillon Vandermeersch\n")
    words = ("watchlist", "import", "--source", "csv", str(file), "--data", str(folder))
    subprocess.run(
        [sys.executable, "-m", "vettance.cli", *words], check=True, capture_output=True, timeout=60
    )
