"""A real service in a process of its own, on a data folder of its own, driven as its users drive it."""

import json
import os
import re
import signal
import sqlite3
import subprocess
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

from tests.forked_commands import ForkedProcess, run_command, start_command

START_S_MAX = 60.0
#: Which store the services of this run are on: "sqlite", or "postgres" where they are to be tested there too.
ENGINE = os.environ.get("VETTANCE_TEST_ENGINE", "sqlite")


class Answer:
    """An HTTP answer: `status`, `headers` (lower-case names), `body` (bytes) and `json`."""

    def __init__(self, status: int, headers: dict[str, str], body: bytes) -> None:
        self.status = status
        self.headers = headers
        self.body = body

    @property
    def json(self) -> Any:
        return json.loads(self.body)


def run_cli(
    folder: Path, *arguments: str, ok: bool = True, env: dict[str, str] | None = None, data: bool = True
) -> Any:
    """Run `vettance ARGUMENTS --data FOLDER`; returns the parsed output of --json, else the process.

    Without `data`, the command takes no data folder.
    """
    whole = (*arguments, *(("--data", str(folder)) if data else ()))
    done = run_command(whole, {**os.environ, **(env or {})}, timeout_s=180)
    if ok:
        assert done.returncode == 0, done.stderr
        if "--json" in arguments:
            return json.loads(done.stdout)
    return done


def place_store() -> dict[str, str]:
    """Return the settings that put a new store where this run is to have it."""
    if ENGINE != "postgres":
        return {}
    from tests.databases import lasting_database

    return {"VETTANCE_DATABASE_URL": lasting_database()}


def ask_store(data: Path, env: Mapping[str, str], sql: str) -> list[Any]:
    """Ask (or change) the store of a data folder past everything, on whichever engine it is."""
    if "VETTANCE_DATABASE_URL" in env:
        from tests.databases import ask

        return ask(env["VETTANCE_DATABASE_URL"], sql)
    with closing(sqlite3.connect(data / "vettance.db", timeout=10)) as connection, connection:
        return connection.execute(sql).fetchall()


