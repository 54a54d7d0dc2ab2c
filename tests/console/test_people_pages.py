"""The pages of people: links, passwords, second factors, profiles, users, keys, settings, the audit log."""

import base64
import json
import re
import time

import pytest

from tests.console.conftest import SignIn
from tests.console.visitor import PASSWORD, PageAnswer, Visitor, make_user, visitor_of
from tests.live import Caller, Service
from vettance.console.profile_page import browser_words
from vettance.people.totp import code_at


def link_of(page: PageAnswer) -> str:
    found = re.search(r"/console/enter/[\w-]{43}", page.text)
    assert found is not None, page.words
    return found[0]


def code_of(page: PageAnswer, later: int = 0) -> str:
    """The code that an app shows which was given the key of a page."""
    found = re.search(r"<code>([A-Z2-7]{32})</code>", page.text)
    assert found is not None, page.words
    return code_at(base64.b32decode(found[1]), int(time.time()) // 30 + later)


def test_a_link_may_be_opened_often_and_is_taken_once(service: Service, tenant: Caller) -> None:
    made = service.cli(
        "user", "create", "new@example.com", "--tenant", tenant.id, "--role", "viewer", "--json"
    )
    visitor = Visitor(service.base_url)
    for _ in range(2):
        assert "new@example.com" in visitor.get(made["link"]).words
    short = visitor.post(made["link"], {"password": "short", "again": "short"})
    assert short.status == 422
    other = visitor.post(made["link"], {"password": PASSWORD, "again": PASSWORD + "!"})
    assert "is not the same password" in other.words
    answer = visitor.post(made["link"], {"password": PASSWORD, "again": PASSWORD})
    assert (answer.status, answer.location) == (303, "/console/")
    assert visitor.get("/console/").status == 200
    late = Visitor(service.base_url)
    assert late.get(made["link"]).status == 404
    assert late.post(made["link"], {"password": PASSWORD, "again": PASSWORD}).status == 404
    assert late.sign_in("new@example.com").status == 303


def test_a_link_that_never_was_looks_like_one_that_is_taken(service: Service) -> None:
    answer = Visitor(service.base_url).get("/console/enter/" + "A" * 43)
    assert answer.status == 404
    assert "This link works no more" in answer.words


def test_a_second_factor_is_set_up_asked_for_and_taken_away(service: Service, tenant: Caller) -> None:
    make_user(service, "factor@example.com", tenant.id, "analyst")
    visitor = Visitor(service.base_url)
    visitor.sign_in("factor@example.com")
    page = visitor.get("/console/second-factor/set-up")
    assert 'class="qr"' in page.text
    wrong = visitor.post(
        "/console/second-factor/set-up", {"csrf": page.csrf, "tenant": tenant.id, "code": "000000"}
    )
    assert wrong.status == 422
    done = visitor.follow(
        visitor.post("/console/second-factor/set-up", {"csrf": page.csrf, "code": code_of(page)})
    )
    codes = re.findall(r"<code>(\w{4}-\w{4}-\w{4})</code>", done.text)
    assert len(codes) == 10

    again = Visitor(service.base_url)
    assert again.sign_in("factor@example.com").location.startswith("/console/second-factor")
    assert again.get("/console/decisions").location.startswith("/console/second-factor")
    asked = again.get("/console/second-factor")
    refused = again.post("/console/second-factor", {"csrf": asked.csrf, "code": "000000"})
    assert refused.status == 401
    let_in = again.post(
        "/console/second-factor", {"csrf": asked.csrf, "code": codes[0], "next": "/console/lists"}
    )
    assert (let_in.status, let_in.location) == (303, "/console/lists")
    assert again.get("/console/lists").status == 200
    removed = again.submit("/console/profile", "/console/second-factor/remove", password=PASSWORD)
    assert removed.status == 303
    assert Visitor(service.base_url).sign_in("factor@example.com").location == "/console/"


def test_an_organisation_that_demands_a_second_factor_gets_it_first(service: Service) -> None:
    strict, _ = service.new_tenant("Strict")
    service.cli("tenant", "set", strict, "--second-factor", "on", "--json")
    visitor = visitor_of(service, strict, "analyst")
    assert visitor.get("/console/decisions").location.startswith("/console/second-factor")
    page = visitor.get("/console/second-factor")
    assert "asks everybody for a second factor" in page.words
    visitor.post("/console/second-factor/set-up", {"csrf": page.csrf, "code": code_of(page)})
    assert visitor.get("/console/decisions").status == 200


def test_a_profile_is_changed_and_says_what_it_does_not_take(service: Service, tenant: Caller) -> None:
    visitor = visitor_of(service, tenant.id, "auditor", "analyst")
    page = visitor.submit(
        "/console/profile", "/console/profile", name="Ada", theme="dark", timeZone="Europe/Berlin"
    )
    assert page.status == 303
    shown = visitor.get("/console/profile")
    assert 'data-theme="dark"' in shown.text
    assert "Ada" in shown.words
    bad = visitor.submit(
        "/console/profile", "/console/profile", name="Ada", theme="dark", timeZone="Mars/Base"
    )
    assert bad.status == 422
    assert "Mars/Base" in bad.text
    assert "is not the name of a time zone" in bad.words
    wrong = visitor.submit(
        "/console/profile", "/console/profile/password", old="wrong wrong wrong", new=PASSWORD
    )
    assert "is not your password" in wrong.words


def test_a_changed_password_ends_the_other_sessions(service: Service, tenant: Caller) -> None:
    make_user(service, "change@example.com", tenant.id, "viewer")
    first, second = Visitor(service.base_url), Visitor(service.base_url)
    first.sign_in("change@example.com")
    second.sign_in("change@example.com")
    new = "another horse battery staple"
    assert first.submit("/console/profile", "/console/profile/password", old=PASSWORD, new=new).status == 303
    assert first.get("/console/").status == 200
    assert second.get("/console/").status == 303
    assert Visitor(service.base_url).sign_in("change@example.com", new).status == 303


def test_signing_in_anew_ends_the_session_before_and_begins_another(service: Service, tenant: Caller) -> None:
    make_user(service, "again@example.com", tenant.id, "viewer")
    visitor, before = Visitor(service.base_url), Visitor(service.base_url)
    visitor.sign_in("again@example.com")
    before.cookies = dict(visitor.cookies)
    typed = {"email": "again@example.com", "password": PASSWORD}
    for origin in ("https://evil.example", "null", None):
        assert visitor.post("/console/sign-in", typed, origin=origin).status == 403
    assert visitor.cookies == before.cookies
    assert visitor.sign_in("again@example.com", "wrong wrong wrong").status == 401
    assert before.get("/console/").status == 200
    assert visitor.sign_in("again@example.com").location == "/console/"
    assert visitor.cookies != before.cookies
    assert visitor.get("/console/").status == 200
    assert before.get("/console/").status == 303


def test_an_administrator_invites_changes_and_ends(service: Service, tenant: Caller, people: SignIn) -> None:
    admin = people("admin")
    users = "/console/settings/users"
    faulty = admin.submit(users, users, email="no address", role=["analyst"])
    assert (faulty.status, "is not an e-mail address" in faulty.words) == (422, True)
    invited = admin.submit(users, users, email="Team@Example.com", name="Team", role=["analyst", "lead"])
    made = admin.follow(invited)
    assert f"{service.base_url}{link_of(made)}<" in made.text
    guest = Visitor(service.base_url)
    assert guest.post(link_of(made), {"password": PASSWORD, "again": PASSWORD}).status == 303
    assert admin.submit(users, users, email="team@example.com", role=["viewer"]).status == 409
    page = admin.get(users)
    assert "team@example.com" in page.words
    (user_id,) = set(
        re.findall(rf"{users}/(usr_\w+)/roles", page.text.partition("team@example.com")[2][:4000])
    )
    assert admin.submit(users, f"{users}/{user_id}/roles", role=["viewer"]).status == 303
    assert guest.get("/console/").status == 303
    guest.sign_in("team@example.com")
    assert guest.get(users).status == 403
    assert link_of(admin.follow(admin.submit(users, f"{users}/{user_id}/link")))
    assert admin.submit(users, f"{users}/{user_id}/roles", role=["analyst", "lead"]).status == 303
    entry = people("auditor").get("/console/audit?action=roles").words
    assert "Roles viewer" in entry
    assert "Roles analyst, lead" in entry
    assert "Role analyst, lead" in people("auditor").get("/console/audit?action=users").words
    admin.submit(users, f"{users}/{user_id}/roles")
    assert guest.sign_in("team@example.com").status == 401


def test_nobody_changes_their_own_roles_or_reaches_into_another_organisation(
    service: Service, tenant: Caller, people: SignIn
) -> None:
    admin, users = people("admin"), "/console/settings/users"
    own = next(
        one["userId"]
        for one in service.cli("user", "list", "--json")
        if one["email"] == f"admin@{tenant.id[-12:]}.example"
    )
    assert admin.submit(users, f"{users}/{own}/roles", role=["viewer"]).status == 403
    other, _ = service.new_tenant("Other organisation")
    make_user(service, "both@example.com", other, "viewer")
    found = service.cli("user", "list", "--json")
    both = next(one["userId"] for one in found if one["email"] == "both@example.com")
    assert admin.submit(users, f"{users}/{both}/link").status == 404
    assert admin.submit(users, f"{users}/{both}/roles", role=["viewer"]).status == 404
    assert admin.submit(users, users, email="both@example.com", role=["viewer"]).status == 303
    assert admin.submit(users, f"{users}/{both}/link").status == 409


def test_two_administrators_who_change_the_roles_of_one_person_lose_nothing(service: Service) -> None:
    shared, _ = service.new_tenant("Shared roles")
    first, second = visitor_of(service, shared, "admin"), visitor_of(service, shared, "admin", "lead")
    make_user(service, "shared-roles@example.com", shared, "viewer")
    users = "/console/settings/users"

    def seen_by(page: str) -> tuple[str, str]:
        form = page.partition("shared-roles@example.com")[2]
        found = re.search(rf'({users}/usr_\w+/roles).*?name="seen" value="([^"]*)"', form)
        assert found is not None
        return found[1], found[2]

    (path, seen), (_, also) = (seen_by(one.get(users).text) for one in (first, second))
    assert first.submit(users, path, seen=seen, role=["viewer", "analyst"]).status == 303
    stale = second.submit(users, path, seen=also, role=["viewer", "editor"])
    assert (stale.status, "Somebody has changed the roles of this person" in stale.words) == (409, True)
    form = stale.text.partition("shared-roles@example.com")[2]
    assert re.findall(r'value="(\w+)" checked', form.partition("</form>")[0]) == ["viewer", "editor"]
    assert "analyst, viewer" in stale.words
    assert second.submit(users, path, seen=seen_by(stale.text)[1], role=["editor"]).status == 303


def test_a_key_is_shown_once_works_and_is_revoked(service: Service, tenant: Caller, people: SignIn) -> None:
    admin = people("admin")
    made = admin.follow(
        admin.submit(
            "/console/settings", "/console/settings/keys", name="checkout", scope=["decide", "rules"]
        )
    )
    found = re.search(r"vtc_test_\w{32}", made.text)
    assert found is not None
    service.wait_for(lambda: service.get("/api/v1/lists", key=found[0]).status == 200, seconds=10)
    page = admin.get("/console/settings")
    assert found[0] not in page.text
    assert "checkout" in page.words
    row = page.text.partition("checkout")[2]
    assert "decide, rules" in row.partition("</tr>")[0]
    # What can't be undone says so before it is done.
    assert "This cannot be taken back" in row.partition("</tr>")[0]
    wrong = admin.submit("/console/settings", "/console/settings/keys", scope="everything")
    assert wrong.status == 422
    revoke = re.search(r"/console/settings/keys/key_\w+/revoke", row)
    assert revoke is not None
    assert admin.submit("/console/settings", revoke[0]).status == 303
    service.wait_for(lambda: service.get("/api/v1/lists", key=found[0]).status == 401, seconds=10)
    assert admin.submit("/console/settings", revoke[0]).status == 409


def test_settings_say_how_long_data_is_kept(people: SignIn) -> None:
    page = people("auditor").get("/console/settings").words
    assert "Events, their decisions and labels for ever" in page
    assert "Deliveries of webhooks 90 days" in page


def test_settings_say_how_reviews_are_made_and_change_it(service: Service) -> None:
    desk, _ = service.new_tenant("Reviewing desk")
    admin, path = visitor_of(service, desk, "admin"), "/console/settings"
    page = admin.get(path)
    assert re.search(r'name="review_checks"[^>]* value="0"', page.text)
    seen = re.search(r'name="seen" value="(\w+)"', page.text)[1]  # type: ignore[index]
    for wrong in ("101", "-1", "many", "9" * 30):
        refused = admin.submit(path, path, seen=seen, review_checks=wrong, review_hours="48")
        assert (refused.status, "must be a whole number from 0 to 100" in refused.text.lower()) == (422, True)
        assert f'value="{wrong}"' in refused.text
    done = admin.submit(path, path, seen=seen, review_denied="on", review_checks="5", review_hours="48")
    assert done.status == 303
    told = service.cli("tenant", "show", desk, "--json")
    assert (told["reviewDenied"], told["reviewChecks"], told["reviewHours"]) == (True, 5, 48)
    assert "Second looks in a hundred" in admin.get("/console/audit").words


def test_two_administrators_who_save_at_once_lose_nothing(service: Service) -> None:
    shared, _ = service.new_tenant("Shared desk")
    first, second = visitor_of(service, shared, "admin"), visitor_of(service, shared, "admin", "lead")
    path = "/console/settings"
    seen = [re.search(r'name="seen" value="(\w+)"', one.get(path).text)[1] for one in (first, second)]  # type: ignore[index]
    assert first.submit(path, path, seen=seen[0], rule_approval="on").status == 303
    stale = second.submit(path, path, seen=seen[1], require_origin="on")
    assert stale.status == 409
    assert "Somebody has changed the settings" in stale.words
    assert re.search(r'name="require_origin" checked', stale.text)
    fresh = re.search(r'name="seen" value="(\w+)"', stale.text)[1]  # type: ignore[index]
    saved = second.submit(path, path, seen=fresh, rule_approval="on", require_origin="on")
    assert saved.status == 303
    told = service.cli("tenant", "show", shared, "--json")
    assert (told["ruleApproval"], told["requireOrigin"]) == (True, True)


def test_the_log_shows_who_did_what_and_verifies(service: Service, tenant: Caller, people: SignIn) -> None:
    admin, auditor = people("admin"), people("auditor")
    admin.submit("/console/settings", "/console/settings/keys", name="for the log")
    who = f"admin@{tenant.id[-12:]}.example"
    page = auditor.get("/console/audit?actor=admin@")
    assert who in page.words
    assert "for the log" in page.text
    assert "Made an API key" in page.words
    for asked in ("made+an+api+key", "%2Fconsole%2Fsettings%2Fkeys"):
        assert "Made an API key" in auditor.get(f"/console/audit?action={asked}").text.split("<tbody>")[1]
    assert "<tbody>" not in auditor.get("/console/audit?action=snoozed").text
    assert "vtc_test_" not in re.sub(r"…\w+|vtc_test_…\w*", "", page.text)
    checked = auditor.submit("/console/audit", "/console/audit/verify")
    assert (checked.status, checked.location) == (303, "/console/audit?notice=verified")
    exported = auditor.submit("/console/audit", "/console/audit/export")
    lines = [json.loads(line) for line in exported.text.splitlines()]
    assert {"id", "at", "actor", "tenant", "action", "subject", "before", "after"} <= set(lines[0])
    newest = auditor.get("/console/audit").words
    assert "/console/audit/export" in newest
    assert people("analyst").get("/console/audit").status == 403


@pytest.mark.parametrize(
    ("sent", "said"),
    [
        ("Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 Chrome/142.0 Safari/537.36", "Chrome on Linux"),
        ("Mozilla/5.0 (iPhone; CPU iPhone OS 18_1 like Mac OS X) Version/18.1 Safari/604.1", "Safari on iOS"),
        (
            "Mozilla/5.0 (Linux; Android 14; SM-S921B) SamsungBrowser/27.0 Chrome/125.0 Mobile Safari/537.36",
            "Samsung Internet on Android",
        ),
        ("curl/8.14.1", "curl"),
        ("python-requests/2.32", "python-requests"),
        ("", "Unknown browser"),
    ],
)
def test_a_browser_is_called_by_its_name(sent: str, said: str) -> None:
    assert browser_words(sent) == said
