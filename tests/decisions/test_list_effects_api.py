"""Rules that put entities on lists: in the commit of the decision, once, and never without acting."""

import json
import time
from pathlib import Path
from typing import Any

import pytest

from tests.live import Caller, Service, run_cli, started
from tests.reviews.conftest import steering
from tests.webhooks.sink import sinking
from vettance.rules.rollout import is_within

EVALUATE = "/api/v1/decisions/evaluate"
RULE = """  - id: {id}
    name: A rule
    when: metadata.amount > {above} and metadata.amount < {below}
    score: {score}
    reason: LARGE
    explanation: The amount is odd.
    mode: {mode}
    adds: {{list: {list}, type: {type}, for: 7d}}
    {more}
    tests:
      - {{name: it fires, event: {{eventName: a, metadata: {{amount: {inside}}}}}, fires: true}}
      - {{name: it does not, event: {{eventName: a, metadata: {{amount: 1}}}}, fires: false}}
"""


def written(name: str, place: int, score: int = 90, **members: str) -> str:
    given = {"mode": "active", "list": "block", "type": "DEVICE", "more": "", **members}
    low = place * 100
    return RULE.format(id=name, above=low, below=low + 100, inside=low + 50, score=score, **given)


RULES = "name: adding\nexplore: {percent: 50, below: 850}\nrules:\n" + "".join(
    (
        written("device", 1),
        written("address", 2, type="IP"),
        written("mail", 3, type="EMAIL"),
        written("shadow", 4, mode="shadow"),
        written("part", 5, more="rollout: 50"),
        written("old", 6, more="until: 2020-01-01"),
        written("friend", 7, 0, list="allow"),
        written("snoozed", 8),
    )
)


def adding_tenant(service: Service, folder: Path) -> Caller:
    file = folder / "adding.yaml"
    file.write_text(RULES)
    caller = steering(Caller(service, *service.new_tenant("Adding")))
    service.cli("rules", "push", str(file), "--tenant", caller.id, "--yes", "--json")
    service.wait_for(lambda: "LARGE" in str(paid(caller, 350, "none")), seconds=10)
    return caller


@pytest.fixture(scope="module")
def adding(service: Service, tmp_path_factory: pytest.TempPathFactory) -> Caller:
    return adding_tenant(service, tmp_path_factory.mktemp("rules"))


#: Customers whom the hold-out does not let through, in and out of the share of a rule.
IN, OUT = (
    next(
        name
        for name in (f"c-{number}" for number in range(500))
        if not is_within(50, "explore", name) and is_within(50, "part", name) is inside
    )
    for inside in (True, False)
)
HELD_OUT = next(name for name in (f"c-{number}" for number in range(500)) if is_within(50, "explore", name))


def paid(
    caller: Caller, amount: float, device: str, customer: str = OUT, email: str | None = None, **more: Any
) -> Any:
    who = {"externalId": customer, "email": email}
    body = {"eventName": "a", "customer": who, "metadata": {"amount": amount}, **more}
    body.setdefault("device", {"fingerprint": device})
    answer = caller.post(EVALUATE, body)
    assert answer.status == 200, answer.body
    return answer.json


def additions(caller: Caller, answer: Any) -> Any:
    event_id = answer["correlationIds"]["eventId"]
    return caller.get(f"/api/v1/decisions/{event_id}").json["outputs"].get("listAdditions")


def entries(caller: Caller) -> dict[str, Any]:
    return {one["value"]: one for one in caller.get("/api/v1/lists?limit=100").json["data"]}


def test_an_acting_rule_blocks_the_device_of_its_event_from_the_next_one_on(adding: Caller) -> None:
    before_s = time.time()
    first = paid(adding, 150, "fp-bot")
    assert (first["decision"], first["riskScore"]) == ("deny", 90)
    (added,) = additions(adding, first)
    entry = entries(adding)["fp-bot"]
    assert added == {
        "ruleId": "device",
        "listType": "block",
        "type": "DEVICE",
        "result": "added",
        "id": entry["id"],
    }
    assert (entry["listType"], entry["reason"]) == ("block", "Rule device: The amount is odd.")
    ends_s = time.mktime(time.strptime(entry["expiresAt"][:19], "%Y-%m-%dT%H:%M:%S")) - time.timezone
    assert abs(ends_s - before_s - 7 * 86_400) < 60
    second = paid(adding, 150, "fp-bot")
    assert "BLOCKLIST_MATCH" in str(second["reasonCodes"])
    assert [one["result"] for one in additions(adding, second)] == ["present"]
    assert len([one for one in entries(adding) if one == "fp-bot"]) == 1


def test_the_audit_log_names_the_rule_the_entry_and_the_event(adding: Caller) -> None:
    answer = paid(adding, 150, "fp-audited")
    rows = run_cli(
        adding.service.data, "audit", "export", "--tenant", adding.id, env=adding.service.env
    ).stdout
    shown = [one for one in map(json.loads, rows.splitlines()) if "fp-audited" in str(one)]
    assert len(shown) == 1, rows
    assert shown[0]["actor"] == "rule device"
    assert answer["correlationIds"]["eventId"] in str(shown[0])


