"""Every change leaves an entry: all routes that change something, all commands that do, and sign-ins."""

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.live import ENGINE, Caller, Service, run_cli, started
from vettance.web.audited_routes import TRAFFIC

EVENT = {"eventName": "user.login", "customer": {"externalId": "client-7", "email": "ann.smith@example.com"}}


@pytest.fixture(scope="module")
def audited(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    service = started(tmp_path_factory.mktemp("audited"), VETTANCE_UNSAFE_WEBHOOKS="1")
    service.cli("watchlist", "import", "--source", "sample")
    service.cli("tenant", "set", service.tenant_id, "--aml", "on")
    service.wait_for(lambda: service.get("/api/v1/aml/cases").status == 200)
    yield service
    service.stop()


def log_of(service: Service, tenant: str | None = None) -> list[dict[str, Any]]:
    done = service.cli("audit", "export", *(("--tenant", tenant) if tenant else ()))
    return [json.loads(line) for line in done.stdout.splitlines()]


def changing_routes(service: Service) -> set[tuple[str, str]]:
    """The routes that change something, as the OpenAPI document has them."""
    paths = service.get("/openapi.json").json["paths"]
    return {
        (method.upper(), path)
        for path, methods in paths.items()
        for method in methods
        if method in ("post", "put", "patch", "delete") and path not in TRAFFIC
    }


def test_every_route_that_changes_something_leaves_an_entry(audited: Service) -> None:
    caller, root = Caller(audited, audited.tenant_id, audited.api_key), "/api/v1"
    event = caller.post(f"{root}/events", EVENT).json["eventId"]
    done: dict[tuple[str, str], int] = {}

    def act(method: str, template: str, body: Any = None, **parameters: str) -> Any:
        path = template
        for name, value in parameters.items():
            path = path.replace(f"{{{name}}}", value)
        answer = audited.call(method, root + path, body)
        assert answer.status < 300, (method, path, answer.body)
        done[method, root + template] = answer.status
        return answer.json

    made = act("POST", "/lists", {"type": "IP", "value": "192.0.2.7", "listType": "block"})
    act("DELETE", "/lists/{id}", id=made["id"])
    act("POST", "/lists/ip", {"ip": "192.0.2.8"})
    act("DELETE", "/lists/ip/{ip}", ip="192.0.2.8")
    act("POST", "/lists/device", {"fingerprint": "fp-1"})
    act("DELETE", "/lists/device/{fingerprint}", fingerprint="fp-1")
    act("POST", "/lists/customer/{email}", {}, email="x@example.com")
    act("DELETE", "/lists/customer/{email}", email="x@example.com")
    act("POST", "/feedback/decision/{id}", {"label": "FRAUD"}, id=event)
    act("POST", "/feedback/event/{id}", {"label": "LEGIT"}, id=event)
    hooks = "/webhooks/subscriptions"
    hook = act("POST", hooks, {"url": "http://127.0.0.1:9/x", "eventTypes": ["EVENT_RISK_EVALUATED"]})
    act("POST", f"{hooks}/{{id}}/test", {}, id=hook["id"])
    act("POST", f"{hooks}/{{id}}/rotate-secret", {"phase": "prepare"}, id=hook["id"])
    act("POST", f"{hooks}/{{id}}/replay", {"since": "2026-01-01T00:00:00Z"}, id=hook["id"])
    act("DELETE", f"{hooks}/{{id}}", id=hook["id"])
    entries = log_of(audited, audited.tenant_id)
    actions = {entry["action"] for entry in entries}
    assert {f"{method} {path}" for method, path in done} <= actions
    mine = [entry for entry in entries if entry["action"] == "POST /api/v1/lists"]
    assert len(mine) == 1
    assert mine[0]["after"] == {"type": "IP", "value": "192.0.2.7", "listType": "block"}
    assert mine[0]["actor"].startswith("key_")
    assert mine[0]["subject"] == made["id"]
    gone = [entry for entry in entries if entry["action"] == "DELETE /api/v1/lists/{id}"]
    assert [(one["id"], one["value"], one["listType"]) for one in gone[0]["before"]] == [
        (made["id"], "192.0.2.7", "block")
    ]
    assert not actions & {f"POST {path}" for path in TRAFFIC}
    text = json.dumps(entries)
    assert hook["signingSecret"] not in text
    assert audited.api_key not in text
    assert audited.cli("audit", "verify", "--json")["verified"] is True


def test_every_changing_route_is_wrapped(audited: Service) -> None:
    """What the test above does not call needs more set-up; the wrapper is on all of them alike."""
    from vettance.audit.audited_store import AuditedStore
    from vettance.ids import IdSource
    from vettance.web.audited_routes import audited as wrap
    from vettance.web.routing import Call, Route, RouteReply

    async def handler(_call: Call) -> RouteReply:
        return RouteReply(None)

    for method, path in changing_routes(audited):
        route = Route(method, path, handler, "", "")
        [wrapped] = wrap([route], AuditedStore(None, IdSource()))  # type: ignore[arg-type]
        assert wrapped.handler is not handler, path


def test_a_read_leaves_none(audited: Service) -> None:
    before = len(log_of(audited, audited.tenant_id))
    for path in ("lists", "decisions", "events/stats", "webhooks/subscriptions"):
        assert audited.get(f"/api/v1/{path}").status == 200
    # The export before is an entry of its own.
    assert len(log_of(audited, audited.tenant_id)) == before + 1


def test_commands_leave_entries_with_what_was_before(audited: Service) -> None:
    tenant = audited.cli("tenant", "create", "Logged", "--json")["tenantId"]
    audited.cli("tenant", "set", tenant, "--throttle", "77")
    key = audited.cli("key", "create", "--tenant", tenant, "--json")
    other = audited.cli("key", "rotate", key["keyId"], "--json")
    audited.cli("key", "revoke", other["keyId"])
    audited.cli("user", "create", "who@example.com", "--tenant", tenant, "--role", "viewer")
    audited.cli("user", "link", "who@example.com")
    audited.cli("user", "set", "who@example.com", "--disabled", "on")
    entries = log_of(audited, tenant)
    assert [entry["action"] for entry in entries] == [
        *("tenant create", "tenant set", "key create", "key rotate", "key revoke"),
        *("user create", "user link", "user set"),
    ]
    assert all(entry["actor"].startswith("cli:") for entry in entries)
    assert (entries[1]["before"], entries[1]["after"]["throttle"]) == ({"throttle": 300}, 77)
    assert entries[4]["subject"] == other["keyId"]
    assert entries[7]["before"] == {"disabled": False, "roles": {tenant: ["viewer"]}}
    text = json.dumps(entries)
    assert key["apiKey"] not in text
    audited.cli("tenant", "delete", tenant, "--yes")
    assert "tenant delete" in [entry["action"] for entry in log_of(audited) if entry["tenant"] is None]
    assert audited.rows(f"SELECT COUNT(*) FROM audit_entry WHERE tenant = '{tenant}'")[0][0] == 0
    assert audited.cli("audit", "verify", "--json")["verified"] is True


def test_a_customer_is_erased_from_the_log_and_the_chain_holds(audited: Service) -> None:
    caller = Caller(audited, audited.tenant_id, audited.api_key)
    event = caller.post("/api/v1/events", EVENT).json["eventId"]
    said = {"label": "FRAUD", "notes": "Customer client-7, ann.smith@example.com, called."}
    assert caller.post(f"/api/v1/feedback/event/{event}", said).status == 201
    assert "ann.smith@example.com" in json.dumps(log_of(audited))
    audited.cli("customer", "erase", "--tenant", audited.tenant_id, "--external-id", "client-7")
    text = json.dumps(log_of(audited))
    assert "ann.smith" not in text
    assert "client-7" not in text
    assert "customer erase" in text
    assert audited.cli("audit", "verify", "--json")["verified"] is True


@pytest.mark.skipif(ENGINE != "sqlite", reason="in PostgreSQL nobody but a superuser can")
def test_the_command_finds_a_removed_newest_entry(tmp_path: Path) -> None:
    tenant = run_cli(tmp_path, "tenant", "create", "Shop", "--json")["tenantId"]
    run_cli(tmp_path, "tenant", "set", tenant, "--quota", "5")
    assert run_cli(tmp_path, "audit", "verify", "--json") == {"verified": True, "entries": 2}
    with closing(sqlite3.connect(tmp_path / "vettance.db")) as connection, connection:
        connection.execute("DELETE FROM audit_entry WHERE seq = 2")
    failed = run_cli(tmp_path, "audit", "verify", ok=False)
    assert (failed.returncode, failed.stdout, failed.stderr.count("\n")) == (1, "", 1)
    assert "removed" in failed.stderr
