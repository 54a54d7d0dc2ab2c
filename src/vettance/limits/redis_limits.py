"""Throttle and quota in Redis: exact over any number of processes, one script call for both."""

import asyncio
from collections.abc import Iterable
from typing import Any, Final

from vettance.limits.quota import QUOTA_WINDOW_S
from vettance.limits.verdict import Charge, Verdict
from vettance.redis_link.announcements import PREFIX, Announcements
from vettance.redis_link.redis_connection import LuaScript, RedisLine

_CHARGE: Final = LuaScript(__package__, "limits.lua")
_RESTORE: Final = LuaScript(__package__, "quota.lua")
_THROTTLED: Final = 1
_MICRO: Final = 1e6
_ASKED_AT_ONCE: Final = 500  # So that requests get their turn between, and the line has room for them.


class SharedLimits:
    """What `Throttle` and `Quota` say of a request, by counters that every process shares.

    The clock is that of the Redis server, so that processes whose clocks differ count alike.
    """

    def __init__(self, line: RedisLine) -> None:
        self._line = line
        #: By tenant: how often each was announced anywhere, as the newest charge told it.
        self.batches = Announcements(line, "s")
        self.changes = Announcements(line, "c")

    async def charge(
        self, tenant: str, caller: str, throttle: int, quota: int, *, looking: bool = False
    ) -> Charge:
        """Count a request if both limits let it in; with `looking` only tell what they would say.

        A refused request costs nothing. Raises `StateDown` when Redis does not answer.
        """
        args = (b"%d" % throttle, b"%d" % quota, b"1" if looking else b"0")
        return await self._ask(tenant, caller, args, looking=looking)

    async def refund(self, tenant: str, caller: str, throttle: int, quota: int, reset_s: float) -> Charge:
        """Take back a request that was charged, from both limits at once, and tell what they then would say.

        `reset_s` is that of its quota: of an hour that is over nothing is left to be given back. Raises
        `StateDown`.
        """
        hour = int(reset_s // QUOTA_WINDOW_S) - 1
        args = (b"%d" % throttle, b"%d" % quota, b"2", b"%d" % hour)
        return await self._ask(tenant, caller, args, looking=True)

    async def _ask(self, tenant: str, caller: str, args: tuple[bytes, ...], *, looking: bool) -> Charge:
        throttle, quota = int(args[0]), int(args[1])
        marks = self.batches.key(tenant), self.changes.key(tenant)
        keys = (_throttle_key(tenant, caller), _quota_key(tenant), *marks)
        refused, used, free, spent, ends_s, left, batches, changes = await self._line.run(_CHARGE, keys, args)
        self.batches.newest[tenant], self.changes.newest[tenant] = batches, changes
        wait_s = free / _MICRO
        rate = Verdict(
            admitted=refused != _THROTTLED,
            limit=throttle,
            remaining=max(0, throttle - used),
            reset_s=wait_s,
            retry_after_s=wait_s if refused == _THROTTLED else 0.0,
        )
        is_spent = spent >= quota and (looking or refused != 0)
        use = Verdict(
            admitted=not is_spent,
            limit=quota,
            remaining=max(0, quota - spent),
            reset_s=ends_s,
            retry_after_s=left / _MICRO if is_spent else 0.0,
        )
        return Charge(rate, use)

    async def used(self, tenants: Iterable[str]) -> list[tuple[str, int, int]]:
        """Return (tenant, hour, requests counted in it) of those of whom anything is counted."""
        asked = [*tenants]
        counted: list[Any] = []
        for first in range(0, len(asked), _ASKED_AT_ONCE):
            part = asked[first : first + _ASKED_AT_ONCE]
            calls = (self._line.call(b"HMGET", _quota_key(tenant), b"hour", b"used") for tenant in part)
            counted += await asyncio.gather(*calls)
        return [
            (tenant, int(hour), int(used))
            for tenant, (hour, used) in zip(asked, counted, strict=True)
            if hour is not None
        ]

    async def restore(self, tenant: str, hour: int, used: int) -> None:
        """Take up what was counted before Redis lost it; what is counted in a later hour stays."""
        await self._line.run(_RESTORE, (_quota_key(tenant),), (b"%d" % hour, b"%d" % used))


def _throttle_key(tenant: str, caller: str) -> bytes:
    return f"{PREFIX}:{{{tenant}}}:t:{caller}".encode()


def _quota_key(tenant: str) -> bytes:
    return f"{PREFIX}:{{{tenant}}}:q".encode()
