"""Search: the one thing that a text names, or what it may mean."""

import asyncio
from typing import Any, Final

from vettance.console.decisions_page import decision_row, entity_url
from vettance.console.entity_page import KIND_LABELS
from vettance.console.page import READERS, ConsolePage, PageAnswer, Redirect, View, Visit, url_of
from vettance.console.words import Words
from vettance.events.ip_address import canonical_ip
from vettance.ids import is_id

_SHOWN: Final = 20
#: How the decisions are asked for a text as a value of each kind.
_KINDS: Final = (
    ("customer", "customer"),
    ("email", "customer"),
    ("device", "device"),
    ("ip", "ip"),
    ("session", "sessionId"),
)
_LABELS: Final = {**KIND_LABELS, "session": Words("Session")}
#: Where records of other kinds have their pages, by the prefix of their ids.
_RECORDS: Final = {
    "evt": "/console/decisions/",
    "cas": "/console/aml/cases/",
    "scr": "/console/aml/screenings/",
}


async def search(visit: Visit) -> PageAnswer:
    """GET /console/search."""
    text = visit.sight.value("text", visit.query.get("q"))
    if not text:
        return View(
            "search.html",
            {"text": "", "found": [], "rows": [], "total": 0, "more": ""},
            title=Words("Search"),
        )
    for prefix, root in _RECORDS.items():
        if is_id(text, prefix):
            return Redirect(root + text)
    kinds = [(kind, name) for kind, name in _KINDS if _may_be(kind, text)]
    totals = await asyncio.gather(
        *(
            visit.ask("GET", "/api/v1/decisions", {name: _value(kind, text), "limit": 1})
            for kind, name in kinds
        )
    )
    found = [
        {
            "label": _LABELS[kind],
            "url": entity_url(visit, kind, _value(kind, text)),
            "text": visit.sight.text(text),
            "total": one["total"],
        }
        for (kind, _), one in zip(kinds, totals, strict=True)
        if one["total"]
    ]
    if len(found) == 1:
        return Redirect(str(found[0]["url"]))
    holding: dict[str, Any] = {"data": [], "total": 0}
    if not found:
        holding = await visit.ask("GET", "/api/v1/decisions", {"search": text, "limit": _SHOWN})
    values = {
        "text": visit.sight.text(text),
        "found": found,
        "rows": [decision_row(visit, one) for one in holding["data"]],
        "total": holding["total"],
        "more": url_of("/console/decisions", search=visit.sight.name("text", text)),
    }
    return View("search.html", values, title=Words("Search"))


def _may_be(kind: str, text: str) -> bool:
    """Tell whether a text can be a value of a kind; a customer's e-mail is an e-mail, not a customer's id."""
    if kind == "ip":
        return canonical_ip(text) is not None
    return kind not in ("email", "customer") or (("@" in text) == (kind == "email"))


def _value(kind: str, text: str) -> str:
    if kind == "ip":
        return canonical_ip(text) or text
    return text.lower() if kind == "email" else text


PAGES: Final = (ConsolePage("GET", "/console/search", READERS, search),)
