"""Forms that are refused: the page is shown again, with what was typed and what is wrong with it."""

import html
import re
from typing import Any

import pytest

from tests.console.visitor import PageAnswer, Visitor, visitor_of
from tests.live import Caller, Service
from tests.reviews.conftest import held, holding_tenant
from vettance.console.refused_forms import SaidFaults, SentForm, filled_again, typed_fields

LONG = "A note that is too long. " * 200
NOT_DONE = "This was not done."


@pytest.fixture(scope="module")
def holding(service: Service, tmp_path_factory: pytest.TempPathFactory) -> Caller:
    return holding_tenant(service, tmp_path_factory.mktemp("rules"))


@pytest.fixture(scope="module")
def ann(service: Service, holding: Caller) -> Visitor:
    return visitor_of(service, holding.id, "analyst", "lead", "editor", "admin")


@pytest.fixture
def page(holding: Caller) -> str:
    """The page of a decision with an open review."""
    return f"/console/decisions/{held(holding)}"


def send(visitor: Visitor, page: str, path: str, **fields: Any) -> PageAnswer:
    """Send a form as a browser does: it says which page it is on."""
    sent = {"csrf": visitor.get(page).csrf, **fields}
    return visitor.post(path, sent, Referer=f"{visitor.base_url}{page}")


def form_with(answer: PageAnswer, text: str) -> str:
    """The form of a page that holds a text."""
    return next(one for one in re.findall(r"<form\b.*?</form>", answer.text, re.DOTALL) if text in one)


def test_a_bad_address_for_a_list_is_shown_with_what_was_typed(ann: Visitor) -> None:
    fields = {
        "type": "IP",
        "value": "300.1.2.3",
        "listType": "allow",
        "expiry": "90d",
        "reason": "Our <office>",
    }
    answer = send(ann, "/console/lists", "/console/lists", **fields)
    assert answer.status == 422
    form = form_with(answer, NOT_DONE)
    assert 'value="300.1.2.3"' in form
    assert 'value="Our &lt;office&gt;"' in form
    for chosen in ("IP", "allow", "90d"):
        assert f'<option value="{chosen}" selected>' in form
    assert len(re.findall(" selected", form)) == 3
    assert re.search(r'name="value"[^>]*aria-invalid="true"', form)
    assert '<p class="fault"' in form
    assert '<details class="adder right" open>' in answer.text


@pytest.mark.parametrize("list_type", ["block", "allow"])
def test_every_address_is_put_on_a_list_only_when_that_is_said_again(ann: Visitor, list_type: str) -> None:
    typed = {
        "type": "IP",
        "value": "0.0.0.0/0",
        "listType": list_type,
        "expiry": "1d",
        "reason": "All <of> them.",
    }
    asked = send(ann, "/console/lists", "/console/lists", **typed)
    assert asked.status == 422
    assert f"{list_type.capitalize()} every IPv4 address?" in asked.words
    assert '"confirm": true' not in asked.words
    assert "0.0.0.0/0" not in ann.get("/console/lists").text
    form = form_with(asked, f"{list_type.capitalize()} all of them")
    sent = {name: html.unescape(text) for name, text in re.findall(r'name="([^"]+)" value="([^"]*)"', form)}
    assert sent.items() >= typed.items()
    assert ann.post("/console/lists", sent).status == 303
    shown = ann.get("/console/lists")
    assert "0.0.0.0/0" in shown.text
    remove = re.search(r'action="(/console/lists/[^"]+/remove)"', shown.text)
    assert remove is not None
    assert ann.post(remove[1], {"csrf": shown.csrf}).status == 303


def test_a_form_that_was_refused_twice_is_still_on_its_page(ann: Visitor, page: str) -> None:
    once = send(ann, page, f"{page}/label", label="FRAUD", notes=LONG)
    assert once.status in (400, 422)
    shown_on = re.search(r'name="shown-on" value="([^"]+)"', once.text)
    assert shown_on is not None
    assert shown_on[1] == page
    again = {"csrf": once.csrf, "shown-on": page, "label": "LEGIT", "notes": LONG}
    twice = ann.post(f"{page}/label", again, Referer=f"{ann.base_url}{page}/label")
    form = form_with(twice, NOT_DONE)
    assert LONG.strip() in form
    assert '<option value="LEGIT" selected>' in form


def test_a_review_note_that_is_too_long_keeps_label_and_outcome(ann: Visitor, page: str) -> None:
    fields = {"next-one": "1", "outcome": "approve", "label": "LEGIT", "note": LONG, "expiry": "90d"}
    answer = send(ann, page, f"{page}/settle", **fields)
    assert answer.status in (400, 422)
    form = form_with(answer, NOT_DONE)
    assert LONG.strip() in form
    assert '<option value="LEGIT" selected>' in form
    assert re.search(r'name="outcome" value="approve" checked', form)
    assert not re.search(r'name="outcome" value="deny" checked', form)

    note = "a line\r\n" * 500  # 3,500 characters as the browser counts them, 4,000 with both of each break.
    assert send(ann, page, f"{page}/label", label="FRAUD", notes=note + "x" * 400).status == 303


