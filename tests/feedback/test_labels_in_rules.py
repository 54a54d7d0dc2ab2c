"""Labels in rules, as a tenant meets them: feedback counts from the next decision on, and is never lost."""

import signal
import time
from pathlib import Path
from typing import Any

import pytest

from tests.live import Caller, Service

DAY_S = 86_400
RULES = """\
name: Labels
rules:
{rules}
"""
RULE = """\
  - id: {id}
    name: {id}
    when: {when}
    score: {score}
    reason: {reason}
    explanation: What feedback told of this event's keys is counted here.
    tests:
      - name: labelled
        given: [{{eventName: pay, customer: {{externalId: c}}, ip: 192.0.2.1, at: -1d, label: {label}}}]
        event: {{eventName: pay, customer: {{externalId: c}}, ip: 192.0.2.1}}
        fires: true
      - name: not labelled
        given: [{{eventName: pay, customer: {{externalId: c}}, ip: 192.0.2.1, at: -1d}}]
        event: {{eventName: pay, customer: {{externalId: c}}, ip: 192.0.2.1}}
        fires: false
"""
CONDITIONS = (
    ("frauds", 'frauds(by=customer.key, within="30d") >= 1', 40, "FRAUDS", "FRAUD"),
    ("legits", 'legits(by=ip, within="30d") >= 1', 5, "LEGITS", "LEGIT"),
    ("last-fraud", 'last_fraud(by=ip, within="30d") < 604800', 20, "LAST_FRAUD", "CHARGEBACK"),
)


def push(caller: Caller, folder: Path) -> None:
    rules = "".join(
        RULE.format(id=name, when=when, score=score, reason=reason, label=label)
        for name, when, score, reason, label in CONDITIONS
    )
    file = folder / "rules.yaml"
    file.write_text(RULES.format(rules=rules), "utf-8")
    caller.service.cli("rules", "push", str(file), "--yes", "--tenant", caller.id)
    caller.service.wait_for(lambda: evaluated(caller, customer="nobody")["ruleVersion"]["version"] == "2")


def evaluated(caller: Caller, customer: str = "c1", ip: str = "192.0.2.7", **more: Any) -> Any:
    body = {"eventName": "pay", "customer": {"externalId": customer}, "ip": ip, **more}
    answer = caller.post("/api/v1/decisions/evaluate", body)
    assert answer.status == 200, answer.body
    return answer.json


def label(caller: Caller, decision: Any, said: str) -> None:
    event_id = decision["correlationIds"]["eventId"]
    assert caller.post(f"/api/v1/feedback/event/{event_id}", {"label": said}).status == 201


def codes(decision: Any) -> set[str]:
    return {reason["code"] for reason in decision["reasonCodes"]}


@pytest.fixture(scope="module")
def labelling(service: Service, tmp_path_factory: pytest.TempPathFactory) -> Caller:
    caller = Caller(service, *service.new_tenant("Labels"))
    push(caller, tmp_path_factory.mktemp("rules"))
    return caller


def test_the_next_decision_counts_a_label_of_its_keys(labelling: Caller) -> None:
    first = evaluated(labelling, "a1", "192.0.2.11")
    assert codes(first) == set()
    label(labelling, first, "FRAUD")
    assert codes(evaluated(labelling, "a1", "192.0.2.12")) == {"FRAUDS"}
    assert codes(evaluated(labelling, "a2", "192.0.2.11")) == {"LAST_FRAUD"}
    assert codes(evaluated(labelling, "a2", "192.0.2.12")) == set()


def test_a_corrected_label_no_longer_counts(labelling: Caller) -> None:
    first = evaluated(labelling, "b1", "192.0.2.21")
    label(labelling, first, "FRAUD")
    label(labelling, first, "LEGIT")
    assert codes(evaluated(labelling, "b1", "192.0.2.21")) == {"LEGITS"}
    label(labelling, first, "CHARGEBACK")  # What an investigator found out beats it.
    assert codes(evaluated(labelling, "b1", "192.0.2.21")) == {"LEGITS"}
    label(labelling, first, "TRUE_POSITIVE")
    assert codes(evaluated(labelling, "b1", "192.0.2.21")) == {"FRAUDS", "LAST_FRAUD"}


def test_a_label_said_twice_counts_once_and_a_refund_not_at_all(labelling: Caller) -> None:
    first = evaluated(labelling, "d1", "192.0.2.31")
    for said in ("REFUND", "FRAUD", "FRAUD", "CHARGEBACK"):
        label(labelling, first, said)
    event_id = evaluated(labelling, "d1", "192.0.2.32")["correlationIds"]["eventId"]
    features = labelling.get(f"/api/v1/decisions/{event_id}").json["inputs"]["features"]
    assert features['frauds(by=customer.key, within="30d")'] == 1


def test_labels_count_in_event_time(labelling: Caller) -> None:
    past = time.time() - 100 * DAY_S
    first = evaluated(labelling, "e1", "192.0.2.41", occurredAt=past)
    label(labelling, first, "FRAUD")
    # Other tests of this tenant have brought it to this day, which is when the label was given.
    assert codes(evaluated(labelling, "e1", "192.0.2.42", occurredAt=past + DAY_S)) == set()
    assert codes(evaluated(labelling, "e1", "192.0.2.42")) == {"FRAUDS"}


def test_labels_of_another_tenant_do_not_count(
    labelling: Caller, service: Service, tmp_path_factory: pytest.TempPathFactory
) -> None:
    other = Caller(service, *service.new_tenant("Others"))
    push(other, tmp_path_factory.mktemp("rules"))
    label(other, evaluated(other, "f1"), "FRAUD")
    assert codes(evaluated(other, "f1")) == {"FRAUDS", "LAST_FRAUD"}
    assert codes(evaluated(labelling, "f1")) == set()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_labels_count_after_a_restart(own_service: Service, tmp_path: Path, number: int) -> None:
    caller = Caller(own_service, *own_service.new_tenant("Restarted"))
    push(caller, tmp_path)
    first = evaluated(caller, "g1", "192.0.2.51")
    label(caller, first, "FRAUD")
    label(caller, evaluated(caller, "g2", "192.0.2.52"), "LEGIT")
    own_service.stop(number)
    own_service.start()
    own_service.wait_ready()
    event_id = evaluated(caller, "g1", "192.0.2.52")["correlationIds"]["eventId"]
    features = caller.get(f"/api/v1/decisions/{event_id}").json["inputs"]["features"]
    assert features['frauds(by=customer.key, within="30d")'] == 1
    assert features['legits(by=ip, within="30d")'] == 1
    # A label after the restart, which a snapshot does not have, is brought into the next memory as well.
    label(caller, first, "LEGIT")
    assert codes(evaluated(caller, "g1", "192.0.2.53")) == set()
    own_service.stop(number)
    own_service.start()
    own_service.wait_ready()
    assert codes(evaluated(caller, "g1", "192.0.2.53")) == set()


def test_new_rules_count_the_labels_that_are_there(own_service: Service, tmp_path: Path) -> None:
    caller = Caller(own_service, *own_service.new_tenant("Later"))
    label(caller, evaluated(caller, "h1", "192.0.2.61"), "FRAUD")
    push(caller, tmp_path)
    assert codes(evaluated(caller, "h1", "192.0.2.62")) == {"FRAUDS"}
    # Past events are decided again as they were: none of them had a label before it.
    shown = own_service.cli(
        "rules", "backtest", str(tmp_path / "rules.yaml"), "--tenant", caller.id, "--json"
    )
    fired = {rule["rule"]: rule["fired"] for rule in shown["rules"]}
    assert fired["frauds"] == 1
