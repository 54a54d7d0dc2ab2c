"""What the store remembers of watchlists: the versions of each list, and the index that counts."""

from collections.abc import Mapping

import msgspec

from vettance.db.engine import Row, Statement
from vettance.watchlists.shelf import Version

AREA = "watchlist"
#: Lists belong to the deployment; their changes are noted under this name in place of a tenant's.
EVERYBODY = "*"

_COLUMNS = "source, version, current, entities, names, files, imported_at_ms, checked_at_ms"


class StoredVersion(msgspec.Struct, frozen=True, kw_only=True):
    """A version with what happened to it. `checked_at_ms`: when its publisher was last found to offer it."""

    version: Version
    current: bool
    imported_at_ms: int
    checked_at_ms: int


def retire_versions(source: str) -> Statement:
    """Let no version of a list count any more; they stay on the shelf."""
    return Statement("UPDATE watchlist_version SET current = 0 WHERE source = ?", (source,))


def upsert_version(version: Version, now_ms: int) -> Statement:
    """Make a version the current one of its list; one that was there before keeps its first date."""
    return Statement(
        f"INSERT INTO watchlist_version ({_COLUMNS}) VALUES (?, ?, 1, ?, ?, ?, ?, ?) "
        "ON CONFLICT (source, version) DO UPDATE SET current = 1, checked_at_ms = excluded.checked_at_ms",
        (
            version.source,
            version.version,
            version.entities,
            version.names,
            msgspec.json.encode(version.files).decode(),
            now_ms,
            now_ms,
        ),
    )


def select_versions() -> Statement:
    """Every version of every list, the newest of each first."""
    return Statement(
        f"SELECT {_COLUMNS} FROM watchlist_version ORDER BY source, imported_at_ms DESC, version"
    )


def select_current() -> Statement:
    """The version of each list that counts."""
    return Statement(f"SELECT {_COLUMNS} FROM watchlist_version WHERE current = 1 ORDER BY source")


def version_of(row: Row) -> StoredVersion:
    """Make a version of a row."""
    files: dict[str, str] = msgspec.json.decode(row[5], type=dict[str, str])
    return StoredVersion(
        version=Version(source=row[0], version=row[1], entities=row[3], names=row[4], files=files),
        current=bool(row[2]),
        imported_at_ms=row[6],
        checked_at_ms=row[7],
    )


def insert_index(
    identity: str, versions: Mapping[str, str], entities: int, names: int, now_ms: int
) -> Statement:
    """Make an index the one that counts: the newest row does."""
    return Statement(
        "INSERT INTO watchlist_index (seq, id, versions, entities, names, built_at_ms) VALUES "
        "((SELECT COALESCE(MAX(seq), 0) + 1 FROM watchlist_index), ?, ?, ?, ?, ?) "
        "ON CONFLICT (id) DO UPDATE SET seq = excluded.seq, built_at_ms = excluded.built_at_ms",
        (identity, msgspec.json.encode(dict(versions)).decode(), entities, names, now_ms),
    )


def select_index() -> Statement:
    """(id, versions, entities, names, built_at_ms) of the index that counts, if there is one."""
    return Statement(
        "SELECT id, versions, entities, names, built_at_ms FROM watchlist_index ORDER BY seq DESC LIMIT 1"
    )
