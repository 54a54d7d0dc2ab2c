"""Which route a method and a raw path lead to."""

from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vettance.web.routing import Access, Call, Page, Route, RouteReply, RouteTable


async def answer(_call: Call) -> RouteReply | Page:
    return RouteReply({})


def route(method: str, path: str) -> Route:
    return Route(method=method, path=path, handler=answer, summary="s", tag="t", access=Access.NONE)


TABLE = RouteTable(
    (
        route("GET", "/api/v1/lists"),
        route("POST", "/api/v1/lists"),
        route("DELETE", "/api/v1/lists/{id}"),
        route("POST", "/api/v1/lists/ip"),
        route("DELETE", "/api/v1/lists/ip/{ip}"),
        route("GET", "/api/v1/decisions/stats"),
        route("GET", "/api/v1/decisions/{id}"),
        route("GET", "/api/v1/{kind}/of/{id}"),
    )
)


def found(method: str, path: bytes) -> tuple[str, dict[str, str]]:
    match = TABLE.find(method, path)
    assert match is not None
    assert match.route is not None
    return match.route.path, match.parameters


def test_a_fixed_path_is_found_by_its_method():
    assert TABLE.find("POST", b"/api/v1/lists").route.method == "POST"
    assert TABLE.find("GET", b"/api/v1/lists").route.method == "GET"


def test_a_fixed_segment_wins_over_a_parameter():
    assert found("GET", b"/api/v1/decisions/stats") == ("/api/v1/decisions/stats", {})
    assert found("GET", b"/api/v1/decisions/stat") == ("/api/v1/decisions/{id}", {"id": "stat"})


def test_a_fixed_segment_that_leads_nowhere_falls_back_to_a_parameter():
    assert found("GET", b"/api/v1/lists/of/7") == ("/api/v1/{kind}/of/{id}", {"kind": "lists", "id": "7"})


def test_an_encoded_slash_and_a_plus_belong_to_the_value():
    assert found("DELETE", b"/api/v1/lists/ip/10.0.0.0%2F8")[1] == {"ip": "10.0.0.0/8"}
    assert found("DELETE", b"/api/v1/lists/ip/a+b%2B%20c")[1] == {"ip": "a+b+ c"}


def test_a_path_parameter_is_decoded_once_only():
    assert found("DELETE", b"/api/v1/lists/ip/%252F")[1] == {"ip": "%2F"}


@given(st.text(st.characters(codec="utf-8", exclude_characters="\x00"), min_size=1))
def test_every_text_can_be_a_path_parameter_when_percent_encoded(text):
    assert found("DELETE", b"/api/v1/lists/ip/" + quote(text, safe="").encode())[1] == {"ip": text}


@pytest.mark.parametrize(
    "path", [b"/api/v1/lists/", b"/api/v1/lists/ip/", b"/api/v1//lists", b"", b"/", b"*"]
)
def test_a_slash_more_or_less_is_another_path(path):
    assert TABLE.find("DELETE", path) is None


def test_encoded_letters_of_a_fixed_segment_are_another_path():
    assert TABLE.find("GET", b"/api/v1/%6Cists") is None


def test_head_is_taken_where_get_is():
    assert found("HEAD", b"/api/v1/lists")[0] == "/api/v1/lists"
    assert found("HEAD", b"/api/v1/decisions/x") == ("/api/v1/decisions/{id}", {"id": "x"})
    assert TABLE.find("HEAD", b"/api/v1/lists/ip").route is None


def test_another_method_names_the_methods_that_are_taken():
    match = TABLE.find("PATCH", b"/api/v1/lists")
    assert match.route is None
    assert match.allow == ("GET", "HEAD", "POST")
    assert TABLE.find("GET", b"/api/v1/lists/ip/1.2.3.4").allow == ("DELETE",)


@pytest.mark.parametrize("raw", [b"%FF", b"%C3%28", b"%00", b"a%00b", b"%ED%A0%80"])
def test_bytes_that_no_store_can_keep_are_named_unreadable(raw):
    assert TABLE.find("DELETE", b"/api/v1/lists/ip/" + raw).unreadable == ("ip",)


@given(st.binary())
def test_no_path_makes_the_table_fail(path):
    TABLE.find("GET", b"/api/v1/decisions/" + path)
    TABLE.find("GET", path)


def test_a_route_cannot_stand_in_the_table_twice():
    with pytest.raises(ValueError, match="twice"):
        RouteTable((route("GET", "/a/{x}"), route("GET", "/a/{y}")))


def test_a_table_refuses_what_is_no_method_or_path():
    with pytest.raises(ValueError, match="no method and path"):
        RouteTable((route("get", "/a"),))
    with pytest.raises(ValueError, match="no method and path"):
        RouteTable((route("GET", "a"),))
