"""Unserved: a store file on which no server is at work, for who must have it alone."""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Final

from vettance.db.checkpoint import FileLock
from vettance.db.engine import StoreDown

#: How long a start waits for a server that is about to stop.
WAIT_S: Final = 5.0
_LOOK_S: Final = 0.05

#: Called with a sentence that says what is waited for.
Tell = Callable[[str], object]


@contextlib.asynccontextmanager
async def unserved(
    path: Path, refusal: str, wait_s: float = WAIT_S, tell: Tell | None = None
) -> AsyncIterator[None]:
    """Keep servers off a store file while the block lasts, its folder being there.

    Waits so long for one to stop, and tells at once what it waits for. Raises `StoreDown` with the `refusal`
    when it does not, and when the lock file next to it cannot be opened.
    """
    lock = FileLock(path)
    until_s = time.monotonic() + wait_s
    try:
        is_ours = lock.take()
        if not is_ours and tell is not None:
            tell(f"{path.parent}: {refusal}; waiting up to {wait_s:g} s for it to stop")
        while not is_ours and time.monotonic() < until_s:
            await asyncio.sleep(_LOOK_S)
            is_ours = lock.take()
    except OSError as error:
        raise StoreDown(f"{path.parent}: {error.strerror}") from None
    if not is_ours:
        raise StoreDown(f"{path.parent}: {refusal}")
    try:
        yield
    finally:
        lock.release()
