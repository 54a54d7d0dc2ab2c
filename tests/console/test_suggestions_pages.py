"""The page of suggestions: ordered, refused with a reason, and made a draft of."""

import re
import time

import pytest

from tests.console.visitor import Visitor, visitor_of
from tests.live import Caller, Service

PATH = "/console/rules/suggestions"


@pytest.fixture(scope="module")
def suggested(service: Service) -> Caller:
    """A tenant with a few payments, none of which is labelled."""
    tenant_id, key = service.new_tenant("Suggested")
    caller = Caller(service, tenant_id, key)
    for number in range(12):
        body = {"eventName": "payment.attempt", "metadata": {"amount": 10 + number, "currency": "EUR"}}
        assert caller.post("/api/v1/decisions/evaluate", body).status == 200
    return caller


@pytest.fixture(scope="module")
def editor(service: Service, suggested: Caller) -> Visitor:
    return visitor_of(service, suggested.id, "editor")


def test_too_few_labels_are_said_on_the_page(editor: Visitor) -> None:
    assert "Nothing was suggested yet" in editor.get(PATH).words
    refused = editor.submit(PATH, PATH, kind="rules")
    assert refused.status == 422
    assert "needs 50 events labelled as fraud" in refused.words


def test_a_curve_is_ordered_and_shown(editor: Visitor) -> None:
    made = editor.submit(PATH, PATH, kind="threshold", rule_id="login-failures-customer", load="1000")
    assert made.status == 303, made.words
    page = made.location.partition("&")[0]
    until = time.monotonic() + 90
    while re.search(r">(Waits for its turn|Running)<", (shown := editor.get(page)).text):
        assert time.monotonic() < until
        time.sleep(0.5)
    assert "Completed" in shown.words
    assert "count(event.login_failed" in shown.words


def test_a_calibration_is_ordered_by_a_share_and_read_by_those_who_read_rules(
    service: Service, suggested: Caller, editor: Visitor
) -> None:
    refused = editor.submit(PATH, PATH, kind="calibration", hold="150")
    assert refused.status == 422
    assert "Must be above 0 and below 1" in refused.words, refused.words[300:1500]
    made = editor.submit(PATH, PATH, kind="calibration", hold="1")
    assert made.status == 303, made.words
    page = made.location.partition("&")[0]
    until = time.monotonic() + 90
    while re.search(r">(Waits for its turn|Running)<", (shown := editor.get(page)).text):
        assert time.monotonic() < until
        time.sleep(0.5)
    assert "Completed" in shown.words
    assert "Asked for: 1.0 %" in shown.words
    # The others say what they are, and the one that is shown is none of them.
    others = shown.text.partition('id="earlier"')[2]
    assert "A threshold</a>: " in others
    assert page.partition("=")[2] not in others
    auditor = visitor_of(service, suggested.id, "auditor")
    assert f'href="{PATH}"' in auditor.get("/console/rules").text
    read = auditor.get(page)
    assert (read.status, "Asked for: 1.0 %" in read.words) == (200, True)
    assert f'action="{PATH}' not in read.text
    assert f'action="{PATH}' in shown.text
    assert auditor.submit("/console/profile", PATH, kind="rules").status == 403
