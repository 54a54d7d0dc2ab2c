"""The quota: how much a tenant may ask in an hour of the clock. Pure: the time is an argument."""

from collections.abc import Mapping
from typing import Final, Protocol

from vettance.limits.verdict import Verdict

QUOTA_WINDOW_S: Final = 3600


class CountKeeper(Protocol):
    """Keeps counts when the process is killed."""

    def find(self, tenant: str, hour: int) -> int:
        """Return what a tenant used of an hour (Unix hours)."""

    def note(self, tenant: str, hour: int, used: int) -> None:
        """Note what a tenant has used of an hour."""


class Quota:
    """At most `limit` requests of a tenant in each hour of the wall clock; a refused one costs nothing.

    A `journal` keeps the counts when the process is killed.
    """

    def __init__(self, journal: CountKeeper | None = None) -> None:
        self._journal = journal
        self._hour = 0
        self._used: dict[str, int] = {}

    def admit(self, tenant: str, limit: int, now_unix_s: float) -> Verdict:
        """Count a request of `tenant` if fewer than `limit` were counted in this hour (Unix seconds)."""
        self._turn(int(now_unix_s // QUOTA_WINDOW_S))
        used = self._used.get(tenant)
        if used is None:
            used = self._begin(tenant)
        if used >= limit:
            return self.look(tenant, limit, now_unix_s)
        self._used[tenant] = used + 1
        if self._journal is not None:
            self._journal.note(tenant, self._hour, used + 1)
        # By position: naming the fields costs as much as all the rest.
        return Verdict(True, limit, limit - used - 1, (self._hour + 1) * QUOTA_WINDOW_S, 0.0)  # noqa: FBT003

    def look(self, tenant: str, limit: int, now_unix_s: float) -> Verdict:
        """Tell what `admit` would say, without counting anything."""
        self._turn(int(now_unix_s // QUOTA_WINDOW_S))
        reset_s = (self._hour + 1) * QUOTA_WINDOW_S
        used = self._used.get(tenant)
        remaining = limit - (self._begin(tenant) if used is None else used)
        if remaining <= 0:
            wait_s = reset_s - now_unix_s
            return Verdict(admitted=False, limit=limit, remaining=0, reset_s=reset_s, retry_after_s=wait_s)
        return Verdict(admitted=True, limit=limit, remaining=remaining, reset_s=reset_s, retry_after_s=0.0)

    def refund(self, tenant: str, reset_s: float) -> None:
        """Take back one request counted for `tenant`, because a later check refused it.

        `reset_s` is that of its verdict: of an hour that is over nothing is left to be given back.
        """
        used = self._used.get(tenant, 0)
        if used and reset_s == (self._hour + 1) * QUOTA_WINDOW_S:
            self._used[tenant] = used - 1
            if self._journal is not None:
                self._journal.note(tenant, self._hour, used - 1)

    def used(self) -> tuple[int, dict[str, int]]:
        """Return the hour being counted (hours since the Unix epoch) and what each tenant used of it."""
        return self._hour, dict(self._used)

    def restore(self, hour: int, used: Mapping[str, int]) -> None:
        """Take up what was counted before a restart; an hour older than the one being counted is over."""
        self._turn(hour)
        if hour == self._hour:
            for tenant, count in used.items():
                self._used[tenant] = max(count, self._used.get(tenant, 0), self._begin(tenant))

    def _begin(self, tenant: str) -> int:
        """Return what was counted for a tenant before this process."""
        return self._journal.find(tenant, self._hour) if self._journal is not None else 0

    def _turn(self, hour: int) -> None:
        # A clock set back across the hour goes on counting in the later hour, so that nothing is given back.
        # One set back by more was wrong before, and the hours it named must not lock the tenants out.
        if hour > self._hour or hour < self._hour - 1:
            self._hour = hour
            self._used.clear()
