"""The members of an AML event with a known meaning, and every spelling under which they are read.

A member that is spelt in another way is lost in silence, and the rules that need it with it. The spellings
are those of ISO 20022 messages, of core banking products and of what people write who name a column.
"""

from collections.abc import Mapping
from typing import Any, Final

from vettance.events.minor_amounts import (
    PARTS,
    UNIT_AMOUNT,
    in_units,
    minor_name,
    minor_spellings,
    with_minor,
)
from vettance.wire.spellings import Spellings, both_cases

#: The members of `metadata` with a known meaning; each spelling is also read in snake_case.
KNOWN_MEMBERS: Final = (
    ("amount", "Amount of money, a number or a decimal text."),
    ("currency", "Currency code."),
    ("direction", "`in` or `out` (`credit` or `debit`, `C` or `D`), as the customer sees it."),
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
    ("segment", "`person` or `business`, or a word of yours for one of them, as `student` or `charity`."),
    ("description", "The text on the statement."),
    ("invoiceAmount", "What the invoice of a trade says."),
    ("marketValue", "What the goods of a trade are worth."),
    ("goodsCode", "Which goods are traded: a code of yours or of a tariff, else what they are called."),
    ("quantity", "How many of them, in the unit that you always state for these goods."),
    ("unitPrice", "What one of them costs; without it, the invoice or amount by the quantity."),
    ("instrumentId", "The card, wallet or mandate that was used or added."),
    ("status", "How it ended; what failed moves no money."),
    ("city", "Where it was done."),
    ("senderId", "Who pays, where an event names both sides; the one that is not the customer counts."),
    ("senderName", "Their name."),
    ("senderCountry", "Their country."),
    ("senderAccount", "Their account."),
    ("receiverId", "Who is paid, likewise."),
    ("receiverName", "Their name."),
    ("receiverCountry", "Their country."),
    ("receiverAccount", "Their account."),
)
#: What else who pays is called, and who is paid. A plain `from` may be a date, and a `source` a system.
_PAYS: Final = ("sender", "payer", "originator", "debtor", "remitter")
_IS_PAID: Final = ("receiver", "creditor")
_FROM: Final = (*_PAYS, "from", "source")
_TO: Final = (*_IS_PAID, "to", "destination")


def _words(names: tuple[str, ...], *endings: str) -> str:
    return " ".join(f"{name}{ending}" for name in names for ending in endings)


#: What an amount is called; an object of that name may hold the currency, too.
_AMOUNT_WORDS: Final = (
    *("transactionAmount", "transferAmount", "paymentAmount", "instructedAmount", "amountValue"),
    *("totalAmount", "txAmount", "txnAmount", "settlementAmount", "interbankSettlementAmount"),
    "unitAmountValue",
)
_ACCOUNTS: Final = ("Account", "AccountId", "AccountNumber", "AccountIban", "Iban")

#: Other words for each, in the order in which they count. Nothing here may mean another member elsewhere.
_OTHER_WORDS: Final[dict[str, str]] = {
    "amount": " ".join(_AMOUNT_WORDS),
    "currency": "currencyCode transactionCurrency amountCurrency ccy "
    + _words(("amount", *_AMOUNT_WORDS), "Currency", "CurrencyCode", "Ccy")
    + " unitAmountCurrencyCode instructedCurrency settlementCurrency paymentCurrency transferCurrency",
    "direction": "transactionDirection flow debitCredit creditDebit creditDebitIndicator drCr",
    "accountId": "customerAccount customerAccountId accountNumber account",
    "counterpartyId": "counterparty otherParty otherPartyId beneficiary beneficiaryId payee payeeId"
    " recipient recipientId",
    "counterpartyName": "otherPartyName beneficiaryName payeeName recipientName",
    "counterpartyCountry": "counterpartyCountryCode beneficiaryCountry payeeCountry"
    " recipientCountry destinationCountry",
    "counterpartyAccount": "counterpartyAccountId counterpartyAccountNumber counterpartyAccountIban"
    " counterpartyIban"
    " beneficiaryAccount beneficiaryIban payeeAccount payeeIban recipientAccount"
    " recipientIban",
    "channel": "transactionChannel paymentChannel paymentMethod",
    "transactionType": "type txType paymentType operationType transactionKind",
    "balanceAfter": "balanceAfterTransaction newBalance closingBalance resultingBalance runningBalance"
    " accountBalance balance",
    "declaredMonthlyIncome": "monthlyIncome declaredIncome statedIncome statedMonthlyIncome"
    " expectedMonthlyIncome declaredMonthlyTurnover monthlyTurnover expectedMonthlyTurnover",
    "accountOpenedAt": "accountOpened accountOpenedOn accountOpenDate accountOpenedDate accountOpeningDate"
    " accountCreatedAt openedAt",
    "segment": "customerSegment customerType clientType partyType",
    "description": "narrative remittanceInformation remittanceInfo paymentDetails memo purpose"
    " unstructuredRemittance remittanceInformationUnstructured paymentPurpose paymentReference",
    "invoiceAmount": "invoiceValue invoicedAmount invoiceTotal",
    "marketValue": "goodsMarketValue fairMarketValue estimatedMarketValue marketValueOfGoods goodsValue"
    " fairValue marketPrice",
    "goodsCode": "hsCode tariffCode commodityCode productCode itemCode sku goodsId productId commodity goods"
    " goodsName goodsType goodsDescription commodityName productName productDescription itemDescription",
    "quantity": "qty goodsQuantity goodsQty numberOfUnits unitCount units netWeight netWeightKg weightKg",
    "unitPrice": "pricePerUnit unitValue unitCost goodsUnitPrice invoiceUnitPrice pricePerKg",
    "instrumentId": "paymentInstrumentId cardHash cardId cardToken walletId mandateId iban",
    "status": "outcome transactionStatus paymentStatus result",
    "city": "branchId branch branchCode branchName",
    "senderId": _words(_PAYS, "Id", "", "CustomerId"),
    "senderName": _words(_FROM, "Name"),
    "senderCountry": _words(_FROM, "Country", "CountryCode"),
    "senderAccount": _words(_FROM, *_ACCOUNTS),
    "receiverId": _words(_IS_PAID, "Id", "", "CustomerId"),
    "receiverName": _words(_TO, "Name"),
    "receiverCountry": _words(_TO, "Country", "CountryCode"),
    "receiverAccount": _words(_TO, *_ACCOUNTS),
}
#: Of these an object, such as `{"value": 5, "currency": "EUR"}`, says something by itself.
AMOUNTS: Final = (
    "amount",
    "balanceAfter",
    "declaredMonthlyIncome",
    "invoiceAmount",
    "marketValue",
    "unitPrice",
)
#: What says in `customer.metadata` what kind of customer it is; of an event, these words say what it is.
_SEGMENT_OF_PROFILE: Final = ("type", "kind", "entityType", "entity_type")

