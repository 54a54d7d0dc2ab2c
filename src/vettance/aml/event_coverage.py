"""Coverage of AML events: what the newest ones of a tenant lack, and what of them nothing reads."""

from collections import Counter
from collections.abc import Iterable
from typing import Any, Final, NamedTuple

import msgspec

from vettance.aml.aml_event import AmlEventBody
from vettance.aml.member_spellings import read_members
from vettance.aml.transfer import known_names
from vettance.decisions.field_readers import read_amount
from vettance.wire.payload import JSON
from vettance.wire.suggestions import unknown_members

#: Enough to show what a sender always does, and read in milliseconds.
NEWEST: Final = 200
#: Bodies beyond this are left unread: what a sender does always shows in small ones too.
BODY_BYTES_MAX: Final = 64 * 1024

#: Members of transactions, by what they tell; one spelling of one of them is enough.
_PARTS: Final = (
    ("an amount", ("amount",)),
    ("a currency", ("currency",)),
    ("a counterparty", ("counterpartyId", "counterpartyAccount", "counterpartyName")),
    ("the country of the counterparty", ("counterpartyCountry",)),
)
_AMOUNTS: Final = ("amount", "balanceAfter", "declaredMonthlyIncome", "invoiceAmount", "marketValue")


class AmlCoverage(NamedTuple):
    """What was found in some events, as counts of events.

    `without` is of the `transactions` among them; `unreadable` of amounts that were sent as no number can be;
    `unknown` of members that nothing reads, each with the name that was probably meant.
    """

    events: int
    transactions: int
    without: Counter[str]
    unreadable: Counter[str]
    unknown: Counter[tuple[str, str | None]]


def cover(newest: Iterable[bytes | None]) -> AmlCoverage:
    """Look through the bodies of events; what is left out (None) or damaged counts as no event."""
    without: Counter[str] = Counter()
    unreadable: Counter[str] = Counter()
    unknown: Counter[tuple[str, str | None]] = Counter()
    events = transactions = 0
    for sent in newest:
        if sent is None or (body := _body(sent)) is None:
            continue
        events += 1
        said = read_members(_members(body, "metadata"), _members(body, "payload"))
        unreadable.update(name for name in _AMOUNTS if name in said and read_amount(said[name]) is None)
        unknown.update(unknown_members(body, AmlEventBody, known_names()))
        if body.get("eventCategory") in (None, "TRANSACTION"):
            transactions += 1
            without.update(part for part, names in _PARTS if not any(name in said for name in names))
    return AmlCoverage(events, transactions, without, unreadable, unknown)


def _body(sent: bytes) -> JSON | None:
    try:
        body = msgspec.json.decode(sent)
    except msgspec.MsgspecError:
        return None
    return body if type(body) is dict else None


def _members(body: JSON, name: str) -> dict[str, Any]:
    held = body.get(name)
    return held if type(held) is dict else {}
