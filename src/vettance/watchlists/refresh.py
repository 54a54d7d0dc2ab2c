"""Refreshing watchlists: importing versions, fetching them from publishers, opening the new index."""

import asyncio
import contextlib
import http.client
import os
import ssl
import tempfile
import threading
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar
from urllib.parse import urlsplit

import msgspec

from vettance.db.engine import Statement, Store
from vettance.tenants.sql import note_change
from vettance.watchlists import sql
from vettance.watchlists.index import Index, IndexFault
from vettance.watchlists.list_store import (
    EVERYBODY,
    Version,
    drop_old_indexes,
    ensure_index,
    index_path,
    locked,
    put,
    shelf_of,
)
from vettance.watchlists.sources.formats import SourceFault
from vettance.watchlists.sources.publication_date import data_as_of_ms
from vettance.watchlists.sources.source_table import SOURCES
from vettance.watchlists.tenant_index import Reach
from vettance.wire.numbers import read_whole

#: A list that lost more than this part of its entities since the last version is refused: lists have been cut
#: short and have vanished at their publishers for days, and a missing name is the one fault nobody notices.
SHRINKAGE_MAX = 0.1
#: Lists as short as this may change by any part.
SHRINKAGE_ENTITIES_MIN = 20

FETCH_TIMEOUT_S = 60.0
FETCH_BYTES_MAX = 2 * 1024**3
_CHUNK_BYTES = 1 << 18
_NICENESS = 15

Result = TypeVar("Result")

#: Told what is being done and how many entities it has reached.
Progress = Callable[[str, int], None]


def _silent(_step: str, _count: int) -> None:
    return


async def _quietly(work: Callable[[], Result]) -> Result:
    """Work in a thread that leaves the processor to other work: a service answers at the same time.

    Only the thread gives way; what it makes is written at the usual pace, so that nobody waits for the store.
    """

    def give_way() -> None:
        with contextlib.suppress(AttributeError, OSError):  # Linux alone knows the priority of a thread.
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), _NICENESS)

    with ThreadPoolExecutor(1, initializer=give_way) as aside:
        return await asyncio.get_running_loop().run_in_executor(aside, work)


class ListRefused(Exception):
    """A list that is not taken over; the message says why. The version before stays the current one."""


class ImportResult(msgspec.Struct, frozen=True, kw_only=True):
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
    owner: str = EVERYBODY,
) -> ImportResult:
    """Read the files of a list, keep them as a version, and build the index over all current lists.

    One commit makes the version current, names the index and tells every running process. `smaller` takes a
    list over although it lost many of its entities. `owner` is the tenant whose list it is, and who alone is
    screened against it. Raises `SourceFault` for files that cannot be read and `ListRefused` for a list that
    looks broken; nothing has changed then.
    """
    shelf = shelf_of(data, owner)

    def read() -> Version:
        entities = SOURCES[source].read(source, paths)
        version = put(shelf, source, entities, paths, lambda count: progress("reading", count))
        return msgspec.structs.replace(version, data_as_of_ms=data_as_of_ms(source, paths))

    with locked(shelf):
        version = await _quietly(read)
        current = await _current(store, owner)
        before = current.get(source)
        entities_before = before.version.entities if before is not None else 0
        _refuse_broken(version, entities_before, smaller=smaller)
        versions = {name: stored.version.version for name, stored in current.items()}
        versions[source] = version.version
        identity = await _put_in_force(
            store,
            shelf,
            owner,
            versions,
            (sql.retire_versions(owner, source), sql.upsert_version(owner, version, now_ms)),
            now_ms,
            lambda step: progress(f"indexing {step}", version.entities),
        )
    return ImportResult(
        version=version,
        changed=before is None or before.version.version != version.version,
        entities_before=entities_before,
        index=identity,
    )


async def remove_list(
    store: Store, data: Path, source: str, now_ms: int, owner: str = EVERYBODY
) -> Version | None:
    """Screen against a list no longer; its versions stay on the shelf. Returns the one that counted."""
    shelf = shelf_of(data, owner)
    with locked(shelf):
        current = await _current(store, owner)
        gone = current.pop(source, None)
        if gone is None:
            return None
        versions = {name: stored.version.version for name, stored in current.items()}
        await _put_in_force(store, shelf, owner, versions, (sql.retire_versions(owner, source),), now_ms)
    return gone.version


async def _current(store: Store, owner: str) -> dict[str, sql.StoredVersion]:
    rows = await store.read(sql.select_current(owner))
    return {stored.version.source: stored for stored in map(sql.version_of, rows)}


async def _put_in_force(
    store: Store,
    shelf: Path,
    owner: str,
    versions: Mapping[str, str],
    statements: Sequence[Statement],
    now_ms: int,
    progress: Callable[[str], None] = lambda _: None,
) -> str:
    """Build the index over these versions, and name it in one commit with what made them the current ones."""
    identity = await _quietly(lambda: ensure_index(shelf, versions, progress, owner))
    index = await asyncio.to_thread(Index, index_path(shelf, identity))
    await store.write(
        *statements,
        sql.insert_index(owner, identity, versions, index.entities, index.names, now_ms),
        note_change(sql.AREA, owner, identity, now_ms),
    )
    drop_old_indexes(shelf, identity)
    return identity


