"""A decision: what was answered and why, whom it concerns, and what was said and sent about it."""

import asyncio
from typing import Any, Final

from markupsafe import Markup

from vettance.console.decision_rules import rules_shown
from vettance.console.decisions_page import decision_row, entity_url
from vettance.console.event_members import members_of
from vettance.console.label_forms import LABELS
from vettance.console.other_answers import other_answers, recomputed
from vettance.console.page import OVERSEERS, READERS, WORKERS, ConsolePage, PageAnswer, View, Visit
from vettance.console.review_forms import review_shown, undo_shown
from vettance.console.svg_charts import share_mark
from vettance.console.webhooks_page import STATES
from vettance.console.words import Words
from vettance.decisions.field_readers import amount_in
from vettance.webhooks.sql import Delivery, select_deliveries_about

_EVENTS_SHOWN: Final = 8
_FEATURES_SHOWN: Final = 8
#: Messages are made with the decision they are about.
_MESSAGE_MS: Final = 5_000

KINDS: Final = (
    ("customer", Words("Customer")),
    ("device", Words("Device")),
    ("ip", Words("IP address")),
    ("email", Words("E-mail")),
    ("session", Words("Session")),
)


async def decision(visit: Visit) -> PageAnswer:
    """GET /console/decisions/{id}."""
    decision_id = visit.path["id"]
    record = await visit.ask("GET", f"/api/v1/decisions/{decision_id}")
    linked = record["linkedEntities"]
    customer = (linked.get("customer") or {}).get("id")
    history, deliveries, rules = await asyncio.gather(
        _last_events(visit, customer), _deliveries(visit, record), rules_shown(visit, record)
    )
    review = await review_shown(visit, decision_id)
    event = record["inputs"]["event"]
    values = {
        "record": record,
        "outputs": record["outputs"],
        "event": event,
        "amount": _amount(visit, event),
        "used": members_of(visit, event, rules.used),
        "signals": record["inputs"].get("sessionSignals"),
        "rules": rules,
        "other_answers": other_answers(visit, record),
        "contributions": _contributions(record["outputs"].get("model") or {}),
        "recomputed": await recomputed(visit) if "replay" in visit.query else None,
        "entities": [_entity(visit, kind, label, linked[kind]) for kind, label in KINDS if kind in linked],
        "history": [decision_row(visit, one) for one in history],
        "deliveries": deliveries,
        "review": review,
        "feedback": _feedback(visit, record, review),
        "undo": await undo_shown(visit),
        "labels": LABELS,
        "can_label": visit.may(*WORKERS),
        "delivery_states": dict(STATES),
        "sees_webhooks": visit.may(*OVERSEERS),
        "listable": _listable(event),
    }
    return View("decision.html", values, title=f"{event.get('eventName', 'Decision')}")


async def _last_events(visit: Visit, customer: str | None) -> list[dict[str, Any]]:
    if customer is None:
        return []
    query = {"customer": customer, "limit": _EVENTS_SHOWN + 1}
    found: list[dict[str, Any]] = (await visit.ask("GET", "/api/v1/decisions", query))["data"]
    return [one for one in found if one["id"] != visit.path["id"]][:_EVENTS_SHOWN]


async def _deliveries(visit: Visit, record: dict[str, Any]) -> list[Delivery]:
    at_ms = visit.show.moment(record["evaluatedAt"]) or 0
    span = at_ms - _MESSAGE_MS, at_ms + _MESSAGE_MS
    statement = select_deliveries_about(visit.tenant.id, record["id"], *span)
    return [Delivery._make(row) for row in await visit.parts.store.read(statement)]


def _feedback(visit: Visit, record: dict[str, Any], review: dict[str, Any] | None) -> list[dict[str, Any]]:
    """Return the labels; for a second person without those that came with the settlement, or since."""
    feedback: list[dict[str, Any]] = record["feedback"]
    if review is None or not review["is_blind"]:
        return feedback
    return [one for one in feedback if (visit.show.moment(one["updatedAt"]) or 0) < review["settled"]]


def _entity(visit: Visit, kind: str, label: str, link: dict[str, Any]) -> dict[str, Any]:
    return {
        "kind": kind,
        "label": label,
        "text": visit.sight.text(link["id"]),
        "url": entity_url(visit, kind, link["id"]),
        **{name: link.get(name) for name in ("events", "customers", "devices", "firstSeenAt", "lastSeenAt")},
    }


def _contributions(said: dict[str, Any]) -> list[tuple[str, float, Markup]]:
    """Return (text, effect, bar) of the features that moved the model most."""
    found = (said.get("contributions") or [])[:_FEATURES_SHOWN]
    most = max((abs(one["effect"]) for one in found), default=1.0)
    return [
        (
            one["text"],
            one["effect"],
            share_mark(abs(one["effect"]) / most, "deny" if one["effect"] > 0 else "approve"),
        )
        for one in found
    ]


def _amount(visit: Visit, event: dict[str, Any]) -> str:
    amount, currency = amount_in(event)
    return "" if amount is None else visit.show.money(amount, currency)


def _listable(event: dict[str, Any]) -> list[tuple[str, str, str]]:
    """Return what can be put on a list from here: (type, words, value)."""
    parts: list[dict[str, Any]] = []
    for name in ("customer", "device"):
        part = event.get(name)
        parts.append(part if isinstance(part, dict) else {})
    found = (
        ("EMAIL", "customer", parts[0].get("email")),
        ("DEVICE", "device", parts[1].get("fingerprint") or parts[1].get("externalId")),
        ("IP", "address", event.get("ip")),
    )
    return [(kind, words, value) for kind, words, value in found if isinstance(value, str) and value]


PAGES = (ConsolePage("GET", "/console/decisions/{id}", READERS, decision),)
