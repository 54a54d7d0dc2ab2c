"""Coverage of AML events: what the newest ones of a tenant lack, and what of them nothing reads."""

from collections import Counter
from collections.abc import Iterable
from typing import Any, Final, NamedTuple

import msgspec

from vettance.aml.aml_event import AmlEventBody, read_taken_aml_event
from vettance.aml.member_spellings import read_members
from vettance.aml.transfer import known_names, unreadable_amounts
from vettance.decisions.active_rulesets import ActiveRules
from vettance.rules.compiler import CompiledRules
from vettance.rules.needs import needs
from vettance.rules.rule import Rule
from vettance.rules.rule_reads import ConditionReader
from vettance.rules.schema import Schema
from vettance.wire.payload import JSON
from vettance.wire.suggestions import unknown_members

#: Enough to show what a sender always does, and read in milliseconds.
NEWEST: Final = 200
#: Bodies beyond this are left unread: what a sender does always shows in small ones too.
BODY_BYTES_MAX: Final = 64 * 1024

#: Members of transactions, by what they tell; one spelling of one of them is enough.
PARTS: Final = {
    "amount": ("amount",),
    "currency": ("currency",),
    "counterparty": (
        *("counterpartyId", "counterpartyAccount", "counterpartyName"),
        *("senderId", "senderAccount", "receiverId", "receiverAccount"),
    ),
    "counterpartyCountry": ("counterpartyCountry", "senderCountry", "receiverCountry"),
}


class AmlCoverage(NamedTuple):
    """What was found in some events, as counts of events.

    `without` is of the `transactions` among them, by part (`PARTS`); `unreadable` of amounts that were sent
    as no number can be; `unknown` of members that nothing reads, each with the name that was probably meant.
    """

    events: int
    transactions: int
    without: Counter[str]
    unreadable: Counter[str]
    unknown: Counter[tuple[str, str | None]]


class NewestAmlEvent(NamedTuple):
    """A row of `select_newest_sent`: its time (Unix ms) and, unless large, its body."""

    occurred_at_ms: int
    sent: bytes | None


def cover(newest: Iterable[NewestAmlEvent]) -> AmlCoverage:
    """Look through the bodies of events; what is left out or damaged counts as no event."""
    without: Counter[str] = Counter()
    unreadable: Counter[str] = Counter()
    unknown: Counter[tuple[str, str | None]] = Counter()
    events = transactions = 0
    for one in newest:
        if (body := _body(one.sent)) is None:
            continue
        events += 1
        said = read_members(_members(body, "metadata"), _members(body, "payload"))
        unreadable.update(unreadable_amounts(body))
        unknown.update(unknown_members(body, AmlEventBody, known_names()))
        if body.get("eventCategory") in (None, "TRANSACTION"):
            transactions += 1
            without.update(part for part, names in PARTS.items() if not any(name in said for name in names))
    return AmlCoverage(events, transactions, without, unreadable, unknown)


def silent_rules(
    newest: Iterable[NewestAmlEvent], active: ActiveRules, conditions: ConditionReader, schema: Schema
) -> list[tuple[Rule, list[str]]]:
    """Return the rules that none of the events can make fire, each with the values that none of them has."""
    unsaid = _unsaid_names(newest, active.compiled, schema)
    silent = []
    for rule in active.ruleset.running if unsaid else ():
        condition = conditions.read(rule.when)
        if condition is not None and (names := needs(condition, unsaid)):
            silent.append((rule, sorted(names)))
    return silent


def _unsaid_names(
    newest: Iterable[NewestAmlEvent], compiled: CompiledRules, schema: Schema
) -> frozenset[str]:
    """Return the names that rules read from an event itself and for which none of the events has a value.

    What the memory adds to an event is never among them. Without an event that can be read there are none.
    """
    places = [place for place, name in enumerate(compiled.fact_names) if not _is_remembered(name, schema)]
    looked = False
    for one in newest:
        if (body := _body(one.sent)) is None:
            continue
        try:
            facts = compiled.facts(read_taken_aml_event(body, one.occurred_at_ms))
        except Exception:  # noqa: BLE001, S112  An earlier version took it, or it is damaged.
            continue
        looked, places = True, [place for place in places if facts[place] is None]
    return frozenset(compiled.fact_names[place] for place in places) if looked else frozenset()


def _is_remembered(name: str, schema: Schema) -> bool:
    field = schema.fields.get(name)
    return field is not None and field.attribute is not None and field.attribute.startswith("trail.")


def _body(sent: bytes | None) -> JSON | None:
    if sent is None:
        return None
    try:
        body = msgspec.json.decode(sent)
    except msgspec.MsgspecError:
        return None
    return body if type(body) is dict else None


def _members(body: JSON, name: str) -> dict[str, Any]:
    held = body.get(name)
    return held if type(held) is dict else {}
