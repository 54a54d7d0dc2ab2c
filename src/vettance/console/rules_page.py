"""Rules: the versions of the rule set, the rules in force, an editor that checks, and the steps of a version.

Fraud and AML rules have the same pages, which ask the same endpoints as a key does.
"""

import asyncio
import functools
from collections.abc import Callable, Iterable
from typing import Any, Final

from vettance.console.error_pages import forbidden_view
from vettance.console.page import ConsolePage, PageAnswer, View, Visit, url_of
from vettance.console.review_forms import names_of
from vettance.console.rule_coverage import coverage_of, shown_coverage
from vettance.console.rule_figures import SpanFigures, figures_of
from vettance.console.rule_place import AML, APPROVERS, EDITORS, FRAUD, RULE_READERS, RulePlace
from vettance.console.words import Words
from vettance.errors import Conflict, NotFound, Refusal
from vettance.people.role import Role
from vettance.rules.difference import change_lines, diff
from vettance.rules.ruleset import Rule, RuleSet, RuleSetRefused, read_ruleset

_SHOWN: Final = 50
#: Steps that somebody takes upon what a version changes against the one in force.
_AGAINST_ACTIVE: Final = frozenset({"approve", "activate"})
#: States of versions that may still come into force for the first time.
_WAITING: Final = frozenset({"draft", "proposed", "approved"})
_NOTICES: Final = {
    "propose": "rules-proposed",
    "approve": "rules-approved",
    "reject": "rules-rejected",
    "activate": "rules-active",
}
#: The steps that each state allows, in the order of their buttons.
_STEPS: Final = {
    "draft": ("propose", "reject"),
    "proposed": ("approve", "activate", "reject"),
    "approved": ("activate", "reject"),
}
#: What the rules can be sorted by, besides their order in the document.
_ORDERS: Final[dict[str, Callable[[SpanFigures, Rule], float]]] = {
    "hits": lambda figures, rule: -figures.rules[rule.id].days.total if rule.id in figures.rules else 1,
    "score": lambda _figures, rule: -rule.score,
    "precision": lambda figures, rule: figures.precision_of(rule.id),
}
_SORTS: Final = {
    "": Words("document"),
    "hits": Words("hits"),
    "score": Words("score"),
    "precision": Words("lowest precision"),
}
_VERBS: Final = {
    "propose": Words("Propose"),
    "approve": Words("Approve"),
    "reject": Words("Reject"),
    "activate": Words("Put in force"),
}


