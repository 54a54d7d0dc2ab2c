"""The members of an event, one for each row of a table, with those marked that rules read."""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from vettance.console.page import Visit

#: An event has five hundred members at most in each of its objects.
_ROWS_MAX = 1_000
#: What rules call members of the event that have a name of their own.
_NAMES = {
    "customer.externalId": ("customer.external_id", "customer.key"),
    "customer.email": ("customer.email", "email.", "customer.key"),
    "device.externalId": ("device.external_id", "device.key"),
    "device.fingerprint": ("device.fingerprint", "device.key"),
    "eventName": ("event.", "event_name"),
    "eventCategory": ("event.category", "event_category"),
    "userAgent": ("user_agent",),
    "ip": ("ip",),
    "country": ("country",),
    "sessionId": ("session_id",),
}


class MemberRow(NamedTuple):
    """A member: its path in the event, its value as it is shown, and whether a rule read it."""

    path: str
    value: str
    is_used: bool


def members_of(visit: Visit, event: Mapping[str, Any], used: frozenset[str]) -> list[MemberRow]:
    """Return the members of an event in their order."""
    shown = visit.sight.member("", event)
    rows = []
    for path, value in _leaves(shown, ""):
        rows.append(MemberRow(path, visit.show.value(value), _is_used(path, used)))
        if len(rows) == _ROWS_MAX:
            break
    return rows


def _leaves(value: Any, path: str) -> Iterator[tuple[str, Any]]:
    if isinstance(value, Mapping) and value:
        for name, inner in value.items():
            yield from _leaves(inner, f"{path}.{name}" if path else str(name))
    elif isinstance(value, list) and any(isinstance(one, Mapping | list) for one in value):
        for index, inner in enumerate(value):
            yield from _leaves(inner, f"{path}.{index}")
    else:
        yield path, value


def _is_used(path: str, used: frozenset[str]) -> bool:
    known = _NAMES.get(path, (path,))
    texts = [name for name in used if any(one in name for one in known)]
    last = path.rpartition(".")[2]
    return bool(texts) or f"metadata.{last}" in used or any(f".{last}" in name for name in used)
