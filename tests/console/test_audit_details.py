"""Details of audit entries: members and values in the words of the pages that they come from."""

import re
from typing import Any

import pytest

from tests.console.conftest import SignIn
from tests.live import Caller, Service
from vettance.console.audit_details import said_members
from vettance.console.shown_values import ValueFormatter

SHOW = ValueFormatter(1_795_889_000_000)
NAMES = {"usr_1": "Ann", "ten_1": "Corner Shop"}


@pytest.mark.parametrize(
    ("held", "said"),
    [
        ({"label": "FALSE_POSITIVE", "notes": "Called."}, {"Label": "Wrongly stopped", "Notes": "Called."}),
        ({"label": "FALSE_POSITIVE"}, {"Label": "Wrongly stopped"}),
        ({"resolution": "FALSE_POSITIVE"}, {"Resolution": "False alarm"}),
        ({"outcome": "deny", "next-one": "1"}, {"Outcome": "Deny"}),
        (
            {"type": "IP", "listType": "allow", "expiry": "30d"},
            {"Type": "IP address", "List": "Allow", "For": "30 days"},
        ),
        ({"entry": ["DEVICE fp 7", "IP ::1"]}, {"On lists": "Device fp 7, IP address ::1"}),
        (
            {"rule_approval": True, "four_eyes": False},
            {"Rules need a second person": "yes", "Cases need a second officer": "no"},
        ),
        ({"tenant_id": "ten_1", "assignee": "usr_1"}, {"Organisation": "Corner Shop", "Officer": "Ann"}),
        ({"quota": 100_000}, {"Requests per hour": "100,000"}),
        ({"reason": None, "note": ""}, {}),
        ({"label": "<b>", "type": "HOUSE"}, {"Label": "<b>", "Type": "HOUSE"}),
        ({"rule": {"id": "big", "score": 4}}, {"Rule": "Id: big, Score: 4"}),
        # A version is no moment, and neither is what cannot be one.
        ({"to": "3", "from": "2"}, {"To": "3", "From": "2"}),
        ({"to": 3}, {"To": "3"}),
        ({"to": "0001-01-01T00:00:00Z"}, {"To": "0001-01-01T00:00:00Z"}),
        ({"until": "soon"}, {"Until": "soon"}),
        ({"until": -1e300}, {"Until": "-1E300"}),
        ("whole", {"": "whole"}),
    ],
)
def test_what_an_entry_holds_is_said_as_pages_say_it(held: Any, said: dict[str, str]) -> None:
    assert {name: ", ".join(parts) for name, parts in said_members(held, SHOW, NAMES)} == said


def test_ends_are_moments_in_the_time_of_who_looks() -> None:
    for end in ("2026-12-31T00:00:00Z", 1_798_675_200):
        [(name, (part,))] = said_members({"until": end}, SHOW, NAMES)
        assert name == "Until"
        assert 'datetime="2026-12-31T00:00:00.000Z"' in part
    [(_, (inner,))] = said_members({"rule": {"until": "2026-12-31T00:00:00Z"}}, SHOW, NAMES)
    assert "<" not in inner


def test_the_page_says_labels_and_whom_an_entry_is_about(
    service: Service, tenant: Caller, people: SignIn
) -> None:
    made = tenant.post(
        "/api/v1/decisions/evaluate", {"eventName": "login", "customer": {"externalId": "c-said"}}
    )
    event_id = made.json["correlationIds"]["eventId"]
    people("analyst").submit(
        "/console/", f"/console/decisions/{event_id}/label", label="FALSE_POSITIVE", notes=""
    )
    service.cli("tenant", "set", tenant.id, "--review-hours", "24")
    page = people("auditor").get("/console/audit")
    assert "Label Wrongly stopped" in page.words
    assert "FALSE_POSITIVE" not in page.text
    assert f'<span title="{tenant.id}">' in page.text


def test_the_log_names_keys_and_commands(tenant: Caller, people: SignIn) -> None:
    body = {"type": "DEVICE", "value": "fp-named", "listType": "block"}
    assert tenant.post("/api/v1/lists", body).status == 201
    page = people("auditor").get("/console/audit?action=list+entry")
    # A key without a name is told by what people know of it, and not by its id.
    assert re.search(r'<span title="key_\w+">vtc_\w+…\w{4}</span>', page.text), page.words
    assert ", at the command line" in people("auditor").get("/console/audit").words
