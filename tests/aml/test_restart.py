"""The memory of AML survives a restart: windows and circles go on where they stopped."""

import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.live import Service
from vettance.aml.sql import AmlRecord

EVENTS = "/api/v1/aml/events"


def snapshots(service: Service) -> list[Path]:
    return list((service.data / "memory" / "aml").glob("*.memory"))


def stop_and_keep_the_snapshot(service: Service) -> None:
    assert service.stop() == 0
    assert len(snapshots(service)) == 1


def stop_and_lose_the_snapshot(service: Service) -> None:
    assert service.stop() == 0
    for path in snapshots(service):
        path.unlink()


def die(service: Service) -> None:
    service.stop(signal.SIGKILL)
    assert snapshots(service) == []


def die_after_a_snapshot(service: Service) -> None:
    stop_and_keep_the_snapshot(service)
    service.start()
    between = {"eventName": "transfer.sent", "externalEventId": "between", "customer": {"externalId": "z"}}
    assert service.post(EVENTS, between).json["status"] == "CLEAR"
    service.stop(signal.SIGKILL)
    assert len(snapshots(service)) == 1


@pytest.mark.parametrize(
    "end", [stop_and_keep_the_snapshot, stop_and_lose_the_snapshot, die, die_after_a_snapshot]
)
def test_windows_and_circles_survive_a_restart(own_service: Service, end: Callable[[Service], None]) -> None:
    service = own_service
    service.cli("tenant", "set", service.tenant_id, "--aml", "on", "--json")
    service.wait_for(lambda: service.get("/api/v1/aml/cases").status == 200)
    now = time.time()

    def post(name: str, customer: str, hours: float, **metadata: Any) -> Any:
        body = {
            "eventName": "transfer.sent",
            "externalEventId": name,
            "customer": {"externalId": customer},
            "sourceReportedAt": now - hours * 3600,
            "metadata": metadata,
        }
        return service.post(EVENTS, body).json

    assert post("s1", "split", 9, amount=9500)["status"] == "CLEAR"
    # Told late, but still inside the window.
    assert post("s2", "split", 30, amount=9500)["status"] == "CLEAR"
    assert post("r1", "a", 20, amount=3000, direction="out", counterpartyId="b")["status"] == "CLEAR"
    assert post("r2", "b", 10, amount=2900, direction="out", counterpartyId="c")["status"] == "CLEAR"
    end(service)
    service.start()
    replay = post("s1", "split", 9, amount=9500)
    assert replay["status"] == "CLEAR"
    assert post("s3", "split", 0, amount="9900")["alerts"][0]["ruleId"] == "structuring"
    closed = post("r3", "c", 0, amount=2800, direction="out", counterpartyId="a")
    assert any(alert["ruleId"] == "cycle" for alert in closed["alerts"])
    circle = next(alert for alert in closed["alerts"] if alert["ruleId"] == "cycle")
    assert "a → b → c → a" in circle["summary"]


def test_what_was_received_too_long_ago_to_be_read_makes_late_answers_inexact(own_service: Service) -> None:
    service = own_service
    service.cli("tenant", "set", service.tenant_id, "--aml", "on", "--json")
    service.wait_for(lambda: service.get("/api/v1/aml/cases").status == 200)

    def inexact_of(name: str, days_ago: float) -> int:
        body = {
            "eventName": "transfer.sent",
            "externalEventId": name,
            "customer": {"externalId": "c"},
            "sourceReportedAt": time.time() - days_ago * 86_400,
        }
        assert service.post(EVENTS, body).status == 200
        ((record,),) = service.rows(f"SELECT record FROM aml_event WHERE external_id = '{name}'")
        return msgspec.json.decode(bytes(record), type=AmlRecord).inexact

    assert inexact_of("old", 0) == 0
    service.rows(f"UPDATE aml_event SET received_at_ms = received_at_ms - {410 * 86_400_000}")
    die(service)
    service.start()
    assert inexact_of("late", 399.9) != 0
    assert inexact_of("live", 0) == 0
