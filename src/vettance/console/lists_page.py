"""The allow and block lists."""

import asyncio
from typing import Any, Final

from vettance.console.decisions_page import entity_url
from vettance.console.entity_page import KIND_LABELS, entries_matching
from vettance.console.list_actions import ACTIONS, ROOT
from vettance.console.list_pages import filtered_by, list_page
from vettance.console.page import READERS, WORKERS, ConsolePage, View, Visit
from vettance.console.review_forms import blind_entries
from vettance.console.words import Words
from vettance.lists.answers import answer
from vettance.lists.entry import VALUE_KINDS
from vettance.wire.payload import decode, encode

#: What a type is called where that is not its own name.
_LABELS: Final = {"EMAIL": Words("E-mail"), "DEVICE": Words("Device"), "IP": Words("IP address or range")}
TYPES: Final = tuple((one.value, _LABELS.get(one.value, one.value.capitalize())) for one in VALUE_KINDS)

_ADDRESS: Final = Words("IP address")
_RANGE: Final = Words("IP range")


async def lists(visit: Visit) -> View:
    """GET /console/lists."""
    asked = {name: visit.query.get(name) for name in ("type", "listType", "cursor")}
    value = visit.sight.value("text", visit.query.get("value").strip())
    if value:
        found = await _matching(visit, value, asked["type"], asked["listType"])
    else:
        found = await visit.ask("GET", "/api/v1/lists", {**asked, "limit": 50})
    made_at_ms = [visit.show.moment(one["createdAt"]) or 0 for one in found["data"]]
    hidden = await blind_entries(visit, made_at_ms)
    shown = [one for one in found["data"] if one["id"] not in hidden]
    filters = {name: asked[name] for name in ("type", "listType")}
    values = {
        "entries": [_entry(visit, one) for one in shown],
        "is_hidden": len(shown) < len(found["data"]),
        "types": TYPES,
        "kind": asked["type"],
        "list_type": asked["listType"],
        "value": visit.sight.name("text", value) if value else "",
        "may_change": visit.may(*WORKERS),
        "page": list_page(visit, filtered_by(ROOT, filters), found, "entry"),
    }
    return View("lists.html", values, title=Words("Lists"))


async def _matching(visit: Visit, value: str, kind: str, list_type: str) -> dict[str, Any]:
    """Return the entries that a value matches, as a page of the API: an address is in ranges, too."""
    types = [one for one in VALUE_KINDS if kind in ("", one.value)]
    found = await asyncio.gather(*(entries_matching(visit, one, value) for one in types))
    entries = [
        decode(encode(answer(entry)))
        for several in found
        for entry in several
        if list_type in ("", entry.list_type.value)
    ]
    return {"data": entries, "total": len(entries), "hasMore": False}


def _entry(visit: Visit, one: dict[str, Any]) -> dict[str, Any]:
    kind = one["type"].lower()
    is_range = "/" in one["value"] and kind == "ip"
    return {
        **one,
        "label": _RANGE if is_range else _ADDRESS if kind == "ip" else dict(TYPES)[one["type"]],
        "text": one["value"] if is_range else visit.sight.text(one["value"]),
        "url": "" if is_range or kind not in KIND_LABELS else entity_url(visit, kind, one["value"]),
    }


PAGES: Final = (ConsolePage("GET", ROOT, READERS, lists), *ACTIONS)
