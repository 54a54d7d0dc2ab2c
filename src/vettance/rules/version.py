"""A version of a rule set: its state, who did what with it, and which step may follow."""

import enum
from typing import Final

import msgspec

from vettance.db.engine import Row
from vettance.errors import Conflict
from vettance.wire.payload import JSON, timestamp

#: Who makes what comes with the service.
SERVICE: Final = "vettance"


class VersionState(enum.StrEnum):
    """How far a version has come. One of a tenant is active."""

    DRAFT = "draft"
    PROPOSED = "proposed"
    APPROVED = "approved"
    ACTIVE = "active"
    RETIRED = "retired"
    REJECTED = "rejected"


class VersionStep(enum.StrEnum):
    """What was done with a version, as the log names it."""

    DRAFTED = "drafted"
    PROPOSED = "proposed"
    APPROVED = "approved"
    REJECTED = "rejected"
    ACTIVATED = "activated"
    BROKE_GLASS = "broke_glass"
    ROLLED_BACK = "rolled_back"


class RuleSetVersion(msgspec.Struct, frozen=True):
    """One version, without its document. `origin` is the version whose document was taken back into force."""

    version: int
    digest: str
    note: str
    created_at_ms: int
    state: VersionState
    author: str
    approved_by: str | None
    decided_at_ms: int | None
    activated_at_ms: int | None
    broken_glass: str | None
    origin: int | None


#: The columns of a version, in the order of its fields.
COLUMNS: Final = ", ".join(RuleSetVersion.__struct_fields__)


def version_of(row: Row) -> RuleSetVersion:
    """Make a version of a row."""
    given = dict(zip(RuleSetVersion.__struct_fields__, row, strict=True))
    return RuleSetVersion(**given | {"state": VersionState(given["state"])})


def version_out(one: RuleSetVersion) -> JSON:
    """Return a version as scripts and callers read it."""
    return {
        "version": one.version,
        "state": one.state.value,
        "note": one.note,
        "author": one.author or None,
        "approvedBy": one.approved_by,
        "createdAt": timestamp(one.created_at_ms),
        "decidedAt": _moment(one.decided_at_ms),
        "activatedAt": _moment(one.activated_at_ms),
        "digest": one.digest,
        "breakGlass": one.broken_glass,
        "rollbackOf": one.origin,
    }


def step_out(row: Row) -> JSON:
    """Return a row of the log (id, version, step, actor, note, at_ms) in the same way."""
    return {"version": row[1], "step": row[2], "by": row[3], "note": row[4], "at": timestamp(row[5])}


def _moment(at_ms: int | None) -> str | None:
    return None if at_ms is None else timestamp(at_ms)


def check_proposable(one: RuleSetVersion) -> None:
    """Demand that a version can be proposed. Raises `Conflict`."""
    _demand(one, VersionState.DRAFT, VersionState.PROPOSED)


def check_approvable(one: RuleSetVersion, actor: str, *, needs_other: bool) -> None:
    """Demand that somebody may approve a version. Raises `Conflict`."""
    # Its author could approve it while that was enough; another one's approval is then still to come.
    if not (needs_other and _is_approved_by_author(one)):
        _demand(one, VersionState.PROPOSED)
    if needs_other and one.author == actor:
        raise Conflict(
            "Who proposed these rules does not approve them; another person or key must.",
            "second_person_needed",
        )


def check_rejectable(one: RuleSetVersion) -> None:
    """Demand that a version can be rejected. Raises `Conflict`."""
    _demand(one, VersionState.DRAFT, VersionState.PROPOSED, VersionState.APPROVED)


def check_activable(one: RuleSetVersion, *, needs_approval: bool) -> None:
    """Demand that a version may come into force. Raises `Conflict`."""
    if one.state is VersionState.RETIRED:
        raise _wrong_state(one, "a rollback to it takes its rules back into force")
    if not needs_approval:
        _demand(one, VersionState.PROPOSED, VersionState.APPROVED)
        return
    if one.state is VersionState.PROPOSED or _is_approved_by_author(one):
        raise Conflict(
            "These rules need the approval of another person or key than their author's.", "approval_needed"
        )
    _demand(one, VersionState.APPROVED)


def check_returnable(one: RuleSetVersion) -> None:
    """Demand that the document of a version may be taken back into force. Raises `Conflict`."""
    if one.state is VersionState.ACTIVE:
        raise _wrong_state(one, "its rules are in force already")
    if one.state is not VersionState.RETIRED:
        raise Conflict("Only a version that was in force once can be returned to.", "never_active")


def _is_approved_by_author(one: RuleSetVersion) -> bool:
    return one.state is VersionState.APPROVED and one.approved_by in (None, one.author)


def _demand(one: RuleSetVersion, *states: VersionState) -> None:
    if one.state not in states:
        *most, last = states
        wanted = f"{', '.join(most)} or {last}" if most else last
        raise _wrong_state(one, f"only one that is {wanted} can take this step")


def _wrong_state(one: RuleSetVersion, said: str) -> Conflict:
    return Conflict(f"Version {one.version} is {one.state}; {said}.", "wrong_state", state=one.state.value)
