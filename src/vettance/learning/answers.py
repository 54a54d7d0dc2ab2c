"""What the endpoints of models answer."""

from typing import Annotated, Any

import msgspec

from vettance.models.sql import ModelSetting
from vettance.web.paging import PageAnswer
from vettance.wire.payload import Wire, timestamp

#: Members of a card that only the whole card shows.
_LONG = ("precisionRecall", "calibration", "gain", "distribution")


class ModelAnswer(Wire, frozen=True):
    """One model. `state` is `champion` for the one in service, else `challenger`."""

    version: int
    state: str
    mode: Annotated[str, msgspec.Meta(description="`off`, `shadow` or `active`: what the champion may do.")]
    created_at: str
    card: Annotated[
        dict[str, Any],
        msgspec.Meta(
            description="The rows and frauds it was made from and their span, what was measured of it "
            "on the newest frauds, and what served before. The list leaves the plots out."
        ),
    ]


class ModelPage(PageAnswer[ModelAnswer], frozen=True):
    """A page of models, newest first."""


def model_answer(
    setting: ModelSetting, version: int, card: str, created_at_ms: int, *, whole: bool
) -> ModelAnswer:
    """Write a model, with the whole card or what is short of it."""
    members = msgspec.json.decode(card)
    for name in ("from", "to"):
        if isinstance(members.get(name), int):
            members[name] = timestamp(members[name])
    if not whole:
        members = {name: value for name, value in members.items() if name not in _LONG}
    state = "champion" if version == setting.champion else "challenger"
    return ModelAnswer(version, state, setting.mode.value, timestamp(created_at_ms), members)