class RulePages:
    """The pages of one kind of rules."""

    def __init__(self, place: RulePlace) -> None:
        self.place = place

    async def overview(self, visit: Visit) -> PageAnswer:
        """GET: the versions, and the rules in force."""
        asked = {"limit": _SHOWN, "cursor": visit.query.get("cursor")}
        found, active, figures, names, coverage = await asyncio.gather(
            visit.ask("GET", self.place.api, asked),
            visit.ask("GET", f"{self.place.api}/active"),
            figures_of(visit, self.place),
            names_of(visit),
            coverage_of(visit, self.place),
        )
        ruleset = await rules_in(active["resolved"])
        order, text = _ORDERS.get(visit.query.get("sort")), visit.query.get("q")
        rules = [rule for rule in ruleset.rules if _holds(rule, text)] if text else ruleset.rules
        following = found.get("nextCursor")
        values = {
            "place": self.place,
            "rows": [{**one, "author": names.get(one["author"], one["author"])} for one in found["data"]],
            "total": found["total"],
            "next": url_of(self.place.path, cursor=following) if following else "",
            "active": active,
            "rules": sorted(rules, key=lambda rule: order(figures, rule)) if order else rules,
            "in_force": len(ruleset.rules),
            "text": text,
            "sort": visit.query.get("sort") if order else "",
            "sorts": [
                (word, words, url_of(self.place.path, sort=word, q=text)) for word, words in _SORTS.items()
            ],
            "figures": figures,
            "coverage": shown_coverage(coverage, figures),
            "explore": ruleset.explore,
            "may_write": visit.may(*EDITORS),
            "may_approve": visit.may(*APPROVERS),
        }
        return View("rules.html", values, title=self.place.noun)

    async def version(self, visit: Visit) -> PageAnswer:
        """GET: a version, what it changes, and the steps that can be taken."""
        one, active, names = await asyncio.gather(
            visit.ask("GET", f"{self.place.api}/{visit.path['version']}"),
            visit.ask("GET", f"{self.place.api}/active"),
            names_of(visit),
        )
        against = visit.query.get("against")
        other = await visit.ask("GET", f"{self.place.api}/{against}") if against.isdigit() else active
        old, new = await asyncio.gather(rules_in(other["resolved"]), rules_in(one["resolved"]))
        is_own = one["author"] == visit.signed.user_id
        needs_approval = visit.tenant.rule_approval and one["state"] == "proposed"
        steps = [
            (step, _VERBS[step])
            for step in _STEPS.get(one["state"], ())
            if visit.may(*_roles_of(step))
            and not (step == "approve" and is_own)
            and not (step == "activate" and needs_approval)
        ]
        values = {
            "place": self.place,
            "one": one,
            "author": names.get(one["author"] or "", one["author"]),
            "approver": names.get(one["approvedBy"] or "", one["approvedBy"]),
            "other": other,
            "in_force": active["version"],
            "is_overtaken": one["state"] in _WAITING and (active["activatedAt"] or "") > one["createdAt"],
            "lines": change_lines(diff(old, new)) if one["version"] != other["version"] else [],
            "steps": steps,
            "may_write": visit.may(*EDITORS),
            "may_return": visit.may(*APPROVERS) and one["state"] == "retired",
        }
        return View("rule_version.html", values, title=f"Version {one['version']}")

    async def take_step(self, visit: Visit) -> PageAnswer:
        """POST: take a step with a version."""
        step, version = visit.path["step"], visit.path["version"]
        if step not in _VERBS:
            raise NotFound
        if not visit.may(*_roles_of(step)):
            return forbidden_view(_roles_of(step))
        root = f"{self.place.api}/{version}"
        if step in _AGAINST_ACTIVE and (newer := await version_since(visit, self.place)) is not None:
            raise Conflict(
                f"Version {newer} came into force since you opened this page. Look at what this one changes "
                "against it, and decide again.",
                "changed_meanwhile",
            )
        if step == "approve" and (await visit.ask("GET", root))["author"] == visit.signed.user_id:
            raise Conflict("Somebody else than their author approves rules.", "second_person_needed")
        over = _numbers((("over", visit.form.get("base")),)) if step == "activate" else {}
        await visit.ask("POST", f"{root}/{step}", body={"note": visit.form.get("note"), **over})
        return visit.redirect(f"{self.place.path}/versions/{version}", notice=_NOTICES[step])

    async def roll_back(self, visit: Visit) -> PageAnswer:
        """POST: take earlier rules back into force."""
        body = _numbers((("to", visit.form.get("to")), ("over", visit.form.get("base"))))
        made = await visit.ask("POST", f"{self.place.api}/rollback", body=body)
        return visit.redirect(f"{self.place.path}/versions/{made['version']}", notice="rules-active")

    async def edit(self, visit: Visit) -> PageAnswer:
        """GET: the editor, with the document of a version, else of the one in force."""
        version = visit.query.get("version")
        active = await visit.ask("GET", f"{self.place.api}/active")
        one = await visit.ask("GET", f"{self.place.api}/{version}") if version.isdigit() else active
        return self._editor(one["document"], "", None, active["version"], one["version"])

    async def check(self, visit: Visit) -> PageAnswer:
        """POST: what the gate says of the text; the editor's part alone where a script asks."""
        document = _text(visit)
        found = await self._checked(visit, document)
        if visit.is_partial:
            return View("rule_check.html", {"found": found}, title=Words("Check"))
        return self._typed(visit, found)

    async def save(self, visit: Visit) -> PageAnswer:
        """POST: save the text as a draft, or propose it. What is refused comes back as it was typed."""
        document, note = _text(visit), visit.form.get("note")
        if (newer := await version_since(visit, self.place)) is not None:
            return self._typed(visit, refused=came_between(newer), newer=newer)
        body = {"document": document, "note": note, "propose": visit.form.get("then") == "propose"}
        try:
            made = await visit.ask("POST", self.place.api, body=body)
        except Refusal as refused:
            if refused.status not in (400, 422):
                raise
            found = await self._checked(visit, document)
            return self._typed(visit, found, refused=refused)
        notice = "rules-proposed" if body["propose"] else "rules-drafted"
        return visit.redirect(f"{self.place.path}/versions/{made['version']}", notice=notice)

    async def _checked(self, visit: Visit, document: str) -> Any:
        try:
            return await visit.ask("POST", f"{self.place.api}/check", body={"document": document})
        except Refusal as refused:
            if refused.status != 400:
                raise
            return {"ok": False, "faults": [], "tests": [], "message": "There is nothing to check yet."}

    def _typed(
        self, visit: Visit, found: Any = None, *, refused: Refusal | None = None, newer: int | None = None
    ) -> View:
        """Show the text as it was typed; `newer` is a version that came into force meanwhile."""
        form = visit.form
        base = form.get("base") if newer is None else newer
        return self._editor(
            _text(visit), form.get("note"), found, base, form.get("origin"), refused=refused, newer=newer
        )

    def _editor(
        self,
        document: str,
        note: str,
        found: Any,
        base: Any,
        origin: Any,
        *,
        refused: Refusal | None = None,
        newer: int | None = None,
    ) -> View:
        values = {
            "place": self.place,
            "document": document,
            "note": note,
            "found": found,
            "base": base,
            "origin": origin,
            "newer": newer,
            "message": refused.message if refused is not None else "",
        }
        status = refused.status if refused is not None else 200
        return View("rule_editor.html", values, title=Words("Edit"), status=status)

    def table(self) -> tuple[ConsolePage, ...]:
        """The rows of the table of pages."""
        one = f"{self.place.path}/versions/{{version}}"
        return (
            ConsolePage("GET", self.place.path, RULE_READERS, self.overview),
            ConsolePage("GET", one, RULE_READERS, self.version),
            ConsolePage("POST", f"{one}/{{step}}", EDITORS, self.take_step),
            ConsolePage("POST", f"{self.place.path}/rollback", APPROVERS, self.roll_back),
            ConsolePage("GET", f"{self.place.path}/edit", EDITORS, self.edit),
            ConsolePage("POST", f"{self.place.path}/check", EDITORS, self.check),
            ConsolePage("POST", f"{self.place.path}/save", EDITORS, self.save),
        )


