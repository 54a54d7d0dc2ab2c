"""The rows of `vettance watchlist list`: what is loaded, of which day, and how long ago it was compared."""

from typing import Any

from vettance.clock import HOUR_MS
from vettance.watchlists.list_store import EVERYBODY
from vettance.watchlists.sources.source_table import SOURCES
from vettance.watchlists.sql import StoredVersion
from vettance.wire.payload import timestamp


def listed(stored: StoredVersion, now_ms: int) -> dict[str, Any]:
    """Describe one version.

    `dataAsOf` is what the publisher states, None where its files state nothing; `ageHours` counts from the
    last import or refresh.
    """
    version = stored.version
    as_of_ms = version.data_as_of_ms
    return {
        "source": version.source,
        "tenant": stored.owner if stored.owner != EVERYBODY else None,
        "code": SOURCES[version.source].code,
        "version": version.version,
        "current": stored.current,
        "entities": version.entities,
        "names": version.names,
        "dataAsOf": timestamp(as_of_ms) if as_of_ms is not None else None,
        "dataAgeHours": _hours(as_of_ms, now_ms) if as_of_ms is not None else None,
        "importedAt": timestamp(stored.imported_at_ms),
        "ageHours": _hours(stored.checked_at_ms, now_ms),
    }


def for_people(row: dict[str, Any]) -> dict[str, Any]:
    """Write a row for a table: an age that nobody knows is no empty cell, and each age says of what it is."""
    shown = row | {name: "unknown" for name in ("dataAsOf", "dataAgeHours") if row[name] is None}
    shown["importAgeHours"] = shown.pop("ageHours")
    return shown


def _hours(since_ms: int, now_ms: int) -> float:
    return round(max(0, now_ms - since_ms) / HOUR_MS, 1)
