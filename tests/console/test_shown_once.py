"""Secrets are shown once, by the page that a form leads to: reloading it makes nothing and shows nothing."""

from urllib.parse import urlsplit

import pytest

from tests.console.visitor import PageAnswer, Visitor, make_user, visitor_of
from tests.live import Service

SETTINGS = "/console/settings"
USERS = f"{SETTINGS}/users"
WEBHOOKS = "/console/webhooks"
COOKIE = "vettance_shown"


@pytest.fixture(scope="module")
def own(service: Service) -> str:
    """An organisation of these tests."""
    return service.new_tenant("Shown once")[0]


@pytest.fixture(scope="module")
def admin(service: Service, own: str) -> Visitor:
    return visitor_of(service, own, "admin")


def make(visitor: Visitor, kind: str) -> PageAnswer:
    """Send the form that makes something of a kind."""
    if kind == "key":
        return visitor.submit(SETTINGS, f"{SETTINGS}/keys", name="the only one", scope="decide")
    if kind == "link":
        return visitor.submit(USERS, USERS, email="the-only-one@example.com", role="viewer")
    hook = {"url": "https://hooks.example.com/the-only-one", "eventType": "EVENT_RISK_EVALUATED"}
    return visitor.submit(WEBHOOKS, WEBHOOKS, **hook)


@pytest.mark.parametrize(
    ("kind", "begins", "rows"),
    [("key", "vtc_test_", SETTINGS), ("link", "/console/enter/", USERS), ("webhook", "whsec_", WEBHOOKS)],
)
def test_reloading_the_page_with_a_secret_makes_no_other_and_shows_it_no_more(
    admin: Visitor, kind: str, begins: str, rows: str
) -> None:
    made = make(admin, kind)
    assert begins not in made.location
    assert begins not in admin.cookies[COOKIE]
    first = admin.follow(made)
    assert "not shown again" in first.words
    assert begins in first.text.partition('class="panel made"')[2].partition("</section>")[0]
    again = admin.get(made.location)
    assert "not shown again" not in again.words
    assert COOKIE not in admin.cookies
    assert (
        admin.get(rows).text.partition("<tbody>")[2].count("only-one")
        + admin.get(rows).text.count("the only one")
        == 1
    )


def test_a_secret_is_shown_to_who_made_it_on_its_page_only(
    service: Service, own: str, admin: Visitor
) -> None:
    other = visitor_of(service, own, "admin", "viewer")
    made = make(admin, "key")
    other.cookies[COOKIE] = admin.cookies[COOKIE]
    assert "not shown again" not in other.get(made.location).words
    page = admin.get("/console/profile")
    assert (page.status, "not shown again" in page.words) == (200, False)


def test_a_secret_is_not_shown_among_what_another_tenant_has(service: Service, own: str) -> None:
    second = service.new_tenant("Shown once, too")[0]
    make_user(service, "both@example.com", own, "admin")
    service.cli("user", "set", "both@example.com", "--tenant", second, "--role", "admin")
    both = Visitor(service.base_url)
    assert both.sign_in("both@example.com").status == 303
    service.wait_for(lambda: both.get(f"{SETTINGS}?tenant={own}").status in (200, 303))
    made = make(both, "key")
    kept = both.cookies[COOKIE]
    service.wait_for(lambda: both.get(f"/console/profile?tenant={second}").status == 200)
    both.cookies[COOKIE] = kept
    assert "not shown again" not in both.get(f"{made.location}?tenant={second}").words
    both.cookies[COOKIE] = kept
    assert "not shown again" in both.get(f"{made.location}?tenant={own}").words


def test_the_cookie_of_a_secret_ends_with_what_it_is_good_for(admin: Visitor) -> None:
    assert "; Max-Age=300" in make(admin, "key").headers["set-cookie"]


def test_a_cookie_that_nobody_sealed_shows_nothing(admin: Visitor) -> None:
    for wrong in ("~", "~AAAA", "plain", "~" + "A" * 400):
        admin.cookies[COOKIE] = wrong
        page = admin.get(SETTINGS)
        assert (page.status, "not shown again" in page.words) == (200, False)


def test_a_test_of_a_webhook_is_sent_once_and_its_answer_is_shown(admin: Visitor) -> None:
    made = admin.submit(WEBHOOKS, WEBHOOKS, url="https://nobody.invalid/x", eventType="REVIEW_SETTLED")
    tested = admin.submit(made.location, f"{made.location}/test")
    assert urlsplit(tested.location).path == made.location
    assert "could not be resolved" in admin.follow(tested).words
    assert "could not be resolved" not in admin.get(tested.location).words