def test_addresses_and_mails_are_listed_too(adding: Caller) -> None:
    paid(adding, 250, "fp-a", ip="203.0.113.9")
    assert entries(adding)["203.0.113.9"]["type"] == "IP"
    paid(adding, 350, "fp-b", email="Bot@Shop.example")
    assert entries(adding)["bot@shop.example"]["type"] == "EMAIL"
    missing = paid(adding, 350, "fp-b")
    assert [one["result"] for one in additions(adding, missing)] == ["absent"]


def test_what_does_not_act_adds_nothing(adding: Caller) -> None:
    assert additions(adding, paid(adding, 450, "fp-shadow")) is None
    assert additions(adding, paid(adding, 550, "fp-out", OUT)) is None
    assert additions(adding, paid(adding, 650, "fp-old")) is None
    held_out = paid(adding, 150, "fp-held-out", HELD_OUT)
    assert held_out["decision"] == "approve"
    assert additions(adding, held_out) is None
    body = {"ruleId": "snoozed", "type": "DEVICE", "value": "fp-kiosk", "until": time.time() + 600}
    assert adding.post("/api/v1/rules/snoozes", body).status == 201
    assert additions(adding, paid(adding, 850, "fp-kiosk")) is None
    none = {"fp-shadow", "fp-out", "fp-old", "fp-held-out", "fp-kiosk"}
    assert none.isdisjoint(entries(adding))
    assert additions(adding, paid(adding, 550, "fp-in", IN)) is not None
    assert additions(adding, paid(adding, 850, "fp-other")) is not None


def test_an_allowed_value_overrules_what_would_block_another_one(adding: Caller) -> None:
    allowed = {"type": "IP", "value": "198.51.100.1", "listType": "allow"}
    assert adding.post("/api/v1/lists", allowed).status == 201
    answer = paid(adding, 150, "fp-of-a-friend", ip="198.51.100.1")
    assert answer["decision"] == "approve"
    assert additions(adding, answer) is None
    friend = paid(adding, 750, "fp-friend")
    assert [one["listType"] for one in additions(adding, friend)] == ["allow"]
    assert paid(adding, 150, "fp-friend")["decision"] == "approve"


def test_a_repeated_request_adds_once(adding: Caller) -> None:
    body = {"eventName": "a", "customer": {"externalId": OUT}, "metadata": {"amount": 150}}
    body |= {"device": {"fingerprint": "fp-repeated"}}
    headers = {"Idempotency-Key": "adds-once"}
    first = adding.post(EVALUATE, body, headers=headers)
    entry = entries(adding)["fp-repeated"]
    assert adding.delete(f"/api/v1/lists/{entry['id']}").status == 200
    again = adding.post(EVALUATE, body, headers=headers)
    assert again.json == first.json
    assert "fp-repeated" not in entries(adding)


def test_subscribers_hear_of_an_addition_once(tmp_path: Path) -> None:
    service = started(tmp_path, VETTANCE_UNSAFE_WEBHOOKS="1")
    with sinking() as sink:
        caller = adding_tenant(service, tmp_path)
        body = {"url": sink.url, "eventTypes": ["BLOCKLIST_ENTRY_ADDED"]}
        assert caller.post("/api/v1/webhooks/subscriptions", body).status == 201
        for device in ("fp-1", "fp-1", "fp-2", "fp-1"):
            paid(caller, 150, device)
        sink.wait(2)
        told = [one["data"] for one in sink.of("BLOCKLIST_ENTRY_ADDED")]
    assert {one["value"] for one in told} == {"fp-1", "fp-2"}
    assert len(told) == 2
    assert {one["reason"] for one in told} == {"Rule device: The amount is odd."}
    assert service.stop() == 0


def test_trying_rules_adds_nothing(adding: Caller, tmp_path: Path) -> None:
    known = set(entries(adding))
    file = tmp_path / "rules.yaml"
    file.write_text(RULES.replace("mode: shadow", "mode: active"))
    assert adding.service.cli("rules", "test", str(file), "--json")
    span = "--from", "2020-01-01", "--to", "2099-01-01"
    adding.service.cli("rules", "backtest", str(file), "--tenant", adding.id, *span, "--json")
    assert set(entries(adding)) == known


def test_an_aml_rule_adds_too(service: Service, tmp_path: Path) -> None:
    tenant_id, key = service.new_tenant("AML adding")
    service.cli("tenant", "set", tenant_id, "--aml", "on", "--json")
    caller = Caller(service, tenant_id, key)
    file = tmp_path / "aml.yaml"
    file.write_text(
        "name: adding\nrules:\n"
        + written("device", 1, family="f").replace("eventName: a,", "eventName: a, externalEventId: e,")
    )
    service.cli("aml", "push", str(file), "--tenant", tenant_id, "--yes", "--json")

    def sent(number: int, device: str) -> Any:
        body = {
            "eventName": "transfer.sent",
            "externalEventId": f"tx-{number}",
            "customer": {"externalId": "c-1"},
            "device": {"fingerprint": device},
            "metadata": {"amount": 150},
        }
        return caller.post("/api/v1/aml/events", body)

    service.wait_for(lambda: sent(int(time.time() * 1000), "fp-try").json.get("alerts"), seconds=10)
    assert sent(1, "fp-aml").status in (200, 201)
    assert entries(caller)["fp-aml"]["reason"] == "Rule device: The amount is odd."
    assert sent(1, "fp-aml").status in (200, 201)
    assert len(entries(caller)) == 2
    service.wait_for(lambda: "BLOCKLIST_MATCH" in str(paid(caller, 1, "fp-aml")))
