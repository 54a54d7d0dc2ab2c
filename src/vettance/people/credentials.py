"""Changes of users by themselves: a password by a link or in the profile, the second factor, the looks."""

import asyncio
import functools
import zoneinfo
from collections.abc import Callable
from typing import Final

from vettance import clock
from vettance.db.engine import Lost, Statement, Store
from vettance.errors import NotFound, Unprocessable
from vettance.people import sql
from vettance.people.password import hash_password, refused_because
from vettance.people.session import SignedIn, SignInMethod
from vettance.people.sign_in import NewSession, PasswordCheck, SignIns
from vettance.people.totp import matching_step, new_recovery_codes, new_totp_secret, recovery_digest
from vettance.people.user import UserAccount, is_token, read_name, token_digest
from vettance.tenants.vault import Vault

THEMES: Final = ("auto", "light", "dark")


def check_password(password: str, field: str = "password") -> None:
    """Refuse a password that is not taken. Raises `Unprocessable`."""
    reason = refused_because(password)
    if reason is not None:
        raise Unprocessable("Choose another password.", {field: reason})


def replace_password(user_id: str, hashed: str, now_ms: int, keep_session: str = "") -> list[Statement]:
    """Give a user another password: all links and sessions end, but for the one that is kept."""
    return [
        sql.change_user(user_id, now_ms, password=hashed),
        sql.remove_links_of(user_id),
        sql.end_sessions_of(user_id, keep_session),
    ]


async def time_zones() -> tuple[str, ...]:
    """Return the names of all time zones; they are looked for in files, which takes a tenth of a second."""
    return await asyncio.to_thread(_time_zones)


@functools.cache
def _time_zones() -> tuple[str, ...]:
    return tuple(sorted(zoneinfo.available_timezones()))


class Credentials:
    """Takes what users set for themselves."""

    def __init__(
        self, store: Store, secret: bytes, sign_ins: SignIns, now_ms: Callable[[], int] = clock.now_ms
    ) -> None:
        self._store = store
        self._vault = Vault(secret)
        self._sign_ins = sign_ins
        self._passwords = PasswordCheck()
        self._now_ms = now_ms

    async def link_user(self, token: str) -> UserAccount | None:
        """Return whose link this is, or None where it is taken, too old or nobody's."""
        if not is_token(token):
            return None
        rows = await self._store.read(sql.select_link(token_digest(token)))
        if not rows or rows[0][2] is not None or rows[0][1] <= self._now_ms():
            return None
        user = await self._user(rows[0][0])
        return None if user.disabled else user

    async def enter(self, token: str, password: str, address: str, user_agent: str) -> NewSession:
        """Take a link: the user gets this password and is signed in. It works once.

        Raises `NotFound` for a link that is good no more, `Unprocessable` for a password that is not taken.
        """
        user = await self.link_user(token)
        if user is None:
            raise NotFound
        check_password(password)
        hashed = await asyncio.to_thread(hash_password, password)
        now_ms = self._now_ms()
        taken = sql.take_link(token_digest(token), now_ms)
        changes = [taken, sql.change_user(user.id, now_ms, password=hashed), sql.end_sessions_of(user.id)]
        try:
            return await self._sign_ins.begin_full(user, SignInMethod.LINK, address, user_agent, *changes)
        except Lost:
            raise NotFound from None

    async def change_password(self, signed: SignedIn, old: str, new: str) -> None:
        """Change the password of who is signed in; all their other sessions end. Raises `Unprocessable`."""
        user = await self._user(signed.user_id)
        if user.password is not None and not await self._passwords.verify(user.password, old):
            raise Unprocessable("The password was not changed.", {"old": "is not your password"})
        check_password(new, "new")
        hashed = await asyncio.to_thread(hash_password, new)
        await self._store.write(*replace_password(user.id, hashed, self._now_ms(), signed.session_id))

    async def begin_factor(self, signed: SignedIn) -> bytes:
        """Return the secret of a second factor that is to be confirmed by a code."""
        user = await self._user(signed.user_id)
        if user.totp_new is not None:
            return self._vault.open(user.totp_new, "user_account", user.id, "totp")
        secret = new_totp_secret()
        sealed = self._vault.seal(secret, "user_account", user.id, "totp")
        await self._store.write(sql.change_user(user.id, self._now_ms(), totp_new=sealed))
        return secret

    async def confirm_factor(self, signed: SignedIn, code: str) -> list[str]:
        """Put a second factor in force by its first code; returns its recovery codes, which are shown once.

        Other sessions end. Raises `Unprocessable`.
        """
        user, now_ms = await self._user(signed.user_id), self._now_ms()
        step = None
        if user.totp_new is not None:
            secret = self._vault.open(user.totp_new, "user_account", user.id, "totp")
            step = matching_step(secret, code, now_ms, 0)
        if step is None:
            raise Unprocessable("The second factor is not in force yet.", {"code": "is not valid now"})
        codes = new_recovery_codes()
        await self._store.write(
            sql.change_user(user.id, now_ms, totp=user.totp_new, totp_new=None, totp_step=step),
            *sql.replace_recovery_codes(user.id, [recovery_digest(user.id, one) for one in codes]),
            sql.end_sessions_of(user.id, signed.session_id),
        )
        return codes

    async def remove_factor(self, signed: SignedIn, password: str) -> None:
        """Take the second factor away. Raises `Unprocessable`."""
        user = await self._user(signed.user_id)
        if not await self._passwords.verify(user.password, password):
            raise Unprocessable("The second factor is still in force.", {"password": "is not your password"})
        await self._store.write(
            sql.change_user(user.id, self._now_ms(), totp=None, totp_new=None, totp_step=0),
            *sql.replace_recovery_codes(user.id, ()),
            sql.end_sessions_of(user.id, signed.session_id),
        )

    async def set_profile(self, signed: SignedIn, name: str, theme: str, time_zone: str) -> None:
        """Change the name, and how pages look. Raises `Unprocessable`."""
        faults = {}
        kept = read_name(name)
        if kept is None:
            faults["name"] = "has at most 200 printable characters"
        if theme not in THEMES:
            faults["theme"] = "is auto, light or dark"
        if time_zone not in await time_zones():
            faults["timeZone"] = "is not the name of a time zone, such as Europe/Berlin"
        if faults:
            raise Unprocessable("The profile was not changed.", faults)
        changes = {"name": kept, "theme": theme, "time_zone": time_zone}
        await self._store.write(sql.change_user(signed.user_id, self._now_ms(), **changes))

    async def recovery_codes_left(self, signed: SignedIn) -> int:
        """Return how many recovery codes are left."""
        [(count,)] = await self._store.read(sql.count_recovery_codes(signed.user_id))
        return int(count)

    async def _user(self, user_id: str) -> UserAccount:
        rows = await self._store.read(sql.select_user(user_id))
        if not rows:
            raise NotFound
        return sql.user_of(rows[0])
