"""The lists and statistics of decisions and events, called as a tenant calls them."""

import time
from typing import Any
from urllib.parse import quote

import pytest

from tests.live import Answer, Caller, Service

LISTS = ("/api/v1/decisions", "/api/v1/events")


@pytest.fixture(scope="module")
def filled(service: Service) -> tuple[Caller, list[str]]:
    """A tenant with six decisions, of which a list blocks the last two."""
    caller = Caller(service, *service.new_tenant("Filled"))
    ids = []
    for number in range(6):
        if number == 3:
            entry = {"type": "EMAIL", "value": "bad@mail.example", "listType": "block"}
            assert caller.post("/api/v1/lists", entry).status == 201
        body = {
            "eventName": "payment.attempt" if number % 2 else "user.login",
            "eventCategory": "TRANSACTION" if number % 2 else "AUTHENTICATION",
            "customer": {
                "externalId": f"cust-{number % 3}",
                "email": "bad@mail.example" if number > 3 else None,
            },
            "device": {"fingerprint": f"fp-{number}"},
            "ip": f"192.0.2.{number}",
            "country": "DE" if number < 3 else ("FR", " fr ", "fr")[number - 3],
            "metadata": {"sessionId": f"session-{number // 3}"},
        }
        answer = caller.post("/api/v1/events", body)
        assert answer.status == 201, answer.body
        ids.append(answer.json["eventId"])
        time.sleep(0.002)
    return caller, ids


def page(caller: Caller, path: str, query: str = "") -> Any:
    answer = caller.get(f"{path}?{query}")
    assert answer.status == 200, answer.body
    return answer.json


def ids_of(found: Any) -> list[str]:
    return [one["id"] for one in found["data"]]


@pytest.mark.parametrize("path", LISTS)
def test_a_list_is_newest_first_in_the_paged_envelope(filled: tuple[Caller, list[str]], path: str) -> None:
    caller, ids = filled
    found = page(caller, path)
    assert ids_of(found) == ids[::-1]
    assert {name: found[name] for name in ("total", "page", "limit", "hasMore")} == {
        "total": 6,
        "page": 1,
        "limit": 50,
        "hasMore": False,
    }
    assert "nextCursor" not in found
    assert ids_of(page(caller, path, "sortOrder=asc")) == ids


@pytest.mark.parametrize("path", LISTS)
def test_pages_and_cursors_walk_through_everything_once(filled: tuple[Caller, list[str]], path: str) -> None:
    caller, ids = filled
    pages = [page(caller, path, f"limit=4&page={number}") for number in (1, 2, 3)]
    assert [len(one["data"]) for one in pages] == [4, 2, 0]
    assert [one["hasMore"] for one in pages] == [True, False, False]
    second = page(caller, path, f"limit=4&cursor={pages[0]['nextCursor']}")
    assert ids_of(pages[0]) + ids_of(second) == ids[::-1]
    assert second["total"] == 6


def test_a_decision_in_a_list_is_its_result_and_what_it_was_about(filled: tuple[Caller, list[str]]) -> None:
    caller, ids = filled
    item = page(caller, "/api/v1/decisions")["data"][0]
    assert item["decision"] == "deny"
    assert (item["riskScore"], item["riskLevel"]) == (100, "critical")
    assert item["reasonCodes"][0]["code"] == "BLOCKLIST_MATCH"
    assert item["correlationIds"]["eventId"] == ids[-1]
    assert item["customer"] == {"externalId": "cust-2", "email": "bad@mail.example"}
    assert item["device"] == {"fingerprint": "fp-5"}
    assert (item["ip"], item["country"], item["sessionId"]) == ("192.0.2.5", "FR", "session-1")
    assert item["eventName"] == "payment.attempt"


def test_an_event_in_a_list_is_the_event_record(filled: tuple[Caller, list[str]]) -> None:
    caller, ids = filled
    item = page(caller, "/api/v1/events")["data"][0]
    assert item == caller.get(f"/api/v1/events/{ids[-1]}").json
    assert item["decision"] == "BLOCK"


