"""The pages of officers: alerts, cases worked by two people, the screening desk; webhooks and reports."""

import json
import re
import time
from typing import Any

import pytest

from tests.console.visitor import Visitor, visitor_of
from tests.live import Caller, Service
from tests.reviews.conftest import decided, holding_tenant
from vettance.console.aml_case_page import said_act

CASES = "/console/aml/cases"


@pytest.fixture(scope="module")
def bank(service: Service) -> Caller:
    """A tenant with the AML product and a case of each kind."""
    service.cli("watchlist", "import", "--source", "sample", "--json")
    caller = Caller(service, *service.new_tenant("Bank"))
    service.cli("tenant", "set", caller.id, "--aml", "on", "--json")
    service.wait_for(lambda: caller.get("/api/v1/aml/alerts").status == 200, seconds=10)
    for number in range(3):
        body = {
            "eventName": "transfer.sent",
            "externalEventId": f"risky-{number}",
            "customer": {"externalId": "c-risky"},
            "metadata": {
                "amount": 12_000,
                "currency": "EUR",
                "direction": "out",
                "counterpartyId": "x-9",
                "counterpartyCountry": "KP",
            },
        }
        assert caller.post("/api/v1/aml/events", body).status == 200
    return caller


_KNOWN: dict[tuple[str, ...], Visitor] = {}


def person(service: Service, *roles: str) -> Visitor:
    """Somebody of the bank with these roles, the same one each time."""
    if roles not in _KNOWN:
        _KNOWN[roles] = visitor_of(service, *roles)
    return _KNOWN[roles]


def case_of(bank: Caller, customer: str) -> dict[str, Any]:
    found: dict[str, Any] = bank.get(f"/api/v1/aml/cases?customer={customer}").json["data"][0]
    return found


def seen(page: str) -> str:
    found = re.search(r'name="updatedAt" value="([^"]+)"', page)
    assert found is not None
    return found[1]


def test_alerts_and_cases_are_listed_with_their_figures(service: Service, bank: Caller) -> None:
    ann = person(service, bank.id, "analyst")
    alerts = ann.get("/console/aml/alerts?state=OPEN&customer=c-risky")
    assert (alerts.status, "c-risky" in alerts.words) == (200, True)
    assert "= True" not in alerts.words  # Figures say yes and no.
    assert "No alert matches" in ann.get("/console/aml/alerts?customer=nobody").words
    # What an address asks for is kept, and seen, where another choice is made.
    of_rule = ann.get("/console/aml/alerts?ruleId=call-for-action&typology=geography")
    assert re.search(r'name="ruleId" type="text" value="call-for-action"', of_rule.text)
    assert re.search(r'name="typology" type="text" value="geography"', of_rule.text)
    assert 'name="ruleId"' not in alerts.text
    cases = ann.get(f"{CASES}?state=OPEN")
    assert case_of(bank, "c-risky")["id"] in cases.text


def test_the_rules_tell_what_events_leave_out(service: Service) -> None:
    bank = Caller(service, *service.new_tenant("Terse bank"))
    service.cli("tenant", "set", bank.id, "--aml", "on", "--json")
    service.wait_for(lambda: bank.get("/api/v1/aml/alerts").status == 200, seconds=10)
    editor = person(service, bank.id, "editor")
    assert "What events leave out" not in editor.get("/console/rules/aml").words
    body = {
        "eventName": "transfer.sent",
        "externalEventId": "terse-1",
        "customer": {"externalId": "c-1"},
        "metadata": {"amount": "9.500,00", "conterpartyId": "x-9", "direction": "out"},
    }
    assert bank.post("/api/v1/aml/events", body).status == 200
    shown = editor.get("/console/rules/aml").words.replace(" ?", "?").replace(" .", ".")
    assert "metadata.amount cannot be read in 1 event." in shown
    assert "Nothing reads metadata.conterpartyId" in shown
    assert "Did you mean metadata.counterpartyId?" in shown
    assert "100.0 % of the transactions come without a currency." in shown
    assert "An invoice far from the worth of the goods needs invoice_worth and market_worth." in shown