def _text(visit: Visit) -> str:
    """Return the document as it was typed; browsers send two characters for the end of a line."""
    return visit.form.raw("document").replace("\r\n", "\n")


def _holds(rule: Rule, text: str) -> bool:
    """Tell whether every word of a filter is in what a rule is called, or in how it acts."""
    said = " ".join((rule.name, rule.id, rule.reason, rule.family, rule.mode, rule.when)).casefold()
    return all(word in said for word in text.casefold().split())


def _numbers(sent: Iterable[tuple[str, str]]) -> dict[str, int]:
    """Return those fields of a form that are numbers of versions."""
    return {
        name: int(said) for name, said in sent if said.isascii() and said.isdigit() and 0 < len(said) < 10
    }


def _roles_of(step: str) -> frozenset[Role]:
    return EDITORS if step == "propose" else APPROVERS


async def version_since(visit: Visit, place: RulePlace) -> int | None:
    """Return the version in force where it is another than the form of the visit was filled in against."""
    if "base" not in visit.form:
        return None
    base = visit.form.get("base")
    active = await visit.ask("GET", f"{place.api}/active")
    if base == str(active["version"]):
        return None
    # The first draft of a tenant stores the pack, which decided before, as version 1.
    if base == "0" and (await visit.ask("GET", f"{place.api}/pack"))["digest"] == active["digest"]:
        return None
    found: int = active["version"]
    return found


def came_between(version: int) -> Conflict:
    """Return the refusal of a form that was filled in before a version came into force."""
    return Conflict(
        f"Version {version} came into force since you opened this page. Nothing is saved yet.",
        "changed_meanwhile",
    )


async def rules_in(document: str) -> RuleSet:
    """Read a whole document; one that is broken, or that this version cannot read, has no rules."""
    read: Callable[[str], RuleSet] = _read
    return await asyncio.to_thread(read, document)


@functools.lru_cache(maxsize=8)
def _read(document: str) -> RuleSet:
    try:
        return read_ruleset(document)
    except RuleSetRefused:
        return RuleSet(name="")


PAGES: Final = (*RulePages(FRAUD).table(), *RulePages(AML).table())
