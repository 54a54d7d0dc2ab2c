"""What the rules said of an event, read from its record without the rest of it."""

from typing import Final, NamedTuple

import msgspec

from vettance.decisions.decision import Outcome
from vettance.rules.rollout import WithheldRules


class RuleCourse(NamedTuple):
    """What the rules of a version said of one event; events of the same course count alike."""

    ruleset_version: int
    outcome: Outcome
    fired: tuple[int, ...]
    failed: tuple[int, ...]
    withheld: tuple[int, ...]
    held_out: bool


class _CourseRecord(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """`DecisionRecordData` as far as rules go, field by field; what is raw here is passed over."""

    ruleset_version: int
    outcome: Outcome
    score: int
    level: msgspec.Raw
    facts: msgspec.Raw
    answers: msgspec.Raw
    inexact: int
    fired: tuple[int, ...]
    failed: list[tuple[int, msgspec.Raw]]
    lists: msgspec.Raw
    request_id: msgspec.Raw
    processing_ms: float
    unknown: msgspec.Raw = msgspec.Raw(b"[]")
    withheld: WithheldRules = []
    held_out: bool = False


_decode: Final = msgspec.json.Decoder(_CourseRecord).decode


def rule_course_of(stored: bytes) -> RuleCourse | None:
    """Return what the rules said of the event of a record, or None of one that cannot be read."""
    try:
        record = _decode(stored)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return None
    return RuleCourse(
        record.ruleset_version,
        record.outcome,
        record.fired,
        tuple([place for place, _ in record.failed]),
        tuple([place for place, _ in record.withheld]),
        record.held_out,
    )
