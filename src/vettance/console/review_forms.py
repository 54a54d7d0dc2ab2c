"""What people do with a review from the page of its decision: take it, settle it, take that back."""

import asyncio
from collections.abc import Sequence
from typing import Any, Final

from vettance.clock import DAY_MS
from vettance.console.page import LEADS, WORKERS, ConsolePage, PageAnswer, Visit, own_path, url_of
from vettance.console.several_forms import do_each
from vettance.errors import NotFound, Unprocessable
from vettance.ids import is_id
from vettance.lists.entry_bodies import NewEntry, read_entry
from vettance.reviews.answers import review_answer
from vettance.reviews.bulk_request import BULK_MAX, BulkRequest
from vettance.reviews.check_sql import select_unchecked
from vettance.reviews.review import Review, ReviewOutcome, ReviewState, Settlement, read_settlement
from vettance.reviews.sql import review_of
from vettance.tenants.sql import key_of, select_keys_of
from vettance.wire.payload import timestamp

QUEUE: Final = "/console/queue"
BULK: Final = f"{QUEUE}/bulk"
_DECISIONS: Final = "/console/decisions"
_EXPIRIES: Final = {"1d": 1, "7d": 7, "30d": 30, "90d": 90}


async def take_next(visit: Visit) -> PageAnswer:
    """POST /console/queue/next."""
    found = await visit.parts.reviews.take_next(visit.tenant.id, visit.signed.user_id)
    if found is None:
        return visit.redirect(QUEUE, notice="queue-empty")
    return visit.redirect(f"{_DECISIONS}/{found}")


async def claim(visit: Visit) -> PageAnswer:
    """POST /console/decisions/{id}/claim: takes a review, or says that its page is still open."""
    taking = visit.may(*LEADS) and "taking" in visit.form
    await visit.parts.reviews.claim(visit.tenant.id, _decision(visit), visit.signed.user_id, taking=taking)
    return visit.redirect(f"{_DECISIONS}/{visit.path['id']}", notice="" if visit.is_partial else "taken")


async def release(visit: Visit) -> PageAnswer:
    """POST /console/queue/release."""
    await visit.parts.reviews.release(visit.tenant.id, visit.signed.user_id)
    return visit.redirect(QUEUE, notice="given-back")


async def settle(visit: Visit) -> PageAnswer:
    """POST /console/decisions/{id}/settle; the next review follows at once."""
    decision, by, desk = _decision(visit), visit.signed.user_id, visit.parts.reviews
    said = read_settlement(settlement_of(visit))
    await desk.settle(visit.tenant, decision, said, by, _entries(visit), held=True)
    following = await desk.take_next(visit.tenant.id, by) if "next-one" in visit.form else None
    target = f"{_DECISIONS}/{following}" if following else QUEUE if "next-one" in visit.form else ""
    return visit.redirect(url_of(target or f"{_DECISIONS}/{decision}", settled=decision))


async def settle_several(visit: Visit) -> PageAnswer:
    """POST /console/queue/settle."""
    chosen = list(dict.fromkeys(one for one in visit.form.all("decision") if is_id(one, "evt")))
    if not chosen:
        raise Unprocessable("Mark at least one review.")
    said = read_settlement(settlement_of(visit))
    if len(chosen) > BULK_MAX:
        return await ask_in_bulk(visit, chosen, "reviews marked in the queue", said)
    left_out = await settle_each(visit, chosen, said)
    return visit.redirect(own_path(visit.form.get("next") or QUEUE), "settled", left_out)


async def settle_each(visit: Visit, decisions: Sequence[str], said: Settlement) -> int:
    """Settle a few reviews in the same way; returns how many of them somebody else was faster with."""
    desk, by = visit.parts.reviews, visit.signed.user_id

    async def settle_one(decision: str) -> None:
        await desk.settle(visit.tenant, decision, said, by, held=True)

    return await do_each(visit, decisions, f"POST {_DECISIONS}/{{id}}/settle", settle_one)


async def ask_in_bulk(visit: Visit, decisions: Sequence[str], chosen: str, said: Settlement) -> PageAnswer:
    """Ask a second person to sign for many reviews, those of them that wait."""
    bulk, by = visit.parts.bulk, visit.signed.user_id
    waiting = await bulk.waiting(visit.tenant.id, decisions)
    asked: BulkRequest = await bulk.ask(visit.tenant.id, waiting, chosen, said, by)
    return visit.redirect(f"{BULK}/{asked.id}", notice="bulk-asked")


