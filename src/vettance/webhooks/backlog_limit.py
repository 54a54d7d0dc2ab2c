"""Bound: what waits for one tenant takes so much room and no more; the oldest is given up, and said to be."""

import asyncio
import contextlib
from collections import Counter
from typing import Final

from vettance.db.engine import Lost, Store, StoreDown
from vettance.fairness.isolation import Isolation
from vettance.telemetry.logs import logger
from vettance.telemetry.meters import Meters
from vettance.webhooks import delivery_queue

#: Given up in one commit, with a pause after it: what else is to be written has its turn in between.
_GIVEN_UP_ROWS: Final = 250
_PAUSE_S: Final = 0.02
# So that a tenant with millions too many does not keep the next tenant waiting; it comes again.
_ROUNDS_MAX: Final = 400

_log = logger()


async def bound_backlogs(store: Store, isolation: Isolation, meters: Meters, now_ms: int) -> None:
    """Give up the oldest of what waits for tenants for whom too much does.

    That takes seconds where much is to be given up: it is for a task of its own, and raises nothing.
    """
    try:
        for (tenant,) in await store.read(delivery_queue.select_overfull()):
            if isolation.is_due(tenant):
                with isolation.of(tenant):
                    await _bound(store, meters, tenant, now_ms)
    except StoreDown:
        pass  # The next look is soon.
    except Exception:  # noqa: BLE001 - the next look may go well
        _log.exception("webhook_backlogs_not_bounded")


async def _bound(store: Store, meters: Meters, tenant: str, now_ms: int) -> None:
    total = 0
    # Only this looks at all that waits; what is given up is found by its number from here on.
    last = (await store.read(delivery_queue.select_last_beyond(tenant)))[0][0]
    for _ in range(_ROUNDS_MAX if last is not None else 0):
        rows = await store.read(delivery_queue.select_waiting_through(tenant, last, _GIVEN_UP_ROWS))
        if not rows:
            break
        counts = Counter(subscription for _, subscription in rows)
        notes = [delivery_queue.note_overflow(one, count, now_ms) for one, count in counts.items()]
        # Where one is claimed meanwhile, none is given up: what is counted is what was.
        with contextlib.suppress(Lost):
            await store.write(delivery_queue.give_up([seq for seq, _ in rows], now_ms), *notes)
            meters.overflowed(len(rows))
            total += len(rows)
        await asyncio.sleep(_PAUSE_S)
    if total:
        _log.warning("webhook_backlog_bounded", tenant=tenant, deliveries=total)
