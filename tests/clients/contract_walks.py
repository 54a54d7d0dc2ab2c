"""The walks of the contract test: every endpoint is called so that it succeeds."""

import json
import time
from pathlib import Path
from typing import Any

from clients.generate.endpoints import endpoints_of
from tests.clients.three_clients import AsyncCalls, Given, NodeCalls, Result, SyncCalls
from tests.live import Caller, Service

DOCUMENT = json.loads((Path(__file__).parents[2] / "clients" / "openapi.json").read_bytes())
ENDPOINTS = {one.name: one for one in endpoints_of(DOCUMENT)}
Calls = SyncCalls | AsyncCalls | NodeCalls
AML_RULES = "extends: default\nrules:\n  - {id: structuring, score: 35}\n"


class Walk:
    """Calls endpoint after endpoint, and remembers which ones succeeded."""

    def __init__(self, calls: Calls, service: Service, key: str, done: set[str] | None = None) -> None:
        self.calls = calls
        self.service = service
        self.key = key
        self.done: set[str] = set() if done is None else done

    def by(self, key: str) -> "Walk":
        """The same walk with another key."""
        return Walk(self.calls, self.service, key, self.done)

    def of(self, caller: Caller) -> "Walk":
        """The same walk for another tenant."""
        return Walk(self.calls, caller.service, caller.key, self.done)

    def tried(self, name: str, *path: str, **given: Any) -> Result:
        """Call an endpoint that may refuse."""
        return self.calls.call(self.service.base_url, self.key, ENDPOINTS[name], Given(path, **given))

    def __call__(self, name: str, *path: str, rows: bool = False, **given: Any) -> Any:
        result: Result = self.calls.call(
            self.service.base_url, self.key, ENDPOINTS[name], Given(path, **given), rows=rows
        )
        assert result.error is None, (name, result)
        self.done.add(name)
        return result.value


def walk_fraud(walk: Walk, kind: str) -> None:
    login = {"eventName": "user.login", "customer": {"externalId": f"c-{kind}", "email": "c@example.com"}}
    decided = walk("evaluate", body=login)
    event = decided["correlationIds"]["eventId"]
    assert decided["decision"] == "approve"
    assert walk("get_decision", event)["outputs"]["decision"] == "approve"
    assert walk("get_event", event)["eventName"] == "user.login"
    made = [walk("create_event", body=login, idempotency_key=f"k-{kind}")["eventId"] for _ in range(2)]
    assert made[0] == made[1]
    walk("ingest_event", body=login)
    job = walk("queue_event", body=login)["jobId"]
    assert walk("get_job", job)["jobId"] == job
    assert walk("list_events", query={"limit": 1, "customer": f"c-{kind}"})["hasMore"]
    for name in ("list_events", "list_decisions"):
        rows = walk(name, rows=True, query={"limit": 2, "customer": f"c-{kind}", "from": 0})
        assert len({row["id"] for row in rows}) == len(rows) >= 3
    walk("list_decisions", query={"decision": "approve", "sortOrder": "asc"})
    assert walk("get_decision_stats", query={"from": int(time.time()) - 60})["totals"]["evaluated"] >= 1
    walk("get_event_stats")
    label = {"label": "FALSE_POSITIVE", "notes": "É ✓"}
    assert walk("label_decision", event, body=label)["notes"] == "É ✓"
    walk("label_event", event, body={"label": "LEGIT"})


def walk_lists(walk: Walk, kind: str) -> None:
    entry = walk("add_entry", body={"type": "DEVICE", "value": f"d/{kind}?é", "listType": "block"})
    assert entry["id"] in {row["id"] for row in walk("list_entries", rows=True, query={"limit": 1})}
    walk("list_entries", query={"type": "DEVICE"})
    assert walk("remove_entry", entry["id"])["success"] is True
    walk("add_device_entry", body={"fingerprint": f"d/{kind}?é"})
    walk("remove_device_entry", f"d/{kind}?é")
    walk("add_customer_entry", f"{kind}+x@example.com", body={"listType": "allow"})
    walk("remove_customer_entry", f"{kind}+x@example.com", query={"listType": "allow"})
    walk("add_ip_entry", body={"ip": "2001:db8::/48"})
    walk("remove_ip_entry", "2001:db8::/48")


