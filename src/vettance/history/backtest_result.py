"""What a backtest found, as it is answered, and the expectations that it may be held to."""

import operator
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from vettance.decisions.decision import LOWERCASE, Outcome
from vettance.history.backtest import Backtest, ChangedDecision
from vettance.quality.wilson import Share, share_of
from vettance.rules.ruleset import Rule
from vettance.wire.payload import JSON, timestamp

#: What labels say, by the word of each in results and expectations.
GROUPS: Final[Mapping[str, bool | None]] = {"all": None, "fraud": True, "legit": False}
_DIGITS: Final = 6
_CAUGHT: Final = ("review", "deny")
_COMPARISONS: Final[Mapping[str, Callable[[float, float], bool]]] = {
    ">=": operator.ge,
    "<=": operator.le,
    ">": operator.gt,
    "<": operator.lt,
    "==": operator.eq,
}
_EXPECTATION: Final = re.compile(r"\s*([a-z]+)\.([a-z]+)\s*(>=|<=|==|>|<)\s*(\d+(?:\.\d+)?|\.\d+)\s*")


class ExpectationWords(NamedTuple):
    """What expectations of one kind of rules may name: groups of events, and measures of what is answered."""

    groups: Collection[str]
    measures: Mapping[str, tuple[str, ...]]
    example: str


FRAUD_WORDS: Final = ExpectationWords(
    tuple(GROUPS),
    {"caught": _CAUGHT, "reviewed": ("review",), "denied": ("deny",), "approved": ("approve",)},
    "fraud.caught >= 0.8",
)


class Expectation(NamedTuple):
    """A share that must be so: of all events, of fraud or of legitimate ones, what is answered now."""

    text: str
    group: str
    measure: str
    comparison: str
    value: float
    answers: tuple[str, ...] = ()


def read_expectation(text: str, words: ExpectationWords = FRAUD_WORDS) -> Expectation:
    """Read a text such as `fraud.caught >= 0.8`. Raises `ValueError` with what is wrong."""
    found = _EXPECTATION.fullmatch(text)
    if found is None:
        raise ValueError(f"{text!r} does not read as `{words.example}`")
    group, measure, comparison, value = found.groups()
    if group not in words.groups:
        raise ValueError(f"{group!r} is none of {', '.join(words.groups)}")
    if measure not in words.measures:
        raise ValueError(f"{measure!r} is none of {', '.join(words.measures)}")
    return Expectation(text.strip(), group, measure, comparison, float(value), words.measures[measure])


class MetExpectation(NamedTuple):
    """An expectation, the share that was found (None where there were no such events), and if it is met."""

    expectation: Expectation
    share: float | None
    is_met: bool


def meet(
    expectations: Iterable[Expectation], decisions: Mapping[str, Mapping[str, Mapping[str, int]]]
) -> list[MetExpectation]:
    """Hold what a backtest found to expectations. What there were no events for is not met.

    `decisions` is the member of that name of a result.
    """
    found = []
    for one in expectations:
        answers = decisions[one.group]["after"]
        total = sum(answers.values())
        share = sum(answers[each] for each in one.answers) / total if total else None
        met = share is not None and _COMPARISONS[one.comparison](share, one.value)
        found.append(MetExpectation(one, share, met))
    return found


def backtest_result(
    run: Backtest, rules: Sequence[Rule], flips: Sequence[ChangedDecision], flipped: int, mature_ms: int
) -> JSON:
    """Write what a backtest found; `flips` are samples of the events that would be decided otherwise.

    Events after `mature_ms` (Unix milliseconds) may still be labelled; they are counted apart as well.
    """
    decisions = decisions_out(run)
    days = _days(run)
    load = {
        when: round(sum(day[when]["review"] for day in days) / len(days), 2) if days else 0.0
        for when in ("before", "after")
    }
    return {
        "events": sum(run.counts.values()),
        "skipped": run.skipped,
        "decisions": decisions,
        "flips": {"count": flipped, "samples": [flip_out(one) for one in flips]},
        "rules": [_rule_out(rule, place, run) for place, rule in enumerate(rules)],
        "days": days,
        "reviewsPerDay": load,
        "young": _young(run, mature_ms),
    }


def decisions_out(run: Backtest) -> dict[str, dict[str, dict[str, int]]]:
    """Write how events were answered before and after, of all and by their labels."""
    return {name: _answers(run, fraud) for name, fraud in GROUPS.items()}


def flip_out(change: ChangedDecision) -> JSON:
    """Write an event that would be decided otherwise."""
    return {
        "id": change.id,
        "occurredAt": timestamp(change.occurred_at_ms),
        "label": None if change.fraud is None else "fraud" if change.fraud else "legit",
        "was": LOWERCASE[change.was],
        "now": LOWERCASE[change.now.outcome],
        "scoreWas": change.score,
        "scoreNow": change.now.score,
        "reasonCodesNow": [reason.code for reason in change.now.reasons],
    }


def _answers(run: Backtest, fraud: bool | None) -> dict[str, dict[str, int]]:
    return _sides(
        (was, now, number)
        for (truth, was, now), number in run.counts.items()
        if fraud is None or truth is fraud
    )


def _sides(counted: Iterable[tuple[Outcome, Outcome, int]]) -> dict[str, dict[str, int]]:
    """Add up how events were answered before and after."""
    sides = {when: dict.fromkeys(LOWERCASE.values(), 0) for when in ("before", "after")}
    for was, now, number in counted:
        sides["before"][LOWERCASE[was]] += number
        sides["after"][LOWERCASE[now]] += number
    return sides


def _rule_out(rule: Rule, place: int, run: Backtest) -> JSON:
    hits = run.hits[place]
    frauds = sum(number for (truth, _, _), number in run.counts.items() if truth is True)
    return {
        "ruleId": rule.id,
        "mode": rule.mode,
        "fired": hits.fired,
        "fraud": hits.fraud,
        "legit": hits.legit,
        "failed": hits.failed,
        "precision": share_out(share_of(hits.fraud, hits.fraud + hits.legit)),
        "recall": share_out(share_of(hits.fraud, frauds)),
        "alone": hits.alone,
        "aloneFraud": hits.alone_fraud,
    }


def share_out(share: Share | None) -> JSON | None:
    """Write a share with its interval."""
    return None if share is None else {name: round(part, _DIGITS) for name, part in share._asdict().items()}


def _days(run: Backtest) -> list[dict[str, Any]]:
    found = []
    for day_s in sorted({day for day, *_ in run.days}):
        here = [(key[1:], number) for key, number in run.days.items() if key[0] == day_s]
        sides: dict[str, Any] = _sides((was, now, number) for (_, was, now), number in here)
        fraud = _sides((was, now, number) for (truth, was, now), number in here if truth is True)
        caught = {when: sum(fraud[when][one] for one in _CAUGHT) for when in sides}
        total = sum(fraud["after"].values())
        found.append({"day": timestamp(day_s * 1000)[:10], **sides, "fraud": total, "fraudCaught": caught})
    return found


def _young(run: Backtest, mature_ms: int) -> JSON:
    since_s = mature_ms // 1000
    counted = [(was, now, number) for (day_s, _, was, now), number in run.days.items() if day_s >= since_s]
    return {
        "since": timestamp(max(mature_ms, 0)),
        "events": sum(number for *_, number in counted),
        **_sides(counted),
    }
