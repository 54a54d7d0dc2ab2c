"""The transfer: what an AML event says of money, however a tenant spells and types it."""

import functools
import re
from collections.abc import Set
from typing import Any, Final

import msgspec

from vettance.aml.member_spellings import (
    AMOUNTS,
    MINOR_SPELLINGS,
    PROFILE_SPELLINGS,
    SPELLINGS,
    read_members,
    read_profile,
)
from vettance.clock import DAY_MS
from vettance.decisions.field_readers import read_id, read_word
from vettance.reference.jurisdictions import country_of
from vettance.wire.payload import JSON, STRING_CHARS_MAX, read_moment
from vettance.wire.spelt_numbers import read_amount, read_number
from vettance.wire.suggestions import KnownNames


class Transfer(msgspec.Struct, frozen=True, gc=False):
    """What an event says of money. Texts are as sent, except codes and words, which are in one letter case.

    `moves`: whether money moved at all. `transfers`: whether it did, or the name or the type says so.
    `incoming` and `outgoing` are as the customer sees it; both are false when that is not known.
    `age_days` is the age of the account at the event.
    """

    moves: bool = False
    transfers: bool = False
    incoming: bool = False
    outgoing: bool = False
    cash: bool = False
    repays: bool = False
    repays_early: bool = False
    lends: bool = False
    buys: bool = False
    pays_wages: bool = False
    is_regular: bool = False
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
    goods: str | None = None
    quantity: float | int | None = None
    unit_price: float | int | None = None
    instrument: str | None = None
    city: str | None = None


NO_TRANSFER: Final = Transfer()
_UNSAID: Final = Transfer(transfers=True)


#: Every spelling of a member that holds an amount.
_AMOUNTS: Final = frozenset(
    spelling
    for name in AMOUNTS
    for table in (SPELLINGS, MINOR_SPELLINGS, PROFILE_SPELLINGS)
    for spelling in table.get(name, ())
)


@functools.cache
def known_names() -> KnownNames:
    """Return the names with a meaning within AML events, in every spelling, by where they are read."""
    names = frozenset(
        spelling
        for table in (SPELLINGS, MINOR_SPELLINGS)
        for spellings in table.values()
        for spelling in spellings
    )
    profile = frozenset(spelling for spellings in PROFILE_SPELLINGS.values() for spelling in spellings)
    return KnownNames(
        {
            **dict.fromkeys(("metadata", "payload"), names),
            "customer.metadata": names | profile,
            "": frozenset({"occurredAt"}),
        }
    )


def unreadable_amounts(body: JSON) -> list[str]:
    """Return the paths of amounts that an event spells in any known way and that hold no number."""
    holders = (body.get("customer"), "customer.metadata"), (body, "metadata"), (body, "payload")
    found = []
    for holder, path in holders:
        members = holder.get(path.rpartition(".")[2]) if type(holder) is dict else None
        for name, value in members.items() if type(members) is dict else ():
            if name in _AMOUNTS and value is not None and not _is_readable(name, value):
                found.append(f"{path}.{name}")
    return found


def _is_readable(name: str, value: Any) -> bool:
    if read_amount(value) is not None:
        return True
    said = read_members({name: value}, {}) if type(value) is dict else {}
    return any(read_amount(said.get(amount)) is not None for amount in AMOUNTS)


