"""Thinks about an event whose past is known: runs the rules, decides, and says what is to be stored of it."""

import time
from collections.abc import Sequence
from typing import Final, NamedTuple

import msgspec

from vettance.db.engine import Statement
from vettance.decisions import sql
from vettance.decisions.active_rulesets import ActiveRules, RuleInputs
from vettance.decisions.decision import Decision, DecisionRecordData, Outcome, decide, stopped_by_score
from vettance.decisions.field_readers import bounded
from vettance.decisions.sql import count_decision
from vettance.events import sql as events_sql
from vettance.events.event import Event, EventSource
from vettance.events.event_spellings import spelt_members
from vettance.lists.entry import ListEntry, ListType
from vettance.lists.rule_additions import NOTHING_ADDED, ListAdditions, RuleAdditions
from vettance.models.model_score import MODEL_SCORE, ModelResult
from vettance.models.serving_model import ModelMode, ServingModel
from vettance.rules.compiler import Facts
from vettance.rules.rollout import WithheldRules, acting, is_let_through, withhold
from vettance.rules.rule import RuleSet
from vettance.snoozes.snooze import SnoozeBook
from vettance.velocity.port import EVERYTHING
from vettance.wire.spelt_numbers import read_amount

_NOTHING_WITHHELD: Final[WithheldRules] = []


class EvaluatedEvent(msgspec.Struct, frozen=True, gc=False):
    """One event, decided and durably stored."""

    id: str
    event: Event
    decision: Decision
    evaluated_at_ms: int
    processing_ms: float
    degraded: bool = False  # decided while the memory of past events was being filled


class EvaluationInput(NamedTuple):
    """An event with what decides it, and when its evaluation began."""

    id: str
    event: Event
    entries: Sequence[ListEntry]
    asked: RuleInputs
    request_id: str
    started_ns: int
    snoozes: SnoozeBook | None = None
    model: ServingModel | None = None


def conclude(question: EvaluationInput, now_ms: int) -> tuple[EvaluatedEvent, DecisionRecordData]:
    """Think: run the rules, decide, and note everything that it takes to explain it."""
    entries = question.entries
    active, facts, answer, unknown = question.asked
    values: tuple[float | None, ...] = ()
    model = None
    if active.features is not None:
        values, failures = active.features.compute(facts, answer.values)
        unknown += failures
        if question.model is not None:
            model = question.model.say(active.feature_set, values, active.recorded)
            if active.model_places:
                facts = with_model(active.model_places, facts, model)
    fired, failed = active.asked.run(facts, answer.values)
    decision, withheld, held_out = active.quiet, _NOTHING_WITHHELD, False
    if fired or entries or (model is not None and model.mode == ModelMode.ACTIVE):
        if active.stages and fired:
            event = question.event
            withheld = withhold(active.stages, fired, subject_of(event), event.occurred_at_ms)
        if question.snoozes is not None:
            withheld = question.snoozes.withhold(active.ruleset.running, fired, question.event, withheld)
        ruleset, may_act = active.ruleset, acting(fired, withheld)
        decision = decide(ruleset, active.version, may_act, entries, model=model)
        if ruleset.explore is not None and decision.outcome is not Outcome.ALLOW:
            held_out = is_held_out(ruleset, may_act, entries, question.event)
            if held_out:
                decision = decide(ruleset, active.version, may_act, entries, held_out=True, model=model)
    record = DecisionRecordData(
        ruleset_version=active.version,
        outcome=decision.outcome,
        score=decision.score,
        level=decision.level,
        # What only features read is kept in their values.
        facts=facts[: len(active.compiled.fact_names)],
        answers=answer.values[: len(active.compiled.plan.aggregates)],
        inexact=answer.inexact,
        fired=fired,
        failed=failed,
        lists=[(entry.id, entry.list_type.value, entry.type.value) for entry in entries],
        request_id=question.request_id,
        processing_ms=round((time.perf_counter_ns() - question.started_ns) / 1e6, 3),
        unknown=unknown,
        withheld=withheld,
        held_out=held_out,
        features=values,
        feature_set=active.feature_set,
        model=model,
    )
    degraded = answer.inexact == EVERYTHING
    evaluated = EvaluatedEvent(question.id, question.event, decision, now_ms, record.processing_ms, degraded)
    return evaluated, record


def with_model(places: Sequence[tuple[int, str]], facts: Facts, model: ModelResult) -> Facts:
    """Return facts with what the model says at the places of its names, for rules that ask for it."""
    known = list(facts)
    for place, name in places:
        known[place] = model.score if name == MODEL_SCORE else model.probability
    return tuple(known)


def add_listed(
    additions: RuleAdditions,
    tenant: str,
    active: ActiveRules,
    evaluated: EvaluatedEvent,
    record: DecisionRecordData,
    *,
    adding: bool = True,
) -> tuple[DecisionRecordData, ListAdditions]:
    """Return what the rules that act on an event put on lists, and the record that tells of it.

    Without `adding` that is nothing, whatever they want.

    What is held out is let through to see what it was: its rules have no effect at all. An entry that decided
    overrules what would put a value of the same event on the other list.
    """
    if record.held_out or not active.effects or active.effects.keys().isdisjoint(record.acting):
        return record, NOTHING_ADDED
    lists = {list_type for _, list_type, _ in record.lists}
    overruled = None
    if lists:
        overruled = ListType.ALLOW if ListType.BLOCK in lists else ListType.BLOCK
    added = additions.plan(
        tenant,
        active.ruleset.running,
        active.effects,
        record.acting,
        evaluated.event,
        evaluated.id,
        evaluated.evaluated_at_ms,
        overruled,
        adding=adding,
    )
    return msgspec.structs.replace(record, list_additions=added.recorded), added


def subject_of(event: Event) -> str | None:
    """Return by what an event is in a share or not: its customer, else its device, else its address."""
    return event.customer_key or event.device_key or event.ip


def is_held_out(ruleset: RuleSet, fired: Sequence[int], entries: Sequence[ListEntry], event: Event) -> bool:
    """Tell whether an event that is held up by its score alone is let through all the same."""
    explore = ruleset.explore
    if explore is None or not stopped_by_score(ruleset, fired, entries):
        return False
    sent = spelt_members(event).get("amount")
    amount = read_amount(sent)
    # An amount that cannot be read may be any.
    is_readable = sent is None or amount is not None
    bound = float(bounded(amount)) if amount is not None else None
    return is_readable and is_let_through(explore, subject_of(event), bound)


def rows_of(
    tenant: str,
    evaluated: EvaluatedEvent,
    record: DecisionRecordData,
    source: EventSource,
    sent: bytes,
    signals: bytes | None,
) -> list[Statement]:
    """Write down an event with its decision and its counts."""
    event, decision, now_ms = evaluated.event, evaluated.decision, evaluated.evaluated_at_ms
    return [
        events_sql.insert_event(tenant, evaluated.id, source, event, sent, signals),
        sql.insert_decision(tenant, evaluated.id, event, decision, record, now_ms),
        count_decision(tenant, event.occurred_at_ms, decision),
    ]
