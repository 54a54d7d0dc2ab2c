"""Signing in and out: tries that slow down, the second factor, and the session that a cookie stands for."""

import asyncio
from collections.abc import Callable, Sequence
from typing import ClassVar, Final

from vettance import clock
from vettance.audit.chain import AuditEntry
from vettance.audit.sql import record
from vettance.db.engine import EVERYBODY, Lost, Statement, Store
from vettance.errors import Refusal, Unavailable
from vettance.ids import IdSource
from vettance.people import session_sql, sql
from vettance.people.backoff import address_digest, subjects_of
from vettance.people.password import verify_password
from vettance.people.session import (
    KNOWN_MS,
    SESSIONS_MAX,
    TOUCH_MS,
    ConsoleSession,
    SessionLife,
    SignedIn,
    SignInMethod,
    Stage,
    csrf_token,
)
from vettance.people.totp import matching_step, recovery_digest
from vettance.people.user import UserAccount, UserMembership, is_token, new_token, read_email, token_digest
from vettance.tenants.vault import Vault

#: Hashing takes a processor and 64 MiB; decisions need both more.
_HASHES_AT_ONCE: Final = 2
_HASHES_WAITING_MAX: Final = 64
_USER_AGENT_CHARS_MAX: Final = 300
#: One text for everything that keeps somebody out: it tells a stranger nothing.
REFUSED: Final = (
    "That e-mail and password do not match an account that can sign in. Check both and try again."
)
CODE_REFUSED: Final = "That code is not valid now. Wait for the next one, or use a recovery code."


#: What the audit log calls the beginning of a session.
_ACTIONS: Final = {Stage.FULL: "sign in", Stage.FACTOR: "password given", Stage.ENROLMENT: "sign in"}


class SignInRefused(Refusal):
    """401: wrong password, unknown or disabled user; which of these is never said."""

    status: ClassVar[int] = 401
    code: ClassVar[str] = "UNAUTHORIZED"


class SignInPaused(Refusal):
    """429: too many failures; the same text as for a wrong password."""

    status: ClassVar[int] = 429
    code: ClassVar[str] = "QUOTA_EXCEEDED"

    def __init__(self, message: str, retry_after_s: int) -> None:
        super().__init__(message, {"retryAfter": retry_after_s}, (("retry-after", str(retry_after_s)),))


class PasswordCheck:
    """Verifies passwords in threads, few at once and within bounds."""

    def __init__(self) -> None:
        self._turns = asyncio.Semaphore(_HASHES_AT_ONCE)
        self._waiting = 0

    async def verify(self, hashed: str | None, password: str) -> bool:
        """Tell whether a password is right. Raises `Unavailable` when too many ask at once."""
        if self._waiting >= _HASHES_WAITING_MAX:
            raise Unavailable("Too many people sign in at this moment; try again in a second.")
        self._waiting += 1
        try:
            async with self._turns:
                return await asyncio.to_thread(verify_password, hashed, password)
        finally:
            self._waiting -= 1


class NewSession:
    """A session that has just begun: the value of its cookie, and what it still lacks."""

    __slots__ = ("stage", "token", "user_id")

    def __init__(self, token: str, stage: Stage, user_id: str) -> None:
        self.token = token
        self.stage = stage
        self.user_id = user_id


