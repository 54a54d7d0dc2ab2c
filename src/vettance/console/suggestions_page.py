"""Suggestions: what labels speak for, ordered, watched, and made a draft of by one button."""

import asyncio
from typing import Any, Final

from vettance.backtests.backtest_job import BacktestJob
from vettance.backtests.sql import job_of, select_newest
from vettance.console.job_words import JOB_STATES
from vettance.console.page import ConsolePage, PageAnswer, View, Visit
from vettance.console.rule_place import EDITORS, FRAUD, RULE_READERS
from vettance.console.svg_charts import Curve, curve_chart
from vettance.console.words import Words
from vettance.errors import NotFound
from vettance.rules.changed_document import with_changes
from vettance.suggestions.suggestion_draft import EVERYTHING, changes_of
from vettance.suggestions.suggestion_order import SUGGESTION_PREFIX
from vettance.wire.numbers import is_decimal
from vettance.wire.payload import decode

PATH: Final = "/console/rules/suggestions"
_API: Final = "/api/v1/rules/suggestions"
_RULES: Final = "/api/v1/rulesets"
_EARLIER: Final = 10
_NUMBER_DIGITS: Final = 4
_KINDS: Final = {
    "rules": Words("New rules"),
    "threshold": Words("A threshold"),
    "weights": Words("Scores"),
    "calibration": Words("A calibration"),
}


async def suggestions(visit: Visit) -> PageAnswer:
    """GET /console/rules/suggestions."""
    rows = await visit.parts.store.read(select_newest(visit.tenant.id, SUGGESTION_PREFIX, _EARLIER))
    jobs = [job_of(row) for row in rows]
    chosen = visit.query.get("id") or (jobs[0].id if jobs else "")
    one = await visit.ask("GET", f"{_API}/{chosen}") if chosen else None
    active = await visit.ask("GET", f"{_RULES}/active")
    values = {
        "one": one,
        "earlier": [(job, _kind_of(job)) for job in jobs if job.id != chosen],
        "kinds": _KINDS,
        "job_states": JOB_STATES,
        "version": active["version"],
        "curves": _curves(one["result"]) if one and one["result"] else [],
        "may_write": visit.may(*EDITORS),
        "place": FRAUD,
        "under_way": one is not None and one["state"] in ("queued", "running"),
    }
    return View("suggestions.html", values, title=Words("Suggestions"))


def _kind_of(job: BacktestJob) -> str:
    """Return what was asked for; an empty text where the order cannot be read."""
    try:
        kind: str = decode(job.order)["kind"]
    except (ValueError, KeyError, TypeError):
        return ""
    return _KINDS.get(kind, "")


def _curves(result: Any) -> list[Any]:
    """Return a picture of each curve: precision over recall."""
    if result["kind"] != "threshold":
        return []
    return [
        curve_chart(
            [
                Curve(
                    "now",
                    [
                        (point["recall"]["value"], point["precision"]["value"])
                        for point in one["points"]
                        if point["recall"] is not None and point["precision"] is not None
                    ],
                )
            ],
            f"Precision over recall of the rule with other numbers for {one['expression']}",
            ("recall", "precision"),
        )
        for one in result["comparisons"]
    ]


async def order(visit: Visit) -> PageAnswer:
    """POST /console/rules/suggestions: order one."""
    form = visit.form
    body: dict[str, Any] = {"kind": form.get("kind")}
    if body["kind"] == "threshold":
        body["ruleId"] = form.get("rule_id")
        for name, scale in (("precision", 0.01), ("load", 1.0)):
            said = form.get(name)
            if said:
                body[name] = float(said) * scale if is_decimal(said) else said
    if body["kind"] == "calibration":
        said = form.get("hold")
        body["hold"] = float(said) / 100 if is_decimal(said) else said
    for name in ("from", "to"):
        if form.get(name):
            body[name] = form.get(name)
    made = await visit.ask("POST", _API, body=body)
    return visit.redirect(f"{PATH}?id={made['suggestionId']}")


async def cancel(visit: Visit) -> PageAnswer:
    """POST /console/rules/suggestions/{suggestion}/cancel."""
    suggestion = visit.path["suggestion"]
    await visit.ask("DELETE", f"{_API}/{suggestion}")
    return visit.redirect(f"{PATH}?id={suggestion}", notice="suggestion-cancelled")


async def draft(visit: Visit) -> PageAnswer:
    """POST /console/rules/suggestions/{suggestion}/draft: save a draft that holds what was suggested."""
    suggestion, number = visit.path["suggestion"], visit.form.get("number")
    result = (await visit.ask("GET", f"{_API}/{suggestion}"))["result"]
    body = {
        "document": await _drafted(visit, result or {}, number),
        "note": f"Suggested: {_KINDS[result['kind']].lower()} ({suggestion})",
        "propose": False,
    }
    made = await visit.ask("POST", _RULES, body=body)
    return visit.redirect(f"/console/rules/versions/{made['version']}", notice="rules-drafted")


async def _drafted(visit: Visit, result: Any, number: str) -> str:
    """Return the rules with what was suggested: a calibration whole, of others that of a place or all."""
    if result.get("kind") == "calibration" and result["draft"] is not None:
        document: str = result["draft"]
        return document
    is_number = number.isascii() and number.isdigit() and len(number) <= _NUMBER_DIGITS
    try:
        changes = changes_of(result, int(number) if is_number else EVERYTHING)
    except LookupError:
        raise NotFound from None
    active = await visit.ask("GET", f"{_RULES}/active")
    return await asyncio.to_thread(with_changes, active["document"], changes)


PAGES: Final = (
    ConsolePage("GET", PATH, RULE_READERS, suggestions),
    ConsolePage("POST", PATH, EDITORS, order),
    ConsolePage("POST", f"{PATH}/{{suggestion}}/cancel", EDITORS, cancel),
    ConsolePage("POST", f"{PATH}/{{suggestion}}/draft", EDITORS, draft),
)
