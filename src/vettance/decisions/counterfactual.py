"""Counterfactuals: the smallest changes of what a decision knew by which its answer would have been another.

They are found from the conditions of the rules (`rules/switches.py`) and each is verified: the compiled rules
run with the changed values, and the decision is combined anew. What cannot be verified is not returned.
"""

import heapq
import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Final, NamedTuple

from vettance.decisions.active_rulesets import ActiveRules
from vettance.decisions.decision import Decision, DecisionRecordData, Outcome, decide, entries_of
from vettance.lists.entry import ListEntry, ListType, winning_list
from vettance.rules.expression import Expression
from vettance.rules.rollout import acting
from vettance.rules.rule_reads import ConditionReader
from vettance.rules.ruleset import Rule
from vettance.rules.switches import CHANGES_MAX, ChangeSet, ValueChange, switch
from vettance.velocity.port import Value

#: How many are returned for each other answer.
FOUND_MAX: Final = 3
#: What bounds the time of one search: runs of the rules, and sets of changes that are built on.
_RUNS_MAX: Final = 120
_STEPS_MAX: Final = 10
#: Values that an answer may need changed at once, when no smaller set is found.
_LAST_RESORT_MAX: Final = 16
#: Rules whose conditions are looked at in the first step, and in each that builds on it.
_RULES_FIRST_MAX: Final = 24
_RULES_MAX: Final = 10
_VAGUE: Final = {"==": 1, "in": 1, "!=": 2, "not in": 2, "present": 3, "missing": 3}


class Counterfactual(NamedTuple):
    """Another answer, and the changes that it takes together. `lists` names the list that must not match."""

    outcome: Outcome
    score: int
    changes: ChangeSet
    without: ListType | None


class _TriedRun(NamedTuple):
    """What the rules say for some changes."""

    decision: Decision
    fired: list[int]


class _Search:
    """One search: the values of a decision, and how many runs are left."""

    def __init__(self, active: ActiveRules, record: DecisionRecordData, conditions: ConditionReader) -> None:
        self.active = active
        self.record = record
        self.conditions = conditions
        compiled = active.compiled
        self.fact_places = {name: place for place, name in enumerate(compiled.fact_names)}
        self.answer_places = {name: place for place, name in enumerate(compiled.plan.aggregate_names)}
        self.values: dict[str, Value] = dict(
            itertools.chain(
                zip(compiled.fact_names, record.facts, strict=True),
                zip(compiled.plan.aggregate_names, record.answers, strict=True),
            )
        )
        self.entries = entries_of("", record.lists)
        self.runs = 0

    def run(self, changes: ChangeSet, entries: Sequence[ListEntry]) -> _TriedRun:
        """Run the rules with some values changed."""
        self.runs += 1
        facts, answers = list(self.record.facts), list(self.record.answers)
        for change in changes:
            if change.name in self.fact_places:
                facts[self.fact_places[change.name]] = change.value
            else:
                answers[self.answer_places[change.name]] = change.value
        fired, _ = self.active.compiled.run(tuple(facts), tuple(answers))
        withheld = self.record.withheld
        if self.active.stages and self.active.stages.keys() & (set(fired) - set(self.record.fired)):
            # Whether it would act depends on whom the event is about: nothing is said that may be untrue.
            fired, withheld = self.record.fired, self.record.withheld
        may_act, held_out = acting(fired, withheld), self.record.held_out
        ruleset, model = self.active.ruleset, self.record.model
        decision = decide(ruleset, self.active.version, may_act, entries, held_out=held_out, model=model)
        return _TriedRun(decision, fired)

    def compute(self, held: ChangeSet) -> Callable[[Expression, ChangeSet], Any]:
        """Return what computes an expression from the values as they are after some changes."""
        known = self.values | {change.name: change.value for change in held}

        def compute(expression: Expression, changes: ChangeSet) -> Any:
            value = self.conditions.value(expression)
            tried = {change.name: change.value for change in changes}
            return value.compute(*(tried[name] if name in tried else known.get(name) for name in value.names))

        return compute


def find_counterfactuals(
    active: ActiveRules, record: DecisionRecordData, conditions: ConditionReader
) -> list[Counterfactual]:
    """Return what would have changed an answer, fewest changes first; nothing where that cannot be verified.

    An answer that holds somebody up is asked for what would have been milder, an approval for what would have
    been stricter.
    """
    compiled = active.compiled
    if len(compiled.fact_names) != len(record.facts):
        return []
    if len(compiled.plan.aggregate_names) != len(record.answers):
        return []
    search = _Search(active, record, conditions)
    if search.run((), search.entries).decision.outcome is not record.outcome:
        return []  # This code answers otherwise: nothing it finds would be true of the answer that was given.
    found: dict[tuple[Outcome, ListType | None, frozenset[str]], Counterfactual] = {}
    for one in _flips(search):
        key = one.outcome, one.without, frozenset(change.name for change in one.changes)
        alike = [each for each in found if each[0] is one.outcome]
        if len(alike) < FOUND_MAX and not any(each[1] is one.without and each[2] <= key[2] for each in alike):
            found[key] = one
            if len(alike) + 1 == FOUND_MAX and one.outcome is not Outcome.REVIEW:
                break  # Nothing milder, or nothing stricter, is left to find.
    return sorted(found.values(), key=_rank)