class SignIns:
    """Begins, finds and ends sessions. Every process asks the store, so what ends one ends it everywhere."""

    def __init__(
        self,
        store: Store,
        secret: bytes,
        ids: IdSource,
        life: SessionLife,
        now_ms: Callable[[], int] = clock.now_ms,
    ) -> None:
        self._store = store
        self._secret = secret
        self._vault = Vault(secret)
        self._ids = ids
        self._life = life
        self._now_ms = now_ms
        self._passwords = PasswordCheck()

    async def sign_in(self, email: str, password: str, address: str, user_agent: str) -> NewSession:
        """Begin a session with e-mail and password. Raises `SignInRefused` or `SignInPaused`."""
        folded = read_email(email)
        user = await self._user_by_email(folded) if folded is not None else None
        await self._count_try(folded or email, user, address, REFUSED)
        is_right = await self._passwords.verify(user.password if user else None, password)
        memberships = await self._memberships(user.id if user else "")
        if user is None or not is_right or user.disabled or not memberships:
            await self.note_failure(folded, memberships, address, _reason(user, is_right, memberships))
            raise SignInRefused(REFUSED)
        if user.totp is not None:
            # The count goes on: to know the password gives nobody more tries at the code.
            return await self._begin(
                user, memberships, Stage.FACTOR, SignInMethod.PASSWORD, address, user_agent
            )
        return await self._begin(user, memberships, Stage.FULL, SignInMethod.PASSWORD, address, user_agent)

    async def give_code(self, token: str, code: str, address: str, user_agent: str) -> NewSession:
        """Complete a session that lacks the second factor; it gets another cookie.

        Takes a code of the app or a recovery code. Raises `SignInRefused` or `SignInPaused`.
        """
        found = await self._load(token)
        if found is None or found[0].stage is not Stage.FACTOR:
            raise SignInRefused(REFUSED)
        session, user, memberships = found
        await self._count_try(user.email, user, address, CODE_REFUSED)
        taken = self._taken_by(user, code)
        ended = session_sql.end_session(session.digest)
        try:
            return await self._begin(
                user, memberships, Stage.FULL, session.method, address, user_agent, taken, ended
            )
        except Lost:
            await self.note_failure(user.email, memberships, address, "wrong code")
            raise SignInRefused(CODE_REFUSED) from None

    async def begin_full(
        self, user: UserAccount, method: SignInMethod, address: str, user_agent: str, *changes: Statement
    ) -> NewSession:
        """Begin a session for a user who has proven who they are in another way, with changes in its commit.

        A user with a second factor who came by a link still has to give it. Raises `SignInRefused`, or `Lost`
        when one of the changes could not be made.
        """
        memberships = await self._memberships(user.id)
        if user.disabled or not memberships:
            raise SignInRefused(REFUSED)
        needs_code = user.totp is not None and method is not SignInMethod.OIDC
        stage = Stage.FACTOR if needs_code else Stage.FULL
        return await self._begin(user, memberships, stage, method, address, user_agent, *changes)

    async def find(self, token: str, *, used: bool = True) -> SignedIn | None:
        """Return who is signed in by a cookie, or None. What is missing of a session is in `stage`.

        A page that asks by itself does not use the session: nobody may be there.
        """
        found = await self._load(token)
        if found is None:
            return None
        session, user, memberships = found
        now_ms = self._now_ms()
        if used and now_ms - session.seen_at_ms >= TOUCH_MS:
            await self._store.write(session_sql.touch_session(session.digest, now_ms))
        by_id = {one.tenant_id: one for one in memberships}
        chosen = by_id.get(session.tenant_id, memberships[0])
        return _signed_in(token, session, user, chosen, by_id)

    async def end(self, token: str) -> None:
        """End the session of a cookie, if there is one."""
        found = await self._load(token)
        if found is not None:
            session, user, _ = found
            noted = self._entry(session.tenant_id, "sign out", user.email, session.address)
            await self._store.write(session_sql.end_session(session.digest), *noted)

    async def end_one(self, signed: SignedIn, session_id: str) -> None:
        """End one of the sessions of the user who is signed in."""
        await self._store.write(session_sql.end_session_by_id(signed.user_id, session_id))

    async def sessions(self, signed: SignedIn) -> list[ConsoleSession]:
        """Return the sessions of the user who is signed in that are not over."""
        rows = await self._store.read(session_sql.select_sessions_of(signed.user_id))
        now_ms = self._now_ms()
        return [one for one in map(session_sql.session_of, rows) if not one.is_over(self._life, now_ms)]

    async def choose_tenant(self, signed: SignedIn, tenant_id: str) -> bool:
        """Have the session be about another tenant from now on; False where the user has no membership."""
        if tenant_id not in signed.memberships:
            return False
        await self._store.write(session_sql.choose_tenant(signed.session_id, tenant_id))
        return True

    async def _user_by_email(self, email: str) -> UserAccount | None:
        rows = await self._store.read(sql.select_user_by_email(email))
        return sql.user_of(rows[0]) if rows else None

    async def _memberships(self, user_id: str) -> list[UserMembership]:
        return [sql.membership_of(row) for row in await self._store.read(sql.select_memberships_of(user_id))]

    async def _count_try(self, email: str, user: UserAccount | None, address: str, said: str) -> None:
        """Count a try as a failure until it is known. Raises `SignInPaused`."""
        now_ms = self._now_ms()
        subjects = subjects_of(self._secret, email, address)
        digest = address_digest(self._secret, address)
        is_known = bool(await self._store.read(session_sql.exists_address(user.id if user else "", digest)))
        counted = subjects.counted(is_known=is_known)
        try:
            await self._store.write(
                session_sql.forget_failures(now_ms),
                *(session_sql.count_failure(subject, now_ms) for subject in counted),
            )
        except Lost:
            [(next_ms,)] = await self._store.read(session_sql.select_next_try(counted))
            wait_s = max(1, -(-((next_ms or 0) - now_ms) // 1000))
            raise SignInPaused(said, wait_s) from None

    def _taken_by(self, user: UserAccount, code: str) -> Statement:
        """Return the statement that uses a code up; `Lost` when it was used before or there is none."""
        if user.totp is not None:
            secret = self._vault.open(user.totp, "user_account", user.id, "totp")
            step = matching_step(secret, code, self._now_ms(), user.totp_step)
            if step is not None:
                return sql.take_totp_step(user.id, step)
        return sql.take_recovery_code(user.id, recovery_digest(user.id, code))

    async def _begin(
        self,
        user: UserAccount,
        memberships: list[UserMembership],
        stage: Stage,
        method: SignInMethod,
        address: str,
        user_agent: str,
        *changes: Statement,
    ) -> NewSession:
        now_ms, token = self._now_ms(), new_token()
        session = ConsoleSession(
            digest=token_digest(token),
            id=self._ids.make("ses", now_ms),
            user_id=user.id,
            tenant_id=memberships[0].tenant_id,
            stage=stage,
            method=method,
            address=address,
            user_agent=user_agent[:_USER_AGENT_CHARS_MAX],
            created_at_ms=now_ms,
            seen_at_ms=now_ms,
        )
        await self._store.write(
            *changes,
            session_sql.insert_session(session),
            session_sql.end_oldest_sessions(user.id, SESSIONS_MAX),
            session_sql.remove_old_sessions(now_ms - max(self._life.idle_ms, self._life.most_ms) - KNOWN_MS),
            *(self._proven(user, address, now_ms) if stage is Stage.FULL else ()),
            *self._entry(session.tenant_id, _ACTIONS[stage], user.email, address, method=method.value),
        )
        return NewSession(token, stage, user.id)

    async def note_failure(
        self, email: str | None, memberships: Sequence[UserMembership], address: str, reason: str
    ) -> None:
        """Record a failed sign-in; what has not even the shape of an e-mail might be a password."""
        tenant = memberships[0].tenant_id if memberships else EVERYBODY
        actor = email or "(no e-mail address)"
        await self._store.write(*self._entry(tenant, "sign in failed", actor, address, reason=reason))

    def _entry(self, tenant: str, action: str, actor: str, address: str, **more: str) -> list[Statement]:
        """Return what records an act of signing in or out."""
        now_ms = self._now_ms()
        noted = AuditEntry(
            id=self._ids.make("aud", now_ms),
            tenant=tenant,
            at_ms=now_ms,
            action=action,
            actor=actor,
            subject=actor,
            after={"address": address, **more},
        )
        return record(noted)

    def _proven(self, user: UserAccount, address: str, now_ms: int) -> list[Statement]:
        """Take the failures back that were this user's own, and remember the address."""
        subjects = subjects_of(self._secret, user.email, address)
        return [
            session_sql.take_back_failures(subjects.address, subjects.pair),
            session_sql.clear_failures((subjects.pair, subjects.account)),
            session_sql.note_address(user.id, address_digest(self._secret, address), now_ms),
        ]

    async def _load(self, token: str) -> tuple[ConsoleSession, UserAccount, list[UserMembership]] | None:
        if not is_token(token):
            return None
        rows = await self._store.read(session_sql.select_session(token_digest(token)))
        if not rows:
            return None
        width = session_sql.SESSION_WIDTH
        session, user = session_sql.session_of(rows[0]), sql.user_of(rows[0][width:])
        parts = [row[width + session_sql.ACCOUNT_WIDTH :] for row in rows]
        memberships = [sql.membership_of(part) for part in parts if part[0] is not None]
        if user.disabled or not memberships or session.is_over(self._life, self._now_ms()):
            return None
        return session, user, memberships


def _reason(user: UserAccount | None, is_right: bool, memberships: list[UserMembership]) -> str:
    """Say why a sign-in failed, for the audit log only."""
    if user is None:
        return "unknown user"
    if user.disabled:
        return "disabled user"
    if not memberships:
        return "user without roles"
    return "wrong password" if not is_right else "refused"


def _signed_in(
    token: str,
    session: ConsoleSession,
    user: UserAccount,
    chosen: UserMembership,
    memberships: dict[str, UserMembership],
) -> SignedIn:
    """Say who is signed in. The provider of OIDC looks after the second factor itself."""
    stage = session.stage
    lacks_factor = chosen.second_factor and user.totp is None and session.method is not SignInMethod.OIDC
    if stage is Stage.FULL and lacks_factor:
        stage = Stage.ENROLMENT
    return SignedIn(
        session_id=session.id,
        user_id=user.id,
        email=user.email,
        name=user.name,
        tenant_id=chosen.tenant_id,
        roles=chosen.roles if stage is Stage.FULL else frozenset(),
        csrf_token=csrf_token(token),
        theme=user.theme,
        time_zone=user.time_zone,
        memberships=memberships,
        stage=stage,
        has_second_factor=user.totp is not None,
    )
