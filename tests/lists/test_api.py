"""The list endpoints, called as a tenant calls them."""

import datetime as dt
import itertools
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from urllib.parse import quote

import pytest

from tests.live import Caller, Service

_numbers = itertools.count(1)


def fresh_ip() -> str:
    number = next(_numbers)
    return f"100.64.{number // 250}.{number % 250 + 1}"


def add(
    tenant: Caller, value: str, kind: str = "IP", list_type: str = "block", **more: Any
) -> dict[str, Any]:
    answer = tenant.post("/api/v1/lists", {"type": kind, "value": value, "listType": list_type, **more})
    assert answer.status == 201, answer.body
    return answer.json


def decide(tenant: Caller, **event: Any) -> dict[str, Any]:
    answer = tenant.post("/api/v1/decisions/evaluate", {"eventName": "user.login", **event})
    assert answer.status == 200, answer.body
    return answer.json


def in_seconds(seconds: float) -> str:
    return (dt.datetime.now(dt.UTC) + dt.timedelta(seconds=seconds)).isoformat()


def test_adding_an_entry_answers_it_whole(tenant: Caller) -> None:
    made = add(tenant, fresh_ip(), reason="seen in an attack", expiresAt="2031-01-31T12:00:00+02:00")
    assert made["id"].startswith("lst_")
    assert made["type"] == "IP"
    assert made["listType"] == "block"
    assert made["reason"] == "seen in an attack"
    assert made["expiresAt"] == "2031-01-31T10:00:00.000Z"
    assert made["createdAt"] == made["updatedAt"]


def test_value_type_is_taken_for_type_in_any_letter_case(tenant: Caller) -> None:
    answer = tenant.post("/api/v1/lists", {"valueType": "ip", "value": fresh_ip(), "listType": "block"})
    assert answer.status == 201
    assert answer.json["type"] == "IP"


def test_a_blocked_ip_denies_the_next_event_and_an_allowed_one_approves_it(tenant: Caller) -> None:
    ip = fresh_ip()
    blocked = add(tenant, ip)
    answer = decide(tenant, ip=ip)
    assert answer["decision"] == "deny"
    assert answer["riskScore"] == 100
    assert answer["reasonCodes"][0]["code"] == "BLOCKLIST_MATCH"
    add(tenant, ip, list_type="allow")
    assert decide(tenant, ip=ip)["decision"] == "deny", "block wins over allow"
    assert tenant.delete(f"/api/v1/lists/{blocked['id']}").json["success"] is True
    answer = decide(tenant, ip=ip)
    assert answer["decision"] == "approve"
    assert answer["reasonCodes"][0]["code"] == "ALLOWLIST_MATCH"


@pytest.mark.parametrize(
    ("kind", "value", "event"),
    [
        ("EMAIL", "Bad.Actor@Example.com", {"customer": {"email": "bad.actor@EXAMPLE.com"}}),
        ("DEVICE", "fp-1234", {"device": {"fingerprint": "fp-1234"}}),
        ("IP", "198.18.7.0/24", {"ip": "198.18.7.99"}),
        ("IP", "2001:db8:7::/48", {"ip": "2001:DB8:7:0:0:0:0:1"}),
        ("IP", "198.19.1.1", {"ip": "::ffff:198.19.1.1"}),
        ("IP", "198.19.1.2", {"ip": " 198.19.1.2"}),
    ],
)
def test_values_match_in_canonical_form(tenant: Caller, kind: str, value: str, event: dict[str, Any]) -> None:
    add(tenant, value, kind)
    assert decide(tenant, **event)["decision"] == "deny"


def test_another_tenants_entries_do_not_count_and_are_not_found(tenant: Caller, other: Caller) -> None:
    ip = fresh_ip()
    made = add(tenant, ip)
    assert decide(other, ip=ip)["decision"] == "approve"
    theirs = other.delete(f"/api/v1/lists/{made['id']}")
    nobodys = other.delete("/api/v1/lists/lst_" + "0" * 32)
    assert theirs.status == nobodys.status == 404
    assert theirs.body == nobodys.body
    assert made["id"] not in [entry["id"] for entry in other.get("/api/v1/lists?limit=100").json["data"]]


def test_an_expired_entry_neither_matches_nor_is_listed_and_can_be_added_again(tenant: Caller) -> None:
    ip = fresh_ip()
    made = add(tenant, ip, expiresAt=in_seconds(0.6))
    assert decide(tenant, ip=ip)["decision"] == "deny"
    time.sleep(0.7)
    assert decide(tenant, ip=ip)["decision"] == "approve"
    listed = tenant.get("/api/v1/lists?limit=100").json["data"]
    assert made["id"] not in [entry["id"] for entry in listed]
    assert tenant.delete(f"/api/v1/lists/{made['id']}").status == 404
    assert add(tenant, ip)["id"] != made["id"]


