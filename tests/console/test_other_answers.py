"""The page of a decision says what would have changed it, and computes it again."""

from tests.console.conftest import SignIn
from tests.live import Caller


def test_the_page_says_what_would_have_changed_the_answer_and_computes_it_again(
    people: SignIn, tenant: Caller
) -> None:
    blocked = {"type": "IP", "value": "203.0.113.88", "listType": "block"}
    assert tenant.post("/api/v1/lists", blocked).status == 201
    event = {
        "eventName": "user.login",
        "eventCategory": "AUTHENTICATION",
        "ip": "203.0.113.88",
        "customer": {"externalId": "c-88", "email": "ann@example.com"},
    }
    made = tenant.post("/api/v1/decisions/evaluate", event).json["correlationIds"]["eventId"]
    page = people("analyst").get(f"/console/decisions/{made}")
    assert "What would have changed the answer" in page.text
    assert "no entry of the block list had matched" in page.text
    assert "Computed again" not in page.text
    again = people("viewer").get(f"/console/decisions/{made}?replay=on")
    assert "Computed again: identical." in again.text


def test_what_was_not_known_is_said_so(people: SignIn, tenant: Caller) -> None:
    made = tenant.post("/api/v1/decisions/evaluate", {"eventName": "payment.attempt", "ip": "203.0.113.89"})
    page = people("analyst").get(f"/console/decisions/{made.json['correlationIds']['eventId']}")
    assert "instead of unknown" in page.words
    assert "instead of –" not in page.words
