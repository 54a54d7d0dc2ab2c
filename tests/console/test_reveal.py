"""Looking behind masks: who may, for how long, where, and that the audit log knows of it."""

import html
import re
from urllib.parse import quote, unquote

import pytest

from tests.console.conftest import SignIn
from tests.console.visitor import Visitor, visitor_of
from tests.live import Caller, Service

EMAIL = "alice.reveal@mail.example"


def decided(tenant: Caller) -> str:
    event = {
        "eventName": "payment.attempt",
        "customer": {"externalId": "customer-reveal-77", "email": EMAIL},
        "device": {"fingerprint": "fp-reveal-0001"},
        "ip": "203.0.113.77",
        "sessionId": "session-reveal-77",
        "metadata": {"iban": "DE89370400440532013000"},
    }
    answer = tenant.post("/api/v1/decisions/evaluate", event)
    return f"/console/decisions/{answer.json['correlationIds']['eventId']}"


def revealing(visitor: Visitor, page: str) -> str:
    answer = visitor.post("/console/reveal", {"csrf": visitor.get(page).csrf, "page": page})
    assert answer.status == 303, answer.words
    return answer.location


def test_a_viewer_reveals_a_page_and_the_log_has_it(service: Service, tenant: Caller, people: SignIn) -> None:
    page, viewer = decided(tenant), people("viewer")
    masked = viewer.get(page)
    assert EMAIL not in masked.text
    assert f'name="page" value="{page}"' in masked.text
    shown = viewer.get(revealing(viewer, page))
    assert EMAIL in shown.text
    assert "DE89370400440532013000" in shown.text
    assert "Personal data is shown on this page" in shown.words
    assert quote(EMAIL, safe="") not in shown.text, "links go on carrying tokens"
    assert EMAIL not in viewer.get(page).text
    log = people("auditor").get("/console/audit?action=reveal")
    assert "POST /console/reveal" in log.words
    assert f'<a href="{page}">' in log.text


def test_what_is_revealed_is_one_page_to_one_session(
    service: Service, tenant: Caller, people: SignIn
) -> None:
    page, other = decided(tenant), decided(tenant)
    viewer = people("viewer")
    address = revealing(viewer, page)
    mark = address.partition("?")[2]
    assert EMAIL not in viewer.get(f"{other}?{mark}").text
    assert EMAIL not in visitor_of(service, tenant.id, "viewer", "viewer").get(address).text
    assert EMAIL not in viewer.get(f"{page}?revealed=~AAAA").text
    assert EMAIL not in viewer.get(f"{page}?revealed=9999999999999").text


def test_lists_and_filters_are_revealed_with_their_addresses(tenant: Caller, people: SignIn) -> None:
    decided(tenant)
    viewer = people("viewer")
    page = "/console/decisions?decision=approve&customer=customer-reveal-77"
    assert "customer-reveal-77" in viewer.get(revealing(viewer, page)).words


def test_only_pages_that_one_may_read_are_revealed(tenant: Caller, people: SignIn) -> None:
    viewer = people("viewer")
    csrf = viewer.get("/console/profile").csrf
    for page, status in (
        ("/console/audit", 403),
        ("/console/queue", 403),
        ("/console/nowhere", 404),
        ("/console/sign-in", 404),
        ("https://evil.example/console/", 404),
        ("//evil.example", 404),
        ("", 404),
    ):
        assert viewer.post("/console/reveal", {"csrf": csrf, "page": page}).status == status, page


def test_who_is_not_masked_sees_no_button(tenant: Caller, people: SignIn) -> None:
    page, analyst = decided(tenant), people("analyst")
    assert EMAIL in analyst.get(page).text
    assert "/console/reveal" not in analyst.get(page).text
    assert revealing(analyst, page) == page


@pytest.mark.parametrize(
    "page",
    [
        f"entities/email/{EMAIL}",
        "entities/customer/customer-reveal-77",
        "entities/device/fp-reveal-0001",
        "entities/ip/203.0.113.77",
        "sessions/session-reveal-77",
        "decisions?customer=customer-reveal-77&decision=approve",
        f"decisions?search={EMAIL}&ip=203.0.113.77&device=fp-reveal-0001&sessionId=session-reveal-77",
        "search?q=reveal-77",
    ],
)
def test_what_a_viewer_typed_is_a_token_in_the_page(page: str, tenant: Caller, people: SignIn) -> None:
    decided(tenant)
    viewer, page = people("viewer"), f"/console/{page}"
    masked = viewer.get(page)
    assert masked.status == 200
    for value in (EMAIL, "reveal-77", "fp-reveal-0001", "203.0.113.77"):
        assert value not in unquote(masked.text), value
    named = re.search(r'name="page" value="([^"]+)"', masked.text)
    assert named is not None
    shown = viewer.get(revealing(viewer, html.unescape(named[1])))
    assert (shown.status, "Personal data is shown on this page" in shown.words) == (200, True)
