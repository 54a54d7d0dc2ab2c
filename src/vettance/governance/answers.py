"""What the endpoints of rule sets take and answer."""

from typing import Annotated, Any, ClassVar

import msgspec

from vettance.db.engine import Row
from vettance.governance.checked_document import CheckedDocument, RuleTestEnd
from vettance.rules.rule import Fault
from vettance.rules.version import RuleSetVersion, VersionState, VersionStep
from vettance.web.paging import PageAnswer, PageQuery
from vettance.web.path_version import VERSION_MAX
from vettance.wire.body import how
from vettance.wire.payload import BODY_BYTES_MAX, JSON, Wire, timestamp

NOTE_CHARS_MAX = 4_000

Document = Annotated[
    str, msgspec.Meta(max_length=BODY_BYTES_MAX, description="The YAML text, as `vettance rules` takes it.")
]
Note = Annotated[
    str,
    msgspec.Meta(max_length=NOTE_CHARS_MAX, description="What changed, or why."),
    how(value_is_422=True),
]

#: Why a version comes into force past its approval; nothing else would say so afterwards.
BreakGlass = Annotated[
    str,
    msgspec.Meta(
        max_length=NOTE_CHARS_MAX,
        description="Why it comes into force without the approval that it needs; every server logs that.",
    ),
    how(
        keeps_empty=True,
        value_is_422=True,
        check=lambda note: note if note.strip() else None,
        message="must say why",
    ),
]

_NUMBER = how(
    check=lambda value: value if 0 <= value <= VERSION_MAX else None,
    message="must be the number of a version",
)


class CheckBody(Wire, frozen=True):
    """A document to check; nothing is saved."""

    EXAMPLE: ClassVar[JSON] = {"document": "extends: default\nthresholds: {review: 55}\n"}

    document: Document


class RuleSetBody(Wire, frozen=True):
    """A document to save: as a draft, proposed, or in force at once where no approval is needed."""

    EXAMPLE: ClassVar[JSON] = {
        "document": "extends: default\nthresholds: {review: 55}\n",
        "note": "Look at a little more",
        "propose": True,
    }

    document: Document
    note: Note = ""
    propose: Annotated[bool, msgspec.Meta(description="Pass it through the gate, to be approved.")] = False
    activate: Annotated[
        bool, msgspec.Meta(description="Put it into force, or only propose it where that needs approval.")
    ] = False
    over: Annotated[
        int | None,
        msgspec.Meta(description="Activate it only while this version is in force."),
        _NUMBER,
    ] = None
    break_glass: BreakGlass | None = None


class StepBody(Wire, frozen=True):
    """Why a step is taken."""

    EXAMPLE: ClassVar[JSON] = {"note": "Looks right on last week's traffic"}

    note: Note = ""


class ActivateBody(Wire, frozen=True):
    """Why a version comes into force, and why without approval where that is so."""

    EXAMPLE: ClassVar[JSON] = {"breakGlass": "Card testing right now, nobody else is awake"}

    note: Note = ""
    over: Annotated[
        int | None,
        msgspec.Meta(description="Activate it only while this version is in force; 409 when another is."),
        _NUMBER,
    ] = None
    break_glass: BreakGlass | None = None


class RollbackBody(Wire, frozen=True):
    """Which version to return to; the one that was in force before when left out."""

    EXAMPLE: ClassVar[JSON] = {"to": 1}

    to: Annotated[int | None, _NUMBER] = None
    over: Annotated[
        int | None,
        msgspec.Meta(description="Go back only while this version is in force; 409 when another is."),
        _NUMBER,
    ] = None


class RuleFaultAnswer(Wire, frozen=True):
    """One thing that is wrong, with its place in the document. A warning refuses nothing."""

    severity: str
    path: str
    line: int | None
    column: int | None
    message: str
    hint: str | None


class RuleTestAnswer(Wire, frozen=True):
    """How a test of a rule ended. Of one that failed, `saw` has what the rule saw."""

    rule: str
    test: str
    passed: bool
    message: str | None
    saw: dict[str, Any]


class CheckAnswer(Wire, frozen=True):
    """What the gate finds. `cost` is of all rules together for one event, in units of about 20 ns."""

    ok: bool
    faults: list[RuleFaultAnswer]
    tests: list[RuleTestAnswer]
    cost: int | None
    rules: int
    running: int
    extends: str | None


class VersionAnswer(Wire, frozen=True):
    """A version of a rule set, and who did what with it."""

    version: int
    state: VersionState
    note: str
    author: str | None
    approved_by: str | None
    created_at: str
    decided_at: str | None
    activated_at: str | None
    digest: str
    break_glass: str | None
    rollback_of: int | None


class SavedAnswer(VersionAnswer, frozen=True):
    """A version that was just saved, with what is wrong or doubtful about it."""

    faults: list[RuleFaultAnswer]


class WholeVersionAnswer(VersionAnswer, frozen=True):
    """A version with its text as it was written, and whole where that builds on a pack."""

    document: str
    resolved: str


class VersionPage(PageAnswer[VersionAnswer], frozen=True):
    """A page of versions."""


class VersionQuery(PageQuery, frozen=True):
    """Which page of versions; the newest come first unless `sortOrder` says otherwise."""

    state: VersionState | None = None


class StepAnswer(Wire, frozen=True):
    """What somebody did with a version."""

    version: int
    step: VersionStep
    by: str
    note: str
    at: str


class StepList(Wire, frozen=True):
    """Every step that was taken, newest first."""

    data: list[StepAnswer]


def version_members(one: RuleSetVersion) -> dict[str, Any]:
    """Return the members of a version as the endpoints answer them."""
    return {
        "version": one.version,
        "state": one.state,
        "note": one.note,
        "author": one.author or None,
        "approved_by": one.approved_by,
        "created_at": timestamp(one.created_at_ms),
        "decided_at": _moment(one.decided_at_ms),
        "activated_at": _moment(one.activated_at_ms),
        "digest": one.digest,
        "break_glass": one.broken_glass,
        "rollback_of": one.origin,
    }


def step_answer(row: Row) -> StepAnswer:
    """Return a row of the log (id, version, step, actor, note, at_ms)."""
    return StepAnswer(version=row[1], step=VersionStep(row[2]), by=row[3], note=row[4], at=timestamp(row[5]))


def check_answer(found: CheckedDocument) -> CheckAnswer:
    """Return what the gate found."""
    return CheckAnswer(
        ok=found.is_good,
        faults=[fault_answer(fault) for fault in found.faults],
        tests=[_test_answer(one) for one in found.tests],
        cost=found.cost,
        rules=found.rules,
        running=found.running,
        extends=found.extends,
    )


def fault_answer(fault: Fault) -> RuleFaultAnswer:
    """Return a fault; its path names the rule, or the member of the document."""
    return RuleFaultAnswer(
        severity="warning" if fault.warning else "error",
        path=fault.where.replace("rule ", "rules.", 1) if fault.where.startswith("rule ") else fault.where,
        line=fault.line,
        column=fault.column,
        message=fault.message,
        hint=fault.hint,
    )


def _test_answer(one: RuleTestEnd) -> RuleTestAnswer:
    return RuleTestAnswer(
        rule=one.rule, test=one.test, passed=one.miss is None, message=one.miss, saw=one.saw
    )


def _moment(at_ms: int | None) -> str | None:
    return None if at_ms is None else timestamp(at_ms)
