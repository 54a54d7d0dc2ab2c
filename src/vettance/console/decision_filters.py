"""The filters of the decisions as people read them: "decision is review", each in the address of the page."""

import datetime as dt
from typing import Any, Final, NamedTuple
from urllib.parse import urlencode

from vettance.console.page import Visit
from vettance.console.words import Words

PATH: Final = "/console/decisions"


class DecisionFilter(NamedTuple):
    """One filter: its name in the address and the API, its words, and the kind of personal value it takes."""

    name: str
    label: str
    words: str
    kind: str = ""
    options: tuple[tuple[str, str], ...] = ()
    input: str = "text"


FILTERS: Final = (
    DecisionFilter(
        "decision",
        Words("Decision"),
        "decision is",
        options=(("approve", Words("Approve")), ("review", Words("Review")), ("deny", Words("Deny"))),
    ),
    DecisionFilter(
        "riskLevel",
        Words("Risk level"),
        "risk level is",
        options=(
            ("low", Words("Low")),
            ("medium", Words("Medium")),
            ("high", Words("High")),
            ("critical", Words("Critical")),
        ),
    ),
    DecisionFilter("minScore", Words("Score from"), "score is at least", input="number"),
    DecisionFilter("maxScore", Words("Score to"), "score is at most", input="number"),
    DecisionFilter("customer", Words("Customer (id or e-mail)"), "customer is", kind="customer"),
    DecisionFilter("device", Words("Device (id or fingerprint)"), "device is", kind="device"),
    DecisionFilter("ip", "IP address", "IP is", kind="ip"),
    DecisionFilter("country", Words("Country"), "country is"),
    DecisionFilter("sessionId", Words("Session"), "session is", kind="session"),
    DecisionFilter("reasonCode", Words("Reason"), "reason is"),
    DecisionFilter("search", Words("Holds the text"), "holds", kind="text"),
    DecisionFilter("from", Words("From"), "evaluated from", input="datetime-local"),
    DecisionFilter("to", Words("To"), "evaluated before", input="datetime-local"),
)
SORTS: Final = (("evaluatedAt", Words("Newest first")), ("riskScore", Words("Highest score first")))


class FilterChip(NamedTuple):
    """A filter in use: its words, and the address of the page without it."""

    words: str
    without: str


class ChosenFilters(NamedTuple):
    """What the address of a page asks for: the query for the API, the address and the words."""

    query: dict[str, Any]
    address: dict[str, str]
    chips: tuple[FilterChip, ...]

    def url(self, **more: Any) -> str:
        """Return the address of the page with these filters."""
        return address_of({**self.address, **more})


def address_of(fields: dict[str, str]) -> str:
    """Return the address of the decisions with some fields."""
    given = {name: value for name, value in fields.items() if value}
    return f"{PATH}?{urlencode(given)}" if given else PATH


def chosen_filters(visit: Visit) -> ChosenFilters:
    """Read the filters of an address."""
    query: dict[str, Any] = {}
    address: dict[str, str] = {}
    words: dict[str, str] = {}
    for one in FILTERS:
        sent = visit.query.get(one.name)
        if not sent:
            continue
        value = visit.sight.value(one.kind, sent) if one.kind else sent
        if one.input == "datetime-local":
            value = str(moment_s(sent, visit.show.zone))
        query[one.name] = value
        # What a viewer typed is replaced by its token in every link of the page.
        address[one.name] = visit.sight.name(one.kind, value) if one.kind else value
        words[one.name] = f"{one.words} {_shown(visit, one, value)}"
    if (sort := visit.query.get("sortBy")) in dict(SORTS):
        query["sortBy"] = address["sortBy"] = sort
    chips = tuple(
        FilterChip(text, address_of({key: value for key, value in address.items() if key != name}))
        for name, text in words.items()
    )
    return ChosenFilters(query, address, chips)


def _shown(visit: Visit, one: DecisionFilter, value: str) -> str:
    if one.input == "datetime-local":
        return visit.show.plain(round(float(value) * 1000)) if _is_number(value) else value
    if one.options:
        return dict(one.options).get(value.lower(), value).lower()
    return visit.sight.text(value) if one.kind else value


def _is_number(text: str) -> bool:
    return text.replace(".", "", 1).isdecimal() and len(text) <= 12


def moment_s(text: str, zone: dt.tzinfo) -> str:
    """Return Unix seconds of a moment that a form sent in the visitor's zone; other texts as they are."""
    try:
        moment = dt.datetime.fromisoformat(text)
    except ValueError:
        return text
    return str(int((moment if moment.tzinfo else moment.replace(tzinfo=zone)).timestamp()))
