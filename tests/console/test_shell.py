"""The shell of the console: who gets in, what every page carries, and what a change must bring with it."""

import re
import time

import pytest

from tests.console.conftest import SignIn
from tests.console.visitor import PASSWORD, Visitor, make_user, visitor_of
from tests.live import Caller, Service

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; "
    "connect-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
)
UNKNOWN = "/console/decisions/evt_" + "0" * 32


@pytest.fixture
def stranger(service: Service) -> Visitor:
    return Visitor(service.base_url)


def test_a_stranger_is_led_to_the_sign_in_page_and_back(stranger: Visitor, people: SignIn) -> None:
    answer = stranger.get("/console/?span=7d")
    assert (answer.status, answer.location) == (303, "/console/sign-in?next=%2Fconsole%2F%3Fspan%3D7d")
    assert 'value="/console/?span=7d"' in stranger.get(answer.location).text
    people("analyst")


def test_the_overview_renews_itself_without_using_the_session(
    service: Service, tenant: Caller, stranger: Visitor
) -> None:
    for number in range(3):
        tenant.post(
            "/api/v1/decisions/evaluate", {"eventName": "login", "customer": {"externalId": f"o-{number}"}}
        )
    visitor = visitor_of(service, tenant.id, "analyst", "auditor")
    mine = f"(SELECT id FROM user_account WHERE email = 'analyst-auditor@{tenant.id[-12:]}.example')"
    page = visitor.get("/console/?span=1h")
    assert 'id="live" hx-get="/console/?span=1h" hx-trigger="every 5s"' in page.text
    for words in ("decisions a second", "Time to decide", "Model in force", "Queue"):
        assert words in page.words
    old_ms = int(time.time() * 1000) - 10 * 60_000
    service.rows(f"UPDATE console_session SET seen_at_ms = {old_ms} WHERE user_id = {mine}")
    poll = {"HX-Request": "true", "HX-Trigger": "live"}
    assert visitor.get("/console/?span=1h", **poll).status == 200
    assert service.rows(f"SELECT 1 FROM console_session WHERE seen_at_ms = {old_ms}")
    service.rows(f"UPDATE console_session SET seen_at_ms = {old_ms - 30 * 60_000} WHERE user_id = {mine}")
    ended = visitor.get("/console/?span=1h", **poll, HX_Current_URL=f"{service.base_url}/console/?span=1h")
    assert ended.status == 303
    signing = visitor.get(ended.location, **poll)
    assert signing.headers["hx-redirect"] == "/console/sign-in?next=%2Fconsole%2F%3Fspan%3D1h"


def test_signing_in_leads_to_where_one_wanted_to_go(service: Service, tenant: Caller) -> None:
    make_user(service, "next@example.com", tenant.id, "viewer")
    visitor = Visitor(service.base_url)
    sent = {"email": "next@example.com", "password": PASSWORD, "next": "/console/?span=7d"}
    answer = visitor.post("/console/sign-in", sent)
    assert (answer.status, answer.location) == (303, "/console/?span=7d")
    assert visitor.get(answer.location).status == 200


@pytest.mark.parametrize(
    "target",
    [
        *("https://evil.example/", "//evil.example/", "/\\evil.example", "/console//evil.example", "/api/v1"),
        *("/console/\n//evil.example", "javascript:alert(1)", "/console/\\..", "console/"),
    ],
)
def test_signing_in_leads_nowhere_else(service: Service, tenant: Caller, people: SignIn, target: str) -> None:
    people("viewer")
    visitor = Visitor(service.base_url)
    email = f"viewer@{tenant.id[-12:]}.example"
    answer = visitor.post("/console/sign-in", {"email": email, "password": PASSWORD, "next": target})
    assert (answer.status, answer.location) == (303, "/console/")


def test_a_wrong_password_is_refused_without_saying_what_was_wrong(service: Service, tenant: Caller) -> None:
    make_user(service, "known@example.com", tenant.id, "viewer")
    wrong = Visitor(service.base_url).sign_in("known@example.com", "not the password at all")
    unknown = Visitor(service.base_url).sign_in("nobody@example.com", "not the password at all")
    assert wrong.status == unknown.status >= 400
    assert wrong.text.replace("known@", "@") == unknown.text.replace("nobody@", "@")
    assert "set-cookie" not in wrong.headers


def test_signing_out_ends_the_session(service: Service, tenant: Caller) -> None:
    make_user(service, "leaver@example.com", tenant.id, "analyst")
    visitor = Visitor(service.base_url)
    visitor.sign_in("leaver@example.com")
    kept = dict(visitor.cookies)
    answer = visitor.submit("/console/", "/console/sign-out")
    assert (answer.status, answer.location) == (303, "/console/sign-in?notice=signed-out")
    assert visitor.cookies == {}
    visitor.cookies = kept
    assert visitor.get("/console/").status == 303


@pytest.mark.parametrize("path", ["/console/", "/console/nowhere", UNKNOWN])
def test_every_page_carries_the_guards(people: SignIn, path: str) -> None:
    headers = people("analyst").get(path).headers
    assert headers["content-security-policy"] == POLICY
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "same-origin"
    assert headers["cache-control"] == "no-store"


