"""The decision: what is answered about an event, and everything needed to explain it later."""

import enum
from collections.abc import Sequence
from typing import Any

import msgspec

from vettance.lists.entry import EntryType, ListEntry, ListType, winning_list
from vettance.lists.rule_additions import RecordedAddition
from vettance.models.model_score import ModelResult
from vettance.models.serving_model import ModelMode
from vettance.rules.rollout import WithheldRules, acting
from vettance.rules.ruleset import Rule, RuleSet
from vettance.rules.unknowns import Failure
from vettance.velocity.port import Value
from vettance.wire.payload import Wire

SCORE_MAX = 100

BLOCKLIST_MATCH = "BLOCKLIST_MATCH"
ALLOWLIST_MATCH = "ALLOWLIST_MATCH"


class Outcome(enum.StrEnum):
    """What the service decided, in its inner vocabulary."""

    ALLOW = "ALLOW"
    REVIEW = "REVIEW"
    BLOCK = "BLOCK"


#: The lowercase vocabulary of the decisions endpoints.
LOWERCASE = {Outcome.ALLOW: "approve", Outcome.REVIEW: "review", Outcome.BLOCK: "deny"}

LEVELS = ("low", "medium", "high", "critical")

#: What to do when no rule that fired recommends anything.
DEFAULT_ACTIONS = {
    Outcome.REVIEW: ("MANUAL_REVIEW", "Hold the event and let a person look at it."),
    Outcome.BLOCK: ("BLOCK", "Refuse the event."),
}


class Reason(Wire, frozen=True):
    """Why: a code to count by and a sentence for people."""

    code: str
    explanation: str


class Action(Wire, frozen=True):
    """What to do next."""

    action: str
    description: str


