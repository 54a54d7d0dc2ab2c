"""A crew refuses what one process refuses: in one line, once, and with exit code 1."""

import os
import re
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.databases import SERVER, absence, ask, database, url_of
from tests.forked_commands import run_command
from tests.live import Service, started
from tests.redis_link.redis_server import PrivateRedis

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(absence() is not None, reason="no PostgreSQL here"),
]


@pytest.fixture(scope="module")
def redis() -> Iterator[str]:
    server = PrivateRedis()
    server.start()
    yield server.url
    server.close()


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with database() as made:
        yield made


def refusal(folder: Path, env: dict[str, str], workers: str = "2") -> list[str]:
    """Serve with these settings, and return what was said till it ended by itself, which it must."""
    serve = ("serve", "--port", "0", "--workers", workers, "--data", str(folder))
    done = run_command(serve, {**os.environ, **env}, timeout_s=40)
    assert done.returncode == 1, done.stderr
    return done.stderr.splitlines()


def assert_refused_as_by_one(folder: Path, env: dict[str, str], said: str) -> None:
    lines = refusal(folder, env)
    assert lines == refusal(folder, env, workers="1")
    assert len(lines) == 1
    assert lines[0].startswith("Error: ")
    assert said in lines[0]


def test_a_secret_that_lacks_is_refused(tmp_path: Path, url: str, redis: str) -> None:
    env = {"VETTANCE_DATABASE_URL": url, "VETTANCE_REDIS_URL": redis, "VETTANCE_ENV": "production"}
    assert_refused_as_by_one(tmp_path, env, "VETTANCE_SECRET must be set in production")


def test_a_file_of_addresses_that_is_none_is_refused(tmp_path: Path, url: str, redis: str) -> None:
    (tmp_path / "junk.mmdb").write_bytes(b"junk" * 100)
    env = {"VETTANCE_DATABASE_URL": url, "VETTANCE_REDIS_URL": redis}
    env["VETTANCE_GEOIP_ASN"] = str(tmp_path / "junk.mmdb")
    assert_refused_as_by_one(tmp_path, env, "VETTANCE_GEOIP_ASN: ")


@pytest.mark.parametrize(("host", "said"), [("127.0.0.1", "in use"), ("nohost.invalid", "ame")])
def test_an_address_of_metrics_that_cannot_be_had_is_refused(
    tmp_path: Path, url: str, redis: str, host: str, said: str
) -> None:
    env = {"VETTANCE_DATABASE_URL": url, "VETTANCE_REDIS_URL": redis}
    with socket.create_server(("127.0.0.1", 0)) as other:
        where = f"{host}:{other.getsockname()[1]}"
        env["VETTANCE_METRICS"] = where
        assert_refused_as_by_one(tmp_path, env, f"VETTANCE_METRICS: cannot listen on {where}: ")
        assert said in refusal(tmp_path, env)[0]


def test_a_second_server_on_a_folder_says_what_it_waits_for_and_is_refused(tmp_path: Path) -> None:
    first = started(tmp_path, VETTANCE_DATABASE_URL="")
    arguments = (sys.executable, "-m", "vettance.cli", "serve", "--port", "0", "--data", str(tmp_path))
    environment = {**os.environ, "VETTANCE_DATABASE_URL": ""}
    with subprocess.Popen(arguments, stderr=subprocess.PIPE, text=True, env=environment) as second:
        assert second.stderr is not None
        said = second.stderr.readline()
        assert second.poll() is None, "it says so while it still waits"
        assert "cannot start yet" in said
        assert f"{tmp_path}: another server is using this folder; waiting up to 5 s" in said
        assert second.stderr.read().strip() == f"Error: {tmp_path}: another server is using this folder"
        assert second.wait(30) == 1
    assert (
        first.post("/api/v1/lists", {"type": "IP", "value": "203.0.113.9", "listType": "block"}).status == 201
    )
    assert first.stop() == 0


def test_a_crew_that_waits_for_another_server_says_so_once(tmp_path: Path, redis: str) -> None:
    with database() as url:
        secret = "ab" * 32
        alone = started(tmp_path / "alone", VETTANCE_DATABASE_URL=url, VETTANCE_SECRET=secret)
        crew = Service(tmp_path / "crew")
        crew.env = {"VETTANCE_DATABASE_URL": url, "VETTANCE_REDIS_URL": redis, "VETTANCE_SECRET": secret}
        crew.arguments = ("--workers", "3")
        starting = threading.Thread(target=crew.start)
        starting.start()
        try:
            alone.wait_for(lambda: said(crew, "cannot start yet") > 0, seconds=30)
            # Each child asks for its place over and over.
            sessions = f"SELECT sessions FROM pg_stat_database WHERE datname = '{url.rpartition('/')[2]}'"
            before = ask(SERVER, sessions)[0][0]
            alone.wait_for(lambda: ask(SERVER, sessions)[0][0] >= before + 8, seconds=15)
        finally:
            assert alone.stop() == 0
            starting.join()
        crew.wait_for(lambda: said(crew, "process_ready") == 3, seconds=30)
        assert said(crew, "cannot start yet") == 1
        assert crew.stop() == 0


def test_what_only_the_children_find_out_ends_the_crew_and_is_said_once(tmp_path: Path, redis: str) -> None:
    env = {"VETTANCE_DATABASE_URL": url_of("vettance_test_nowhere"), "VETTANCE_REDIS_URL": redis}
    assert_refused_as_by_one(tmp_path, env, "the database does not exist")


def test_a_child_that_was_ready_is_started_again_whatever_it_refuses_then(tmp_path: Path, redis: str) -> None:
    with database() as url:
        crew = Service(tmp_path)
        crew.env = {"VETTANCE_DATABASE_URL": url, "VETTANCE_REDIS_URL": redis}
        crew.arguments = ("--workers", "2")
        crew.start()
        assert crew.process is not None
        crew.wait_for(lambda: said(crew, "process_ready") == 2, seconds=30)
        name = url.rpartition("/")[2]
        children = subprocess.run(
            ["pgrep", "-P", str(crew.process.pid)], capture_output=True, text=True, check=True
        ).stdout.split()
        ask(url_of("postgres"), f"ALTER DATABASE {name} ALLOW_CONNECTIONS false")
        try:
            os.kill(int(children[0]), 9)
            crew.wait_for(lambda: said(crew, '"code": 1') > 0, seconds=30)
        finally:
            ask(url_of("postgres"), f"ALTER DATABASE {name} ALLOW_CONNECTIONS true")
        crew.wait_for(lambda: said(crew, "process_ready") == 3, seconds=30)
        assert said(crew, "listens on") == 1
        assert crew.stop() == 0


def said(service: Service, what: str) -> int:
    return sum(re.search(what, line) is not None for line in service.log)
