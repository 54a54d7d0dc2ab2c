"""What a backtest of AML rules found, as it is answered, and the words of expectations about it."""

from collections.abc import Iterable, Sequence
from typing import Any, Final

from vettance.backtests.aml_backtest import AlertEnds, AmlBacktest, TriedEvent
from vettance.history.backtest_result import ExpectationWords, share_out
from vettance.quality.wilson import share_of
from vettance.wire.payload import JSON, timestamp

#: What is true of events, by the word of each in results and expectations.
TRUTHS: Final = {"all": None, "true": True, "false": False}
AML_WORDS: Final = ExpectationWords(
    tuple(TRUTHS), {"alerted": ("alerted",), "clear": ("clear",)}, "true.alerted >= 0.95"
)
_WORDS: Final = ("clear", "alerted")


def aml_backtest_result(run: AmlBacktest, flips: Sequence[TriedEvent]) -> JSON:
    """Write what a backtest found; `flips` are samples of the events that would alert, or not any more."""
    after = run.after
    days = _days(run)
    raised = {"before": _sum(run.before.values()), "after": _sum(after.values())}
    return {
        "events": sum(run.counts.values()),
        "skipped": run.skipped,
        "decisions": aml_decisions_out(run),
        "alerts": raised,
        "alertsPerDay": {
            when: round(one["raised"] / len(days), 2) if days else 0.0 for when, one in raised.items()
        },
        "flips": {"count": run.flips, "samples": [aml_flip_out(one) for one in flips]},
        "rules": [_rule_out(rule, place, run, after) for place, rule in enumerate(run.rules)],
        "days": days,
    }


def aml_decisions_out(run: AmlBacktest) -> dict[str, dict[str, dict[str, int]]]:
    """Write how many events alerted before and after, of all and by what their alerts turned out to be."""
    return {
        name: _sides(
            (was, now, number)
            for (truth, was, now), number in run.counts.items()
            if wanted is None or truth is wanted
        )
        for name, wanted in TRUTHS.items()
    }


def aml_flip_out(tried: TriedEvent) -> JSON:
    """Write an event that would alert, or not any more."""
    return {
        "id": tried.id,
        "externalEventId": tried.external_id,
        "occurredAt": timestamp(tried.occurred_at_ms),
        "label": None if tried.truth is None else "true" if tried.truth else "false",
        "was": _WORDS[bool(tried.was)],
        "now": _WORDS[bool(tried.now)],
        "rulesWas": list(tried.was),
        "rulesNow": list(tried.now),
    }


def _sides(counted: Iterable[tuple[bool, bool, int]]) -> dict[str, dict[str, int]]:
    sides = {when: dict.fromkeys(_WORDS, 0) for when in ("before", "after")}
    for was, now, number in counted:
        sides["before"][_WORDS[was]] += number
        sides["after"][_WORDS[now]] += number
    return sides


def _rule_out(rule: Any, place: int, run: AmlBacktest, after: dict[str, AlertEnds]) -> JSON:
    hits, ends = run.hits[place], after.get(rule.id, AlertEnds())
    known = ends.true_matches + ends.false_positives
    return {
        "ruleId": rule.id,
        "mode": rule.mode,
        "fired": hits.fired,
        "alone": hits.alone,
        "failed": hits.failed,
        "before": _ends_out(run.before.get(rule.id, AlertEnds())),
        "after": _ends_out(ends),
        "precision": share_out(share_of(ends.true_matches, known)),
    }


def _ends_out(ends: AlertEnds) -> dict[str, int]:
    return {
        "raised": ends.raised,
        "trueMatches": ends.true_matches,
        "falsePositives": ends.false_positives,
    }


def _sum(ends: Iterable[AlertEnds]) -> dict[str, int]:
    total = AlertEnds()
    for one in ends:
        total.raised += one.raised
        total.true_matches += one.true_matches
        total.false_positives += one.false_positives
    return _ends_out(total)


def _days(run: AmlBacktest) -> list[dict[str, Any]]:
    found = []
    for day_s in sorted({day for day, *_ in run.days}):
        here = [(was, now, number) for (day, was, now), number in run.days.items() if day == day_s]
        found.append({"day": timestamp(day_s * 1000)[:10], **_sides(here)})
    return found
