"""Thinks about an event whose past is known: runs the rules, decides, and says what is to be stored of it."""

import time
from collections.abc import Sequence
from typing import Final, NamedTuple

import msgspec

from vettance.db.engine import Statement
from vettance.decisions import sql
from vettance.decisions.active_rulesets import RuleInputs
from vettance.decisions.decision import Decision, DecisionRecordData, Outcome, decide, stopped_by_score
from vettance.decisions.field_readers import bounded, read_amount
from vettance.decisions.sql import count_decision
from vettance.events import sql as events_sql
from vettance.events.event import Event, EventSource
from vettance.lists.entry import ListEntry
from vettance.rules.rollout import WithheldRules, acting, is_let_through, withhold
from vettance.rules.rule import RuleSet
from vettance.snoozes.snooze import SnoozeBook
from vettance.velocity.port import EVERYTHING

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


def conclude(question: EvaluationInput, now_ms: int) -> tuple[EvaluatedEvent, DecisionRecordData]:
    """Think: run the rules, decide, and note everything that it takes to explain it."""
    entries = question.entries
    active, facts, answer, unknown = question.asked
    fired, failed = active.compiled.run(facts, answer.values)
    decision, withheld, held_out = active.quiet, _NOTHING_WITHHELD, False
    if fired or entries:
        if active.stages and fired:
            event = question.event
            withheld = withhold(active.stages, fired, subject_of(event), event.occurred_at_ms)
        if question.snoozes is not None:
            withheld = question.snoozes.withhold(active.ruleset.running, fired, question.event, withheld)
        ruleset, may_act = active.ruleset, acting(fired, withheld)
        decision = decide(ruleset, active.version, may_act, entries)
        if ruleset.explore is not None and decision.outcome is not Outcome.ALLOW:
            held_out = is_held_out(ruleset, may_act, entries, question.event)
            if held_out:
                decision = decide(ruleset, active.version, may_act, entries, held_out=True)
    record = DecisionRecordData(
        ruleset_version=active.version,
        outcome=decision.outcome,
        score=decision.score,
        level=decision.level,
        facts=facts,
        answers=answer.values,
        inexact=answer.inexact,
        fired=fired,
        failed=failed,
        lists=[(entry.id, entry.list_type.value, entry.type.value) for entry in entries],
        request_id=question.request_id,
        processing_ms=round((time.perf_counter_ns() - question.started_ns) / 1e6, 3),
        unknown=unknown,
        withheld=withheld,
        held_out=held_out,
    )
    degraded = answer.inexact == EVERYTHING
    evaluated = EvaluatedEvent(question.id, question.event, decision, now_ms, record.processing_ms, degraded)
    return evaluated, record


def subject_of(event: Event) -> str | None:
    """Return by what an event is in a share or not: its customer, else its device, else its address."""
    return event.customer_key or event.device_key or event.ip


def is_held_out(ruleset: RuleSet, fired: Sequence[int], entries: Sequence[ListEntry], event: Event) -> bool:
    """Tell whether an event that is held up by its score alone is let through all the same."""
    explore = ruleset.explore
    if explore is None or not stopped_by_score(ruleset, fired, entries):
        return False
    sent = event.metadata.get("amount")
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
