"""The page of one rule: as written, its history, what it is worth, its newest hits, and what can be done."""

import asyncio
from typing import Any, Final

from vettance.clock import DAY_MS, MINUTE_MS
from vettance.console.page import QUEUE_READERS, ConsolePage, PageAnswer, View, Visit, url_of
from vettance.console.refusal_words import refusal_words
from vettance.console.review_forms import names_of
from vettance.console.rule_figures import days_chart, figures_of_rule
from vettance.console.rule_history import history_of
from vettance.console.rule_hits import newest_alerts, newest_hits
from vettance.console.rule_place import AML, EDITORS, FRAUD, RULE_READERS, RulePlace
from vettance.console.rules_page import came_between, rules_in, version_since
from vettance.console.svg_charts import share_mark
from vettance.console.words import Words
from vettance.errors import NotFound, Refusal, Unprocessable
from vettance.rules.changed_document import with_changes
from vettance.rules.rule import Rule
from vettance.snoozes.snooze import SnoozeType
from vettance.snoozes.sql import select_current_of, snooze_of
from vettance.wire.payload import JSON, timestamp

_SNOOZES_SHOWN: Final = 20
_EXPIRIES: Final = {
    "1d": (Words("a day"), 1),
    "7d": (Words("a week"), 7),
    "30d": (Words("30 days"), 30),
    "90d": (Words("90 days"), 90),
}
_TYPES: Final = {
    SnoozeType.CUSTOMER.value: Words("Customer"),
    SnoozeType.DEVICE.value: Words("Device"),
    SnoozeType.IP.value: Words("IP address"),
    SnoozeType.EMAIL.value: Words("E-mail"),
    SnoozeType.SESSION.value: Words("Session"),
}
_MODES: Final = (
    ("active", Words("Active: it acts")),
    ("shadow", Words("Shadow: recorded, without effect")),
    ("off", Words("Off: it is not evaluated")),
)
_NUMBER_DIGITS: Final = 5
#: Refusals that are said on the page of the rule; what was typed is about nothing else.
_SAID: Final = (400, 409, 422)
#: What a tenant without rules of its own builds on.
_PACK: Final = "extends: default\n"


