"""Counts of the log that no rule asks for: how often, and with how many others, a key was seen before.

An attack for which there is no rule shows in counts that nobody has kept. These are computed from the keys of
all events, as arrays; a rule that asks for one has it kept from then on.
"""

from collections.abc import Collection, Iterator, Sequence
from typing import Final, NamedTuple

import numpy as np

from vettance.clock import DAY_MS, HOUR_MS, MINUTE_MS
from vettance.events.event import Category
from vettance.events.kind import EventKind, kind_of
from vettance.rules.schema import Type
from vettance.suggestions.labelled_log import EVENTS_MAX, Flags, Numbers, hashes_of
from vettance.suggestions.value_columns import Values32, ValueSource

#: The windows in which is counted, in milliseconds, and the one that tells what is new.
_WINDOWS: Final = {"10m": 10 * MINUTE_MS, "1h": HOUR_MS, "1d": DAY_MS}
_EVER: Final = "90d"
_EVER_MS: Final = 90 * DAY_MS
#: What is counted by, and what else is seen with it.
KEYS: Final = ("customer.key", "device.key", "ip")
#: What is new for somebody: a device or an address that a customer has never come from.
_PAIRS: Final = (("customer.key", "device.key"), ("customer.key", "ip"))
#: The kinds of events that are counted by themselves: those that frauds are most often of.
_KINDS_MAX: Final = 4
_KIND_SHARE: Final = 0.05
#: Events of a window that are looked at for different values; who is beyond that is extraordinary anyhow.
_LOOKED_AT_MAX: Final = 4_096
#: Events of windows that are looked at together.
_AT_ONCE: Final = 500_000
#: Makes one hash of two.
_MIXER: Final = 1_000_003
_CATEGORIES: Final = {category.value: category for category in Category}
#: Moments further from the middle of the log than this count as this far: one stray event must not leave the
#: windows of all others without numbers.
_REACH_MS: Final = 20 * 365 * DAY_MS
_KINDS: Final = tuple(EventKind)
_PLACE_OF_KIND: Final = {kind: place for place, kind in enumerate(_KINDS)}


class LoggedCount(NamedTuple):
    """What is counted of the events before one: those of its key in a window, of one kind or of all.

    With `other`, how many different values of that these had.
    """

    keys: tuple[str, ...]
    window: str
    kind: EventKind | None = None
    other: str | None = None

    @property
    def text(self) -> str:
        """How a rule says it."""
        of_kind = f'event.kind == "{self.kind.value}"' if self.kind is not None else ""
        by = self.keys[0] if len(self.keys) == 1 else f"({', '.join(self.keys)})"
        where = f'by={by}, within="{self.window}"'
        if self.other is None:
            return f"count({', '.join(part for part in (of_kind, where) if part)})"
        return f"distinct({self.other}, {where}{f', where={of_kind}' if of_kind else ''})"

    @property
    def source(self) -> ValueSource:
        """The expression as one that conditions may be about."""
        return ValueSource(self.text, Type.NUMBER)


#: Everything that may be counted.
COUNTS: Final = (
    *(
        LoggedCount((key,), window, kind, other)
        for key in KEYS
        for window in _WINDOWS
        for kind in (None, *_KINDS)
        for other in (None, *KEYS)
        if other != key
    ),
    *(LoggedCount(keys, _EVER) for keys in (*((key,) for key in KEYS), *_PAIRS)),
)


