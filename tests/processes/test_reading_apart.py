"""Servers whose history is read from a replica: what they answer while it lags, and when it is gone."""

import contextlib
import json
import os
import signal
import socket
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.databases import ask
from tests.db.replica_pair import Pair, pair, paused, replayed
from tests.live import Service
from tests.redis_link.redis_server import PrivateRedis
from tests.servers import programs

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(programs() is None, reason="no programs of PostgreSQL here"),
]

PAYMENT = {
    "eventName": "payment.attempt",
    "eventCategory": "TRANSACTION",
    "customer": {"externalId": "c-1"},
    "metadata": {"amount": 5, "currency": "EUR"},
}


class Deployed(NamedTuple):
    servers: Pair
    one: Service
    other: Service
    metrics: str


@pytest.fixture(scope="module")
def deployed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployed]:
    redis = PrivateRedis()
    redis.start()
    with socket.socket() as free, pair() as servers:
        free.bind(("127.0.0.1", 0))
        metrics = f"127.0.0.1:{free.getsockname()[1]}"
        free.close()
        running = []
        for role in ("all", "web"):
            service = Service(tmp_path_factory.mktemp(role))
            service.env = {
                "VETTANCE_DATABASE_URL": servers.primary,
                "VETTANCE_DATABASE_READ_URL": servers.replica,
                "VETTANCE_DATABASE_READ_LAG": "5",
                "VETTANCE_REDIS_URL": redis.url,
                "VETTANCE_SECRET": "ab" * 32,
                **({"VETTANCE_METRICS": metrics} if role == "web" else {}),
            }
            service.arguments = ("--role", role)
            if running:
                service.tenant_id, service.api_key = running[0].tenant_id, running[0].api_key
            else:
                service.tenant_id, service.api_key = service.new_tenant("First")
            service.start()
            running.append(service)
        yield Deployed(servers, *running, metrics)
        for service in running:
            assert service.stop() == 0
    redis.close()


def notice(service: Service) -> str | None:
    checks = service.get("/readyz", key=None).json["checks"]
    (found,) = (one for one in checks if one["name"] == "replica")
    assert found["ok"]
    return found["reason"]


def total(service: Service) -> int:
    listed = service.get("/api/v1/decisions")
    assert listed.status == 200, listed.body
    counted: int = listed.json["total"]
    stats = service.get("/api/v1/decisions/stats")
    assert stats.status == 200, stats.body
    return counted


def figures(deployed: Deployed) -> dict[str, float]:
    with urllib.request.urlopen(f"http://{deployed.metrics}/metrics", timeout=5) as answer:
        lines = answer.read().decode().splitlines()
    pairs = (line.rsplit(" ", 1) for line in lines if line.startswith("vettance_replica"))
    return {name: float(value) for name, value in pairs}


def evaluate(service: Service) -> Any:
    answer = service.post("/api/v1/decisions/evaluate", PAYMENT)
    assert answer.status == 200, answer.body
    return answer.json["correlationIds"]["eventId"]


def test_lists_lag_like_the_replica_until_somebody_changes_something_anywhere(deployed: Deployed) -> None:
    one, other = deployed.one, deployed.other
    for service in (one, other):
        service.wait_for(lambda service=service: notice(service) is None)  # type: ignore[misc]
    evaluate(one)
    one.wait_for(lambda: total(other) == 1)
    with paused(deployed.servers):
        event = evaluate(one)
        assert total(other) == 1
        assert other.get(f"/api/v1/decisions/{event}").status == 200, "one decision is never late"
        entry = {"type": "email", "value": "eve@example.com", "listType": "block"}
        assert one.post("/api/v1/lists", entry).status == 201
        assert other.get("/api/v1/lists").json["data"]
        assert total(other) == 2, "a change made in another process is seen, and all that came before it"
        assert total(one) == 2
    seen = figures(deployed)
    assert seen['vettance_replica_reads_total{server="replica"}'] > 0
    assert seen['vettance_replica_reads_total{server="primary"}'] > 0
    assert seen["vettance_replica_lag_seconds"] < 5


def test_a_lag_beyond_its_bound_is_said_and_the_primary_read(deployed: Deployed) -> None:
    one, other = deployed.one, deployed.other
    with paused(deployed.servers):
        evaluate(one)
        for service in (one, other):  # Each looks for itself.
            service.wait_for(lambda service=service: "behind" in str(notice(service)), 15)  # type: ignore[misc]
        before = total(one)
        evaluate(one)
        assert total(one) == before + 1
        assert figures(deployed)["vettance_replica_used"] == 0
        assert figures(deployed)["vettance_replica_lag_seconds"] > 5
    other.wait_for(lambda: notice(other) is None)
    assert figures(deployed)["vettance_replica_used"] == 1


async def test_an_export_has_all_that_was_acknowledged_before_it(deployed: Deployed, tmp_path: Path) -> None:
    file = tmp_path / "decisions.ndjson"
    there = total(deployed.one)
    for _ in range(20):
        evaluate(deployed.one)
    deployed.one.cli(
        *("export", "decisions", "--tenant", deployed.one.tenant_id, "--output", str(file), "--json")
    )
    assert len(file.read_text().splitlines()) == there + 20
    with paused(deployed.servers):
        evaluate(deployed.one)
        deployed.one.cli(
            *("export", "decisions", "--tenant", deployed.one.tenant_id, "--output", str(file)),
            *("--json", "--force"),
        )
    assert len(file.read_text().splitlines()) == there + 21
    await replayed(deployed.servers)


def test_the_doctor_tells_of_the_replica(deployed: Deployed) -> None:
    def found() -> str:
        findings = json.loads(deployed.one.cli("doctor", "--json", ok=False).stdout)["findings"]
        (one,) = (one for one in findings if one["check"] == "replica")
        return f"{one['level']}: {one['found']}"

    assert found() == "ok: it is 0.0 s behind, within VETTANCE_DATABASE_READ_LAG (5 s)"
    with paused(deployed.servers):
        evaluate(deployed.one)
        time.sleep(6)
        assert found().startswith("warning: it is ")


def test_without_the_replica_every_read_is_answered(deployed: Deployed) -> None:
    one = deployed.one
    home = deployed.servers.folder / "data" / "postmaster.pid"
    backends = [pid for (pid,) in ask(deployed.servers.replica, "SELECT pid FROM pg_stat_activity")]
    there = total(one)
    os.kill(int(home.read_text().split()[0]), signal.SIGKILL)
    for pid in backends:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    for more in range(1, 30):
        evaluate(one)
        assert total(one) == there + more
        assert deployed.other.get("/api/v1/events").status == 200
    one.wait_for(lambda: notice(one) is not None)
    assert one.get("/readyz", key=None).status == 200
