"""A change of what a model may do, and who proposed and approved it where a tenant's rules need approval."""

import enum
from typing import Any, Final

import msgspec

from vettance.db.engine import Row
from vettance.errors import Conflict
from vettance.models.serving_model import ModelMode
from vettance.models.sql import ModelSetting
from vettance.wire.payload import timestamp


class ChangeState(enum.StrEnum):
    """How far a change has come. Approving it puts it in effect."""

    PROPOSED = "proposed"
    APPROVED = "approved"
    REJECTED = "rejected"


class ModelChange(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What is to change: the version in service, the mode, or whether the score alone may deny."""

    champion: int | None = None
    mode: ModelMode | None = None
    may_block: bool | None = None

    def applied_to(self, setting: ModelSetting) -> ModelSetting:
        """Return a setting with this change; what served before can be returned to."""
        changes: dict[str, Any] = {
            name: value for name in ("mode", "may_block") if (value := getattr(self, name)) is not None
        }
        if self.champion is not None and self.champion != setting.champion:
            changes |= {"champion": self.champion, "previous": setting.champion}
        return msgspec.structs.replace(setting, **changes)

    def needs_approval(self, setting: ModelSetting) -> bool:
        """Tell whether it gives a model more to say than it has. What takes it away never needs approval."""
        after = self.applied_to(setting)
        return (
            after.champion != setting.champion
            or (after.mode is ModelMode.ACTIVE and setting.mode is not ModelMode.ACTIVE)
            or (after.may_block and not setting.may_block)
        )

    @property
    def words(self) -> str:
        """What it does, for people."""
        parts = []
        if self.champion is not None:
            parts.append(f"model {self.champion} in service")
        if self.mode is not None:
            parts.append(f"mode {self.mode.value}")
        if self.may_block is not None:
            parts.append("may block" if self.may_block else "may not block")
        return ", ".join(parts)


class ProposedChange(msgspec.Struct, frozen=True):
    """A change with who proposed it and who decided. `broken_glass` says why it passed without approval."""

    id: str
    change: ModelChange
    state: ChangeState
    note: str
    author: str
    decided_by: str | None
    broken_glass: str | None
    created_at_ms: int
    decided_at_ms: int | None


#: The columns of a change, in the order of its fields.
COLUMNS: Final = ", ".join(ProposedChange.__struct_fields__)


def change_of(row: Row) -> ProposedChange:
    """Make a change of a row."""
    change_id, change, state, *others = row
    return ProposedChange(
        change_id, msgspec.json.decode(change, type=ModelChange), ChangeState(state), *others
    )


def change_out(one: ProposedChange) -> dict[str, Any]:
    """Return a change as scripts read it."""
    return {
        "id": one.id,
        "state": one.state.value,
        "champion": one.change.champion,
        "mode": one.change.mode.value if one.change.mode is not None else None,
        "mayBlock": one.change.may_block,
        "note": one.note,
        "author": one.author,
        "decidedBy": one.decided_by,
        "breakGlass": one.broken_glass,
        "createdAt": timestamp(one.created_at_ms),
        "decidedAt": None if one.decided_at_ms is None else timestamp(one.decided_at_ms),
    }


def check_open(one: ProposedChange) -> None:
    """Demand that nobody has decided on a change. Raises `Conflict`."""
    if one.state is not ChangeState.PROPOSED:
        raise Conflict(f"This change is {one.state.value} already.", "wrong_state")


def check_other(one: ProposedChange, actor: str) -> None:
    """Demand that somebody else than its author approves a change. Raises `Conflict`."""
    if one.author == actor:
        raise Conflict(
            "Who proposed this change does not approve it; another person or key must.",
            "second_person_needed",
        )
