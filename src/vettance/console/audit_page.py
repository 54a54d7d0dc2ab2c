"""The audit log: who changed, revealed or exported what, and whether the log is as it was written."""

from typing import Any, Final

from vettance.audit.chain import KeptEntry
from vettance.audit.read_log import described, entries_of, find_fault, newest_of
from vettance.console.page import OVERSEERS, ConsolePage, Download, PageAnswer, View, Visit, url_of
from vettance.console.words import Words
from vettance.wire.payload import encode

PATH: Final = "/console/audit"
_SHOWN: Final = 50
#: Entries that one page looks through for those that match.
_LOOKED_AT_MAX: Final = 5_000
_STEP: Final = 500
_END: Final = 2**62


async def audit(visit: Visit) -> PageAnswer:
    """GET /console/audit."""
    actor, action = visit.query.get("actor"), visit.query.get("action")
    before = visit.query.get("before")
    place = int(before) if before.isascii() and before.isdigit() and len(before) < 19 else _END
    found, following = await _matching(visit, actor.casefold(), action.casefold(), place)
    filters = {"actor": actor, "action": action}
    values = {
        "entries": [_shown(one) for one in found],
        **filters,
        "fault": "",
        "page": {
            "words": visit.show.count(len(found), "entry"),
            "first": url_of(PATH, **filters) if before else "",
            "next": url_of(PATH, **filters, before=following) if following else "",
        },
    }
    return View("audit.html", values, title=Words("Audit log"))


async def verify(visit: Visit) -> PageAnswer:
    """POST /console/audit/verify."""
    fault = await find_fault(visit.parts.store, visit.tenant.id)
    if fault is None:
        return visit.redirect(PATH, notice="verified")
    values = {"entries": [], "actor": "", "action": "", "fault": fault, "page": {"words": ""}}
    return View("audit.html", values, title=Words("Audit log"))


async def export(visit: Visit) -> PageAnswer:
    """POST /console/audit/export: JSON lines, oldest first."""
    lines = [encode(described(one)) async for one in entries_of(visit.parts.store, visit.tenant.id)]
    return Download(b"\n".join([*lines, b""]), "application/x-ndjson", "audit.jsonl")


async def _matching(visit: Visit, actor: str, action: str, before: int) -> tuple[list[KeptEntry], int | None]:
    """Return the newest entries that match, and the place to go on from where there may be more."""
    found: list[KeptEntry] = []
    for _ in range(_LOOKED_AT_MAX // _STEP):
        rows = await newest_of(visit.parts.store, visit.tenant.id, before, _STEP)
        for one in rows:
            before = one.seq
            named = one.parts["actor"].text if "actor" in one.parts else ""
            if actor in named.casefold() and action in one.action.casefold():
                found.append(one)
                if len(found) == _SHOWN:
                    return found, before
        if len(rows) < _STEP:
            return found, None
    return found, before


def _shown(one: KeptEntry) -> dict[str, Any]:
    told = described(one)
    return {**told, "details": [(name, _text(told[name])) for name in ("before", "after") if told[name]]}


def _text(value: Any) -> str:
    return value if isinstance(value, str) else encode(value).decode()


PAGES: Final = (
    ConsolePage("GET", PATH, OVERSEERS, audit),
    ConsolePage("POST", f"{PATH}/verify", OVERSEERS, verify),
    ConsolePage("POST", f"{PATH}/export", OVERSEERS, export),
)