def test_a_case_is_resolved_by_two_people_and_a_stale_form_loses_nothing(
    service: Service, bank: Caller
) -> None:
    service.cli("aml", "set", "--tenant", bank.id, "--four-eyes", "on", "--json")
    ann, lead = person(service, bank.id, "analyst", "editor"), person(service, bank.id, "lead")
    place = f"{CASES}/{case_of(bank, 'c-risky')['id']}"
    page = ann.get(place)
    assert 'class="picture money ' in page.text
    assert re.search(r"\bout \d+ €\d", page.words)
    assert "12,000" in page.words
    # Officers are chosen from those who work cases, and what was done does not repeat an alert in full.
    assert re.search(r'<select id="assignee".*?<option value="[^"]+@[^"]+"', page.text)
    done = page.text.partition('id="timeline"')[2]
    assert "Alerted" in done
    assert "the service" in done
    assert re.search(r"(Low|Medium|High|Critical): [A-Z]", done)
    assert not re.search(r"(LOW|MEDIUM|HIGH|CRITICAL):", done)
    assert "12,000" not in done
    stale = seen(page.text)
    assert ann.submit(place, place, what="notes", notes="Asked for the contract.").status == 303
    assert (
        ann.submit(place, place, what="assign", assignee="ann", updatedAt=seen(ann.get(place).text)).status
        == 303
    )
    late = lead.submit(place, place, what="assign", assignee="lead", updatedAt=stale)
    assert late.status == 409
    assert "This was not done" in late.words
    assert 'value="lead"' in late.text
    proposed = ann.submit(
        place, place, what="resolve", resolution="FALSE_POSITIVE", updatedAt=seen(ann.get(place).text)
    )
    assert proposed.status == 303
    waiting = ann.get(place)
    assert "It takes a second officer" in waiting.words
    assert "proposes: False alarm." in waiting.words
    assert ">Agree<" not in waiting.text
    assert ">Agree<" in lead.get(place).text
    agreed = lead.submit(
        place, place, what="resolve", resolution="FALSE_POSITIVE", updatedAt=seen(lead.get(place).text)
    )
    assert agreed.status == 303
    assert bank.get(f"/api/v1{place.removeprefix('/console')}").json["state"] == "CLOSED"
    closed = lead.get(place)
    assert "Closed · False alarm ·" in closed.words
    assert "Assign" not in closed.words.partition("What was done")[0]
    assert "Take it myself" not in closed.words
    assert "Add the note" in closed.words
    constant = re.compile(r">[^<]*FALSE_POSITIVE")
    for shown in (place, CASES, "/console/aml/alerts"):
        assert constant.search(lead.get(shown).text) is None, shown
    exported = lead.submit(place, f"{place}/export")
    assert json.loads(exported.text)["customer"] == "c-risky"


def test_a_case_of_many_events_is_shown_a_hundred_at_a_time(service: Service, bank: Caller) -> None:
    metadata = {"amount": 12_000, "currency": "EUR", "direction": "out", "counterpartyCountry": "KP"}
    for number in range(104):
        body = {
            "eventName": "transfer.sent",
            "externalEventId": f"many-{number}",
            "customer": {"externalId": "c-many"},
            "metadata": metadata | {"counterpartyId": f"y-{number}"},
        }
        assert bank.post("/api/v1/aml/events", body).status == 200
    place = f"{CASES}/{case_of(bank, 'c-many')['id']}"
    ann: Visitor = person(service, bank.id, "analyst", "auditor")
    page = ann.get(place)
    assert re.search(r"1–100 of 10\d events", page.words), page.words
    assert f'href="{place}?events=100"' in page.text
    rest = ann.get(f"{place}?events=100")
    assert re.search(r"101–10\d of 10\d events", rest.words)
    assert len(rest.text) < len(page.text)
    for odd in ("-1", "x", "9" * 20, "999999"):
        assert ann.get(f"{place}?alerts={odd}").status == 200
    # Paging one of the two tables keeps the place of the other, and each event has its page.
    both = ann.get(f"{place}?alerts=3&events=100").text
    assert f'href="{place}?alerts=3"' in both
    assert f'href="{place}?events=100"' in both
    found = re.search(r'href="(/console/aml/events/[^"]+)"', rest.text)
    assert found is not None
    assert ann.get(found[1]).status == 200