def walk_webhooks_and_browser(walk: Walk, kind: str) -> None:
    made = walk(
        "create_subscription", body={"url": "https://example.com/h", "eventTypes": ["BLOCKLIST_ENTRY_ADDED"]}
    )
    hook = made["id"]
    assert made["signingSecret"].startswith("whsec_")
    assert hook in {row["id"] for row in walk("list_subscriptions")["subscriptions"]}
    walk("get_subscription", hook)
    walk("test_subscription", hook)
    walk("rotate_secret", hook, body={"phase": "prepare"})
    walk("replay_deliveries", hook)
    walk("add_ip_entry", body={"ip": "192.0.2.200"})
    until = time.monotonic() + 20
    while not (found := walk("list_deliveries", hook)["data"]):
        assert time.monotonic() < until
    walk("list_deliveries", hook, rows=True)
    walk("remove_ip_entry", "192.0.2.200")
    # While the first attempts are not over there is nothing to replay, and the service says so.
    awaited(walk, "replay_delivery", found[0]["id"])
    walk("delete_subscription", hook)
    token = walk("create_token", body={})
    session = {"sessionId": token["sdkSessionId"], "category": "AUTHENTICATION"}
    assert walk("collect", body=session, token=token["token"])["decision"] == "ALLOW"
    batch = {"schemaVersion": "websdk.v1", "batchId": f"b-{kind}", "sdkSessionId": token["sdkSessionId"]}
    batch["sentAt"] = time.time_ns() // 1_000_000
    assert walk("send_signals", body=batch, token=token["token"])["status"] == "queued"


def walk_aml(walk: Walk, kind: str) -> None:
    transfer = {
        "eventName": "transfer.sent",
        "externalEventId": f"tx/{kind} 1",
        "customer": {"externalId": f"a-{kind}"},
        "metadata": {
            "amount": "12500.00",
            "currency": "EUR",
            "direction": "out",
            "counterpartyCountry": "KP",
        },
    }
    assert walk("create_aml_event", body=transfer)["status"] == "ALERTED"
    assert walk("get_aml_event", f"tx/{kind} 1")["externalEventId"] == f"tx/{kind} 1"
    assert walk("list_alerts", rows=True, query={"limit": 1, "customer": f"a-{kind}"})
    walk("list_alerts")
    case = walk("list_cases", query={"customer": f"a-{kind}"})["data"][0]["id"]
    assert [row["id"] for row in walk("list_cases", rows=True, query={"customer": f"a-{kind}"})] == [case]
    walk("get_case", case)
    walk("add_case_note", case, body={"notes": "Looked at."})
    walk("assign_case", case, body={"assignee": "grace", "officer": "grace"})
    assert walk("export_case", case, query={"format": "html"}).lstrip().lower().startswith("<!doctype")
    assert walk("export_case", case)["id"] == case
    done = {"resolution": "TRUE_MATCH", "notes": "Reported.", "officer": "grace"}
    service = walk.service
    service.cli("aml", "set", "--tenant", service.tenant_id, "--four-eyes", "on")
    try:
        service.wait_for(lambda: walk("resolve_case", case, body=done)["state"] == "PENDING")
        assert walk("reject_case", case, body={"notes": "Look again.", "officer": "bo"})["state"] == "OPEN"
    finally:
        service.cli("aml", "set", "--tenant", service.tenant_id, "--four-eyes", "off")
    service.wait_for(lambda: walk("resolve_case", case, body=done)["state"] == "CLOSED")
    assert "sample" in str(walk("list_watchlists")).lower()
    screened = walk("screen", body={"inputName": "Sergey Lavrow", "externalId": f"s-{kind}"})
    assert screened["matches"]
    assert walk("get_screening", screened["id"])["id"] == screened["id"]
    other_face = {"watchlistEntityId": screened["matches"][0]["watchlistEntityId"], "notes": "Another face."}
    walk("dismiss_aml_screening", screened["id"], body={**other_face, "officer": "grace"})


def rule_key(service: Service, tenant: str) -> str:
    """Make a key that may change rules, and wait until the service knows it."""
    scopes = ("--scope", "decide", "--scope", "rules", "--scope", "review", "--scope", "read")
    key: str = service.cli("key", "create", "--tenant", tenant, *scopes, "--json")["apiKey"]
    service.wait_for(lambda: service.get("/api/v1/lists", key=key).status == 200)
    return key


def awaited(walk: Walk, name: str, *path: str, **given: Any) -> Any:
    """Call an endpoint until nothing is in its way any more."""
    until = time.monotonic() + 60
    while (result := walk.tried(name, *path, **given)).error == "Conflict":
        assert time.monotonic() < until, result
        time.sleep(0.2)
    assert result.error is None, (name, result)
    walk.done.add(name)
    return result.value


def cancelled(walk: Walk, create: str, delete: str, name: str, body: dict[str, Any]) -> None:
    """Order jobs until one is cancelled before it ends."""
    for _ in range(50):
        made = awaited(walk, create, body=body)[name]
        if walk.tried(delete, made).error is None:
            walk.done.add(delete)
            return
    raise AssertionError(f"every job ended before {delete}")