class Service:
    """A running `vettance serve`, driven as its users drive it: by the command line and by HTTP."""

    def __init__(self, data: Path) -> None:
        self.data = data
        self.env: dict[str, str] = {}
        self.arguments: tuple[str, ...] = ()
        self.process: ForkedProcess | subprocess.Popen[str] | None = None
        self.base_url = ""
        self.tenant_id = ""
        self.api_key = ""
        self.log: list[str] = []

    def start(self) -> None:
        """Start the service on a free port and wait until it says that it listens."""
        words = ("serve", "--port", "0", "--data", str(self.data), *self.arguments)
        self.process = start_command(words, {**os.environ, **self.env})
        listening = threading.Event()

        def read() -> None:
            assert self.process is not None
            assert self.process.stderr is not None
            for line in self.process.stderr:
                self.log.append(line)
                if found := re.search(r"listens on (http://\S+)", line):
                    self.base_url = found[1]
                    listening.set()
            listening.set()

        self.base_url = ""
        self._reader = threading.Thread(target=read, daemon=True)
        self._reader.start()
        listening.wait(START_S_MAX)
        assert self.base_url, "the service did not start:\n" + "".join(self.log)
        self.wait_ready()

    def wait_ready(self) -> None:
        """Wait until /readyz says so."""
        until = time.monotonic() + START_S_MAX
        while time.monotonic() < until:
            try:
                if self.call("GET", "/readyz", key=None).status == 200:
                    return
            except OSError:
                pass
            time.sleep(0.02)
        raise AssertionError("the service did not become ready:\n" + "".join(self.log))

    def stop(self, number: int = signal.SIGTERM) -> int:
        """Send a signal and wait for the end; returns the exit code."""
        assert self.process is not None
        self.process.send_signal(number)
        code = self.process.wait(20)
        self._reader.join(10)
        assert self.process.stderr is not None
        self.process.stderr.close()
        self.process = None
        return code

    def cli(self, *arguments: str, ok: bool = True) -> Any:
        """Run a command on the data folder of this service."""
        return run_cli(self.data, *arguments, ok=ok, env=self.env)

    def rows(self, sql: str) -> list[Any]:
        """Ask, or change, the store of this service past everything."""
        return ask_store(self.data, self.env, sql)

    def new_tenant(self, name: str = "Tenant", **limits: int) -> tuple[str, str]:
        """Make a tenant with a key, seen by the running service; returns (tenant id, API key)."""
        tenant_id = self.cli("tenant", "create", name, "--json")["tenantId"]
        chosen = {"throttle": 1_000_000, "quota": 100_000_000, **limits}
        settings = [part for name, value in chosen.items() for part in (f"--{name}", str(value))]
        self.cli("tenant", "set", tenant_id, *settings)
        return tenant_id, self.new_key(tenant_id)

    def new_key(self, tenant_id: str | None = None) -> str:
        """Make one more key of a tenant and wait until the running service takes it."""
        key = self.cli("key", "create", "--tenant", tenant_id or self.tenant_id, "--json")["apiKey"]
        self.wait_for(lambda: self.call("GET", "/api/v1/lists", key=key).status == 200)
        return key

    def wait_for(self, done: Callable[[], bool], seconds: float = 5.0) -> None:
        """Wait until `done()`, at most 5 seconds: what the contract gives a change to be seen everywhere."""
        if self.process is None:
            return
        until = time.monotonic() + seconds
        while not done():
            assert time.monotonic() < until, "not seen in time"
            time.sleep(0.05)

    def call(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        key: str | None = "",
        headers: dict[str, str] | None = None,
    ) -> Answer:
        """Send a request; `key` is the default tenant's when left out, none when None."""
        sent = dict(headers or {})
        if key is not None:
            sent["x-api-key"] = key or self.api_key
        content = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
        if content is not None:
            sent.setdefault("Content-Type", "application/json")
        request = urllib.request.Request(self.base_url + path, content, sent, method=method)
        try:
            with urllib.request.urlopen(request, timeout=20) as answer:
                return Answer(answer.status, _lower(answer.headers), answer.read())
        except urllib.error.HTTPError as error:
            with error:
                return Answer(error.code, _lower(error.headers), error.read())

    def get(self, path: str, **options: Any) -> Answer:
        return self.call("GET", path, **options)

    def post(self, path: str, body: Any = None, **options: Any) -> Answer:
        return self.call("POST", path, body, **options)

    def delete(self, path: str, **options: Any) -> Answer:
        return self.call("DELETE", path, **options)


def _lower(headers: Any) -> dict[str, str]:
    return {name.lower(): value for name, value in headers.items()}


def searchers_of(service: Service) -> set[int]:
    """The processes that search for a service."""
    assert service.process is not None
    tasks = Path(f"/proc/{service.process.pid}/task").glob("*/children")
    children = [int(one) for file in tasks for one in file.read_text().split()]
    return {one for one in children if b"watchlists.worker" in Path(f"/proc/{one}/cmdline").read_bytes()}


def started(data: Path, **env: str) -> Service:
    """Start a service with one tenant of wide limits."""
    service = Service(data)
    service.env = {**place_store(), **env}
    service.tenant_id, service.api_key = service.new_tenant("First")
    service.start()
    return service


class Caller:
    """One tenant's view of a service."""

    def __init__(self, service: Service, tenant_id: str, api_key: str) -> None:
        self.service = service
        self.id = tenant_id
        self.key = api_key

    def get(self, path: str, **options: Any) -> Answer:
        return self.service.call("GET", path, key=self.key, **options)

    def post(self, path: str, body: Any = None, **options: Any) -> Answer:
        return self.service.call("POST", path, body, key=self.key, **options)

    def put(self, path: str, body: Any = None, **options: Any) -> Answer:
        return self.service.call("PUT", path, body, key=self.key, **options)

    def delete(self, path: str, **options: Any) -> Answer:
        return self.service.call("DELETE", path, key=self.key, **options)
