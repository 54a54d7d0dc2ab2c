"""What the counts of a span say of each rule."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from vettance.quality.rule_counts import (
    ALERTS,
    ALONE,
    AMOUNT,
    EVERY,
    FAILURES,
    FRAUD,
    HELD,
    HELD_OUT,
    HITS,
    JOINED,
    LEGIT,
    OVERLAP,
    SHADOW,
)
from vettance.quality.wilson import Share, share_of
from vettance.rules.ruleset import Rule

#: Rules shown with which a rule overlaps.
OVERLAPS_SHOWN: Final = 5
#: From so many hits on, a rule that never fires alone is said to be covered by others.
_COVERED_HITS_MIN: Final = 20
_ALWAYS: Final = 0.99

#: The measures that lists of rules show, and those by which they remark on them.
OUTLINED: Final = (
    *(HITS, SHADOW, FAILURES, ALONE, ALERTS),
    *(f"{label}:{measure}" for label in (FRAUD, LEGIT) for measure in (HITS, ALERTS)),
)

#: How often rules acted, and what labels say of that.
LABELLED_HITS: Final = (HITS, f"{FRAUD}:{HITS}", f"{LEGIT}:{HITS}")

#: rule → measure → how often.
ByRule = Mapping[str, Mapping[str, float]]
RuleMeasures = dict[str, dict[str, float]]


class Overlap(NamedTuple):
    """Another rule that fired on the same decisions: on how many, and on what share of this one's."""

    rule: str
    hits: int
    share: float


class LabelledHits(NamedTuple):
    """Hits of which it is known what was true."""

    fraud: int
    legit: int

    @property
    def precision(self) -> Share | None:
        """The share of fraud among them."""
        return share_of(self.fraud, self.fraud + self.legit)


class RuleQuality(NamedTuple):
    """What one rule did in a span. `hits` and all that follows are those in which it acted.

    `shadow_hits` are those that were recorded only. `alone` counts hits without any other acting rule.
    `alerts` are those of AML that it raised, `joined` those that another rule raised when it fired with it.
    `remarks` says what is odd about it.
    """

    rule: str
    name: str
    mode: str
    hits: int
    share: float
    hits_before: int
    labelled: LabelledHits
    recall: Share | None
    alone: int
    alone_labelled: LabelledHits
    overlaps: tuple[Overlap, ...]
    held: int
    amounts: Mapping[str, float]
    last_hit_ms: int | None
    shadow_hits: int
    shadow_labelled: LabelledHits
    failures: int
    cost_us: float | None
    remarks: tuple[str, ...]
    alerts: int = 0
    alerts_labelled: LabelledHits = LabelledHits(0, 0)
    joined: int = 0
    joined_labelled: LabelledHits = LabelledHits(0, 0)


class SpanQuality(NamedTuple):
    """What the rules of a tenant did in a span; `labelled` are all its labelled decisions."""

    decisions: int
    held: int
    held_out: int
    labelled: LabelledHits
    amounts: Mapping[str, float]
    rules: tuple[RuleQuality, ...]
    alerts: int = 0
    alerts_labelled: LabelledHits = LabelledHits(0, 0)


class HeldAmount(NamedTuple):
    """The amounts of what rules held, in one currency, and of it what labels call fraud or legitimate."""

    currency: str
    held: float
    fraud: float
    legit: float


def held_amounts(every: Mapping[str, float]) -> list[HeldAmount]:
    """Return the amounts among the measures of all decisions, by currency.

    A label that was given before amounts were counted, and taken back since, takes away what nobody added.
    """
    return [
        HeldAmount(
            currency,
            held,
            *(max(0.0, round(every.get(f"{word}:{AMOUNT}{currency}", 0), 2)) for word in (FRAUD, LEGIT)),
        )
        for currency, held in _amounts(every).items()
    ]


def by_rule(rows: Iterable[tuple[str, str, float]]) -> RuleMeasures:
    """Arrange rows of counts."""
    found: RuleMeasures = {}
    for rule, measure, amount in rows:
        found.setdefault(rule, {})[measure] = amount
    return found


def maybe_covered(now: ByRule) -> list[str]:
    """Return the rules of which it takes what they met to tell whether others cover them."""
    return [rule for rule, counts in now.items() if rule != EVERY and _never_alone(counts)]


def _never_alone(counts: Mapping[str, float]) -> bool:
    return counts.get(HITS, 0) >= _COVERED_HITS_MIN and not counts.get(ALONE, 0)