def ended(walk: Walk, get: str, job: str) -> Any:
    until = time.monotonic() + 60
    while (found := walk(get, job))["state"] not in ("completed", "failed", "cancelled"):
        assert time.monotonic() < until, found
        time.sleep(0.1)
    assert found["state"] == "completed", found
    return found


def walk_reviews(walk: Walk, decision: str) -> None:
    assert decision in {row["decisionId"] for row in walk("list_reviews", rows=True, query={"limit": 50})}
    walk("list_reviews")
    assert walk("get_review", decision)["state"] == "open"
    assert walk("settle_review", decision, body={"outcome": "approve"})["outcome"] == "approve"


def walk_rule_sets(walk: Walk, prefix: str, document: str, other_key: str) -> None:
    """Check, propose, approve by another key, activate, reject, roll back; `prefix` is `aml_` or empty."""
    one, many = f"{prefix}ruleset", f"list_{prefix}rulesets"
    assert walk(f"create_{one}_check", body={"document": document})["ok"] is True
    walk("get_" + one, "active")
    made = [walk(f"create_{one}", body={"document": document, "note": "Less"})["version"] for _ in range(2)]
    version, other = map(str, made)
    assert walk(f"propose_{one}", version, body={"note": "Less"})["state"] == "proposed"
    assert walk.by(other_key)(f"approve_{one}", version, body={"note": "Seen"})["state"] == "approved"
    assert walk(f"activate_{one}", version)["state"] == "active"
    assert walk(f"reject_{one}", other, body={"note": "No"})["state"] == "rejected"
    assert walk(f"get_{one}", version)["document"] == document
    assert walk(f"create_{one}_rollback", body={})["rollbackOf"] != int(version)
    assert {int(version), int(other)} <= {row["version"] for row in walk(many, rows=True, query={"limit": 2})}
    walk(many)
    assert walk(f"get_{one}_log")["data"]


def walk_snoozes(walk: Walk, prefix: str, rule: str) -> None:
    body = {"ruleId": rule, "type": "CUSTOMER", "value": "embassy", "until": time.time() + 3600}
    made = walk(f"create_{prefix}rule_snooze", body={**body, "reason": "Known."})["id"]
    assert made in {row["id"] for row in walk(f"list_{prefix}rule_snoozes")["data"]}
    walk(f"delete_{prefix}rule_snooze", made)


def walk_features(walk: Walk) -> None:
    before = walk("get_model_features")
    body = {"document": "twice: hour * 2\n", "note": "É ✓", "over": before["version"]}
    assert walk("replace_model_features", body={**body, "dryRun": True})["version"] == before["version"]
    made = walk("replace_model_features", body=body)
    assert made["version"] > before["version"]
    versions = walk("list_model_feature_versions", rows=True)
    assert versions[0]["note"] == "É ✓"
    earlier = walk("get_model_feature_version", str(versions[1]["version"]))
    back = walk("create_model_feature_rollback", body={"to": earlier["version"]})
    assert (back["featureSet"], back["rollbackOf"]) == (before["featureSet"], earlier["version"])


def walk_aml_settings(walk: Walk) -> None:
    assert walk("get_aml_coverage")["events"] > 0
    before = walk("get_aml_settings")
    other = "LIBERAL" if before["profile"] != "LIBERAL" else "BALANCED"
    changed = walk("replace_aml_setting", body={"profile": other})
    assert changed == {**before, "profile": other} == walk("get_aml_settings")
    assert walk("replace_aml_setting", body={"profile": before["profile"]}) == before


def walk_aml_rules(walk: Walk) -> None:
    walk("get_aml_rule_quality")
    order = {"rule": {"id": "structuring", "score": 50}}
    job = awaited(walk, "create_aml_backtest", body=order)["backtestId"]
    ended(walk, "get_aml_backtest", job)
    cancelled(walk, "create_aml_backtest", "delete_aml_backtest", "backtestId", order)


def walk_jobs_of_rules(walk: Walk) -> None:
    walk("get_rule_quality")
    order = {"rule": {"id": "large", "score": 20}}
    ended(walk, "get_backtest", awaited(walk, "create_backtest", body=order)["backtestId"])
    cancelled(walk, "create_backtest", "delete_backtest", "backtestId", order)
    job = awaited(walk, "create_rule_suggestion", body={"kind": "rules"})["suggestionId"]
    ended(walk, "get_rule_suggestion", job)
    cancelled(walk, "create_rule_suggestion", "delete_rule_suggestion", "suggestionId", {"kind": "rules"})