def test_adding_a_value_twice_is_a_conflict_that_names_the_entry(tenant: Caller) -> None:
    ip = fresh_ip()
    made = add(tenant, ip)
    answer = tenant.post("/api/v1/lists", {"type": "IP", "value": f"::ffff:{ip}", "listType": "block"})
    assert answer.status == 409
    assert answer.json["error"]["code"] == "CONFLICT"
    assert answer.json["error"]["details"] == {"reason": "duplicate_entry", "id": made["id"]}


def test_of_many_simultaneous_adds_exactly_one_makes_the_entry(tenant: Caller) -> None:
    body = {"type": "IP", "value": fresh_ip(), "listType": "block"}
    with ThreadPoolExecutor(16) as pool:
        answers = list(pool.map(lambda _: tenant.post("/api/v1/lists", body), range(16)))
    assert sorted(answer.status for answer in answers) == [201] + [409] * 15
    made = next(answer.json["id"] for answer in answers if answer.status == 201)
    assert {answer.json["error"]["details"]["id"] for answer in answers if answer.status == 409} == {made}


def test_simultaneous_adds_do_not_pass_the_limit(service: Service) -> None:
    small = Caller(service, *service.new_tenant("Eager", **{"list-entries": 5}))
    bodies = [{"type": "IP", "value": fresh_ip(), "listType": "block"} for _ in range(24)]
    with ThreadPoolExecutor(24) as pool:
        answers = list(pool.map(lambda body: small.post("/api/v1/lists", body), bodies))
    assert sorted(answer.status for answer in answers) == [201] * 5 + [409] * 19
    assert small.get("/api/v1/lists").json["total"] == 5


def test_of_many_simultaneous_removals_exactly_one_succeeds(tenant: Caller) -> None:
    made = add(tenant, fresh_ip())
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda _: tenant.delete(f"/api/v1/lists/{made['id']}"), range(8)))
    assert sorted(answer.status for answer in answers) == [200] + [404] * 7


@pytest.mark.parametrize(
    ("body", "status", "fields"),
    [
        ({}, 400, {"type", "value", "listType"}),
        ({"type": "IP", "value": "", "listType": "block"}, 400, {"value"}),
        ({"type": "PHONE", "value": "1", "listType": "grey"}, 400, {"type", "listType"}),
        ({"type": 1, "value": 2, "listType": 3}, 400, {"type", "value", "listType"}),
        ({"type": "IP", "value": "x" * 513, "listType": "block"}, 400, {"value"}),
        ({"type": "IP", "value": "1.1.1.1", "listType": "block", "reason": 5}, 400, {"reason"}),
        ({"type": "IP", "value": "1.1.1.1", "listType": "block", "expiresAt": 5}, 400, {"expiresAt"}),
        ({"type": "IP", "value": "nowhere", "listType": "block"}, 422, {"value"}),
        ({"type": "EMAIL", "value": "nobody", "listType": "block"}, 422, {"value"}),
        ({"type": "DEVICE", "value": " \t", "listType": "block"}, 422, {"value"}),
        (
            {"type": "IP", "value": "1.1.1.1", "listType": "block", "expiresAt": "2001-01-01"},
            422,
            {"expiresAt"},
        ),
        ({"type": "IP", "value": "1.1.1.1", "listType": "block", "expiresAt": "soon"}, 422, {"expiresAt"}),
        (
            {"type": "IP", "value": "1.1.1.1", "listType": "block", "expiresAt": "9999-12-31T23:59:59-01:00"},
            422,
            {"expiresAt"},
        ),
    ],
)
def test_a_bad_body_is_refused_naming_every_fault(
    tenant: Caller, body: dict[str, Any], status: int, fields: set[str]
) -> None:
    answer = tenant.post("/api/v1/lists", body)
    assert answer.status == status, answer.body
    assert set(answer.json["error"]["details"]) == fields


def test_null_optional_members_are_the_same_as_absent_ones(tenant: Caller) -> None:
    made = add(tenant, fresh_ip(), reason=None, expiresAt=None)
    assert "reason" not in made
    assert "expiresAt" not in made


def test_without_a_key_nothing_is_told(service: Service) -> None:
    assert service.call("GET", "/api/v1/lists", key=None).status == 401


