"""Fits the scores of the rules in force to labels, and says which decisions would change."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple

import msgspec
import numpy as np

from vettance.decisions.active_rulesets import ActiveRules
from vettance.decisions.decision import LOWERCASE, decide, entries_of
from vettance.lists.entry import winning_list
from vettance.rules.rollout import acting
from vettance.rules.ruleset import Rule, RuleSet, write_ruleset
from vettance.suggestions.labelled_log import LabelledLog
from vettance.suggestions.logged_values import LoggedDecision, LogReader, WantedValues
from vettance.suggestions.suggested_rules import part_out
from vettance.suggestions.weight_fit import FiredGroups, fit_scores
from vettance.wire.payload import JSON

#: Of the events that are no labelled fraud, so many are looked at of each part of time.
REST_MAX: Final = 200_000
_GROUPS: Final[Mapping[str, int | None]] = {"all": None, "fraud": 1, "legit": 0}
_DIGITS: Final = 6

Advance = Callable[[int], Any]


class _Alike(NamedTuple):
    """What decides about an event: the rules that acted, by their places, and the lists that matched."""

    acted: tuple[int, ...]
    lists: tuple[tuple[str, str, str], ...]


class _RuleCounts(NamedTuple):
    """Events that are alike by what decides, counted by their truths; those that are no fraud weighted."""

    counts: Counter[tuple[_Alike, int]]
    weight: float


async def weigh_rules(
    reader: LogReader, log: LabelledLog, known: LabelledLog, active: ActiveRules, advance: Advance
) -> JSON:
    """Fit on the earlier part of time, and measure on the later one."""
    learned, later = known.split()
    running = active.ruleset.running
    places = [place for place, rule in enumerate(running) if rule.mode == "active"]
    first = await _count(reader, learned, active, advance)
    groups = _groups(first, places)
    present = np.array([float(running[place].score) for place in places])
    fitted = fit_scores(groups, present)
    # A rule of which nothing was seen keeps its score, whatever it rounds to.
    hit = (groups.acted.sum(axis=0) > 0).tolist()
    scores = {
        running[place].id: int(score) if is_hit else running[place].score
        for place, score, is_hit in zip(places, fitted, hit, strict=True)
    }
    changed = with_scores(active.ruleset, scores)
    measured = await _count(reader, later, active, advance)
    decisions, flipped = _decide_both(measured, active.ruleset, changed)
    fired: Counter[int] = Counter()
    frauds: Counter[int] = Counter()
    for (alike, truth), number in measured.counts.items():
        for place in alike.acted:
            fired[place] += number
            frauds[place] += number * (truth == 1)
    return {
        "kind": "weights",
        "events": len(log.places),
        "frauds": log.frauds,
        "learned": part_out(learned),
        "measured": {**part_out(later), "eventWeight": round(measured.weight, _DIGITS)},
        "rules": [
            _rule_out(running[place], scores[running[place].id], fired[place], frauds[place])
            for place in places
        ],
        "decisions": decisions,
        "changed": flipped,
        "draft": write_ruleset(changed) if changed != active.ruleset else None,
    }


def with_scores(ruleset: RuleSet, scores: Mapping[str, int]) -> RuleSet:
    """Return a rule set with other scores."""
    rules = (msgspec.structs.replace(rule, score=scores.get(rule.id, rule.score)) for rule in ruleset.rules)
    return msgspec.structs.replace(ruleset, rules=tuple(rules))


async def _count(reader: LogReader, log: LabelledLog, active: ActiveRules, advance: Advance) -> _RuleCounts:
    sampled, weight = log.sample(REST_MAX)
    truths = dict(zip(sampled.places.tolist(), sampled.truths.tolist(), strict=True))
    place_of = {rule.id: place for place, rule in enumerate(active.ruleset.running)}
    counts: Counter[tuple[_Alike, int]] = Counter()
    async for found in reader.read(sampled.places, WantedValues()):
        for one in found:
            version = await reader.version(one.record.ruleset_version)
            if version is not None:
                counts[_alike(one, version, place_of), truths[one.place]] += 1
        advance(len(found))
    return _RuleCounts(counts, weight)


def _alike(one: LoggedDecision, version: ActiveRules, place_of: Mapping[str, int]) -> _Alike:
    ids = version.compiled.rule_ids
    acted = (place_of.get(ids[fired]) for fired in acting(one.record.fired, one.record.withheld))
    return _Alike(tuple(sorted(place for place in acted if place is not None)), tuple(one.record.lists))


def _groups(counted: _RuleCounts, places: Sequence[int]) -> FiredGroups:
    """Put together events with the same rules, and leave out those that a list decided."""
    found: dict[tuple[int, ...], list[float]] = {}
    for (alike, truth), number in counted.counts.items():
        if alike.lists and winning_list(entries_of("", alike.lists)) is not None:
            continue
        events = number * (1.0 if truth == 1 else counted.weight)
        sums = found.setdefault(alike.acted, [0.0, 0.0])
        sums[0] += events
        sums[1] += events * (truth == 1)
    column = {place: at for at, place in enumerate(places)}
    acted = np.zeros((len(found), len(places)))
    for line, fired in enumerate(found):
        for place in fired:
            if place in column:
                acted[line, column[place]] = 1.0
    sums_of = np.array(list(found.values())).reshape(len(found), 2)
    return FiredGroups(acted, sums_of[:, 0], sums_of[:, 1])


def _decide_both(counted: _RuleCounts, before: RuleSet, after: RuleSet) -> tuple[JSON, JSON]:
    """Decide every event by both rule sets; return how many were answered how, and how many otherwise."""
    sides = {
        name: {when: dict.fromkeys(LOWERCASE.values(), 0.0) for when in ("before", "after")}
        for name in _GROUPS
    }
    changed = dict.fromkeys(_GROUPS, 0.0)
    for (alike, truth), number in counted.counts.items():
        entries = entries_of("", alike.lists)
        was, now = (decide(one, 0, alike.acted, entries).outcome for one in (before, after))
        events = number * (1.0 if truth == 1 else counted.weight)
        for name, wanted in _GROUPS.items():
            if wanted is None or truth == wanted:
                sides[name]["before"][LOWERCASE[was]] += events
                sides[name]["after"][LOWERCASE[now]] += events
                changed[name] += events * (was is not now)
    return (
        {name: {when: _rounded(side) for when, side in both.items()} for name, both in sides.items()},
        _rounded(changed),
    )


def _rounded(counts: Mapping[str, float]) -> dict[str, int]:
    return {name: round(number) for name, number in counts.items()}


def _rule_out(rule: Rule, score: int, fired: int, fraud: int) -> JSON:
    return {"ruleId": rule.id, "score": rule.score, "suggested": score, "fired": fired, "fraud": fraud}