def _has_run(counts: Mapping[str, float]) -> bool:
    """Tell whether a rule did anything; of amounts that were taken away a millionth of a cent may be left."""
    return any(counts.get(measure) for measure in (HITS, SHADOW, FAILURES))


def quality_of(
    rules: Sequence[Rule],
    now: ByRule,
    before: ByRule,
    last_hits: Mapping[str, int],
    costs_us: Mapping[str, float],
) -> SpanQuality:
    """Say what each rule did: those in force in their order, then those that are gone and fired."""
    every = now.get(EVERY, {})
    known = {rule.id: rule for rule in rules}
    gone = sorted(rule for rule in now if rule != EVERY and rule not in known and _has_run(now[rule]))
    return SpanQuality(
        decisions=int(every.get(HITS, 0)),
        held=int(every.get(HELD, 0)),
        held_out=int(every.get(HELD_OUT, 0)),
        labelled=_labelled(every, HITS),
        amounts=_amounts(every),
        rules=tuple(
            _one(rule, known.get(rule), now, before, last_hits.get(rule), costs_us.get(rule))
            for rule in (*known, *gone)
        ),
        alerts=int(every.get(ALERTS, 0)),
        alerts_labelled=_labelled(every, ALERTS),
    )


def _one(
    rule: str, known: Rule | None, now: ByRule, before: ByRule, last_hit_ms: int | None, cost_us: float | None
) -> RuleQuality:
    counts, every = now.get(rule, {}), now.get(EVERY, {})
    decisions = every.get(HITS, 0)
    hits = int(counts.get(HITS, 0))
    hits_labelled = _labelled(counts, HITS)
    found = RuleQuality(
        rule=rule,
        name=known.name if known is not None else "",
        mode=known.mode if known is not None else "gone",
        hits=hits,
        share=hits / decisions if decisions else 0.0,
        hits_before=int(before.get(rule, {}).get(HITS, 0)),
        labelled=hits_labelled,
        recall=share_of(hits_labelled.fraud, _labelled(every, HITS).fraud),
        alone=int(counts.get(ALONE, 0)),
        alone_labelled=_labelled(counts, ALONE),
        overlaps=_overlaps(counts, hits),
        held=int(counts.get(HELD, 0)),
        amounts=_amounts(counts),
        last_hit_ms=last_hit_ms,
        shadow_hits=int(counts.get(SHADOW, 0)),
        shadow_labelled=_labelled(counts, SHADOW),
        failures=int(counts.get(FAILURES, 0)),
        cost_us=cost_us,
        remarks=(),
        alerts=int(counts.get(ALERTS, 0)),
        alerts_labelled=_labelled(counts, ALERTS),
        joined=int(counts.get(JOINED, 0)),
        joined_labelled=_labelled(counts, JOINED),
    )
    return found._replace(remarks=_remarks(found, decisions))


def _labelled(counts: Mapping[str, float], measure: str) -> LabelledHits:
    return LabelledHits(int(counts.get(f"{FRAUD}:{measure}", 0)), int(counts.get(f"{LEGIT}:{measure}", 0)))


def _amounts(counts: Mapping[str, float]) -> dict[str, float]:
    return {
        measure.removeprefix(AMOUNT): round(amount, 2)
        for measure, amount in sorted(counts.items())
        if measure.startswith(AMOUNT) and round(amount, 2)
    }


def _overlaps(counts: Mapping[str, float], hits: int) -> tuple[Overlap, ...]:
    found = [
        Overlap(measure.removeprefix(OVERLAP), int(amount), amount / hits if hits else 0.0)
        for measure, amount in counts.items()
        if measure.startswith(OVERLAP)
    ]
    return tuple(sorted(found, key=lambda one: (-one.hits, one.rule))[:OVERLAPS_SHOWN])


def _remarks(rule: RuleQuality, decisions: float) -> tuple[str, ...]:
    remarks = []
    if decisions and not rule.hits and not rule.shadow_hits and rule.mode in ("active", "shadow"):
        remarks.append("never_hits")
    if decisions and (rule.hits + rule.shadow_hits) / decisions >= _ALWAYS:
        remarks.append("always_hits")
    if rule.hits >= _COVERED_HITS_MIN and not rule.alone and rule.overlaps and rule.overlaps[0].share == 1.0:
        remarks.append("covered_by_others")
    if rule.failures:
        remarks.append("fails")
    return tuple(remarks)
