"""Throttle and quota counted by one process alone, behind the same calls as those in Redis."""

import time
from collections.abc import Callable

from vettance.limits.quota import Quota
from vettance.limits.throttle import Throttle
from vettance.limits.verdict import Charge


class OwnLimits:
    """What `SharedLimits` is for several processes. Its calls are coroutines that never wait.

    `unix_s` is the clock of the quota's hours, `mono_s` that of the throttle's minutes.
    """

    def __init__(
        self,
        throttle: Throttle,
        quota: Quota,
        unix_s: Callable[[], float] = time.time,
        mono_s: Callable[[], float] = time.monotonic,
    ) -> None:
        self._throttle = throttle
        self._quota = quota
        self._unix_s = unix_s
        self._mono_s = mono_s

    async def charge(
        self, tenant: str, caller: str, throttle: int, quota: int, *, looking: bool = False
    ) -> Charge:
        """Count a request if both limits let it in; with `looking` only say what they would answer.

        A refused request costs nothing.
        """
        mono_s = self._mono_s()
        if looking:
            rate = self._throttle.look(caller, throttle, mono_s)
        elif (rate := self._throttle.admit(caller, throttle, mono_s)).admitted:
            use = self._quota.admit(tenant, quota, self._unix_s())
            if not use.admitted:
                self._throttle.refund(caller)
                rate = self._throttle.look(caller, throttle, mono_s)
            return Charge(rate, use)
        return Charge(rate, self._quota.look(tenant, quota, self._unix_s()))

    async def refund(self, tenant: str, caller: str, throttle: int, quota: int, reset_s: float) -> Charge:
        """Take a charged request back from both limits, and say what they then answer.

        `reset_s` is that of its quota: from an hour that is over nothing is given back.
        """
        self._throttle.refund(caller)
        self._quota.refund(tenant, reset_s)
        rate = self._throttle.look(caller, throttle, self._mono_s())
        return Charge(rate, self._quota.look(tenant, quota, self._unix_s()))
