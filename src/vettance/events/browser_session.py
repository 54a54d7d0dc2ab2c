"""The session: what the queued batches of one browser session say together."""

import re
import sys
from array import array
from collections.abc import Iterable, Sequence
from typing import Any, Final, NamedTuple

import msgspec

from vettance.clock import DAY_MS, HOUR_MS
from vettance.fairness.tenant_cache import TenantCache, Usage
from vettance.wire.payload import (
    INTEGER_MAX,
    INTEGER_MIN,
    JSON,
    OBJECT_BYTES_MAX,
    OBJECT_KEYS_MAX,
    decode,
    encode,
)

#: The signals of a batch count for evaluations for a day, by whole hours; then they are deleted.
BATCH_MS: Final = DAY_MS

#: What one process remembers of sessions. A session takes 1 to 2 KB: room for more than 100,000 in a day.
MEMORY_BYTES_MAX: Final = 256 * 1024 * 1024

#: Numbers kept of one list, the newest: more keystrokes than a form has.
NUMBERS_MAX: Final = 512
_TEXTS_MAX: Final = 32

#: Batches that wait to be merged before a process does so unasked. A person's page sends a few between two
#: events; a session of thousands of batches must not make one evaluation wait for all of them.
WAITING_MAX: Final = 64

#: Names of numbers that count something: batches report what is new, so they add up.
_COUNTS: Final = re.compile(r"(?:count|moves|clicks)$", re.IGNORECASE)

_FINGERPRINT: Final = "fingerprint"
_FINGERPRINT_CHANGED: Final = "fingerprintChanged"

_NO_SIGNALS: Final = b"{}"
_TRUE: Final = b"true"
_FLAGS: Final = (_TRUE, b"false")
_IN_NUMBERS: Final = b"0123456789+-.eE,"
_members: Final = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode


