"""The page of a decision says why a rule that matched did not act, and what rules put on lists."""

from pathlib import Path
from typing import Any

import pytest

from tests.console.visitor import Visitor, visitor_of
from tests.live import Caller, Service

RULE = """
  - id: {id}
    name: Rule {id}
    when: event_name == "{id}"
    score: {score}
    reason: HAPPENED
    explanation: It happened.
    {more}
    tests:
      - {{name: fires, event: {{eventName: {id}}}, fires: true}}
      - {{name: rests, event: {{eventName: other}}, fires: false}}"""
RULES = "name: Withheld\nrules:" + "".join(
    RULE.format(id=name, score=score, more=more)
    for name, score, more in (
        ("snoozed", 90, "mode: active"),
        ("shared", 90, "rollout: 1"),
        ("dated", 90, "until: 2020-01-01"),
        ("adds", 10, "adds: {list: block, type: DEVICE, for: 7d}"),
    )
)


@pytest.fixture(scope="module")
def seen(service: Service, tmp_path_factory: pytest.TempPathFactory) -> tuple[Caller, Visitor]:
    caller = Caller(service, *service.new_tenant("Withheld rules"))
    file: Path = tmp_path_factory.mktemp("withheld") / "rules.yaml"
    file.write_text(RULES)
    mine = ("--tenant", caller.id, "--json")
    version = service.cli("rules", "push", str(file), "--yes", *mine)["version"]
    customer = ("--type", "customer", "--value", "c-1", "--until", "2099-01-01")
    service.cli("rules", "snooze", "snoozed", *customer, *mine)

    def is_in_force() -> bool:
        answer = decide(caller, "snoozed")
        return (answer["ruleVersion"]["version"], answer["riskScore"]) == (str(version), 0)

    service.wait_for(is_in_force, seconds=10)
    return caller, visitor_of(service, caller.id, "analyst")


def decide(caller: Caller, name: str, **more: object) -> dict[str, Any]:
    body = {"eventName": name, "customer": {"externalId": "c-1"}, **more}
    answer: dict[str, Any] = caller.post("/api/v1/decisions/evaluate", body).json
    return answer


@pytest.mark.parametrize(
    ("rule", "words"),
    [
        ("snoozed", "Snoozed for this event"),
        ("shared", "Outside of the share of customers it acts for"),
        ("dated", "Matched outside of its dates"),
    ],
)
def test_a_rule_that_did_not_act_says_why(seen: tuple[Caller, Visitor], rule: str, words: str) -> None:
    caller, analyst = seen
    made = decide(caller, rule)["correlationIds"]["eventId"]
    page = analyst.get(f"/console/decisions/{made}")
    assert "No rule acted and no list entry matched." in page.words
    assert "0 of 4 fired" in page.words
    without_effect = page.words.partition("Fired without effect")[2].partition("did not fire")[0]
    assert f"Rule {rule}" in without_effect
    assert words in without_effect


def test_the_page_says_what_rules_put_on_lists(seen: tuple[Caller, Visitor]) -> None:
    caller, analyst = seen
    for device, words in (
        ({"fingerprint": "fp-put"}, "adds put the DEVICE on the block list lst_"),
        (None, "adds put nothing on the block list: the event has no DEVICE"),
    ):
        made = decide(caller, "adds", device=device)["correlationIds"]["eventId"]
        assert words in analyst.get(f"/console/decisions/{made}").words