def test_scoped_routes_add_and_remove(tenant: Caller) -> None:
    ip = fresh_ip()
    for path, body, kind, kept, removal in [
        ("/ip", {"ip": ip}, "IP", ip, f"/ip/{ip}"),
        (
            "/ip",
            {"value": "198.18.99.0/24", "listType": "allow"},
            "IP",
            "198.18.99.0/24",
            "/ip/198.18.99.0%2F24",
        ),
        ("/device", {"fingerprint": "fp/1+2"}, "DEVICE", "fp/1+2", "/device/" + quote("fp/1+2", safe="")),
        ("/device", {"value": "fp+plus"}, "DEVICE", "fp+plus", "/device/fp+plus"),
        (
            "/customer/" + quote("A+b@example.com"),
            None,
            "EMAIL",
            "a+b@example.com",
            "/customer/a+B@example.com",
        ),
    ]:
        answer = tenant.post("/api/v1/lists" + path, body)
        assert answer.status == 201, answer.body
        assert (answer.json["type"], answer.json["value"]) == (kind, kept)
        assert answer.json["listType"] == (body or {}).get("listType", "block")
        removed = tenant.delete("/api/v1/lists" + removal)
        assert removed.status == 200, removed.body
        assert removed.json["success"] is True
        assert tenant.delete("/api/v1/lists" + removal).status == 404


def test_a_scoped_removal_takes_both_lists_or_the_one_it_names(tenant: Caller) -> None:
    ip = fresh_ip()
    add(tenant, ip, list_type="allow")
    add(tenant, ip, list_type="block")
    assert tenant.delete(f"/api/v1/lists/ip/{ip}?listType=block").status == 200
    assert decide(tenant, ip=ip)["reasonCodes"][0]["code"] == "ALLOWLIST_MATCH"
    add(tenant, ip, list_type="block")
    assert tenant.delete(f"/api/v1/lists/ip/{ip}").status == 200
    assert decide(tenant, ip=ip)["reasonCodes"] == []
    assert tenant.delete(f"/api/v1/lists/ip/{ip}?listType=grey").status == 400


def test_scoped_adds_refuse_bad_values(tenant: Caller) -> None:
    assert tenant.post("/api/v1/lists/ip", {}).status == 400
    assert tenant.post("/api/v1/lists/device", {"fingerprint": 7}).status == 400
    assert tenant.post("/api/v1/lists/ip", {"ip": "nowhere"}).status == 422
    assert tenant.post("/api/v1/lists/customer/nobody").status == 422


def test_a_scoped_add_refuses_a_second_name_of_the_value_with_a_wrong_type(tenant: Caller) -> None:
    refused = tenant.post("/api/v1/lists/device", {"fingerprint": "fp-two-names", "value": 7})
    assert refused.status == 400
    assert list(refused.json["error"]["details"]) == ["value"]
    assert tenant.post("/api/v1/lists/device", {"fingerprint": "fp-two-names", "ip": 7}).status == 201


def test_pages_neither_repeat_nor_skip(service: Service) -> None:
    tenant = Caller(service, *service.new_tenant("Pages"))
    made = [add(tenant, f"198.51.100.{number}")["id"] for number in range(1, 24)]
    newest_first = made[::-1]
    seen: list[str] = []
    for page in range(1, 6):
        answer = tenant.get(f"/api/v1/lists?limit=5&page={page}").json
        assert answer["total"] == 23
        assert answer["page"] == page
        assert answer["limit"] == 5
        assert answer["hasMore"] == (page < 5)
        seen += [entry["id"] for entry in answer["data"]]
    assert seen == newest_first
    for order, expected in (("desc", newest_first), ("asc", newest_first[::-1])):
        cursor, followed = "", []
        while True:
            answer = tenant.get(f"/api/v1/lists?limit=7&sortOrder={order}{cursor}").json
            followed += [entry["id"] for entry in answer["data"]]
            if not answer["hasMore"]:
                break
            cursor = "&cursor=" + answer["nextCursor"]
        assert followed == expected
    assert tenant.get("/api/v1/lists").json["limit"] == 50


def test_filters_narrow_the_page(service: Service) -> None:
    tenant = Caller(service, *service.new_tenant("Filters"))
    block = add(tenant, "203.0.113.1")
    allow = add(tenant, "a@example.com", "EMAIL", "allow")
    created = dt.datetime.fromisoformat(allow["createdAt"]).timestamp()

    def ids(query: str) -> list[str]:
        return [entry["id"] for entry in tenant.get("/api/v1/lists?" + query).json["data"]]

    assert ids("type=IP") == [block["id"]]
    assert ids("listType=allow") == [allow["id"]]
    assert ids("type=IP&listType=allow") == []
    assert ids(f"from={created:.3f}&to={created + 0.001:.3f}") in ([allow["id"]], [allow["id"], block["id"]])
    assert ids(f"to={created - 100}") == []
    assert ids(f"from={created + 100}") == []


