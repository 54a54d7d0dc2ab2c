"""Shares a look among those who ask for it meanwhile; nobody is answered by one that began before."""

import asyncio
from collections.abc import Awaitable, Callable


class SharedLook:
    """Looks in turns. A call is answered by a look that began after it, one for all that wait.

    `turn` is held during a look; what must not happen meanwhile holds it, too.
    """

    def __init__(self, look: Callable[[], Awaitable[None]]) -> None:
        self.turn = asyncio.Lock()
        self._look = look
        self._asked = self._done = 0

    async def ask(self) -> None:
        """Look, or wait for a look that begins after this call. Raises what the look does."""
        self._asked += 1
        asked = self._asked
        async with self.turn:
            if self._done >= asked:
                return
            covered = self._asked
            await self._look()
            self._done = covered
