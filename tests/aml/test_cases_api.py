"""Alerts and cases: grouped by customer, worked on by officers, closed with a reason, exported."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest

from tests.live import Caller
from vettance.aml.case_report import figure

EVENTS = "/api/v1/aml/events"
CASES = "/api/v1/aml/cases"

_numbers = iter(range(10**9))


def alert(officer: Caller, customer: str, country: str = "KP", **metadata: Any) -> dict[str, Any]:
    """Post an event that alerts."""
    body = {
        "eventName": "transfer.sent",
        "externalEventId": f"case-{next(_numbers)}",
        "customer": {"externalId": customer},
        "metadata": {"amount": 12_000, "counterpartyCountry": country, "direction": "out", **metadata},
    }
    answer = officer.post(EVENTS, body)
    assert answer.json["status"] == "ALERTED", answer.json
    return answer.json


def only_case(officer: Caller, customer: str) -> dict[str, Any]:
    page = officer.get(f"{CASES}?customer={customer}").json
    assert page["total"] == len(page["data"]) == 1
    return page["data"][0]


def test_alerts_of_one_customer_share_a_case_and_repeats_share_an_alert(officer: Caller) -> None:
    first = alert(officer, "grouped")
    again = alert(officer, "grouped")
    other = alert(officer, "grouped", country="HT")
    case = only_case(officer, "grouped")
    assert case["state"] == "OPEN"
    assert case["severity"] == "CRITICAL"
    record = officer.get(f"{CASES}/{case['id']}").json
    kinds = {found["typology"]: found["events"] for found in record["alerts"]}
    assert kinds["CALL_FOR_ACTION_JURISDICTION"] == 2
    assert "HIGH_RISK_JURISDICTION" in kinds
    assert case["alertCount"] == len(record["alerts"])
    shared = {found["id"] for found in first["alerts"]} & {found["id"] for found in again["alerts"]}
    assert shared
    assert {event["id"] for event in record["events"]} >= {first["id"], again["id"], other["id"]}
    assert [line["kind"] for line in record["timeline"]][:2] == ["OPENED", "ALERTED"]
    figures = record["alerts"][0]["figures"]
    assert figures["ruleId"] == record["alerts"][0]["ruleId"]
    assert "12,000.00" in record["alerts"][0]["summary"]


def test_notes_that_come_at_once_all_stay(officer: Caller) -> None:
    alert(officer, "noted")
    path = f"{CASES}/{only_case(officer, 'noted')['id']}"
    notes = [{"notes": f"Note {number}.", "officer": "ann"} for number in range(12)]
    with ThreadPoolExecutor(12) as pool:
        answers = list(pool.map(lambda body: officer.post(f"{path}/notes", body), notes))
    assert [answer.status for answer in answers] == [200] * 12
    record = officer.get(path).json
    noted = [line for line in record["timeline"] if line["kind"] == "NOTED"]
    assert sorted(line["text"] for line in noted) == sorted(body["notes"] for body in notes)
    assert len({line["at"] for line in noted}) == 12
    assert record["updatedAt"] == noted[-1]["at"]
    assert officer.post(f"{CASES}/cas_{'0' * 32}/notes", notes[0]).status == 404


def test_a_case_is_assigned_noted_and_resolved_once(officer: Caller) -> None:
    alert(officer, "worked")
    case = only_case(officer, "worked")
    path = f"{CASES}/{case['id']}"
    assert officer.post(f"{path}/assign", {"assignee": "ann", "officer": "bo"}).json["assignee"] == "ann"
    assert officer.get(f"{CASES}?assignee=ann").json["total"] == 1
    assert officer.post(f"{path}/notes", {"notes": "Called the customer.", "officer": "ann"}).status == 200
    done = officer.post(
        f"{path}/resolve", {"resolution": "TRUE_MATCH", "notes": "Reported.", "officer": "ann"}
    )
    assert done.status == 200
    assert done.json["state"] == "CLOSED"
    assert done.json["resolvedBy"] == "ann"
    again = officer.post(f"{path}/resolve", {"resolution": "FALSE_POSITIVE"})
    assert again.status == 409
    assert again.json["error"]["details"]["reason"] == "already_resolved"
    record = officer.get(path).json
    kinds = [line["kind"] for line in record["timeline"]]
    assert kinds[-3:] == ["ASSIGNED", "NOTED", "RESOLVED"]
    assert {found["state"] for found in record["alerts"]} == {"CLOSED"}
    alert(officer, "worked")
    assert officer.get(f"{CASES}?customer=worked").json["total"] == 2


def test_a_mistake_keeps_its_typology_quiet_but_never_a_mandatory_rule(officer: Caller) -> None:
    body = {
        "eventName": "trade.payment",
        "customer": {"externalId": "quiet"},
        "metadata": {"amount": 30_000, "invoiceAmount": 30_000, "marketValue": 10_000, "direction": "out"},
    }
    first = officer.post(EVENTS, body | {"externalEventId": "quiet-1"}).json
    assert [found["ruleId"] for found in first["alerts"]] == ["mispriced-trade"]
    case = only_case(officer, "quiet")
    officer.post(f"{CASES}/{case['id']}/resolve", {"resolution": "FALSE_POSITIVE", "notes": "Known goods."})
    assert officer.post(EVENTS, body | {"externalEventId": "quiet-2"}).json["status"] == "CLEAR"
    alert(officer, "quiet")


def test_who_decides_by_an_old_look_at_a_case_is_told_so(officer: Caller) -> None:
    alert(officer, "stale")
    case = only_case(officer, "stale")
    path = f"{CASES}/{case['id']}"
    seen = {"updatedAt": case["updatedAt"]}
    newer = officer.post(f"{path}/assign", {"assignee": "ann", **seen}).json
    for act, body in (
        ("assign", {"assignee": "bo"}),
        ("resolve", {"resolution": "TRUE_MATCH"}),
        ("reject", {}),
    ):
        late = officer.post(f"{path}/{act}", body | seen)
        assert (late.status, late.json["error"]["details"]["reason"]) == (409, "changed_meanwhile")
    done = officer.post(f"{path}/resolve", {"resolution": "TRUE_MATCH", "updatedAt": newer["updatedAt"]})
    assert (done.json["state"], done.json["assignee"]) == ("CLOSED", "ann")


def test_the_moment_of_a_case_counts_in_whichever_notation_it_is_sent_back(officer: Caller) -> None:
    alert(officer, "notation")
    path = f"{CASES}/{only_case(officer, 'notation')['id']}"

    def assign(notation: Callable[[datetime], str], assignee: str) -> Any:
        moment = datetime.fromisoformat(officer.get(path).json["updatedAt"])
        return officer.post(f"{path}/assign", {"assignee": assignee, "updatedAt": notation(moment)})

    cairo = timezone(timedelta(hours=2))
    assert assign(datetime.isoformat, "ann").status == 200
    assert assign(lambda moment: moment.astimezone(cairo).isoformat(), "bo").status == 200
    late = assign(lambda moment: (moment - timedelta(milliseconds=1)).isoformat(), "cy")
    assert (late.status, late.json["error"]["details"]["reason"]) == (409, "changed_meanwhile")
    for act in ("assign", "reject", "resolve"):
        body = {"resolution": "TRUE_MATCH", "updatedAt": "yesterday"}
        refused = officer.post(f"{path}/{act}", body)
        assert refused.status == 422
        assert refused.json["error"]["details"] == {"updatedAt": "must be an ISO 8601 time"}
    assert officer.get(path).json["assignee"] == "bo"


def test_four_eyes_need_two_officers(officer: Caller) -> None:
    alert(officer, "eyes")
    officer.service.cli("aml", "set", "--tenant", officer.id, "--four-eyes", "on", "--json")
    try:
        path = f"{CASES}/{only_case(officer, 'eyes')['id']}"
        body = {"resolution": "TRUE_MATCH", "notes": "n", "officer": "ann"}
        assert officer.post(f"{path}/resolve", body).json["state"] == "PENDING"
        assert (
            officer.post(f"{path}/resolve", body).json["error"]["details"]["reason"]
            == "second_officer_needed"
        )
        # Another name from the same hand is no second pair of eyes.
        again = officer.post(f"{path}/resolve", body | {"officer": "bo"})
        assert (again.status, again.json["error"]["details"]["reason"]) == (409, "second_officer_needed")
        second = Caller(officer.service, officer.id, officer.service.new_key(officer.id))
        other = body | {"officer": "bo", "resolution": "FALSE_POSITIVE"}
        assert (
            second.post(f"{path}/resolve", other).json["error"]["details"]["reason"] == "resolution_differs"
        )
        assert (
            officer.post(f"{path}/reject", {"officer": "bo", "notes": "Look again."}).json["state"] == "OPEN"
        )
        assert officer.post(f"{path}/resolve", body).json["state"] == "PENDING"
        done = second.post(f"{path}/resolve", body | {"officer": "bo"}).json
        assert (done["state"], done["resolvedBy"]) == ("CLOSED", "bo")
        assert done["proposedBy"].startswith("key_")
    finally:
        officer.service.cli("aml", "set", "--tenant", officer.id, "--four-eyes", "off", "--json")


@pytest.mark.parametrize(
    ("act", "body", "path"),
    [
        ("resolve", {}, "resolution"),
        ("resolve", {"resolution": "MAYBE"}, "resolution"),
        ("resolve", {"resolution": "TRUE_MATCH", "notes": "n" * 4001}, "notes"),
        ("resolve", {"resolution": "TRUE_MATCH", "officer": 7}, "officer"),
        ("resolve", {"resolution": "TRUE_MATCH", "officer": " "}, "officer"),
        ("notes", {}, "notes"),
        ("notes", {"notes": " \n "}, "notes"),
        ("assign", {"assignee": 5}, "assignee"),
        ("assign", {"assignee": "  "}, "assignee"),
    ],
)
def test_faults_are_422(officer: Caller, act: str, body: Any, path: str) -> None:
    alert(officer, "faulty")
    case = only_case(officer, "faulty")
    answer = officer.post(f"{CASES}/{case['id']}/{act}", body)
    assert answer.status == 422
    assert path in answer.json["error"]["details"]


def test_another_tenants_case_is_not_found(officer: Caller, other_officer: Caller) -> None:
    alert(officer, "hidden")
    case = only_case(officer, "hidden")
    for path in (f"{CASES}/{case['id']}", f"{CASES}/cas_none", f"{CASES}/{case['id']}/export"):
        assert other_officer.get(path).status == 404
    answer = other_officer.post(f"{CASES}/{case['id']}/resolve", {"resolution": "TRUE_MATCH"})
    assert answer.status == 404
    assert other_officer.get("/api/v1/aml/alerts?customer=hidden").json["total"] == 0


def test_a_case_is_exported_as_json_and_as_a_page_without_live_content(officer: Caller) -> None:
    alert(officer, "<script>alert(1)</script>", description="<img src=x>")
    case = officer.get(f"{CASES}?limit=1").json["data"][0]
    as_json = officer.get(f"{CASES}/{case['id']}/export?format=json")
    assert as_json.json == officer.get(f"{CASES}/{case['id']}").json
    page = officer.get(f"{CASES}/{case['id']}/export?format=HTML")
    assert page.headers["content-type"].startswith("text/html")
    assert "default-src 'none'" in page.headers["content-security-policy"]
    text = page.body.decode()
    assert "<script>" not in text
    assert "<img" not in text
    assert "&lt;script&gt;" in text
    assert officer.get(f"{CASES}/{case['id']}/export?format=pdf").status == 400


def test_the_page_of_a_case_writes_figures_as_people_read_them() -> None:
    shown = {True: "yes", None: "unknown", 9500.0: "9,500", 25000: "25,000", 295.29324925: "295.29"}
    shown |= {0.0: "0", 0.00034: "0.00034", 3.5: "3.5", "person": "person"}
    assert {value: figure(value) for value in shown} == shown


def test_pages_never_repeat_a_row_and_filters_hold(officer: Caller) -> None:
    for number in range(5):
        alert(officer, f"paged-{number}")
    seen = [
        row["id"] for page in (1, 2, 3) for row in officer.get(f"{CASES}?limit=2&page={page}").json["data"]
    ]
    assert len(set(seen)) == len(seen) == 6
    assert officer.get("/api/v1/aml/alerts?severity=low").json["total"] == 0
    assert officer.get("/api/v1/aml/alerts?severity=nonsense").status == 400
    oldest = officer.get(f"{CASES}?limit=1&sortOrder=asc").json["data"][0]
    assert oldest["id"] == min(row["id"] for row in officer.get(f"{CASES}?limit=100").json["data"])


@pytest.mark.parametrize(("path", "order"), [(CASES, "desc"), (CASES, "asc"), ("/api/v1/aml/alerts", "desc")])
def test_cursors_walk_every_row_once_in_the_order_of_the_pages(
    officer: Caller, path: str, order: str
) -> None:
    for number in range(4):
        alert(officer, f"cursor-{number}")
    wanted = [row["id"] for row in officer.get(f"{path}?limit=100&sortOrder={order}").json["data"]]
    assert len(wanted) >= 4
    walked: list[str] = []
    query = f"{path}?limit=3&sortOrder={order}"
    page = officer.get(query).json
    walked += [row["id"] for row in page["data"]]
    while "nextCursor" in page:
        page = officer.get(f"{query}&cursor={page['nextCursor']}").json
        walked += [row["id"] for row in page["data"]]
    assert walked == wanted
    assert not page["hasMore"]
    refused = officer.get(f"{path}?cursor=evt_1")
    assert (refused.status, list(refused.json["error"]["details"])) == (400, ["cursor"])
