"""Reviews in bulk on their pages: one asks, a lead signs second, and everybody sees how far it has come."""

import json

import pytest

from tests.console.visitor import Visitor, visitor_of
from tests.live import Caller, Service
from tests.reviews.conftest import held, holding_tenant

BULK = "/console/queue/bulk"
MANY = 55


@pytest.fixture(scope="module")
def desk(service: Service, tmp_path_factory: pytest.TempPathFactory) -> Caller:
    """A tenant of its own with many reviews, half of a dozen of them for a second reason."""
    caller = holding_tenant(service, tmp_path_factory.mktemp("rules"), "Bulk")
    service.cli("tenant", "set", caller.id, "--review-denied", "on", "--json")
    service.wait_for(lambda: denied(caller) in waiting(caller))
    for _ in range(MANY):
        held(caller, 150, customer={"externalId": "many"})
    for _ in range(6):
        denied(caller)
    return caller


@pytest.fixture(scope="module")
def ann(service: Service, desk: Caller) -> Visitor:
    return visitor_of(service, desk.id, "analyst")


@pytest.fixture(scope="module")
def lead(service: Service, desk: Caller) -> Visitor:
    return visitor_of(service, desk.id, "lead")


def denied(caller: Caller) -> str:
    body = {"eventName": "payment.attempt", "metadata": {"amount": 5000, "currency": "EUR"}}
    answer = caller.post("/api/v1/decisions/evaluate", body)
    return str(answer.json["correlationIds"]["eventId"])


def waiting(caller: Caller) -> list[str]:
    return [one["decisionId"] for one in caller.get("/api/v1/reviews?state=open&limit=100").json["data"]]


def audited(service: Service, caller: Caller) -> list[str]:
    lines = service.cli("audit", "export", "--tenant", caller.id).stdout.splitlines()
    return [json.loads(line)["action"] for line in lines]


def ask(visitor: Visitor, **more: str) -> str:
    fields = {"outcome": "approve", "label": "LEGIT", "note": "The rule was wrong.", **more}
    answer = visitor.submit(BULK, BULK, **fields)
    assert answer.status == 303, answer.words
    return answer.location.partition("?")[0]


def test_a_few_by_a_reason_are_settled_at_once(ann: Visitor) -> None:
    shown = ann.get(f"{BULK}?reason=HUGE&choose=1")
    assert "open reviews that gave the reason HUGE" in shown.words
    assert "A lead other than you" not in shown.words
    assert "No open review is chosen" in ann.get(f"{BULK}?reason=HUG&choose=1").words
    answer = ann.submit(BULK, BULK, reason="HUGE", outcome="deny")
    assert answer.location.partition("?")[0] == "/console/queue"
    assert "No open review is chosen" in ann.get(f"{BULK}?reason=HUGE&choose=1").words


def test_many_wait_for_a_lead_and_are_settled(
    service: Service, desk: Caller, ann: Visitor, lead: Visitor
) -> None:
    both = visitor_of(service, desk.id, "analyst", "lead")
    page = ask(both, customer="many")
    own = both.submit(BULK, f"{page}/approve")
    assert (own.status, "Somebody else has to do this" in own.words) == (403, True)
    assert "A lead other than you has to sign" in both.get(page).words
    assert ann.submit(BULK, f"{page}/approve").status == 403
    assert "waits for a second signature" in lead.get("/console/queue").words
    assert "waits for a second signature" in lead.get("/console/").words
    assert "waits for a second signature" not in ann.get("/console/").words
    assert f"{MANY} open reviews that are of the customer many" in lead.get(page).words
    assert lead.submit(page, f"{page}/approve").status == 303
    assert 'hx-trigger="every 2s"' in lead.get(page).text
    service.wait_for(lambda: f"{MANY} of {MANY} settled" in lead.get(page).words, seconds=40)
    service.wait_for(lambda: "Done" in lead.get(page).words)
    settled = desk.get("/api/v1/reviews?state=settled&customer=many&limit=100").json["data"]
    assert {(one["outcome"], one["label"]) for one in settled} == {("approve", "LEGIT")}
    assert "with many others" in ann.get(f"/console/decisions/{settled[0]['decisionId']}").words
    actions = audited(service, desk)
    for one in (f"POST {BULK}", f"POST {BULK}/{{id}}/approve", "reviews settled in bulk"):
        assert actions.count(one) >= 1, one


def test_what_is_asked_for_is_withdrawn_or_refused(
    service: Service, desk: Caller, ann: Visitor, lead: Visitor
) -> None:
    made = [held(desk, 200, customer={"externalId": "again"}) for _ in range(51)]
    first = ask(ann, customer="again")
    marked = ann.submit(
        "/console/queue", "/console/queue/settle", decision=made, outcome="deny", note="All bad."
    )
    second = marked.location.partition("?")[0]
    assert "51 reviews marked in the queue" in lead.get(second).words
    assert lead.submit(BULK, f"{first}/stop").status == 403
    assert ann.submit(BULK, f"{first}/stop").status == 303
    assert lead.submit(BULK, f"{second}/refuse").status == 303
    assert "Withdrawn" in ann.get(first).words
    assert "Refused" in ann.get(second).words
    assert set(made) <= set(waiting(desk))
    assert ann.get(f"{BULK}/blk_{'0' * 32}").status == 404
    other = service.new_tenant("Elsewhere")[0]
    assert visitor_of(service, other, "lead").get(first).status == 404


def test_a_request_says_why_and_its_scores_are_numbers(ann: Visitor) -> None:
    assert ann.submit(BULK, BULK, customer="again", outcome="deny").status == 422
    assert ann.submit(BULK, BULK, customer="again", outcome="perhaps", note="x").status == 400
    assert ann.get(f"{BULK}?minScore=many&choose=1").status == 422
    assert ann.get(f"{BULK}?minScore=90&choose=1").status == 200