def counts_since(now_ms: int) -> int:
    """Return the moment since which batches count at another one, both in Unix milliseconds.

    It moves once an hour, so that a session is not merged again for each batch that becomes too old.
    """
    return (now_ms // HOUR_MS + 1) * HOUR_MS - BATCH_MS


def _bounded(count: int | float) -> int | float:
    """Keep a count among the numbers that JSON and the store can carry."""
    if type(count) is int:
        return min(max(count, INTEGER_MIN), INTEGER_MAX)
    return min(max(count, -sys.float_info.max), sys.float_info.max)


class _SignalMerge:
    """The signals of a session as JSON texts by name, while batches are merged into them.

    A batch costs what it holds itself: the other members of the session are neither read nor written again.
    """

    def __init__(self, signals: bytes) -> None:
        self._texts = {name: bytes(text) for name, text in _members(signals).items()}
        self._size = len(signals)

    def take(self, batch: JSON) -> None:
        """Merge a batch; one with which the session would outgrow the bounds of an object is left out."""
        texts = self._texts
        changes: dict[str, bytes] = {}
        count = len(texts)
        for name, value in batch.items():
            if value is None:
                continue
            known = texts.get(name)
            if known is not None:
                changes[name] = _merge_value(name, known, value)
            elif count < OBJECT_KEYS_MAX:
                changes[name] = encode(value)
                count += 1
        before = texts.get(_FINGERPRINT, b"")
        if before.startswith(b'"') and before != changes.get(_FINGERPRINT, before):
            changes[_FINGERPRINT_CHANGED] = _TRUE
        size = self._size
        for name, text in changes.items():
            known = texts.get(name)
            size += len(text) + len(encode(name)) + 2 if known is None else len(text) - len(known)
        if not texts and changes:
            size -= 1  # There is no comma before the first member.
        if size <= OBJECT_BYTES_MAX:
            texts.update(changes)
            self._size = size

    def signals(self) -> bytes:
        """Return the signals of the session as JSON."""
        return b"{" + b",".join(encode(name) + b":" + text for name, text in self._texts.items()) + b"}"


def merge(signals: bytes, batches: Iterable[JSON]) -> bytes:
    """Return the signals of a session, as JSON, after more batches.

    Flags stay set once they were, numbers whose name ends in `Count`, `Moves` or `Clicks` add up, lists of
    numbers are appended to (the newest 512 stay), lists of texts are united, and of anything else the newest
    wins. The session stays within the bounds of a single object: names beyond them are left out.
    """
    merging = _SignalMerge(signals)
    for batch in batches:
        merging.take(batch)
    return merging.signals()


def _merge_value(name: str, old: bytes, new: Any) -> bytes:
    """Merge a value into one that is known as JSON; a list of numbers is not parsed to append to it."""
    text = encode(new)
    if type(new) is bool:
        return _TRUE if old == _TRUE and text in _FLAGS else text
    if type(new) is list:
        if _are_numbers(text) and _are_numbers(old):
            return _newest_numbers(old, text)
        if old.startswith(b"[") and all(type(item) is str for item in new):
            known = decode(old)
            if all(type(item) is str for item in known):
                return encode(list(dict.fromkeys((*known, *new)))[-_TEXTS_MAX:])
    elif (type(new) is int or type(new) is float) and _COUNTS.search(name) and _is_number(old):
        return encode(_bounded(decode(old) + new))
    return text


def _is_number(text: bytes) -> bool:
    return not text.translate(None, _IN_NUMBERS)


def _are_numbers(text: bytes) -> bool:
    """Tell whether JSON is a list of numbers, or of nothing."""
    return text.translate(None, _IN_NUMBERS) == b"[]"


def _newest_numbers(old: bytes, new: bytes) -> bytes:
    numbers = b",".join(inner for inner in (old[1:-1], new[1:-1]) if inner)
    beyond = numbers.count(b",") + 1 - NUMBERS_MAX
    if beyond > 0:
        numbers = numbers.split(b",", beyond)[-1]
    return b"[" + numbers + b"]"


def overlay(session: JSON, own: JSON) -> JSON:
    """Return the signals that an event of a session carries itself, over those that were queued before.

    Its own win, because they are a full account of the page; a flag that was ever set stays set.
    """
    merged = {**session, **own}
    for name, value in session.items():
        if value is True and own.get(name) is False:
            merged[name] = True
    return merged


class _SessionBatches:
    """A session: where its batches are in the store, when they came, and what the first of them say."""

    __slots__ = ("merged", "newest_ms", "oldest_ms", "received_ms", "seqs", "signals")

    def __init__(self, at_ms: int) -> None:
        self.seqs = array("q")
        self.received_ms = array("q")
        self.oldest_ms = self.newest_ms = at_ms
        self.signals = _NO_SIGNALS
        self.merged = 0

    def add(self, seq: int, at_ms: int) -> None:
        """Note one more batch."""
        self.seqs.append(seq)
        self.received_ms.append(at_ms)
        self.oldest_ms = min(self.oldest_ms, at_ms)
        self.newest_ms = max(self.newest_ms, at_ms)

    def drop_before(self, since_ms: int) -> None:
        """Drop the batches received before a moment; what is left has to be merged again."""
        if self.oldest_ms >= since_ms:
            return
        left = [
            (seq, at_ms) for seq, at_ms in zip(self.seqs, self.received_ms, strict=True) if at_ms >= since_ms
        ]
        self.seqs = array("q", [seq for seq, _ in left])
        self.received_ms = array("q", [at_ms for _, at_ms in left])
        self.oldest_ms = min(self.received_ms, default=self.newest_ms)
        self.signals, self.merged = _NO_SIGNALS, 0


#: A place and a moment of a batch, and the heads of the two arrays of them.
_PLACE_BYTES: Final = 16
_ARRAYS_BYTES: Final = 200


def _weigh(name: str, kept: _SessionBatches) -> int:
    return len(name) + len(kept.signals) + len(kept.seqs) * _PLACE_BYTES + _ARRAYS_BYTES


class WaitingBatches(NamedTuple):
    """Batches of a session that are not merged yet, by their places in the store, behind so many that are."""

    seqs: Sequence[int]
    signals: bytes
    behind: int


class SessionIndex:
    """The signals of every live session of every tenant, by `sdkSessionId` and by `tenantSessionId`.

    It notes where batches are; what they say is merged when it is asked for. Beyond `memory_bytes_max` the
    tenant whose sessions take the most loses those longest silent.
    """

    def __init__(self, memory_bytes_max: int = MEMORY_BYTES_MAX) -> None:
        self._sessions = TenantCache[str, _SessionBatches](memory_bytes_max, _weigh)
        self._crowded: dict[tuple[str, str], None] = {}

    def __len__(self) -> int:
        return len(self._sessions)

    @property
    def usage(self) -> Usage:
        """Return how much is remembered, for the metrics."""
        return self._sessions.usage

    def note(self, tenant: str, names: Iterable[str], seq: int, at_ms: int) -> None:
        """Note a batch of the sessions that go by these names: its place, and when it was received."""
        for name in names:
            kept = self._sessions.get(tenant, name)
            if kept is None:
                kept = _SessionBatches(at_ms)
            kept.add(seq, at_ms)
            self._sessions.put(tenant, name, kept)
            if len(kept.seqs) - kept.merged >= WAITING_MAX:
                self._crowded[tenant, name] = None

    def crowded(self) -> list[tuple[str, str]]:
        """Return, once, the tenant and name of each session with many batches that wait to be merged."""
        crowded, self._crowded = self._crowded, {}
        return list(crowded)

    def waiting(self, tenant: str, name: str, now_ms: int, limit: int) -> WaitingBatches | None:
        """Return the next batches of a session to merge, or None when all that count now are merged."""
        kept = self._sessions.get(tenant, name)
        if kept is None:
            return None
        kept.drop_before(counts_since(now_ms))
        if kept.merged == len(kept.seqs):
            return None
        return WaitingBatches(kept.seqs[kept.merged : kept.merged + limit], kept.signals, kept.merged)

    def settle(self, tenant: str, name: str, waiting: WaitingBatches, signals: bytes) -> None:
        """Put what batches say together with those before them in the place of what was known.

        Nothing happens where some of them no longer count, or were merged by another.
        """
        kept = self._sessions.get(tenant, name)
        if kept is None or kept.merged != waiting.behind:
            return
        upto = waiting.behind + len(waiting.seqs)
        if kept.seqs[waiting.behind : upto] == waiting.seqs and kept.signals == waiting.signals:
            kept.signals, kept.merged = signals, upto
            self._sessions.put(tenant, name, kept)

    def find(self, tenant: str, session: str, now_ms: int) -> bytes | None:
        """Return the merged signals of a session as JSON, or None when nothing is known or it is over."""
        kept = self._sessions.get(tenant, session)
        if kept is None or kept.newest_ms < counts_since(now_ms):
            return None
        return kept.signals

    def drop(self, tenant: str) -> None:
        """Drop every session of a tenant."""
        self._sessions.drop(tenant)

    def forget(self, now_ms: int) -> None:
        """Drop the sessions that are over."""
        since_ms = counts_since(now_ms)
        for tenant, name, kept in self._sessions.oldest():
            if kept.newest_ms < since_ms:
                self._sessions.pop(tenant, name)