def test_no_page_has_a_script_or_a_style_in_it(people: SignIn) -> None:
    text = people("analyst", "admin").get("/console/").text
    assert not re.search(r"<script(?![^>]* src=)|<style| style=| on[a-z]+=", text)
    assert not re.search(r'(?:src|href|action)="(?!/console/|#)', text)


def test_static_files_are_named_by_their_content_and_kept_for_ever(people: SignIn, stranger: Visitor) -> None:
    page = people("viewer").get("/console/").text
    names = re.findall(r'(?:src|href)="(/console/static/[^"]+)"', page)
    assert len(names) >= 3
    for name in names:
        answer = stranger.get(name)
        assert answer.status == 200
        assert answer.headers["cache-control"] == "public, max-age=31536000, immutable"
        assert re.search(r"\.[0-9a-f]{12}\.\w+$", name)
    assert stranger.get(names[0].replace(".", ".0", 1)).status in (303, 404)


def test_the_first_page_weighs_little(people: SignIn, stranger: Visitor) -> None:
    page = people("analyst", "admin").get("/console/")
    names = re.findall(r'(?:src|href)="(/console/static/[^"]+)"', page.text)
    assert page.size + sum(stranger.get(name).size for name in names) <= 60_000


@pytest.mark.parametrize(
    ("origin", "token"),
    [
        ("", "wrong"),
        ("", ""),
        (None, "right"),
        ("null", "right"),
        ("https://evil.example", "right"),
        ("http://127.0.0.1", "right"),
    ],
)
def test_a_change_needs_our_origin_and_the_token_of_its_session(
    people: SignIn, origin: str | None, token: str
) -> None:
    visitor = people("analyst")
    csrf = visitor.get("/console/").csrf if token == "right" else token
    assert visitor.post("/console/sign-out", {"csrf": csrf}, origin=origin).status == 403
    assert visitor.get("/console/").status == 200


def test_the_token_of_another_session_is_refused(people: SignIn, service: Service, tenant: Caller) -> None:
    token = people("analyst").get("/console/").csrf
    other = people("viewer")
    assert other.post("/console/sign-out", {"csrf": token}).status == 403


def test_what_is_not_there_and_what_is_another_tenants_look_the_same(people: SignIn, other: Caller) -> None:
    event = {"eventName": "user.login", "customer": {"externalId": "theirs"}}
    theirs = other.post("/api/v1/decisions/evaluate", event).json["correlationIds"]["eventId"]
    visitor = people("analyst")
    missing, foreign = visitor.get(UNKNOWN), visitor.get(f"/console/decisions/{theirs}")
    assert missing.status == foreign.status == 404
    assert missing.text == foreign.text


def test_a_path_that_is_no_page_is_not_found(people: SignIn) -> None:
    assert people("analyst").get("/console/nowhere").status == 404
    assert people("analyst").post("/console/", {"csrf": "x"}).status == 405


def test_a_partial_request_gets_the_content_without_its_frame(people: SignIn) -> None:
    whole = people("analyst").get("/console/")
    part = people("analyst").get("/console/", HX_Request="true")
    assert "<!doctype html>" in whole.text
    assert "<html" not in part.text
    assert "<h1>Overview</h1>" in part.text


def test_the_tenant_is_chosen_by_the_address_and_kept(
    service: Service, tenant: Caller, other: Caller
) -> None:
    visitor = visitor_of(service, tenant.id, "viewer", "auditor")
    email = f"viewer-auditor@{tenant.id[-12:]}.example"
    assert visitor.get(f"/console/?tenant={other.id}").status == 404
    service.cli("user", "set", email, "--tenant", other.id, "--role", "viewer")
    visitor.sign_in(email)
    assert "Other" in visitor.get(f"/console/?tenant={other.id}").words
    assert f'value="{other.id}" selected' in visitor.get("/console/").text


def test_a_head_request_has_no_body(people: SignIn) -> None:
    answer = people("viewer").head("/console/")
    assert (answer.status, answer.text) == (200, "")


def test_the_console_can_be_switched_off_or_have_an_address_of_its_own(own_service: Service) -> None:
    own_service.stop()
    own_service.env["VETTANCE_CONSOLE"] = "off"
    own_service.start()
    assert own_service.get("/console/").status == 404
    own_service.stop()
    own_service.env["VETTANCE_CONSOLE"] = "127.0.0.1:0"
    own_service.start()
    assert own_service.get("/console/").status == 404


def test_a_page_that_is_not_there_has_the_navigation_of_who_is_signed_in(people: SignIn) -> None:
    page = people("viewer").get("/console/nowhere")
    assert (page.status, 'aria-label="Places"' in page.text) == (404, True)


def test_a_page_says_which_roles_may_see_it(people: SignIn) -> None:
    assert (
        "This page needs the role analyst, lead, admin or auditor."
        in people("viewer").get("/console/queue").words
    )