def options_of(page: str, name: str) -> dict[str, str]:
    """The choices of a field by their values, the chosen one marked by a star."""
    field = page.partition(f'name="{name}"')[2].partition("</select>")[0]
    found = re.findall(r'<option value="([^"]*)"( selected)?>([^<]*)</option>', field)
    return {value: f"{'*' if chosen else ''}{words}" for value, chosen, words in found}


def test_cases_are_listed_by_officer_chosen_from_those_who_work_them(service: Service, bank: Caller) -> None:
    ann = person(service, bank.id, "analyst")
    for role in ("lead", "editor"):
        person(service, bank.id, role)
    body = {
        "eventName": "transfer.sent",
        "externalEventId": "of-an-officer",
        "customer": {"externalId": "c-officer"},
        "metadata": {"amount": 12_000, "currency": "EUR", "direction": "out", "counterpartyCountry": "KP"},
    }
    assert bank.post("/api/v1/aml/events", body).status == 200
    one = case_of(bank, "c-officer")["id"]
    officer, domain = f"analyst@{bank.id[-12:]}.example", f"@{bank.id[-12:]}.example"
    offered = options_of(ann.get(CASES).text, "assignee")
    assert {"", officer, f"lead{domain}"} <= offered.keys()
    assert f"editor{domain}" not in offered
    place = f"{CASES}/{one}"
    taken = ann.submit(place, place, what="assign", assignee=officer, updatedAt=seen(ann.get(place).text))
    assert taken.status == 303
    mine, others = (ann.get(f"{CASES}?assignee={who}") for who in (officer, f"lead{domain}"))
    assert options_of(mine.text, "assignee")[officer].startswith("*")
    assert (one in mine.text, one in others.text) == (True, False)
    # A name of the people is shown in place of their address.
    ada = f"ada{domain}"
    service.cli(
        "user", "create", ada, "--tenant", bank.id, "--role", "lead", "--name", "Ada Officer", "--json"
    )
    given = ann.submit(place, place, what="assign", assignee=ada, updatedAt=seen(ann.get(place).text))
    assert given.status == 303
    hers = ann.get(f"{CASES}?assignee={ada}")
    assert options_of(hers.text, "assignee")[ada] == "*Ada Officer"
    assert f'<span title="{ada}">Ada Officer</span>' in hers.text
    # Whom the API names need not be a user.
    elsewhere = ann.get(f"{CASES}?assignee=%3Cb%3Esomebody")
    assert elsewhere.status == 200
    assert options_of(elsewhere.text, "assignee")["&lt;b&gt;somebody"] == "*&lt;b&gt;somebody"
    assert offered.keys() | {ada} == options_of(ann.get(CASES).text, "assignee").keys()


def test_a_name_is_screened_and_a_match_dismissed(service: Service, bank: Caller) -> None:
    ann = person(service, bank.id, "analyst", "lead")
    desk = "/console/aml/screen"
    faulty = ann.submit(desk, desk, inputName="Sergey Lavrov", externalId="s-1", inputDob="yesterday")
    assert faulty.status == 422
    assert 'value="Sergey Lavrov"' in faulty.text
    done = ann.submit(desk, desk, inputName="Sergey Lavrov", externalId="s-1", inputDob="1950-03-21")
    assert "must be a date" in faulty.text.lower()
    page = ann.get(done.location)
    assert "LAVROV" in page.words
    asked = page.words.partition("Who was asked about")[2]
    for said in ("Name Sergey Lavrov", "Date of birth 1950-03-21", "Your own id s-1"):
        assert said in asked, asked[:400]
    assert (
        "US Treasury, Specially Designated Nationals" in page.words or "The sample that comes" in page.words
    )
    for raw in (
        "inputName",
        "inputDob",
        "externalId",
        "entityType",
        "idDocument",
        "AUTO_CLEAR",
        "INDIVIDUAL",
    ):
        assert raw not in page.words, raw
    # The case of the match leads back here, where people are compared side by side.
    assert f'href="{done.location}"' in ann.get(f"{CASES}/{case_of(bank, 's-1')['id']}").text
    entity = re.search(r'name="entity" value="([^"]+)"', page.text)
    if entity is not None:
        answer = ann.submit(done.location, f"{done.location}/dismiss", entity=entity[1], notes="Another one.")
        assert answer.status == 303 or "Another one." in answer.text
    assert "Sergey Lavrov" in ann.get(desk).words


