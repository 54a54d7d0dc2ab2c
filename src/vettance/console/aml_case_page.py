"""A case: its alerts with their figures, the money, the events, what was done, and what to do next."""

import asyncio
import re
from typing import Any, Final

from vettance.aml import sql as aml_sql
from vettance.aml.case import SERVICE, AlertOrigin, EntryKind
from vettance.aml.findings import SEVERITIES
from vettance.aml.transfer import transfer_of
from vettance.console.aml_cases_page import (
    CASES,
    alert_shown,
    figures_of,
    heading_and_rest,
    officers_of,
)
from vettance.console.list_pages import rows_shown
from vettance.console.page import (
    QUEUE_READERS,
    WORKERS,
    ConsolePage,
    Download,
    PageAnswer,
    View,
    Visit,
    segment,
    url_of,
)
from vettance.console.resolution_words import RESOLUTIONS, resolved_text, with_resolution
from vettance.console.review_forms import names_of
from vettance.console.rule_place import AML
from vettance.console.svg_money import draw_money, flows_of, party_of
from vettance.console.words import Words
from vettance.errors import Conflict
from vettance.ids import is_id
from vettance.wire.payload import encode

_ROOT: Final = "/api/v1/aml/cases"
#: Rows of alerts, events and acts that are drawn at once; a case may have thousands.
_SHOWN: Final = 100
_DIGITS_MAX: Final = 9
_SEVERITY: Final = re.compile(rf"\b({'|'.join(SEVERITIES)})\b")
_TYPOLOGY: Final = re.compile(r"\b[A-Z][A-Z_]+\b")
_PARTS: Final = ("alerts", "events")
PATH: Final = f"{CASES}/{{id}}"


async def case(visit: Visit) -> PageAnswer:
    """GET /console/aml/cases/{id}."""
    return await _page(visit)


async def act(visit: Visit) -> PageAnswer:
    """POST /console/aml/cases/{id}: a note, an assignment, a resolution or its rejection."""
    what, notes = visit.form.get("what"), visit.form.get("notes") or None
    officer = visit.signed.actor
    bodies: dict[str, dict[str, Any]] = {
        "notes": {"notes": notes, "officer": officer},
        "assign": {
            "assignee": visit.form.get("assignee") or None,
            "officer": officer,
            "updatedAt": visit.form.get("updatedAt"),
        },
        "resolve": {
            "resolution": visit.form.get("resolution"),
            "notes": notes,
            "officer": officer,
            "updatedAt": visit.form.get("updatedAt"),
        },
        "reject": {"notes": notes, "officer": officer, "updatedAt": visit.form.get("updatedAt")},
    }
    body = bodies.get(what, bodies["notes"])
    given = {name: value for name, value in body.items() if value is not None}
    try:
        await visit.ask(
            "POST", f"{_ROOT}/{visit.path['id']}/{what if what in bodies else 'notes'}", body=given
        )
    except Conflict as refused:
        return await _page(visit, refused.message)
    return visit.redirect(f"{CASES}/{visit.path['id']}", notice="saved")


async def export(visit: Visit) -> PageAnswer:
    """POST /console/aml/cases/{id}/export."""
    found = await visit.ask("GET", f"{_ROOT}/{visit.path['id']}/export")
    return Download(encode(found), "application/json", f"{visit.path['id']}.json")


