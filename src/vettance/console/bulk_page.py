"""Bulk requests: many reviews settled together, when a lead other than the one who asks has signed second."""

from typing import Any, Final

from vettance.console.label_forms import LABELS
from vettance.console.page import (
    LEADS,
    LIVE_ID,
    QUEUE_READERS,
    WORKERS,
    ConsolePage,
    FormFields,
    PageAnswer,
    View,
    Visit,
)
from vettance.console.queue_page import queue_rows
from vettance.console.review_forms import BULK, QUEUE, ask_in_bulk, names_of, settle_each, settlement_of
from vettance.console.words import Words
from vettance.db.engine import bounded_key
from vettance.errors import NotFound, Unprocessable
from vettance.ids import is_id
from vettance.reviews.bulk_request import BULK_MAX, REQUEST_MAX, BulkRequest, BulkState, ReviewChoice
from vettance.reviews.review import read_settlement

PATH: Final = f"{BULK}/{{id}}"
_SHOWN: Final = 50
_EXAMPLES: Final = 20
#: How often the page of a request that runs asks for itself again: as often as a piece is settled.
_EVERY: Final = "2s"
_TEXT_CHARS_MAX: Final = 1_024
_SCORE_MAX: Final = 100
#: The conditions by which reviews are chosen: name in the address, label of the field, and words for people.
CONDITIONS: Final = (
    ("reason", Words("Reason code"), "gave the reason {}"),
    ("customer", Words("Customer"), "are of the customer {}"),
    ("minScore", Words("Score from"), "score at least {}"),
    ("maxScore", Words("Score to"), "score at most {}"),
)


async def requests(visit: Visit) -> PageAnswer:
    """GET /console/queue/bulk: what was asked for, and a form that asks for more."""
    bulk, tenant = visit.parts.bulk, visit.tenant.id
    names = await names_of(visit)
    asked = {name: visit.query.get(name) for name, _, _ in CONDITIONS}
    preview = await _preview(visit) if "choose" in visit.query and visit.may(*WORKERS) else None
    values = {
        "rows": [_shown(one, names) for one in await bulk.newest(tenant, _SHOWN)],
        "fields": [(name, label, asked[name]) for name, label, _ in CONDITIONS],
        "preview": preview,
        "labels": LABELS,
        "may_work": visit.may(*WORKERS),
        "bulk_max": BULK_MAX,
        "queue_url": QUEUE,
        "bulk_url": BULK,
    }
    return View("bulk_requests.html", values, title=Words("Reviews in bulk"))


async def request_page(visit: Visit) -> PageAnswer:
    """GET /console/queue/bulk/{id}."""
    bulk, found = visit.parts.bulk, await _found(visit)
    examples = (await bulk.next_piece(found))[:_EXAMPLES]
    reviews = await visit.parts.reviews.find_several(visit.tenant.id, examples)
    own = found.asked_by == visit.signed.user_id
    is_asked, runs = found.state is BulkState.ASKED, found.state is BulkState.RUNNING
    is_lead = visit.may(*LEADS)
    values = {
        "one": _shown(found, await names_of(visit)),
        "rows": await queue_rows(visit, reviews),
        "may_decide": is_asked and is_lead and not own,
        "waits_for_other": is_asked and own,
        "may_withdraw": is_asked and own and visit.may(*WORKERS),
        "may_stop": runs and visit.may(*WORKERS) and (own or is_lead),
        "is_starting": runs and visit.now_ms < (found.start_at_ms or 0),
        "live": {"id": LIVE_ID, "url": f"{BULK}/{found.id}", "every": _EVERY} if runs else None,
        "bulk_url": BULK,
    }
    return View("bulk_request.html", values, title=Words("Bulk request"))


async def ask(visit: Visit) -> PageAnswer:
    """POST /console/queue/bulk: settles a few at once, and asks a second person for more."""
    said = read_settlement(settlement_of(visit))
    choice = _choice(visit.form)
    found = await visit.parts.bulk.gather(visit.tenant.id, choice, visit.signed.user_id)
    if not found:
        raise Unprocessable("No open review is chosen by this. Somebody was faster, or it asks for too much.")
    if len(found) <= BULK_MAX:
        left_out = await settle_each(visit, found, said)
        return visit.redirect(f"{QUEUE}?view=settled", "settled", left_out)
    return await ask_in_bulk(visit, found, _words(visit.form), said)


