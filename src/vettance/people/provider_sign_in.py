"""Signing in by a provider of OpenID Connect: whom its claims mean, and which roles they give."""

from collections.abc import Callable, Mapping

from vettance import clock
from vettance.audit.chain import AuditEntry
from vettance.audit.sql import record
from vettance.db.engine import EVERYBODY, Clash, Statement, Store
from vettance.errors import Unavailable
from vettance.ids import IdSource
from vettance.people import sql
from vettance.people.openid_provider import OpenIdProvider, ProviderFailed, ProviderIdentity
from vettance.people.role import Role
from vettance.people.session import SignInMethod
from vettance.people.sign_in import NewSession, SignInRefused, SignIns
from vettance.people.user import UserAccount, read_name

REFUSED = "The provider of your organisation has not let you in here. Ask an administrator for access."


class ProviderSignIns:
    """Begins sessions for people whom the provider has identified; `exists` tells whether a tenant does."""

    def __init__(
        self,
        provider: OpenIdProvider,
        store: Store,
        ids: IdSource,
        sessions: SignIns,
        exists: Callable[[str], bool],
        now_ms: Callable[[], int] = clock.now_ms,
    ) -> None:
        self._provider = provider
        self._store = store
        self._ids = ids
        self._sessions = sessions
        self._exists = exists
        self._now_ms = now_ms

    async def address(self, state: str, return_to: str) -> str:
        """Return where to send somebody. Raises `Unavailable`."""
        try:
            return await self._provider.address(state, return_to)
        except ProviderFailed:
            raise Unavailable("The provider that signs you in cannot be reached. Try again.") from None

    async def begin(
        self, code: str, state: str, return_to: str, issuer: str, address: str, user_agent: str
    ) -> NewSession:
        """Begin a session with a code of the provider. Raises `SignInRefused`."""
        try:
            identity = await self._provider.identify(code, state, return_to, issuer)
        except ProviderFailed as failed:
            await self._sessions.note_failure(None, (), address, str(failed))
            raise SignInRefused(REFUSED) from None
        wanted = self._roles_for(identity)
        user = await self._user_of(identity, any(wanted.values()))
        if user is None:
            await self._sessions.note_failure(identity.email, (), address, "the provider's person is no user")
            raise SignInRefused(REFUSED)
        if not user.disabled:
            await self._grant(user, wanted)
        try:
            return await self._sessions.begin_full(user, SignInMethod.OIDC, address, user_agent)
        except SignInRefused:
            await self._sessions.note_failure(user.email, (), address, "disabled, or without roles")
            raise SignInRefused(REFUSED) from None

    async def _user_of(self, identity: ProviderIdentity, has_roles: bool) -> UserAccount | None:
        """Return the user that the provider means: known by subject, or by a verified e-mail, or new."""
        rows = await self._store.read(sql.select_user_by_subject(identity.issuer, identity.subject))
        if rows:
            return sql.user_of(rows[0])
        if identity.email is None:
            return None
        linked = {"oidc_issuer": identity.issuer, "oidc_subject": identity.subject}
        rows = await self._store.read(sql.select_user_by_email(identity.email))
        if not rows:
            return await self._make(identity, identity.email, linked) if has_roles else None
        user = sql.user_of(rows[0])
        if user.oidc_subject is not None:
            return None  # Another person of the provider has it.
        noted = self._entries(user, "", {}, linked)
        await self._store.write(sql.change_user(user.id, self._now_ms(), **linked), *noted)
        return user

    async def _make(
        self, identity: ProviderIdentity, email: str, linked: Mapping[str, str]
    ) -> UserAccount | None:
        now_ms = self._now_ms()
        made = UserAccount(
            id=self._ids.make("usr", now_ms),
            email=email,
            name=read_name(identity.name) or "",
            oidc_issuer=identity.issuer,
            oidc_subject=identity.subject,
            created_at_ms=now_ms,
            updated_at_ms=now_ms,
        )
        try:
            await self._store.write(sql.insert_user(made), *self._entries(made, "", {}, linked))
        except Clash:
            return None  # The same person at the same moment, in another window.
        return made

    def _roles_for(self, identity: ProviderIdentity) -> dict[str, frozenset[Role]]:
        """Return the roles that the claims give for each tenant that the settings name."""
        found: dict[str, frozenset[Role]] = {}
        for grant in self._provider.settings.grants:
            if self._exists(grant.tenant):
                given = map(Role, grant.roles) if grant.value in identity.roles else ()
                found[grant.tenant] = found.get(grant.tenant, frozenset()) | frozenset(given)
        return found

    async def _grant(self, user: UserAccount, wanted: Mapping[str, frozenset[Role]]) -> None:
        """Give a user the roles of the claims, and no others, for the tenants that the settings name."""
        rows = await self._store.read(sql.select_memberships_of(user.id))
        held = {one.tenant_id: one.roles for one in map(sql.membership_of, rows)}
        now_ms = self._now_ms()
        changes: list[Statement] = []
        for tenant, roles in wanted.items():
            before = held.get(tenant, frozenset())
            if roles == before:
                continue
            if roles:
                changes.append(sql.put_membership(tenant, user.id, roles, now_ms))
            else:
                changes.append(sql.remove_membership(tenant, user.id))
            changes += self._entries(user, tenant, {"roles": sorted(before)}, {"roles": sorted(roles)})
        if changes:
            await self._store.write(*changes, sql.end_sessions_of(user.id))

    def _entries(
        self, user: UserAccount, tenant: str, before: Mapping[str, object], after: Mapping[str, object]
    ) -> list[Statement]:
        now_ms = self._now_ms()
        noted = AuditEntry(
            id=self._ids.make("aud", now_ms),
            tenant=tenant or EVERYBODY,
            at_ms=now_ms,
            action="set roles by the provider" if tenant else "link to the provider",
            actor=user.email,
            subject=user.email,
            before=dict(before) or None,
            after=dict(after),
        )
        return record(noted)
