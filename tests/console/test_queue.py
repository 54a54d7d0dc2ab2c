"""The queue and the review on the page of a decision: taking, settling, undoing, many at once, checks."""

import re
import time
from pathlib import Path

import pytest

from tests.console.visitor import Visitor, visitor_of
from tests.live import Caller, Service
from tests.reviews.conftest import decided, held, holding_tenant

QUEUE = "/console/queue"
LISTED = "EMAIL blind@mail.example"


@pytest.fixture
def desk(service: Service, tmp_path: Path) -> Caller:
    """A tenant of its own whose payments above 100 are held."""
    caller = holding_tenant(service, tmp_path)
    for one in caller.get("/api/v1/reviews?state=open").json["data"]:
        caller.post(f"/api/v1/reviews/{one['decisionId']}/settle", {"outcome": "approve"})
    return caller


def next_of(visitor: Visitor) -> str:
    answer = visitor.submit(QUEUE, f"{QUEUE}/next")
    assert answer.status == 303, answer.words
    return answer.location


def review(desk: Caller, decision: str) -> dict[str, object]:
    found: dict[str, object] = desk.get(f"/api/v1/reviews/{decision}").json
    return found


def test_an_analyst_takes_settles_and_takes_back(service: Service, desk: Caller) -> None:
    first, second = held(desk, 900), held(desk, 150)
    ann, bo = visitor_of(service, desk.id, "analyst"), visitor_of(service, desk.id, "analyst", "viewer")
    assert "2" in ann.get(QUEUE).words
    place = next_of(ann)
    assert place == f"/console/decisions/{first}"
    assert next_of(bo) == f"/console/decisions/{second}"
    page = ann.get(place)
    assert 'data-key="a"' in page.text
    assert 'data-key="d"' in page.text
    assert 'data-key="a"' not in bo.get(place).text
    refused = bo.submit(f"/console/decisions/{second}", f"{place}/settle", outcome="approve")
    assert refused.status == 409
    done = ann.submit(place, f"{place}/settle", outcome="deny", label="FRAUD", note="Called.")
    assert (done.status, f"settled={first}" in done.location) == (303, True)
    assert review(desk, first)["state"] == "settled"
    assert 'data-key="u"' in ann.get(done.location).text
    assert 'data-key="u"' not in bo.get(done.location).text
    foreign = bo.submit(QUEUE, f"{place}/undo")
    assert (foreign.status, "Somebody else has to do this" in foreign.words) == (403, True)
    undone = ann.submit(done.location, f"{place}/undo")
    assert undone.status == 303
    late = ann.submit(QUEUE, f"{place}/undo")
    assert (late.status, "faster" in late.words) == (409, False)
    # The page of a refusal leads back to the one whose form it was.
    assert f'<a class="button primary" href="{place}">' in late.text
    csrf = ann.get(QUEUE).csrf
    came = {"Referer": f"{ann.base_url}{place}?settled={first}&notice=taken"}
    late = ann.post(f"/console/decisions/{second}/undo", {"csrf": csrf}, **came)
    assert f'href="{place}?settled={first}"' in late.text
    away = ann.post(
        f"/console/decisions/{second}/undo", {"csrf": csrf}, Referer="https://elsewhere.example//x"
    )
    assert f'<a class="button primary" href="/console/decisions/{second}">' in away.text
    assert (review(desk, first)["state"], review(desk, first)["label"]) == ("claimed", None)


def test_a_settlement_puts_values_on_lists_and_leads_to_the_next(service: Service, desk: Caller) -> None:
    event = {"customer": {"externalId": "c-1", "email": "bad@mail.example"}, "ip": "198.51.100.23"}
    first, second = held(desk, 900, **event), held(desk, 150)
    ann = visitor_of(service, desk.id, "analyst")
    place = next_of(ann)
    page = ann.get(place)
    assert "EMAIL bad@mail.example" in page.text
    entries = ["EMAIL bad@mail.example", "IP 198.51.100.23"]
    fields = {"outcome": "deny", "next-one": "1", "entry": entries, "listType": "block", "expiry": "7d"}
    done = ann.submit(place, f"{place}/settle", **fields)
    assert done.location.startswith(f"/console/decisions/{second}?")
    listed = {one["value"] for one in desk.get("/api/v1/lists").json["data"]}
    assert listed == {"bad@mail.example", "198.51.100.23"}
    assert review(desk, first)["outcome"] == "deny"
    ann.submit(done.location, f"{place}/undo")
    assert desk.get("/api/v1/lists").json["data"] == []