async def approve(visit: Visit) -> PageAnswer:
    """POST /console/queue/bulk/{id}/approve: the second signature."""
    found = await _found(visit)
    await visit.parts.bulk.approve(visit.tenant.id, found.id, visit.signed.user_id)
    return visit.redirect(f"{BULK}/{found.id}", notice="bulk-approved")


async def refuse(visit: Visit) -> PageAnswer:
    """POST /console/queue/bulk/{id}/refuse."""
    found = await _found(visit)
    await visit.parts.bulk.refuse(visit.tenant.id, found.id, visit.signed.user_id)
    return visit.redirect(f"{BULK}/{found.id}", notice="bulk-refused")


async def stop(visit: Visit) -> PageAnswer:
    """POST /console/queue/bulk/{id}/stop: withdraws what waits, stops what runs."""
    found = await _found(visit)
    is_lead = visit.may(*LEADS)
    await visit.parts.bulk.stop(visit.tenant.id, found.id, visit.signed.user_id, is_lead=is_lead)
    return visit.redirect(f"{BULK}/{found.id}", notice="bulk-stopped")


async def _found(visit: Visit) -> BulkRequest:
    if not is_id(visit.path["id"], "blk"):
        raise NotFound
    found: BulkRequest = await visit.parts.bulk.find(visit.tenant.id, visit.path["id"])
    return found


async def _preview(visit: Visit) -> dict[str, Any]:
    """Return what a choice would be about: how many, and the first of them."""
    choice = _choice(visit.query)
    found = await visit.parts.bulk.gather(visit.tenant.id, choice, visit.signed.user_id)
    reviews = await visit.parts.reviews.find_several(visit.tenant.id, found[:_EXAMPLES])
    return {
        "words": _words(visit.query),
        "count": len(found),
        "too_many": len(found) > REQUEST_MAX,
        "most": REQUEST_MAX,
        "needs_second": len(found) > BULK_MAX,
        "rows": await queue_rows(visit, reviews),
    }


def _choice(fields: FormFields) -> ReviewChoice:
    """Read the conditions of an address or a form. Raises `Unprocessable`."""
    reason, customer = fields.get("reason"), fields.get("customer")
    if max(len(reason), len(customer)) > _TEXT_CHARS_MAX or " " in reason:
        raise Unprocessable("A reason code is one word, and a customer's id at most 1,024 characters.")
    return ReviewChoice(
        reason=reason or None,
        customer=bounded_key(customer) if customer else None,
        score_from=_score(fields, "minScore"),
        score_to=_score(fields, "maxScore"),
    )


def _score(fields: FormFields, name: str) -> int | None:
    text = fields.get(name)
    if not text:
        return None
    if not (text.isascii() and text.isdigit() and len(text) <= 3 and int(text) <= _SCORE_MAX):
        raise Unprocessable("A score is a whole number from 0 to 100.", {name: "must be from 0 to 100"})
    return int(text)


def _words(fields: FormFields) -> str:
    """Return a choice as people read it."""
    parts = [words.format(fields.get(name)) for name, _, words in CONDITIONS if fields.get(name)]
    return f"open reviews that {', '.join(parts)}" if parts else "open reviews"


def _shown(one: BulkRequest, names: dict[str, str]) -> dict[str, Any]:
    """Return a request as pages show it."""
    return {
        "id": one.id,
        "url": f"{BULK}/{one.id}",
        "state": one.state.value,
        "outcome": one.outcome.value,
        "label": one.label.value if one.label is not None else "",
        "note": one.note,
        "chosen": one.chosen,
        "wanted": one.wanted,
        "looked": one.looked,
        "settled": one.settled,
        "left_out": one.left_out,
        "asked_by": names.get(one.asked_by, one.asked_by),
        "asked_at": one.asked_at_ms,
        "decided_by": names.get(one.decided_by or "", one.decided_by or ""),
        "decided_at": one.decided_at_ms,
        "start_at": one.start_at_ms,
        "ended_by": names.get(one.ended_by or "", one.ended_by or ""),
        "ended_at": one.ended_at_ms,
    }


PAGES: Final = (
    ConsolePage("GET", BULK, QUEUE_READERS, requests),
    ConsolePage("POST", BULK, WORKERS, ask),
    ConsolePage("GET", PATH, QUEUE_READERS, request_page),
    ConsolePage("POST", f"{PATH}/approve", LEADS, approve),
    ConsolePage("POST", f"{PATH}/refuse", LEADS, refuse),
    ConsolePage("POST", f"{PATH}/stop", WORKERS, stop),
)