class Decision(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """The decision about one event. `rules_evaluated` counts active and shadow rules."""

    outcome: Outcome
    score: int
    level: str
    reasons: tuple[Reason, ...]
    actions: tuple[Action, ...]
    ruleset_version: int
    rules_evaluated: int


class DecisionRecordData(msgspec.Struct, frozen=True, kw_only=True, gc=False, array_like=True):
    """A decision as the log keeps it: compact, and enough to explain and to compute it again bit for bit.

    Names are left out: facts, answers and rules are in the order of the rule set version that was used.
    `inexact` has bit i set when answer i came from sub-buckets; `lists` holds (entry id, list type, type).
    `unknown` names what could not be computed of the event, with the message; records before it have none.
    `withheld` has the rules that fired and do not act; what is `held_out` was let through all the same.
    `features` are the values of a feature set, in its order, by which `model` scored the event.
    `list_additions` is what the rules put on lists.
    """

    ruleset_version: int
    outcome: Outcome
    score: int
    level: str
    facts: tuple[Any, ...]
    answers: tuple[Value, ...]
    inexact: int
    fired: list[int]
    failed: list[tuple[int, str]]
    lists: list[tuple[str, str, str]]
    request_id: str
    processing_ms: float
    unknown: list[Failure] = []
    withheld: WithheldRules = []
    held_out: bool = False
    features: tuple[float | None, ...] = ()
    feature_set: str = ""
    model: ModelResult | None = None
    list_additions: list[RecordedAddition] = []

    @property
    def acting(self) -> Sequence[int]:
        """The rules that fired and act."""
        return acting(self.fired, self.withheld)


def level_of(score: int, ruleset: RuleSet) -> str:
    """Name the band that a score lies in; the bounds belong to the rule set."""
    bounds = ruleset.levels
    if score >= bounds.critical:
        return "critical"
    if score >= bounds.high:
        return "high"
    return "medium" if score >= bounds.medium else "low"


def decide(
    ruleset: RuleSet,
    version: int,
    fired: Sequence[int],
    entries: Sequence[ListEntry],
    *,
    held_out: bool = False,
    model: ModelResult | None = None,
) -> Decision:
    """Combine the rules that fired (indexes into `ruleset.running`) and the list entries that matched.

    The score is the sum of the scores of the active rules that fired, at most 100; thresholds of the rule set
    turn it into an outcome. A rule's hard outcome beats the thresholds (the strictest wins), a list beats
    every rule (block beats allow). The score is then moved into the band of the outcome, so that the two
    never contradict each other: 100 for a blocked value, 0 for an allowed one. What is `held_out` is allowed
    although its score says otherwise. The score of an active model counts where it is higher than that of the
    rules; unless it may block, it stays below the threshold of blocking.
    """
    hits = [rule for rule in (ruleset.running[index] for index in fired) if rule.mode == "active"]
    score = max(min(SCORE_MAX, sum(rule.score for rule in hits)), _model_part(ruleset, model))
    listed = winning_list(entries)
    if listed is ListType.BLOCK:
        outcome, score = Outcome.BLOCK, SCORE_MAX
    elif listed is ListType.ALLOW:
        outcome, score = Outcome.ALLOW, 0
    else:
        outcome, score = _weigh(ruleset, hits, score)
        if held_out:
            outcome, score = Outcome.ALLOW, min(score, max(ruleset.thresholds.review - 1, 0))
    return Decision(
        outcome=outcome,
        score=score,
        level=level_of(score, ruleset),
        reasons=_reasons(hits, listed, model),
        actions=() if held_out or listed is ListType.ALLOW else _actions(ruleset, hits, outcome),
        ruleset_version=version,
        rules_evaluated=len(ruleset.running),
    )


def decide_again(ruleset: RuleSet, record: DecisionRecordData, tenant: str) -> Decision:
    """Combine what a record says that fired and matched, as it was combined then."""
    entries, version = entries_of(tenant, record.lists), record.ruleset_version
    held_out, model = record.held_out, record.model
    return decide(ruleset, version, record.acting, entries, held_out=held_out, model=model)


def stopped_by_score(ruleset: RuleSet, fired: Sequence[int], entries: Sequence[ListEntry]) -> bool:
    """Tell whether nothing but the score holds an event up: no list entry, and no rule's own outcome."""
    if winning_list(entries) is not None:
        return False
    rules = (ruleset.running[place] for place in fired)
    return not any(rule.mode == "active" and rule.outcome in ("REVIEW", "BLOCK") for rule in rules)


def _model_part(ruleset: RuleSet, model: ModelResult | None) -> int:
    if model is None or model.mode != ModelMode.ACTIVE or model.score is None:
        return 0
    return model.score if model.may_block else min(model.score, max(ruleset.thresholds.block - 1, 0))


def _weigh(ruleset: RuleSet, hits: Sequence[Rule], score: int) -> tuple[Outcome, int]:
    review, block = ruleset.thresholds.review, ruleset.thresholds.block
    outcome = Outcome.BLOCK if score >= block else Outcome.REVIEW if score >= review else Outcome.ALLOW
    hard = {rule.outcome for rule in hits if rule.outcome is not None}
    if "BLOCK" in hard:
        return Outcome.BLOCK, max(score, block)
    if "REVIEW" in hard and outcome is not Outcome.BLOCK:
        return Outcome.REVIEW, max(score, review)
    if hard == {"ALLOW"}:
        return Outcome.ALLOW, min(score, max(review - 1, 0))
    return outcome, score


def _reasons(hits: Sequence[Rule], listed: ListType | None, model: ModelResult | None) -> tuple[Reason, ...]:
    reasons: dict[str, Reason] = {}
    if listed is ListType.BLOCK:
        reasons[BLOCKLIST_MATCH] = Reason(
            code=BLOCKLIST_MATCH, explanation="A value of this event is on the block list."
        )
    elif listed is ListType.ALLOW:
        reasons[ALLOWLIST_MATCH] = Reason(
            code=ALLOWLIST_MATCH, explanation="A value of this event is on the allow list."
        )
    for rule in sorted(hits, key=lambda rule: -rule.score):
        reasons.setdefault(rule.reason, Reason(code=rule.reason, explanation=rule.explanation))
    for code, explanation in model.reasons if model is not None else ():
        reasons.setdefault(code, Reason(code=code, explanation=explanation))
    return tuple(reasons.values())


def _actions(ruleset: RuleSet, hits: Sequence[Rule], outcome: Outcome) -> tuple[Action, ...]:
    actions: dict[str, Action] = {}
    for rule in sorted(hits, key=lambda rule: -rule.score):
        if rule.action is not None:
            actions.setdefault(
                rule.action,
                Action(action=rule.action, description=ruleset.actions.get(rule.action, rule.action)),
            )
    if not actions and outcome in DEFAULT_ACTIONS:
        action, description = DEFAULT_ACTIONS[outcome]
        actions[action] = Action(action=action, description=description)
    return tuple(actions.values())


def entries_of(tenant: str, lists: Sequence[tuple[str, str, str]]) -> list[ListEntry]:
    """Partial list entries of a record: enough to decide again, the entries may be gone by now."""
    return [
        ListEntry(
            id=entry_id,
            tenant=tenant,
            type=EntryType(entry_type),
            value="",
            list_type=ListType(list_type),
            reason=None,
            expires_at_ms=None,
            created_at_ms=0,
            updated_at_ms=0,
        )
        for entry_id, list_type, entry_type in lists
    ]
