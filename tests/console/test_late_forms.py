"""Forms that come after their session: nothing is done, and only who typed them sees them again."""

import re
import time
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest

from tests.console.visitor import PASSWORD, PageAnswer, Visitor, make_user, visitor_of
from tests.live import Caller, Service
from tests.reviews.conftest import held, holding_tenant
from vettance.console.refused_forms import SECRET_FIELDS

NOTE = "He called <twice>, and knew the card."


@pytest.fixture(scope="module")
def holding(service: Service, tmp_path_factory: pytest.TempPathFactory) -> Caller:
    return holding_tenant(service, tmp_path_factory.mktemp("rules"))


@pytest.fixture
def page(holding: Caller) -> str:
    """The page of a decision with an open review."""
    return f"/console/decisions/{held(holding)}"


def idle_out(service: Service, email: str) -> None:
    """Let the time of somebody's sessions be over."""
    old_ms = int(time.time() * 1000) - 14 * 3_600_000
    mine = f"(SELECT id FROM user_account WHERE email = '{email}')"
    service.rows(
        f"UPDATE console_session SET seen_at_ms = {old_ms}, created_at_ms = {old_ms} WHERE user_id = {mine}"
    )


def ann_at(service: Service, holding: Caller, name: str) -> tuple[Visitor, str]:
    email = f"{name}@late.example"
    make_user(service, email, holding.id, "analyst", "editor")
    visitor = Visitor(service.base_url)
    assert visitor.sign_in(email).status == 303
    service.wait_for(lambda: visitor.get("/console/profile").status != 404)
    return visitor, email


def send_late(
    service: Service, visitor: Visitor, email: str, page: str, path: str, **fields: str
) -> PageAnswer:
    """Send a form of a page whose session has ended meanwhile."""
    csrf = visitor.get(page).csrf
    idle_out(service, email)
    return visitor.post(path, {"csrf": csrf, **fields}, Referer=f"{visitor.base_url}{page}")


def next_of(answer: PageAnswer) -> str:
    assert answer.status == 303
    where = urlsplit(answer.location)
    assert where.path == "/console/sign-in"
    return parse_qs(where.query)["next"][0]


def sign_in_to(visitor: Visitor, email: str, target: str) -> PageAnswer:
    """Sign in by the form of the sign-in page, and follow where it leads."""
    answer = visitor.post("/console/sign-in", {"email": email, "password": PASSWORD, "next": target})
    assert (answer.status, answer.location) == (303, target)
    return visitor.get(target)


def test_a_form_sent_after_its_session_is_shown_again_and_done_only_when_sent_again(
    service: Service, holding: Caller, page: str
) -> None:
    ann, email = ann_at(service, holding, "again")
    late = send_late(service, ann, email, page, f"{page}/label", label="FRAUD", notes=NOTE)
    asked = ann.get(late.location)
    assert "what you sent was not done" in asked.words
    assert NOTE not in late.location + asked.text
    here = sign_in_to(ann, email, next_of(late))
    assert here.status == 200
    form = next(one for one in re.findall(r"<form\b.*?</form>", here.text, re.DOTALL) if "called" in one)
    assert "This was not done." in form
    assert "He called &lt;twice&gt;" in form
    assert '<option value="FRAUD" selected>' in form
    assert "FRAUD" not in str(holding.get(f"/api/v1/{page.removeprefix('/console/')}").json["feedback"])
    assert not re.search(r'(?:href|value)="[^"]*kept=', here.text)

    kept = re.search(r'name="kept" value="([^"]+)"', form)
    assert kept is not None
    sent = {"csrf": here.csrf, "kept": kept[1], "label": "FRAUD", "notes": NOTE}
    assert ann.post(f"{page}/label", sent).status == 303
    once_more = ann.get(next_of(late))
    assert "This was not done." not in once_more.words
    assert "its form cannot be filled again" in once_more.words


def test_somebody_else_who_signs_in_there_sees_nothing_of_it(
    service: Service, holding: Caller, page: str
) -> None:
    ann, email = ann_at(service, holding, "first")
    make_user(service, "second@late.example", holding.id, "analyst")
    late = send_late(service, ann, email, page, f"{page}/label", label="FRAUD", notes=NOTE)
    other = sign_in_to(ann, "second@late.example", next_of(late))
    assert other.status == 200
    assert "called" not in other.text
    assert "its form cannot be filled again" in other.words
    assert sign_in_to(ann, email, next_of(late)).text.count("He called &lt;twice&gt;") == 1


def test_what_is_kept_is_sealed_without_passwords_and_codes(service: Service, holding: Caller) -> None:
    ann, email = ann_at(service, holding, "secret")
    secret = {"old": PASSWORD, "new": "another horse battery", "again": "another horse battery"}
    late = send_late(service, ann, email, "/console/profile", "/console/profile/password", **secret)
    assert "kept" not in next_of(late)
    assert "notice=form-not-done" in late.location
    assert next_of(late) == "/console/profile"
    folder = Path(__file__).parents[2] / "src/vettance/console/templates"
    for template in folder.glob("*.html"):
        text = template.read_text()
        for name in re.findall(r'field\("(\w+)"[^)]*(?:type="password"|one-time-code)', text):
            assert name in SECRET_FIELDS, f"{template.name}: {name}"