def test_a_lead_takes_from_others_and_an_analyst_does_not(service: Service, desk: Caller) -> None:
    decision = held(desk)
    place = f"/console/decisions/{decision}"
    ann, lead = visitor_of(service, desk.id, "analyst"), visitor_of(service, desk.id, "lead")
    other = visitor_of(service, desk.id, "analyst", "viewer")
    next_of(ann)
    assert other.submit(place, f"{place}/claim", taking="1").status == 409
    assert "Take it from" in lead.get(place).words
    assert lead.submit(place, f"{place}/claim", taking="1").status == 303
    assert lead.submit(place, f"{place}/settle", outcome="approve").status == 303


def test_a_lead_assigns_reviews_and_next_begins_with_them(service: Service, desk: Caller) -> None:
    first, second, third = held(desk, 900), held(desk, 500), held(desk, 150)
    ann, lead = visitor_of(service, desk.id, "analyst"), visitor_of(service, desk.id, "lead")
    page = lead.get(QUEUE)
    them = re.findall(r'<option value="(usr_[0-9a-f]+)">([^<]+)', page.text)
    [(to, _)] = [one for one in them if one[1].startswith("analyst@")]
    assert "Assign" not in ann.get(QUEUE).words
    done = lead.submit(QUEUE, f"{QUEUE}/assign", decision=[second, third], assignee=to)
    assert done.status == 303
    assert review(desk, third)["claimedUntil"] == review(desk, third)["dueAt"]
    mine = ann.get(f"{QUEUE}?view=mine").text
    assert (second in mine, third in mine, first in mine) == (True, True, False)
    assert next_of(ann) == f"/console/decisions/{second}"
    settled = ann.submit(QUEUE, f"/console/decisions/{second}/settle", **{"outcome": "deny", "next-one": "1"})
    assert settled.location.startswith(f"/console/decisions/{third}?")
    assert ann.submit(QUEUE, f"/console/decisions/{third}/claim").status == 303
    assert review(desk, third)["claimedUntil"] == review(desk, third)["dueAt"]
    assert ann.submit(QUEUE, f"/console/decisions/{third}/settle", outcome="deny").status == 303
    assert next_of(ann) == f"/console/decisions/{first}"
    for wrong in ({"assignee": "usr_" + "0" * 32, "decision": first}, {"assignee": to}):
        assert lead.submit(QUEUE, f"{QUEUE}/assign", **wrong).status == 422
    assert lead.submit(QUEUE, f"{QUEUE}/assign", decision=third, assignee=to).status == 409


def test_many_are_settled_at_once_up_to_a_bound(service: Service, desk: Caller) -> None:
    several = [held(desk) for _ in range(3)]
    ann = visitor_of(service, desk.id, "analyst")
    done = ann.submit(QUEUE, f"{QUEUE}/settle", decision=several, outcome="approve", label="LEGIT")
    assert done.status == 303
    assert {review(desk, one)["label"] for one in several} == {"LEGIT"}
    many = [f"evt_{number:032x}" for number in range(51)]
    refused = ann.submit(QUEUE, f"{QUEUE}/settle", decision=many, outcome="approve", note="None is ours.")
    assert refused.status == 422
    assert ann.submit(QUEUE, f"{QUEUE}/settle", outcome="approve").status == 422
    assert len(re.findall("<tr data-row>", ann.get(f"{QUEUE}?view=settled").text)) >= 3