@pytest.mark.parametrize(
    ("query", "numbers"),
    [
        ("decision=deny", [4, 5]),
        ("decision=BLOCK", [4, 5]),
        ("decision=Approve", [0, 1, 2, 3]),
        ("customer=cust-1", [1, 4]),
        ("customer=" + quote("BAD@mail.example"), [4, 5]),
        ("device=fp-3", [3]),
        ("country=FR", [3, 4, 5]),
        ("country=fr", [3, 4, 5]),
        ("ip=::ffff:192.0.2.4", [4]),
        ("sessionId=session-0", [0, 1, 2]),
        ("country=FR&decision=approve", [3]),
        ("customer=cust-1&country=DE&decision=deny", []),
    ],
)
def test_filters_work_on_both_lists(filled: tuple[Caller, list[str]], query: str, numbers: list[int]) -> None:
    caller, ids = filled
    for path in LISTS:
        found = page(caller, path, query + "&sortOrder=asc")
        assert ids_of(found) == [ids[number] for number in numbers]
        assert found["total"] == len(numbers)


@pytest.mark.parametrize(
    ("path", "query", "numbers"),
    [
        ("decisions", "minScore=100", [4, 5]),
        ("decisions", "maxScore=99", [0, 1, 2, 3]),
        ("decisions", "riskLevel=critical", [4, 5]),
        ("decisions", "search=FP-2", [2]),
        ("decisions", "search=cust-1", [1, 4]),
        ("decisions", "search=blocklist", [4, 5]),
        ("decisions", "reasonCode=blocklist", []),
        ("decisions", "reasonCode=BLOCKLIST_MATCH", [4, 5]),
        ("decisions", "reasonCode=blocklist_match&customer=cust-1", [4]),
        ("decisions", "search=PAYMENT", [1, 3, 5]),
        ("decisions", "search=192.0.2.5", [5]),
        ("events", "eventName=user.login", [0, 2, 4]),
        ("events", "eventCategory=TRANSACTION", [1, 3, 5]),
    ],
)
def test_filters_of_one_list(
    filled: tuple[Caller, list[str]], path: str, query: str, numbers: list[int]
) -> None:
    caller, ids = filled
    found = page(caller, f"/api/v1/{path}", query + "&sortOrder=asc")
    assert ids_of(found) == [ids[number] for number in numbers]


def test_from_is_inclusive_and_to_exclusive(filled: tuple[Caller, list[str]]) -> None:
    caller, ids = filled
    moments = [one["evaluatedAt"] for one in page(caller, "/api/v1/decisions", "sortOrder=asc")["data"]]
    second = float(moments[2][17:23])
    minute = int(time.mktime(time.strptime(moments[2][:16] + "UTC", "%Y-%m-%dT%H:%M%Z"))) - time.timezone
    at = f"{minute + second:.3f}"
    assert ids_of(page(caller, "/api/v1/decisions", f"from={at}&sortOrder=asc")) == ids[2:]
    assert ids_of(page(caller, "/api/v1/decisions", f"to={at}&sortOrder=asc")) == ids[:2]


def test_sorting_by_score_and_decision_breaks_ties_by_id(filled: tuple[Caller, list[str]]) -> None:
    caller, _ = filled
    for name, key in (("riskScore", "riskScore"), ("decision", "decision")):
        for order in ("asc", "desc"):
            data = page(caller, "/api/v1/decisions", f"sortBy={name}&sortOrder={order}")["data"]
            keys = [(one[key], one["id"]) for one in data]
            assert keys == sorted(keys, reverse=order == "desc")


