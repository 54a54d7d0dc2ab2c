"""What the endpoints of feature sets take and answer."""

from collections.abc import Collection
from typing import Annotated, ClassVar

import msgspec

from vettance.models.feature_set import Feature
from vettance.models.feature_version import FeatureChange, FeatureVersion
from vettance.rules.rule import Fault
from vettance.web.paging import PageAnswer
from vettance.web.path_version import VERSION_MAX
from vettance.wire.body import how
from vettance.wire.payload import BODY_BYTES_MAX, JSON, Wire, timestamp

NOTE_CHARS_MAX = 4_000

Note = Annotated[
    str,
    msgspec.Meta(max_length=NOTE_CHARS_MAX, description="What changed, or why."),
    how(value_is_422=True),
]
_NUMBER = how(
    check=lambda value: value if 0 <= value <= VERSION_MAX else None,
    message="must be the number of a version",
)
_Over = Annotated[
    int | None,
    msgspec.Meta(description="The version that was in force when this was written; 409 when another is."),
    _NUMBER,
]


class FeatureSetBody(Wire, frozen=True):
    """A document of features of the tenant's own. It has all of them: those of the document before end."""

    EXAMPLE: ClassVar[JSON] = {
        "document": "cents_per_item: metadata.amount / metadata.items\nweekday: null\n",
        "note": "Cents per item",
    }

    document: Annotated[
        str,
        msgspec.Meta(
            max_length=BODY_BYTES_MAX,
            description="YAML: `name: expression` of the rule language for each feature that is added or "
            "takes the place of one that comes along, `name: null` for each that is left out.",
        ),
        how(keeps_empty=True),
    ]
    note: Note = ""
    over: _Over = None
    dry_run: Annotated[bool, msgspec.Meta(description="Only check it and say what it would change.")] = False


class FeatureRollbackBody(Wire, frozen=True):
    """Which version to go back to; the one before the version in force when left out."""

    EXAMPLE: ClassVar[JSON] = {"note": "Back to what the model knows"}

    to: Annotated[int | None, _NUMBER] = None
    note: Note = ""
    over: _Over = None


class FeatureFaultAnswer(Wire, frozen=True):
    """One thing that is wrong, with its place in the document. A warning refuses nothing."""

    severity: str
    path: Annotated[str, msgspec.Meta(description="The name of the feature, or `document`.")]
    line: int | None
    column: int | None
    message: str
    hint: str | None


class FeatureAnswer(Wire, frozen=True):
    """One feature: an expression of the rule language, what it is about, and what people read of it."""

    name: str
    value: str
    family: str
    text: str


class ListedFeatureAnswer(FeatureAnswer, frozen=True):
    """A feature of a set. `own` is one of the tenant's document; the others come along."""

    own: bool


class FeatureChangeAnswer(Wire, frozen=True):
    """A feature that is `added`, `changed` or `removed`: as it was, and as it is."""

    kind: str
    name: str
    before: FeatureAnswer | None
    after: FeatureAnswer | None


class FeatureVersionAnswer(Wire, frozen=True):
    """A version of the feature set: who made it, and what it changed."""

    version: int
    feature_set: Annotated[
        str, msgspec.Meta(description="The digest of the whole set, as records and cards of models name it.")
    ]
    note: str
    author: str | None
    created_at: str | None
    rollback_of: int | None
    changes: list[FeatureChangeAnswer]


class FeatureSetAnswer(FeatureVersionAnswer, frozen=True):
    """A version with its document, and the whole set that it made."""

    document: str
    features: list[ListedFeatureAnswer]


class PutFeaturesAnswer(FeatureSetAnswer, frozen=True):
    """What is in force now, or what would be after a dry run, with what is doubtful about it.

    After a dry run `version` is the one that is in force still.
    """

    dry_run: bool
    faults: list[FeatureFaultAnswer]


class FeatureVersionPage(PageAnswer[FeatureVersionAnswer], frozen=True):
    """A page of versions, newest first."""


def version_members(one: FeatureVersion) -> JSON:
    """Return the members of a version as the endpoints answer them."""
    return {
        "version": one.version,
        "feature_set": one.digest,
        "note": one.note,
        "author": one.author or None,
        "created_at": timestamp(one.created_at_ms) if one.created_at_ms else None,
        "rollback_of": one.origin,
        "changes": [_change(change) for change in one.changes],
    }


def set_members(document: str, features: Collection[Feature], own: Collection[str]) -> JSON:
    """Return the document of a set, and its features."""
    listed = [ListedFeatureAnswer(*one, own=one.name in own) for one in features]
    return {"document": document, "features": listed}


def feature_fault(fault: Fault) -> FeatureFaultAnswer:
    """Return a fault as the endpoints answer it."""
    return FeatureFaultAnswer(
        severity="warning" if fault.warning else "error",
        path=fault.where,
        line=fault.line,
        column=fault.column,
        message=fault.message,
        hint=fault.hint,
    )


def _change(one: FeatureChange) -> FeatureChangeAnswer:
    before, after = (None if each is None else FeatureAnswer(*each) for each in (one.before, one.after))
    return FeatureChangeAnswer(one.kind, one.name, before, after)
