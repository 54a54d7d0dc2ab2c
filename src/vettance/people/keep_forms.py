"""Kept forms: what somebody sent after their session had ended, for nobody but them to see again."""

from collections.abc import Callable

from vettance import clock
from vettance.db.engine import Store
from vettance.people import session_sql, sql
from vettance.people.session import ConsoleSession, SessionLife, Stage
from vettance.people.user import is_token, token_digest
from vettance.tenants.vault import UnsealFailure, Vault


class KeptForms:
    """Keeps the last form of each session that was over when it came; it goes with the session's row.

    Only whose session it was gets it back, by another session of theirs.
    """

    def __init__(
        self, store: Store, secret: bytes, life: SessionLife, now_ms: Callable[[], int] = clock.now_ms
    ) -> None:
        self._store = store
        self._vault = Vault(secret)
        self._life = life
        self._now_ms = now_ms

    async def session_over(self, token: str) -> ConsoleSession | None:
        """Return the session of a cookie whose time is over; None for one that somebody ended, or unknown."""
        if not is_token(token):
            return None
        rows = await self._store.read(session_sql.select_session(token_digest(token)))
        if not rows:
            return None
        session, user = session_sql.session_of(rows[0]), sql.user_of(rows[0][session_sql.SESSION_WIDTH :])
        is_over = session.is_over(self._life, self._now_ms())
        return session if is_over and session.stage is Stage.FULL and not user.disabled else None

    async def keep(self, session: ConsoleSession, form: bytes) -> None:
        """Keep a form of a session that is over, in place of the one before."""
        sealed = self._vault.seal(form, "console_session", session.digest, "kept_form")
        await self._store.write(session_sql.keep_form(session.digest, sealed))

    async def find(self, user_id: str, session_id: str) -> bytes | None:
        """Return the form that was kept of a session of a user."""
        rows = await self._store.read(session_sql.select_kept_form(user_id, session_id))
        if not rows:
            return None
        digest, sealed = rows[0]
        try:
            return self._vault.open(sealed, "console_session", digest, "kept_form")
        except UnsealFailure:
            return None

    async def forget(self, user_id: str, session_id: str) -> None:
        """Forget the form of a session of a user: it was sent again."""
        await self._store.write(session_sql.forget_kept_form(user_id, session_id))
