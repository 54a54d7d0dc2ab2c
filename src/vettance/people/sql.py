"""What the store remembers of users: accounts, memberships, links, recovery codes."""

from collections.abc import Iterable
from typing import Any, Final

import msgspec

from vettance.db.engine import EVERYBODY, Row, Statement, everyone, insert, scoped
from vettance.db.tables import (
    CONSOLE_SESSION,
    ENTRY_LINK,
    KNOWN_ADDRESS,
    RECOVERY_CODE,
    TENANT,
    USER_ACCOUNT,
    USER_MEMBERSHIP,
    Insert,
)
from vettance.people.role import Role, read_roles, write_roles
from vettance.people.user import UserAccount, UserMembership

ACCOUNT_COLUMNS: Final = (
    "id, email, name, password, oidc_issuer, oidc_subject, totp, totp_new, totp_step, disabled, theme, "
    "time_zone, created_at_ms, updated_at_ms"
)
_INSERT_USER: Final = Insert(USER_ACCOUNT, ACCOUNT_COLUMNS)
_PUT_MEMBERSHIP: Final = Insert(
    USER_MEMBERSHIP,
    "tenant, user_id, roles, created_at_ms, updated_at_ms",
    key="tenant, user_id",
    replaces="roles, updated_at_ms",
)
_INSERT_LINK: Final = Insert(ENTRY_LINK, "digest, user_id, created_at_ms, expires_at_ms")
_INSERT_CODE: Final = Insert(RECOVERY_CODE, "user_id, digest", key="user_id, digest")


def insert_user(user: UserAccount) -> Statement:
    """Store a new user; `Clash` when there is one with this e-mail or OIDC subject."""
    values = msgspec.structs.asdict(user) | {"disabled": int(user.disabled)}
    return insert(_INSERT_USER, EVERYBODY, [values[name] for name in ACCOUNT_COLUMNS.split(", ")])


def select_user(user_id: str) -> Statement:
    """One user by id."""
    return everyone(USER_ACCOUNT, f"SELECT {ACCOUNT_COLUMNS} FROM user_account WHERE id = ?", (user_id,))


def select_user_by_email(email: str) -> Statement:
    """One user by e-mail, in the form of `read_email`."""
    return everyone(USER_ACCOUNT, f"SELECT {ACCOUNT_COLUMNS} FROM user_account WHERE email = ?", (email,))


def select_user_by_subject(issuer: str, subject: str) -> Statement:
    """One user by what an OIDC provider knows them by."""
    return everyone(
        USER_ACCOUNT,
        f"SELECT {ACCOUNT_COLUMNS} FROM user_account WHERE oidc_issuer = ? AND oidc_subject = ?",
        (issuer, subject),
    )


def select_users() -> Statement:
    """Every user, by e-mail."""
    return everyone(USER_ACCOUNT, f"SELECT {ACCOUNT_COLUMNS} FROM user_account ORDER BY email")


def select_users_of(tenant: str) -> Statement:
    """The users with a membership of a tenant, by e-mail, each with their roles there at the end."""
    columns = ", ".join(f"one.{name}" for name in ACCOUNT_COLUMNS.split(", "))
    return everyone(
        USER_ACCOUNT.reading(USER_MEMBERSHIP),
        f"SELECT {columns}, user_membership.roles FROM user_membership "
        "JOIN user_account AS one ON one.id = user_membership.user_id "
        "WHERE user_membership.tenant = ? ORDER BY one.email",
        (tenant,),
    )


def user_of(row: Row) -> UserAccount:
    """Make a user of the first columns of a row."""
    values: dict[str, Any] = dict(zip(ACCOUNT_COLUMNS.split(", "), row, strict=False))
    return UserAccount(**values | {"disabled": bool(values["disabled"])})


def change_user(user_id: str, now_ms: int, **changes: Any) -> Statement:
    """Change some columns of a user; `Lost` when there is none."""
    assigned = ", ".join(f"{name} = ?" for name in (*changes, "updated_at_ms"))
    values = (int(value) if isinstance(value, bool) else value for value in changes.values())
    return everyone(
        USER_ACCOUNT, f"UPDATE user_account SET {assigned} WHERE id = ?", (*values, now_ms, user_id), rows=1
    )


def take_totp_step(user_id: str, step: int) -> Statement:
    """Take the code of a time step; `Lost` when it, or a later one, was taken already."""
    return everyone(
        USER_ACCOUNT,
        "UPDATE user_account SET totp_step = ? WHERE id = ? AND totp_step < ?",
        (step, user_id, step),
        rows=1,
    )


