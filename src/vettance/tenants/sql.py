"""What the store remembers of tenants, their keys and their use of the quota."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

import msgspec

from vettance.db.engine import EVERYBODY, Row, Statement, everyone, insert, scoped
from vettance.db.tables import API_KEY, CHANGE, DEPLOYMENT, TENANT, Insert
from vettance.tenants.key_scope import read_scopes, stored_scopes
from vettance.tenants.tenant import SETTINGS, Key, Tenant
from vettance.wire.payload import encode

AREA = "tenant"
#: What the change table calls the deletion of a tenant, when it begins.
DELETED = "tenant_deleted"
#: That old changes were removed; the subject is the number of the newest of them.
PRUNED = "pruned"

#: Settings with a column of their own; the others are in one JSON object.
_COLUMNS = ("aml", "throttle", "quota", "collect_key", "require_origin")
_WITHOUT_COLUMN = tuple(name for name in SETTINGS if name not in _COLUMNS)
_TENANT = ", ".join(("id", "name", *_COLUMNS, "settings"))
_KEY = "id, tenant, digest, hint, created_at_ms, revoked_at_ms, name, last_used_at_ms, scopes"


_INSERT_TENANT: Final = Insert(TENANT, f"{_TENANT}, created_at_ms")


def insert_tenant(tenant: Tenant, now_ms: int) -> Statement:
    """Store a new tenant."""
    return insert(_INSERT_TENANT, tenant.id, (tenant.id, tenant.name, *_settings_of(tenant), now_ms))


def update_tenant(tenant: Tenant) -> Statement:
    """Store name and settings of a tenant that exists; `Lost` when it does not."""
    assigned = ", ".join(f"{column} = ?" for column in ("name", *_COLUMNS, "settings"))
    return Statement(
        f"UPDATE tenant SET {assigned} WHERE id = ?",
        (tenant.name, *_settings_of(tenant), tenant.id),
        rows=1,
        tenant=tenant.id,
        tables=TENANT,
    )


def _settings_of(tenant: Tenant) -> tuple[Any, ...]:
    others = {name: getattr(tenant, name) for name in _WITHOUT_COLUMN}
    return (*(int(getattr(tenant, name)) for name in _COLUMNS), encode(others).decode())


def select_tenants() -> Statement:
    """Every tenant, oldest first."""
    return everyone(TENANT, f"SELECT {_TENANT} FROM tenant ORDER BY id")


def select_tenant(tenant_id: str) -> Statement:
    """One tenant by its id."""
    return Statement(
        f"SELECT {_TENANT} FROM tenant WHERE id = ?", (tenant_id,), tenant=tenant_id, tables=TENANT
    )


def select_settings(tenant_id: str) -> Statement:
    """(settings,) of one tenant, as they are stored."""
    return Statement(
        "SELECT settings FROM tenant WHERE id = ?", (tenant_id,), tenant=tenant_id, tables=TENANT
    )


def demand_settings(tenant_id: str, settings: str) -> Statement:
    """Change nothing, and demand that the settings of a tenant are still these; `Lost` when they are not."""
    return Statement(
        "UPDATE tenant SET settings = ? WHERE id = ? AND settings = ?",
        (settings, tenant_id, settings),
        rows=1,
        tenant=tenant_id,
        tables=TENANT,
    )


def tenant_of(row: Row) -> Tenant:
    """Make a tenant of a row of `select_tenant` or `select_tenants`."""
    tenant_id, name, *columns, others = row
    given = dict(zip(_COLUMNS, columns, strict=True)) | msgspec.json.decode(others)
    # A setting that only another version knows is left out; it stays in the store until the next change.
    known: dict[str, Any] = {
        name: None if value is None else SETTINGS[name].kind(value)
        for name, value in given.items()
        if name in SETTINGS
    }
    return Tenant(id=tenant_id, name=name, **known)


_INSERT_KEY: Final = Insert(API_KEY, "tenant, id, digest, hint, created_at_ms, name, scopes")


def insert_key(key: Key) -> Statement:
    """Store a new key (its hash, never the key)."""
    values = (key.id, key.digest, key.hint, key.created_at_ms, key.name, stored_scopes(key.scopes))
    return insert(_INSERT_KEY, key.tenant, values)


def revoke_key(key_id: str, now_ms: int) -> Statement:
    """Revoke a key that is not revoked yet; `Lost` when there is none."""
    return everyone(
        API_KEY,
        "UPDATE api_key SET revoked_at_ms = ? WHERE id = ? AND revoked_at_ms IS NULL",
        (now_ms, key_id),
        rows=1,
    )


def revoke_keys_of(tenant_id: str, now_ms: int) -> Statement:
    """Revoke every key of a tenant that still works."""
    return Statement(
        "UPDATE api_key SET revoked_at_ms = ? WHERE tenant = ? AND revoked_at_ms IS NULL",
        (now_ms, tenant_id),
        tenant=tenant_id,
        tables=API_KEY,
    )


def note_key_use(key_id: str, now_ms: int) -> Statement:
    """Remember when a key was last used."""
    return everyone(API_KEY, "UPDATE api_key SET last_used_at_ms = ? WHERE id = ?", (now_ms, key_id))


def select_keys() -> Statement:
    """Every key of every tenant, for the mirror and for listing."""
    return everyone(API_KEY, f"SELECT {_KEY} FROM api_key ORDER BY id")


def select_keys_of(tenant_id: str) -> Statement:
    """Every key of a tenant, oldest first."""
    return scoped(API_KEY, tenant_id, f"SELECT {_KEY} FROM api_key WHERE tenant = ? ORDER BY id", ())


def select_any_key() -> Statement:
    """A row when a key was ever made."""
    return everyone(API_KEY, "SELECT 1 FROM api_key LIMIT 1")


def select_secret_digest() -> Statement:
    """The digest of the secret that the store was made with; no row while that is not known."""
    return everyone(DEPLOYMENT, "SELECT secret_digest FROM deployment WHERE id = 1")


_KEEP_DIGEST: Final = Insert(DEPLOYMENT, "id, secret_digest", key="id")
_REPLACE_DIGEST: Final = Insert(DEPLOYMENT, "id, secret_digest", key="id", replaces="secret_digest")


def keep_secret_digest(digest: str) -> Statement:
    """Remember the digest of the secret, unless one is known already."""
    return insert(_KEEP_DIGEST, EVERYBODY, (1, digest))


def replace_secret_digest(digest: str) -> Statement:
    """Remember the digest of another secret from now on."""
    return insert(_REPLACE_DIGEST, EVERYBODY, (1, digest))


def select_key(key_id: str) -> Statement:
    """One key by its id."""
    return everyone(API_KEY, f"SELECT {_KEY} FROM api_key WHERE id = ?", (key_id,))


def select_key_by_digest(digest: bytes) -> Statement:
    """The tenant of the key with this digest, when it works."""
    return everyone(
        API_KEY, "SELECT tenant FROM api_key WHERE digest = ? AND revoked_at_ms IS NULL", (digest,)
    )


def key_of(row: Row) -> Key:
    """Make a key of a row."""
    return Key(
        id=row[0],
        tenant=row[1],
        digest=row[2],
        hint=row[3],
        created_at_ms=row[4],
        revoked_at_ms=row[5],
        name=row[6],
        last_used_at_ms=row[7],
        scopes=read_scopes(row[8]),
    )


_NOTE_CHANGE: Final = Insert(CHANGE, "tenant, area, subject, at_ms")


def note_change(area: str, tenant: str, subject: str, now_ms: int) -> Statement:
    """Tell every process, in the commit of the change itself, what it must read again."""
    return insert(_NOTE_CHANGE, tenant, (area, subject, now_ms))


def is_change(statement: Statement) -> bool:
    """Tell whether a statement notes a change."""
    return statement.tables is _NOTE_CHANGE


def select_changes(after: int) -> Statement:
    """(seq, area, tenant, subject) of every change noted after `after`, in order."""
    return everyone(
        CHANGE, "SELECT seq, area, tenant, subject FROM change WHERE seq > ? ORDER BY seq", (after,)
    )


def has_missed(changes: Iterable[Row], seen: int) -> bool:
    """Tell by rows of `select_changes(seen)` whether changes after `seen` went before they were read."""
    return any(area == PRUNED and int(subject) > seen for _, area, _, subject in changes)


def changed_of(
    changes: Sequence[Row], area: str, seen: int, known: Callable[[], dict[str, str]]
) -> dict[str, str]:
    """Return the changed subjects of an area with their tenants; where any were missed, all `known`."""
    named = {subject: tenant for _, changed, tenant, subject in changes if changed == area}
    return known() | named if has_missed(changes, seen) else named


def select_last_change() -> Statement:
    """The number of the newest change, 0 when there is none."""
    return everyone(CHANGE, "SELECT COALESCE(MAX(seq), 0) FROM change")
