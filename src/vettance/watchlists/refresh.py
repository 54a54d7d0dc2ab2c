"""Refreshing watchlists: importing versions, fetching them from publishers, opening the new index."""

import asyncio
import ssl
import tempfile
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from urllib.parse import urlsplit

import msgspec

from vettance.db.engine import Store
from vettance.tenants.sql import note_change
from vettance.watchlists import sql
from vettance.watchlists.index import Index, IndexFault
from vettance.watchlists.shelf import (
    Version,
    drop_old_indexes,
    ensure_index,
    index_path,
    locked,
    put,
    shelf_of,
)
from vettance.watchlists.sources.reading import SourceFault
from vettance.watchlists.sources.table import SOURCES

#: A list that lost more than this part of its entities since the last version is refused: lists have been cut
#: short and have vanished at their publishers for days, and a missing name is the one fault nobody notices.
SHRINKAGE_MAX = 0.1
#: Lists as short as this may change by any part.
SHRINKAGE_ENTITIES_MIN = 20

FETCH_TIMEOUT_S = 60.0
FETCH_BYTES_MAX = 2 * 1024**3
_CHUNK_BYTES = 1 << 18

#: Told what is being done and how many entities it has reached.
Progress = Callable[[str, int], None]


def _silent(_step: str, _count: int) -> None:
    return


class Refusal(Exception):
    """A list that is not taken over; the message says why. The version before stays the current one."""


class Imported(msgspec.Struct, frozen=True, kw_only=True):
    """What an import did. `index` is the name of the index over all current lists."""

    version: Version
    changed: bool
    entities_before: int
    index: str


async def import_list(
    store: Store,
    data: Path,
    source: str,
    paths: Sequence[Path],
    now_ms: int,
    *,
    smaller: bool = False,
    progress: Progress = _silent,
) -> Imported:
    """Read the files of a list, keep them as a version, and build the index over all current lists.

    One commit makes the version current, names the index and tells every running process. `smaller` takes a
    list over although it lost many of its entities. Raises `SourceFault` for files that cannot be read and
    `Refusal` for a list that looks broken; nothing has changed then.
    """
    shelf = shelf_of(data)

    def read() -> Version:
        entities = SOURCES[source].read(source, paths)
        return put(shelf, source, entities, paths, lambda count: progress("reading", count))

    with locked(shelf):
        version = await asyncio.to_thread(read)
        current = {row[0]: sql.version_of(row) for row in await store.read(sql.select_current())}
        before = current.get(source)
        entities_before = before.version.entities if before is not None else 0
        _refuse_broken(version, entities_before, smaller=smaller)
        versions = {name: stored.version.version for name, stored in current.items()}
        versions[source] = version.version
        identity = await asyncio.to_thread(
            ensure_index, shelf, versions, lambda step: progress(f"indexing {step}", version.entities)
        )
        index = await asyncio.to_thread(Index, index_path(shelf, identity))
        await store.write(
            sql.retire_versions(source),
            sql.upsert_version(version, now_ms),
            sql.insert_index(identity, versions, index.entities, index.names, now_ms),
            note_change(sql.AREA, sql.EVERYBODY, identity, now_ms),
        )
        drop_old_indexes(shelf, identity)
    return Imported(
        version=version,
        changed=before is None or before.version.version != version.version,
        entities_before=entities_before,
        index=identity,
    )


def _refuse_broken(version: Version, entities_before: int, *, smaller: bool) -> None:
    if not version.entities:
        raise Refusal("the files hold no entity; the last good version stays")
    least = entities_before * (1 - SHRINKAGE_MAX)
    if not smaller and entities_before >= SHRINKAGE_ENTITIES_MIN and version.entities < least:
        raise Refusal(
            f"the list shrank from {entities_before} to {version.entities} entities; the last good version "
            "stays (--accept-smaller takes it over)"
        )


async def refresh_list(
    store: Store,
    data: Path,
    source: str,
    now_ms: int,
    *,
    urls: Sequence[str] = (),
    smaller: bool = False,
    progress: Progress = _silent,
    trust: ssl.SSLContext | None = None,
) -> Imported:
    """Fetch a list from its publisher (or from `urls`) and import it. Raises as `import_list` does."""
    addresses = urls or SOURCES[source].urls
    if not addresses:
        raise Refusal(f"{source} has no publisher's address; import its files instead")
    with tempfile.TemporaryDirectory(dir=shelf_of(data), prefix="fetch.") as folder:
        paths = []
        for number, url in enumerate(addresses):
            name = Path(urlsplit(url).path).name or "list"
            path = Path(folder) / f"{number}-{name}"
            progress(f"fetching {name}", 0)
            await asyncio.to_thread(fetch, url, path, trust)
            paths.append(path)
        return await import_list(store, data, source, paths, now_ms, smaller=smaller, progress=progress)


def fetch(url: str, path: Path, trust: ssl.SSLContext | None = None) -> None:
    """Write what is at an address into a file; raises `SourceFault` for anything but a complete answer."""
    if urlsplit(url).scheme not in ("https", "http"):
        raise SourceFault("a list is fetched over https (or http within one's own network)")
    request = urllib.request.Request(url, headers={"User-Agent": "vettance-watchlists"})  # noqa: S310
    try:
        with urllib.request.urlopen(request, timeout=FETCH_TIMEOUT_S, context=trust) as answer:  # noqa: S310
            expected, written = answer.headers.get("Content-Length"), 0
            with path.open("wb") as file:
                while chunk := answer.read(_CHUNK_BYTES):
                    written += len(chunk)
                    if written > FETCH_BYTES_MAX:
                        raise SourceFault(f"{url} answers with more than a list can be")
                    file.write(chunk)
    except (urllib.error.URLError, OSError, ValueError) as error:
        raise SourceFault(f"{url} cannot be fetched: {error}") from None
    if expected is not None and expected.isdigit() and written < int(expected):
        raise SourceFault(f"{url} was cut short")


class IndexKeeper:
    """Holds the index that counts, and swaps it whole when a new one is named.

    A screening takes `current` once and keeps it to its end, so a swap in between changes nothing for it.
    """

    def __init__(self, store: Store, data: Path) -> None:
        self._store = store
        self._data = data
        #: The index, or None while no list is loaded.
        self.current: Index | None = None
        #: Why the newest index could not be opened, for readiness; None when it was.
        self.fault: str | None = None

    async def reload(self, _tenant: str = "", _subject: str = "") -> None:
        """Open the index that counts unless it is open. Rebuilds one that is gone or of another format."""
        rows = await self._store.read(sql.select_index())
        if not rows:
            return
        versions: Mapping[str, str] = msgspec.json.decode(rows[0][1], type=dict[str, str])
        shelf = shelf_of(self._data)
        try:
            # The name says format and algorithm too: after an upgrade this builds the index anew.
            identity = await asyncio.to_thread(ensure_index, shelf, versions)
            if self.current is None or self.current.folder.name != identity:
                self.current = await asyncio.to_thread(Index, index_path(shelf, identity))
            self.fault = None
        except (IndexFault, SourceFault, OSError) as error:
            self.fault = f"the watchlist index cannot be opened: {error}"