async def _page(visit: Visit, warning: str = "") -> View:
    found, settings = await asyncio.gather(
        visit.ask("GET", f"{_ROOT}/{visit.path['id']}"),
        visit.parts.store.read(aml_sql.select_settings(visit.tenant.id)),
    )
    own, may_work = visit.signed.actor, visit.may(*WORKERS)
    alerts, alert_page = _part(visit, "alerts", found["alerts"], "alert")
    events, event_page = _part(visit, "events", found["events"], "event")
    flows = flows_of(transfer_of(one["event"]) for one in found["events"])
    values = {
        "case": with_resolution(found),
        "alerts": [
            {
                **alert_shown(one),
                "figures": figures_of(visit, one),
                "rule_url": _rule_url(one),
                "screening_url": _screening_url(one),
            }
            for one in alerts
        ],
        "has_priority": any(one["priority"] is not None for one in alerts),
        "alert_page": alert_page,
        "events": [_event(visit, one) for one in events],
        "event_page": event_page,
        "timeline": [said_act(one) for one in found["timeline"][-_SHOWN:]],
        "is_cut": len(found["timeline"]) > _SHOWN,
        "picture": draw_money(found["customer"], flows, visit.show),
        "flows": flows,
        "warning": warning,
        "typed": {name: visit.form.get(name) for name in ("notes", "assignee", "resolution")},
        "resolutions": RESOLUTIONS.items(),
        "four_eyes": aml_sql.settings_of(settings).four_eyes,
        "is_proposer": found["proposedBy"] == visit.signed.user_id,
        "proposer": (await names_of(visit)).get(found["proposedBy"] or "", found["proposedBy"]),
        "officer": own,
        "officers": await officers_of(visit, visit.form.get("assignee"), found["assignee"])
        if may_work
        else [],
        "may_work": may_work,
    }
    return View("aml_case.html", values, title=f"Case of {found['customer']}", status=409 if warning else 200)


def said_act(entry: dict[str, Any]) -> dict[str, Any]:
    """Return a line of what was done; what an alert says in full is in the table of alerts."""
    text = entry.get("text") or ""
    said = heading_and_rest(text)[0] if entry["kind"] == EntryKind.ALERTED else resolved_text(text)
    if entry["kind"] == EntryKind.ALERTED:
        severities, colon, rest = said.partition(":")
        severities = _SEVERITY.sub(lambda found: found[0].capitalize(), severities)
        said = _TYPOLOGY.sub(lambda found: found[0].replace("_", " ").lower(), severities) + colon + rest
    by = Words("the service") if entry["actor"] == SERVICE else entry["actor"]
    return {**entry, "actor": by, "text": said}


def _rule_url(alert: dict[str, Any]) -> str:
    """Return the page of the rule that raised an alert; nothing where a name on a list did."""
    return AML.url_of(alert["ruleId"]) if alert["origin"] == AlertOrigin.RULE else ""


def _screening_url(alert: dict[str, Any]) -> str:
    """Return the page of the screening that raised an alert: what agrees, and where to say "not the same"."""
    values = alert["figures"].get("values")
    found = values.get("screening") if isinstance(values, dict) else None
    is_screening = alert["origin"] == AlertOrigin.SCREENING and is_id(str(found), "scr")
    return f"/console/aml/screenings/{found}" if is_screening else ""


def _part(visit: Visit, name: str, rows: list[Any], noun: str) -> tuple[list[Any], dict[str, str]]:
    """Return the rows that the page shows, from the number in the query on, and where the others are."""
    start = _start(visit, name)
    end, path = start + _SHOWN, f"{CASES}/{visit.path['id']}"
    shown = rows[start:end]
    # Each part keeps the place of the other.
    others = {other: _start(visit, other) or None for other in _PARTS if other != name}
    pages = {
        **rows_shown(visit.show, start + 1, len(shown), len(rows), noun),
        "first": url_of(path, **others) if start else "",
        "next": url_of(path, **others, **{name: end}) if end < len(rows) else "",
    }
    return shown, pages


def _start(visit: Visit, name: str) -> int:
    """Return from which row on a part is asked for."""
    asked = visit.query.get(name)
    return int(asked) if asked.isascii() and asked.isdigit() and len(asked) <= _DIGITS_MAX else 0


def _event(visit: Visit, one: dict[str, Any]) -> dict[str, Any]:
    transfer = transfer_of(one["event"])
    amount = "" if transfer.amount is None else transfer.amount
    return {
        "id": one["externalEventId"],
        "url": f"/console/aml/events/{segment(one['externalEventId'])}",
        "at": one["occurredAt"],
        "name": one["event"].get("eventName", ""),
        "direction": "in" if transfer.incoming else "out" if transfer.outgoing else "",
        "amount": visit.show.money(amount, transfer.currency),
        "counterparty": party_of(transfer) or "",
        "country": transfer.counterparty_country or "",
        "rules": one["ruleIds"],
    }


PAGES: Final = (
    ConsolePage("GET", PATH, QUEUE_READERS, case),
    ConsolePage("POST", PATH, WORKERS, act),
    ConsolePage("POST", f"{PATH}/export", QUEUE_READERS, export),
)
