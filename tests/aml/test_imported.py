"""Imported events of AML are watched as of their own time, as on a fresh tenant."""

import json
import time
from pathlib import Path
from typing import Any

import pytest

from tests.live import Caller, Service, run_cli

DAY = 86_400
NOW = int(time.time())


@pytest.fixture(scope="module")
def traffic(service: Service, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A month of a small bank, 300 days ago, as the generator writes it."""
    folder = tmp_path_factory.mktemp("money")
    start = time.strftime("%Y-%m-%d", time.gmtime(NOW - 300 * DAY))
    options = ("--customers", "25", "--days", "20", "--cases", "1", "--start", start, "--out", str(folder))
    run_cli(folder, "generate", "aml", *options, data=False)
    return folder / "events.ndjson"


def officer(service: Service, name: str) -> Caller:
    caller = Caller(service, *service.new_tenant(name))
    service.cli("tenant", "set", caller.id, "--aml", "on", "--json")
    service.wait_for(lambda: caller.get("/api/v1/aml/cases").status == 200)
    return caller


def watch_now(caller: Caller, number: int) -> None:
    body = {
        "eventName": "transfer.sent",
        "externalEventId": f"now-{number}",
        "customer": {"externalId": "P13"},
        "metadata": {"accountId": "acc-P13", "amount": 10, "currency": "EUR", "direction": "out"},
    }
    assert caller.post("/api/v1/aml/events", body).status < 300


def records(service: Service, caller: Caller) -> dict[str, Any]:
    rows = service.rows(
        "SELECT external_id, record, occurred_at_ms FROM aml_event WHERE import_id IS NOT NULL "
        f"AND tenant = '{caller.id}' ORDER BY seq"
    )
    moments = [moment for _, _, moment in rows]
    assert moments == sorted(moments)
    return {name: json.loads(record)[1:6] for name, record, _ in rows}


def test_old_events_are_watched_as_on_a_fresh_tenant(service: Service, traffic: Path) -> None:
    lines = len(traffic.read_bytes().splitlines())
    found = []
    for name, before in (("Fresh", 0), ("Running", 3)):
        caller = officer(service, name)
        for number in range(before):
            watch_now(caller, number)
        told = service.cli("import", str(traffic), "--tenant", caller.id, "--wait", "--json")
        assert (told["accepted"], told["refused"]) == (lines, 0)
        found.append(records(service, caller))
        watch_now(caller, 9)
    fresh, running = found
    assert len(fresh) == lines
    assert any(fired for _, _, _, fired, _ in fresh.values())
    assert running == fresh


def test_what_was_imported_or_watched_before_is_watched_once(
    service: Service, traffic: Path, tmp_path: Path
) -> None:
    caller = officer(service, "Once")
    events = [json.loads(line) for line in traffic.read_text().splitlines()[:30]]
    assert caller.post("/api/v1/aml/events", events[3]).status < 300
    assert caller.post("/api/v1/aml/events", {**events[4], "country": "DE"}).status < 300
    file = tmp_path / "some.ndjson"
    file.write_text("".join(json.dumps(event) + "\n" for event in events))
    assert service.cli("import", str(file), "--tenant", caller.id, "--wait", "--json")["accepted"] == 30
    states = service.rows(
        f"SELECT state, COUNT(*) FROM job WHERE tenant = '{caller.id}' GROUP BY state ORDER BY state"
    )
    assert states == [("completed", 29), ("failed", 1)]
    assert len(records(service, caller)) == 28
    assert caller.post("/api/v1/aml/events", events[7]).status < 300
    assert "was imported already" in service.cli("import", str(file), "--tenant", caller.id).stdout


def test_rows_without_a_time_or_an_id_are_refused(service: Service, tmp_path: Path) -> None:
    caller = officer(service, "Refused")
    file = tmp_path / "bad.ndjson"
    rows = [{"eventName": "x", "externalEventId": "1"}, {"eventName": "x", "occurredAt": NOW}]
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    done = service.cli("import", str(file), "--tenant", caller.id, ok=False)
    assert done.returncode == 1
    assert "line 1: occurredAt is required" in done.stdout
    assert "line 2: externalEventId" in done.stdout
    again = service.cli("import", str(file), "--tenant", caller.id, ok=False)
    assert "line 1: occurredAt is required" in again.stdout


def test_a_tenant_without_the_product_is_told_so(service: Service, traffic: Path) -> None:
    caller = Caller(service, *service.new_tenant("Without"))
    done = service.cli("import", str(traffic), "--tenant", caller.id, ok=False)
    assert done.returncode == 1
    assert "--aml on" in done.stderr
