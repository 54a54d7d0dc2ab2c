"""The page of a value says by what it is on a list: by itself, by a range, by an address or a device."""

import re
from html import unescape
from urllib.parse import urlencode

from tests.console.conftest import SignIn
from tests.live import Caller

ENTITIES = "/console/entities"


def listed(tenant: Caller, kind: str, value: str) -> None:
    body = {"type": kind, "value": value, "listType": "block", "reason": "Seen before."}
    assert tenant.post("/api/v1/lists", body).status == 201


def test_a_value_names_every_entry_that_it_matches(tenant: Caller, people: SignIn) -> None:
    event = {
        "eventName": "page.viewed",
        "customer": {"externalId": "c-listed", "email": "Listed@mail.example"},
        "device": {"fingerprint": "fp-listed"},
        "ip": "198.51.100.7",
    }
    assert tenant.post("/api/v1/events", event).status == 201
    other = {"eventName": "page.viewed", "customer": {"externalId": "c-other"}, "ip": "2001:db8::7"}
    assert tenant.post("/api/v1/events", other).status == 201
    listed(tenant, "IP", "198.51.100.0/24")
    listed(tenant, "IP", "2001:db8::/32")
    listed(tenant, "EMAIL", "listed@mail.example")
    listed(tenant, "DEVICE", "fp-listed")
    ann = people("analyst")
    for value, by in (("198.51.100.7", "198.51.100.0/24"), ("2001:db8::7", "2001:db8::/32")):
        page = ann.get(f"{ENTITIES}/ip/{value}").words
        assert f"{by} is on the block list" in page
        assert "Seen before." in page
    assert "On the block list" in ann.get(f"{ENTITIES}/device/fp-listed").words
    customer = ann.get(f"{ENTITIES}/customer/c-listed")
    assert "listed@mail.example is on the block list" in customer.words
    assert "fp-listed is on the block list" in customer.words
    assert "is on the block list" not in ann.get(f"{ENTITIES}/customer/c-other").words
    # Viewers see who it is no more than elsewhere.
    viewer = people("viewer").get(f"{ENTITIES}/customer/c-listed")
    assert "is on the block list" in viewer.words
    assert "listed@mail.example" not in viewer.text


def test_lists_are_searched_by_value(tenant: Caller, people: SignIn) -> None:
    listed(tenant, "IP", "203.0.113.0/24")
    listed(tenant, "EMAIL", "sought@mail.example")
    listed(tenant, "DEVICE", "fp-sought")
    ann = people("analyst")
    for value, found in (
        ("203.0.113.9", "203.0.113.0/24"),
        (" Sought@Mail.example ", "sought@mail.example"),
        ("fp-sought", "fp-sought"),
    ):
        page = ann.get(f"/console/lists?{urlencode({'value': value})}")
        assert "1 entry" in page.words
        assert f"Remove {found}" in page.text
    assert "No entry matches this value" in ann.get("/console/lists?value=fp-sought&type=EMAIL").words
    assert "No entry matches this value" in ann.get("/console/lists?value=fp-sought&listType=allow").words
    # Viewers find what they know, and the page shows no more of it than elsewhere.
    viewer = people("viewer").get("/console/lists?value=sought@mail.example")
    assert "1 entry" in viewer.words
    assert "sought@mail.example" not in viewer.text


def test_the_order_of_decisions_is_shown_and_changed_at_once(tenant: Caller, people: SignIn) -> None:
    made = tenant.post("/api/v1/decisions/evaluate", {"eventName": "login", "country": "PT"})
    assert made.status == 200
    ann = people("analyst")
    page = ann.get("/console/decisions?country=PT")
    newest, highest = re.findall(r'<a href="(/console/decisions\?[^"]*sortBy=[^"]*)"([^>]*)>', page.text)
    assert "aria-current" in newest[1]
    assert "aria-current" not in highest[1]
    other = ann.get(unescape(highest[0]))
    assert "country is PT" in other.words
    assert re.search(r'sortBy=riskScore" aria-current="true">Highest score first', other.text)
