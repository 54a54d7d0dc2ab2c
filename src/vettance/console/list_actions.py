"""Putting values on the lists and taking them off, from whichever page the form is on."""

from typing import Any, Final

from vettance.clock import DAY_MS
from vettance.console.page import WORKERS, ConsolePage, PageAnswer, Visit, own_path
from vettance.errors import Conflict
from vettance.wire.payload import timestamp

ROOT: Final = "/console/lists"
_EXPIRIES: Final = {"1d": 1, "7d": 7, "30d": 30, "90d": 90}


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
    try:
        await visit.ask("POST", "/api/v1/lists", body=body)
    except Conflict as refused:
        if refused.details.get("reason") != "duplicate_entry":
            raise
        return visit.redirect(target, notice="already-listed")
    return visit.redirect(target, notice="added")


async def remove(visit: Visit) -> PageAnswer:
    """POST /console/lists/{id}/remove."""
    await visit.ask("DELETE", f"/api/v1/lists/{visit.path['id']}")
    return visit.redirect(own_path(visit.form.get("next") or ROOT), notice="removed")


ACTIONS: Final = (
    ConsolePage("POST", ROOT, WORKERS, add),
    ConsolePage("POST", f"{ROOT}/{{id}}/remove", WORKERS, remove),
)
