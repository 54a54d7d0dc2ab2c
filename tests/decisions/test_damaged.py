"""Rows and rule sets that this version cannot read: their tenant loses little, the others nothing."""

import time
from pathlib import Path
from typing import Any

import pytest

from tests.live import Caller, Service, started

PROBE = {"eventName": "payment.attempt", "ip": "203.0.113.7", "customer": {"externalId": "c-1"}}
RULES = """
name: counting
rules:
  - {id: often, name: Often, score: 1, mode: shadow, reason: R, explanation: E,
     when: 'count(by=ip, within="1h") >= 0'}
"""
COUNT = 'count(by=ip, within="1h")'


def push(service: Service, tenant: str, folder: Path, text: str = RULES) -> int:
    file = folder / "rules.yaml"
    file.write_text(text)
    return int(service.cli("rules", "push", str(file), "--tenant", tenant, "--yes", "--json")["version"])


def decide(service: Service, key: str = "") -> Any:
    answer = service.post("/api/v1/decisions/evaluate", PROBE, key=key)
    assert answer.status == 200, answer.body
    return answer.json


def features(service: Service, decision: Any, key: str = "") -> Any:
    answer = service.get(f"/api/v1/decisions/{decision['correlationIds']['eventId']}", key=key)
    assert answer.status == 200, answer.body
    return answer.json


def wait_for_version(service: Service, version: int, key: str = "") -> None:
    service.wait_for(lambda: decide(service, key)["ruleVersion"]["version"] == str(version))


def notice(service: Service) -> Any:
    checks = service.get("/readyz", key=None).json["checks"]
    return next(check["reason"] for check in checks if check["name"] == "tenants")


def test_a_damaged_event_is_left_out_of_the_memory_and_everything_goes_on(tmp_path: Path) -> None:
    service = started(tmp_path)
    try:
        wait_for_version(service, push(service, service.tenant_id, tmp_path))
        ids = [decide(service)["correlationIds"]["eventId"] for _ in range(5)]
        before = features(service, decide(service))["inputs"]["features"][COUNT]
        assert service.stop() == 0
        for path in (tmp_path / "memory").glob("*.memory"):
            path.unlink()
        broken = ("'{'", "'{}'", "'[[1]]'", "'\"\\ud800\"'")
        blob = "CAST({} AS BLOB)" if "VETTANCE_DATABASE_URL" not in service.env else "convert_to({}, 'UTF8')"
        for event_id, text in zip(ids, broken, strict=False):
            service.rows(f"UPDATE event SET sent = {blob.format(text)} WHERE id = '{event_id}'")
        service.start()
        after = features(service, decide(service))["inputs"]["features"][COUNT]
        assert after == before + 1 - len(broken)
        skipped = [line for line in service.log if "row_skipped" in line]
        assert len(skipped) == len(broken)
        assert all(any(event_id in line for line in skipped) for event_id in ids[: len(broken)])
        found = service.cli("doctor", "--json", ok=False)
        assert ids[0] in found.stdout
    finally:
        service.stop()


def test_a_damaged_record_is_answered_with_what_is_known_and_says_what_is_not(service: Service) -> None:
    caller = Caller(service, *service.new_tenant("Damaged"))
    blob = "CAST('{}' AS BLOB)" if "VETTANCE_DATABASE_URL" not in service.env else "convert_to('{}', 'UTF8')"
    damages = ("[]", "{", "", "[1]", '["1", 2, 3]', "null")
    for table, column, name in (("decision", "record", "record"), ("event", "sent", "event")):
        for damage in damages:
            answered = caller.post("/api/v1/decisions/evaluate", PROBE).json
            event_id = answered["correlationIds"]["eventId"]
            service.rows(f"UPDATE {table} SET {column} = {blob.format(damage)} WHERE id = '{event_id}'")
            shown = caller.get(f"/api/v1/decisions/{event_id}")
            assert shown.status == 200, (table, damage)
            outputs = shown.json["outputs"]
            assert name in [unknown["name"] for unknown in outputs["unknown"]]
            for member in ("decision", "riskScore", "riskLevel"):
                assert outputs[member] == answered[member]
            assert shown.json["linkedEntities"]["customer"]["id"] == "c-1"
            event = caller.get(f"/api/v1/events/{event_id}")
            assert (event.status, event.json["score"]) == (200, answered["riskScore"])
    for path in ("decisions", "events"):
        page = caller.get(f"/api/v1/{path}?limit=50")
        assert (page.status, page.json["total"]) == (200, 2 * len(damages))


def test_rules_that_no_longer_compile_leave_their_tenant_with_the_last_ones_that_do(tmp_path: Path) -> None:
    service = started(tmp_path)
    try:
        good = push(service, service.tenant_id, tmp_path)
        wait_for_version(service, good)
        other_tenant, other_key = service.new_tenant("Other")
        last = push(service, service.tenant_id, tmp_path, RULES.replace("counting", "counting again"))
        wait_for_version(service, last)
        decided = decide(service)
        assert service.stop() == 0
        spoil = "UPDATE ruleset SET document = 'name: [' WHERE"
        service.rows(f"{spoil} tenant = '{service.tenant_id}' AND version = {last}")
        service.rows(f"{spoil} tenant = '{other_tenant}'")
        service.start()
        now, of_other = decide(service), decide(service, other_key)
        assert (now["ruleVersion"]["version"], now["degraded"]) == (str(good), True)
        assert (of_other["ruleVersion"]["version"], of_other["degraded"]) == ("0", True)
        assert features(service, now)["outputs"]["degraded"] is True
        assert features(service, of_other, other_key)["outputs"]["ruleVersion"] == {"version": "0"}
        shown = features(service, decided)
        assert shown["outputs"]["decision"] == decided["decision"]
        assert shown["outputs"]["rules"] == []
        assert service.get("/api/v1/decisions").status == 200
        assert "2 " in notice(service)
        found = service.cli("doctor", "--json", ok=False)
        assert service.tenant_id in found.stdout
        assert other_tenant in found.stdout
        newest = push(service, service.tenant_id, tmp_path)
        wait_for_version(service, newest)
        assert "degraded" not in decide(service)
        assert "1 " in notice(service)
    finally:
        service.stop()


@pytest.mark.parametrize("table", ["ruleset", "aml_ruleset"])
def test_rules_that_are_spoilt_while_the_service_runs_make_nobody_unready(tmp_path: Path, table: str) -> None:
    service = started(tmp_path)
    try:
        service.cli("tenant", "set", service.tenant_id, "--aml", "on", "--json")
        caller = Caller(service, service.tenant_id, service.api_key)
        service.wait_for(lambda: caller.get("/api/v1/aml/cases").status == 200)
        event = {"eventName": "transfer", "externalEventId": "a", "customer": {"externalId": "c"}}
        assert caller.post("/api/v1/aml/events", event).status == 200
        document = "name: ["
        service.rows(
            f"INSERT INTO {table} (tenant, version, document, digest, note, created_at_ms) "
            f"VALUES ('{service.tenant_id}', 99, '{document}', 'x', '', 0)"
        )
        area = "ruleset" if table == "ruleset" else "aml"
        change = f"('{area}', '{service.tenant_id}', '', 0)"
        service.rows(f"INSERT INTO change (area, tenant, subject, at_ms) VALUES {change}")
        service.wait_for(lambda: notice(service) is not None)
        time.sleep(1.5)
        assert service.get("/readyz", key=None).status == 200
        assert decide(service).get("degraded", False) is (table == "ruleset")
        assert caller.post("/api/v1/aml/events", {**event, "externalEventId": "b"}).status == 200
    finally:
        service.stop()
