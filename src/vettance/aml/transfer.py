"""The transfer: what an AML event says of money, however a tenant spells and types it."""

import re
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from vettance.clock import DAY_MS
from vettance.decisions.field_readers import read_amount, read_id, read_word
from vettance.reference.jurisdictions import country_of
from vettance.wire.payload import JSON, STRING_CHARS_MAX, read_moment
from vettance.wire.suggestions import KnownNames

#: The members of `metadata` with a known meaning; each is also read in snake_case.
KNOWN_MEMBERS: Final = (
    ("amount", "Amount of money, a number or a decimal text."),
    ("currency", "Currency code."),
    ("direction", "`in` or `out`, as the customer sees it."),
    ("accountId", "The customer's account."),
    ("counterpartyId", "Who is on the other side."),
    ("counterpartyName", "Their name."),
    ("counterpartyCountry", "Their country: a code of ISO 3166-1 or a name."),
    ("counterpartyAccount", "Their account."),
    ("channel", "How it was done: `cash`, `atm`, `branch`, `web`, `wire` …"),
    ("transactionType", "What it was: `transfer`, `deposit`, `withdrawal`, `repayment` …"),
    ("balanceAfter", "The balance of the account afterwards."),
    ("declaredMonthlyIncome", "What the customer said to earn (a business: to turn over) in a month."),
    ("accountOpenedAt", "When the account was opened: ISO 8601 or Unix seconds."),
    ("segment", "`person` or `business`."),
    ("description", "The text on the statement."),
    ("invoiceAmount", "What the invoice of a trade says."),
    ("marketValue", "What the goods of a trade are worth."),
    ("instrumentId", "The card, wallet or mandate that was used or added."),
    ("status", "How it ended; what failed moves no money."),
    ("city", "Where it was done."),
)


class Transfer(msgspec.Struct, frozen=True, gc=False):
    """What an event says of money. Texts are as sent, except codes and words, which are in one letter case.

    `moves`: whether money moved at all. `incoming` and `outgoing` are as the customer sees it; both are false
    when that is not known. `age_days` is the age of the account at the event.
    """

    moves: bool = False
    incoming: bool = False
    outgoing: bool = False
    cash: bool = False
    repays: bool = False
    repays_early: bool = False
    lends: bool = False
    buys: bool = False
    pays_wages: bool = False
    amount: float | int | None = None
    currency: str | None = None
    account: str | None = None
    counterparty_id: str | None = None
    counterparty_name: str | None = None
    counterparty_country: str | None = None
    counterparty_account: str | None = None
    channel: str | None = None
    type: str | None = None
    balance_after: float | int | None = None
    income: float | int | None = None
    age_days: float | None = None
    segment: str | None = None
    description: str | None = None
    invoice_amount: float | int | None = None
    market_value: float | int | None = None
    instrument: str | None = None
    city: str | None = None


NO_TRANSFER: Final = Transfer()

_SNAKE: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
#: Under which names each of them is read, in this order.
SPELLINGS: Final[dict[str, tuple[str, ...]]] = {
    name: (name, _SNAKE.sub("_", name).lower()) for name, _ in KNOWN_MEMBERS
}
SPELLINGS["instrumentId"] += (
    "paymentInstrumentId",
    "payment_instrument_id",
    "cardHash",
    "card_hash",
    "iban",
)
SPELLINGS["city"] += ("branchId", "branch_id", "branch")
SPELLINGS["transactionType"] += ("type",)
SPELLINGS["status"] += ("outcome",)


def known_names() -> KnownNames:
    """Return the names with a meaning within AML events, in every spelling, by where they are read."""
    names = frozenset(spelling for spellings in SPELLINGS.values() for spelling in spellings)
    return KnownNames(
        {**dict.fromkeys(("metadata", "payload", "customer.metadata"), names), "": frozenset({"occurredAt"})}
    )


_IN: Final = frozenset(
    {"in", "incoming", "inbound", "credit", "credited", "receive", "received", "deposit", "topup"}
)
_OUT: Final = frozenset(
    {
        *(
            "out",
            "outgoing",
            "outbound",
            "debit",
            "debited",
            "send",
            "sent",
            "withdrawal",
            "withdraw",
            "withdrawn",
        ),
        *("payment", "payout", "purchase", "repayment"),
    }
)
_CASH: Final = frozenset({"cash", "atm", "teller"})
_REPAY: Final = frozenset({"repayment", "repay", "repaid", "prepayment", "prepay", "payoff"})
_EARLY: Final = frozenset({"early", "prepayment", "prepay", "payoff", "settlement", "settled"})
_LEND: Final = frozenset({"disbursement", "disbursed", "drawdown", "disburse"})
_LOAN: Final = frozenset({"loan", "loans", "mortgage"})
_BUY: Final = frozenset({"card", "pos", "contactless", "purchase", "checkout", "merchant", "ecommerce"})
_WAGES: Final = frozenset({"salary", "salaries", "wage", "wages", "payroll", "pension", "pensions"})
_FAILED: Final = frozenset(
    {"failed", "failure", "declined", "rejected", "cancelled", "canceled", "error", "reversed", "refused"}
)
_PERSON: Final = frozenset(
    {"person", "individual", "retail", "personal", "private", "consumer", "natural_person"}
)
_STILL: Final = frozenset({"CUSTOMER", "APPLICATION", "COUNTERPARTY", "PAYMENT_INSTRUMENT", "CONTRACT"})
_WORD: Final = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")


