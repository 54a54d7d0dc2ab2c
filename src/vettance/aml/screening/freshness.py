"""Freshness: which lists were not compared with their publishers' for too long."""

from collections.abc import Sequence
from typing import Final

from vettance.clock import DAY_MS
from vettance.watchlists.sources.source_table import SOURCES
from vettance.watchlists.sql import StoredVersion
from vettance.wire.payload import timestamp

#: Publishers change their lists several times a week; our choice, long enough for a holiday.
STALE_MS: Final = 7 * DAY_MS
#: Ours too: a publisher may be silent for weeks, and a file out of a drawer is to be noticed.
DATA_OLD_MS: Final = 30 * DAY_MS


def age_s(stored: StoredVersion, now_ms: int) -> int:
    """Return the seconds since a list was last found to be what its publisher offers."""
    return max(0, now_ms - stored.checked_at_ms) // 1000


def is_stale(stored: StoredVersion, now_ms: int) -> bool:
    """Tell whether a list was not compared with its publisher's for a week. One's own lists never are."""
    source = SOURCES.get(stored.version.source)
    return source is not None and bool(source.urls) and now_ms - stored.checked_at_ms > STALE_MS


def is_of_old(stored: StoredVersion, now_ms: int) -> bool:
    """Tell whether the data itself is old, by what its publisher states, however lately it was imported."""
    as_of_ms = stored.version.data_as_of_ms
    return as_of_ms is not None and now_ms - as_of_ms > DATA_OLD_MS


def stale_reason(versions: Sequence[StoredVersion], now_ms: int) -> str | None:
    """Say which lists are stale, or None."""
    reasons = []
    if names := [stored.version.source for stored in versions if is_stale(stored, now_ms)]:
        reasons.append(f"not refreshed for {STALE_MS // DAY_MS} days: {', '.join(names)}")
    if old := [days_of(stored) for stored in versions if is_of_old(stored, now_ms)]:
        reasons.append(f"data older than {DATA_OLD_MS // DAY_MS} days: {', '.join(old)}")
    return "; ".join(reasons) or None


def days_of(stored: StoredVersion) -> str:
    """Name a list with the day its publisher states."""
    as_of_ms = stored.version.data_as_of_ms
    return f"{stored.version.source} (of {timestamp(as_of_ms)[:10] if as_of_ms is not None else 'unknown'})"