class KeyColumns:
    """Takes the keys of decisions in the order of the log, as hashes; 0 is none.

    What happened from `end_ms` on (Unix milliseconds) is left out.
    """

    def __init__(self, end_ms: int) -> None:
        self._end_ms = end_ms
        self._parts: list[tuple[Numbers, ...]] = []
        self._count = 0

    def take(self, rows: Sequence[tuple[int, int, str, str, str | None, str | None, str | None]]) -> None:
        """Take (place, moment, event name, category, customer, device, ip) of further decisions.

        Of a longer log the newest stay.
        """
        rows = [row for row in rows if row[1] < self._end_ms]
        if not rows:
            return
        places, moments, names, categories, *keys = zip(*rows, strict=True)
        kinds = [
            _PLACE_OF_KIND[kind_of(name or "", _CATEGORIES.get(category, Category.OTHER))]
            for name, category in zip(names, categories, strict=True)
        ]
        hashed = (hashes_of([key or "" for key in column]) for column in keys)
        whole = (np.array(column, dtype=np.int64) for column in (places, moments, kinds))
        self._parts.append((*whole, *hashed))
        self._count += len(rows)
        while self._count - len(self._parts[0][0]) >= EVENTS_MAX:
            self._count -= len(self._parts.pop(0)[0])

    def finish(self) -> "CountedLog":
        """Return what can be counted."""
        columns = [np.concatenate(parts) for parts in zip(*self._parts, strict=True)] if self._parts else []
        if not columns:
            columns = [np.zeros(0, dtype=np.int64)] * 6
        places, moments, kinds, *keys = columns
        return CountedLog(places, moments, kinds, dict(zip(KEYS, keys, strict=True)))


class CountedLog:
    """The keys of all events of a log, in its order, and what was seen of each key before an event.

    Events are in the order of their own moments here; those of one moment in that of the log.
    """

    def __init__(self, places: Numbers, moments: Numbers, kinds: Numbers, keys: dict[str, Numbers]) -> None:
        self._places = places
        middle = int(np.median(moments)) if len(moments) else 0
        self._moments = np.clip(moments, middle - _REACH_MS, middle + _REACH_MS)
        self._kinds = kinds
        # Python hashes the empty text to 0.
        self._keys = keys

    def counts_for(self, frauds: Numbers) -> list[LoggedCount]:
        """Return what is worth counting to tell frauds, which are at some places of the log."""
        at, is_known = self._at(frauds)
        kinds = np.bincount(self._kinds[at[is_known]], minlength=len(_KINDS))
        most = np.argsort(-kinds, kind="stable")[:_KINDS_MAX]
        told = [_KINDS[place] for place in most.tolist() if kinds[place] > _KIND_SHARE * max(len(frauds), 1)]
        return [one for one in COUNTS if one.kind is None or one.kind in told]

    def values(
        self, counts: Collection[LoggedCount], places: Numbers
    ) -> Iterator[tuple[LoggedCount, Values32]]:
        """Yield what each count was at some places of the log.

        NaN where the event has no such key, or is not known any more.
        """
        at, is_known = self._at(places)
        for keys in dict.fromkeys(one.keys for one in counts):
            together = self._together(keys)
            by_key = _ByKey(together, self._moments)
            # Those without the key would be one large group, and what is counted in it says nothing.
            has_key = is_known & (together[at] != 0) if len(together) else is_known
            for one in counts:
                if one.keys == keys:
                    values = np.full(len(places), np.nan, dtype=np.float32)
                    values[has_key] = self._count(by_key, one, at[has_key])
                    yield one, values

    def _together(self, keys: tuple[str, ...]) -> Numbers:
        """Return a number for each event by all of some keys; 0 where it lacks one."""
        first, *others = (self._keys[key] for key in keys)
        for other in others:
            first = np.where((first != 0) & (other != 0), first * _MIXER ^ other, 0)
        return first

    def _at(self, places: Numbers) -> tuple[Numbers, Flags]:
        """Return where some places of the log are in this one, and which of them are."""
        if not len(self._places):
            return np.zeros(len(places), dtype=np.int64), np.zeros(len(places), dtype=np.bool_)
        found: Numbers = np.minimum(np.searchsorted(self._places, places), len(self._places) - 1)
        return found, self._places[found] == places

    def _count(self, by_key: "_ByKey", one: LoggedCount, at: Numbers) -> Numbers:
        which: Flags | None = None
        if one.kind is not None:
            which = (self._kinds == _PLACE_OF_KIND[one.kind])[by_key.order]
        first, end = by_key.window(at, _WINDOWS.get(one.window, _EVER_MS))
        if one.other is None:
            return by_key.count(first, end, which)
        return by_key.distinct(one.other, self._keys[one.other], first, end, which)


