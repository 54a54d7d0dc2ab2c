"""Who watches while servers are being broken: counts, limits, processes, connections, logs."""

import contextlib
import json
import threading
import time
from collections.abc import Sequence
from pathlib import Path

from bench.faults.fault_deployment import Deployment
from bench.faults.ledger import Ledger, ask
from bench.fixtures.private_stores import Postgres, Redis
from vettance.demo.drive import PATH

PROBE_S = 0.04
HAMMER_S = 0.03
THROTTLE, WINDOW_S = 300, 60.0
#: Connections of a process to PostgreSQL: one writes, four read, one is for its duty, one for its place.
CONNECTIONS_EACH = 7
WHOLE_S_MAX = 120.0
_EXPECTED_ERRORS = {"process_ended", "store_writer_ended", "webhook_worker_ended", "indexer_ended"}


class Tally:
    """What is gathered over all rounds of a boot."""

    def __init__(self) -> None:
        self.outcomes: dict[str, str] = {}
        self.later: list[Prober] = []


class Prober(threading.Thread):
    """Sends events of one customer, and later asks the memory how many there were."""

    def __init__(self, deployment: Deployment, ledger: Ledger, customer: str) -> None:
        super().__init__(daemon=True)
        self._deployment, self._ledger, self._customer = deployment, ledger, customer
        self.ending = threading.Event()

    def run(self) -> None:
        body = {"eventName": "user.login", "customer": {"externalId": self._customer}}
        while not self.ending.wait(PROBE_S):
            with contextlib.suppress(OSError):
                status, answer = self._deployment.ask("POST", PATH, body)
                self._ledger.note(str(status), answer)
                if status == 200:
                    self._ledger.decided(answer)

    def settle(self, postgres: Postgres, within_s: float) -> list[str]:
        """Wait until the memory counts what the log holds; nobody else sends events of this customer now."""
        until = time.monotonic() + within_s
        counted, stored = None, 0
        while True:
            with contextlib.suppress(OSError):
                counted, probe = self._deployment.count_of(self._customer)
                # As with every window, what is dated after the event that asks does not count.
                ((stored,),) = postgres.ask(
                    "SELECT count(*) FROM decision AS one JOIN decision AS probe ON probe.id = $3 "
                    "WHERE one.tenant = $1 AND one.customer_id = $2 AND one.id <> $3 "
                    "AND one.occurred_at_ms <= probe.occurred_at_ms",
                    *(self._deployment.tenant, self._customer, probe),
                    database=self._deployment.database,
                )
                if counted == stored:
                    return []
            if time.monotonic() > until:
                return [f"of {self._customer} {counted} events are counted and {stored} stored"]
            time.sleep(0.5)


class Hammer(threading.Thread):
    """Asks more often than its throttle lets it, and notes when it was let in."""

    def __init__(self, deployment: Deployment) -> None:
        super().__init__(daemon=True)
        self._deployment = deployment
        self._admitted: list[list[tuple[float, float]]] = [[]]
        self._ending = threading.Event()

    def run(self) -> None:
        address = ("127.0.0.1", self._deployment.port)
        while not self._ending.wait(HAMMER_S):
            sent_s = time.monotonic()
            with contextlib.suppress(OSError):
                status, _ = ask(address, self._deployment.strict_key, "GET", "/api/v1/lists")
                if status == 200:
                    self._admitted[-1].append((sent_s, time.monotonic()))

    def forgiven(self) -> None:
        """Take note that the counters are about to be lost, after which the minute begins anew."""
        self._admitted.append([])

    def stop(self) -> list[str]:
        """End, and say what was wrong."""
        self._ending.set()
        self.join(30)
        return too_many(self._admitted)


def too_many(stretches: Sequence[Sequence[tuple[float, float]]]) -> list[str]:
    """Look for a request too many: stretches of (sent, answered) of those let in, in seconds, in order."""
    for admitted in stretches:
        for first, later in zip(admitted, admitted[THROTTLE:], strict=False):
            if later[1] - first[0] < WINDOW_S:
                return [f"{THROTTLE + 1} requests were let in within {later[1] - first[0]:.2f} s"]
    return []


def processes_and_connections(deployment: Deployment, postgres: Postgres, redis: Redis) -> list[str]:
    """Wait until every process is there again, and say which is not, or holds too many connections."""
    until = time.monotonic() + WHOLE_S_MAX
    while True:
        there = {sort: len(deployment.processes(sort)) for sort in deployment.expected()}
        if there == deployment.expected():
            break
        if time.monotonic() > until:
            return [f"processes: {there} in place of {deployment.expected()}"]
        time.sleep(0.1)
    count = sum(there.values())
    found = []
    ((held,),) = postgres.ask("SELECT count(*) FROM pg_stat_activity WHERE datname = $1", deployment.database)
    if held > CONNECTIONS_EACH * count:
        found.append(f"{held} connections to PostgreSQL from {count} processes")
    if redis.clients() > 2 * count + 1:
        found.append(f"{redis.clients()} connections to Redis from {count} processes")
    return found


def written_errors(folder: Path) -> list[str]:
    """Return what the processes complained of in their logs, but for the deaths that were our doing."""
    found: dict[str, int] = {}
    for path in folder.glob("*.log"):
        for line in path.read_text("utf-8", "replace").splitlines():
            if "never retrieved" in line or "Traceback" in line:
                found[line[:100]] = found.get(line[:100], 0) + 1
            with contextlib.suppress(ValueError, AttributeError):
                said = json.loads(line)
                if said.get("level") == "error" and said["event"] not in _EXPECTED_ERRORS:
                    kinds = [one["type"] for one in said.get("exception", [])]
                    if "vettance.db.engine.StoreDown" not in kinds:
                        what = " ".join([said["event"], *filter(None, [said.get("work")]), *kinds])
                        found[what] = found.get(what, 0) + 1
    return [f"logged {count} times: {what}" for what, count in found.items()]
