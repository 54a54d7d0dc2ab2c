"""A session: everything that carries its id, on one time line and as a table."""

import asyncio
from typing import Any, Final, NamedTuple

from vettance.console.decisions_page import entity_cell
from vettance.console.page import READERS, ConsolePage, View, Visit, segment, url_of
from vettance.console.svg_timeline import TimelineMark, timeline
from vettance.errors import NotFound
from vettance.webhooks.sql import Delivery, select_deliveries_about
from vettance.websdk.sql import select_batches_of
from vettance.wire.payload import decode, read_moment

_EVENTS_MAX: Final = 100
#: Deliveries are looked up for so many events; a session rarely has more.
_DELIVERED_MAX: Final = 30
_MESSAGE_MS: Final = 5_000
_OUTCOMES: Final = {"ALLOW": "approve", "REVIEW": "review", "BLOCK": "deny"}
#: A span is zoomed to half and by half, down to a second.
_SPAN_MS_MIN: Final = 1_000


class SessionEntry(NamedTuple):
    """Something that happened in a session. `outcome` is there for events."""

    at_ms: int
    lane: str
    what: str
    url: str
    outcome: str
    about: str


async def session(visit: Visit) -> View:
    """GET /console/sessions/{session}."""
    value = visit.sight.value("session", visit.path["session"])
    query = {"sessionId": value, "limit": _EVENTS_MAX, "sortOrder": "asc"}
    found, batches = await asyncio.gather(
        visit.ask("GET", "/api/v1/events", query),
        visit.parts.store.read(select_batches_of(visit.tenant.id, value)),
    )
    if not found["total"] and not batches:
        raise NotFound
    events = found["data"]
    deliveries = await asyncio.gather(*(_deliveries(visit, one) for one in events[:_DELIVERED_MAX]))
    entries = sorted(
        [
            *(_event(one) for one in events),
            *(_batch(visit, at_ms, signals) for at_ms, signals in batches),
            *(_delivery(visit, one) for several in deliveries for one in several),
        ]
    )
    first_ms, last_ms = entries[0].at_ms, entries[-1].at_ms
    start_ms, end_ms = _span(visit, first_ms, last_ms)
    is_dated = visit.show.day(start_ms) != visit.show.day(end_ms)
    shown = [one for one in entries if start_ms <= one.at_ms <= end_ms]
    here = f"/console/sessions/{segment(visit.sight.name('session', value))}"
    values = {
        "text": visit.sight.text(value),
        "total": found["total"],
        "listed": len(events),
        "first_ms": first_ms,
        "last_ms": last_ms,
        "customers": _who(visit, events, "customer", "externalId", "email"),
        "devices": _who(visit, events, "device", "fingerprint", "externalId"),
        "entries": shown,
        "is_dated": is_dated,
        "hidden": len(entries) - len(shown),
        "picture": _picture(visit, shown, start_ms, end_ms, is_dated=is_dated),
        "zoom": _zoom(here, start_ms, end_ms, first_ms, last_ms),
        "whole": here,
    }
    return View("session.html", values, title=f"Session {visit.sight.text(value)}")


def _event(one: dict[str, Any]) -> SessionEntry:
    outcome = _OUTCOMES.get(one["decision"], "review")
    at_ms = own_moment(one)
    codes = ", ".join(reason["code"] for reason in one["reasonCodes"][:3])
    about = f"score {one['score']}" + (f", {codes}" if codes else "")
    return SessionEntry(
        at_ms, "Events", str(one["eventName"]), f"/console/decisions/{one['id']}", outcome, about
    )


def own_moment(event: dict[str, Any]) -> int:
    """Return the moment that an event itself names, else that of its receipt."""
    metadata = event.get("metadata")
    named = [event.get("occurredAt")]
    if isinstance(metadata, dict):
        named += [metadata.get("occurredAt"), metadata.get("occurred_at")]
    moments = map(read_moment, (*named, event["receivedAt"]))
    return next((at_ms for at_ms in moments if at_ms is not None), 0)


def _batch(visit: Visit, at_ms: int, signals: bytes) -> SessionEntry:
    names = decode(signals)
    count = len(names) if isinstance(names, dict) else 0
    return SessionEntry(at_ms, "Signals", "Batch of signals", "", "", visit.show.count(count, "signal"))


def _delivery(visit: Visit, one: Delivery) -> SessionEntry:
    about = f"{one.state}, {visit.show.count(one.attempts_ever, 'attempt')}"
    return SessionEntry(one.created_at_ms, "Webhooks", str(one.type), "", "", about)


async def _deliveries(visit: Visit, event: dict[str, Any]) -> list[Delivery]:
    at_ms = visit.show.moment(event["receivedAt"]) or 0
    asked = select_deliveries_about(
        visit.tenant.id, event["id"], at_ms - _MESSAGE_MS, at_ms + 2 * _MESSAGE_MS
    )
    return [Delivery._make(row) for row in await visit.parts.store.read(asked)]


def _who(visit: Visit, events: list[dict[str, Any]], kind: str, *names: str) -> list[dict[str, str]]:
    """Return the different values of a kind, in order."""
    found: dict[str, dict[str, str]] = {}
    for one in events:
        part = one.get(kind)
        known: dict[str, Any] = part if isinstance(part, dict) else {}
        value = next((known[name] for name in names if isinstance(known.get(name), str)), None)
        if value and (cell := entity_cell(visit, kind, value)) is not None:
            found.setdefault(value, cell)
    return list(found.values())


def _span(visit: Visit, first_ms: int, last_ms: int) -> tuple[int, int]:
    """Return the span that the address asks for, or all of the session."""
    texts = visit.query.get("from"), visit.query.get("to")
    if all(text.isdecimal() and len(text) < 15 for text in texts):
        start_ms, end_ms = int(texts[0]), int(texts[1])
        if start_ms < end_ms:
            return start_ms, end_ms
    return first_ms, max(last_ms, first_ms + _SPAN_MS_MIN)


def _picture(visit: Visit, entries: list[SessionEntry], start_ms: int, end_ms: int, *, is_dated: bool) -> Any:
    marks = [
        TimelineMark(one.at_ms, one.lane, one.outcome or "quiet", f"{one.what}, {one.about}", one.url)
        for one in entries
    ]
    text = f"{visit.show.count(len(marks), 'entry')} on one time line; the table below lists them."
    label = visit.show.plain if is_dated else visit.show.time_of_day
    labels = label(start_ms), label(end_ms)
    return timeline(marks, ("Events", "Signals", "Webhooks"), (start_ms, end_ms), labels, text)


def _zoom(here: str, start_ms: int, end_ms: int, first_ms: int, last_ms: int) -> list[tuple[str, str]]:
    """Return the ways to another span: (words, address)."""
    half = (end_ms - start_ms) // 2
    ways = []
    if half >= _SPAN_MS_MIN:
        ways.append(("Zoom in", url_of(here, **{"from": start_ms + half // 2, "to": end_ms - half // 2})))
    if start_ms > first_ms or end_ms < last_ms:
        ways.append(("Zoom out", url_of(here, **{"from": max(0, start_ms - half), "to": end_ms + half})))
        ways.append(("Earlier", url_of(here, **{"from": max(0, start_ms - half), "to": end_ms - half})))
        ways.append(("Later", url_of(here, **{"from": start_ms + half, "to": end_ms + half})))
    return ways


PAGES: Final = (ConsolePage("GET", "/console/sessions/{session}", READERS, session),)