def _member(holders: tuple[Mapping[str, Any], ...], name: str) -> Any:
    for spelling in SPELLINGS[name]:
        for holder in holders:
            if (value := holder.get(spelling)) is not None:
                return value
    return None


def read_transfer(
    name: str, category: str | None, metadata: JSON, payload: JSON, profile: JSON, occurred_at_ms: int
) -> Transfer:
    """Read the known members: of `metadata` first, then the legacy `payload`, then `customer.metadata`."""
    holders = tuple(holder for holder in (metadata, payload) if holder)
    if not holders and not profile:
        return NO_TRANSFER
    about = (*holders, profile) if profile else holders
    words = _words(name)
    kind = read_word(_member(holders, "transactionType"))
    kinds = words | _words(kind or "")
    channel = read_word(_member(holders, "channel"))
    amount = read_amount(_member(holders, "amount"))
    if amount is not None and amount < 0:
        kinds, amount = kinds | {"out"}, -amount
    counterparty = read_id(_member(holders, "counterpartyId"))
    counterparty_account = read_id(_member(holders, "counterpartyAccount"))
    failed = read_word(_member(holders, "status")) in _FAILED or not _FAILED.isdisjoint(words)
    moves = amount is not None and amount > 0 and not failed and category not in _STILL
    way = _direction(read_word(_member(holders, "direction")), kinds)
    if way == 0 and (counterparty or counterparty_account):
        way = -1  # Most products report what their customers do, and a payment is what customers do.
    repays = not _REPAY.isdisjoint(kinds)
    country = _member(holders, "counterpartyCountry")
    opened_ms = read_moment(_member(about, "accountOpenedAt"))
    return Transfer(
        moves=moves,
        incoming=moves and way > 0,
        outgoing=moves and way < 0,
        cash=channel in _CASH or not _CASH.isdisjoint(kinds),
        repays=repays,
        repays_early=repays and not _EARLY.isdisjoint(kinds),
        # A loan that comes in is paid out, whatever else its type says of it.
        lends=not _LEND.isdisjoint(kinds) or (way > 0 and not repays and not _LOAN.isdisjoint(kinds)),
        # A type that says "payment" is a purchase where transfers are typed too; a name says it of anything.
        buys=channel in _BUY or not _BUY.isdisjoint(kinds) or kind in ("payment", "bill_payment"),
        pays_wages=not _WAGES.isdisjoint(kinds | _words(_text(_member(holders, "description")) or "")),
        amount=amount,
        currency=_upper(_member(holders, "currency")),
        account=read_id(_member(holders, "accountId")),
        counterparty_id=counterparty,
        counterparty_name=_text(_member(holders, "counterpartyName")),
        counterparty_country=country_of(country) if type(country) is str else None,
        counterparty_account=counterparty_account,
        channel=channel,
        type=kind,
        balance_after=read_amount(_member(holders, "balanceAfter")),
        income=read_amount(_member(about, "declaredMonthlyIncome")),
        age_days=max(0.0, (occurred_at_ms - opened_ms) / DAY_MS) if opened_ms is not None else None,
        segment=_segment(read_word(_member(about, "segment"))),
        description=read_word(_member(holders, "description")),
        invoice_amount=read_amount(_member(holders, "invoiceAmount")),
        market_value=read_amount(_member(holders, "marketValue")),
        instrument=read_id(_member(holders, "instrumentId")),
        city=read_id(_member(holders, "city")),
    )


def _words(text: str) -> frozenset[str]:
    return frozenset(word.lower() for word in _WORD.findall(text[:STRING_CHARS_MAX]))


def _direction(said: str | None, kinds: frozenset[str]) -> int:
    """Return 1 for money that comes in, -1 for money that goes out, 0 when the event does not say."""
    if said is not None:
        return 1 if said in _IN else -1 if said in _OUT else 0
    coming, going = not _IN.isdisjoint(kinds), not _OUT.isdisjoint(kinds)
    return int(coming) - int(going)


def _segment(said: str | None) -> str | None:
    if said is None:
        return None
    return "person" if said in _PERSON else "business"


def _upper(value: Any) -> str | None:
    return (value.strip().upper() or None) if type(value) is str else None


def _text(value: Any) -> str | None:
    return (value.strip()[:STRING_CHARS_MAX] or None) if type(value) is str else None
