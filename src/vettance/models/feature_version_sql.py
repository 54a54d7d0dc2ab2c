"""What the store remembers of the versions of feature sets."""

from typing import Final

from vettance.db.engine import Statement, insert, scoped
from vettance.db.tables import FEATURE_VERSION, Insert
from vettance.models.feature_version import COLUMNS, FeatureVersion, write_changes

#: Versions of a tenant that are kept: each has up to some hundred kilobytes.
VERSIONS_KEPT: Final = 100

_INSERT: Final = Insert(FEATURE_VERSION, f"tenant, {COLUMNS}, document, features")


def insert_feature_version(tenant: str, one: FeatureVersion, document: str, features: str) -> Statement:
    """Store a version; `Clash` when somebody else stored that number first."""
    values = (one.version, one.digest, one.note, one.author, one.origin, one.created_at_ms)
    return insert(_INSERT, tenant, (*values, write_changes(one.changes), document, features))


def forget_older_versions(tenant: str, newest: int) -> Statement:
    """Remove the versions that are too many once another one is the newest."""
    return scoped(
        FEATURE_VERSION,
        tenant,
        "DELETE FROM feature_version WHERE tenant = ? AND version <= ?",
        (newest - VERSIONS_KEPT,),
    )


def select_newest_version(tenant: str) -> Statement:
    """A row for `feature_version_of` of the version in force."""
    return scoped(
        FEATURE_VERSION,
        tenant,
        f"SELECT {COLUMNS} FROM feature_version WHERE tenant = ? ORDER BY version DESC LIMIT 1",
    )


def select_version(tenant: str, version: int) -> Statement:
    """A row for `feature_version_of` of one version, and its (document, features) behind that."""
    return scoped(
        FEATURE_VERSION,
        tenant,
        f"SELECT {COLUMNS}, document, features FROM feature_version WHERE tenant = ? AND version = ?",
        (version,),
    )


def select_version_page(
    tenant: str, beyond: int | None, limit: int, offset: int, *, descending: bool
) -> Statement:
    """A row for `feature_version_of` of a page of versions, beyond one where that is given."""
    sign, order = ("<", "DESC") if descending else (">", "ASC")
    where, asked = ("", ()) if beyond is None else (f" AND version {sign} ?", (beyond,))
    return scoped(
        FEATURE_VERSION,
        tenant,
        f"SELECT {COLUMNS} FROM feature_version WHERE tenant = ?{where} "
        f"ORDER BY version {order} LIMIT ? OFFSET ?",
        (*asked, limit, offset),
    )


def count_versions(tenant: str) -> Statement:
    """(count,) of all versions."""
    return scoped(FEATURE_VERSION, tenant, "SELECT COUNT(*) FROM feature_version WHERE tenant = ?")


def select_digests(tenant: str) -> Statement:
    """(digest,) of every version, the newest first."""
    return scoped(
        FEATURE_VERSION,
        tenant,
        "SELECT digest FROM feature_version WHERE tenant = ? ORDER BY version DESC",
    )


def select_features_by_digest(tenant: str, digest: str) -> Statement:
    """(features,) of a version with a digest."""
    return scoped(
        FEATURE_VERSION,
        tenant,
        "SELECT features FROM feature_version WHERE tenant = ? AND digest = ? LIMIT 1",
        (digest,),
    )
