"""Processes of the service on servers to be broken: who they are, how they are started, and their clocks."""

import contextlib
import json
import os
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from bench import BENCH
from bench.faults.ledger import Ledger, ask
from bench.fixtures.private_stores import Cable, Cables, Postgres, Redis, free_port
from bench.fixtures.processes import MODULES, processes_of
from vettance.demo.drive import PATH
from vettance.demo.launch import LaunchFault, command

#: Which hosts there are, and what runs on each. A crew does everything; else those who answer stand apart.
LAYOUTS: dict[str, dict[str, tuple[str, ...]]] = {
    "crew": {"web": ("--workers", "2")},
    "apart": {"web": ("--workers", "2", "--role", "web"), "worker": ("--role", "worker")},
}
#: What tells a process among those of a host by its command line.
_MARKS = {
    "web": b"--seat",
    "deliverer": MODULES["webhooks"].encode(),
    "indexer": MODULES["indexer"].encode(),
    "worker": b"--role\0worker",
}
START_S_MAX = 300.0
STOP_S_MAX = 30.0
#: By then every process knows of a subscription, as promised; every message is written from then on.
KNOWN_S = 5.0
#: Asked of the customer of every event, and true for none: its count is what the memory is tested by.
RULE = """
  - id: seen-before
    name: Events of this customer
    when: count(by=customer.external_id, within="24h") > 1000000
    score: 5
    reason: SEEN_BEFORE
    explanation: This customer was seen before.
    action: NOTIFY_CUSTOMER
    mode: shadow
"""
_SITE = (
    "import os, pathlib, sys\nsys.path.insert(0, {root!r})\nfrom bench.fixtures.wrong_clock import go_wrong\n"
)
_SITE += "go_wrong(pathlib.Path(os.environ['VETTANCE_TEST_CLOCK']))\n"


class Host:
    """A machine that runs one command and starts it again when it ends; its clock under our hand."""

    def __init__(
        self, name: str, arguments: Sequence[str], folder: Path, environment: dict[str, str]
    ) -> None:
        self.name = name
        self._folder = folder
        self._arguments = arguments
        self._clock = folder / f"clock-{name}"
        self.set_clock(0)
        site = folder / "site"
        site.mkdir(exist_ok=True)
        (site / "sitecustomize.py").write_text(_SITE.format(root=str(BENCH.parent)))
        path = os.pathsep.join(filter(None, (str(site), os.environ.get("PYTHONPATH"))))
        more = {"PYTHONPATH": path, "VETTANCE_TEST_CLOCK": str(self._clock)}
        self._environment = {**os.environ, **environment, **more}
        self.process: subprocess.Popen[bytes] | None = None

    def set_clock(self, ahead_s: float) -> None:
        """Have the clock go so far ahead."""
        # Written over, never anew: the service has mapped this very file.
        with self._clock.open("r+b" if self._clock.exists() else "wb") as file:
            file.write(struct.pack("<q", int(ahead_s * 1e9)))

    def start(self) -> None:
        """Start the command where it does not run."""
        if self.process is not None and self.process.poll() is None:
            return
        with (self._folder / f"{self.name}.log").open("ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "vettance.cli", "serve", *self._arguments],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=self._environment,
            )

    def stop(self) -> int:
        """Wait for a command that got SIGTERM to end; return its exit code."""
        if self.process is None:
            return 0
        try:
            code = self.process.wait(STOP_S_MAX)
        except subprocess.TimeoutExpired:
            for pid in processes_of(self.process.pid):
                with contextlib.suppress(OSError):
                    os.kill(pid, 9)
            code = -1
            self.process.wait(10)
        self.process = None
        return code


class Prepared(NamedTuple):
    """A database to begin with, copied for each deployment: a tenant with its key, and a strict key."""

    database: str
    tenant: str
    api_key: str
    strict_key: str


def prepare(folder: Path, postgres: Postgres) -> Prepared:
    """Make a database with a tenant whose rules count every customer's events, and one with a throttle."""
    postgres.ask("CREATE DATABASE prepared")
    os.environ["VETTANCE_DATABASE_URL"] = postgres.url("prepared")
    tenant, api_key = _tenant(folder, throttle=10_000_000)
    rules = folder / "rules.yaml"
    pack = subprocess.run(
        [sys.executable, "-m", "vettance.cli", "rules", "pack", "fraud"],
        capture_output=True,
        check=True,
        timeout=60,
    )
    rules.write_bytes(pack.stdout + RULE.encode())
    command(folder, "rules", "push", str(rules), "--yes", "--tenant", tenant)
    _, strict_key = _tenant(folder, throttle=300)
    return Prepared("prepared", tenant, api_key, strict_key)


