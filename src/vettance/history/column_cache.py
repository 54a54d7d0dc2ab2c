"""Keeps columns in memory between requests, up to a bound, and finds the place of a decision in them."""

from bisect import bisect_left
from collections.abc import Sequence
from typing import Final

import numpy as np

from vettance.fairness.tenant_cache import TenantCache, Usage
from vettance.history.segment import Array, Chunk, ColumnData

#: Five million decisions are 20 MB for each text and 5 MB for the score; the columns in use fit many times.
MEMORY_BYTES_MAX: Final = 256 * 1024 * 1024


def _weigh(_name: str, column: ColumnData) -> int:
    return column.memory_bytes


class ColumnCache:
    """Columns by (tenant, name). The least recently used of the tenant that uses most are dropped first."""

    def __init__(self, memory_bytes_max: int = MEMORY_BYTES_MAX) -> None:
        self._columns = TenantCache[str, ColumnData](memory_bytes_max, _weigh)

    @property
    def usage(self) -> Usage:
        """Return how much is remembered, for the metrics."""
        return self._columns.usage

    def take(self, tenant: str, name: str, layout: "SegmentOffsets") -> ColumnData:
        """Return a column that holds a beginning of these chunks, maybe an empty one, to be added to."""
        column = self._columns.get(tenant, name)
        if column is None or not column.begins(layout.ids, layout.starts):
            column = ColumnData(name)
        # Before it is filled: what is dropped meanwhile must not come back.
        self._columns.put(tenant, name, column)
        return column

    def grown(self, tenant: str, name: str, column: ColumnData) -> None:
        """Measure a column again, and make room for what was added to it."""
        if self._columns.get(tenant, name) is column:
            self._columns.put(tenant, name, column)

    def drop(self, tenant: str) -> None:
        """Drop everything of a tenant whose chunks were made anew under the same numbers."""
        self._columns.drop(tenant)


class SegmentOffsets:
    """Maps places (in all chunks of a tenant, oldest first) to `seq`s (in the log), and back."""

    def __init__(self, chunks: Sequence[Chunk]) -> None:
        self.chunks = chunks
        self.ids = [chunk.id for chunk in chunks]
        self.firsts = np.array([chunk.first_seq for chunk in chunks], np.int64)
        self.starts = np.zeros(len(chunks) + 1, np.int64)
        np.cumsum([chunk.size for chunk in chunks], out=self.starts[1:])
        self.size = int(self.starts[-1])
        #: The newest `seq` in a chunk.
        self.through = self.ids[-1] if chunks else 0
        #: For each chunk, whether it has every `seq` of its range: then a place is found by subtraction.
        self.gapless = [chunk.id - chunk.first_seq + 1 == chunk.size for chunk in chunks]
        self.dense = all(self.gapless)

    def chunk_of_seq(self, seq: int) -> int:
        """Return the index of the first chunk that ends at or after `seq`; their number when none does."""
        return bisect_left(self.ids, seq)

    def chunks_between(self, from_ms: int, to_ms: int) -> list[int]:
        """Return the indexes of the chunks with decisions on events of [from, to)."""
        return [
            index
            for index, chunk in enumerate(self.chunks)
            if chunk.occurred_min_ms < to_ms and chunk.occurred_max_ms >= from_ms
        ]

    def chunks_of_places(self, places: Array) -> Array:
        """Return the index of the chunk that each place is in."""
        return np.searchsorted(self.starts, places, side="right") - 1

    def dense_places(self, seqs: Array) -> Array:
        """Return the places of those of some `seq`s that are in chunks without gaps."""
        inside = seqs[(seqs <= self.through) & (seqs > 0)]
        index = np.searchsorted(np.array(self.ids, np.int64), inside)
        places: Array = self.starts[index] + inside - self.firsts[index]
        found: Array = places[inside >= self.firsts[index]]
        return found
