"""`vettance decisions replay`: a stored decision, computed again beside the running service."""

from tests.live import Caller, Service

LOGIN = {
    "eventName": "user.login",
    "eventCategory": "AUTHENTICATION",
    "ip": "203.0.113.9",
    "customer": {"externalId": "c-1", "email": "eve@example.com"},
}


def test_a_decision_of_the_service_computed_again_is_identical(service: Service, tenant: Caller) -> None:
    made = tenant.post("/api/v1/decisions/evaluate", LOGIN).json["correlationIds"]["eventId"]
    asked = ("decisions", "replay", made, "--tenant", tenant.id)
    said = service.cli(*asked)
    assert said.stdout.strip() == "Computed again: identical."
    found = service.cli(*asked, "--json")
    assert found == {"identical": True, "differences": [], "unreadable": None}


def test_an_unknown_decision_is_told(service: Service, tenant: Caller) -> None:
    asked = ("decisions", "replay", "evt_" + "0" * 32, "--tenant", tenant.id)
    said = service.cli(*asked, ok=False)
    assert said.returncode == 1
    assert "has no decision" in said.stderr
