"""The screening desk: a name held against the lists, and what each match rests on."""

import asyncio
from typing import Any, Final

from vettance.aml import sql as aml_sql
from vettance.aml.case import CaseState
from vettance.aml.screening import sql as screening_sql
from vettance.aml.screening.screening_review import ScreeningRecord
from vettance.console.page import QUEUE_READERS, WORKERS, ConsolePage, Download, PageAnswer, View, Visit
from vettance.console.resolution_words import RESOLUTIONS
from vettance.console.screening_words import (
    CLASSIFICATIONS,
    COMPONENTS,
    TYPES,
    component_text,
    fact_of_match,
    fact_of_screening,
    list_title,
    outcome_in_words,
    subject_in_words,
)
from vettance.console.words import Words
from vettance.wire.payload import decode, encode

DESK: Final = "/console/aml/screen"
PATH: Final = "/console/aml/screenings/{id}"
_FIELDS: Final = ("inputName", "inputDob", "inputNationality", "entityType", "externalId")
_RECENT: Final = 20


async def desk(visit: Visit) -> PageAnswer:
    """GET /console/aml/screen."""
    rows = await visit.parts.store.read(screening_sql.select_recent(visit.tenant.id, _RECENT))
    values = {
        "types": TYPES,
        "lists": (await visit.ask("GET", "/api/v1/aml/watchlists"))["data"],
        "recent": [
            {"id": row[0], "outcome": outcome_in_words(row[1]), "at": row[2], "name": _name_of(row[3])}
            for row in rows
        ],
        "may_work": visit.may(*WORKERS),
    }
    return View("screen.html", values, title=Words("Screening"))


async def screen(visit: Visit) -> PageAnswer:
    """POST /console/aml/screen."""
    body: dict[str, Any] = {name: visit.form.get(name) for name in _FIELDS if visit.form.get(name)}
    found = await visit.ask("POST", "/api/v1/aml/screen", body=body)
    return visit.redirect(f"/console/aml/screenings/{found['id']}")


async def screening(visit: Visit) -> PageAnswer:
    """GET /console/aml/screenings/{id}."""
    tenant = visit.tenant.id
    # The API says what was answered; the record adds what officers have said since.
    found = await visit.ask("GET", f"/api/v1/aml/screenings/{visit.path['id']}")
    record, settings = await asyncio.gather(
        visit.parts.screenings.record(tenant, visit.path["id"]),
        visit.parts.store.read(aml_sql.select_settings(tenant)),
    )
    alert = record.alert
    values = {
        "found": found,
        "at": record.created_at_ms,
        "turned_out": RESOLUTIONS[alert.resolution] if alert is not None and alert.resolution else "",
        "four_eyes": aml_sql.settings_of(settings).four_eyes,
        "earlier": [
            {"id": one.id, "outcome": outcome_in_words(one.decision), "at": one.created_at_ms}
            for one in record.earlier
        ],
        "outcome": outcome_in_words(found["decision"]),
        "lists": [(list_title(name), version) for name, version in found["listVersions"].items()],
        "fact": fact_of_screening(found["decidingFact"]) if found.get("decidingFact") else "",
        "subject": subject_in_words(record.sent),
        "matches": [_match(one, found.get("groups", []), record) for one in found["matches"]],
        "traces": [one | {"list": list_title(one["source"])} for one in found.get("clearedByFacts", [])],
        "may_work": visit.may(*WORKERS),
    }
    return View("screening.html", values, title=Words("Screening"))


async def dismiss(visit: Visit) -> PageAnswer:
    """POST /console/aml/screenings/{id}/dismiss: "not the same", remembered until the list says otherwise."""
    body = {
        "watchlistEntityId": visit.form.get("entity"),
        "notes": visit.form.get("notes") or None,
        "officer": visit.signed.actor,
    }
    given = {name: value for name, value in body.items() if value is not None}
    case = await visit.ask("POST", f"/api/v1/aml/screenings/{visit.path['id']}/dismiss", body=given)
    notice = "dismissed-last" if case["state"] == CaseState.CLOSED else "dismissed"
    return visit.redirect(f"/console/aml/screenings/{visit.path['id']}", notice=notice)


async def export(visit: Visit) -> PageAnswer:
    """POST /console/aml/screenings/{id}/export."""
    found = await visit.ask("GET", f"/api/v1/aml/screenings/{visit.path['id']}")
    return Download(encode(found), "application/json", f"{visit.path['id']}.json")


def _match(one: dict[str, Any], groups: list[dict[str, Any]], record: ScreeningRecord) -> dict[str, Any]:
    entity = one["watchlistEntityId"]
    # Screenings that were kept by older versions say less.
    breakdown, points = one["scoreBreakdown"], one.get("contribution", {})
    words = one["explanation"] | one.get("notCompared", {})
    parts = [
        {
            "name": COMPONENTS.get(name, name),
            "share": breakdown.get(name),
            "percent": round(100 * breakdown[name]) if name in breakdown else None,
            "points": points.get(name),
            "words": component_text(name, words.get(name, "")),
        }
        for name in dict.fromkeys((*breakdown, *words))
    ]
    same: dict[str, Any] = next((group for group in groups if group["group"] == one.get("group")), {})
    also_on = [list_title(source) for source in same.get("sources", ()) if source != one["source"]]
    return {
        **one,
        "is_open": entity in record.open_entities,
        "is_dismissed": one.get("falsePositiveRemembered") or entity in record.dismissed,
        "parts": parts,
        "alsoOn": also_on,
        "list": one.get("listName") or list_title(one["source"]),
        "strength": CLASSIFICATIONS.get(one["classification"], one["classification"]),
        "fact": fact_of_match(one["decidingFact"], one["score"]) if one.get("decidingFact") else "",
    }


def _name_of(sent: bytes) -> str:
    return str(decode(sent).get("inputName") or "")


PAGES: Final = (
    ConsolePage("GET", DESK, QUEUE_READERS, desk),
    ConsolePage("POST", DESK, WORKERS, screen),
    ConsolePage("GET", PATH, QUEUE_READERS, screening),
    ConsolePage("POST", f"{PATH}/dismiss", WORKERS, dismiss),
    ConsolePage("POST", f"{PATH}/export", QUEUE_READERS, export),
)
