"""What the store remembers of watchlists: the versions of each list, and the index that counts."""

from collections.abc import Mapping
from typing import Final

import msgspec

from vettance.db.engine import Row, Statement, everyone, insert, scoped
from vettance.db.tables import WATCHLIST_INDEX, WATCHLIST_VERSION, Insert
from vettance.watchlists.list_store import EVERYBODY, Version

AREA = "watchlist"

_COLUMNS = (
    "tenant, source, version, current, entities, names, files, imported_at_ms, checked_at_ms, data_as_of_ms"
)


class StoredVersion(msgspec.Struct, frozen=True, kw_only=True):
    """A version with what happened to it. `checked_at_ms`: when its publisher was last found to offer it.

    `owner` is the tenant whose list it is, or `EVERYBODY`.
    """

    version: Version
    owner: str = EVERYBODY
    current: bool
    imported_at_ms: int
    checked_at_ms: int


def retire_versions(owner: str, source: str) -> Statement:
    """Let no version of a list count any more; they stay on the shelf."""
    return scoped(
        WATCHLIST_VERSION,
        owner,
        "UPDATE watchlist_version SET current = 0 WHERE tenant = ? AND source = ?",
        (source,),
    )


_UPSERT_VERSION: Final = Insert(
    WATCHLIST_VERSION,
    _COLUMNS,
    key="tenant, source, version",
    replaces="current, checked_at_ms, data_as_of_ms",
)


def upsert_version(owner: str, version: Version, now_ms: int) -> Statement:
    """Make a version the current one of its list; one that was there before keeps its first date."""
    return insert(
        _UPSERT_VERSION,
        owner,
        (
            version.source,
            version.version,
            1,
            version.entities,
            version.names,
            msgspec.json.encode(version.files).decode(),
            now_ms,
            now_ms,
            version.data_as_of_ms,
        ),
    )


def select_versions(owner: str | None = None) -> Statement:
    """Every version of every list, the newest of each first; of one owner, or of all."""
    order = "ORDER BY tenant, source, imported_at_ms DESC, version"
    if owner is None:
        return everyone(WATCHLIST_VERSION, f"SELECT {_COLUMNS} FROM watchlist_version {order}")
    return scoped(
        WATCHLIST_VERSION, owner, f"SELECT {_COLUMNS} FROM watchlist_version WHERE tenant = ? {order}"
    )


def select_current(owner: str = EVERYBODY) -> Statement:
    """The version of each list of an owner that counts."""
    return scoped(
        WATCHLIST_VERSION,
        owner,
        f"SELECT {_COLUMNS} FROM watchlist_version WHERE tenant = ? AND current = 1 ORDER BY source",
    )


def select_all_current() -> Statement:
    """The version of each list that counts, of every owner."""
    return everyone(
        WATCHLIST_VERSION,
        f"SELECT {_COLUMNS} FROM watchlist_version WHERE current = 1 ORDER BY tenant, source",
    )


def version_of(row: Row) -> StoredVersion:
    """Make a version of a row."""
    files: dict[str, str] = msgspec.json.decode(row[6], type=dict[str, str])
    return StoredVersion(
        version=Version(
            source=row[1],
            version=row[2],
            entities=row[4],
            names=row[5],
            files=files,
            data_as_of_ms=row[9],
        ),
        owner=row[0],
        current=bool(row[3]),
        imported_at_ms=row[7],
        checked_at_ms=row[8],
    )


def insert_index(
    owner: str, identity: str, versions: Mapping[str, str], entities: int, names: int, now_ms: int
) -> Statement:
    """Make an index the one that counts for an owner: the newest row does."""
    # Numbers are given to the indexes of all owners together.
    return scoped(
        WATCHLIST_INDEX,
        owner,
        "INSERT INTO watchlist_index (tenant, seq, id, versions, entities, names, built_at_ms) VALUES "
        "(?, (SELECT COALESCE(MAX(seq), 0) + 1 FROM watchlist_index), ?, ?, ?, ?, ?) "
        "ON CONFLICT (id) DO UPDATE SET seq = excluded.seq, built_at_ms = excluded.built_at_ms",
        (identity, msgspec.json.encode(dict(versions)).decode(), entities, names, now_ms),
    )._replace(tenant=EVERYBODY)


def select_index(owner: str = EVERYBODY) -> Statement:
    """(id, versions, entities, names, built_at_ms) of the index that counts, if there is one."""
    return scoped(
        WATCHLIST_INDEX,
        owner,
        "SELECT id, versions, entities, names, built_at_ms FROM watchlist_index WHERE tenant = ? "
        "ORDER BY seq DESC LIMIT 1",
    )


def select_owners() -> Statement:
    """(tenant,) of every tenant that has a list of its own."""
    return everyone(
        WATCHLIST_VERSION,
        "SELECT DISTINCT tenant FROM watchlist_version WHERE current = 1 AND tenant <> ?",
        (EVERYBODY,),
    )
