"""The members of a fraud event with a known meaning, and every spelling under which they are read.

A member that is spelt in another way is lost in silence, and the rules that need it with it. The spellings
are those of payment gateways, of shop systems and of what people write who name a column.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeVar

from vettance.events.event import Event
from vettance.events.minor_amounts import PARTS, in_units, minor_spellings, with_minor
from vettance.wire.spellings import Spellings, both_cases

_Value = TypeVar("_Value")


def once(read: Callable[[Event], _Value]) -> Callable[[Event], _Value]:
    """Keep what was read of the latest event, because several fields are read from it one after the other.

    The pair is replaced as one value: a thread that reads another event only makes this one be read again.
    """
    kept: tuple[Event, _Value] | None = None

    def read_once(event: Event) -> _Value:
        nonlocal kept
        latest = kept
        if latest is None or latest[0] is not event:
            kept = latest = (event, read(event))
        return latest[1]

    return read_once


#: Objects around what an event says: `{"payment": {"card": {"fingerprint": "k"}}}` names a card.
WRAPPERS: Final = (
    *("payment", "transaction", "order", "checkout", "purchase", "charge"),
    *("transfer", "withdrawal", "payout", "details", "data"),
)
#: What an amount is called, in the order in which it counts.
_AMOUNTS: Final = (
    *("amount", "transactionAmount", "paymentAmount", "orderAmount", "transferAmount", "withdrawalAmount"),
    *("payoutAmount", "purchaseAmount", "chargeAmount", "instructedAmount", "txAmount", "txnAmount"),
    *(
        "totalAmount",
        "amountTotal",
        "amountValue",
        "unitAmountValue",
        "orderTotal",
        "orderValue",
        "cartTotal",
        "grandTotal",
    ),
)
#: Who is paid where the customer chooses it.
_PAYEES: Final = ("payee", "beneficiary", "recipient", "creditor")
_PAYEE_ENDINGS: Final = ("Iban", "AccountIban", "AccountId", "AccountNumber", "Account", "Id")
#: The spellings of each member, in the order in which they count; each is also read in snake_case.
_WORDS: Final[dict[str, str]] = {
    "amount": " ".join(_AMOUNTS),
    "currency": " ".join(
        (
            *("currency", "currencyCode", "transactionCurrency", "paymentCurrency", "orderCurrency"),
            *("amountCurrency", "amountCurrencyCode", "unitAmountCurrencyCode"),
            *(f"{name}Currency" for name in _AMOUNTS[1:]),
        )
    ),
    "merchantId": "merchantId merchantCode merchantNumber merchantRef sellerId vendorId storeId shopId",
    "terminalId": "terminalId posTerminalId terminalNumber posId",
    # What may be another for each payment, as tokens of some gateways are, counts last.
    "cardHash": "cardHash cardFingerprint cardNumberHash hashedCardNumber panHash hashedPan cardReference"
    " cardId cardToken",
    "paymentMethod": "paymentMethod paymentMethodType paymentType payMethod",
    "channel": "channel transactionChannel paymentChannel salesChannel orderChannel",
    "promoCode": "promoCode promotionCode couponCode voucherCode discountCode",
    "payeeId": " ".join(f"{name}{ending}" for ending in _PAYEE_ENDINGS for name in _PAYEES),
}
SPELLINGS: Final[dict[str, tuple[str, ...]]] = {name: both_cases(words) for name, words in _WORDS.items()}
#: The spellings of amounts in minor units, such as cents.
MINOR_SPELLINGS: Final = {"amount": minor_spellings(_AMOUNTS, of_event=True)}
_TABLE: Final = Spellings(with_minor(SPELLINGS, MINOR_SPELLINGS), ("amount",), WRAPPERS, PARTS)


def spelt_in(metadata: Mapping[str, Any], payload: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Return the members that a body's objects hold, by their documented names."""
    said = _TABLE.read(metadata, payload or {})
    return in_units(said, MINOR_SPELLINGS, said.get("currency"))


#: The members of an event under any spelling, by their documented names.
spelt_members: Final = once(lambda event: spelt_in(event.metadata, event.payload))