class Deployment:
    """The hosts, on a copy of a database and an emptied Redis, each reached by a cable."""

    def __init__(
        self, folder: Path, postgres: Postgres, redis: Redis, layout: str, prepared: Prepared
    ) -> None:
        folder.mkdir(parents=True)
        self.folder = folder
        self.layout = LAYOUTS[layout]
        self.database = folder.name.replace("-", "_")
        self.tenant, self.api_key, self.strict_key = prepared[1:]
        postgres.ask(f"CREATE DATABASE {self.database} TEMPLATE {prepared.database}")
        redis.command("FLUSHALL")
        self.cables = Cables()
        self._to_postgres, self._to_redis = self.cables.lay(postgres.port), self.cables.lay(redis.port)
        self.port = free_port()
        environment = {
            "VETTANCE_DATABASE_URL": postgres.url(self.database, self._to_postgres.port),
            "VETTANCE_REDIS_URL": f"redis://127.0.0.1:{self._to_redis.port}/0",
        }
        place = ("--data", str(folder), "--port", str(self.port))
        self.hosts = [Host(name, (*what, *place), folder, environment) for name, what in self.layout.items()]
        self._is_kept = threading.Event()
        self._keeper = threading.Thread(target=self._keep, daemon=True)
        self._is_closed = threading.Event()

    def named(self, which: str) -> list[Cable]:
        """Return the cables to `postgres`, to `redis` or to `both`."""
        cables = {"postgres": [self._to_postgres], "redis": [self._to_redis]}
        return cables.get(which, [self._to_postgres, self._to_redis])

    def start(self) -> None:
        """Start every host and wait until events are decided."""
        for host in self.hosts:
            host.start()
        if self._keeper.ident is None:
            self._keeper.start()
        self._is_kept.set()
        until = time.monotonic() + START_S_MAX
        while True:
            with contextlib.suppress(OSError):
                if self.ask("GET", "/readyz")[0] == 200:
                    return
            if time.monotonic() > until:
                raise LaunchFault(f"the service did not come up, see {self.folder}")
            time.sleep(0.02)

    def stop(self) -> list[int]:
        """Tell every host to stop; return their exit codes."""
        self._is_kept.clear()
        for host in self.hosts:
            if host.process is not None:
                host.process.terminate()
        return [host.stop() for host in self.hosts]

    def close(self) -> None:
        """End everything."""
        self._is_closed.set()
        self.stop()
        self.cables.close()

    def _keep(self) -> None:
        """Start again what ends, as the supervisor of a host does."""
        while not self._is_closed.wait(0.1):
            if self._is_kept.is_set():
                for host in self.hosts:
                    if host.process is not None and host.process.poll() is not None:
                        host.start()

    def ask(self, method: str, path: str, body: Any = None, key: str | None = None) -> tuple[int, bytes]:
        """Send one request; raises `OSError` when there is no answer."""
        return ask(("127.0.0.1", self.port), self.api_key, method, path, body, key)

    def subscribe(self, url: str) -> None:
        """Have every message sent to a receiver."""
        body = {"url": url, "eventTypes": ["EVENT_RISK_EVALUATED"]}
        status, answer = self.ask("POST", "/api/v1/webhooks/subscriptions", body)
        if status != 201:
            raise LaunchFault(f"subscribing was answered by {status} {answer!r}")
        time.sleep(KNOWN_S)

    def processes(self, which: str) -> list[int]:
        """Return the processes of a sort: `web`, `worker`, `deliverer` or `indexer`."""
        found = []
        for host in self.hosts:
            if host.process is None:
                continue
            for pid in processes_of(host.process.pid):
                with contextlib.suppress(OSError):
                    if _MARKS[which] in Path(f"/proc/{pid}/cmdline").read_bytes():
                        found.append(pid)
        return found

    def expected(self) -> dict[str, int]:
        """Return how many processes of each sort there are when all is well."""
        return {"web": 2, "deliverer": 1, "indexer": 1, "worker": int("worker" in self.layout)}

    def await_success(self, ledger: Ledger, within_s: float) -> None:
        """Wait until an event is decided."""
        until = time.monotonic() + within_s
        body = {"eventName": "user.login", "customer": {"externalId": "after"}}
        while time.monotonic() < until:
            with contextlib.suppress(OSError):
                status, answer = self.ask("POST", PATH, body)
                ledger.note(str(status), answer)
                if status == 200:
                    ledger.decided(answer)
                    return
            time.sleep(0.02)
        raise LaunchFault(f"the service did not recover, see {self.folder}")

    def count_of(self, customer: str) -> tuple[int | None, str]:
        """Send one more event of a customer; return how many the memory knew before it, and its id.

        The count is None while the memory says that it is being filled, or nothing answers.
        """
        body = {"eventName": "user.login", "customer": {"externalId": customer}}
        status, answer = self.ask("POST", PATH, body)
        if status != 200:
            return None, ""
        told = json.loads(answer)
        event_id = told["correlationIds"]["eventId"]
        status, answer = self.ask("GET", f"/api/v1/decisions/{event_id}")
        if status != 200 or told.get("degraded"):
            return None, event_id
        features = json.loads(answer)["inputs"]["features"]
        (count,) = [
            value for name, value in features.items() if name.startswith("count(by=customer.external_id")
        ]
        return int(count), event_id


def _tenant(folder: Path, throttle: int) -> tuple[str, str]:
    tenant = command(folder, "tenant", "create", "Faults")["tenantId"]
    command(folder, "tenant", "set", tenant, "--throttle", str(throttle), "--quota", "100000000")
    return tenant, command(folder, "key", "create", "--tenant", tenant)["apiKey"]
