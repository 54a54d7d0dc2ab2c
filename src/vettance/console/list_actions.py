"""Putting values on the lists and taking them off, from whichever page the form is on."""

from typing import Any, Final

from vettance.clock import DAY_MS
from vettance.console.page import WORKERS, ConsolePage, PageAnswer, View, Visit, own_path
from vettance.console.words import Words
from vettance.errors import Conflict
from vettance.lists.entry import EntryType
from vettance.lists.entry_bodies import EVERY_ADDRESS, read_value
from vettance.wire.payload import timestamp

ROOT: Final = "/console/lists"
_EXPIRIES: Final = {"1d": 1, "7d": 7, "30d": 30, "90d": 90}
#: What is chosen for how long an entry or a snooze lasts.
EXPIRY_WORDS: Final = {
    "1d": Words("1 day"),
    "7d": Words("7 days"),
    "30d": Words("30 days"),
    "90d": Words("90 days"),
}
#: What is asked before every address there is goes on a list, by list and by family.
_ASKED: Final = {
    "block": {
        "IPv4": Words("Block every IPv4 address?"),
        "IPv6": Words("Block every IPv6 address?"),
    },
    "allow": {
        "IPv4": Words("Allow every IPv4 address?"),
        "IPv6": Words("Allow every IPv6 address?"),
    },
}
#: What would follow, and the button that does it.
_FOLLOWS: Final = {
    "block": Words("Every event from any of these addresses would be denied, whatever the rules say."),
    "allow": Words("Every event from any of these addresses would be approved, whatever the rules say."),
}
_VERBS: Final = {"block": Words("Block all of them"), "allow": Words("Allow all of them")}
#: Fields of the form that come back with the answer.
_KEPT: Final = ("entry", "type", "value", "listType", "expiry", "reason", "next")


async def add(visit: Visit) -> PageAnswer:
    """POST /console/lists."""
    kind, _, value = visit.form.get("entry").partition(" ")
    body: dict[str, Any] = {
        "type": kind or visit.form.get("type"),
        "value": value or visit.form.get("value"),
        "listType": visit.form.get("listType"),
        "reason": visit.form.get("reason") or None,
    }
    days = _EXPIRIES.get(visit.form.get("expiry"))
    if days is not None:
        body["expiresAt"] = timestamp(visit.now_ms + days * DAY_MS)
    target = own_path(visit.form.get("next") or ROOT)
    if visit.form.get("confirm") == "yes":
        body["confirm"] = True
    elif (asked := _question(visit, body, target)) is not None:
        return asked
    try:
        await visit.ask("POST", "/api/v1/lists", body=body)
    except Conflict as refused:
        if refused.details.get("reason") != "duplicate_entry":
            raise
        return visit.redirect(target, notice="already-listed")
    return visit.redirect(target, notice="added")


def _question(visit: Visit, body: dict[str, Any], target: str) -> View | None:
    """Return the page that asks whether every address is meant; None for all other entries."""
    canonical, _ = read_value(EntryType.IP, body["value"]) if body["type"] == "IP" else (None, None)
    asked = _ASKED.get(body["listType"])
    if canonical not in EVERY_ADDRESS or asked is None:
        return None
    family, _ = EVERY_ADDRESS[canonical]
    values = {
        "message": _FOLLOWS[body["listType"]],
        "verb": _VERBS[body["listType"]],
        "sent": [(name, visit.form.get(name)) for name in _KEPT if name in visit.form],
        "back": target,
    }
    return View("confirm_entry.html", values, title=asked[family], status=422)


async def remove(visit: Visit) -> PageAnswer:
    """POST /console/lists/{id}/remove."""
    await visit.ask("DELETE", f"/api/v1/lists/{visit.path['id']}")
    return visit.redirect(own_path(visit.form.get("next") or ROOT), notice="removed")


ACTIONS: Final = (
    ConsolePage("POST", ROOT, WORKERS, add),
    ConsolePage("POST", f"{ROOT}/{{id}}/remove", WORKERS, remove),
)
