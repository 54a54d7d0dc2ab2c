"""Presence: who remembers alone what happened before is the only one at its database, and the others know."""

import asyncio
from collections.abc import Callable
from typing import Any, Final, Self

from vettance.db.engine import StoreDown
from vettance.db.postgres_link import ERRORS, connect, part
from vettance.telemetry.logs import logger

#: How often a process makes sure that its place is still its own, or asks for it again.
LOOK_S: Final = 1.0
#: How long a start waits for a process that is about to stop; that takes 15 s at most.
WAIT_S: Final = 20.0
_ANSWER_S_MAX: Final = 3.0
_ALONE: Final = "SELECT pg_try_advisory_lock($1)"
_TOGETHER: Final = "SELECT pg_try_advisory_lock_shared($1)"
# The number is "place" in ASCII.
_PLACE: Final = 0x706C616365

_log = logger()


class ExclusiveUse:
    """The place of a process at a database: one that counts `alone`, or one of any that count together.

    It is a lock that PostgreSQL takes back with the connection, exclusive for a process that works alone.
    Make one with `await ExclusiveUse.take(...)`; run `keep()` next to the work, then `leave()`.
    """

    def __init__(self, url: str, *, alone: bool) -> None:
        self._url = url
        self._ask = _ALONE if alone else _TOGETHER
        self._refusal = (
            "other processes are at work on this database, and without VETTANCE_REDIS_URL this one would "
            "count alone: set it for all of them, or stop the others (docs/postgresql.md)"
            if alone
            else "a process without VETTANCE_REDIS_URL is at work on this database and counts alone: set it "
            "there too, or stop that one (docs/postgresql.md)"
        )
        self._connection: Any = None
        #: Why this process must not answer, for readiness; None when all is well.
        self.fault: str | None = None

    @classmethod
    async def take(
        cls,
        url: str,
        *,
        alone: bool,
        wait_s: float = WAIT_S,
        refusal: str | None = None,
        tell: Callable[[str], object] | None = None,
    ) -> Self:
        """Take a place, waiting so long for others to leave; tells at once what it waits for.

        Raises `StoreDown`, with the `refusal`, or with what a server does about it, when others are there who
        do not count with this one.
        """
        presence = cls(url, alone=alone)
        refusal = refusal or presence._refusal
        loop = asyncio.get_running_loop()
        until_s = loop.time() + wait_s
        while not await presence._try():
            if loop.time() >= until_s:
                await presence.leave()
                raise StoreDown(refusal)
            if tell is not None:
                tell(f"{refusal}; waiting up to {wait_s:g} s for them to stop")
                tell = None
            await asyncio.sleep(min(LOOK_S, wait_s))
        return presence

    async def keep(self) -> None:
        """Hold the place, for ever; where the database took it back, take it again, or say who has it."""
        while True:
            await asyncio.sleep(LOOK_S)
            try:
                is_ours = await self._try()
            except StoreDown:
                continue  # That the store is away is for others to say.
            if not is_ours and self.fault is None:
                _log.error("counts_alone_among_others", reason=self._refusal)
            self.fault = None if is_ours else self._refusal

    async def leave(self) -> None:
        """Give the place up."""
        connection, self._connection = self._connection, None
        if connection is not None:
            await part(connection)

    async def _try(self) -> bool:
        """Tell whether the place is ours, asking for it where there is no connection that holds it."""
        try:
            if self._connection is not None:
                async with asyncio.timeout(_ANSWER_S_MAX):
                    await self._connection.fetchval("SELECT 1")
                return True
            # Before the first migration there is no role for the daily work; a lock needs none.
            connection = await connect(self._url, statement_s_max=_ANSWER_S_MAX, writes=False, plain=True)
            try:
                async with asyncio.timeout(_ANSWER_S_MAX):
                    is_ours = bool(await connection.fetchval(self._ask, _PLACE))
            except BaseException:
                connection.terminate()
                raise
        except ERRORS as error:
            await self.leave()
            raise StoreDown(f"PostgreSQL cannot be asked for a place ({type(error).__name__})") from None
        if is_ours:
            self._connection = connection
        else:
            await part(connection)
        return is_ours
