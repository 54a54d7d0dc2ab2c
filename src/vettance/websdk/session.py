"""The session: what the queued batches of one browser session say together."""

import re
import sys
from typing import Any, Final

import msgspec

from vettance.clock import DAY_MS
from vettance.tenant_cache import TenantCache, Usage
from vettance.wire import INTEGER_MAX, INTEGER_MIN, JSON, OBJECT_BYTES_MAX, OBJECT_KEYS_MAX, decode, encode

#: Signals count for evaluations until this long after the session's latest batch; then they are deleted.
SESSION_MS: Final = DAY_MS

#: What one process remembers of sessions. A session takes 1 to 2 KB: room for more than 100,000 in a day.
MEMORY_BYTES_MAX: Final = 256 * 1024 * 1024

#: Numbers kept of one list, the newest: more keystrokes than a form has.
NUMBERS_MAX: Final = 512
_TEXTS_MAX: Final = 32

#: Names of numbers that count something: batches report what is new, so they add up.
_COUNTS: Final = re.compile(r"(?:count|moves|clicks)$", re.IGNORECASE)

_FINGERPRINT: Final = "fingerprint"
_FINGERPRINT_CHANGED: Final = "fingerprintChanged"


def _is_number(value: Any) -> bool:
    return type(value) is int or type(value) is float


def _bounded(count: int | float) -> int | float:
    """Keep a count among the numbers that JSON and the store can carry."""
    if type(count) is int:
        return min(max(count, INTEGER_MIN), INTEGER_MAX)
    return min(max(count, -sys.float_info.max), sys.float_info.max)


def merge(known: JSON, batch: JSON) -> JSON:
    """Return the signals of a session after one more batch, as a new object.

    Flags stay set once they were, numbers whose name ends in `Count`, `Moves` or `Clicks` add up, lists of
    numbers go on (the newest 512), lists of texts collect, and of anything else the newest wins. The session
    stays within the bounds of a single object: names beyond them are not taken up.
    """
    merged = dict(known)
    for name, value in batch.items():
        if value is None:
            continue
        if name in merged:
            merged[name] = _merge_value(name, merged[name], value)
        elif len(merged) < OBJECT_KEYS_MAX:
            merged[name] = value
    before, after = known.get(_FINGERPRINT), merged.get(_FINGERPRINT)
    if type(before) is str and before != after:
        merged[_FINGERPRINT_CHANGED] = True
    return merged


def _merge_value(name: str, old: Any, new: Any) -> Any:
    if type(old) is bool and type(new) is bool:
        return old or new
    if _is_number(old) and _is_number(new) and _COUNTS.search(name):
        return _bounded(old + new)
    if type(old) is list and type(new) is list:
        if all(map(_is_number, new)) and all(map(_is_number, old)):
            return [*old, *new][-NUMBERS_MAX:]
        if all(type(item) is str for item in (*old, *new)):
            return list(dict.fromkeys((*old, *new)))[-_TEXTS_MAX:]
    return new


def overlay(session: JSON, own: JSON) -> JSON:
    """Return the signals that an event of a session carries itself, over those that were queued before.

    Its own win, because they are a full account of the page; a flag that was ever set stays set.
    """
    merged = {**session, **own}
    for name, value in session.items():
        if value is True and own.get(name) is False:
            merged[name] = True
    return merged


class _Kept(msgspec.Struct, gc=False):
    signals: bytes
    at_ms: int


def _weigh(name: str, kept: _Kept) -> int:
    return len(name) + len(kept.signals)


class SessionBook:
    """The signals of every live session of every tenant, by `sdkSessionId` and by `tenantSessionId`.

    Beyond `memory_bytes_max` the tenant whose sessions take the most loses those longest silent.
    """

    def __init__(self, memory_bytes_max: int = MEMORY_BYTES_MAX) -> None:
        self._sessions = TenantCache[str, _Kept](memory_bytes_max, _weigh)

    def __len__(self) -> int:
        return len(self._sessions)

    @property
    def usage(self) -> Usage:
        """Return how much is remembered, for the metrics."""
        return self._sessions.usage

    def take(self, tenant: str, names: set[str], batch: JSON, at_ms: int) -> None:
        """Add a batch, received at `at_ms` (Unix milliseconds), to the sessions that go by these names."""
        for name in names:
            kept = self._sessions.get(tenant, name)
            alive = kept is not None and kept.at_ms + SESSION_MS > at_ms
            merged = merge(decode(kept.signals) if kept is not None and alive else {}, batch)
            signals = encode(merged)
            if len(signals) > OBJECT_BYTES_MAX:
                signals = kept.signals if kept is not None and alive else b"{}"
            self._sessions.put(tenant, name, _Kept(signals, at_ms))

    def find(self, tenant: str, session: str, now_ms: int) -> bytes | None:
        """Return the signals of a session as JSON, or None when nothing is known or it is over."""
        kept = self._sessions.get(tenant, session)
        if kept is None or kept.at_ms + SESSION_MS <= now_ms:
            return None
        return kept.signals

    def forget(self, now_ms: int) -> None:
        """Let go of the sessions that are over."""
        for tenant, name, kept in self._sessions.oldest():
            if kept.at_ms + SESSION_MS <= now_ms:
                self._sessions.pop(tenant, name)
