"""Webhooks: the subscriptions, those in trouble first, what was sent and answered, and sending it again."""

import asyncio
from typing import Any, Final

from vettance.clock import DAY_MS
from vettance.console.list_pages import filtered_by, list_page
from vettance.console.page import ADMINS, OVERSEERS, ConsolePage, PageAnswer, View, Visit
from vettance.console.shown_once import lead_to, with_shown
from vettance.console.words import Words
from vettance.errors import Refusal, Unprocessable
from vettance.ids import is_id
from vettance.outbox import MessageType
from vettance.webhooks.webhook import UNREACHED
from vettance.wire.payload import timestamp

PATH: Final = "/console/webhooks"
_API: Final = "/api/v1/webhooks"
_ONE: Final = f"{PATH}/{{id}}"
#: What the states of a delivery are called.
STATES: Final = (
    ("pending", Words("Waiting")),
    ("delivered", Words("Delivered")),
    ("exhausted", Words("Given up")),
    ("canceled", Words("Cancelled")),
)
#: Of which time deliveries that were given up are sent again, in days; the first is what is chosen at first.
_REPLAY_DAYS: Final = (
    ("1", Words("the last 24 hours")),
    ("7", Words("the last 7 days")),
    ("30", Words("the last 30 days")),
    ("90", Words("the last 90 days")),
)
#: How deliveries of a subscription go.
HEALTH: Final = {
    "idle": Words("Nothing sent yet"),
    "failing": Words("Failing"),
    "healthy": Words("Healthy"),
}
_ORDER: Final = {"failing": 0, "idle": 2}
_SHOWN: Final = 50


async def webhooks(visit: Visit) -> PageAnswer:
    """GET /console/webhooks."""
    return await _list(visit)


async def subscribe(visit: Visit) -> PageAnswer:
    """POST /console/webhooks. The page of the subscription shows its secret, once."""
    body = {"url": visit.form.get("url"), "eventTypes": visit.form.all("eventType")}
    try:
        made = await visit.ask("POST", f"{_API}/subscriptions", body=body)
    except Refusal as refused:
        if refused.status not in (400, 409, 422):
            raise
        return await _list(visit, refused)
    return lead_to(visit, f"{PATH}/{made['id']}", secret=made["signingSecret"])


async def subscription(visit: Visit) -> PageAnswer:
    """GET /console/webhooks/{id}."""
    root = f"{_API}/subscriptions/{visit.path['id']}"
    asked = {"state": visit.query.get("state")}
    detail, found = await asyncio.gather(
        visit.ask("GET", root),
        visit.ask(
            "GET", f"{root}/deliveries", {**asked, "limit": _SHOWN, "cursor": visit.query.get("cursor")}
        ),
    )
    values = {
        "one": detail,
        "rows": [{**one, "decisionUrl": _decision_url(one["subjectId"])} for one in found["data"]],
        "asked": asked,
        "states": STATES,
        "health_words": HEALTH,
        "failure_in_words": failure_in_words,
        "state_words": dict(STATES),
        "may_change": visit.may(*ADMINS),
        "page": list_page(visit, filtered_by(f"{PATH}/{visit.path['id']}", asked), found, "delivery"),
        "replay_days": _REPLAY_DAYS,
    }
    return with_shown(visit, View("webhook.html", values, title=Words("Webhook")))


async def unsubscribe(visit: Visit) -> PageAnswer:
    """POST /console/webhooks/{id}/remove."""
    await visit.ask("DELETE", f"{_API}/subscriptions/{visit.path['id']}")
    return visit.redirect(PATH, notice="unsubscribed")


async def test(visit: Visit) -> PageAnswer:
    """POST /console/webhooks/{id}/test."""
    tried = await visit.ask("POST", f"{_API}/subscriptions/{visit.path['id']}/test", body={})
    return lead_to(visit, f"{PATH}/{visit.path['id']}", tried=tried)


async def replay(visit: Visit) -> PageAnswer:
    """POST /console/webhooks/{id}/replay: what was made in the last days, and given up."""
    days = visit.form.get("days") or _REPLAY_DAYS[0][0]
    if days not in dict(_REPLAY_DAYS):
        raise Unprocessable("Choose of which time.", {"days": "must be one of those offered"})
    body = {"since": timestamp(visit.now_ms - int(days) * DAY_MS), "state": "exhausted"}
    done = await visit.ask("POST", f"{_API}/subscriptions/{visit.path['id']}/replay", body=body)
    notice = "replayed" if done["complete"] else "replay-cut"
    count = done["replayed"]
    return visit.redirect(f"{PATH}/{visit.path['id']}", notice if count else "replayed-none", count)


async def replay_one(visit: Visit) -> PageAnswer:
    """POST /console/webhooks/{id}/deliveries/{delivery}/replay."""
    await visit.ask("POST", f"{_API}/deliveries/{visit.path['delivery']}/replay", body={})
    return visit.redirect(f"{PATH}/{visit.path['id']}", notice="replayed")


def failure_in_words(error: str | None) -> str:
    """Return the class of a failure, with the status of an answer behind it, as a sentence."""
    kind, _, status = (error or "").partition(" ")
    if status:
        return f"The receiver answered with status {status}."
    sentences = {one.value: text for one, text in UNREACHED.items()}
    return sentences.get(kind, f"The attempt failed ({kind})." if kind else "")


def _decision_url(subject: str) -> str:
    """Return the page of the decision that a message is about; nothing where it is about something else."""
    return f"/console/decisions/{subject}" if is_id(subject, "evt") else ""


async def _list(visit: Visit, refused: Refusal | None = None) -> View:
    found = (await visit.ask("GET", f"{_API}/subscriptions"))["subscriptions"]
    details: list[dict[str, Any]] = await asyncio.gather(
        *(visit.ask("GET", f"{_API}/subscriptions/{one['id']}") for one in found)
    )
    values = {
        "rows": sorted(details, key=lambda one: _ORDER.get(one["health"]["state"], 1)),
        "kinds": [kind.value for kind in MessageType],
        "health_words": HEALTH,
        "typed": {"url": visit.form.get("url"), "kinds": visit.form.all("eventType")},
        "message": refused.message if refused is not None else "",
        "faults": dict(refused.details) if refused is not None else {},
        "may_change": visit.may(*ADMINS),
    }
    return View(
        "webhooks.html",
        values,
        title=Words("Webhooks"),
        status=refused.status if refused is not None else 200,
    )


PAGES: Final = (
    ConsolePage("GET", PATH, OVERSEERS, webhooks),
    ConsolePage("POST", PATH, ADMINS, subscribe),
    ConsolePage("GET", _ONE, OVERSEERS, subscription),
    ConsolePage("POST", f"{_ONE}/remove", ADMINS, unsubscribe),
    ConsolePage("POST", f"{_ONE}/test", ADMINS, test),
    ConsolePage("POST", f"{_ONE}/replay", ADMINS, replay),
    ConsolePage("POST", f"{_ONE}/deliveries/{{delivery}}/replay", ADMINS, replay_one),
)
