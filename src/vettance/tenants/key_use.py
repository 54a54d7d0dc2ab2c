"""Key use: when each key last took a request, written down once a minute, so that idle keys are found."""

import asyncio
import contextlib
from typing import Final

from vettance import clock
from vettance.db.engine import Store, StoreDown
from vettance.fairness.isolation import Isolation
from vettance.tenants import sql
from vettance.tenants.keyring import KeyRing

#: People ask by the day; one write a minute costs nothing.
PAUSE_S: Final = 60.0


async def record_use(store: Store, keys: KeyRing) -> None:
    """Write down which keys were used since the last call. Raises `StoreDown`."""
    if used := keys.take_used():
        await store.write(*(sql.note_key_use(key_id, clock.now_ms()) for key_id in used))


async def keep_recording(store: Store, keys: KeyRing, pause_s: float = PAUSE_S) -> None:
    """Write down which keys are used, for ever."""
    isolation = Isolation("key_use")
    while True:
        await asyncio.sleep(pause_s)
        with contextlib.suppress(StoreDown), isolation.of(""):
            await record_use(store, keys)