def test_the_erasure_of_a_customer_forgets_what_is_kept(service: Service, holding: Caller, page: str) -> None:
    ann, email = ann_at(service, holding, "erased")
    late = send_late(service, ann, email, page, f"{page}/label", label="FRAUD", notes=NOTE)
    kept = "SELECT COUNT(*) FROM console_session WHERE kept_form IS NOT NULL AND user_id = "
    mine = f"(SELECT id FROM user_account WHERE email = '{email}')"
    assert service.rows(kept + mine) == [(1,)]
    login = {"eventName": "user.login", "eventCategory": "AUTHENTICATION"}
    holding.post("/api/v1/decisions/evaluate", login | {"customer": {"externalId": "c-erased"}})
    service.cli("customer", "erase", "--tenant", holding.id, "--external-id", "c-erased", "--json")
    assert service.rows(kept + mine) == [(0,)]
    assert "called" not in sign_in_to(ann, email, next_of(late)).text


def test_a_form_of_a_session_that_was_ended_is_not_kept_and_leads_back(
    service: Service, holding: Caller, page: str
) -> None:
    ann, email = ann_at(service, holding, "ended")
    csrf = ann.get(page).csrf
    cookies = dict(ann.cookies)
    ann.submit("/console/", "/console/sign-out")
    ann.cookies = cookies
    fields = {"csrf": csrf, "label": "FRAUD", "notes": NOTE}
    late = ann.post(f"{page}/label", fields, Referer=f"{ann.base_url}{page}")
    assert next_of(late) == page
    assert "what you sent was not done" in ann.get(late.location).words
    assert ann.cookies == {}
    stranger = Visitor(service.base_url).post(f"{page}/label", fields)
    assert next_of(stranger) == page
    # Another site gets nothing kept in somebody's name, nor does a form without the token of the session.
    bea, email = ann_at(service, holding, "foreign")
    csrf = bea.get(page).csrf
    idle_out(service, email)
    for origin, token in (("https://evil.example", csrf), ("", "made-up")):
        sent = {"csrf": token, "label": "FRAUD", "notes": NOTE}
        assert "kept" not in bea.post(f"{page}/label", sent, origin).location


def test_an_editor_that_checks_late_keeps_the_text_and_a_claim_leaves_its_page(
    service: Service, holding: Caller, page: str
) -> None:
    ann, email = ann_at(service, holding, "editor")
    edit = ann.get("/console/rules/edit")
    base = re.search(r'name="base" value="(\d+)"', edit.text)
    assert base is not None
    idle_out(service, email)
    place = {"Referer": f"{ann.base_url}/console/rules/edit", "HX-Request": "true"}
    claim = ann.post(f"{page}/claim", {"csrf": edit.csrf}, **place)
    assert (claim.status, "set-cookie" in claim.headers) == (401, False)
    typed = {"csrf": edit.csrf, "base": base[1], "origin": "1", "document": "rules: # typed\n", "note": "Why"}
    late = ann.post("/console/rules/check", typed, **place)
    signing = ann.get(late.location, **place)
    assert "notice=form-kept" in signing.headers["hx-redirect"]
    typed["base"] = "0"
    late = ann.post("/console/rules/save", typed, Referer=place["Referer"])
    here = sign_in_to(ann, email, next_of(late))
    assert "rules: # typed" in here.text
    assert 'value="Why"' in here.text
    # What it was written upon stays: whoever was faster meanwhile is still told.
    assert 'name="base" value="0"' in here.text


def test_a_form_of_the_session_before_is_shown_again(service: Service, holding: Caller, page: str) -> None:
    ann, email = ann_at(service, holding, "tabs")
    csrf = ann.get(page).csrf
    assert ann.sign_in(email).status == 303  # In another tab.
    fields = {"csrf": csrf, "label": "FRAUD", "notes": NOTE}
    answer = ann.post(f"{page}/label", fields, Referer=f"{ann.base_url}{page}")
    assert answer.status == 403
    assert "This was not done." in answer.words
    assert "He called &lt;twice&gt;" in answer.text
    assert ann.post(f"{page}/label", {**fields, "csrf": answer.csrf}).status == 303


def test_what_a_page_asks_for_by_itself_does_not_use_the_session(service: Service, tenant: Caller) -> None:
    visitor = visitor_of(service, tenant.id, "analyst", "admin")
    mine = f"(SELECT id FROM user_account WHERE email = 'analyst-admin@{tenant.id[-12:]}.example')"
    old_ms = int(time.time() * 1000) - 10 * 60_000
    service.rows(f"UPDATE console_session SET seen_at_ms = {old_ms} WHERE user_id = {mine}")
    visitor.post("/console/decisions/evt_none/claim", {"csrf": "x"}, HX_Request="true")
    visitor.get("/console/queue", HX_Request="true", HX_Trigger="backtest", HX_Target="backtest")
    assert service.rows(f"SELECT 1 FROM console_session WHERE seen_at_ms = {old_ms}")
    visitor.post("/console/rules/check", {"csrf": "x"}, HX_Request="true", HX_Target="check")
    assert not service.rows(f"SELECT 1 FROM console_session WHERE seen_at_ms = {old_ms}")