@pytest.mark.parametrize(
    "query",
    [
        "page=0",
        "page=x",
        "limit=0",
        "limit=101",
        "type=PHONE",
        "listType=grey",
        "from=2&to=1",
        "cursor=x",
        "sortOrder=up",
    ],
)
def test_a_bad_query_parameter_is_named(tenant: Caller, query: str) -> None:
    answer = tenant.get("/api/v1/lists?" + query)
    assert answer.status == 400
    assert query.partition("=")[0] in answer.json["error"]["details"]


def test_entries_survive_a_restart(own_service: Service) -> None:
    tenant = Caller(own_service, own_service.tenant_id, own_service.api_key)
    add(tenant, "203.0.113.5")
    assert own_service.stop() == 0
    own_service.start()
    assert decide(tenant, ip="203.0.113.5")["decision"] == "deny"


@pytest.mark.parametrize("list_type", ["block", "allow"])
@pytest.mark.parametrize("network", ["0.0.0.0/0", "::/0"])
def test_an_entry_of_every_address_there_is_must_be_confirmed(
    tenant: Caller, network: str, list_type: str
) -> None:
    for path, body in (
        ("/api/v1/lists", {"type": "IP", "value": network}),
        ("/api/v1/lists/ip", {"ip": network}),
    ):
        refused = tenant.post(path, {**body, "listType": list_type})
        assert refused.status == 422
        said = str(refused.json["error"]["details"])
        assert f"would {list_type} every" in said
        assert '"confirm": true' in said
    made = tenant.post(
        "/api/v1/lists", {"type": "IP", "value": network, "listType": list_type, "confirm": True}
    )
    assert made.status == 201
    assert tenant.delete(f"/api/v1/lists/{made.json['id']}").status == 200


def test_a_range_with_an_address_inside_it_is_refused_with_what_is_wrong(tenant: Caller) -> None:
    for value in ("203.0.113.7/24", "198.51.100.0/00024"):
        refused = tenant.post("/api/v1/lists", {"type": "IP", "value": value, "listType": "block"})
        assert refused.status == 422
        assert value not in refused.body.decode()
    assert tenant.delete("/api/v1/lists/ip/203.0.113.7%2F24").status == 404


def test_an_entry_of_a_device_matches_its_external_id_too(tenant: Caller) -> None:
    made = tenant.post("/api/v1/lists", {"type": "DEVICE", "value": "device-by-id", "listType": "block"})
    event = {"eventName": "user.login", "device": {"externalId": "device-by-id", "fingerprint": "other"}}
    assert tenant.post("/api/v1/decisions/evaluate", event).json["decision"] == "deny"
    assert tenant.delete(f"/api/v1/lists/{made.json['id']}").status == 200


def test_lists_are_bounded_by_a_setting_of_their_tenant(service: Service) -> None:
    small = Caller(service, *service.new_tenant("Small", **{"list-entries": 3}))
    other = Caller(service, *service.new_tenant("Other"))
    soon = (dt.datetime.now(dt.UTC) + dt.timedelta(seconds=2)).isoformat()
    add(small, fresh_ip(), expiresAt=soon)
    kept = [add(small, fresh_ip())["id"] for _ in range(2)]
    body = {"type": "IP", "value": fresh_ip(), "listType": "block"}
    refused = small.post("/api/v1/lists", body)
    assert refused.status == 409
    assert refused.json["error"]["details"] == {"reason": "too_many_entries", "limit": 3}
    scoped = small.post("/api/v1/lists/ip", {"ip": fresh_ip()})
    assert scoped.json["error"]["details"]["reason"] == "too_many_entries"
    known = small.get("/api/v1/lists?limit=1").json["data"][0]
    again = small.post("/api/v1/lists", {"type": "IP", "value": known["value"], "listType": "block"})
    assert again.json["error"]["details"] == {"reason": "duplicate_entry", "id": known["id"]}
    add(other, fresh_ip())
    # What has expired takes no room, and is removed when there is none left.
    time.sleep(2)
    add(small, fresh_ip())
    stored = service.rows(f"SELECT COUNT(*) FROM list_entry WHERE tenant = '{small.id}'")
    assert [tuple(row) for row in stored] == [(3,)]
    assert small.post("/api/v1/lists", body).status == 409
    assert small.delete(f"/api/v1/lists/{kept[0]}").status == 200
    assert small.post("/api/v1/lists", body).status == 201
