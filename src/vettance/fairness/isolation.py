"""Isolate: work that fails for one tenant, subject or row is tried again later, and holds up no other.

Every loop of background work over many of them goes through here:

    for tenant in self._isolation.due(tenants):
        with self._isolation.of(tenant):
            await self._work(tenant)
"""

import contextlib
import time
import weakref
from collections.abc import Callable, Iterable, Iterator
from typing import Final, NamedTuple

from vettance.db.engine import StoreDown
from vettance.telemetry.logs import logger
from vettance.telemetry.meter_table import WORKS

#: The pause after the first failure; each further one doubles it. What failed by chance is done soon after.
RETRY_S_MIN: Final = 1.0
#: The longest pause: what somebody has mended is done within this time, and a lasting failure fills no log.
RETRY_S_MAX: Final = 300.0
#: The pause after the store was away. It ends the round for all, and one whose questions take too long must
#: not be the first to be asked in every round.
DOWN_S: Final = 2.0

_log = logger()


class WorkFailure(NamedTuple):
    """What failed, for whom, how often in a row, and when it is tried again (seconds of the loop's clock)."""

    work: str
    key: str
    tries: int
    due_s: float
    #: The class of the error. Its text may repeat somebody's data.
    error: str


#: Those of this process, so that metrics and the doctor learn of every one.
_every: "weakref.WeakSet[Isolation]" = weakref.WeakSet()


class Isolation:
    """Remembers for whom one kind of work (one of `WORKS`) failed, for the log, metrics and the doctor.

    A key is the id of a tenant; of what belongs to a tenant it is that id, a colon and the id of the rest.
    """

    def __init__(
        self, work: str, now_s: Callable[[], float] = time.monotonic, retry_s_max: float = RETRY_S_MAX
    ) -> None:
        if work not in WORKS:
            raise ValueError(f"{work} is missing among the kinds of work")
        self.work = work
        self._retry_s_max = retry_s_max
        self._now_s = now_s
        self._failing: dict[str, WorkFailure] = {}
        self._down: dict[str, float] = {}
        #: Failures since the start.
        self.failures = 0
        _every.add(self)

    @property
    def failing(self) -> tuple[WorkFailure, ...]:
        """For whom the work failed when it was last tried."""
        return tuple(self._failing.values())

    def is_due(self, key: str) -> bool:
        """Tell whether the work is to be tried: it did not fail, or long enough ago."""
        now_s = self._now_s()
        failure = self._failing.get(key)
        if failure is not None and now_s < failure.due_s:
            return False
        return self._down.get(key, now_s) <= now_s

    def due(self, keys: Iterable[str]) -> Iterator[str]:
        """Return those for whom the work is to be tried now, in their order."""
        return (key for key in tuple(keys) if self.is_due(key))

    def hurry(self, key: str) -> None:
        """Have the work be due at once: something has changed since it failed."""
        self._down.pop(key, None)
        if (failure := self._failing.get(key)) is not None:
            self._failing[key] = failure._replace(due_s=self._now_s())

    def forget(self, key: str) -> None:
        """Let go of a failure whose work is wanted no more."""
        self._failing.pop(key, None)
        self._down.pop(key, None)

    @contextlib.contextmanager
    def of(self, key: str) -> Iterator[None]:
        """Keep what fails in this block from ending the loop around it; it is counted, logged and remembered.

        Raises `StoreDown`, which concerns everybody: the loop waits until the store is back.
        """
        try:
            yield
        except StoreDown:
            self._down[key] = self._now_s() + DOWN_S
            raise
        except Exception as error:  # noqa: BLE001  What fails for one must not keep the others waiting.
            self.failed(key, error)
        else:
            self.forget(key)

    def failed(self, key: str, error: Exception) -> None:
        """Count, log and remember what failed; for who catches it otherwise than by `of`."""
        before = self._failing.get(key)
        tries = 1 if before is None else before.tries + 1
        # Thirty doublings are beyond any longest pause, and no number grows without end.
        retry_s = min(RETRY_S_MIN * 2 ** min(tries - 1, 30), self._retry_s_max)
        self._failing[key] = WorkFailure(self.work, key, tries, self._now_s() + retry_s, type(error).__name__)
        self._down.pop(key, None)
        self.failures += 1
        _log.error("work_failed", work=self.work, of=key, tries=tries, retry_s=retry_s, exc_info=error)


def failing() -> list[WorkFailure]:
    """Return everything that fails in this process now."""
    return sorted(failure for one in tuple(_every) for failure in one.failing)


def failures() -> dict[str, int]:
    """Return how often each kind of work has failed in this process since its start."""
    counts: dict[str, int] = {}
    for one in tuple(_every):
        counts[one.work] = counts.get(one.work, 0) + one.failures
    return counts