@pytest.mark.parametrize("role", ["viewer", "editor"])
@pytest.mark.parametrize("path", ["alerts", "cases", "screen"])
def test_pages_of_aml_are_not_for_those_who_read_only(
    service: Service, bank: Caller, role: str, path: str
) -> None:
    assert person(service, bank.id, role).get(f"/console/aml/{path}").status == 403


def test_webhooks_are_made_shown_and_removed(service: Service, bank: Caller) -> None:
    admin = person(service, bank.id, "admin")
    path = "/console/webhooks"
    bad = admin.submit(path, path, url="http://127.0.0.1/x", eventType=["REVIEW_SETTLED"])
    assert bad.status == 422
    assert 'value="http://127.0.0.1/x"' in bad.text
    made = admin.submit(path, path, url="https://shop.example/hook", eventType=["REVIEW_SETTLED"])
    assert "not shown again" in admin.follow(made).words
    found = re.fullmatch(r"/console/webhooks/whs_\w+", made.location)
    assert found is not None
    page = admin.get(found[0])
    assert "whsec_" not in page.words
    assert "https://shop.example/hook" in page.words
    assert "https://shop.example/hook" in admin.get(path).words
    # What can't be undone says so before it is done.
    assert "This cannot be taken back" in page.words
    none = admin.submit(found[0], f"{found[0]}/replay", days="7")
    assert "Nothing of that time was given up" in admin.get(none.location).words
    assert admin.submit(found[0], f"{found[0]}/replay", days="8").status == 422
    auditor = person(service, bank.id, "auditor")
    assert auditor.get(found[0]).status == 200
    assert auditor.submit("/console/profile", f"{found[0]}/remove").status == 403
    assert admin.submit(found[0], f"{found[0]}/remove").status == 303
    assert admin.get(found[0]).status == 404


def test_deliveries_lead_to_what_they_are_about_and_are_sent_again_by_number(
    service: Service, bank: Caller
) -> None:
    admin = person(service, bank.id, "admin")
    webhook = {"url": "https://nobody.invalid/hook", "eventType": ["EVENT_RISK_EVALUATED"]}
    made = admin.submit("/console/webhooks", "/console/webhooks", **webhook)
    place = made.location
    decision = str(decided(bank, 5)["correlationIds"]["eventId"])  # type: ignore[index]
    service.wait_for(lambda: f'href="/console/decisions/{decision}"' in admin.get(place).text, seconds=10)
    # Why it fails is said in a sentence, of the subscription as of each attempt.
    sentence = "The receiver's name could not be resolved."
    service.wait_for(lambda: admin.get(place).words.count(sentence) >= 2, seconds=15)
    assert "Failing: 1 failure in a row" in admin.get(place).words
    assert "Failing" in admin.get("/console/webhooks").words
    # States have the words of the filter, here and on the page of the decision.
    assert '<span class="tag">Waiting</span>' in admin.get(place).text
    shown = admin.get(f"/console/decisions/{decision}").text
    assert f'<a href="{place}">EVENT_RISK_EVALUATED</a>' in shown
    lead = person(service, bank.id, "lead", "viewer").get(f"/console/decisions/{decision}").text
    assert ("EVENT_RISK_EVALUATED" in lead, place in lead) == (True, False)
    assert "Queued again: 2 deliveries." in admin.get(f"{place}?notice=replayed-some&count=2").words
    assert "Queued again" not in admin.get(f"{place}?notice=replayed-some&count=%3Cb%3E").words
    assert admin.submit(place, f"{place}/remove").status == 303


