"""Bound: what waits for one tenant takes so much room and no more; the oldest is given up, and said to be."""

from collections import Counter
from typing import Final

from vettance.db.engine import Store
from vettance.fairness.isolation import Isolation
from vettance.telemetry.logs import logger
from vettance.telemetry.meters import Meters
from vettance.webhooks import delivery_queue

_GIVEN_UP_ROWS: Final = 500
# So that a tenant with a million too many does not keep the sweep from the next tenant; it comes again.
_ROUNDS_MAX: Final = 20

_log = logger()


async def bound_backlogs(store: Store, isolation: Isolation, meters: Meters, now_ms: int) -> None:
    """Give up the oldest of what waits for tenants for whom too much does. Raises `StoreDown`."""
    for (tenant,) in await store.read(delivery_queue.select_overfull()):
        if isolation.is_due(tenant):
            with isolation.of(tenant):
                await _bound(store, meters, tenant, now_ms)


async def _bound(store: Store, meters: Meters, tenant: str, now_ms: int) -> None:
    total = 0
    for _ in range(_ROUNDS_MAX):
        rows = await store.read(delivery_queue.select_beyond(tenant, _GIVEN_UP_ROWS))
        if not rows:
            break
        counts = Counter(subscription for _, subscription in rows)
        notes = [delivery_queue.note_overflow(one, count, now_ms) for one, count in counts.items()]
        given_up = (await store.write(delivery_queue.give_up([seq for seq, _ in rows], now_ms), *notes))[0]
        meters.overflowed(given_up)
        total += given_up
    if total:
        _log.warning("webhook_backlog_bounded", tenant=tenant, deliveries=total)
