"""New keys: the store is asked, within bounds, for a key that the mirror does not know yet."""

import time
from collections.abc import Awaitable, Callable
from typing import Final

from vettance.db.engine import Store, StoreDown
from vettance.fairness.skipped_rows import Skipped
from vettance.telemetry.meter_table import Rows
from vettance.tenants import sql
from vettance.tenants.keyring import KeyRing
from vettance.tenants.tenant import is_key, key_digest

#: Questions a second. A stranger who guesses keys costs the store no more than this; a key that was made
#: during such a flood is known at the next look for changes, a second later.
LOOKS_PER_S: Final = 20
#: Requests that may wait for the store at once.
WAITING_MAX: Final = 8


async def load_keys(store: Store, keys: KeyRing, skipped: Skipped | None = None) -> None:
    """Take over every tenant and key that the store has now. Raises `StoreDown`.

    A row that cannot be read opens nothing and shuts out nobody else.
    """
    skipped = skipped or Skipped()
    tenants = await store.read(sql.select_tenants())
    found = await store.read(sql.select_keys())
    keys.replace(skipped.each(Rows.TENANT, tenants, sql.tenant_of), skipped.each(Rows.KEY, found, sql.key_of))


class NewKeys:
    """Finds keys that are in the store and not yet in the mirror.

    `on_found` is called with the tenant of such a key: what else is mirrored of it may be missing as well.
    """

    def __init__(
        self,
        store: Store,
        pepper: bytes,
        keys: KeyRing,
        on_found: Callable[[str], Awaitable[None]],
        now_s: Callable[[], float] = time.monotonic,
    ) -> None:
        self._store = store
        self._pepper = pepper
        self._keys = keys
        self._on_found = on_found
        self._now_s = now_s
        self._waiting = 0
        self._allowance = float(LOOKS_PER_S)
        self._counted_s = now_s()

    async def find(self, api_key: str) -> bool:
        """Tell whether a key that the mirror does not know is good; it is in the mirror then.

        False as well when too many have asked or the store does not answer.
        """
        if not is_key(api_key) or not self._take():
            return False
        self._waiting += 1
        try:
            rows = await self._store.read(sql.select_key_by_digest(key_digest(self._pepper, api_key)))
            for (tenant,) in rows:
                await load_keys(self._store, self._keys)
                await self._on_found(tenant)
            return bool(rows)
        except StoreDown:
            return False
        finally:
            self._waiting -= 1

    def _take(self) -> bool:
        """Take a question out of the allowance of this second (a token bucket)."""
        now_s = self._now_s()
        earned = (now_s - self._counted_s) * LOOKS_PER_S
        self._allowance = min(self._allowance + earned, float(LOOKS_PER_S))
        self._counted_s = now_s
        if self._allowance < 1 or self._waiting >= WAITING_MAX:
            return False
        self._allowance -= 1
        return True
