"""Begins to record a tenant's features, and adds those that its later events make possible."""

import asyncio
import contextlib
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from vettance.db.engine import Store
from vettance.errors import Conflict
from vettance.governance.checked_features import FeatureCall, check_feature_document
from vettance.learning import sql
from vettance.learning.change_features import (
    EVENTS_LOOKED_THROUGH,
    FeatureSteps,
    count_members,
    find_features,
    find_in_force,
    find_rules_and_serving,
)
from vettance.models.discovery import features_of
from vettance.models.feature_set import FEATURES_MAX, Feature, write_feature_set
from vettance.rules.version import SERVICE

_FOUND: Final = "Found in the newest events."
_FOUND_IN_IMPORT: Final = "Found in events that were imported with labels."
_FOUND_LATER: Final = "Found in events that came later."
_WAIT_MS_MIN: Final = 1_000
_WAIT_MS_MAX: Final = 64_000


class _Look(NamedTuple):
    """How many events were looked through, when they are counted again, and how long that waits."""

    events: int
    due_ms: int
    wait_ms: int


class FeatureGrowth:
    """Looks for features again while a tenant is young: whenever its events have doubled.

    A first label may come after a handful of events, in which hardly any key has come back yet. The set only
    grows, so that decisions recorded before still say something. A set that a person has put stays as it is.
    """

    def __init__(self, store: Store, now_ms: Callable[[], int]) -> None:
        self._store = store
        self._now_ms = now_ms
        self._looks: dict[str, _Look] = {}

    async def begin(self, tenant: str) -> bool:
        """Have the features of the newest events recorded from now on; False where there are no events."""
        events = await self._count(tenant)
        if not events or not (found := await find_features(self._store, tenant)):
            return False
        await self._put(tenant, "", found, _FOUND, over=0)
        self._looks[tenant] = _Look(events, self._now_ms() + _WAIT_MS_MIN, _WAIT_MS_MIN)
        return True

    async def begin_by(self, tenant: str, bodies: Sequence[bytes]) -> None:
        """Have the features of events recorded that are about to be decided, as they were sent."""
        found = features_of((await count_members(bodies)).members())
        await self._put(tenant, "", found, _FOUND_IN_IMPORT, over=0)
        self._looks[tenant] = _Look(len(bodies), self._now_ms() + _WAIT_MS_MIN, _WAIT_MS_MIN)

    def look_soon(self, tenant: str) -> None:
        """Count the events of a tenant at the next look: something has happened there."""
        if (known := self._looks.get(tenant)) is not None:
            self._looks[tenant] = _Look(known.events, 0, _WAIT_MS_MIN)

    async def look(self, tenant: str) -> None:
        """Add features where a young tenant's events have doubled since the last look."""
        now_ms = self._now_ms()
        known = self._looks.get(tenant, _Look(0, 0, _WAIT_MS_MIN))
        if known.events >= EVENTS_LOOKED_THROUGH or (0 <= known.due_ms - now_ms <= _WAIT_MS_MAX):
            return
        events, wait_ms = await self._count(tenant), _WAIT_MS_MIN
        if not known.events and events == EVENTS_LOOKED_THROUGH:
            pass  # Not young when this process begins to watch it: trainings look.
        elif events == EVENTS_LOOKED_THROUGH or events >= max(2 * known.events, 1):
            await self.grow(tenant)
        else:
            events, wait_ms = known.events, min(2 * known.wait_ms, _WAIT_MS_MAX)
        self._looks[tenant] = _Look(events, now_ms + wait_ms, wait_ms)

    async def grow(self, tenant: str) -> None:
        """Add what comes along for the newest events to a set that only the service has made."""
        in_force = await find_in_force(self._store, tenant)
        if in_force is None or in_force.version.author != SERVICE:
            return
        known = in_force.features.features
        names = {one.name for one in known}
        added = [one for one in await find_features(self._store, tenant) if one.name not in names]
        more = added[: FEATURES_MAX - len(known)]
        if not more:
            return
        wider = [*known, *more]
        # What would be too much together with the rules is not added: then no feature could be computed.
        call = FeatureCall("", tuple(wider), *await find_rules_and_serving(self._store, tenant))
        if (await asyncio.to_thread(check_feature_document, call)).is_good:
            await self._put(tenant, in_force.document, wider, _FOUND_LATER, over=in_force.version.version)

    async def _put(self, tenant: str, document: str, features: list[Feature], note: str, over: int) -> None:
        steps = FeatureSteps(self._store, tenant, SERVICE, self._now_ms)
        # Somebody who puts features of their own at the same moment is first.
        with contextlib.suppress(Conflict):
            await steps.put(document, write_feature_set(features), note, over=over)

    async def _count(self, tenant: str) -> int:
        """Return how many events a tenant has, as far as they are looked through."""
        rows = await self._store.read(sql.count_recent_events(tenant, EVENTS_LOOKED_THROUGH))
        return int(rows[0][0])
