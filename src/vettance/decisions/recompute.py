"""Computes a stored decision again from its record: identical, or exactly what differs."""

from typing import Any, NamedTuple

import msgspec

from vettance.decisions.active_rulesets import ActiveRules
from vettance.decisions.decision import decide_again
from vettance.decisions.sql import DAMAGED, StoredDecision
from vettance.events.event import read_taken_event, with_session_signals
from vettance.wire.payload import decode


class ValueDifference(NamedTuple):
    """A part of a decision that came out otherwise: its name, as recorded, and as computed now."""

    name: str
    recorded: Any
    computed: Any


class Recomputation(NamedTuple):
    """What computing a decision again gave. `unreadable` says why a part could not be computed at all."""

    differences: tuple[ValueDifference, ...]
    unreadable: str | None

    @property
    def is_identical(self) -> bool:
        """Whether everything came out as it was recorded."""
        return not self.differences and self.unreadable is None


def recompute(stored: StoredDecision, active: ActiveRules) -> Recomputation:
    """Read the event anew, run the rules that decided it, and compare every value with the record.

    What the memory of past events answered is taken from the record: the past has moved on since.
    """
    record, compiled = stored.record, active.compiled
    if record is DAMAGED:
        return Recomputation((), "the record is damaged")
    if len(compiled.fact_names) != len(record.facts) or len(compiled.plan.aggregates) != len(record.answers):
        return Recomputation((), "the rule set that decided it cannot be read by this version")
    found: list[ValueDifference] = []
    unreadable = None
    try:
        event = read_taken_event(decode(stored.sent), stored.received_at_ms)
        if stored.signals is not None:
            event = with_session_signals(event, decode(stored.signals))
        for name, recorded, computed in zip(
            compiled.fact_names, record.facts, compiled.facts(event), strict=True
        ):
            if not name.startswith("model.") and not _same(recorded, computed):
                found.append(ValueDifference(name, recorded, computed))
    except Exception as error:  # noqa: BLE001  What was sent may be damaged; the rules are run all the same.
        unreadable = f"what was sent cannot be read: {type(error).__name__}"
    fired, failed = compiled.run(record.facts, record.answers)
    ids = compiled.rule_ids
    for name, recorded, computed in (
        ("rules that fired", record.fired, fired),
        ("rules that failed", [index for index, _ in record.failed], [index for index, _ in failed]),
    ):
        if recorded != computed:
            found.append(
                ValueDifference(name, [ids[one] for one in recorded], [ids[one] for one in computed])
            )
    decision = decide_again(active.ruleset, msgspec.structs.replace(record, fired=fired), "")
    for name, recorded, computed in (
        ("decision", record.outcome, decision.outcome),
        ("score", record.score, decision.score),
        ("level", record.level, decision.level),
    ):
        if recorded != computed:
            found.append(ValueDifference(name, recorded, computed))
    return Recomputation(tuple(found), unreadable)


def _same(recorded: Any, computed: Any) -> bool:
    """Compare as the record does: what was a tuple is a list in it."""
    if isinstance(recorded, list | tuple) and isinstance(computed, list | tuple):
        return len(recorded) == len(computed) and all(map(_same, recorded, computed))
    return type(recorded) is type(computed) and recorded == computed
