"""Members of fraud events are read however an integrator spells them, and amounts by their currency."""

from typing import Any

import pytest

from vettance.decisions.features import fraud_schema
from vettance.events.event import Event, read_taken_event
from vettance.events.kind import meaning_of
from vettance.quality.count_decisions import _amount_of

NOW_MS = 1_790_000_000_000
FIELDS = fraud_schema().fields


def event_of(metadata: dict[str, Any], name: str = "payment") -> Event:
    return read_taken_event(
        {"eventName": name, "customer": {"externalId": "c"}, "metadata": metadata}, NOW_MS
    )


def value(name: str, metadata: dict[str, Any]) -> Any:
    return FIELDS[name].read(event_of(metadata))


@pytest.mark.parametrize(
    "metadata",
    [
        {"amount": 12.5, "currency": "EUR", "cardHash": "k", "merchantId": "m"},
        {
            "transactionAmount": "12.50",
            "currencyCode": "eur",
            "cardFingerprint": "k",
            "merchant": {"id": "m"},
        },
        {"transactionAmount": {"value": 12.5, "currency": "EUR"}, "card_token": "k", "merchant_code": "m"},
        {"TransactionAmount": {"Amount": "12.50", "Currency": "EUR"}, "CardHash": "k", "Merchant-Id": "m"},
        {
            "order": {"id": "o-1", "total": 12.5, "currency": "EUR"},
            "payment": {"card": {"fingerprint": "k"}, "method": "card"},
            "shopId": "m",
        },
    ],
)
def test_a_card_payment_is_read_in_any_spelling(metadata: dict[str, Any]) -> None:
    names = (
        "metadata.amount",
        "metadata.currency",
        "metadata.cardHash",
        "metadata.merchantId",
        "merchant.key",
    )
    assert [value(name, metadata) for name in names] == [12.5, "EUR", "k", "m", "m"]
    assert _amount_of({"metadata": metadata}) == ("EUR", 12.5)


def test_what_stands_in_metadata_counts_before_what_stands_in_an_object_of_it() -> None:
    for metadata in (
        {"details": {"amount": 9}, "amount": 5},
        {"details": {"amount": 9}, "totalAmount": 5},
        {"totalAmount": 5, "details": {"amount": 9}},
    ):
        assert value("metadata.amount", metadata) == 5


def test_the_worth_of_an_amount_goes_by_the_scale_of_its_currency() -> None:
    assert value("worth", {"amount": 1_500, "currency": "JPY"}) == 10
    assert value("worth", {"amount": {"value": 1_500, "currency": "JPY"}}) == 10
    assert value("worth", {"amount": 1_500, "currency": "EUR"}) == value("worth", {"amount": 1_500}) == 1_500
    assert value("worth", {"currency": "JPY"}) is None


@pytest.mark.parametrize(
    ("metadata", "amount"),
    [
        ({"amountCents": 1_250, "currency": "EUR"}, 12.5),
        ({"amount_minor": "1250", "currency": "usd"}, 12.5),
        ({"AmountInCents": 1_250}, 12.5),
        ({"transactionAmountMinorUnits": 1_250, "transactionCurrency": "JPY"}, 1_250),
        ({"amount_minor": 1_250, "currency": "KWD"}, 1.25),
        ({"unitAmount": 500, "currency": "EUR"}, 5),
        ({"unit_amount": {"value": "5.00", "currency_code": "EUR"}}, 5),
        ({"amount": {"cents": 1_250, "currency": "EUR"}}, 12.5),
        ({"payment": {"amountMinor": 1_250, "currency": "ISK"}}, 1_250),
        ({"order": {"totalCents": 1_250}}, 12.5),
        ({"amount": 7, "amountCents": 1_250}, 7),
        ({"amountCents": -1_250}, -12.5),
        ({"amountCents": "twelve"}, None),
        ({"cents": 1_250}, None),
        ({"amountCents": "1,250"}, 12.5),
        ({"amount_minor": "1250,5"}, 12.505),
        ({"unitAmount": 49.95}, 49.95),
        ({"unit_amount": "50.00"}, 50),
        ({"unitAmount": "5000"}, 50),
        ({"minorUnits": 2, "currency": "EUR"}, None),
        ({"amount": 12.5, "minorUnits": 2}, 12.5),
        ({"amount": {"euros": 12, "cents": 50}}, None),
        ({"order": {"total": {"euros": "12", "cents": "50"}}}, None),
        ({"price": {"euros": 12, "cents": 50}}, None),
        ({"amount": {"centAmount": 1_250, "currencyCode": "EUR", "fractionDigits": 2}}, 12.5),
        ({"order": {"amountCents": 1_250, "items": 3}}, 12.5),
        ({"payment": {"minorAmount": 1_250, "attempts": 3}}, 12.5),
    ],
)
def test_an_amount_whose_name_says_minor_units_is_read_by_the_decimals_of_its_currency(
    metadata: dict[str, Any], amount: float | None
) -> None:
    assert value("metadata.amount", metadata) == amount
    assert _amount_of({"metadata": metadata})[1] == amount if amount is not None else True


def test_the_scales_of_a_deployment_hold_for_fraud_events_too() -> None:
    worth = fraud_schema(scales={"JPY": 100, "*": 10}).fields["worth"].read
    assert worth(event_of({"amount": 1_500, "currency": "JPY"})) == 15
    assert worth(event_of({"amount": 1_500, "currency": "EUR"})) == 150


@pytest.mark.parametrize(
    ("metadata", "outcome"),
    [
        ({"payment": {"status": "declined"}}, "failure"),
        ({"order": {"id": 1}, "transaction": {"result": "approved"}}, "success"),
        ({"status": "approved", "payment": {"status": "declined"}}, "success"),
        ({"review": {"status": "declined"}}, "unknown"),
    ],
)
def test_an_outcome_is_read_within_the_object_of_the_payment(metadata: dict[str, Any], outcome: str) -> None:
    assert meaning_of(event_of(metadata)).outcome == outcome


@pytest.mark.parametrize(
    ("metadata", "kind"),
    [
        ({"payeeId": "p"}, "transfer"),
        ({"beneficiary": {"iban": "DE1", "name": "Ann"}}, "transfer"),
        ({"creditorIban": "DE1"}, "transfer"),
        ({"payeeId": "p", "cardHash": "k"}, "payment"),
        ({"recipientId": "p", "merchantId": "m"}, "payment"),
        ({"amount": 5}, "payment"),
    ],
)
def test_a_payment_to_an_account_that_the_customer_names_is_a_transfer(
    metadata: dict[str, Any], kind: str
) -> None:
    assert meaning_of(event_of(metadata)).kind == kind
