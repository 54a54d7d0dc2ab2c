"""The process that delivers: what it does while its database is away, and when its parent is gone."""

import os
import secrets
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.databases import absence, ask, url_of

pytestmark = pytest.mark.skipif(absence() is not None, reason="no PostgreSQL here")


class Worker:
    """The process, on a database that is not there yet, and our end of its link."""

    def __init__(self, folder: Path) -> None:
        self.database = f"vettance_test_{secrets.token_hex(6)}"
        self._log = folder / "log"
        self.link, theirs = socket.socketpair()
        with theirs, self._log.open("w") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "vettance.server.deliverer", str(folder), str(theirs.fileno())],
                pass_fds=(theirs.fileno(),),
                env={
                    **os.environ,
                    "VETTANCE_DATABASE_URL": url_of(self.database),
                    "VETTANCE_SECRET": "ab" * 32,
                },
                stderr=log,
            )

    def said(self, what: str) -> int:
        return self._log.read_text().count(what)


@pytest.fixture
def worker(tmp_path: Path) -> Iterator[Worker]:
    worker = Worker(tmp_path)
    with worker.link, worker.process:
        yield worker
        worker.process.kill()
    ask(url_of("postgres"), f"DROP DATABASE IF EXISTS {worker.database} WITH (FORCE)")


def until(holds: Callable[[], bool]) -> None:
    end_s = time.monotonic() + 30
    while not holds():
        assert time.monotonic() < end_s, "not seen in time"
        time.sleep(0.05)


def test_a_worker_waits_for_a_database_that_is_away(worker: Worker) -> None:
    until(lambda: worker.said("store_down") > 0)
    assert worker.said('"event": "store_down"') == 1
    ask(url_of("postgres"), f"CREATE DATABASE {worker.database}")
    # It misses the tables, which nobody has made here, but is through.
    there = f"SELECT count(*) FROM pg_stat_activity WHERE datname = '{worker.database}'"
    until(lambda: ask(url_of("postgres"), there)[0][0] > 0)
    worker.link.close()
    assert worker.process.wait(15) == 0


def test_a_worker_that_waits_for_its_database_ends_with_its_parent(worker: Worker) -> None:
    until(lambda: worker.said("store_down") > 0)
    worker.link.close()
    assert worker.process.wait(15) == 0