def _refuse_broken(version: Version, entities_before: int, *, smaller: bool) -> None:
    if not version.entities:
        raise ListRefused("the files hold no entity; the last good version stays")
    least = entities_before * (1 - SHRINKAGE_MAX)
    if not smaller and entities_before >= SHRINKAGE_ENTITIES_MIN and version.entities < least:
        raise ListRefused(
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
) -> ImportResult:
    """Fetch a list from its publisher (or from `urls`) and import it. Raises as `import_list` does."""
    addresses = urls or SOURCES[source].urls
    if not addresses:
        raise ListRefused(f"{source} has no publisher's address; import its files instead")
    with tempfile.TemporaryDirectory(dir=shelf_of(data), prefix="fetch.") as folder:
        paths = []
        for number, url in enumerate(addresses):
            name = _name_in(url)
            path = Path(folder) / f"{number}-{name}"
            progress(f"fetching {name}", 0)
            await asyncio.to_thread(fetch, url, path, trust)
            paths.append(path)
        return await import_list(store, data, source, paths, now_ms, smaller=smaller, progress=progress)


def _name_in(url: str) -> str:
    try:
        return Path(urlsplit(url).path).name or "list"
    except ValueError as error:
        raise SourceFault(f"{url} is no address: {error}") from None


def fetch(url: str, path: Path, trust: ssl.SSLContext | None = None) -> None:
    """Write what is at an address into a file; raises `SourceFault` for anything but a complete answer."""
    if not url.casefold().startswith(("https://", "http://")):
        raise SourceFault("a list is fetched over https (or http within one's own network)")
    try:
        request = urllib.request.Request(url, headers={"User-Agent": "vettance-watchlists"})  # noqa: S310
        with urllib.request.urlopen(request, timeout=FETCH_TIMEOUT_S, context=trust) as answer:  # noqa: S310
            expected, written = answer.headers.get("Content-Length"), 0
            with path.open("wb") as file:
                while chunk := answer.read(_CHUNK_BYTES):
                    written += len(chunk)
                    if written > FETCH_BYTES_MAX:
                        raise SourceFault(f"{url} answers with more than a list can be")
                    file.write(chunk)
    except (urllib.error.URLError, http.client.HTTPException, OSError, ValueError) as error:
        raise SourceFault(f"{url} cannot be fetched: {error}") from None
    if expected is not None and written < (read_whole(expected) or 0):
        raise SourceFault(f"{url} was cut short")


class IndexKeeper:
    """Holds the indexes that count, and swaps each whole when a new one is named.

    A screening takes its `Reach` once and keeps it to its end, so a swap in between changes nothing for it.
    """

    def __init__(self, store: Store, data: Path) -> None:
        self._store = store
        self._data = data
        self._own: dict[str, Index] = {}
        #: Tenants that have a list of their own; their indexes are opened when they are first needed.
        self._owners: set[str] = set()
        self._reaches: dict[str, Reach] = {}
        self._opening: dict[str, asyncio.Lock] = {}
        self._changed = asyncio.Event()
        #: The index over the lists of everybody, or None while none is loaded.
        self.current: Index | None = None
        #: Why the newest index could not be opened, for readiness; None when it was.
        self.fault: str | None = None

    async def reload(self, owner: str = "", _subject: str = "") -> None:
        """Open the index that counts unless it is open. Rebuilds one that is gone or of another format.

        `owner` is the tenant whose own list changed; anything else that of everybody.
        """
        if owner in ("", EVERYBODY):
            self._owners = {row[0] for row in await self._store.read(sql.select_owners())}
            self.current = await self._open(EVERYBODY, self.current)
            # A tenant's own list counts its words by the lists of everybody.
            self._own.clear()
            self._reaches.clear()
        else:
            self._owners.add(owner)
            self._own.pop(owner, None)
            self._reaches.pop(owner, None)
        self._changed.set()

    def forget(self, tenant: str) -> None:
        """Let go of the lists of a tenant that is being deleted."""
        self._owners.discard(tenant)
        for held in (self._own, self._reaches, self._opening):
            held.pop(tenant, None)

    async def reach(self, tenant: str) -> Reach | None:
        """Return what the subjects of a tenant are screened against, or None while that is nothing."""
        if tenant not in self._owners:
            tenant = EVERYBODY
        known = self._reaches.get(tenant)
        if known is not None:
            return known
        own: Index | None = None
        if tenant != EVERYBODY:
            async with self._opening.setdefault(tenant, asyncio.Lock()):
                own = self._own.get(tenant)
                if own is None and (own := await self._open(tenant, None)) is not None:
                    self._own[tenant] = own
        indexes = [index for index in (self.current, own) if index is not None]
        if not indexes:
            return None
        reach = self._reaches[tenant] = Reach(indexes)
        return reach

    async def changed(self) -> None:
        """Wait until something was reloaded since this was last waited for."""
        await self._changed.wait()
        self._changed.clear()

    async def _open(self, owner: str, known: Index | None) -> Index | None:
        """Open the index of an owner; `known` stays when it is that one, or when the new one cannot be."""
        rows = await self._store.read(sql.select_index(owner))
        versions: Mapping[str, str] = (
            msgspec.json.decode(rows[0][1], type=dict[str, str]) if rows else dict[str, str]()
        )
        if not versions:
            return None
        shelf = shelf_of(self._data, owner)
        base = self.current if owner != EVERYBODY else None
        try:
            # The name says format and algorithm too: after an upgrade this builds the index anew.
            identity = await asyncio.to_thread(ensure_index, shelf, versions, lambda _: None, owner)
            if known is None or known.folder.name != identity:
                known = await asyncio.to_thread(Index, index_path(shelf, identity), base)
            self.fault = None
        except (IndexFault, SourceFault, OSError) as error:
            self.fault = f"the watchlist index cannot be opened: {error}"
        return known
