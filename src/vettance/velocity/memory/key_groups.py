"""Keys: what is remembered under one group of a plan, packed for ordinary keys, by series for busy ones."""

from array import array
from typing import cast

from vettance.velocity.memory import packed_record
from vettance.velocity.memory.plan_codegen import Words, Written
from vettance.velocity.memory.series import ObservedSeries
from vettance.velocity.plan_layout import SERIES_BITS
from vettance.velocity.port import Value

Busy = list[ObservedSeries | None]


class GroupKeys:
    """All keys of one group: by fingerprint a packed record, or the series of a busy key."""

    __slots__ = (
        "ask",
        "begin",
        "busy",
        "entries",
        "group",
        "next_sweep_ms",
        "observe_busy",
        "oldest_ms",
        "packed_bytes",
        "raw",
        "records",
        "waiting",
    )

    def __init__(self, written: Written) -> None:
        self.group = written.group
        self.begin = written.begin
        self.ask = written.ask
        self.observe_busy = written.busy
        self.records: dict[int, bytes | Busy] = {}
        self.entries = 0
        self.packed_bytes = 0
        self.busy = 0
        self.raw = 0  # entries of busy keys, one for each series
        # The sweep: the keys still to look at, and the earliest high water at which any survivor can expire.
        self.waiting = array("q")
        self.next_sweep_ms: float = float("-inf")
        self.oldest_ms: float = float("inf")

    def observe(
        self, key: int, at_ms: int, high_ms: int, lanes: int, words: Words, answers: list[Value]
    ) -> int:
        """Answer the group's questions about a key, record the event in `lanes`; return the inexact bits."""
        record = self.records.get(key)
        if at_ms <= high_ms - self.group.kept_ms:
            lanes = 0  # Older than anything that is kept.
        if record is None:
            if lanes:
                self.records[key] = made = self.begin(at_ms, lanes, words)
                self.entries += 1
                self.packed_bytes += len(made)
            return 0
        if type(record) is not bytes:
            return self.observe_busy(self, cast(Busy, record), at_ms, high_ms, lanes, words, answers)
        grown = self.ask(record, at_ms, high_ms, lanes, words, answers)
        if grown is None:
            grown = packed_record.insert(self.group, record, at_ms, lanes, words)
        if grown is not record:
            self.entries += grown[0] - record[0]
            self.packed_bytes += len(grown) - len(record)
            if grown[0] > packed_record.ENTRIES_MAX:
                self._promote(key, grown)
            else:
                self.records[key] = grown
        return 0

    def _promote(self, key: int, record: bytes) -> None:
        """Give a key that has become busy one series for each lane, by recording its entries again."""
        busy: Busy = [None] * len(self.group.lanes)
        heads, columns = packed_record.unpack(self.group, record)
        for place, (lane, column) in enumerate(zip(self.group.lanes, columns, strict=True)):
            moments = [head >> SERIES_BITS for head in heads if head & lane.local_bit]
            if moments:
                busy[place] = series = ObservedSeries(lane)
                series.fill(moments, column)
                self.raw += len(moments)
        self.entries -= record[0]
        self.packed_bytes -= len(record)
        self.busy += 1
        self.records[key] = busy

    def sweep(self, high_ms: int, keys_max: int) -> int:
        """Look at up to `keys_max` keys, forget those with nothing left, return how many were looked at.

        A pass over all keys learns when the first survivor can expire; until then there is nothing to do.
        """
        if not self.waiting:
            if high_ms < self.next_sweep_ms:
                return 0
            self.waiting = array("q", self.records)
            self.oldest_ms = high_ms
        kept_ms = self.group.kept_ms
        batch = self.waiting[-keys_max:]
        del self.waiting[-keys_max:]
        for key in batch:
            record = self.records.get(key)
            if record is None:
                continue
            newest_ms = (
                self._sweep_busy(record, high_ms)
                if isinstance(record, list)
                else packed_record.newest_ms(self.group, record)
            )
            if newest_ms <= high_ms - kept_ms:
                self._forget(key, record)
            elif newest_ms < self.oldest_ms:
                self.oldest_ms = newest_ms
        if not self.waiting:
            # Waiting a little longer than the first expiry lets a pass find many keys instead of one.
            self.next_sweep_ms = max(self.oldest_ms + kept_ms, high_ms + kept_ms // 16)
        return len(batch)

    def _sweep_busy(self, busy: Busy, high_ms: int) -> float:
        newest_ms = float("-inf")
        for lane, series in zip(self.group.lanes, busy, strict=True):
            if series is not None:
                self.raw -= series.drop(high_ms - lane.kept_ms)
                if series.moments:
                    newest_ms = max(newest_ms, series.moments[-1])
        return newest_ms

    def _forget(self, key: int, record: bytes | Busy) -> None:
        del self.records[key]
        if isinstance(record, list):
            self.busy -= 1
            self.raw -= sum(len(series.moments) for series in record if series is not None)
        else:
            self.entries -= record[0]
            self.packed_bytes -= len(record)