def test_of_several_what_others_were_faster_with_is_left_and_counted(service: Service, desk: Caller) -> None:
    several = [held(desk) for _ in range(4)]
    ann, bo = visitor_of(service, desk.id, "analyst"), visitor_of(service, desk.id, "analyst", "viewer")
    lead, admin = visitor_of(service, desk.id, "lead"), visitor_of(service, desk.id, "admin")
    page = ann.get(QUEUE)
    assert bo.submit(QUEUE, f"/console/decisions/{several[1]}/claim").status == 303
    fields = {"csrf": page.csrf, "decision": several[:3], "outcome": "approve", "label": "LEGIT"}
    done = ann.post(f"{QUEUE}/settle", fields)
    assert done.status == 303
    assert "Settled, but for 1 review: somebody else holds" in ann.get(done.location).words
    states = [review(desk, one)["state"] for one in several]
    assert states == ["settled", "claimed", "settled", "open"]
    # The audit log has each that was settled, and not the one that was left.
    rows = [row for row in admin.get("/console/audit").text.split("<tr") if "Settled a review" in row]
    assert [any(one in row for row in rows) for one in several] == [True, False, True, False]
    none = ann.submit(QUEUE, f"{QUEUE}/settle", decision=several[1], outcome="deny")
    assert (none.status, "Somebody else holds this review" in none.words) == (409, True)
    [(to, _)] = [
        one
        for one in re.findall(r'<option value="(usr_[0-9a-f]+)">([^<]+)', lead.get(QUEUE).text)
        if one[1].startswith("analyst@")
    ]
    given = lead.submit(QUEUE, f"{QUEUE}/assign", decision=[several[0], *several[3:]], assignee=to)
    assert "Assigned, but for 1 review" in lead.get(given.location).words
    assert review(desk, several[3])["state"] == "claimed"
    gone = f"evt_{0:032x}"
    labelled = ann.submit(
        QUEUE, "/console/decisions/label", decision=[gone, several[3]], label="FRAUD", next=QUEUE
    )
    assert "Labels saved, but for 1 decision" in ann.get(labelled.location).words
    assert "<strong>Fraud</strong>" in ann.get(f"/console/decisions/{several[3]}").text
    wrong = ann.submit(QUEUE, "/console/decisions/label", decision=several, label="NONSENSE", next=QUEUE)
    assert wrong.status == 422


def test_a_second_look_is_blind(service: Service, desk: Caller) -> None:
    service.cli("tenant", "set", desk.id, "--review-checks", "100", "--json")
    time.sleep(2)
    decision = held(desk)
    place = f"/console/decisions/{decision}"
    ann, bo = visitor_of(service, desk.id, "analyst"), visitor_of(service, desk.id, "analyst", "viewer")
    next_of(ann)
    ann.submit(place, f"{place}/settle", outcome="deny", note="Looks like a ring.")
    service.wait_for(lambda: decision in bo.get(f"{QUEUE}?view=checks").text, seconds=30)
    page = bo.get(place)
    assert "Looks like a ring." not in page.text
    assert "A second person is asked" in page.words
    assert decision not in ann.get(f"{QUEUE}?view=checks").text
    assert bo.submit(place, f"{place}/check", outcome="approve").status == 303
    assert decision not in bo.get(f"{QUEUE}?view=checks").text
    assert "Looks like a ring." in bo.get(place).text
    assert bo.submit(QUEUE, f"{place}/check", outcome="approve").status == 409
    assert ann.submit(place, f"{place}/check", outcome="approve").status == 403