_IN: Final = frozenset(
    {
        "in",
        "incoming",
        "inbound",
        "credit",
        "credited",
        "crdt",
        "cr",
        "inflow",
        "receive",
        "received",
        "deposit",
        "topup",
    }
)
_OUT: Final = frozenset(
    {
        *(
            "out",
            "outgoing",
            "outbound",
            "debit",
            "debited",
            "dbit",
            "dr",
            "outflow",
            "send",
            "sent",
            "withdrawal",
            "withdraw",
            "withdrawn",
        ),
        *("payment", "payout", "purchase", "repayment"),
    }
)
#: Marks of statements for credit, debit and their reversals (SWIFT MT940, field 61, subfield 3).
_MARKS: Final = {"c": 1, "d": -1, "rc": -1, "rd": 1}
#: Words of direction are not among them: people sign in, and messages are sent.
_TRANSFER: Final = frozenset(
    {
        *("transfer", "transfers", "transferred", "wire", "remittance", "remit", "swift", "sepa", "ach"),
        *("payment", "payments", "payout", "payouts", "repayment", "purchase", "topup"),
        *("deposit", "deposits", "withdrawal", "withdrawals", "withdraw", "transaction", "transactions"),
    }
)
_CASH: Final = frozenset({"cash", "atm", "teller"})
_REPAY: Final = frozenset({"repayment", "repay", "repaid", "prepayment", "prepay", "payoff"})
_EARLY: Final = frozenset({"early", "prepayment", "prepay", "payoff", "settlement", "settled"})
_LEND: Final = frozenset({"disbursement", "disbursed", "drawdown", "disburse"})
_LOAN: Final = frozenset({"loan", "loans", "mortgage"})
_BUY: Final = frozenset({"card", "pos", "contactless", "purchase", "checkout", "merchant", "ecommerce"})
_WAGES: Final = frozenset({"salary", "salaries", "wage", "wages", "payroll", "pension", "pensions"})
#: Words that together say that a payment comes again and again.
_REGULAR: Final = (frozenset({"standing", "order"}), frozenset({"direct", "debit"}), frozenset({"mandate"}))
_FAILED: Final = frozenset(
    {
        *("failed", "failure", "declined", "denied", "rejected", "refused", "unsuccessful", "error"),
        *("cancelled", "canceled", "aborted", "reversed", "voided", "bounced"),
    }
)
#: Words that say so of a transfer, yet not in a name: a deposit that expired is paid out. The last two are
#: codes of ISO 20022 (ExternalPaymentTransactionStatus1Code).
_UNDONE: Final = _FAILED | {"returned", "void", "expired", "blocked", "timeout", "timed", "rjct", "canc"}
#: Words by which a kind of customer is a person, and those by which it is a business; they count first.
_PERSON, _BUSINESS = (
    frozenset(words.split())
    for words in (
        "person individual retail personal private consumer natural b2c household family joint adult minor"
        " child youth student pupil employee employed salaried worker freelancer freelance gig landlord"
        " unemployed homemaker retired retiree pensioner senior expat expatriate migrant resident",
        "business businesses company corporate corporation enterprise firm sme smb b2b legal entity"
        " organisation organization institution institutional government bank fintech fund msb exchange"
        " broker processor platform nonprofit charity ngo foundation association club church partnership"
        " llc ltd gmbh plc commercial merchant marketplace shop store retailer kiosk wholesale wholesaler"
        " importer exporter trader trading dealer vendor supplier manufacturer construction logistics"
        " transport restaurant hotel cafe clinic farm agency law notary property services payroll",
    )
)
_NAMED: Final = ("Id", "Account")
_PARTS: Final = (*_NAMED, "Name", "Country")
#: Members of events that name both sides of a transfer.
_SIDES: Final = frozenset(f"{side}{part}" for side in ("sender", "receiver") for part in _PARTS)
_STILL: Final = frozenset({"CUSTOMER", "APPLICATION", "COUNTERPARTY", "PAYMENT_INSTRUMENT", "CONTRACT"})
_WORD: Final = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")


def _transfers(name: Set[str], kinds: Set[str], category: str | None) -> bool:
    """Tell whether the words of a name, or those of a type too, say that money moves."""
    return category not in _STILL and _FAILED.isdisjoint(name) and not _TRANSFER.isdisjoint(kinds)


