"""Freshness: which lists were not compared with their publishers' for too long."""

from collections.abc import Sequence
from typing import Final

from vettance.clock import DAY_MS
from vettance.watchlists.sources.table import SOURCES
from vettance.watchlists.sql import StoredVersion

#: Publishers change their lists several times a week; our choice, long enough for a holiday.
STALE_MS: Final = 7 * DAY_MS


def age_s(stored: StoredVersion, now_ms: int) -> int:
    """Return the seconds since a list was last found to be what its publisher offers."""
    return max(0, now_ms - stored.checked_at_ms) // 1000


def is_stale(stored: StoredVersion, now_ms: int) -> bool:
    """Tell whether a list was not compared with its publisher's for a week. One's own lists never are."""
    source = SOURCES.get(stored.version.source)
    return source is not None and bool(source.urls) and now_ms - stored.checked_at_ms > STALE_MS


def stale_reason(versions: Sequence[StoredVersion], now_ms: int) -> str | None:
    """Say which lists are stale, or None."""
    names = [stored.version.source for stored in versions if is_stale(stored, now_ms)]
    if not names:
        return None
    return f"not refreshed for {STALE_MS // DAY_MS} days: {', '.join(names)}"
