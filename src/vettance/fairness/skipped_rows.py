"""Skipped: rows of the store that cannot be read again are left out, counted, and logged by their id.

A row that was written by another version, or damaged, must keep no process from its start and no other row
from being read.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Final, TypeVar

from vettance.db.engine import Row
from vettance.telemetry.logs import logger
from vettance.telemetry.meter_table import Rows
from vettance.telemetry.meters import Meters

#: Rows of one kind that a process logs one by one: enough to find the cause, too few to fill a disk.
LOGGED_MAX: Final = 200

_log = logger()

Made = TypeVar("Made")


class Skipped:
    """What a process has left out since its start."""

    def __init__(self, meters: Meters | None = None) -> None:
        self._meters = meters or Meters()
        self._counts = dict.fromkeys(Rows, 0)

    def note(self, rows: Rows, tenant: str, row: str, error: Exception) -> None:
        """Take note of a row that could not be read. Its content is not logged: it is somebody's data."""
        self._counts[rows] += 1
        self._meters.skipped(rows)
        count = self._counts[rows]
        if count <= LOGGED_MAX:
            _log.warning("row_skipped", rows=rows, tenant=tenant, id=row, reason=type(error).__name__)
        if count == LOGGED_MAX:
            _log.warning("row_skipped", rows=rows, reason="There are more; the metric counts them.")

    def each(self, rows: Rows, found: Iterable[Row], make: Callable[[Row], Made]) -> Iterator[Made]:
        """Make a value of each row, but for those that cannot be read; a row begins with its id."""
        for row in found:
            try:
                yield make(row)
            except Exception as error:  # noqa: BLE001  One row must not hide the others.
                self.note(rows, "", row[0], error)

    def count(self, rows: Rows) -> int:
        """Return how many rows of a kind were left out."""
        return self._counts[rows]
