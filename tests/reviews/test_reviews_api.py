"""The endpoints of reviews, called as a back office calls them."""

import time
from pathlib import Path
from typing import Any

import pytest

from tests.live import Answer, Caller, Service, started
from tests.reviews.conftest import decided, held, holding_tenant
from tests.webhooks.sink import sinking

ROOT = "/api/v1/reviews"
MEMBERS = {
    *("decisionId", "state", "priority", "openedAt", "dueAt", "claimedBy", "claimedUntil", "outcome"),
    *("label", "note", "settledBy", "settledAt"),
}


def settle(caller: Caller, decision: str, **body: Any) -> Answer:
    return caller.post(f"{ROOT}/{decision}/settle", body)


def test_a_held_decision_opens_a_review_that_the_decision_carries(holding: Caller) -> None:
    decision = held(holding)
    review = holding.get(f"{ROOT}/{decision}").json
    assert set(review) == MEMBERS
    assert (review["decisionId"], review["state"], review["outcome"]) == (decision, "open", None)
    assert review["priority"] == 60
    assert holding.get(f"/api/v1/decisions/{decision}").json["review"] == review


@pytest.mark.parametrize("amount", [5, 5000])
def test_other_decisions_open_none(holding: Caller, amount: float) -> None:
    decision = decided(holding, amount)["correlationIds"]["eventId"]  # type: ignore[index]
    assert holding.get(f"{ROOT}/{decision}").status == 404
    assert holding.get(f"/api/v1/decisions/{decision}").json["review"] is None


def test_a_tenant_may_have_denials_reviewed_too(service: Service, tmp_path: Path) -> None:
    caller = holding_tenant(service, tmp_path, "Denials too")
    changes = ("--review-denied", "on", "--review-hours", "2")
    service.cli("tenant", "set", caller.id, *changes, "--json")

    def review() -> Any:
        decision = decided(caller, 5000)["correlationIds"]["eventId"]  # type: ignore[index]
        return caller.get(f"{ROOT}/{decision}")

    service.wait_for(lambda: review().status == 200, seconds=10)
    found = review().json
    assert found["dueAt"][:13] != found["openedAt"][:13]


def test_a_review_is_settled_once(holding: Caller) -> None:
    decision = held(holding)
    done = settle(holding, decision, outcome="deny", label="FRAUD", note="Called the customer.")
    assert done.status == 200, done.body
    found = done.json
    assert (found["state"], found["outcome"], found["label"]) == ("settled", "deny", "FRAUD")
    assert found["note"] == "Called the customer."
    assert found["settledAt"] is not None
    assert found["settledBy"].startswith("key_")
    again = settle(holding, decision, outcome="deny", label="FRAUD", note="Called the customer.")
    assert (again.status, again.json) == (200, found)
    other = settle(holding, decision, outcome="approve")
    assert other.status == 409
    assert other.json["error"]["details"]["reason"] == "already_settled"


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({}, 400),
        ({"outcome": 5}, 400),
        ({"outcome": "maybe"}, 400),
        ({"outcome": "deny", "label": "GUESS"}, 422),
        ({"outcome": "deny", "note": "x" * 5000}, 422),
    ],
)
def test_what_settles_nothing_is_named(holding: Caller, body: dict[str, Any], status: int) -> None:
    decision = held(holding)
    answer = settle(holding, decision, **body)
    assert answer.status == status, answer.body
    assert holding.get(f"{ROOT}/{decision}").json["state"] == "open"


def test_reviews_of_others_are_not_found(service: Service, holding: Caller, tmp_path: Path) -> None:
    other = holding_tenant(service, tmp_path, "Other")
    decision = held(holding)
    for answer in (other.get(f"{ROOT}/{decision}"), settle(other, decision, outcome="deny")):
        assert answer.status == 404
        assert answer.json["error"]["code"] == "NOT_FOUND"
    assert decision not in {one["decisionId"] for one in other.get(ROOT).json["data"]}
    assert other.get(f"{ROOT}/none").status == 404


