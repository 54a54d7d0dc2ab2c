"""The snooze: what a tenant says of a rule and an entity, and how it is matched to an event."""

import enum
from collections.abc import Iterable, Sequence
from typing import Annotated, Any, ClassVar, Final

import msgspec

from vettance.events.ip_address import canonical_ip
from vettance.rules.rollout import Withheld, WithheldRules
from vettance.rules.ruleset import Rule
from vettance.wire.body import ALL_422, how, read_body
from vettance.wire.payload import JSON, STRING_CHARS_MAX, Faults, Wire, read_moment

#: What ids of snoozes begin with.
PREFIX: Final = "snz"
VALUE_CHARS_MAX: Final = 512
#: Snoozes of one kind of rules that a tenant may have at a time.
SNOOZES_MAX: Final = 1_000
_SNOOZED: Final = Withheld.SNOOZED.value


class SnoozeType(enum.StrEnum):
    """What kind of entity a rule is snoozed for."""

    CUSTOMER = "CUSTOMER"
    DEVICE = "DEVICE"
    IP = "IP"
    EMAIL = "EMAIL"
    SESSION = "SESSION"


class Snooze(msgspec.Struct, frozen=True, kw_only=True):
    """One snooze. `kind` is the pack that its rules build on; moments are Unix milliseconds, of receipt."""

    id: str
    tenant: str
    kind: str
    rule: str
    type: SnoozeType
    value: str
    reason: str
    author: str
    created_at_ms: int
    until_ms: int
    ended_at_ms: int | None

    @property
    def over_ms(self) -> int:
        """When it has no effect any more."""
        return self.until_ms if self.ended_at_ms is None else min(self.until_ms, self.ended_at_ms)


#: The names of the values of an event by which a snooze may be about it; AML events have fewer.
_NAMES_OF: Final[dict[SnoozeType, tuple[str, ...]]] = {
    SnoozeType.CUSTOMER: ("customer_key",),
    SnoozeType.DEVICE: ("fingerprint", "device_id", "device_key"),
    SnoozeType.IP: ("ip",),
    SnoozeType.EMAIL: ("email",),
    SnoozeType.SESSION: ("session_id",),
}


class SnoozeBook:
    """The snoozes of one tenant and kind, by their rules."""

    def __init__(self, snoozes: Iterable[Snooze] = ()) -> None:
        #: By rule, type and value: from when to when.
        self._spans: dict[str, dict[SnoozeType, dict[str, list[tuple[int, int]]]]] = {}
        for one in snoozes:
            by_value = self._spans.setdefault(one.rule, {}).setdefault(one.type, {})
            by_value.setdefault(one.value, []).append((one.created_at_ms, one.over_ms))

    def __len__(self) -> int:
        books = (by_value for by_type in self._spans.values() for by_value in by_type.values())
        return sum(len(spans) for by_value in books for spans in by_value.values())

    def withhold(
        self, running: Sequence[Rule], fired: Sequence[int], event: Any, withheld: WithheldRules
    ) -> WithheldRules:
        """Return `withheld` with the rules that fired and are snoozed for an event, when it was received."""
        out = {place for place, _ in withheld} if withheld else ()
        found: WithheldRules = []
        for place in fired:
            by_type = self._spans.get(running[place].id)
            if by_type is not None and place not in out and _is_snoozed(by_type, event):
                found.append((place, _SNOOZED))
        return withheld + found if found else withheld


def _is_snoozed(by_type: dict[SnoozeType, dict[str, list[tuple[int, int]]]], event: Any) -> bool:
    # The values of an event are few; the snoozes of a rule may be a thousand.
    for kind, by_value in by_type.items():
        for name in _NAMES_OF[kind]:
            value = getattr(event, name, None)
            if value is not None and (spans := by_value.get(value)) is not None:
                at_ms = event.received_at_ms
                for start_ms, end_ms in spans:
                    if start_ms <= at_ms < end_ms:
                        return True
    return False


#: The snoozes of each tenant that has some.
Snoozes = dict[str, SnoozeBook]


class SnoozeBody(Wire, frozen=True):
    """A rule and an entity for which it is to have no effect."""

    EXAMPLE: ClassVar[JSON] = {
        "ruleId": "webdriver",
        "type": "DEVICE",
        "value": "fp-77",
        "until": "2099-01-31T00:00:00Z",
        "reason": "Our own tests.",
    }

    rule_id: Annotated[str, msgspec.Meta(max_length=STRING_CHARS_MAX)]
    type: Annotated[SnoozeType, how(any_case=True)]
    value: Annotated[str, msgspec.Meta(max_length=VALUE_CHARS_MAX)]
    until: Annotated[
        Any,
        msgspec.Meta(description="Unix seconds or ISO 8601, in the future, by the time of receipt."),
        how(as_sent=True),
    ]
    reason: Annotated[str, msgspec.Meta(max_length=STRING_CHARS_MAX), ALL_422] = ""


class AmlSnoozeBody(SnoozeBody, frozen=True):
    """An AML rule and an entity for which it is to have no effect."""

    EXAMPLE: ClassVar[JSON] = {
        "ruleId": "call-for-action",
        "type": "CUSTOMER",
        "value": "embassy-5",
        "until": "2099-01-31T00:00:00Z",
        "reason": "An embassy, whose transfers are known.",
    }


class SnoozeRequest(msgspec.Struct, frozen=True):
    """A body that was read: the value in canonical form, the end in Unix milliseconds."""

    rule: str
    type: SnoozeType
    value: str
    until_ms: int
    reason: str

    def found_in(self, current: Iterable[Snooze]) -> Snooze | None:
        """Return one of those in force that says the same; a second one would have to be ended as well."""
        said = (self.rule, self.type, self.value, self.until_ms, self.reason)
        wanted = (one for one in current if (one.rule, one.type, one.value, one.until_ms, one.reason) == said)
        return next(wanted, None)


def read_snooze(body: JSON, rules: Iterable[str], now_ms: int) -> SnoozeRequest:
    """Read a body about one of some rules. Raises `Invalid` (400) or `Unprocessable` (422)."""
    faults = Faults()
    said = read_body(body, SnoozeBody, faults)
    until_ms = None if said.until is None else read_moment(said.until)
    if said.until is not None and until_ms is None:
        faults.shape["until"] = "must be Unix seconds or ISO 8601"
    elif until_ms is not None and until_ms <= now_ms:
        faults.meaning["until"] = "must be in the future"
    if said.rule_id is not None and said.rule_id not in set(rules):
        faults.meaning["ruleId"] = "is no rule of the rules in force"
    value = canonical(said.type, said.value) if said.type and said.value is not None else None
    if said.value is not None and said.type and value is None:
        faults.meaning["value"] = f"is no value of the type {said.type.value}"
    faults.raise_any()
    assert value is not None
    assert until_ms is not None
    return SnoozeRequest(said.rule_id, said.type, value, until_ms, said.reason)


def canonical(kind: SnoozeType, value: str) -> str | None:
    """Return a value as events have it; None for one that no event can have."""
    if kind is SnoozeType.IP:
        return canonical_ip(value.strip())
    text = value.strip()
    if not text or not text.isprintable():
        return None
    if kind is SnoozeType.EMAIL:
        return text.lower() if "@" in text else None
    return text