#: Under which names each of them is read, in this order.
SPELLINGS: Final[dict[str, tuple[str, ...]]] = {
    name: both_cases(f"{name} {_OTHER_WORDS.get(name, '')}") for name, _ in KNOWN_MEMBERS
}
#: The same for `customer.metadata`, which says things of the customer only.
PROFILE_SPELLINGS: Final[dict[str, tuple[str, ...]]] = {
    "declaredMonthlyIncome": SPELLINGS["declaredMonthlyIncome"],
    "accountOpenedAt": (*SPELLINGS["accountOpenedAt"], "customerSince", "customer_since"),
    "segment": (*SPELLINGS["segment"], *_SEGMENT_OF_PROFILE),
}


#: Objects around what an event says: `{"transaction": {"creditor": {"name": "Ann"}}}` names a creditor.
_WRAPPERS: Final = ("transaction", "transfer", "payment", "trade", "details", "data")
#: Where one of these is there, a `unitAmount` is the price of one, and not what is paid.
_OF_SEVERAL: Final = frozenset({"quantity", "invoiceAmount", minor_name("invoiceAmount")})
#: The spellings of amounts in minor units, such as cents.
MINOR_SPELLINGS: Final[dict[str, tuple[str, ...]]] = {
    name: minor_spellings(SPELLINGS[name], of_event=name == "amount") for name in AMOUNTS
}
_MINOR_OF_PROFILE: Final[dict[str, tuple[str, ...]]] = {
    name: MINOR_SPELLINGS[name] for name in AMOUNTS if name in PROFILE_SPELLINGS
}
#: Under which name `Spellings` gives the amount of a `unitAmount` that is an object, in units.
_UNIT_VALUE: Final = "amount of one in units"
_TABLE: Final = {**with_minor(SPELLINGS, MINOR_SPELLINGS), _UNIT_VALUE: both_cases("unitAmountValue")}
_OF_EVENT: Final = Spellings(_TABLE, AMOUNTS, _WRAPPERS, PARTS)
_OF_PROFILE: Final = Spellings(with_minor(PROFILE_SPELLINGS, _MINOR_OF_PROFILE), AMOUNTS, parts=PARTS)


def read_members(metadata: Mapping[str, Any], payload: Mapping[str, Any]) -> dict[str, Any]:
    """Return the members that are there by their documented names, as `Spellings` reads them.

    Of one spelling in both objects, that of `metadata` counts.
    """
    said = _OF_EVENT.read(metadata, payload)
    price = said.pop(_UNIT_VALUE, None)
    if not said.keys().isdisjoint(_OF_SEVERAL):
        said.pop(UNIT_AMOUNT, None)
    elif price is not None:
        said.setdefault("amount", price)
    return in_units(said, AMOUNTS, said.get("currency"))


def read_profile(profile: Mapping[str, Any], currency: Any = None) -> dict[str, Any]:
    """Return what `customer.metadata` says of the customer by its documented names; the event's `currency`
    says how many minor units make one.
    """
    return in_units(_OF_PROFILE.read(profile), _MINOR_OF_PROFILE, currency)
