"""Misspelt events show: the statistics and the doctor tell what the newest events lack and carry in vain."""

import json

from tests.live import Service, run_cli


def test_statistics_and_doctor_tell_of_misspelt_members(own_service: Service) -> None:
    for number in range(30):
        body = {
            "eventName": "payment.attempt",
            "eventCategory": "TRANSACTION",
            "customer": {"id": f"c-{number}"},
            "ip": "203.0.113.9",
            "amount": 12.5,
        }
        assert own_service.post("/api/v1/events", body).status == 201
    newest = own_service.get("/api/v1/events/stats").json["newest"]
    assert newest["events"] == 30
    assert newest["without"] == {"customer": 1, "device": 1, "ip": 0, "session": 1, "amount": 1}
    assert {"name": "customer.id", "events": 30, "nearest": "customer.externalId"} in newest["unknownMembers"]
    assert {"name": "amount", "events": 30, "nearest": "metadata.amount"} in newest["unknownMembers"]
    done = run_cli(own_service.data, "doctor", "--json", ok=False, env=own_service.env)
    told = [one["found"] for one in json.loads(done.stdout)["findings"] if one["check"] == "events"]
    assert any("100% without customer" in one for one in told), told
    assert any("customer.id (did you mean customer.externalId?)" in one for one in told), told


def test_the_doctor_tells_of_amounts_of_aml_that_cannot_be_read(own_service: Service) -> None:
    own_service.cli("tenant", "set", own_service.tenant_id, "--aml", "on")
    for number in range(30):
        body = {
            "eventName": "transfer.sent",
            "externalEventId": f"t-{number}",
            "eventCategory": "TRANSACTION",
            "customer": {"externalId": f"c-{number}"},
            "metadata": {"transferAmount": "9.500,00" if number % 2 else "9500.00", "conterpartyId": "x-9"},
        }
        own_service.wait_for(
            lambda body=body: own_service.post("/api/v1/aml/events", body).status in {200, 201}
        )
    done = run_cli(own_service.data, "doctor", "--json", ok=False, env=own_service.env)
    told = [one["found"] for one in json.loads(done.stdout)["findings"] if one["check"] == "AML events"]
    assert any(
        "of the newest 30 events amounts cannot be read: metadata.transferAmount (in 15)" in one
        for one in told
    ), told
    assert any("100% without a currency, 100% without a counterparty" in one for one in told), told
    assert any("metadata.conterpartyId (did you mean metadata.counterpartyId?)" in one for one in told), told
    assert any("none of the newest 30 events has what these rules need: " in one for one in told), told
    covered = own_service.get("/api/v1/aml/coverage").json
    assert (covered["events"], covered["transactions"]) == (30, 30)
    assert covered["without"] == {"currency": 1, "counterparty": 1, "counterpartyCountry": 1}
    assert covered["unreadableAmounts"] == [{"name": "metadata.transferAmount", "events": 15}]
    assert {
        "name": "metadata.conterpartyId",
        "events": 30,
        "nearest": "metadata.counterpartyId",
    } in covered["unknownMembers"]
    silent = {one["ruleId"]: one["names"] for one in covered["silentRules"]}
    assert silent["mispriced-trade"] == ["invoice_worth", "market_worth"]
    assert "large-sum" not in silent


def test_a_tenant_without_events_has_statistics_as_well(own_service: Service) -> None:
    newest = own_service.get("/api/v1/events/stats").json["newest"]
    assert newest == {"events": 0, "without": {}, "unknownMembers": []}
