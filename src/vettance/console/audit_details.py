"""Details of audit entries in plain words: what members are called, and what their values say."""

from collections.abc import Mapping
from typing import Any, Final

from markupsafe import Markup

from vettance.console.label_forms import LABELS
from vettance.console.list_actions import EXPIRY_WORDS
from vettance.console.refusal_words import member_words
from vettance.console.resolution_words import RESOLUTIONS
from vettance.console.shown_values import ValueFormatter
from vettance.console.words import Words

_YES, _NO = Words("yes"), Words("no")
#: Members of forms, bodies and commands that are called otherwise than they are spelled.
_MEMBERS: Final[Mapping[str, str]] = {
    "tenant_id": Words("Organisation"),
    "userId": Words("Person"),
    "entry": Words("On lists"),
    "value": Words("Value"),
    "expiry": Words("For"),
    "expiresAt": Words("Until"),
    "listType": Words("List"),
    "assignee": Words("Officer"),
    "to": Words("To"),
    "what": Words("Done"),
    "then": Words("Done"),
    "timeZone": Words("Time zone"),
    "updatedAt": Words("As of"),
    "when": Words("Condition"),
    "rollout": Words("For how many per cent of customers"),
    "next-one": Words("And the next review"),
    "replay": Words("With a replay"),
    "rule_approval": Words("Rules need a second person"),
    "second_factor": Words("Second factor for everybody"),
    "collect_key": Words("API keys at /collect"),
    "require_origin": Words("Origin is needed"),
    "review_denied": Words("Reviews of denied events"),
    "review_hours": Words("Hours until a review is due"),
    "review_checks": Words("Second looks in a hundred"),
    "four_eyes": Words("Cases need a second officer"),
    "inline_screening": Words("Names of AML events are screened"),
    "throttle": Words("Requests per key in 60 seconds"),
    "quota": Words("Requests per hour"),
    "eventTypes": Words("Events"),
    "eventType": Words("Events"),
    "emailVerified": Words("E-mail is verified"),
}
#: Members that only say how a form came to be sent.
_UNSAID: Final = frozenset({"seen", "base", "origin", "next-one", "shown-on", "taking", "choose", "confirm"})
_LABEL_WORDS: Final = {label.value: words for label, words in LABELS}
_OUTCOMES: Final = {"approve": Words("Approve"), "deny": Words("Deny"), "review": Words("Review")}
_LISTS: Final = {"block": Words("Block"), "allow": Words("Allow")}
#: What the types of list entries and of entities are called.
TYPE_WORDS: Final = {
    "CUSTOMER": Words("Customer"),
    "DEVICE": Words("Device"),
    "IP": Words("IP address"),
    "EMAIL": Words("E-mail"),
    "SESSION": Words("Session"),
}
#: What values are called, by the member that has them; others are said as they are.
_VALUES: Final[Mapping[str, Mapping[str, str]]] = {
    "label": _LABEL_WORDS,
    "outcome": _OUTCOMES,
    "decision": _OUTCOMES,
    "listType": _LISTS,
    "list": _LISTS,
    "type": TYPE_WORDS,
    "valueType": TYPE_WORDS,
    "resolution": RESOLUTIONS,
    "expiry": EXPIRY_WORDS,
    "method": {"password": Words("Password"), "link": Words("Link"), "oidc": Words("Provider")},
    "then": {"draft": Words("Draft"), "propose": Words("Proposal"), "backtest": Words("Backtest")},
    "what": {
        "resolve": Words("Resolved"),
        "assign": Words("Assigned"),
        "reject": Words("Turned down"),
        "notes": Words("Wrote a note"),
    },
}
#: Members that are moments: as a text, or in Unix seconds within these. What is outside of them is none: `to`
#: is a version, too.
_MOMENTS: Final = frozenset({"until", "expiresAt", "updatedAt", "from", "to"})
_S_MIN: Final = 100_000_000
_S_MAX: Final = 100_000_000_000
#: The parts of a value, each a text of its own or marked up.
Parts = tuple[str, ...]


def said_members(value: Any, show: ValueFormatter, names: Mapping[str, str]) -> list[tuple[str, Parts]]:
    """Return what an entry holds, each member by what it is called; a value that is none has no name.

    `names` are people, keys and the organisation by their ids.
    """
    if not isinstance(value, dict):
        return [("", _parts("", value, show, names))]
    return [
        (_MEMBERS.get(name) or member_words(name), _parts(name, one, show, names))
        for name, one in value.items()
        if name not in _UNSAID and one not in ("", None)
    ]


def _parts(name: str, value: Any, show: ValueFormatter, names: Mapping[str, str]) -> Parts:
    if isinstance(value, list):
        return tuple(part for one in value for part in _parts(name, one, show, names))
    if isinstance(value, dict):
        inner = said_members(value, show, names)
        return tuple(f"{called}: {', '.join(map(_bare, parts))}" for called, parts in inner)
    return (_said(name, value, show, names),)


def _bare(part: str) -> str:
    return part.striptags() if isinstance(part, Markup) else part


def _said(name: str, value: Any, show: ValueFormatter, names: Mapping[str, str]) -> str:
    """Say one value: by the words for values of its member, as a moment, as somebody's name, or as it is."""
    if isinstance(value, bool):
        return _YES if value else _NO
    if name in _MOMENTS and (at_ms := _moment_ms(value, show)) is not None:
        return show.at(at_ms)
    if not isinstance(value, str):
        return show.value(value)
    if name == "entry":
        kind, _, rest = value.partition(" ")
        return f"{TYPE_WORDS.get(kind, kind)} {rest}"
    return _VALUES.get(name, {}).get(value) or names.get(value, value)


def _moment_ms(value: Any, show: ValueFormatter) -> int | None:
    """Return the moment that a value says, in Unix milliseconds; None for one that says none."""
    if isinstance(value, int | float):
        at_ms = round(value * 1000) if _S_MIN <= value < _S_MAX else None
    else:
        try:
            at_ms = show.moment(value) if isinstance(value, str) else None
        except (ValueError, OverflowError):
            at_ms = None
    return at_ms if at_ms is not None and _S_MIN <= at_ms // 1000 < _S_MAX else None
