"""What AML rules are worth: counted behind the log, as a recount of it says, over HTTP and by the command."""

import json
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.aml.watched_money import EVENTS, WatchedMoney, bank_of, records_of, resolve
from tests.live import Caller, Service
from vettance.rules.packs import load_pack

ROOT = "/api/v1/aml/rules/quality"
RULES = """
name: Own
thresholds: {review: 60, block: 100}
rules:
  - id: large
    name: A large sum
    when: amount >= 1000
    score: 70
    reason: LARGE
    explanation: It is large.
    tests:
      - {name: large, event: {eventName: x, metadata: {amount: 5000}}, fires: true}
      - {name: small, event: {eventName: x, metadata: {amount: 10}}, fires: false}
  - id: huge
    name: A huge sum
    when: amount >= 9000
    score: 65
    reason: LARGE
    explanation: It is huge.
    tests:
      - {name: huge, event: {eventName: x, metadata: {amount: 9500}}, fires: true}
      - {name: small, event: {eventName: x, metadata: {amount: 10}}, fires: false}
  - id: silent
    name: Any sum
    mode: shadow
    when: amount >= 1
    score: 65
    reason: ANY
    explanation: It is a sum.
    tests:
      - {name: sum, event: {eventName: x, metadata: {amount: 9500}}, fires: true}
      - {name: none, event: {eventName: x}, fires: false}
"""
_numbers = iter(range(10**6))


def sent(caller: Caller, customer: str, amount: float) -> dict[str, Any]:
    body = {
        "eventName": "transfer.sent",
        "externalEventId": f"quality-{next(_numbers)}",
        "customer": {"externalId": customer},
        "metadata": {"amount": amount, "direction": "out"},
    }
    answer = caller.post(EVENTS, body)
    assert answer.status == 200, answer.body
    found: dict[str, Any] = answer.json
    return found


def close(caller: Caller, customer: str, *, is_true: bool) -> None:
    (case,) = caller.get(f"/api/v1/aml/cases?customer={customer}&state=OPEN").json["data"]
    resolve(caller, case["id"], is_true=is_true)


@pytest.fixture(scope="module")
def judged(service: Service, tmp_path_factory: pytest.TempPathFactory) -> Caller:
    """A bank with rules of its own: four alerts, of which two cases were true matches and one was none."""
    caller = bank_of(service, "Judged sums")
    file = tmp_path_factory.mktemp("rules") / "own.yaml"
    file.write_text(RULES)
    service.cli("aml", "push", str(file), "--tenant", caller.id, "--yes", "--json")
    for customer, amount in (("a", 2000), ("b", 9500), ("c", 2000), ("d", 2000), ("d", 3000), ("e", 5)):
        sent(caller, customer, amount)
    close(caller, "a", is_true=True)
    close(caller, "b", is_true=True)
    close(caller, "c", is_true=False)
    return caller


def rule_of(answer: Any, rule: str) -> Any:
    return next(one for one in answer["rules"] if one["ruleId"] == rule)


def test_each_rule_is_told_what_became_of_its_alerts(judged: Caller) -> None:
    answer = judged.get(ROOT).json
    assert (answer["events"], answer["alerted"], answer["complete"]) == (6, 5, True)
    assert answer["alerts"] == {"raised": 4, "trueMatches": 2, "falsePositives": 1}
    large, huge, silent = (rule_of(answer, one) for one in ("large", "huge", "silent"))
    assert (large["hits"], large["alone"], large["alerted"]) == (5, 4, 5)
    assert large["alerts"] == {"raised": 4, "trueMatches": 2, "falsePositives": 1}
    assert large["precision"]["value"] == pytest.approx(2 / 3, abs=1e-6)
    assert 0.2 < large["precision"]["low"] < large["precision"]["high"] < 0.95
    assert huge["overlap"] == [{"ruleId": "large", "hits": 1, "share": 1.0}]
    assert huge["alerts"]["raised"] == 0
    assert huge["joined"] == {"raised": 1, "trueMatches": 1, "falsePositives": 0}
    assert huge["precision"] is None
    assert (silent["hits"], silent["shadow"]["hits"], silent["mode"]) == (0, 6, "shadow")
    assert large["lastHitAt"] >= answer["from"]
    assert large["costUs"] > 0
    assert large["trend"] == {"hitsBefore": 0, "change": None}


