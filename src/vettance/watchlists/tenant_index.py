"""Reach: the indexes that the subjects of one tenant are searched in, as one."""

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol

from vettance.watchlists.match import EntityMatch, Subject


class _SearchableIndex(Protocol):
    folder: Path
    versions: Mapping[str, str]

    def search(self, subject: Subject) -> list[EntityMatch]: ...


class Reach:
    """The index of everybody and that of a tenant's own list, or one of them. Safe between threads."""

    def __init__(self, indexes: Sequence[_SearchableIndex]) -> None:
        self._indexes = tuple(indexes)
        self.versions: Mapping[str, str] = {
            name: version for index in indexes for name, version in index.versions.items()
        }
        #: Names the indexes, which are made of one version of every list.
        self.id = "+".join(index.folder.name for index in indexes)
        self.folders = tuple(index.folder for index in indexes)

    def search(self, subject: Subject) -> list[EntityMatch]:
        """Return the entities that a subject may be, the likeliest first."""
        if len(self._indexes) == 1:
            return self._indexes[0].search(subject)
        found = [match for index in self._indexes for match in index.search(subject)]
        found.sort(key=lambda one: (-one.score, one.entity.id))
        return found


def list_set_id(versions: Mapping[str, str]) -> str:
    """Return a name for a set of list versions that is the same whatever code indexed them."""
    text = "|".join(f"{name}={versions[name]}" for name in sorted(versions))
    return hashlib.sha256(text.encode()).hexdigest()[:16]
