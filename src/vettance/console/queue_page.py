"""The queue: reviews that wait, the most urgent first, and why."""

from collections.abc import Sequence
from typing import Any, Final

from vettance.console.decisions_page import decision_row
from vettance.console.label_forms import LABELS
from vettance.console.list_pages import filtered_by, list_page, rows_shown
from vettance.console.page import LEADS, QUEUE_READERS, WORKERS, ConsolePage, PageAnswer, View, Visit
from vettance.console.review_forms import (
    BULK,
    QUEUE,
    is_blind_for,
    names_of,
    parts_of,
    undo_shown,
    workers_of,
)
from vettance.console.words import Words
from vettance.history.answers import decision_item
from vettance.reviews.bulk_request import BULK_MAX
from vettance.reviews.review import Review, ReviewState
from vettance.wire.payload import decode, encode

_SHOWN: Final = 50
VIEWS: Final = (
    ("open", Words("Open")),
    ("mine", Words("Yours")),
    ("claimed", Words("Claimed")),
    ("settled", Words("Settled")),
    ("expired", Words("Expired")),
    ("checks", Words("Second looks")),
)


async def queue(visit: Visit) -> PageAnswer:
    """GET /console/queue."""
    chosen = visit.query.get("view")
    chosen = chosen if chosen in dict(VIEWS) else "open"
    desk, tenant = visit.parts.reviews, visit.tenant.id
    states = await desk.states(tenant)
    if chosen == "checks":
        reviews: list[Review] = await desk.checks(tenant, visit.signed.user_id, _SHOWN + 1)
        # Those that are looked at leave the list, and the next ones take their place.
        is_cut = len(reviews) > _SHOWN
        del reviews[_SHOWN:]
        page = rows_shown(visit.show, 1, len(reviews), len(reviews), "review", is_cut=is_cut)
    elif chosen == "mine":
        reviews = await desk.held(tenant, visit.signed.user_id)
        page = rows_shown(visit.show, 1, len(reviews), len(reviews), "review")
    else:
        asked = {"state": chosen, "limit": _SHOWN, "cursor": visit.query.get("cursor")}
        found = await visit.ask("GET", "/api/v1/reviews", asked)
        reviews = await desk.find_several(tenant, [one["decisionId"] for one in found["data"]])
        page = list_page(visit, filtered_by(QUEUE, {"view": chosen}), found, "review")
    values = {
        "view": chosen,
        "views": [(key, words, states.get(key)) for key, words in VIEWS],
        "rows": await queue_rows(visit, reviews, is_blind=chosen == "checks"),
        "labels": LABELS,
        "bulk_max": BULK_MAX,
        "may_work": visit.may(*WORKERS),
        "workers": await workers_of(visit),
        "undo": await undo_shown(visit),
        "bulk_url": BULK,
        "bulk_current": await visit.parts.bulk.current(tenant),
        "is_lead": visit.may(*LEADS),
        "page": page,
    }
    return View("queue.html", values, title=Words("Queue"))


async def queue_rows(
    visit: Visit, reviews: Sequence[Review], *, is_blind: bool = False
) -> list[dict[str, Any]]:
    """Return reviews with their decisions, as the table shows them."""
    names = await names_of(visit)
    found = await visit.parts.explainer.find_by_ids(visit.tenant.id, [one.decision for one in reviews])
    items = {one.stored.id: decode(encode(decision_item(one, made))) for one, made in found}
    rows = []
    for review in reviews:
        item = items.get(review.decision)
        if item is None:
            continue  # Removed a moment ago.
        is_hidden = is_blind or is_blind_for(visit, review)
        holder = review.claimed_by if review.state is ReviewState.CLAIMED else review.settled_by
        shown = {
            "priority": review.priority(review.settled_at_ms or visit.now_ms),
            "parts": ", ".join(f"{word} {points}" for word, points in parts_of(review, visit.now_ms)),
            "due": review.due_at_ms,
            "is_late": review.is_waiting() and review.due_at_ms < visit.now_ms,
            "holder": "" if is_hidden else names.get(holder or "", holder or ""),
            "outcome": None if is_hidden else review.outcome,
            "label": None if is_hidden else review.label,
            "is_hidden": is_hidden,
        }
        rows.append(decision_row(visit, item) | shown)
    return rows


PAGES: Final = (ConsolePage("GET", QUEUE, QUEUE_READERS, queue),)
