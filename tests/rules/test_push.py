"""A pushed file that builds on the default pack: a running service decides by the whole that it comes to."""

import json
from pathlib import Path
from typing import Any

from tests.live import Caller, Service

OWN = """extends: default
rules:
  - {id: webdriver, score: 90}
  - id: not-served
    name: Country we do not serve
    when: country == "KP"
    score: 90
    reason: COUNTRY_NOT_SERVED
    explanation: We do not serve this country.
    tests:
      - {name: there, event: {eventName: payment, country: KP}, fires: true}
      - {name: elsewhere, event: {eventName: payment, country: GB}, fires: false}
"""


def test_rules_of_ones_own_decide_together_with_those_of_the_pack(service: Service, tmp_path: Path) -> None:
    caller = Caller(service, *service.new_tenant("Extends"))
    file = tmp_path / "rules.yaml"
    file.write_text(OWN, "utf-8")
    told = service.cli("rules", "push", str(file), "--tenant", caller.id, "--json")
    assert (told["version"], told["saved"]) == (2, True)
    assert told["extends"].startswith("default@")

    def decided(**members: Any) -> dict[str, Any]:
        found: dict[str, Any] = caller.post(
            "/api/v1/decisions/evaluate", {"eventName": "login", "customer": {"externalId": "c"}, **members}
        ).json
        return found

    service.wait_for(lambda: decided()["ruleVersion"]["version"] == "2")
    reasons = [reason["code"] for reason in decided(country="KP")["reasonCodes"]]
    assert reasons == ["COUNTRY_NOT_SERVED"]
    driven = decided(metadata={"sdkSignals": {"webdriver": True}})
    assert "AUTOMATED_BROWSER" in [reason["code"] for reason in driven["reasonCodes"]]
    assert driven["riskScore"] >= 90
    assert service.cli("rules", "pull", "--tenant", caller.id).stdout == OWN
    resolved = service.cli("rules", "pull", "--tenant", caller.id, "--resolved", "--json")["document"]
    assert "webdriver" in resolved
    again = service.cli("rules", "push", str(file), "--tenant", caller.id, "--json")
    assert (again["version"], again["saved"], again["changes"]) == (2, False, [])
    aml = tmp_path / "aml.yaml"
    aml.write_text("extends: default\nrules:\n  - {id: large-sum, score: 25}\n", "utf-8")
    assert service.cli("aml", "push", str(aml), "--tenant", caller.id, "--json")["version"] == 1
    assert json.dumps(service.cli("aml", "list", "--tenant", caller.id, "--json")).count("version") == 1