def test_a_second_person_sees_nothing_of_a_settlement_from_its_first_moment_on(
    service: Service, desk: Caller
) -> None:
    service.cli("tenant", "set", desk.id, "--review-checks", "100", "--json")
    time.sleep(2)
    decision = held(desk, customer={"externalId": "c-blind", "email": "blind@mail.example"})
    place, entity = f"/console/decisions/{decision}", "/console/entities/email/blind@mail.example"
    desk.post(f"/api/v1/feedback/decision/{decision}", {"label": "REFUND", "notes": "Known before."})
    ann, lead = visitor_of(service, desk.id, "analyst"), visitor_of(service, desk.id, "lead")
    next_of(ann)
    ann.submit(place, f"{place}/settle", outcome="deny", label="FRAUD", note="noteXYZ", entry=LISTED)
    settled = f"{QUEUE}?view=settled"

    def assert_hidden() -> None:
        shown = lead.get(place)
        panels = shown.text.partition('id="review"')[2].partition("</section>")[0]
        panels += shown.text.partition('id="feedback"')[2].partition("</section>")[0]
        for told in ("FRAUD", "noteXYZ", "analyst", "Denied", "outcome deny"):
            assert told not in panels
        assert "Known before." in panels
        assert "hidden from the second person" in shown.words
        assert "noteXYZ" not in lead.get(entity).text
        assert "hidden until its second look" in lead.get(entity).words
        assert "1 fraud" not in lead.get(entity).words
        lists = lead.get("/console/lists")
        assert "blind@mail.example" not in lists.text
        assert "hidden until its second look" in lists.words
        row = lead.get(settled).text.partition(decision)[2].partition("</tr>")[0]
        assert "hidden until its second look" in row
        assert "analyst" not in row
        rule = lead.get("/console/rules/large").text.partition(decision)[2].partition("</tr>")[0]
        assert ">fraud<" not in rule

    assert_hidden()
    assert "1 refund" in lead.get(entity).words
    # However many decisions have come about the same since.
    for _ in range(51):
        decided(desk, 5, customer={"externalId": "c-blind", "email": "blind@mail.example"})
    assert_hidden()
    assert "/check" not in lead.get(place).text
    assert "noteXYZ" in ann.get(place).words
    service.wait_for(lambda: decision in lead.get(f"{QUEUE}?view=checks").text, seconds=30)
    assert_hidden()
    assert lead.submit(place, f"{place}/check", outcome="deny").status == 303
    assert lead.get(place).text.count("noteXYZ") == 2
    assert "noteXYZ" in lead.get(entity).text
    assert "noteXYZ" in lead.get("/console/lists").text


def test_the_report_of_the_work_names_people_and_keys(service: Service, desk: Caller) -> None:
    made = [
        service.cli("key", "create", "--tenant", desk.id, "--name", "Back office", "--json") for _ in range(2)
    ]
    keys = [Caller(service, desk.id, one["apiKey"]) for one in made]
    service.wait_for(lambda: all(one.get("/api/v1/lists").status == 200 for one in keys))
    for one in keys:
        assert one.post(f"/api/v1/reviews/{held(desk)}/settle", {"outcome": "deny"}).status == 200
    ann, lead = visitor_of(service, desk.id, "analyst"), visitor_of(service, desk.id, "lead")
    assert ann.submit(QUEUE, f"/console/decisions/{held(desk)}/settle", outcome="deny").status == 303
    work = lead.get("/console/reports?span=24h").text.partition("Work on reviews")[2].partition("</table>")[0]
    assert work.count("Back office") == 2, "keys of one name are two rows"
    assert f"analyst@{desk.id[-12:]}.example" in work
    for one in made:
        assert one["keyId"] not in work


@pytest.mark.parametrize(
    ("role", "sees"), [("viewer", 403), ("editor", 403), ("admin", 200), ("auditor", 200)]
)
def test_who_does_not_work_the_queue_changes_nothing(
    service: Service, desk: Caller, role: str, sees: int
) -> None:
    decision = held(desk)
    visitor = visitor_of(service, desk.id, role)
    assert visitor.get(QUEUE).status == sees
    csrf = visitor.get("/console/profile").csrf
    for path in (
        f"{QUEUE}/next",
        f"/console/decisions/{decision}/settle",
        f"/console/decisions/{decision}/undo",
    ):
        assert visitor.post(path, {"csrf": csrf, "outcome": "approve"}).status == 403
    assert review(desk, decision)["state"] == "open"
