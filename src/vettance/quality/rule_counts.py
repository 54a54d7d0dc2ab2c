"""What is counted of each rule: the measures of one decision, and how many of each a span has."""

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from vettance.clock import DAY_MS, HOUR_MS
from vettance.rules.ruleset import Rule

#: The "rule" that all decisions are counted under.
EVERY: Final = ""
#: The widths of the spans that are counted, in seconds.
HOUR_S: Final = HOUR_MS // 1000
DAY_S: Final = DAY_MS // 1000
WIDTHS_S: Final = (HOUR_S, DAY_S)
#: Hours are asked for up to this age; what is asked of older ones is answered by whole days.
HOURS_ASKED_S: Final = 34 * DAY_S
#: Hours are kept for longer, since those before a span are taken from its first day; days for ever.
HOURS_KEPT_S: Final = HOURS_ASKED_S + 2 * DAY_S

HITS: Final = "hits"
SHADOW: Final = "shadow"
FAILURES: Final = "failures"
ALONE: Final = "alone"
#: Decisions that were held; of AML events those that are behind an alert.
HELD: Final = "held"
#: What would have been held by its score, and was let through to learn the truth.
HELD_OUT: Final = "held_out"
#: Alerts of AML that a rule raised, and those that another rule raised when it fired with it.
ALERTS: Final = "alerts"
JOINED: Final = "joined"
#: The words of what was true; of AML cases a true match and a false positive.
FRAUD: Final = "fraud"
LEGIT: Final = "legit"
#: With the id of the other rule behind it.
OVERLAP: Final = "overlap:"
#: With the currency behind it; the sum of the amounts of what was held.
AMOUNT: Final = "amount:"
#: What is counted again, with a label's word before it, once somebody says what was true.
_LABELLED: Final = (HITS, SHADOW, ALONE, HELD, ALERTS, JOINED)

#: (rule, measure) → how often, or how much.
Measures = dict[tuple[str, str], float]


class CountKey(NamedTuple):
    """What one number is about: a span, a rule, and a measure of it."""

    width_s: int
    start_s: int
    rule: str
    measure: str


Counts = dict[CountKey, float]


class RuleRun(NamedTuple):
    """What rules said of one event, by their places; `amount` is of what was held, with its currency."""

    fired: Sequence[int]
    acting: Sequence[int]
    failed: Sequence[int]
    held: bool
    held_out: bool = False
    amount: tuple[str, float] | None = None


def measures_of(rules: Sequence[Rule], run: RuleRun) -> Measures:
    """Return what one event adds; `rules` are those that ran."""
    found: Measures = {(EVERY, HITS): 1}
    if run.held:
        found[EVERY, HELD] = 1
    if run.held_out:
        found[EVERY, HELD_OUT] = 1
    fired = [(index, rules[index]) for index in run.fired if index < len(rules)]
    acting = {*run.acting}
    active = [rule.id for index, rule in fired if index in acting and rule.mode == "active"]
    amount = run.amount if active else None
    if amount is not None:
        found[EVERY, f"{AMOUNT}{amount[0]}"] = amount[1]
    for index, rule in fired:
        if index not in acting or rule.mode != "active":
            found[rule.id, SHADOW] = 1
    for rule_id in active:
        _measure_hit(found, rule_id, active, amount, held=run.held)
    for index in run.failed:
        if index < len(rules):
            found[rules[index].id, FAILURES] = 1
    return found


def _measure_hit(
    found: Measures, rule_id: str, active: Sequence[str], amount: tuple[str, float] | None, *, held: bool
) -> None:
    """Add what one acting rule did."""
    found[rule_id, HITS] = 1
    if len(active) == 1:
        found[rule_id, ALONE] = 1
    if held:
        found[rule_id, HELD] = 1
    if amount is not None:
        found[rule_id, f"{AMOUNT}{amount[0]}"] = amount[1]
    for other in active:
        if other != rule_id:
            found[rule_id, f"{OVERLAP}{other}"] = 1


def labelled(measures: Measures, weight: int, *, fraud: bool) -> Measures:
    """Return what a label adds for its decision; a weight of -1 takes away what an earlier one added.

    Of amounts those of all rules together: how much of what was held was fraud.
    """
    word = FRAUD if fraud else LEGIT
    found: Measures = {}
    for (rule, measure), amount in measures.items():
        if measure in _LABELLED:
            found[rule, f"{word}:{measure}"] = weight
        elif rule == EVERY and measure.startswith(AMOUNT):
            found[rule, f"{word}:{measure}"] = weight * amount
    return found


def add_up(counts: Counts, measures: Measures, at_ms: int, times: int = 1) -> None:
    """Add what a decision measures to the hour and the day of its event, as often as there were such ones."""
    at_s = at_ms // 1000
    for width_s in WIDTHS_S:
        start_s = at_s - at_s % width_s
        for (rule, measure), amount in measures.items():
            key = CountKey(width_s, start_s, rule, measure)
            counts[key] = counts.get(key, 0) + amount * times


def last_hits(decided: Iterable[tuple[int, Measures]]) -> dict[str, int]:
    """Return when each rule fired last, in milliseconds, of (moment, measures)."""
    last: dict[str, int] = {}
    for at_ms, measures in decided:
        for rule, measure in measures:
            if rule != EVERY and measure in (HITS, SHADOW):
                last[rule] = max(last.get(rule, at_ms), at_ms)
    return last