@pytest.mark.parametrize(
    ("path", "query", "field"),
    [
        ("decisions", "limit=101", "limit"),
        ("decisions", "limit=0", "limit"),
        ("decisions", "page=0", "page"),
        ("decisions", "minScore=101", "minScore"),
        ("decisions", "riskLevel=huge", "riskLevel"),
        ("decisions", "decision=maybe", "decision"),
        ("decisions", "from=2&to=1", "from"),
        ("decisions", "from=2026-01-01", "from"),
        ("decisions", "sortBy=country", "sortBy"),
        ("decisions", "sortOrder=up", "sortOrder"),
        ("decisions", "cursor=nonsense", "cursor"),
        ("events", "eventCategory=LOGIN", "eventCategory"),
        ("events", "sortBy=country", "sortBy"),
        ("events/stats", "from=2&to=1", "from"),
        ("decisions/stats", "to=x", "to"),
    ],
)
def test_a_faulty_parameter_is_named(
    filled: tuple[Caller, list[str]], path: str, query: str, field: str
) -> None:
    answer = filled[0].get(f"/api/v1/{path}?{query}")
    assert answer.status == 400
    assert list(answer.json["error"]["details"]) == [field]


def test_a_cursor_of_a_list_in_another_order_is_refused(filled: tuple[Caller, list[str]]) -> None:
    caller, _ = filled
    cursor = page(caller, "/api/v1/decisions", "limit=1")["nextCursor"]
    assert caller.get(f"/api/v1/decisions?cursor={cursor}&sortOrder=asc").status == 400
    assert caller.get(f"/api/v1/decisions?cursor={cursor}&sortBy=riskScore").status == 400


@pytest.mark.parametrize("path", [*LISTS, "/api/v1/decisions/stats", "/api/v1/events/stats"])
def test_without_a_key_nothing_is_told(service: Service, path: str) -> None:
    assert service.get(path, key=None).status == 401


def test_nothing_of_another_tenant_is_listed_or_counted(
    filled: tuple[Caller, list[str]], other: Caller
) -> None:
    for path in LISTS:
        assert page(other, path, "search=cust")["data"] == []
        assert page(other, path, "customer=cust-1")["total"] == 0
    assert page(other, "/api/v1/events/stats")["totalEvents"] == 0


def test_decisions_are_counted(filled: tuple[Caller, list[str]]) -> None:
    stats = page(filled[0], "/api/v1/decisions/stats")
    assert stats["totals"] == {"evaluated": 6, "approve": 4, "review": 0, "deny": 2}
    assert stats["rates"] == {"approve": 0.666667, "review": 0.0, "deny": 0.333333}
    assert {"code": "BLOCKLIST_MATCH", "count": 2} in stats["topReasonCodes"]
    assert sum(bucket["evaluated"] for bucket in stats["buckets"]) == 6
    assert 33 <= stats["averageRiskScore"] <= 100


def test_events_are_counted_with_their_customers_and_devices(filled: tuple[Caller, list[str]]) -> None:
    counted = {
        "totalEvents": 6,
        "blockedEvents": 2,
        "eventsUnderReview": 0,
        "uniqueCustomers": 3,
        "uniqueDevices": 6,
        "newest": {
            "events": 6,
            "without": {"customer": 0.0, "device": 0.0, "ip": 0.0, "session": 0.0, "amount": 1.0},
            "unknownMembers": [],
        },
    }
    assert page(filled[0], "/api/v1/events/stats") == counted
    now = int(time.time())
    assert page(filled[0], "/api/v1/events/stats", f"from={now - 3600}&to={now + 3600}") == counted
    assert page(filled[0], "/api/v1/events/stats", f"to={now - 3600}")["totalEvents"] == 0


def test_statistics_go_by_event_time(tenant: Caller) -> None:
    now = int(time.time())
    body = {"eventName": "user.login", "occurredAt": now - 40 * 86_400}
    assert tenant.post("/api/v1/events", body).status == 201
    stats = page(tenant, "/api/v1/decisions/stats", f"from={now - 41 * 86_400}&to={now - 39 * 86_400}")
    assert stats["totals"]["evaluated"] == 1
    assert page(tenant, "/api/v1/decisions/stats", f"from={now - 3600}")["totals"]["evaluated"] == 0
    assert page(tenant, "/api/v1/decisions", f"from={now - 3600}")["total"] == 1


def test_an_event_is_listed_as_soon_as_it_is_acknowledged(tenant: Caller) -> None:
    for _ in range(20):
        answer: Answer = tenant.post("/api/v1/events", {"eventName": "user.login"})
        assert ids_of(page(tenant, "/api/v1/events", "limit=1")) == [answer.json["eventId"]]
