"""Every route of the console: who may use it, and that nothing from outside is ever more than text."""

from typing import Any

import pytest

from tests.console.conftest import SignIn
from tests.console.visitor import Visitor, visitor_of
from tests.live import Caller, Service
from vettance.console.page import ANYBODY
from vettance.console.page_table import PAGES
from vettance.people.role import Role

#: Values for the parameters of paths; none of them is anybody's.
NOBODY = {
    "id": "evt_" + "0" * 32,
    "kind": "customer",
    "value": "nobody",
    "session": "none",
    "name": "none",
    "delivery": "dlv_0",
    "token": "A" * 43,
    "version": "0",
    "step": "propose",
    "suggestion": "sug_" + "0" * 32,
    "rule": "no-such-rule",
    "event": "no-such-event",
    "backtest": "bkt_" + "0" * 32,
}
#: What a role may do by the table of the specification; the rest is refused with 403.
READ_EVERYTHING = {"admin", "auditor"}
WORK = {"analyst", "lead"}
RULES: dict[str, set[str]] = {
    "/console/queue": WORK | READ_EVERYTHING,
    "/console/rules": {"analyst", "lead", "editor", "admin", "auditor"},
    "/console/rules/edit": {"editor", "admin"},
    "/console/models": {"analyst", "lead", "editor", "admin", "auditor"},
    "/console/models/features/edit": {"admin"},
    "/console/rules/aml/edit": {"editor", "admin"},
    "/console/aml": WORK | READ_EVERYTHING,
    "/console/webhooks": READ_EVERYTHING,
    "/console/settings": READ_EVERYTHING,
    "/console/audit": READ_EVERYTHING,
}
#: Changes that are not for those who work with decisions; what is not here is theirs alone.
CHANGES: dict[str, set[str]] = {
    "/console/webhooks": {"admin"},
    "/console/rules": {"editor", "admin"},
    "/console/rules/rollback": {"admin"},
    "/console/rules/aml/rollback": {"admin"},
    "/console/models": {"admin"},
    "/console/settings": {"admin"},
    "/console/audit": READ_EVERYTHING,
    "/console/queue/assign": {"lead"},
    "/console/queue/bulk": WORK,
    "/console/queue/bulk/{id}/approve": {"lead"},
    "/console/queue/bulk/{id}/refuse": {"lead"},
    "/console/queue/bulk/{id}/stop": WORK,
    "/console/profile": {role.value for role in Role},
    "/console/reveal": {role.value for role in Role},
    "/console/second-factor/remove": {role.value for role in Role},
    "/console/reports": {role.value for role in Role},
    "/console/aml/cases/{id}/export": WORK | READ_EVERYTHING,
    "/console/aml/screenings/{id}/export": WORK | READ_EVERYTHING,
}
ROUTES = [page for page in PAGES if page.roles != ANYBODY]


def allowed(method: str, path: str) -> set[str]:
    table = RULES if method == "GET" else CHANGES
    found = [roles for start, roles in sorted(table.items()) if path.startswith(start)]
    everybody = {role.value for role in Role}
    if found:
        return max(found, key=lambda roles: -len(roles)) if path not in table else table[path]
    return everybody if method == "GET" else WORK


def filled(path: str) -> str:
    for name, value in NOBODY.items():
        path = path.replace(f"{{{name}}}", value)
    return path


@pytest.fixture(scope="module")
def csrf(people: SignIn) -> dict[str, str]:
    return {role.value: people(role.value).get("/console/profile").csrf for role in Role}


@pytest.mark.parametrize("role", [role.value for role in Role])
@pytest.mark.parametrize("page", ROUTES, ids=lambda page: f"{page.method} {page.path}")
def test_a_route_is_for_the_roles_of_the_table_and_no_other(
    page: Any, role: str, people: SignIn, csrf: dict[str, str]
) -> None:
    visitor, path = people(role), filled(page.path)
    if page.method == "GET":
        status = visitor.get(path).status
    elif page.path == "/console/profile/sessions/{id}/end" or page.path == "/console/second-factor/remove":
        return
    else:
        status = visitor.post(path, {"csrf": csrf[role]}).status
    if role in allowed(page.method, page.path):
        assert status != 403 or page.path.startswith(("/console/aml", "/console/rules/aml")), page.path
    else:
        assert status == 403, (page.path, status)


@pytest.mark.parametrize("page", ROUTES, ids=lambda page: f"{page.method} {page.path}")
def test_nobody_gets_in_without_signing_in(service: Service, page: Any) -> None:
    stranger = Visitor(service.base_url)
    path = filled(page.path)
    answer = stranger.get(path) if page.method == "GET" else stranger.post(path, {})
    assert (answer.status, answer.location.partition("?")[0]) == (303, "/console/sign-in")


@pytest.mark.parametrize("page", [one for one in ROUTES if one.method == "POST"], ids=lambda page: page.path)
def test_no_change_without_a_form_of_ours(people: SignIn, csrf: dict[str, str], page: Any) -> None:
    visitor, path = people("admin", "lead", "analyst"), filled(page.path)
    assert visitor.post(path, {"outcome": "deny"}).status == 403
    token = visitor.get("/console/profile").csrf
    assert visitor.post(path, {"csrf": token}, origin="https://evil.example").status == 403
    assert visitor.post(path, {"csrf": token}, origin=None).status == 403
    assert visitor.post(path, {"csrf": csrf["viewer"]}).status == 403


