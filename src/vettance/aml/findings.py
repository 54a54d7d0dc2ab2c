"""Judging: which of the rules that fired make an alert, how severe it is, and about whom."""

import enum
from collections.abc import Callable, Mapping, Sequence
from typing import Final, NamedTuple

import msgspec

from vettance.aml.aml_event import AmlEvent
from vettance.decisions.active_rulesets import ActiveRules
from vettance.rules.compiler import Answers, Facts
from vettance.rules.rule import Rule, RuleSet

#: Typology of an alert that several weak hints make together.
COMBINED: Final = "COMBINED_HINTS"
HINTS_MIN: Final = 3
# Alerts closed as mistakes lower the weight of their rule. Ten true matches are assumed before the first, so
# that one mistake changes little, and no rule falls below a half.
_ASSUMED: Final = 10
_WEIGHT_MIN: Final = 0.5

#: Shapes that others begin with: an alert of low severity about such a half takes the name of the whole.
BEGINS: Final[Mapping[str, frozenset[str]]] = {
    "FAN_IN": frozenset(("SMURFING", "GATHER_SCATTER", "SCATTER_GATHER", "BIPARTITE")),
    "FAN_OUT": frozenset(("GATHER_SCATTER", "SCATTER_GATHER", "BIPARTITE")),
    "SMURFING": frozenset(("GATHER_SCATTER", "SCATTER_GATHER", "BIPARTITE")),
    "LAYERING": frozenset(("CYCLE", "SCATTER_GATHER")),
    "RAPID_IN_OUT": frozenset(("CYCLE", "MULE_ACCOUNT")),
    "STRUCTURING": frozenset(("FUNNEL_ACCOUNT",)),
}


class Severity(enum.StrEnum):
    """How urgent an alert is."""

    LOW = "LOW"
    MEDIUM = "MEDIUM"
    HIGH = "HIGH"
    CRITICAL = "CRITICAL"


SEVERITIES: Final = tuple(Severity)


class AmlFinding(msgspec.Struct, frozen=True):
    """One reason to alert. `rule` is the strongest (an index of the running rules), `others` fired with it.

    `subject` is whom the alert is about, as the tenant calls it. A `mandatory` one is never suppressed.
    """

    rule: int
    others: tuple[int, ...]
    typology: str
    severity: Severity
    subject: str
    mandatory: bool


def rule_weight(true_matches: int, false_positives: int) -> float:
    """Return how much of its score a rule keeps after so many alerts were closed either way."""
    return max(_WEIGHT_MIN, (true_matches + _ASSUMED) / (true_matches + false_positives + _ASSUMED))


def severity_of(score: float, ruleset: RuleSet) -> Severity:
    """Name the band that a score lies in; the bounds belong to the rule set."""
    levels = ruleset.levels
    if score >= levels.critical:
        return Severity.CRITICAL
    if score >= levels.high:
        return Severity.HIGH
    return Severity.MEDIUM if score >= levels.medium else Severity.LOW


def judge(
    ruleset: RuleSet, fired: Sequence[int], weights: Mapping[str, float], event: AmlEvent
) -> list[AmlFinding]:
    """Turn the rules that fired (indexes into `ruleset.running`) into findings, the most severe first.

    A rule alerts by itself when its score times its weight reaches the `review` threshold, or when it has an
    outcome of REVIEW or BLOCK. When none does with medium severity at least, three hints or more of
    different reasons alert together if their scores add up to it. Of the rules with one reason about one
    subject the strongest speaks.
    """
    hits: list[tuple[float, int, Rule]] = []
    for index in fired:
        rule = ruleset.running[index]
        if rule.mode == "active":
            hits.append((rule.score * weights.get(rule.id, 1.0), index, rule))
    if not hits:
        return []
    hits.sort(key=lambda hit: -hit[0])
    bound = ruleset.thresholds.review
    findings: dict[tuple[str, str], AmlFinding] = {}
    for score, index, rule in hits:
        mandatory = rule.outcome in ("REVIEW", "BLOCK")
        if score < bound and not mandatory:
            continue
        subject = _subject(rule, event)
        known = findings.get((rule.reason, subject))
        if known is not None:
            others = (*known.others, index)
            both = known.mandatory or mandatory
            findings[rule.reason, subject] = msgspec.structs.replace(known, others=others, mandatory=both)
            continue
        severity = severity_of(max(score, rule.score if mandatory else 0), ruleset)
        findings[rule.reason, subject] = AmlFinding(index, (), rule.reason, severity, subject, mandatory)
    strong = [finding for finding in findings.values() if finding.severity is not Severity.LOW]
    if strong:
        return [finding for finding in findings.values() if not _is_begun(finding, strong)]
    return [*_combined(ruleset, [hit for hit in hits if hit[0] < bound], event), *findings.values()]


class RunOnAnswers(NamedTuple):
    """Which answers rules were run on, by their place, which rules fired on them, and which failed."""

    place: int
    fired: list[int]
    failed: list[tuple[int, str]]


def run_rules(
    active: ActiveRules, facts: Facts, answers: Sequence[Answers], event: Callable[[], AmlEvent]
) -> RunOnAnswers:
    """Run the rules on what is known of an event.

    A late one has answers as of its own time, and as if it had come last: those that show more count, of
    equal ones the first.
    """
    runs = [RunOnAnswers(place, *active.compiled.run(facts, one)) for place, one in enumerate(answers)]
    if len(runs) == 1:
        return runs[0]
    judged = event()

    def shown(run: RunOnAnswers) -> int:
        found = judge(active.ruleset, run.fired, {}, judged)
        return max((SEVERITIES.index(one.severity) for one in found), default=-1)

    return max(runs, key=shown)


def _is_begun(finding: AmlFinding, strong: list[AmlFinding]) -> bool:
    """Tell whether a finding is but the beginning of a shape that the same event made whole."""
    wholes = BEGINS.get(finding.typology, frozenset())
    return finding.severity is Severity.LOW and any(
        other.typology in wholes and other.subject == finding.subject for other in strong
    )


def _combined(ruleset: RuleSet, hints: list[tuple[float, int, Rule]], event: AmlEvent) -> list[AmlFinding]:
    """Return what hints, the strongest first, make together: medium severity at least, or nothing."""
    strongest: dict[str, float] = {}
    for score, _, rule in hints:
        strongest.setdefault(rule.reason, score)
    total = sum(strongest.values())
    if total < max(ruleset.thresholds.review, ruleset.levels.medium) or len(strongest) < HINTS_MIN:
        return []
    others = tuple(index for _, index, _ in hints[1:])
    subject = _subject(hints[0][2], event)
    return [AmlFinding(hints[0][1], others, COMBINED, severity_of(total, ruleset), subject, mandatory=False)]


def _subject(rule: Rule, event: AmlEvent) -> str:
    """Name whom an alert is about: its rule's action says which side of the transfer."""
    side: str | None = None
    if rule.action == "REVIEW_RECEIVER":
        side = event.trail.receiver
    elif rule.action == "REVIEW_SENDER":
        side = event.trail.sender
    side = side or event.trail.party
    if side is not None:
        return side.partition(":")[2]
    return event.customer_key or event.device_key or event.ip or f"event {event.external_id}"
