"""The overview: how many were let through, looked at and stopped, and why; it renews itself."""

import asyncio
from typing import Any, Final

from markupsafe import Markup

from vettance.console.overview_figures import changed_rules, model_in_force, pace, rules_in_force
from vettance.console.page import (
    HOME,
    LEADS,
    LIVE_ID,
    OVERSEERS,
    QUEUE_READERS,
    READERS,
    ConsolePage,
    View,
    Visit,
    url_of,
)
from vettance.console.reports_page import pictures_of
from vettance.console.review_forms import BULK
from vettance.console.spans import TimeSpan, choices, span_of
from vettance.console.svg_charts import share_mark
from vettance.console.words import Words
from vettance.feedback.label import MEANS_FRAUD, Label
from vettance.history.answers import decision_stats
from vettance.history.rollup import SpanCounts
from vettance.reviews.sql import AGES_COUNTED
from vettance.wire.payload import decode, encode

#: How often an open overview asks for itself again.
_EVERY: Final = "5s"


async def overview(visit: Visit) -> View:
    """GET /console/."""
    span = span_of(visit)
    counted = await asyncio.gather(
        _count(visit, span.start_s, span.end_s),
        _count(visit, *span.before),
        _count(visit, span.end_s - 60, span.end_s),
    )
    now, then = (decode(encode(decision_stats(one))) for one in counted[:2])
    speed = await pace(visit, counted[2].totals.evaluated)
    pictures = [picture for _, picture in pictures_of(visit, now, then, span)]
    most = max((one["count"] for one in now["topReasonCodes"]), default=1)
    values = {
        "model": await model_in_force(visit),
        "rules_version": await rules_in_force(visit),
        "queue": await _queue(visit),
        "labels": await _labels(visit, span),
        "troubles": await _troubles(visit),
        "pace": speed,
        "changed": await changed_rules(visit, counted[0], counted[1], speed.version),
        "live": {"id": LIVE_ID, "url": url_of(HOME, span=span.word), "every": _EVERY},
        "span": span,
        "may_set": visit.may(*OVERSEERS),
        "spans": choices(HOME, span, ("1h", "24h", "7d", "30d")),
        "stats": now,
        "reasons": [
            {
                **one,
                "mark": share_mark(one["count"] / most),
                "url": url_of(
                    "/console/decisions", reasonCode=one["code"], **{"from": span.start_s, "to": span.end_s}
                ),
            }
            for one in now["topReasonCodes"]
        ],
        "before": then,
        "outcomes": [
            _outcome(visit, word, now, then, span, picture)
            for word, picture in zip(("approve", "review", "deny"), pictures, strict=True)
        ],
    }
    return View("overview.html", values, title=Words("Overview"))


async def _count(visit: Visit, start_s: int, end_s: int) -> SpanCounts:
    counted: SpanCounts = await visit.parts.counter.count(visit.tenant.id, start_s * 1000, end_s * 1000)
    return counted


async def _queue(visit: Visit) -> dict[str, Any] | None:
    """Return how many reviews wait, by state and by age, for those who see the queue."""
    if not visit.may(*QUEUE_READERS):
        return None
    states = await visit.parts.reviews.states(visit.tenant.id)
    ages = await visit.parts.reviews.ages(visit.tenant.id)
    return {
        "open": states.get("open", 0),
        "claimed": states.get("claimed", 0),
        "ages": [
            (words, f"{visit.show.number(count)}{'+' if count >= AGES_COUNTED else ''}")
            for words, count in zip(("under 1 h", "under 24 h", "older"), ages, strict=True)
            if count
        ],
    }


async def _labels(visit: Visit, span: TimeSpan) -> dict[str, str] | None:
    """Return how often what was stopped turned out legitimate, as far as labels say; None without any."""
    counted = await visit.parts.counter.labels(visit.tenant.id, span.start_s * 1000, span.end_s * 1000)
    stopped = [(MEANS_FRAUD.get(Label(one.label)), one.review + one.block) for one in counted]
    legit = sum(count for meaning, count in stopped if meaning is False)
    whole = legit + sum(count for meaning, count in stopped if meaning is True)
    if not whole:
        return None
    return {"share": visit.show.percent(legit / whole), "words": visit.show.interval(legit, whole)}


async def _troubles(visit: Visit) -> list[tuple[str, str]]:
    """Return what waits for a lead, webhooks that fail and lists that are old, for those who can mend it."""
    found = []
    if visit.may(*LEADS) and (asked := (await visit.parts.bulk.current(visit.tenant.id)).get("asked")):
        words = "bulk request waits" if asked == 1 else "bulk requests wait"
        found.append((f"{visit.show.number(asked)} {words} for a second signature", BULK))
    if visit.may(*OVERSEERS):
        listed = (await visit.ask("GET", "/api/v1/webhooks/subscriptions"))["subscriptions"]
        for one in listed:
            health = (await visit.ask("GET", f"/api/v1/webhooks/subscriptions/{one['id']}"))["health"]
            if health["state"] == "failing":
                found.append((f"Webhook to {one['url']} fails", f"/console/webhooks/{one['id']}"))
    if visit.tenant.aml and visit.may(*QUEUE_READERS):
        listed = (await visit.ask("GET", "/api/v1/aml/watchlists"))["data"]
        found += [
            (f"{one['title']} was not asked for a week", "/console/settings")
            for one in listed
            if one["stale"]
        ]
    return found


def _outcome(visit: Visit, word: str, now: Any, then: Any, span: TimeSpan, picture: Markup) -> dict[str, Any]:
    """Return a rate with what it was before, its course, and the page of its decisions."""
    return {
        "word": word,
        "rate": now["rates"][word],
        "count": now["totals"][word],
        "change": visit.show.change(now["rates"][word], then["rates"][word])
        if then["totals"]["evaluated"]
        else "",
        "picture": picture,
        "url": url_of("/console/decisions", decision=word, **{"from": span.start_s, "to": span.end_s}),
    }


PAGES = (ConsolePage("GET", HOME, READERS, overview),)
