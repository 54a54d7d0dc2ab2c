"""Alerts and cases of the watch for money laundering, as lists."""

import re
from typing import Any, Final

from vettance.console.list_pages import filtered_by, list_page
from vettance.console.page import QUEUE_READERS, ConsolePage, PageAnswer, View, Visit
from vettance.console.resolution_words import with_resolution
from vettance.console.review_forms import people_who_work
from vettance.console.value_words import value_in_words
from vettance.console.words import Words

ALERTS: Final = "/console/aml/alerts"
CASES: Final = "/console/aml/cases"
SEVERITIES: Final = tuple((word, word.capitalize()) for word in ("critical", "high", "medium", "low"))
_ALERT_STATES: Final = (("OPEN", Words("Open")), ("CLOSED", Words("Closed")))
_SORTS: Final = (("", Words("Newest first")), ("priority", Words("By priority")))
_CASE_STATES: Final = (
    ("OPEN", Words("Open")),
    ("PENDING", Words("Waits for a second officer")),
    ("CLOSED", Words("Closed")),
)
_SHOWN: Final = 50
#: A sentence ends at a full stop before a capital; amounts and "10.5" do not end one.
_SENTENCE: Final = re.compile(r".+?[.](?=\s+[A-Z])", re.DOTALL)
#: Figures that are elsewhere on the page.
_SAID: Final = ("ruleId", "ruleName", "screening")


async def alerts(visit: Visit) -> PageAnswer:
    """GET /console/aml/alerts."""
    asked = {name: visit.query.get(name) for name in ("state", "severity", "customer", "ruleId", "typology")}
    sort = visit.query.get("sortBy")
    asked["sortBy"] = sort if sort in dict(_SORTS) else ""
    found = await visit.ask(
        "GET", "/api/v1/aml/alerts", {**asked, "limit": _SHOWN, "cursor": visit.query.get("cursor")}
    )
    values = {
        "rows": [alert_shown(one) for one in found["data"]],
        "asked": asked,
        "is_filtered": any(value for name, value in asked.items() if name != "sortBy"),
        "states": _ALERT_STATES,
        "sorts": _SORTS,
        "severities": SEVERITIES,
        "page": list_page(visit, filtered_by(ALERTS, asked), found, "alert"),
    }
    return View("aml_alerts.html", values, title=Words("Alerts"))


async def cases(visit: Visit) -> PageAnswer:
    """GET /console/aml/cases."""
    asked = {name: visit.query.get(name) for name in ("state", "severity", "customer", "assignee")}
    found = await visit.ask(
        "GET", "/api/v1/aml/cases", {**asked, "limit": _SHOWN, "cursor": visit.query.get("cursor")}
    )
    officers = await officers_of(visit, asked["assignee"])
    values = {
        "rows": [with_resolution(one) for one in found["data"]],
        "asked": asked,
        "is_filtered": any(asked.values()),
        "states": _CASE_STATES,
        "severities": SEVERITIES,
        "officers": officers,
        "names": dict(officers),
        "page": list_page(visit, filtered_by(CASES, asked), found, "case"),
    }
    return View("aml_cases.html", values, title=Words("Cases"))


async def officers_of(visit: Visit, *named: str | None) -> list[tuple[str, str]]:
    """Return (e-mail, name) of those who may be given a case, and of others that are named.

    The API, an address or an earlier form may name anybody.
    """
    people = await people_who_work(visit, by_actor=True)
    known = dict(people)
    return people + [(one, one) for one in dict.fromkeys(named) if one and one not in known]


def alert_shown(one: dict[str, Any]) -> dict[str, Any]:
    """Return an alert as people read it: a heading, and the rest of what it says."""
    heading, rest = heading_and_rest(one["summary"])
    return {**with_resolution(one), "heading": heading, "rest": rest}


def heading_and_rest(text: str) -> tuple[str, str]:
    """Cut what an alert says into its first sentence and the figures that follow."""
    found = _SENTENCE.match(text)
    return (found[0], text[found.end() :].strip()) if found else (text, "")


def figures_of(visit: Visit, alert: dict[str, Any]) -> list[tuple[str, str | None, str]]:
    """Return the figures of an alert as people read them: name, what it counts in words, value."""
    figures = alert["figures"]
    values = figures.get("values") if isinstance(figures.get("values"), dict) else figures
    return [
        (name, value_in_words(name), visit.show.value(value))
        for name, value in values.items()
        if _is_plain(value) and name not in _SAID
    ]


def _is_plain(value: Any) -> bool:
    return isinstance(value, str | int | float) and value != ""


PAGES: Final = (
    ConsolePage("GET", ALERTS, QUEUE_READERS, alerts),
    ConsolePage("GET", CASES, QUEUE_READERS, cases),
)
