"""Duty: what exactly one process of a deployment does at a time, handed over when that one is gone."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from typing import Any, Final

from vettance.db.engine import StoreDown
from vettance.db.postgres_link import ERRORS, connect, part
from vettance.telemetry.logs import logger

#: How often a process that is not on duty asks for it, and one that is makes sure that it still is.
LOOK_S: Final = 1.0
_ANSWER_S_MAX: Final = 3.0
_ASK: Final = "SELECT pg_try_advisory_lock($1)"
# The number is "duty" in ASCII.
_DUTY: Final = 0x64757479

_log = logger()


async def keep_duty(url: str, work: Callable[[], Awaitable[None]]) -> None:
    """Do the work whenever this process is on duty, for ever; it is cancelled when the duty is lost.

    Being on duty is a lock that PostgreSQL takes back with the connection. A process that is cut off may
    overlap with the next one for a moment, so whatever is done must be settled under a condition. Work that
    fails has ended when the duty is given up, and the next leader starts again.
    """
    while True:
        with contextlib.suppress(StoreDown, *ERRORS):
            await _serve(url, work)
        await asyncio.sleep(LOOK_S)


async def _serve(url: str, work: Callable[[], Awaitable[None]]) -> None:
    """Wait for the duty, and do the work until it ends. Raises what the driver does when the duty is lost."""
    connection = await connect(url, statement_s_max=_ANSWER_S_MAX, writes=False)
    try:
        while not await _answer(connection, _ASK, _DUTY):  # noqa: ASYNC110 - nobody tells us
            await asyncio.sleep(LOOK_S)
        working = asyncio.create_task(_told(work))
        try:
            while not working.done():
                await asyncio.wait((working,), timeout=LOOK_S)
                await _answer(connection, "SELECT 1")
        finally:
            working.cancel()
            await asyncio.gather(working, return_exceptions=True)
    finally:
        await part(connection)


async def _told(work: Callable[[], Awaitable[None]]) -> None:
    """Do the work, and say so when it fails."""
    try:
        await work()
    except Exception:  # noqa: BLE001  A duty that ended silently would be done by nobody.
        _log.exception("duty_failed")


async def _answer(connection: Any, text: str, *args: Any) -> Any:
    """Ask the server; one that went away without a word has not answered in time."""
    async with asyncio.timeout(_ANSWER_S_MAX):
        return await connection.fetchval(text, *args)