async def assign(visit: Visit) -> PageAnswer:
    """POST /console/queue/assign: a lead gives reviews to somebody who works the queue."""
    chosen = list(dict.fromkeys(one for one in visit.form.all("decision") if is_id(one, "evt")))
    to = visit.form.get("assignee")
    if not 1 <= len(chosen) <= BULK_MAX:
        raise Unprocessable(f"Mark between 1 and {BULK_MAX} reviews.")
    if to not in dict(await workers_of(visit)):
        raise Unprocessable(
            "Choose somebody who works the queue.", {"assignee": "must be an analyst or a lead"}
        )

    async def assign_one(decision: str) -> None:
        await visit.parts.reviews.assign(visit.tenant.id, decision, to)

    left_out = await do_each(visit, chosen, f"POST {QUEUE}/assign", assign_one)
    return visit.redirect(own_path(visit.form.get("next") or QUEUE), "assigned", left_out)


async def undo(visit: Visit) -> PageAnswer:
    """POST /console/decisions/{id}/undo."""
    decision = _decision(visit)
    await visit.parts.reviews.undo(visit.tenant.id, decision, visit.signed.user_id)
    return visit.redirect(f"{_DECISIONS}/{decision}", notice="undone")


async def check(visit: Visit) -> PageAnswer:
    """POST /console/decisions/{id}/check: the blind second look."""
    outcome = visit.form.get("outcome")
    if outcome not in {one.value for one in ReviewOutcome}:
        raise Unprocessable("Say approve or deny.", {"outcome": "must be approve or deny"})
    desk, tenant = visit.parts.reviews, visit.tenant.id
    await desk.check(tenant, _decision(visit), ReviewOutcome(outcome), visit.signed.user_id)
    return visit.redirect(f"{QUEUE}?view=checks", notice="checked")


async def review_shown(visit: Visit, decision: str) -> dict[str, Any] | None:
    """Return a review as the page of its decision shows it; None where there is none."""
    try:
        review: Review = await visit.parts.reviews.find(visit.tenant.id, decision)
    except NotFound:
        return None
    told = review_answer(review, visit.now_ms)
    holder = review.claimed_by if told.state is ReviewState.CLAIMED else None
    is_mine = holder == visit.signed.user_id
    may_work = visit.may(*WORKERS)
    is_blind = is_blind_for(visit, review)
    names = await names_of(visit)
    return {
        "state": told.state.value,
        "priority": told.priority,
        "parts": parts_of(review, visit.now_ms),
        "opened": review.opened_at_ms,
        "due": review.due_at_ms,
        "is_late": review.is_waiting() and review.due_at_ms < visit.now_ms,
        "holder": names.get(holder or "", holder),
        "until": review.free_at_ms,
        "is_mine": is_mine,
        "may_claim": may_work and told.state is ReviewState.OPEN,
        "may_settle": may_work and (is_mine or told.state is ReviewState.OPEN),
        "may_take": visit.may(*LEADS) and holder is not None and not is_mine,
        "workers": await workers_of(visit) if review.is_waiting() else [],
        "outcome": None if is_blind else review.outcome,
        "label": None if is_blind else review.label,
        "note": None if is_blind else review.note,
        "settled_by": None if is_blind else names.get(review.settled_by or "", review.settled_by),
        "settled": review.settled_at_ms,
        "bulk_url": f"{BULK}/{review.bulk}" if review.bulk and not is_blind else "",
        "is_blind": is_blind,
        "may_check": is_blind and review.check_state == "asked",
    }


def is_blind_for(visit: Visit, review: Review) -> bool:
    """Tell whether the visitor may be the second person, who must not see yet how a review was settled."""
    return visit.may(*WORKERS) and review.is_blind_for(visit.signed.user_id, visit.tenant.review_checks)


async def blind_reviews(visit: Visit, decisions: Sequence[str]) -> dict[str, Review]:
    """Return the reviews of some decisions whose settlement the visitor must not see yet."""
    if not visit.may(*WORKERS):
        return {}
    found: list[Review] = await visit.parts.reviews.find_several(visit.tenant.id, decisions)
    return {one.decision: one for one in found if is_blind_for(visit, one)}