HOSTILE = (
    *(
        "<script>alert(1)</script>",
        '"><img src=x onerror=alert(1)>',
        "'><svg/onload=alert(1)>",
        "<b>bold</b>",
    ),
    *("javascript:alert(1)", "data:text/html,<script>alert(1)</script>", "</title><script>alert(1)</script>"),
    *(
        "</textarea><script>alert(1)</script>",
        "<!-- -->",
        "]]>",
        "{{ 7 * 7 }}",
        "{% raw %}",
        "${7*7}",
        "<%= 7 %>",
    ),
    *(
        "&lt;script&gt;",
        "&#x3c;script&#x3e;",
        "%3Cscript%3E",
        "\\u003cscript\\u003e",
        "<style>*{display:none}</style>",
    ),
    *(
        "<iframe src=javascript:alert(1)>",
        "<a href=javascript:alert(1)>x</a>",
        "<form action=//evil.example>",
    ),
    *(
        "<meta http-equiv=refresh content=0;url=//evil.example>",
        "<base href=//evil.example>",
        "<link rel=stylesheet>",
    ),
    *(
        "<object data=x>",
        "<embed src=x>",
        "<video onerror=alert(1)>",
        "<details ontoggle=alert(1) open>",
        "<math>",
    ),
    *(
        "=cmd|'/c calc'!A0",
        "+1+1",
        "-1+1",
        "@SUM(1)",
        "' OR 1=1 --",
        "'; DROP TABLE event; --",
        "../../etc/passwd",
    ),
    *("\u202etxt.exe", "\u200b", "\ufeff", "\u00e9", "\ufdfa", "Ω≈ç√∫", "田中さん", "ابن سينا", "עברית"),
    *(
        "x" * 500,
        " " * 20 + "x",
        "a\tb",
        "a  b",
        "NULL",
        "None",
        "undefined",
        "NaN",
        "true",
        "0",
        "-0",
        "1e309",
    ),
    *(
        "hx-get=/console/sign-out",
        "data-key=a",
        "<div hx-post=/console/queue/next hx-trigger=load>",
        "[object Object]",
    ),
)
assert len(HOSTILE) >= 60
#: What would be ours to write: none of these may come out of a text of somebody.
DANGEROUS = (
    "<script>alert",
    "<img src=x",
    "<svg/onload",
    "<iframe src",
    "<style>*",
    "<div hx-post",
    "<form action=//",
)


@pytest.fixture(scope="module")
def places(service: Service, tenant: Caller) -> list[str]:
    """Pages full of hostile texts: events, lists, notes, and the names of people."""
    found = ["/console/", "/console/decisions", "/console/lists", "/console/queue", "/console/reports"]
    for number, text in enumerate(HOSTILE):
        body = {
            "eventName": text[:200],
            "customer": {"externalId": f"h{number}-{text}"[:200], "metadata": {text[:100]: text}},
            "device": {"fingerprint": f"h{number}-{text}"[:200]},
            "sessionId": f"h{number}-{text}"[:200],
            "metadata": {"note": text, "currency": text[:3]},
        }
        answer = tenant.post("/api/v1/decisions/evaluate", body)
        if answer.status != 200:
            continue
        decision = answer.json["correlationIds"]["eventId"]
        found.append(f"/console/decisions/{decision}")
        tenant.post(f"/api/v1/feedback/decision/{decision}", {"label": "LEGIT", "notes": text})
        tenant.post(
            "/api/v1/lists",
            {"type": "DEVICE", "value": f"h{number}-{text}"[:200], "listType": "block", "reason": text},
        )
    return found


def test_hostile_texts_are_text_on_every_page(service: Service, tenant: Caller, places: list[str]) -> None:
    visitor = visitor_of(service, tenant.id, "analyst", "auditor", "lead")
    named = visitor.submit(
        "/console/profile", "/console/profile", name="<script>alert(1)</script>", theme="auto", timeZone="UTC"
    )
    assert named.status in (303, 422)
    assert len(places) > 50
    shown = 0
    for path in (*places, "/console/audit", "/console/search?q=%3Cscript%3Ealert(1)%3C/script%3E"):
        page = visitor.get(path)
        assert page.status == 200, path
        for text in DANGEROUS:
            assert text not in page.text, (path, text)
        assert 'href="javascript:' not in page.text, path
        shown += "&lt;script&gt;alert(1)" in page.text
    assert shown >= 2


def test_the_largest_amounts_break_no_page(service: Service) -> None:
    caller = Caller(service, *service.new_tenant("Largest amounts"))
    found = []
    for amount in (1.7e308, -1.7e308, 2**63 - 1):
        body = {"eventName": "payment.attempt", "metadata": {"amount": amount, "currency": "EUR"}}
        answer = caller.post("/api/v1/decisions/evaluate", body)
        assert answer.status == 200
        found.append(f"/console/decisions/{answer.json['correlationIds']['eventId']}")
    visitor = visitor_of(service, caller.id, "analyst", "lead", "editor")
    for path in (*found, "/console/", "/console/reports", "/console/queue", "/console/rules/suggestions"):
        assert visitor.get(path).status == 200, path
