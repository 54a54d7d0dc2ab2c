"""A version of a tenant's feature set: what was written, what it came to, who made it, what it changed."""

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from vettance.db.engine import Row
from vettance.models.feature_set import Feature, FeatureSet
from vettance.wire.payload import timestamp

COLUMNS: Final = "version, digest, note, author, origin, created_at_ms, changes"


class FeatureChange(msgspec.Struct, frozen=True):
    """One feature that is different in a version: as it was and as it is; None where it is not there."""

    name: str
    before: Feature | None
    after: Feature | None

    @property
    def kind(self) -> str:
        """Whether it was added, changed or removed."""
        if self.before is None:
            return "added"
        return "removed" if self.after is None else "changed"


class FeatureVersion(msgspec.Struct, frozen=True):
    """A version without its texts. `origin` is the version that was gone back to."""

    version: int
    digest: str
    note: str
    author: str
    origin: int | None
    created_at_ms: int
    changes: tuple[FeatureChange, ...]


def feature_version_of(row: Row) -> FeatureVersion:
    """Make a version of the columns of `COLUMNS`."""
    version, digest, note, author, origin, created_at_ms, changes = row
    return FeatureVersion(version, digest, note, author, origin, created_at_ms, read_changes(changes))


def find_changes(before: FeatureSet | None, after: FeatureSet) -> tuple[FeatureChange, ...]:
    """Return what is different in a set: in its order, then what is gone."""
    known: Mapping[str, Feature] = {one.name: one for one in before.features} if before is not None else {}
    now = {one.name: one for one in after.features}
    found = [
        FeatureChange(one.name, known.get(one.name), one)
        for one in after.features
        if known.get(one.name) != one
    ]
    gone = [FeatureChange(name, one, None) for name, one in known.items() if name not in now]
    return (*found, *gone)


def read_changes(stored: str) -> tuple[FeatureChange, ...]:
    """Read changes as they are stored."""
    return msgspec.json.decode(stored, type=tuple[FeatureChange, ...])


def write_changes(changes: tuple[FeatureChange, ...]) -> str:
    """Write changes as they are stored."""
    return msgspec.json.encode(changes).decode()


def version_out(one: FeatureVersion) -> dict[str, Any]:
    """Write a version for the wire."""
    return {
        "version": one.version,
        "featureSet": one.digest,
        "note": one.note,
        "author": one.author,
        "rollbackOf": one.origin,
        "createdAt": timestamp(one.created_at_ms) if one.created_at_ms else None,
        "changes": [change_out(change) for change in one.changes],
    }


def change_out(one: FeatureChange) -> dict[str, Any]:
    """Write a change for the wire."""
    before, after = (None if each is None else each._asdict() for each in (one.before, one.after))
    return {"kind": one.kind, "name": one.name, "before": before, "after": after}
