"""Changes: an index over only those entities that are new or different since another set of list versions."""

import hashlib
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import msgspec

from vettance.watchlists.entity import Entity
from vettance.watchlists.index import Index
from vettance.watchlists.index_build import build_index
from vettance.watchlists.list_store import EVERYBODY, shelf_of, take
from vettance.watchlists.sources.formats import SourceFault
from vettance.watchlists.sources.source_table import OWN


def changed_entities(
    data: Path, tenant: str, old: Mapping[str, str], new: Mapping[str, str]
) -> Iterator[Entity]:
    """Yield the entities of the versions `new` (list to version) that `old` does not have just so.

    Of a list whose old version is no longer on the shelf, every entity counts as new.
    """
    for source, version in new.items():
        before = old.get(source)
        if before == version:
            continue
        shelf = shelf_of(data, tenant if source == OWN else EVERYBODY)
        known: set[bytes] = set()
        if before is not None:
            try:
                known.update(_digest(entity) for entity in take(shelf, source, before))
            except SourceFault:
                known.clear()
        for entity in take(shelf, source, version):
            if _digest(entity) not in known:
                yield entity


def _digest(entity: Entity) -> bytes:
    return hashlib.blake2b(msgspec.msgpack.encode(entity), digest_size=12).digest()


@contextmanager
def index_of_changes(
    data: Path, tenant: str, old: Mapping[str, str], new: Mapping[str, str], base: Index | None
) -> Iterator[Index | None]:
    """Build an index over what changed from `old` to `new`, for as long as the block lasts; None: nothing.

    `base` counts how common words are. Raises `SourceFault` when a version of `new` is not on the shelf.
    """
    changed = list(changed_entities(data, tenant, old, new))
    if not changed:
        yield None
        return
    with tempfile.TemporaryDirectory(dir=shelf_of(data), prefix="changes.") as folder:
        build_index(Path(folder) / "index", changed, new)
        changed.clear()
        yield Index(Path(folder) / "index", base)
