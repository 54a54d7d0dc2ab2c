"""The pages of backtests: a change of a rule tried and its flips clicked through, of fraud and AML rules."""

import re
import time

import pytest

from tests.console.visitor import PageAnswer, Visitor, visitor_of
from tests.live import Caller, Service
from tests.reviews.conftest import held, holding_tenant

PATH = "/console/rules"
AML_RULES = """name: One rule
rules:
  - id: far
    name: A transfer to a jurisdiction under a call for action
    when: place.call_for_action and moves_money
    score: 95
    outcome: REVIEW
    reason: FAR
    explanation: It goes far.
    tests:
      - {name: far, fires: true,
        event: {eventName: out, customer: {externalId: c}, metadata: {amount: 9, counterpartyCountry: KP}}}
      - {name: near, fires: false,
        event: {eventName: out, customer: {externalId: c}, metadata: {amount: 9, counterpartyCountry: FR}}}
"""
MONEY = {"amount": 12_000, "currency": "EUR", "direction": "out", "counterpartyCountry": "KP"}


class Trial:
    """A tenant with a held payment and an alerting transfer, and its people."""

    def __init__(self, service: Service, caller: Caller) -> None:
        self.caller = caller
        service.cli("tenant", "set", caller.id, "--aml", "on", "--json")
        service.wait_for(lambda: caller.get("/api/v1/aml/alerts").status == 200, seconds=10)
        file = service.data / "far.yaml"
        file.write_text(AML_RULES)
        service.cli("aml", "push", str(file), "--tenant", caller.id, "--yes", "--json")
        service.wait_for(lambda: self._sent("first") == ["far"], seconds=10)
        self.decision = held(caller, 300)
        assert self._sent("wire/1 <b>") == ["far"]
        self.case = caller.get("/api/v1/aml/alerts").json["data"][0]["caseId"]
        self.editor, self.analyst = (visitor_of(service, caller.id, role) for role in ("editor", "analyst"))

    def _sent(self, name: str) -> list[str]:
        """Send a transfer of a customer of its own; returns the rules of the alerts that it is behind."""
        body = {
            "eventName": "transfer.sent",
            "externalEventId": name,
            "customer": {"externalId": f"c-{time.monotonic_ns()}"},
            "metadata": {**MONEY, "counterpartyId": "x-1"},
        }
        found = self.caller.post("/api/v1/aml/events", body).json.get("alerts", [])
        return [one["ruleId"] for one in found]


@pytest.fixture(scope="module")
def trial(service: Service, tmp_path_factory: pytest.TempPathFactory) -> Trial:
    return Trial(service, holding_tenant(service, tmp_path_factory.mktemp("trial"), "Trial"))


def tried(visitor: Visitor, path: str, rule: str, **members: str) -> PageAnswer:
    """Try a change of a rule and return the page of the backtest at its end."""
    made = visitor.submit(f"{path}/{rule}", f"{path}/changes", rule=rule, then="backtest", **members)
    assert made.status == 303, made.words
    page = made.location.partition("?")[0]
    until = time.monotonic() + 90
    while re.search(r">(Waits for its turn|Running)<", (shown := visitor.get(page)).text):
        assert time.monotonic() < until
        time.sleep(0.3)
    assert "Completed" in shown.words, shown.words
    return shown


def test_a_flipped_decision_is_a_click_away_with_before_and_after(trial: Trial) -> None:
    shown = tried(
        trial.editor, PATH, "large", score="1", mode="active", rollout="100", when="metadata.amount > 100"
    )
    assert f'href="/console/decisions/{trial.decision}"' in shown.text
    row = shown.text.partition(f"/console/decisions/{trial.decision}")[2].partition("</tr>")[0]
    assert (">Review<" in row.replace("</svg>", ">"), ">Approve<" in row.replace("</svg>", ">")) == (
        True,
        True,
    )
    assert "score 60" in row
    assert "~ large score 60 → 1" in shown.words
    listed = trial.analyst.get(f"{PATH}/backtests")
    found = re.search(rf'href="({PATH}/backtests/bkt_\w+)"', listed.text)
    assert found is not None
    assert trial.analyst.get(found[1]).status == 200
    assert trial.analyst.get(f"{found[1]}?flip=review-approve").text.count("data-row") >= 1
    assert trial.analyst.get(f"{found[1]}?flip=deny-approve").text.count("data-row") == 0
    aml = found[1].replace(f"{PATH}/", f"{PATH}/aml/")
    assert trial.analyst.get(aml).status == 404
    assert found[1] not in trial.analyst.get(f"{PATH}/aml/backtests").text
    assert trial.editor.submit(found[1], f"{found[1]}/cancel").status in (409, 422)


def test_a_flipped_event_leads_to_its_alert_and_case(trial: Trial) -> None:
    rule, path = "far", f"{PATH}/aml"
    shown = tried(trial.editor, path, rule, mode="off")
    assert "/console/aml/events/" not in shown.text  # Editors do not see alerts.
    found = re.search(rf"{path}/backtests/bkt_\w+", trial.editor.get(f"{path}/backtests").text)
    assert found is not None
    page = trial.analyst.get(found[0])
    event = re.search(r'href="(/console/aml/events/wire[^"]+)"', page.text)
    assert event is not None
    row = page.text.partition(event[1])[2].partition("</tr>")[0]
    assert f'href="{path}/{rule}"' in row
    shown = trial.analyst.get(event[1])
    assert shown.status == 200
    assert f'href="/console/aml/cases/{trial.case}"' in shown.text
    assert "wire/1 &lt;b&gt;" in shown.text
    assert "12,000" in shown.words
    assert trial.analyst.get("/console/aml/events/none").status == 404


def test_a_version_is_tried_and_what_is_wrong_is_said(trial: Trial) -> None:
    page = f"{PATH}/backtests"
    refused = trial.editor.submit(page, page, version="9999", days="30")
    assert refused.status == 422
    assert re.search(r'name="version"[^>]*value="9999"[^>]*aria-invalid="true"', refused.text)
    assert "Must be the number of a version of these rules" in refused.words
    refused = trial.editor.submit(page, page, version="2", days="30", sample="many")
    assert refused.status in (400, 422)
    assert re.search(r'name="sample"[^>]*value="many"[^>]*aria-invalid="true"', refused.text)
    assert trial.analyst.submit("/console/profile", page, version="1").status == 403
    made = trial.editor.submit(page, page, version="2", days="", sample="50")
    assert made.status == 303, made.words
    shown = trial.editor.get(made.location)
    assert "Version 2" in shown.words
    assert "50.0 % of them" in shown.words
    # All that changes when it ends is in the part that asks for itself, the button that cancels it as well.
    live = shown.text.partition('<div id="backtest"')[2]
    assert "<h1>Version 2" in live
    place = made.location.partition("?")[0]
    cancelled = trial.editor.submit(place, f"{place}/cancel")
    # It may have been faster than us.
    assert cancelled.status in (303, 409)
    trial.editor.get(place)
    trial.caller.service.wait_for(lambda: "Running" not in trial.editor.get(place).words, seconds=60)
    ended = trial.editor.get(place)
    assert "/cancel" not in ended.text
    assert "Cancelled" in ended.words or "Completed" in ended.words
    assert ("it has no result" in ended.words) == ("Cancelled" in ended.words)