def test_the_list_goes_by_urgency_page_by_page(service: Service, tmp_path: Path) -> None:
    caller = holding_tenant(service, tmp_path, "Pages")
    for _ in range(30):
        decided(caller, 40)
    large = held(caller, 900, customer={"externalId": "c-large"})
    small = [held(caller, 101) for _ in range(5)]
    first = caller.get(f"{ROOT}?limit=2&state=open").json
    assert first["data"][0]["decisionId"] == large
    assert first["data"][0]["priority"] > 60
    assert (first["hasMore"], first["limit"]) == (True, 2)
    seen, cursor = [one["decisionId"] for one in first["data"]], first["nextCursor"]
    while cursor:
        page = caller.get(f"{ROOT}?limit=2&state=open&cursor={cursor}").json
        seen += [one["decisionId"] for one in page["data"]]
        cursor = page.get("nextCursor")
    assert set(seen) >= {large, *small}
    assert len(seen) == len(set(seen)) == first["total"]
    newest = caller.get(f"{ROOT}?sortBy=age&sortOrder=asc&limit=1").json["data"][0]["decisionId"]
    assert newest == small[-1]
    of_one = caller.get(f"{ROOT}?customer=c-large").json
    assert [one["decisionId"] for one in of_one["data"]] == [large]
    assert caller.get(f"{ROOT}?cursor=nonsense").status == 400
    assert caller.get(f"{ROOT}?state=sleeping").status == 400


def test_a_customer_is_found_by_id_and_by_address_as_decisions_are(service: Service, tmp_path: Path) -> None:
    caller = holding_tenant(service, tmp_path, "Named twice")
    email = "Ann.Smith@Mail.example"
    both = held(caller, customer={"externalId": "c-ann", "email": email})
    alone = held(caller, customer={"email": email})
    other = held(caller, customer={"externalId": "c-bo", "email": "bo@mail.example"})
    for asked in (email, email.lower()):
        found = caller.get(f"{ROOT}?customer={asked}").json
        assert {one["decisionId"] for one in found["data"]} == {both, alone}
        assert found["total"] == caller.get(f"/api/v1/decisions?customer={asked}").json["total"] == 2
        assert caller.get(f"{ROOT}?state=open&customer={asked}&sortBy=age").json["total"] == 2
    assert [one["decisionId"] for one in caller.get(f"{ROOT}?customer=c-ann").json["data"]] == [both]
    assert caller.get(f"{ROOT}?customer=ann.smith").json["total"] == 0
    service.cli("customer", "erase", "--tenant", caller.id, "--external-id", "c-ann", "--json")
    assert caller.get(f"{ROOT}?customer={email}").json["total"] == 0
    assert caller.get(f"{ROOT}/{other}").status == 200


def test_subscribers_hear_of_a_settlement_when_it_cannot_be_taken_back(tmp_path: Path) -> None:
    service = started(tmp_path, VETTANCE_UNSAFE_WEBHOOKS="1")
    with sinking() as sink:
        holding = holding_tenant(service, tmp_path)
        root = "/api/v1/webhooks/subscriptions"
        kinds = ["REVIEW_SETTLED", "EVENT_FEEDBACK_SUBMITTED"]
        assert holding.post(root, {"url": sink.url, "eventTypes": kinds}).status == 201
        labelled, bare = held(holding), held(holding)
        at_s = time.monotonic()
        settled = settle(holding, labelled, outcome="deny", label="FRAUD", note="Sure.").json
        settle(holding, bare, outcome="approve")
        holding.service.wait_for(lambda: len(sink.of("REVIEW_SETTLED")) == 2, seconds=30)
        assert time.monotonic() - at_s >= 9.5
        told = {one["data"]["decisionId"]: one["data"] for one in sink.of("REVIEW_SETTLED")}
        assert told[labelled] == {
            "id": labelled,
            "decisionId": labelled,
            "outcome": "deny",
            "label": "FRAUD",
            "settledAt": settled["settledAt"],
        }
        assert told[bare]["label"] is None
        holding.service.wait_for(lambda: len(sink.of("EVENT_FEEDBACK_SUBMITTED")) == 1, seconds=10)
    (feedback,) = holding.get(f"/api/v1/decisions/{labelled}").json["feedback"]
    assert (feedback["label"], feedback["notes"]) == ("FRAUD", "Sure.")
    assert holding.get(f"/api/v1/decisions/{bare}").json["feedback"] == []
    assert service.stop() == 0


def test_an_erased_customer_has_no_reviews(service: Service, tmp_path: Path) -> None:
    caller = holding_tenant(service, tmp_path, "Erasing")
    gone, stays = (held(caller, customer={"externalId": name}) for name in ("goes", "stays"))
    service.cli("customer", "erase", "--tenant", caller.id, "--external-id", "goes", "--json")
    assert caller.get(f"{ROOT}/{gone}").status == 404
    assert caller.get(f"/api/v1/decisions/{gone}").json["review"] is None
    assert caller.get(f"{ROOT}/{stays}").status == 200
    assert caller.get(ROOT).json["total"] == len(caller.get(ROOT).json["data"])