class _ByKey:
    """Events in the order of one key, then of their moments."""

    def __init__(self, keys: Numbers, moments: Numbers) -> None:
        self.order: Numbers = np.lexsort((moments, keys))
        self._rank = np.empty_like(self.order)
        self._rank[self.order] = np.arange(len(keys))
        self._moments = moments
        in_turn = keys[self.order]
        self._groups: Numbers = np.zeros(len(keys), dtype=np.int64)
        np.cumsum(in_turn[1:] != in_turn[:-1], out=self._groups[1:])
        # A group's events have numbers of their own, in the order of all: a search in one array finds both.
        self._since = int(moments.min(initial=0))
        self._span = int(moments.max(initial=0)) - self._since + 1
        self._numbers = self._groups * self._span + (moments[self.order] - self._since)
        self._followers: dict[str, Numbers] = {}

    def window(self, at: Numbers, window_ms: int) -> tuple[Numbers, Numbers]:
        """Return where, in this order, the windows before some events begin and end."""
        end = self._rank[at]
        group = self._groups[end]
        since = np.maximum(self._moments[at] - self._since - window_ms + 1, 0)
        first = np.searchsorted(self._numbers, group * self._span + since)
        return np.minimum(first, end), end

    def count(self, first: Numbers, end: Numbers, which: Flags | None) -> Numbers:
        """Count the events of windows, those of `which` only (in this order)."""
        if which is None:
            return end - first
        before = np.concatenate([[0], np.cumsum(which)])
        found: Numbers = before[end] - before[first]
        return found

    def distinct(
        self, name: str, others: Numbers, first: Numbers, end: Numbers, which: Flags | None
    ) -> Numbers:
        """Count the different values of another key in windows."""
        follower = self._follower(name, others, which)
        first = np.maximum(first, end - _LOOKED_AT_MAX)
        sizes = end - first
        counted = np.zeros(len(first), dtype=np.int64)
        cuts = np.searchsorted(np.cumsum(sizes), np.arange(_AT_ONCE, int(sizes.sum()) + _AT_ONCE, _AT_ONCE))
        for start, stop in zip([0, *cuts.tolist()], [*cuts.tolist(), len(first)], strict=True):
            size = sizes[start:stop]
            owner = np.repeat(np.arange(len(size)), size)
            offset = np.arange(int(size.sum())) - np.repeat(np.cumsum(size) - size, size)
            looked = first[start:stop][owner] + offset
            # A value counts at its last event before the end.
            is_last = follower[looked] >= end[start:stop][owner]
            counted[start:stop] = np.bincount(owner[is_last], minlength=len(size))
        return counted

    def _follower(self, name: str, others: Numbers, which: Flags | None) -> Numbers:
        """Return, for each event, the next one of the same key with the same value.

        It is beyond all where there is none, and before all for an event that does not count.
        """
        if name not in self._followers:
            self._followers[name] = np.lexsort((np.arange(len(self.order)), others[self.order], self._groups))
        turn = self._followers[name]
        values, groups = others[self.order], self._groups
        counts = values != 0 if which is None else which & (values != 0)
        turn = turn[counts[turn]]
        follower = np.full(len(self.order), -1, dtype=np.int64)
        if len(turn):
            same = (values[turn][1:] == values[turn][:-1]) & (groups[turn][1:] == groups[turn][:-1])
            follower[turn[:-1]] = np.where(same, turn[1:], len(self.order))
            follower[turn[-1]] = len(self.order)
        return follower
