"""The list of decisions, filtered by words in its address."""

from typing import Any

from vettance.console.decision_filters import FILTERS, PATH, SORTS, chosen_filters
from vettance.console.list_pages import list_page
from vettance.console.page import READERS, ConsolePage, View, Visit, segment
from vettance.console.words import Words


async def decisions(visit: Visit) -> View:
    """GET /console/decisions."""
    chosen = chosen_filters(visit)
    cursor = visit.query.get("cursor")
    found = await visit.ask("GET", "/api/v1/decisions", {**chosen.query, "limit": 50, "cursor": cursor})
    values = {
        "rows": [decision_row(visit, one) for one in found["data"]],
        "total": found["total"],
        "chips": chosen.chips,
        "clear": PATH,
        "filters": FILTERS,
        "sorts": SORTS,
        "sort": chosen.address.get("sortBy", "evaluatedAt"),
        "orders": [(key, words, chosen.url(sortBy=key)) for key, words in SORTS],
        "chosen": {name: _in_form(visit, name, value) for name, value in chosen.address.items()},
        "page": list_page(visit, chosen.url, found, "decision"),
    }
    return View("decisions.html", values, title=Words("Decisions"))


def decision_row(visit: Visit, item: dict[str, Any]) -> dict[str, Any]:
    """Return a decision as tables show it."""
    customer, device = item.get("customer") or {}, item.get("device") or {}
    who = customer.get("externalId") or customer.get("email")
    what = device.get("fingerprint") or device.get("externalId")
    return {
        "id": item["id"],
        "url": f"{PATH}/{item['id']}",
        "event": item["eventName"],
        "decision": item["decision"],
        "score": item["riskScore"],
        "level": item["riskLevel"],
        "reasons": item["reasonCodes"],
        "customer": entity_cell(visit, "customer", who),
        "device": entity_cell(visit, "device", what),
        "ip": entity_cell(visit, "ip", item.get("ip")),
        "country": item.get("country"),
        "at": item["evaluatedAt"],
    }


def entity_cell(visit: Visit, kind: str, value: str | None) -> dict[str, str] | None:
    """Return a value as a link to its page."""
    if not value:
        return None
    return {"text": visit.sight.text(value), "url": entity_url(visit, kind, value)}


def entity_url(visit: Visit, kind: str, value: str) -> str:
    """Return the page of an entity, or of a session."""
    root = "/console/sessions" if kind == "session" else f"/console/entities/{kind}"
    return f"{root}/{segment(visit.sight.name(kind, value))}"


def _in_form(visit: Visit, name: str, value: str) -> str:
    """Return what the form of filters shows of one: moments in the visitor's zone."""
    return visit.show.form_moment(value) if name in ("from", "to") else value


PAGES = (ConsolePage("GET", PATH, READERS, decisions),)