class RulePage:
    """The page of each rule of one kind, and its forms."""

    def __init__(self, place: RulePlace) -> None:
        self._place = place

    async def show(self, visit: Visit) -> PageAnswer:
        """GET: the rule."""
        return await self._page(visit, visit.path["rule"])

    async def _page(self, visit: Visit, rule_id: str, refused: Refusal | None = None) -> View:
        place = self._place
        active = await visit.ask("GET", f"{place.api}/active")
        ruleset = await rules_in(active["resolved"])
        known = {one.id: one for one in ruleset.rules}
        cursor = visit.query.get("cursor")
        history = await history_of(visit, place, rule_id, cursor, is_gone=rule_id not in known)
        rule = known.get(rule_id) or history.last
        if rule is None:
            raise NotFound
        figures = await figures_of_rule(visit, place, rule_id)
        own = figures.rules.get(rule_id)
        is_there = rule_id in known
        values: dict[str, Any] = {
            "place": place,
            "rule": rule,
            "is_there": is_there,
            "version": active["version"],
            "figures": own,
            "chart": days_chart(visit, own.days) if own is not None and own.days.total else "",
            "complete": figures.is_complete,
            "overlap": _overlap(place, known, own.answer if own is not None else None),
            "history": history,
            "older": url_of(place.url_of(rule_id), cursor=history.cursor) if history.cursor else "",
            "names": await names_of(visit),
            "hits": await newest_hits(visit, rule) if place.is_fraud else (),
            "alerts": await newest_alerts(visit, place, rule),
            "may_see_cases": visit.may(*QUEUE_READERS),
            "reads": visit.parts.names_read(rule.when) if place.is_fraud else (),
            "may_write": visit.may(*EDITORS) and is_there,
            "modes": _MODES,
            "types": _TYPES,
            "expiries": [(word, words) for word, (words, _) in _EXPIRIES.items()],
            "typed": visit.form,
            "message": refusal_words(refused),
            **await self._snoozes(visit, rule_id),
            **await self._tests(visit, rule, active["resolved"]),
        }
        return View("rule.html", values, rule.name, status=refused.status if refused is not None else 200)

    async def _snoozes(self, visit: Visit, rule_id: str) -> dict[str, Any]:
        """Return the snoozes of a rule that have an effect, newest first."""
        rows = await visit.parts.store.read(
            select_current_of(visit.tenant.id, self._place.kind, visit.now_ms)
        )
        found = [one for one in map(snooze_of, rows) if one.rule == rule_id]
        return {"snoozes": found[:_SNOOZES_SHOWN], "snoozed": len(found)}

    async def _tests(self, visit: Visit, rule: Rule, document: str) -> dict[str, Any]:
        """Return how the tests of a rule end, where they were asked to be run."""
        if visit.query.get("tests") != "run" or not visit.may(*EDITORS):
            return {"ran": None}
        found = await visit.ask("POST", f"{self._place.api}/check", body={"document": document})
        return {"ran": {one["test"]: one for one in found["tests"] if one["rule"] == rule.id}}

    async def snooze(self, visit: Visit) -> PageAnswer:
        """POST: keep the rule from acting for an entity, for a while."""
        rule_id, form = visit.form.get("rule"), visit.form
        _, days = _EXPIRIES.get(form.get("expiry"), _EXPIRIES["1d"])
        body = {
            "ruleId": rule_id,
            "type": form.get("type"),
            "value": form.get("value"),
            # To the whole minute: a form that is sent twice says the same twice, and is one snooze.
            "until": timestamp(-(-(visit.now_ms + days * DAY_MS) // MINUTE_MS) * MINUTE_MS),
            "reason": form.get("reason"),
        }
        return await self._do(visit, rule_id, "POST", f"{self._place.rules}/snoozes", body, "rule-snoozed")

    async def wake(self, visit: Visit) -> PageAnswer:
        """POST: have the rule act again."""
        path = f"{self._place.rules}/snoozes/{visit.path['id']}"
        await visit.ask("DELETE", path)
        return visit.redirect(self._place.url_of(visit.form.get("rule")), notice="rule-wakes")

    async def change(self, visit: Visit) -> PageAnswer:
        """POST: save what is typed as a draft, propose it, or try it on past events."""
        place, form, rule_id = self._place, visit.form, visit.form.get("rule")
        if (newer := await version_since(visit, place)) is not None:
            return await self._page(visit, rule_id, came_between(newer))
        active = await visit.ask("GET", f"{place.api}/active")
        rule = next((one for one in (await rules_in(active["resolved"])).rules if one.id == rule_id), None)
        if rule is None:
            raise NotFound
        change = _changed_members(visit, rule)
        if change.keys() == {"id"}:
            return await self._page(
                visit, rule_id, Unprocessable("Nothing is different from the rule in force.")
            )
        if form.get("then") == "backtest":
            since = {"from": timestamp(visit.now_ms - 30 * DAY_MS)}
            return await self._do(visit, rule_id, "POST", place.backtests, {"rule": change, **since}, "")
        document = _PACK if active["version"] == 0 else active["document"]
        body = {
            "document": await asyncio.to_thread(with_changes, document, [change]),
            "note": form.get("note"),
            "propose": form.get("then") == "propose",
        }
        notice = "rules-proposed" if body["propose"] else "rules-drafted"
        return await self._do(visit, rule_id, "POST", place.api, body, notice)

    async def _do(
        self, visit: Visit, rule_id: str, method: str, path: str, body: JSON, notice: str
    ) -> PageAnswer:
        """Ask an endpoint, and lead to what it made; a refusal is said on the page of the rule."""
        place = self._place
        try:
            made = await visit.ask(method, path, body=body)
        except Refusal as refused:
            if refused.status not in _SAID:
                raise
            return await self._page(visit, rule_id, refused)
        if "backtestId" in made:
            return visit.redirect(f"{place.path}/backtests/{made['backtestId']}", notice="backtest-ordered")
        if "version" in made:
            return visit.redirect(f"{place.path}/versions/{made['version']}", notice=notice)
        return visit.redirect(place.url_of(rule_id), notice=notice)

    def table(self) -> tuple[ConsolePage, ...]:
        """The rows of the table of pages."""
        path = self._place.path
        return (
            ConsolePage("GET", f"{path}/{{rule}}", RULE_READERS, self.show),
            ConsolePage("POST", f"{path}/snoozes", EDITORS, self.snooze),
            ConsolePage("POST", f"{path}/snoozes/{{id}}/end", EDITORS, self.wake),
            ConsolePage("POST", f"{path}/changes", EDITORS, self.change),
        )


def _overlap(place: RulePlace, known: dict[str, Rule], answer: Any) -> list[dict[str, Any]]:
    """Return the rules that fired with a rule most often, with their share of its hits as a bar."""
    return [
        {
            **one,
            "name": known[one["ruleId"]].name if one["ruleId"] in known else one["ruleId"],
            "url": place.url_of(one["ruleId"]),
            "bar": share_mark(one["share"]),
        }
        for one in (answer["overlap"] if answer is not None else ())
    ]


def _changed_members(visit: Visit, rule: Rule) -> JSON:
    """Return the id of a rule with the members that the form says otherwise. The gate says what is wrong."""
    form = visit.form
    typed: JSON = {
        "score": _number(form.get("score")),
        "rollout": _number(form.get("rollout")),
        "mode": form.get("mode"),
        "when": form.raw("when").replace("\r\n", "\n").strip(),
    }
    now = {"score": rule.score, "rollout": rule.rollout, "mode": rule.mode, "when": rule.when.strip()}
    return {"id": rule.id} | {name: value for name, value in typed.items() if value not in ("", now[name])}


def _number(text: str) -> int | str:
    return int(text) if text.isascii() and text.isdigit() and len(text) <= _NUMBER_DIGITS else text


PAGES: Final = (*RulePage(FRAUD).table(), *RulePage(AML).table())
