"""Subjects of audit entries: what they are called, and the page that each leads to."""

from typing import Any

import pytest

from tests.console.visitor import visitor_of
from tests.live import Service
from vettance.console.audit_subjects import subject_of
from vettance.console.page_table import PageTable

DIGITS = "0" * 32
LISTED = {"type": "IP", "value": "203.0.113.0/24", "listType": "block"}


def told(action: str, subject: str, after: Any = None, before: Any = None) -> dict[str, Any]:
    return {"action": action, "subject": subject, "before": before, "after": after}


@pytest.mark.parametrize(
    ("action", "subject", "url"),
    [
        ("POST /console/decisions/{id}/label", f"evt_{DIGITS}", f"/console/decisions/evt_{DIGITS}"),
        ("POST /console/webhooks/{id}/test", f"whs_{DIGITS}", f"/console/webhooks/whs_{DIGITS}"),
        (
            "POST /console/webhooks/{id}/deliveries/{delivery}/replay",
            f"whs_{DIGITS}, dlv_{DIGITS}",
            f"/console/webhooks/whs_{DIGITS}",
        ),
        ("POST /console/webhooks/{id}/remove", f"whs_{DIGITS}", ""),
        ("DELETE /api/v1/webhooks/subscriptions/{id}", f"whs_{DIGITS}", ""),
        (
            "POST /console/rules/backtests/{backtest}/cancel",
            f"bkt_{DIGITS}",
            f"/console/rules/backtests/bkt_{DIGITS}",
        ),
        (
            "POST /console/rules/aml/backtests/{backtest}/cancel",
            f"bkt_{DIGITS}",
            f"/console/rules/aml/backtests/bkt_{DIGITS}",
        ),
        (
            "POST /console/rules/suggestions/{suggestion}/draft",
            f"sug_{DIGITS}",
            f"/console/rules/suggestions?id=sug_{DIGITS}",
        ),
        ("POST /console/queue/bulk/{id}/approve", f"blk_{DIGITS}", f"/console/queue/bulk/blk_{DIGITS}"),
        ("POST /console/rules/versions/{version}/{step}", "3, approve", "/console/rules/versions/3"),
        ("POST /api/v1/rulesets/{version}/activate", "3", "/console/rules/versions/3"),
        ("POST /api/v1/aml/rulesets/{version}/activate", "3", "/console/rules/aml/versions/3"),
        ("POST /console/rules/aml/versions/{version}/{step}", "3, reject", "/console/rules/aml/versions/3"),
        ("POST /console/models/{version}/promote", "7", "/console/models/7"),
        ("POST /console/reveal", "/console/decisions", "/console/decisions"),
        ("sign in", "3", ""),
        ("POST /console/reveal", "//elsewhere.example", ""),
    ],
)
def test_a_subject_leads_to_its_page(action: str, subject: str, url: str) -> None:
    assert subject_of(told(action, subject), {}).url == url
    assert not url or PageTable().find("GET", url.partition("?")[0].encode()) is not None


@pytest.mark.parametrize(
    ("after", "before"),
    [(LISTED, None), (None, [LISTED]), ({"entry": "IP 203.0.113.0/24", "listType": "block"}, None)],
)
def test_an_entry_of_a_list_is_called_by_its_value(after: Any, before: Any) -> None:
    found = subject_of(told("DELETE /api/v1/lists/{id}", f"lst_{DIGITS}", after, before), {})
    assert found == ("IP address 203.0.113.0/24", "/console/lists?value=203.0.113.0%2F24")


def test_what_the_log_forgot_and_sessions_of_people_lead_nowhere() -> None:
    assert subject_of(told("POST /console/lists/{id}/remove", f"lst_{DIGITS}"), {}) == ("", "")
    assert subject_of(told("POST /console/profile/sessions/{id}/end", f"ses_{DIGITS}"), {}).url == ""
    assert subject_of(told("user link", "usr_1"), {"usr_1": "Ann"}) == ("Ann", "")


def test_the_log_names_what_was_listed_and_links_what_has_a_page(service: Service) -> None:
    own, key = service.new_tenant("Subjects")
    admin = visitor_of(service, own, "admin", "analyst")
    entry = service.post("/api/v1/lists", {**LISTED, "reason": "Bots."}, key=key).json
    assert admin.submit("/console/lists", f"/console/lists/{entry['id']}/remove").status == 303
    page = admin.get("/console/audit")
    assert page.words.count("IP address 203.0.113.0/24") == 2
    assert page.text.count('href="/console/lists?value=203.0.113.0%2F24"') == 2