def put_membership(tenant: str, user_id: str, roles: Iterable[Role], now_ms: int) -> Statement:
    """Give a user roles for a tenant, in place of those they have there."""
    return insert(_PUT_MEMBERSHIP, tenant, (user_id, write_roles(roles), now_ms, now_ms))


def demand_roles(tenant: str, user_id: str, written: str) -> Statement:
    """Demand that a user has these roles for a tenant, as the store holds them; `Lost` when others are."""
    return scoped(
        USER_MEMBERSHIP,
        tenant,
        "UPDATE user_membership SET tenant = ? WHERE tenant = ? AND user_id = ? AND roles = ?",
        (tenant, user_id, written),
        rows=1,
    )


def remove_membership(tenant: str, user_id: str) -> Statement:
    """Take a user's roles for a tenant away."""
    return scoped(
        USER_MEMBERSHIP,
        tenant,
        "DELETE FROM user_membership WHERE tenant = ? AND user_id = ?",
        (user_id,),
    )


def select_memberships() -> Statement:
    """(user, tenant, roles) of every membership."""
    return everyone(
        USER_MEMBERSHIP, "SELECT user_id, tenant, roles FROM user_membership ORDER BY user_id, tenant"
    )


def select_memberships_of(user_id: str) -> Statement:
    """What a user may do for each tenant, by the names of the tenants."""
    return everyone(
        USER_MEMBERSHIP.reading(TENANT),
        "SELECT tenant.id, tenant.name, user_membership.roles, tenant.settings FROM user_membership "
        "JOIN tenant ON tenant.id = user_membership.tenant WHERE user_membership.user_id = ? "
        "ORDER BY tenant.name, tenant.id",
        (user_id,),
    )


def membership_of(row: Row) -> UserMembership:
    """Make a membership of (tenant, its name, roles, settings of the tenant)."""
    tenant, name, roles, settings = row
    demands = bool(msgspec.json.decode(settings).get("second_factor"))
    return UserMembership(tenant_id=tenant, tenant_name=name, roles=read_roles(roles), second_factor=demands)


def insert_link(digest: str, user_id: str, now_ms: int, expires_at_ms: int) -> Statement:
    """Store a link by the digest of its token."""
    return insert(_INSERT_LINK, EVERYBODY, (digest, user_id, now_ms, expires_at_ms))


def select_link(digest: str) -> Statement:
    """(user, end of its life, when it was taken) of a link."""
    return everyone(
        ENTRY_LINK, "SELECT user_id, expires_at_ms, taken_at_ms FROM entry_link WHERE digest = ?", (digest,)
    )


def take_link(digest: str, now_ms: int) -> Statement:
    """Take a link for good; `Lost` when somebody has, or its time is over."""
    return everyone(
        ENTRY_LINK,
        "UPDATE entry_link SET taken_at_ms = ? "
        "WHERE digest = ? AND taken_at_ms IS NULL AND expires_at_ms > ?",
        (now_ms, digest, now_ms),
        rows=1,
    )


def remove_links_of(user_id: str) -> Statement:
    """Forget all links of a user."""
    return everyone(ENTRY_LINK, "DELETE FROM entry_link WHERE user_id = ?", (user_id,))


def replace_recovery_codes(user_id: str, digests: Iterable[str]) -> list[Statement]:
    """Store new recovery codes of a user in place of all earlier ones."""
    rows = [value for digest in digests for value in (user_id, digest)]
    removed = everyone(RECOVERY_CODE, "DELETE FROM recovery_code WHERE user_id = ?", (user_id,))
    return [removed, insert(_INSERT_CODE, EVERYBODY, rows)] if rows else [removed]


def take_recovery_code(user_id: str, digest: str) -> Statement:
    """Use a recovery code up; `Lost` when there is none."""
    return everyone(
        RECOVERY_CODE,
        "DELETE FROM recovery_code WHERE user_id = ? AND digest = ?",
        (user_id, digest),
        rows=1,
    )


def count_recovery_codes(user_id: str) -> Statement:
    """How many recovery codes a user has left."""
    return everyone(RECOVERY_CODE, "SELECT COUNT(*) FROM recovery_code WHERE user_id = ?", (user_id,))


def end_sessions_of(user_id: str, but: str = "") -> Statement:
    """End all sessions of a user but that of an id."""
    return everyone(
        CONSOLE_SESSION, "DELETE FROM console_session WHERE user_id = ? AND id <> ?", (user_id, but)
    )


def forget_addresses_of(user_id: str) -> Statement:
    """Forget from where a user has signed in before."""
    return everyone(KNOWN_ADDRESS, "DELETE FROM known_address WHERE user_id = ?", (user_id,))
