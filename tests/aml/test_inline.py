"""Names in AML events: screened where the tenant wants it, linked to the event, and never in its way."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.live import Caller, Service, started
from vettance.aml.aml_event import AmlEvent, read_taken_aml_event
from vettance.aml.party_screening import KEPT_S, InlineScreener, requests_of
from vettance.aml.screening.screen import Screener, SearchResult
from vettance.aml.screening.screening_request import ScreenRequest
from vettance.db.sqlite import SqliteStore
from vettance.ids import IdSource
from vettance.watchlists.match import Subject
from vettance.watchlists.refresh import IndexKeeper, import_list

EVENTS = "/api/v1/aml/events"
ALERTS = "/api/v1/aml/alerts"
CASES = "/api/v1/aml/cases"
LISTED = "Rosalind Achterberg"
OWN_LIST = (
    "id,name,type,aliases,birth_dates,countries,documents,reason\n"
    f"1,{LISTED},INDIVIDUAL,,1969-10-11,NL,,Chargeback ring\n"
)
_numbers = iter(range(10**9))


def new_officer(service: Service, *settings: str) -> Caller:
    tenant_id, key = service.new_tenant(f"Inline {next(_numbers)}")
    service.cli("tenant", "set", tenant_id, "--aml", "on", "--json")
    if settings:
        service.cli("aml", "set", "--tenant", tenant_id, *settings, "--json")
    caller = Caller(service, tenant_id, key)
    service.wait_for(lambda: caller.get(CASES).status == 200)
    return caller


def event(who: str, **members: Any) -> dict[str, Any]:
    body = {
        "eventName": "transfer.sent",
        "externalEventId": f"named-{next(_numbers)}",
        "customer": {"externalId": who},
        "metadata": {"amount": 25, "direction": "out", "counterpartyId": "x"},
    }
    return {**body, **members}


def to(name: str, **more: Any) -> dict[str, Any]:
    return {"amount": 25, "direction": "out", "counterpartyId": "x", "counterpartyName": name, **more}


@pytest.fixture(scope="module")
def listed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """A service with a list of one person."""
    folder = tmp_path_factory.mktemp("listed")
    path = Path(folder) / "own.csv"
    path.write_text(OWN_LIST)
    running = started(folder)
    running.cli("watchlist", "import", "--source", "csv", str(path))
    ready = new_officer(running)
    body = {"inputName": LISTED, "externalId": "ready"}
    running.wait_for(lambda: ready.post("/api/v1/aml/screen", body).status == 200)
    yield running
    assert running.stop() == 0


def test_a_listed_counterparty_is_an_alert_of_the_event_in_the_case_of_the_customer(listed: Service) -> None:
    officer = new_officer(listed, "--inline-screening", "on")
    sent = event("c-1", metadata=to(LISTED))
    answer = officer.post(EVENTS, sent).json
    assert answer["status"] == "ALERTED"
    (alert,) = answer["alerts"]
    assert set(alert) == {"id", "severity", "summary", "ruleId", "createdAt"}
    assert LISTED in alert["summary"]
    assert officer.get(f"{EVENTS}/{sent['externalEventId']}").json == answer
    (kept,) = officer.get(f"{ALERTS}?customer=c-1").json["data"]
    assert (kept["id"], kept["origin"], kept["typology"]) == (alert["id"], "screening", "WATCHLIST_MATCH")
    screening = officer.get(f"/api/v1/aml/screenings/{kept['figures']['values']['screening']}").json
    assert (screening["alertId"], screening["externalId"]) == (alert["id"], "c-1")
    case = officer.get(f"{CASES}/{kept['caseId']}").json
    assert [one["externalEventId"] for one in case["events"]] == [sent["externalEventId"]]
    again = officer.post(EVENTS, event("c-1", metadata=to(LISTED))).json
    assert [one["id"] for one in again["alerts"]] == [alert["id"]]
    assert again["alerts"][0]["createdAt"] == alert["createdAt"]


def test_rules_and_names_meet_in_one_case_and_a_mistake_is_remembered(listed: Service) -> None:
    officer = new_officer(listed, "--inline-screening", "on")
    body = event("c-2", metadata=to(LISTED, counterpartyCountry="KP"))
    alerts = officer.post(EVENTS, body).json["alerts"]
    assert alerts[0]["ruleId"] == "call-for-action"
    assert len(alerts) == 2
    (case,) = officer.get(f"{CASES}?customer=c-2").json["data"]
    assert case["alertCount"] == 2
    resolved = officer.post(f"{CASES}/{case['id']}/resolve", {"resolution": "FALSE_POSITIVE"})
    assert resolved.status == 200
    assert officer.post(EVENTS, event("c-2", metadata=to(LISTED))).json["status"] == "CLEAR"
    assert officer.post(EVENTS, event("c-3", metadata=to(LISTED))).json["status"] == "ALERTED"


def test_customers_are_screened_by_the_names_they_go_by(listed: Service) -> None:
    officer = new_officer(listed, "--inline-screening", "on")
    for number, customer in enumerate(
        ({"name": LISTED}, {"metadata": {"firstName": "Rosalind", "lastName": "Achterberg"}})
    ):
        body = event(f"n-{number}", customer={"externalId": f"n-{number}", **customer}, metadata=None)
        assert officer.post(EVENTS, body).json["status"] == "ALERTED"
    other = {"externalId": "n-9", "name": "Wilhelmina Oakes"}
    assert officer.post(EVENTS, event("n-9", customer=other)).json["status"] == "CLEAR"


def test_without_the_setting_names_are_left_alone_and_it_is_followed_while_running(listed: Service) -> None:
    officer = new_officer(listed)
    assert officer.post(EVENTS, event("c-1", metadata=to(LISTED))).json["status"] == "CLEAR"
    said = listed.cli("aml", "set", "--tenant", officer.id, "--inline-screening", "on", "--json")
    assert said["inlineScreening"] is True
    listed.wait_for(
        lambda: officer.post(EVENTS, event("c-1", metadata=to(LISTED))).json["status"] == "ALERTED"
    )


def test_an_event_is_taken_while_no_list_is_loaded(service: Service) -> None:
    officer = new_officer(service, "--inline-screening", "on")
    for metadata in (to(LISTED), to("–"), to("x" * 900), to(LISTED, counterpartyCountry="KP")):
        answer = officer.post(EVENTS, event("c-1", metadata=metadata))
        assert answer.status == 200
        assert all(alert["ruleId"] == "call-for-action" for alert in answer.json["alerts"])


def named(name: str) -> AmlEvent:
    return read_taken_aml_event(event("c", metadata=to(name)), 1_790_000_000_000)


@pytest.fixture
async def screener(tmp_path: Path) -> AsyncIterator[Screener]:
    """A screener on a store and a list of its own."""
    async with await SqliteStore.open(tmp_path / "vettance.db", writer="thread") as store:
        await store.migrate()
        path = tmp_path / "own.csv"
        path.write_text(OWN_LIST)
        await import_list(store, tmp_path, "csv", [path], 1_790_000_000_000)
        keeper = IndexKeeper(store, tmp_path)
        await keeper.reload()
        made = Screener(store, IdSource(), keeper)
        yield made
        made.close()


async def test_an_event_waits_no_longer_than_its_time_and_names_are_screened_behind_it(
    screener: Screener,
) -> None:
    inline = InlineScreener(screener, wait_s=0.0)
    assert await inline.look("ten_t", named(LISTED)) == []
    assert await inline.look("ten_t", named("Wilhelmina Oakes")) == []
    await inline.settle()
    history = await screener.weigh("ten_t", *(await known_party(screener)))
    assert len(history.history.open_alerts) == 1
    # What was found once is known for a while, and is there at once.
    (found,) = await inline.look("ten_t", named(LISTED))
    assert found.request.subject.name == LISTED


async def known_party(screener: Screener) -> tuple[ScreenRequest, SearchResult]:
    (request,) = requests_of(named(LISTED))
    assert request is not None
    return request, await screener.look("ten_t", request)


async def test_an_outcome_is_kept_for_a_while_only(screener: Screener) -> None:
    now = [0.0]
    inline = InlineScreener(screener, wait_s=30.0, clock=lambda: now[0])
    (first,) = await inline.look("ten_t", named(LISTED))
    (again,) = await inline.look("ten_t", named(LISTED))
    assert again.found is first.found
    now[0] += KEPT_S
    (later,) = await inline.look("ten_t", named(LISTED))
    assert later.found is not first.found


def test_whoever_is_named_is_asked_for_once() -> None:
    body = event("c", customer={"externalId": "c", "name": "Ann", "metadata": {"dob": "1969-10-11"}})
    body["metadata"] = to("Bo", segment="business")
    own, other = requests_of(read_taken_aml_event(body, 1_790_000_000_000))
    assert own is not None
    assert other is not None
    assert (own.external_id, own.subject.name, own.role) == ("c", "Ann", "")
    assert own.subject.birth is not None
    assert (other.subject.name, other.external_id) == ("Bo", "c")
    assert other.subject == Subject(name="Bo")
    assert other.role
    assert list(requests_of(read_taken_aml_event(event("c"), 1_790_000_000_000))) == []