def test_reports_are_shown_and_exported(service: Service, bank: Caller) -> None:
    bank.post("/api/v1/decisions/evaluate", {"eventName": "=cmd()", "metadata": {"amount": 5}})
    lead = person(service, bank.id, "lead", "viewer")
    page = lead.get("/console/reports?span=24h")
    for words in (
        "Decisions over time",
        "What labels say",
        "What labels say of events that are mature",
        "Value stopped and saved",
        "What rules are worth",
        "Work on reviews",
        "Second looks",
        "Money laundering",
        "Screening",
    ):
        assert words in page.words
    exported = lead.submit("/console/reports", "/console/reports/rates", span="24h")
    assert exported.headers["content-disposition"] == 'attachment; filename="rates.csv"'
    assert exported.text.startswith("From (UTC),Decisions,Approved,Held,Denied")
    assert lead.submit("/console/reports", "/console/reports/none").status == 404
    viewer = person(service, bank.id, "viewer")
    seen = viewer.get("/console/reports").words
    assert "Money laundering" not in seen
    assert "What rules are worth" not in seen
    assert viewer.submit("/console/reports", "/console/reports/rules", span="24h").status == 404


def test_reports_and_the_overview_count_every_label_by_what_was_decided(
    service: Service, tmp_path_factory: pytest.TempPathFactory
) -> None:
    caller = holding_tenant(service, tmp_path_factory.mktemp("rules"), "Labelled")
    events = [str(decided(caller, amount)["correlationIds"]["eventId"]) for amount in (5, 150, 150, 5000)]  # type: ignore[index]
    said = (0, "LEGIT"), (1, "CHARGEBACK"), (1, "FRAUD"), (2, "FALSE_POSITIVE"), (2, "REFUND"), (3, "FRAUD")
    for place, label in said:
        assert caller.post(f"/api/v1/feedback/event/{events[place]}", {"label": label}).status == 201
    lead = person(service, caller.id, "lead", "viewer")
    exported = lead.submit("/console/reports", "/console/reports/labels", span="24h").text
    rows = [line.split(",") for line in exported.splitlines()[1:]]
    # Decision, fraud, legitimate and chargebacks. The events are of today: none is mature.
    assert (
        len(lead.submit("/console/reports", "/console/reports/mature-labels", span="24h").text.splitlines())
        == 1
    )
    shown = lead.get("/console/reports?span=24h")
    assert '<th scope="row"><span class="outcome deny">' in shown.text
    assert "EUR €5,450.00 €5,150.00 €150.00" in shown.words
    value = lead.submit("/console/reports", "/console/reports/value", span="24h").text.splitlines()
    assert value[1:] == ["EUR,5450.0,5150.0,150.0"]
    rules = lead.submit("/console/reports", "/console/reports/rules", span="24h").text.splitlines()
    assert [row.split(",")[:4] for row in rules[1:]] == [
        ["large", "4", "2", "1"],
        ["huge", "1", "1", "0"],
    ]
    assert [[row[0], *row[2:5]] for row in rows] == [
        ["approve", "0", "1", "0"],
        ["review", "2", "1", "1"],
        ["deny", "1", "0", "0"],
    ]
    assert "25.0 %" in lead.get("/console/?span=1h").words  # Of those that were stopped.


def test_hours_without_decisions_keep_their_place_in_a_line(service: Service) -> None:
    shop = Caller(service, *service.new_tenant("Corner shop"))
    now_s = int(time.time())
    for days in (9, 8, 6, 5.9, 0.1):
        body = {"eventName": "payment", "occurredAt": now_s - int(days * 86_400)}
        assert shop.post("/api/v1/events", body).status == 201
    page = person(service, shop.id, "lead").get("/console/?span=7d").text
    found = re.search(
        r'aria-label="(Approved[^"]*)".*?class="before" d="([^"]*)"/><path class="now[^"]*" d="([^"]*)"', page
    )
    assert found is not None
    assert found[1] == "Approved over time, 3 in all; the pale line is the span before, 2 in all"
    assert {path.count("L") for path in found.groups()[1:]} <= {167, 168}  # A point an hour, in both spans.


def test_the_overview_shows_what_needs_a_person(service: Service, bank: Caller) -> None:
    ann: Visitor = person(service, bank.id, "analyst", "auditor")
    assert "Queue" in ann.get("/console/").words


def test_an_alert_that_was_raised_says_so_without_codes() -> None:
    entry = {"kind": "ALERTED", "actor": "vettance", "text": "LOW to HIGH, SCATTER_GATHER: Sums meet. More."}
    assert said_act(entry)["text"] == "Low to High, scatter gather: Sums meet."
