"""What administrators do with the people of their tenant: invite them, change their roles, send a new link.

They reach as far as their tenant does: a link sets a password, so nobody gets one for a person who works
for another tenant as well.
"""

from collections.abc import Callable, Collection

import msgspec

from vettance import clock
from vettance.audit.act import describe
from vettance.db.engine import Clash, Lost, Statement, Store
from vettance.errors import Conflict, NotFound, Unprocessable
from vettance.ids import IdSource
from vettance.people import sql
from vettance.people.role import Role, read_roles
from vettance.people.user import LINK_LIFE_MS, UserAccount, new_token, read_email, read_name, token_digest


class TenantUser(msgspec.Struct, frozen=True):
    """A user with what they may do for a tenant; `written` is how the store holds these roles."""

    account: UserAccount
    roles: frozenset[Role]
    written: str


class UserAdministration:
    """Changes the users of tenants."""

    def __init__(self, store: Store, ids: IdSource, now_ms: Callable[[], int] = clock.now_ms) -> None:
        self._store = store
        self._ids = ids
        self._now_ms = now_ms

    async def users(self, tenant: str) -> list[TenantUser]:
        """Return the users of a tenant, by e-mail."""
        rows = await self._store.read(sql.select_users_of(tenant))
        return [TenantUser(sql.user_of(row), read_roles(row[-1]), row[-1]) for row in rows]

    async def invite(self, tenant: str, email: str, name: str, roles: Collection[Role]) -> str | None:
        """Make a user and return the token of their link; None where they have an account already.

        Raises `Unprocessable`, and `Conflict` for somebody who is a user of the tenant.
        """
        folded, kept = read_email(email), read_name(name)
        faults = {}
        if folded is None:
            faults["email"] = "is not an e-mail address"
        if kept is None:
            faults["name"] = "has at most 200 printable characters"
        if not roles:
            faults["roles"] = "choose at least one"
        if folded is None or kept is None or faults:
            raise Unprocessable("Nobody was invited.", faults)
        if any(one.account.email == folded for one in await self.users(tenant)):
            raise Conflict(f"{folded} is a user here already.", "duplicate_user")
        now_ms = self._now_ms()
        rows = await self._store.read(sql.select_user_by_email(folded))
        if rows:
            known = sql.user_of(rows[0])
            await self._store.write(sql.put_membership(tenant, known.id, roles, now_ms))
            return None
        made = UserAccount(
            id=self._ids.make("usr", now_ms),
            email=folded,
            name=kept,
            created_at_ms=now_ms,
            updated_at_ms=now_ms,
        )
        token = new_token()
        try:
            await self._store.write(
                sql.insert_user(made),
                sql.put_membership(tenant, made.id, roles, now_ms),
                *give_link(made.id, token, now_ms),
            )
        except Clash:
            raise Conflict(f"Somebody has just invited {folded}.", "duplicate_user") from None
        return token

    async def set_roles(
        self, tenant: str, user_id: str, roles: Collection[Role], by: str, seen: str | None = None
    ) -> None:
        """Replace the roles of a user, or take all away; their sessions end. Nobody changes their own.

        `seen` is what they were when `by` saw them, as `TenantUser.written`; None compares nothing. Raises
        `NotFound`, and `Conflict`: `own_roles` for one's own, `changed_meanwhile` when others changed them.
        """
        found = await self._find(tenant, user_id)
        if user_id == by:
            raise Conflict("Nobody changes their own roles; ask another administrator.", "own_roles")
        describe(
            subject=found.account.email,
            before={"roles": sorted(found.roles)},
            after={"roles": sorted(set(roles))},
        )
        if seen not in (None, found.written):
            raise _changed_meanwhile()
        change = (
            sql.put_membership(tenant, user_id, roles, self._now_ms())
            if roles
            else sql.remove_membership(tenant, user_id)
        )
        demanded = sql.demand_roles(tenant, user_id, found.written)
        try:
            await self._store.write(demanded, change, sql.end_sessions_of(user_id))
        except Lost:
            raise _changed_meanwhile() from None

    async def new_link(self, tenant: str, user_id: str) -> str:
        """Give a user a link in place of earlier ones, and return its token.

        Raises `NotFound`, and `Conflict` for who works for another tenant as well.
        """
        found = await self._find(tenant, user_id)
        others = await self._store.read(sql.select_memberships_of(user_id))
        if any(row[0] != tenant for row in others):
            raise Conflict(
                "This person works for another organisation as well; their operator makes the link.",
                "other_memberships",
            )
        describe(subject=found.account.email)
        token = new_token()
        await self._store.write(*give_link(user_id, token, self._now_ms()))
        return token

    async def _find(self, tenant: str, user_id: str) -> TenantUser:
        found = next((one for one in await self.users(tenant) if one.account.id == user_id), None)
        if found is None:
            raise NotFound
        return found


def _changed_meanwhile() -> Conflict:
    return Conflict("Somebody else has changed these roles meanwhile.", "changed_meanwhile")


def give_link(user_id: str, token: str, now_ms: int) -> list[Statement]:
    """Give a user a link in place of all earlier ones."""
    inserted = sql.insert_link(token_digest(token), user_id, now_ms, now_ms + LINK_LIFE_MS)
    return [sql.remove_links_of(user_id), inserted]


def link_path(token: str) -> str:
    """Return the page of a link."""
    return f"/console/enter/{token}"
