"""A watched event: as it was sent, and the alerts that it is behind."""

from typing import Any, Final

from vettance.aml.quality.sql import select_alerts_of_rules
from vettance.aml.sql import select_sent
from vettance.console.aml_cases_page import alert_shown
from vettance.console.event_members import members_of
from vettance.console.page import QUEUE_READERS, ConsolePage, PageAnswer, View, Visit, segment
from vettance.console.rule_place import AML
from vettance.wire.payload import JSON, decode


async def aml_event(visit: Visit) -> PageAnswer:
    """GET /console/aml/events/{event}: by the id that the tenant gave it."""
    one = await visit.ask("GET", f"/api/v1/aml/events/{segment(visit.path['event'])}")
    store, tenant = visit.parts.store, visit.tenant.id
    rows = await store.read(select_sent(tenant, [one["id"]]))
    sent = _read(rows[0][1]) if rows else {}
    ids = [alert["id"] for alert in one["alerts"]]
    found = await store.read(select_alerts_of_rules(tenant, ids)) if ids else []
    known = {alert: (rule, resolution, case) for alert, rule, resolution, case in found}
    customer = sent.get("customer")
    values = {
        "one": one,
        "sent": members_of(visit, sent, frozenset()),
        "customer": customer.get("externalId") if isinstance(customer, dict) else None,
        "alerts": [_alert(alert, *known.get(alert["id"], ("", None, ""))) for alert in one["alerts"]],
    }
    return View("aml_event.html", values, title=str(sent.get("eventName", "Event")))


def _read(sent: bytes) -> JSON:
    """Return what was sent; nothing of what is damaged."""
    try:
        found = decode(sent)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _alert(alert: dict[str, Any], rule: str, resolution: str | None, case: str) -> dict[str, Any]:
    """Return an alert for the page; one of a name on a list has no rule, and its case is not looked for."""
    return {
        **alert_shown({**alert, "resolution": resolution}),
        "url": f"/console/aml/cases/{case}" if case else "",
        "ruleUrl": AML.url_of(rule) if rule else "",
    }


PAGES: Final = (ConsolePage("GET", "/console/aml/events/{event}", QUEUE_READERS, aml_event),)
