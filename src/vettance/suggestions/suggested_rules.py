"""Which of the rules that were found are worth a look, and what is said of each."""

import hashlib
from collections.abc import Iterable
from typing import Final, NamedTuple

import msgspec

from vettance.quality.wilson import Share, share_of
from vettance.rules.ruleset import Rule, RuleSet, write_ruleset
from vettance.suggestions.candidate_conditions import Mask
from vettance.suggestions.find_rules import MeasuredRules, RuleCondition
from vettance.suggestions.labelled_log import ANSWERS, UNLABELLED, LabelledLog
from vettance.wire.payload import JSON, timestamp

SUGGESTED_MAX: Final = 10
#: The precision that a rule has to have, by the lower end of its interval.
PRECISION_MIN: Final = 0.5
#: Frauds that nothing stopped, which a rule has to catch.
_ADDED_MIN: Final = 3
#: A false hit weighs as much as so many frauds when rules are ordered.
_FALSE_HIT: Final = 3.0
#: Two rules that share so much of what they hit are one.
_ALIKE: Final = 0.7
_REASON: Final = "SUGGESTED_PATTERN"
_FAMILY: Final = "suggested"
_DIGITS: Final = 6
_ID_CHARS: Final = 8


class RuleMeasure(NamedTuple):
    """What a rule hits of the later time. `rest` are hits that are not known to be fraud; weighted.

    `added` and `added_rest` are those of them that were approved.
    """

    condition: RuleCondition
    hits: Mask
    fraud: int
    legit: int
    rest: float
    precision: Share
    recall: Share
    added: int
    added_rest: float
    added_precision: Share

    @property
    def worth(self) -> float:
        """By what rules are ordered: what they add, less what they hit in error."""
        return self.added - _FALSE_HIT * self.added_rest


def measures_of(found: MeasuredRules) -> list[RuleMeasure]:
    """Measure every rule that hits any fraud."""
    log, weight = found.log, found.rest_weight
    fraud, approved = log.truths == 1, log.answers == ANSWERS["ALLOW"]
    made = []
    for condition, hits in zip(found.rules, found.fired, strict=True):
        caught, others = int((hits & fraud).sum()), int((hits & ~fraud).sum())
        added, added_others = int((hits & fraud & approved).sum()), int((hits & ~fraud & approved).sum())
        precision, added_precision = _weighed(caught, others, weight), _weighed(added, added_others, weight)
        recall = share_of(caught, log.frauds)
        if precision is None or added_precision is None or recall is None:
            continue
        legit = round(int((hits & (log.truths == 0)).sum()) * weight)
        made.append(
            RuleMeasure(
                *(condition, hits, caught, legit, others * weight, precision, recall),
                *(added, added_others * weight, added_precision),
            )
        )
    return made


def _weighed(fraud: int, rest: int, weight: float) -> Share | None:
    """Return a share of fraud where each of the rest stands for several; the interval is by what was seen."""
    total = fraud + rest * weight
    seen = fraud + rest
    return share_of(fraud / total * seen, seen) if total else None


def choose(measures: Iterable[RuleMeasure]) -> list[RuleMeasure]:
    """Return those that hold on the later time as well, the most useful first, each pattern once."""
    good = [
        one
        for one in measures
        if one.precision.low >= PRECISION_MIN
        and one.added_precision.value >= PRECISION_MIN
        and one.added >= _ADDED_MIN
    ]
    good.sort(key=lambda one: (-one.worth, len(one.condition.parts), one.condition.text))
    chosen: list[RuleMeasure] = []
    for one in good:
        if all(_alike(one.hits, other.hits) < _ALIKE for other in chosen):
            chosen.append(one)
        if len(chosen) == SUGGESTED_MAX:
            break
    return chosen


def _alike(one: Mask, other: Mask) -> float:
    either = int((one | other).sum())
    return int((one & other).sum()) / either if either else 1.0


def rule_of(one: RuleMeasure, ruleset: RuleSet, log: LabelledLog) -> Rule:
    """Write a rule that can be tried: in shadow, with the score that has an event reviewed."""
    digest = hashlib.sha256(one.condition.text.encode()).hexdigest()[:_ID_CHARS]
    since, until = (timestamp(int(at))[:10] for at in (log.moments.min(), log.moments.max()))
    caught = f"{one.fraud} of {round(one.fraud + one.rest):,} events that it hit from {since} to {until}"
    return Rule(
        id=f"suggested-{digest}",
        name=f"Suggested pattern {digest}",
        family=_FAMILY,
        when=one.condition.text,
        score=ruleset.thresholds.review,
        reason=_REASON,
        explanation=f"Found in labels: {caught} were fraud.",
        mode="shadow",
    )


def draft_of(ruleset: RuleSet, rules: Iterable[Rule]) -> RuleSet:
    """Return a rule set with further rules; one that it has already is replaced."""
    added = {rule.id: rule for rule in rules}
    kept = tuple(rule for rule in ruleset.rules if rule.id not in added)
    return msgspec.structs.replace(ruleset, rules=(*kept, *added.values()))


def rules_result(
    log: LabelledLog, learned: LabelledLog, found: MeasuredRules, ruleset: RuleSet, chosen: list[RuleMeasure]
) -> JSON:
    """Write what was found."""
    rules = [rule_of(one, ruleset, found.log) for one in chosen]
    return {
        "kind": "rules",
        "events": len(log.places),
        "frauds": log.frauds,
        "learned": part_out(learned),
        "measured": {
            **part_out(found.log),
            "approvedFrauds": int(((found.log.truths == 1) & (found.log.answers == ANSWERS["ALLOW"])).sum()),
            "otherVersions": found.others,
            "eventWeight": round(found.rest_weight, _DIGITS),
        },
        "suggestions": [
            _suggestion_out(one, rule, found.log) for one, rule in zip(chosen, rules, strict=True)
        ],
        "draft": write_ruleset(draft_of(ruleset, rules)) if rules else None,
    }


def part_out(log: LabelledLog) -> JSON:
    """Write a part of time by its events."""
    is_empty = not len(log.moments)
    return {
        "from": None if is_empty else timestamp(int(log.moments.min())),
        "to": None if is_empty else timestamp(int(log.moments.max())),
        "events": len(log.places),
        "frauds": log.frauds,
        "legit": int((log.truths == 0).sum()),
        "unlabelled": int((log.truths == UNLABELLED).sum()),
    }


def _suggestion_out(one: RuleMeasure, rule: Rule, log: LabelledLog) -> JSON:
    stopped = int(((log.truths == 1) & (log.answers != ANSWERS["ALLOW"])).sum())
    frauds = max(log.frauds, 1)
    members = msgspec.to_builtins(rule)
    return {
        "rule": {name: value for name, value in members.items() if value not in (None, "", [], ())},
        "hits": round(one.fraud + one.rest),
        "hitsPerDay": round((one.fraud + one.rest) / log.days, 2),
        "fraud": one.fraud,
        "legit": one.legit,
        "presumedLegit": round(one.rest - one.legit),
        "precision": share_out(one.precision),
        "recall": share_out(one.recall),
        "adds": {
            "fraud": one.added,
            "notFraud": round(one.added_rest),
            "precision": share_out(one.added_precision),
            "recallBefore": round(stopped / frauds, _DIGITS),
            "recallAfter": round((stopped + one.added) / frauds, _DIGITS),
        },
    }


def share_out(share: Share | None) -> JSON | None:
    """Write a share with its interval."""
    return None if share is None else {name: round(part, _DIGITS) for name, part in share._asdict().items()}