def _rank(one: Counterfactual) -> tuple[int, int, int]:
    return len(one.changes) + (one.without is not None), _vagueness(one.changes), one.score


def _vagueness(changes: Iterable[ValueChange]) -> int:
    """Weigh how little changes say: a bound says most, that a value were missing least."""
    return sum(_VAGUE.get(change.sign, 0) for change in changes)


def _flips(search: _Search) -> Iterator[Counterfactual]:
    """Yield other answers by number of changes, trying one more change on top of those tried before."""
    milder = search.record.outcome is not Outcome.ALLOW
    order = itertools.count()
    entries, without = search.entries, None
    if (listed := winning_list(entries)) is not None:
        # A list is above the rules: only without its entries can values change anything.
        entries, without = [one for one in entries if one.list_type is not listed], listed
    waiting: list[tuple[int, int, int, ChangeSet]] = [(0, 0, 0, ())]
    tried: set[frozenset[ValueChange]] = set()
    is_found = False
    steps = 0
    while waiting and search.runs < _RUNS_MAX:
        changes = heapq.heappop(waiting)[-1]
        now = search.run(changes, entries)
        if now.decision.outcome is not search.record.outcome:
            is_found = True
            yield _smallest(search, changes, entries, without)
            if not milder or now.decision.outcome is Outcome.ALLOW:
                continue
        if steps == _STEPS_MAX:
            continue
        steps += 1
        for more in _steps(search, changes, now, milder=milder):
            joined = {change.name: change for change in (*changes, *more)}
            together = frozenset(joined.values())
            if len(joined) > CHANGES_MAX or together in tried:
                continue
            tried.add(together)
            heapq.heappush(waiting, (len(joined), _vagueness(together), next(order), tuple(joined.values())))
    if not is_found and (changes := _one_by_one(search, entries, milder=milder)):
        yield _smallest(search, changes, entries, without)


def _one_by_one(search: _Search, entries: Sequence[ListEntry], *, milder: bool) -> ChangeSet:
    """Switch rule after rule until the answer is another; empty when it never is."""
    changes: dict[str, ValueChange] = {}
    while len(changes) < _LAST_RESORT_MAX:
        held = tuple(changes.values())
        now = search.run(held, entries)
        if now.decision.outcome is not search.record.outcome:
            return held
        more = next(_steps(search, held, now, milder=milder), None)
        if more is None:
            break
        changes |= {change.name: change for change in more}
    return ()


def _smallest(
    search: _Search, changes: ChangeSet, entries: Sequence[ListEntry], without: ListType | None
) -> Counterfactual:
    """Leave out the changes that the other answer does not need, and verify what is left."""
    kept = list(changes)
    outcome = search.run(changes, entries).decision.outcome
    for change in changes:
        fewer = tuple(one for one in kept if one is not change)
        if search.run(fewer, entries).decision.outcome is outcome:
            kept = list(fewer)
    decision = search.run(tuple(kept), entries).decision
    return Counterfactual(decision.outcome, decision.score, tuple(kept), without)


def _steps(search: _Search, changes: ChangeSet, now: _TriedRun, *, milder: bool) -> Iterator[ChangeSet]:
    """Yield the changes that switch one more rule off (for a milder answer) or on."""
    fired = set(now.fired)
    places = [
        place
        for place, rule in enumerate(search.active.ruleset.running)
        if rule.mode == "active" and _weighs(rule, milder=milder) and (place in fired) is milder
    ]
    running = search.active.ruleset.running
    places.sort(key=lambda place: (running[place].outcome is None, -running[place].score))
    compute = search.compute(changes)
    held = {change.name for change in changes}
    for place in places[: _RULES_MAX if changes else _RULES_FIRST_MAX]:
        expression = search.conditions.read(running[place].when)
        if expression is None:
            continue
        for way in switch(expression, on=not milder, compute=compute):
            if way and not held & {change.name for change in way}:
                yield way
    if not milder:
        return
    # A rule that lets through may be what is missing.
    for place, rule in enumerate(running):
        if rule.mode == "active" and rule.outcome == "ALLOW" and place not in fired:
            expression = search.conditions.read(rule.when)
            if expression is not None:
                yield from switch(expression, on=True, compute=compute)


def _weighs(rule: Rule, *, milder: bool) -> bool:
    if rule.outcome == "ALLOW":
        return False
    return rule.score > 0 or rule.outcome is not None or not milder


_SIGNS: Final = {"<=": "≤", ">=": "≥", "<": "<", ">": ">"}


def change_words(name: str, relation: str, was: str, bound: str) -> str:
    """Say one change: what a value would have had to be, and what it was, both as texts to show."""
    match relation:
        case "missing":
            return f"{name} had been missing instead of {was}"
        case "present":
            return f"{name} had been there"
        case "!=" | "not in":
            return f"{name} were anything but {bound}"
        case "in":
            return f"{name} were one of {bound} instead of {was}"
        case "==":
            return f"{name} were {bound} instead of {was}"
        case sign:
            return f"{name} were {_SIGNS[sign]} {bound} instead of {was}"


def list_words(without: ListType) -> str:
    """Say that an entry of a list would have had to be gone."""
    return f"no entry of the {without.value.lower()} list had matched"