def test_a_span_without_events_is_empty(judged: Caller) -> None:
    answer = judged.get(f"{ROOT}?from=1600000000&to=1600086400").json
    assert (answer["events"], answer["alerts"]["raised"]) == (0, 0)
    hour = int(time.time()) // 3600 * 3600
    assert judged.get(f"{ROOT}?from={hour - 3600}&to={hour + 3600}").json["alerts"]["trueMatches"] == 2


def test_only_who_may_is_told_and_only_of_its_own(judged: Caller, officer: Caller, tenant: Caller) -> None:
    assert officer.get(ROOT).json["error"]["details"]["scope"] == "rules"
    assert tenant.get(ROOT).status == 403
    assert judged.get(f"{ROOT}?from=1700000000&to=1600000000").status == 400
    other = bank_of(judged.service, "Nothing yet")
    answer = other.get(ROOT).json
    assert answer["events"] == 0
    assert "large" not in {one["ruleId"] for one in answer["rules"]}


def test_the_command_says_the_same_here_and_from_afar(
    service: Service, judged: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    over_http = judged.get(ROOT).json
    monkeypatch.setenv("VETTANCE_API_KEY", judged.key)
    from_afar = service.cli("aml", "quality", "--server", service.base_url, "--json")
    here = service.cli("aml", "quality", "--tenant", judged.id, "--json")
    for one in (*over_http["rules"], *here["rules"], *from_afar["rules"]):
        one["costUs"] = None
    assert here["rules"] == over_http["rules"] == from_afar["rules"]
    shown = service.cli("aml", "quality", "--tenant", judged.id).stdout
    assert "4 alerts raised, of which 2 were true matches and 1 false positives." in shown
    assert "67% (21% to 94%)" in shown


def test_counts_are_those_of_a_naive_recount(service: Service, money: WatchedMoney) -> None:
    caller = money.caller
    answer = caller.get(f"{ROOT}?from={int(time.time()) - 60 * 86_400}").json
    pack = load_pack("aml").running
    fired: Counter[str] = Counter()
    alone: Counter[str] = Counter()
    together: Counter[tuple[str, str]] = Counter()
    records = records_of(caller)
    for _, record in records:
        active = [pack[place].id for place in record["fired"] if pack[place].mode == "active"]
        fired.update(active)
        alone.update(active if len(active) == 1 else [])
        together.update((one, other) for one in active for other in active if one != other)
    rows = service.rows(
        f"SELECT rule_id, resolution, figures FROM aml_alert WHERE tenant = '{caller.id}' AND origin = 'rule'"
    )
    raised: Counter[tuple[str, str | None]] = Counter()
    joined: Counter[str] = Counter()
    for rule, resolution, figures in rows:
        raised[rule, resolution] += 1
        joined.update(json.loads(bytes(figures))["withRules"])
    assert answer["events"] == len(records) == len(money.answers)
    assert answer["alerted"] == sum(one["status"] == "ALERTED" for one in money.answers)
    assert answer["alerts"]["raised"] == len(rows) > 20
    for one in answer["rules"]:
        rule = one["ruleId"]
        assert (one["hits"], one["alone"]) == (fired[rule], alone[rule])
        true, false = raised[rule, "TRUE_MATCH"], raised[rule, "FALSE_POSITIVE"]
        told = {"raised": raised[rule, None] + true + false, "trueMatches": true, "falsePositives": false}
        assert one["alerts"] == told
        assert one["joined"]["raised"] == joined[rule]
        for other in one["overlap"]:
            assert other["hits"] == together[rule, other["ruleId"]]
    assert sum(number for (_, said), number in raised.items() if said) > 10


def test_what_was_there_before_is_counted_too(own_service: Service, tmp_path: Path) -> None:
    caller = bank_of(own_service, "Early")
    file = tmp_path / "own.yaml"
    file.write_text(RULES)
    own_service.cli("aml", "push", str(file), "--tenant", caller.id, "--yes", "--json")
    sent(caller, "a", 2000)
    close(caller, "a", is_true=True)
    assert caller.get(ROOT).json["alerts"]["trueMatches"] == 1
    own_service.stop()
    for table in ("aml_rule_count", "aml_rule_counted", "aml_rule_last_hit"):
        own_service.rows(f"DELETE FROM {table}")
    own_service.start()
    answer = caller.get(ROOT).json
    assert (answer["events"], answer["alerts"]) == (1, {"raised": 1, "trueMatches": 1, "falsePositives": 0})
