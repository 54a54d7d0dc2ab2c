"""Finds what a tenant's events can be counted by, and writes the features that come along for it."""

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any, Final, NamedTuple

from vettance.models.feature_set import Feature
from vettance.wire.payload import JSON

KEYS_MAX: Final = 32
NUMBERS_MAX: Final = 24
#: Keys with every feature of a key; further ones get the few that tell most.
_RICH_MAX: Final = 5
_LEAN_MAX: Final = 12
#: The share of events that has to have a member.
_SHARE_MIN: Final = 0.02
_TEXT_CHARS_MAX: Final = 128
#: Keys that events have by themselves: the name in rules, the path in an event, what people call it.
_OWN_KEYS: Final = (
    ("customer.key", ("customer.externalId", "customer.email"), "customer"),
    ("device.key", ("device.fingerprint", "device.externalId"), "device"),
    ("ip", ("ip",), "address"),
)
#: Members of `metadata` that are no keys although their values look like it.
_NO_KEYS: Final = frozenset({"currency", "occurredAt", "occurred_at", "sessionId", "session_id", "outcome"})
_AMOUNT: Final = "metadata.amount"


class EventMembers(NamedTuple):
    """Keys, as (name in rules, what people call it), most telling first; numbers and flags of `metadata`."""

    keys: tuple[tuple[str, str], ...]
    numbers: tuple[str, ...]
    flags: tuple[str, ...]
    has_amount: bool


class MemberCounts:
    """Looks through events as they were sent, one after the other.

    A text or whole number that comes back, with many different values, is a key: `terminalId`, `cardHash`.
    A text with a handful of values, or one that never comes back, is none.
    """

    def __init__(self) -> None:
        self._count = 0
        self._present: Counter[str] = Counter()
        self._values: dict[str, Counter[Any]] = {}
        self._numbers: Counter[str] = Counter()
        self._flags: Counter[str] = Counter()

    def __len__(self) -> int:
        """Return how many events were looked through."""
        return self._count

    def add(self, body: JSON) -> None:
        """Look through one more event."""
        metadata = body.get("metadata")
        self._count += 1
        for name, paths, _ in _OWN_KEYS:
            self._present[name] += any(_member(body, path) is not None for path in paths)
        for member, value in metadata.items() if isinstance(metadata, dict) else ():
            if not (isinstance(member, str) and member.isidentifier() and member.isascii()):
                continue
            if isinstance(value, bool):
                self._flags[member] += 1
            elif isinstance(value, int | float):
                self._numbers[member] += 1
            if _is_text_of_key(member, value):
                self._values.setdefault(member, Counter())[value] += 1

    def members(self) -> EventMembers:
        """Return what the events can be counted by."""
        enough = max(_SHARE_MIN * self._count, 1)
        keys = [(name, called) for name, _, called in _OWN_KEYS if self._present[name] >= enough]
        found = [(member, seen) for member, seen in self._values.items() if _is_key(seen, enough)]
        found.sort(key=lambda one: (-one[1].total(), one[0]))
        keys += [(f"metadata.{member}", member) for member, _ in found]
        known = {member for member, _ in found} | {"amount"}
        numbers = [name for name, seen in self._numbers.items() if seen >= enough and name not in known]
        return EventMembers(
            tuple(keys[:KEYS_MAX]),
            tuple(sorted(numbers)[:NUMBERS_MAX]),
            tuple(sorted(name for name, seen in self._flags.items() if seen >= enough))[:NUMBERS_MAX],
            self._numbers["amount"] >= enough,
        )


def discover(bodies: Iterable[JSON]) -> EventMembers:
    """Look through events as they were sent, all at once."""
    counts = MemberCounts()
    for body in bodies:
        counts.add(body)
    return counts.members()


def _member(body: JSON, path: str) -> Any:
    found: Any = body
    for part in path.split("."):
        found = found.get(part) if isinstance(found, dict) else None
    return found


def _is_text_of_key(member: str, value: Any) -> bool:
    if member in _NO_KEYS or member == "amount":
        return False
    if isinstance(value, str):
        return 0 < len(value) <= _TEXT_CHARS_MAX
    # Whole numbers are keys only by their name: `terminal_id: 3156`.
    return type(value) is int and member.lower().endswith(("id", "hash", "_key", "number"))


def _is_key(seen: Counter[Any], enough: float) -> bool:
    """Tell whether values come back, and are not a handful of kinds."""
    total = seen.total()
    return total >= enough and 12 <= len(seen) <= 0.98 * total