async def blind_entries(visit: Visit, made_at_ms: Sequence[int]) -> frozenset[str]:
    """Return the ids of list entries, of those made at some moments, that the visitor must not see yet.

    They came with a settlement, in its commit and at its moment, that waits for a second look.
    """
    if not made_at_ms or not visit.may(*WORKERS):
        return frozenset()
    rows = await visit.parts.store.read(select_unchecked(visit.tenant.id, made_at_ms))
    hidden = (one for one in map(review_of, rows) if is_blind_for(visit, one))
    return frozenset(entry for one in hidden for entry in one.entries)


async def undo_shown(visit: Visit) -> dict[str, Any] | None:
    """Return what somebody has settled a moment ago and may still take back."""
    decision = visit.query.get("settled")
    if not is_id(decision, "evt"):
        return None
    try:
        review: Review = await visit.parts.reviews.find(visit.tenant.id, decision)
    except NotFound:
        return None
    if review.settled_by != visit.signed.user_id or (review.tell_at_ms or 0) <= visit.now_ms:
        return None
    return {
        "decision": decision,
        "outcome": review.outcome,
        "left_ms": (review.tell_at_ms or 0) - visit.now_ms,
    }


def parts_of(review: Review, now_ms: int) -> list[tuple[str, int]]:
    """Return what the priority of a review is made of."""
    parts = (
        ("score", review.score),
        ("amount", review.amount_points),
        ("waiting", review.age_points(now_ms)),
    )
    return [(word, points) for word, points in parts if points]


async def names_of(visit: Visit) -> dict[str, str]:
    """Return how people of the organisation and its keys are called, by their ids."""
    tenant = visit.tenant.id
    users, keys = await asyncio.gather(
        visit.parts.administration.users(tenant), visit.parts.store.read(select_keys_of(tenant))
    )
    people = {one.account.id: one.account.name or one.account.email for one in users}
    return people | {one.id: one.name or one.hint for one in map(key_of, keys)}


async def workers_of(visit: Visit) -> list[tuple[str, str]]:
    """Return (id, name) of those who work the queue, for leads; nobody for others."""
    return await people_who_work(visit) if visit.may(*LEADS) else []


async def people_who_work(visit: Visit, *, by_actor: bool = False) -> list[tuple[str, str]]:
    """Return (id, name) of those who work the queue; `by_actor` names them by e-mail, as cases do."""
    users = await visit.parts.administration.users(visit.tenant.id)
    return [
        (one.account.email if by_actor else one.account.id, one.account.name or one.account.email)
        for one in users
        if not one.account.disabled and not one.roles.isdisjoint(WORKERS)
    ]


def _decision(visit: Visit) -> str:
    decision = visit.path["id"]
    if not is_id(decision, "evt"):
        raise NotFound
    return decision


def settlement_of(visit: Visit) -> dict[str, Any]:
    """Return the body of a settlement that a form sends."""
    given = {name: visit.form.get(name) for name in ("outcome", "label", "note")}
    return {name: value for name, value in given.items() if value}


def _entries(visit: Visit) -> list[NewEntry]:
    """Read the list entries that hang on a settlement: each box holds a type, a blank, and a value."""
    days = _EXPIRIES.get(visit.form.get("expiry"))
    expires_at = timestamp(visit.now_ms + days * DAY_MS) if days is not None else None
    found = []
    for box in visit.form.all("entry"):
        kind, _, value = box.partition(" ")
        body = {
            "type": kind,
            "value": value,
            "listType": visit.form.get("listType") or "block",
            "reason": visit.form.get("note") or None,
            "expiresAt": expires_at,
        }
        found.append(read_entry({name: one for name, one in body.items() if one}, visit.now_ms))
    return found


PAGES: Final = (
    ConsolePage("POST", f"{QUEUE}/next", WORKERS, take_next),
    ConsolePage("POST", f"{QUEUE}/release", WORKERS, release),
    ConsolePage("POST", f"{QUEUE}/settle", WORKERS, settle_several),
    ConsolePage("POST", f"{QUEUE}/assign", LEADS, assign),
    ConsolePage("POST", f"{_DECISIONS}/{{id}}/claim", WORKERS, claim),
    ConsolePage("POST", f"{_DECISIONS}/{{id}}/settle", WORKERS, settle),
    ConsolePage("POST", f"{_DECISIONS}/{{id}}/undo", WORKERS, undo),
    ConsolePage("POST", f"{_DECISIONS}/{{id}}/check", WORKERS, check),
)
