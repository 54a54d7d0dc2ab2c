"""What nobody can see in a caller's text is named, and no text turns round what is shown after it."""

import pytest

from tests.console.conftest import SignIn
from tests.live import Caller
from vettance.console.unseen_characters import isolated, with_unseen_shown

TURNED = "user\u202egpj.exe"


def shown(before: str, value: str, after: str) -> str:
    return with_unseen_shown(f"{before}{isolated(value)}{after}")


@pytest.mark.parametrize(
    ("value", "seen"),
    [
        (TURNED, "user[U+202E]gpj.exe"),
        ("a\u200bb", "a[U+200B]b"),
        ("a\x00b\x1bc", "a[U+0000]b[U+001B]c"),
        ("a\u200db", "a[U+200D]b"),
        ("\ufeffa\U000e0041", "[U+FEFF]a[U+E0041]"),
        # What joiners do here is seen: a Persian word, a family.
        ("می\u200cخواهم", "\u2068می\u200cخواهم\u2069"),
        ("👨\u200d👩", "👨\u200d👩"),
        ("Zoë Müller\n", "Zoë Müller\n"),
        ("דוד 12", "\u2068דוד 12\u2069"),
        ("דוד\u202e", "\u2068דוד[U+202E]\u2069"),
    ],
)
def test_text_names_what_is_unseen_and_is_kept_apart(value: str, seen: str) -> None:
    assert shown("<p>", value, " · 45 events</p>") == f"<p>{seen} · 45 events</p>"


@pytest.mark.parametrize(
    "tag", ['<input type="hidden" value="{}">', '<span data-whole="{}">', "<textarea>{}</textarea>"]
)
@pytest.mark.parametrize("value", [TURNED, "דוד\u200b"])
def test_what_is_sent_or_copied_stays_as_it_is(tag: str, value: str) -> None:
    before, after = tag.split("{}")
    assert shown(before, value, after) == f"{before}{value}{after}"


@pytest.mark.parametrize("tag", ['<a title="{}">', '<b class="a>b" aria-label="{}">', "<title>{}</title>"])
def test_what_hovering_and_readers_say_is_named_without_marks(tag: str) -> None:
    before, after = tag.split("{}")
    assert shown(before, "דוד\u202e", after) == f"{before}דוד[U+202E]{after}"


def test_every_page_of_a_turned_customer_names_it(tenant: Caller, people: SignIn) -> None:
    analyst = people("analyst")
    event = {"eventName": "payment.attempted", "sessionId": "turned", "amount": 45, "currency": "EUR"}
    who = {"externalId": TURNED, "email": "\u202emoc.liam@nna", "name": "דוד"}
    made = tenant.post("/api/v1/decisions/evaluate", {**event, "customer": who})
    assert made.status == 200, made.json
    entry = {"type": "EMAIL", "value": "a@mail.example", "listType": "block", "reason": TURNED}
    assert tenant.post("/api/v1/lists", entry).status == 201
    decision_id = made.json["correlationIds"]["eventId"]
    decision = analyst.get("/console/decisions?customer=user%E2%80%AEgpj.exe")
    for page in (
        decision,
        analyst.get("/console/decisions"),
        analyst.get(f"/console/decisions/{decision_id}"),
        analyst.get("/console/entities/customer/user%E2%80%AEgpj.exe"),
        analyst.get("/console/sessions/turned"),
        analyst.get("/console/lists"),
    ):
        assert page.status == 200
        assert "user[U+202E]gpj.exe" in page.words, page.words
        assert "\u202e" not in page.words
    # The link and the form still name the customer as the events do.
    assert "/console/entities/customer/user%E2%80%AEgpj.exe" in decision.text
    assert f'value="{TURNED}"' in decision.text
