"""List effects of rules in a document: which list, which value of the event, and for how long."""

import difflib
import re
from collections.abc import Sequence
from typing import Any, Final

from vettance.rules.document import Node
from vettance.rules.rule import LISTED_TYPES, LISTS, Fault, ListEffect, Rule

_MEMBERS: Final = ("list", "type", "for")
_LASTS: Final = re.compile(r"[1-9][0-9]{0,8}[smhd]", re.ASCII)
_DAYS_MAX: Final = 400  # A rule's entry ends by itself; what is to stay for good is put there by a person.
_DAY_MS: Final = 86_400_000
_EXAMPLE: Final = "write it like {list: block, type: DEVICE, for: 7d}"


def read_list_effect(place: Node | None, where: str) -> tuple[ListEffect | None, list[Fault]]:
    """Read the member `adds` of a rule: what it puts on a list, or None, and everything wrong with it."""
    if place is None or place.value is None:
        return None, []
    if not isinstance(place.value, dict):
        return None, [_fault(place, where, "must be a mapping of list, type and for", _EXAMPLE)]
    faults = [
        _fault(member, where, f"there is no member {name[:60]} here", _near(name, _MEMBERS))
        for name, member in place.value.items()
        if name not in _MEMBERS
    ]
    read: dict[str, str] = {}
    for name, known in (("list", LISTS), ("type", LISTED_TYPES), ("for", ())):
        member = place.value.get(name)
        if member is None or member.value in (None, ""):
            hint = "a rule adds for a time only, such as for: 7d" if name == "for" else _EXAMPLE
            faults.append(_fault(member or place, f"{where}.{name}", "is required", hint))
        elif known and member.value not in known:
            message = "must be one of " + ", ".join(known)
            faults.append(_fault(member, f"{where}.{name}", message, _near(member.value, known)))
        elif not known and not _is_span(member.value):
            hint = "write a number and one of s, m, h, d, such as 30m, 12h or 7d"
            message = f"must be a time like 7d, at most {_DAYS_MAX} days"
            faults.append(_fault(member, f"{where}.{name}", message, hint))
        else:
            read[name] = member.value
    if faults:
        return None, faults
    return ListEffect(list=read["list"], type=read["type"], lasts=read["for"]), []


def effects_of(running: Sequence[Rule]) -> dict[int, ListEffect]:
    """Return what active rules put on lists, by their places among the running ones."""
    return {
        place: rule.adds
        for place, rule in enumerate(running)
        if rule.adds is not None and rule.mode == "active"
    }


def _is_span(value: Any) -> bool:
    if not isinstance(value, str) or _LASTS.fullmatch(value) is None:
        return False
    return ListEffect(list="", type="", lasts=value).lasts_ms <= _DAYS_MAX * _DAY_MS


def _near(value: Any, known: Sequence[str]) -> str | None:
    folded = {one.lower(): one for one in known}
    close = difflib.get_close_matches(str(value)[:64].lower(), folded, 1)
    return f"did you mean {folded[close[0]]}?" if close else None


def _fault(place: Node, where: str, message: str, hint: str | None) -> Fault:
    return Fault(where, message, place.line, place.column, hint)
