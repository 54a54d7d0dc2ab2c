"""Pages with nothing to show say what will be there, and what to do next."""

import pytest

from tests.console.visitor import Visitor, visitor_of
from tests.live import Service


@pytest.fixture(scope="module")
def first(service: Service) -> Visitor:
    """Somebody of a tenant that has just been made."""
    tenant_id, _ = service.new_tenant("Brand new")
    service.cli("tenant", "set", tenant_id, "--aml", "on", "--json")
    visitor = visitor_of(service, tenant_id, "analyst", "lead", "editor", "admin")
    # The service learns within a second what a command has changed.
    service.wait_for(lambda: visitor.get("/console/aml/alerts").status == 200)
    return visitor


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("", "No decision in the last 24 hours. Send events to POST /api/v1/decisions/evaluate"),
        ("queue", "No review waits."),
        ("queue?view=claimed", "Nobody holds a review."),
        ("queue?view=settled", "No review is settled yet."),
        ("queue?view=expired", "No review has expired."),
        ("lists", "No entries yet. Add an e-mail address"),
        ("lists?listType=block", "No entry is of this list and type. Show all entries"),
        ("aml/alerts", "No alerts yet. Send events to POST /api/v1/aml/events"),
        ("aml/alerts?sortBy=priority", "No alerts yet."),
        ("aml/alerts?severity=HIGH", "No alert matches these filters. Show all alerts"),
        ("aml/cases", "No cases yet. A case opens with the first alert of a customer."),
        ("aml/cases?state=OPEN", "No case matches these filters. Show all cases"),
        ("rules/aml", "The rules that come with the service are in force: "),
        ("webhooks", "No subscription yet."),
    ],
)
def test_an_empty_page_says_what_will_be_there(first: Visitor, path: str, words: str) -> None:
    assert words in first.get(f"/console/{path}").words


def test_shares_of_no_decisions_are_not_written_as_numbers(first: Visitor) -> None:
    assert "0.0 %" not in first.get("/console/").words


def test_who_screens_without_a_watchlist_is_told_first(own_service: Service) -> None:
    one = own_service
    one.cli("tenant", "set", one.tenant_id, "--aml", "on", "--json")
    analyst, page = visitor_of(one, one.tenant_id, "analyst"), "/console/aml/screen"
    one.wait_for(lambda: analyst.get(page).status == 200)
    assert "No watchlist is loaded, so nobody can be screened." in analyst.get(page).words