def read_transfer(
    name: str,
    category: str | None,
    metadata: JSON,
    payload: JSON,
    profile: JSON,
    customer_id: str | None,
    occurred_at_ms: int,
) -> Transfer:
    """Read the known members: of `metadata` first, then the legacy `payload`, then `customer.metadata`."""
    words = words_of(name)
    if not metadata and not payload and not profile:
        return _UNSAID if _transfers(words, words, category) else NO_TRANSFER
    said = read_members(metadata, payload)
    about = {**read_profile(profile, said.get("currency")), **said} if profile else said
    kind = read_word(said.get("transactionType"))
    kinds = words | words_of(kind or "")
    channel = read_word(said.get("channel"))
    amount = read_amount(said.get("amount"))
    if amount is not None and amount < 0:
        kinds, amount = kinds | {"out"}, -amount
    status = words_of(read_word(said.get("status")) or "")
    failed = not (_UNDONE.isdisjoint(status) and _FAILED.isdisjoint(words))
    moves = amount is not None and amount > 0 and not failed and category not in _STILL
    way = _direction(read_word(said.get("direction")), kinds)
    account = read_id(said.get("accountId"))
    if not said.keys().isdisjoint(_SIDES):
        way = way or _way_between(said, {customer_id, account} - {None})
        said, account = _other_side(said, way), account or _own_account(said, way)
    counterparty = read_id(said.get("counterpartyId"))
    counterparty_account = read_id(said.get("counterpartyAccount"))
    if way == 0 and (counterparty or counterparty_account):
        way = -1  # Most products report what their customers do, and a payment is what customers do.
    repays = not _REPAY.isdisjoint(kinds)
    country = said.get("counterpartyCountry")
    opened_ms = read_moment(about.get("accountOpenedAt"))
    return Transfer(
        moves=moves,
        transfers=moves or (not failed and _transfers(words, kinds, category)),
        incoming=moves and way > 0,
        outgoing=moves and way < 0,
        cash=channel in _CASH or not _CASH.isdisjoint(kinds),
        repays=repays,
        repays_early=repays and not _EARLY.isdisjoint(kinds),
        # A loan that comes in is paid out, whatever else its type says of it.
        lends=not _LEND.isdisjoint(kinds) or (way > 0 and not repays and not _LOAN.isdisjoint(kinds)),
        # A type that says "payment" is a purchase where transfers are typed too; a name says it of anything.
        buys=channel in _BUY or not _BUY.isdisjoint(kinds) or kind in ("payment", "bill_payment"),
        pays_wages=not _WAGES.isdisjoint(kinds | words_of(_text(said.get("description")) or "")),
        is_regular=any(words <= kinds for words in _REGULAR),
        amount=amount,
        currency=_upper(said.get("currency")),
        account=account,
        counterparty_id=counterparty,
        counterparty_name=_text(said.get("counterpartyName")),
        counterparty_country=country_of(country) if type(country) is str else None,
        counterparty_account=counterparty_account,
        channel=channel,
        type=kind,
        balance_after=read_amount(said.get("balanceAfter")),
        income=read_amount(about.get("declaredMonthlyIncome")),
        age_days=max(0.0, (occurred_at_ms - opened_ms) / DAY_MS) if opened_ms is not None else None,
        segment=_segment(read_word(about.get("segment"))),
        description=read_word(said.get("description")),
        invoice_amount=read_amount(said.get("invoiceAmount")),
        market_value=read_amount(said.get("marketValue")),
        goods=_goods(said.get("goodsCode")),
        quantity=read_number(said.get("quantity")),
        unit_price=read_amount(said.get("unitPrice")),
        instrument=read_id(said.get("instrumentId")),
        city=read_id(said.get("city")),
    )


def transfer_of(sent: JSON) -> Transfer:
    """Read what a taken event says of money as its rules read it, for people who look at the event.

    The age of the account is not told.
    """
    customer = sent.get("customer") or {}
    metadata, payload, profile = [
        one or {} for one in (sent.get("metadata"), sent.get("payload"), customer.get("metadata"))
    ]
    return read_transfer(
        sent.get("eventName") or "",
        sent.get("eventCategory"),
        metadata,
        payload,
        profile,
        customer.get("externalId"),
        0,
    )


def _way_between(said: JSON, own: Set[str | None]) -> int:
    """Return 1 where the customer is paid, -1 where the customer pays, of an event that names a side."""
    pays = {read_id(said.get(f"sender{part}")) for part in _NAMED}
    is_paid = {read_id(said.get(f"receiver{part}")) for part in _NAMED}
    if own & pays or own & is_paid:
        return int(bool(own & is_paid)) - int(bool(own & pays))
    return -1 if any(f"receiver{part}" in said for part in _PARTS) else 1


def _other_side(said: JSON, way: int) -> JSON:
    """Return what is said with the side that is not the customer as the counterparty."""
    side = "sender" if way > 0 else "receiver"
    other = {f"counterparty{part}": said.get(f"{side}{part}") for part in _PARTS}
    return {**said, **{name: value for name, value in other.items() if value is not None}}


def _own_account(said: JSON, way: int) -> str | None:
    return read_id(said.get("receiverAccount" if way > 0 else "senderAccount"))


def words_of(text: str) -> frozenset[str]:
    """Return the words of a name such as `card.added` or `addCard`, in small letters."""
    return frozenset(word.lower() for word in _WORD.findall(text[:STRING_CHARS_MAX]))


def _direction(said: str | None, kinds: frozenset[str]) -> int:
    """Return 1 for money that comes in, -1 for money that goes out, 0 when the event does not say."""
    if said is not None:
        if said in _MARKS:
            return _MARKS[said]
        kinds = words_of(said)
    coming, going = not _IN.isdisjoint(kinds), not _OUT.isdisjoint(kinds)
    return int(coming) - int(going)


def _segment(said: str | None) -> str | None:
    words = words_of(said or "")
    if not words.isdisjoint(_BUSINESS):
        return "business"
    return None if words.isdisjoint(_PERSON) else "person"


def _upper(value: Any) -> str | None:
    return (value.strip().upper() or None) if type(value) is str else None


def _goods(value: Any) -> str | None:
    name = read_id(value)
    return " ".join(name.lower().split())[:STRING_CHARS_MAX] if name is not None else None


def _text(value: Any) -> str | None:
    return (value.strip()[:STRING_CHARS_MAX] or None) if type(value) is str else None
