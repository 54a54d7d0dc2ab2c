"""The audit log: who changed, revealed or exported what, and whether the log is as it was written."""

from collections.abc import Mapping
from typing import Any, Final

from vettance.audit.chain import KeptEntry
from vettance.audit.read_log import described, entries_of, find_fault, newest_of
from vettance.console.action_words import WORDS, action_in_words
from vettance.console.audit_details import said_members
from vettance.console.audit_subjects import subject_of
from vettance.console.list_pages import filtered_by, list_page
from vettance.console.page import OVERSEERS, ConsolePage, Download, PageAnswer, View, Visit
from vettance.console.review_forms import names_of
from vettance.console.shown_values import ValueFormatter
from vettance.console.words import Words
from vettance.wire.payload import encode

PATH: Final = "/console/audit"
_SHOWN: Final = 50
#: Entries that one page looks through for those that match.
_LOOKED_AT_MAX: Final = 5_000
_STEP: Final = 500
_END: Final = 2**62
#: What an entry holds, and what that is called.
_SIDES: Final = (("before", Words("Before")), ("after", Words("After")))
_ONE_SIDE: Final = (("after", Words("Details")),)


async def audit(visit: Visit) -> PageAnswer:
    """GET /console/audit."""
    actor, action = visit.query.get("actor"), visit.query.get("action")
    before = visit.query.get("before")
    place = int(before) if before.isascii() and before.isdigit() and len(before) < 19 else _END
    names = {visit.tenant.id: visit.tenant.name, **await names_of(visit)}
    found, following = await _matching(visit, actor.casefold(), action.casefold(), place)
    filters = {"actor": actor, "action": action}
    values = {
        "entries": [_shown(one, names, visit.show) for one in found],
        **filters,
        "actions": sorted(set(WORDS.values())),
        "fault": "",
        "page": list_page(
            visit,
            filtered_by(PATH, filters),
            {"data": found, "hasMore": following is not None, "nextCursor": following},
            "entry",
            cursor="before",
        ),
    }
    return View("audit.html", values, title=Words("Audit log"))


async def verify(visit: Visit) -> PageAnswer:
    """POST /console/audit/verify."""
    fault = await find_fault(visit.parts.store, visit.tenant.id)
    if fault is None:
        return visit.redirect(PATH, notice="verified")
    values = {"entries": [], "actor": "", "action": "", "actions": [], "fault": fault, "page": {}}
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
            if (
                actor in named.casefold()
                and action in f"{action_in_words(one.action)}\n{one.action}".casefold()
            ):
                found.append(one)
                if len(found) == _SHOWN:
                    return found, before
        if len(rows) < _STEP:
            return found, None
    return found, before


def _shown(one: KeptEntry, names: Mapping[str, str], show: ValueFormatter) -> dict[str, Any]:
    told = described(one)
    sides, about = _SIDES if told["before"] else _ONE_SIDE, subject_of(told, names)
    return {
        **told,
        "who": names.get(told["actor"], "") or _at_command_line(told["actor"]),
        "words": action_in_words(one.action),
        "url": about.url,
        "details": [(title, said_members(told[name], show, names)) for name, title in sides if told[name]],
        "about": about.words,
    }


def _at_command_line(actor: str) -> str:
    """Return who typed a command; nothing for other actors."""
    user = actor.removeprefix("cli:")
    return f"{user}, at the command line" if user != actor else ""


PAGES: Final = (
    ConsolePage("GET", PATH, OVERSEERS, audit),
    ConsolePage("POST", f"{PATH}/verify", OVERSEERS, verify),
    ConsolePage("POST", f"{PATH}/export", OVERSEERS, export),
)
