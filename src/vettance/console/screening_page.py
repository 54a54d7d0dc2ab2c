"""The screening desk: a name held against the lists, and what each match rests on."""

from typing import Any, Final

from vettance.aml.screening import sql as screening_sql
from vettance.console.page import QUEUE_READERS, WORKERS, ConsolePage, Download, PageAnswer, View, Visit
from vettance.console.words import Words
from vettance.errors import Conflict, Refusal
from vettance.wire.payload import decode, encode

DESK: Final = "/console/aml/screen"
PATH: Final = "/console/aml/screenings/{id}"
_TYPES: Final = (("INDIVIDUAL", Words("Person")), ("ORGANIZATION", Words("Organisation")))
_FIELDS: Final = ("inputName", "inputDob", "inputNationality", "entityType", "externalId")
_RECENT: Final = 20
#: What the components of a score are called.
COMPONENTS: Final = {
    "name": Words("Name"),
    "birthDate": Words("Date of birth"),
    "dob": Words("Date of birth"),
    "country": Words("Country"),
    "nationality": Words("Nationality"),
    "document": Words("Document"),
    "type": Words("Person or organisation"),
}


async def desk(visit: Visit) -> PageAnswer:
    """GET /console/aml/screen."""
    return await _desk(visit)


async def screen(visit: Visit) -> PageAnswer:
    """POST /console/aml/screen."""
    body: dict[str, Any] = {name: visit.form.get(name) for name in _FIELDS if visit.form.get(name)}
    try:
        found = await visit.ask("POST", "/api/v1/aml/screen", body=body)
    except Refusal as refused:
        if refused.status not in (400, 422):
            raise
        return await _desk(
            visit, {name: str(text) for name, text in refused.details.items()}, refused.message
        )
    return visit.redirect(f"/console/aml/screenings/{found['id']}")


async def screening(visit: Visit) -> PageAnswer:
    """GET /console/aml/screenings/{id}."""
    return await _screening(visit)


async def dismiss(visit: Visit) -> PageAnswer:
    """POST /console/aml/screenings/{id}/dismiss: "not the same", remembered until the list says otherwise."""
    body = {
        "watchlistEntityId": visit.form.get("entity"),
        "notes": visit.form.get("notes") or None,
        "officer": visit.signed.actor,
    }
    given = {name: value for name, value in body.items() if value is not None}
    try:
        await visit.ask("POST", f"/api/v1/aml/screenings/{visit.path['id']}/dismiss", body=given)
    except Conflict as refused:
        return await _screening(visit, refused.message)
    return visit.redirect(f"/console/aml/screenings/{visit.path['id']}", notice="dismissed")


async def export(visit: Visit) -> PageAnswer:
    """POST /console/aml/screenings/{id}/export."""
    found = await visit.ask("GET", f"/api/v1/aml/screenings/{visit.path['id']}")
    return Download(encode(found), "application/json", f"{visit.path['id']}.json")


async def _desk(visit: Visit, faults: dict[str, str] | None = None, message: str = "") -> View:
    rows = await visit.parts.store.read(screening_sql.select_recent(visit.tenant.id, _RECENT))
    values = {
        "types": _TYPES,
        "typed": {name: visit.form.get(name) for name in _FIELDS},
        "faults": faults or {},
        "message": message,
        "recent": [
            {"id": row[0], "decision": row[1], "at": row[2], "name": _name_of(row[3])} for row in rows
        ],
        "may_work": visit.may(*WORKERS),
    }
    return View("screen.html", values, title=Words("Screening"), status=422 if faults or message else 200)


async def _screening(visit: Visit, warning: str = "") -> View:
    found = await visit.ask("GET", f"/api/v1/aml/screenings/{visit.path['id']}")
    rows = await visit.parts.store.read(screening_sql.select_screening(visit.tenant.id, visit.path["id"]))
    values = {
        "found": found,
        "subject": _subject(rows[0][0]) if rows else [],
        "matches": [_match(one, found.get("groups", [])) for one in found["matches"]],
        "warning": warning,
        "may_work": visit.may(*WORKERS),
    }
    return View("screening.html", values, title=Words("Screening"), status=409 if warning else 200)


def _match(one: dict[str, Any], groups: list[dict[str, Any]]) -> dict[str, Any]:
    # Screenings that were kept by older versions say less.
    breakdown, points = one["scoreBreakdown"], one.get("contribution", {})
    words = one["explanation"] | one.get("notCompared", {})
    parts = [
        {
            "name": COMPONENTS.get(name, name),
            "share": breakdown.get(name),
            "percent": round(100 * breakdown[name]) if name in breakdown else None,
            "points": points.get(name),
            "words": words.get(name, ""),
        }
        for name in dict.fromkeys((*breakdown, *words))
    ]
    same: dict[str, Any] = next((group for group in groups if group["group"] == one.get("group")), {})
    also_on = [source for source in same.get("sources", ()) if source != one["source"]]
    return {**one, "parts": parts, "alsoOn": also_on}


def _subject(sent: bytes) -> list[tuple[str, str]]:
    body = decode(sent)
    return [(name, _text(value)) for name, value in body.items() if value not in (None, "", [], {})]


def _name_of(sent: bytes) -> str:
    return str(decode(sent).get("inputName") or "")


def _text(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(map(_text, value))
    return encode(value).decode() if isinstance(value, dict) else str(value)


PAGES: Final = (
    ConsolePage("GET", DESK, QUEUE_READERS, desk),
    ConsolePage("POST", DESK, WORKERS, screen),
    ConsolePage("GET", PATH, QUEUE_READERS, screening),
    ConsolePage("POST", f"{PATH}/dismiss", WORKERS, dismiss),
    ConsolePage("POST", f"{PATH}/export", QUEUE_READERS, export),
)