def features_of(found: EventMembers) -> list[Feature]:
    """Return the features that come along, for the keys and numbers of a tenant."""
    features = [
        Feature("hour", "hour", "time", "hour of the day (UTC)"),
        Feature("weekday", "weekday", "time", "day of the week (1 is Monday)"),
    ]
    if found.has_amount:
        features.append(Feature("amount", _AMOUNT, "amount", "amount"))
    for name, called in found.keys[:_RICH_MAX]:
        features += _rich(name, called, with_amount=found.has_amount)
    for name, called in found.keys[_RICH_MAX : _RICH_MAX + _LEAN_MAX]:
        features += _lean(name, called)
    if found.keys:
        first, _ = found.keys[0]
        for name, called in found.keys[1:_RICH_MAX]:
            text = f"whether the {found.keys[0][1]} had this {called} within 30 days"
            value = f'1 if seen({name}, by={first}, within="30d") else 0'
            features.append(Feature(f"knows_{_short(name)}", value, "novelty", text))
            text = f"different values of {found.keys[0][1]} of this {called} within a day"
            value = f'distinct({first}, by={name}, within="24h")'
            features.append(Feature(f"shared_{_short(name)}", value, "device", text))
    for name in found.numbers:
        features.append(Feature(f"number_{name}", f"number(metadata.{name})", "behaviour", name))
    for name in found.flags:
        value = f"1 if metadata.{name} == true else 0"
        features.append(Feature(f"flag_{name}", value, "behaviour", name))
    return features


def _short(name: str) -> str:
    return name.removeprefix("metadata.").removesuffix(".key").replace(".", "_")


def _lean(name: str, called: str) -> Iterator[Feature]:
    short = _short(name)
    for word, what in (("frauds", "labelled as fraud"), ("legits", "labelled as legitimate")):
        text = f"events of this {called} {what} within 30 days"
        yield Feature(f"{short}_{word}_30d", f'{word}(by={name}, within="30d")', "history", text)
    text = f"events of this {called} within 30 days"
    yield Feature(f"{short}_count_30d", f'count(by={name}, within="30d")', "velocity", text)


def _rich(name: str, called: str, *, with_amount: bool) -> Iterator[Feature]:
    yield from _lean(name, called)
    yield from _history(name, called)
    short = _short(name)
    for window in ("1h", "24h", "7d"):
        text = f"events of this {called} within {window}"
        yield Feature(f"{short}_count_{window}", f'count(by={name}, within="{window}")', "velocity", text)
    text = f"seconds since the event of this {called} before"
    yield Feature(f"{short}_last", f"last_seen(by={name})", "time", text)
    if with_amount:
        yield from _amounts(name, called)


def _history(name: str, called: str) -> Iterator[Feature]:
    """What labels say of a key: how many, how large their share of fraud, and since when."""
    short = _short(name)
    for word, what in (("frauds", "labelled as fraud"), ("legits", "labelled as legitimate")):
        text = f"events of this {called} {what} within 7 days"
        yield Feature(f"{short}_{word}_7d", f'{word}(by={name}, within="7d")', "history", text)
    for window in ("7d", "14d", "30d"):
        # One more than there are: a single label of fraud is no certainty.
        frauds, legits = (f'{word}(by={name}, within="{window}")' for word in ("frauds", "legits"))
        text = f"share of fraud in the labels that this {called} had within {window}"
        value = f"{frauds} / ({frauds} + {legits} + 1)"
        yield Feature(f"{short}_fraud_share_{window}", value, "history", text)
    text = f"seconds since an event of this {called} was labelled as fraud"
    yield Feature(f"{short}_last_fraud", f"last_fraud(by={name})", "history", text)
    text = f"seconds since the first label of fraud of this {called} within 30 days"
    yield Feature(f"{short}_first_fraud_30d", f'first_fraud(by={name}, within="30d")', "history", text)


def _amounts(name: str, called: str) -> Iterator[Feature]:
    """Habits of a key, and the amount held against them."""
    short = _short(name)
    for window in ("7d", "30d"):
        usual = f'avg({_AMOUNT}, by={name}, within="{window}")'
        text = f"mean amount of this {called} within {window}"
        yield Feature(f"{short}_avg_{window}", usual, "amount", text)
        for word, what in (("avg", "mean"), ("max", "largest")):
            text = f"amount against the {what} of this {called} within {window}"
            value = f'{_AMOUNT} / {word}({_AMOUNT}, by={name}, within="{window}")'
            yield Feature(f"{short}_amount_{word}_{window}", value, "amount", text)
    text = f"amounts of this {called} within a day"
    yield Feature(f"{short}_sum_24h", f'sum({_AMOUNT}, by={name}, within="24h")', "amount", text)