def test_a_bad_filter_is_shown_in_its_form(ann: Visitor) -> None:
    answer = ann.get("/console/queue/bulk?choose=1&reason=velocity&minScore=many")
    assert answer.status == 422
    form = form_with(answer, "This cannot be shown as asked.")
    assert 'value="many"' in form
    assert 'value="velocity"' in form
    assert "must be from 0 to 100" in form.replace("Must", "must")


def test_without_a_referrer_the_page_is_found_by_the_address(ann: Visitor) -> None:
    answer = ann.submit("/console/lists", "/console/lists", type="IP", value="300.1.2.3", listType="block")
    assert 'value="300.1.2.3"' in form_with(answer, NOT_DONE)


def test_a_page_of_others_is_never_shown(ann: Visitor) -> None:
    sent = {"csrf": ann.get("/console/lists").csrf, "type": "IP", "value": "300.1.2.3", "listType": "block"}
    for page in ("https://example.com/console/lists", "//example.com/", "/console/none", "/console/sign-in"):
        answer = ann.post("/console/lists", {**sent, "shown-on": page})
        assert 'name="shown-on" value="/console/lists"' in answer.text


def test_a_button_that_is_refused_keeps_its_own_page(ann: Visitor) -> None:
    answer = ann.submit("/console/queue", "/console/queue/bulk/blk_none/stop")
    assert answer.status == 404
    assert "There is nothing here" in answer.text


def test_the_form_that_is_most_alike_is_filled() -> None:
    page = (
        '<form method="post" action="/x"><input type="hidden" name="what" value="one">'
        '<textarea name="notes">old</textarea></form>'
        '<details class="more"><summary>More</summary><form method="post" action="/x">'
        '<input type="hidden" name="what" value="two"><textarea name="notes">old</textarea>'
        '<input type="checkbox" name="box" value="a" checked><input type="password" name="old">'
        "</form></details>"
    )
    pairs = [("what", "two"), ("notes", "</textarea><b>"), ("old", "secret"), ("unknown", "1")]
    sent = SentForm("POST", "/x", "/page", pairs)
    assert typed_fields(page, sent) == {"notes", "box"}
    filled = filled_again(page, sent, SaidFaults(("Lead.", "Message."), {"notes": "Too long."}))
    first, second = filled.split("<details")
    assert first == page.partition("<details")[0]
    assert second.startswith(' class="more" open>')
    assert '\n&lt;/textarea&gt;&lt;b&gt;</textarea><p class="fault"' in second
    assert "checked" not in second
    assert "secret" not in second
    assert typed_fields(page, SentForm("POST", "/y", "/page", pairs)) is None
    turned = filled_again(
        page, sent, SaidFaults(("No a\u202eb.", "Nor c\u202ed."), {"notes": "No e\u202ef."})
    )
    assert [f"{one}[U+202E]{two}" in turned for one, two in ("ab", "cd", "ef")] == [True] * 3
    assert "\u202e" not in turned
    assert filled_again(page, SentForm("GET", "/x", "/page", pairs), SaidFaults()) == page


@pytest.mark.parametrize(
    ("page", "names"),
    [
        ("/console/lists", {"value": "512", "reason": "1024"}),
        ("/console/settings", {"name": "200"}),
        ("/console/profile", {"name": "200", "new": "256"}),
        ("/console/settings/users", {"email": "254"}),
    ],
)
def test_fields_with_a_limit_say_so(ann: Visitor, page: str, names: dict[str, str]) -> None:
    text = ann.get(page).text
    for name, most in names.items():
        assert re.search(rf'name="{name}"[^>]* maxlength="{most}"', text), name


@pytest.mark.parametrize(
    ("page", "path", "fields"),
    [
        (
            "rules/large",
            "rules/snoozes",
            {"rule": "large", "type": "IP", "value": "nowhere", "reason": "A try"},
        ),
        (
            "rules/large",
            "rules/changes",
            {"rule": "large", "then": "propose", "score": "lots", "note": "A try"},
        ),
        (
            "rules/suggestions",
            "rules/suggestions",
            {"kind": "threshold", "rule_id": "none", "precision": "much"},
        ),
        ("rules/backtests", "rules/backtests", {"version": "none", "sample": "all"}),
        ("webhooks", "webhooks", {"url": "ftp://example.com/path"}),
        ("profile", "profile", {"name": "Ann", "theme": "dark", "timeZone": "Nowhere"}),
        ("settings/users", "settings/users", {"email": "no address", "name": "Bob"}),
        ("settings", "settings/keys", {"name": "n" * 300}),
        ("queue", "queue/bulk", {"outcome": "approve", "reason": "LARGE", "note": LONG}),
    ],
)
def test_every_form_keeps_what_was_typed(ann: Visitor, page: str, path: str, fields: dict[str, str]) -> None:
    query = "/bulk?choose=1&reason=LARGE" if page == "queue" else ""
    answer = send(ann, f"/console/{page}{query}", f"/console/{path}", **fields)
    assert answer.status in (400, 409, 422)
    assert re.search(r'class="(fault|refused|warning bad)"', answer.text), answer.words
    for name, typed in fields.items():
        if name in ("rule", "then", "kind", "outcome"):
            continue
        assert typed.strip() in answer.text, name
