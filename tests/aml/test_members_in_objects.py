"""Members of AML events in objects, behind dots, and of events that name both sides of a transfer."""

from typing import Any

import pytest

from vettance.aml.aml_event import read_taken_aml_event
from vettance.aml.coverage.event_coverage import NewestAmlEvent, cover
from vettance.aml.transfer import Transfer
from vettance.wire.payload import encode

NOW = 1_790_000_000_000


def read(metadata: dict[str, Any], customer: dict[str, Any] | None = None, **members: Any) -> Transfer:
    body = {
        "eventName": "transaction",
        "externalEventId": "e",
        "customer": {"externalId": "c", "metadata": customer or {}},
        "metadata": metadata,
        **members,
    }
    return read_taken_aml_event(body, NOW).transfer


@pytest.mark.parametrize(
    "metadata",
    [
        {"amount": {"value": 6023, "currency": "JPY"}},
        {"transactionAmount": {"value": 6023, "currency": "JPY"}},
        {"instructedAmount": {"amount": "6023", "currency": "jpy"}},
        {"instructedAmount": "6023.00", "instructedCurrency": "JPY"},
        {"Amount": {"Amount": "6023.00", "Currency": "JPY"}},
        {"payment": {"amount": 6023, "currency": "JPY"}},
        {"transaction": {"amount": {"value": 6023, "currency": "JPY"}}},
    ],
)
def test_an_amount_and_its_currency_are_read_in_one_object(metadata: dict[str, Any]) -> None:
    transfer = read(metadata)
    assert (transfer.amount, transfer.currency) == (6023, "JPY")


@pytest.mark.parametrize(
    "metadata",
    [
        {"amount": 5, "counterparty": {"id": "x", "name": "Ann", "country": "KP", "account": "b"}},
        {"amount": {"value": "5", "currency": "EUR"}, "counterparty": {"id": "x", "account": {"iban": "b"}}},
        {"amount": 5, "counterparty.id": "x", "counterparty.account": "b"},
        {"transaction": {"amount": 5, "type": "transfer"}, "otherParty": {"id": "x"}, "beneficiaryIban": "b"},
        {"amount": 5, "beneficiary": {"id": "x", "iban": "b"}},
    ],
)
def test_what_stands_in_an_object_is_read_as_one_name(metadata: dict[str, Any]) -> None:
    transfer = read(metadata)
    assert (transfer.amount, transfer.counterparty_id, transfer.counterparty_account) == (5, "x", "b")


def test_an_object_gives_each_of_its_members() -> None:
    party = {"id": 7, "name": "Ann", "country": "Iran", "account": {"id": "b"}, "note": {"id": "other"}}
    transfer = read({"amount": {"amount": 5, "currency": "jpy"}, "counterparty": party})
    assert (transfer.counterparty_id, transfer.counterparty_name) == ("7", "Ann")
    assert (transfer.counterparty_country, transfer.counterparty_account) == ("IR", "b")


def test_a_member_that_is_there_by_its_own_name_counts_before_one_in_an_object() -> None:
    assert read({"counterparty": {"id": "y"}, "counterpartyId": "x", "amount": 5}).counterparty_id == "x"
    assert read({"counterparty": {"rating": 3}, "payeeId": "x", "amount": 5}).counterparty_id == "x"


@pytest.mark.parametrize(
    ("sides", "incoming"),
    [
        ({"senderId": "c", "receiverId": "x"}, False),
        ({"senderId": "x", "receiverId": "c"}, True),
        ({"debtor": {"id": "x"}, "creditor": {"id": "c"}}, True),
        ({"debtor": {"id": "c"}, "creditor": {"id": "x"}}, False),
        ({"accountId": "own", "fromAccount": "own", "toAccount": "x"}, False),
        ({"accountId": "own", "from": {"account": "x"}, "to": {"account": "own"}}, True),
        ({"direction": "in", "originatorId": "x", "beneficiaryId": "c"}, True),
        ({"direction": "out", "originatorId": "c", "beneficiaryId": "x"}, False),
        ({"direction": "credit", "sender": "x", "receiver": "c"}, True),
        ({"payer": "x"}, True),
        ({"creditor_iban": "x"}, False),
    ],
)
def test_of_both_sides_the_one_that_is_not_the_customer_counts(sides: dict[str, Any], incoming: bool) -> None:
    transfer = read({"amount": 5, **sides})
    assert (transfer.incoming, transfer.outgoing) == (incoming, not incoming)
    assert (transfer.counterparty_id or transfer.counterparty_account) == "x"


def test_the_account_of_the_customers_side_is_the_customers() -> None:
    incoming = read({"amount": 5, "debtorAccount": "x", "creditorAccount": "own", "direction": "in"})
    assert (incoming.account, incoming.counterparty_account) == ("own", "x")
    outgoing = read({"amount": 5, "senderAccount": "own", "receiverAccount": "x", "direction": "out"})
    assert (outgoing.account, outgoing.counterparty_account) == ("own", "x")


def test_dates_and_systems_are_no_sides() -> None:
    transfer = read({"amount": 5, "from": "2026-01-01", "to": "2026-02-01", "source": "core"})
    assert (transfer.counterparty_id, transfer.incoming, transfer.outgoing) == (None, False, False)


@pytest.mark.parametrize(
    ("said", "segment"),
    [
        *(
            (word, "person")
            for word in ("Student", "salaried", "RETIRED", "self-employed", "private_individual")
        ),
        *((word, "business") for word in ("SME", "Charity", "small business", "legal-entity", "law firm")),
        *((word, None) for word in ("gold", "segment 4", "low_risk", "A")),
    ],
)
def test_a_segment_of_ones_own_is_a_person_a_business_or_not_told(said: str, segment: str | None) -> None:
    assert read({"amount": 5}, {"segment": said}).segment == segment


def test_coverage_counts_a_party_in_an_object_as_told() -> None:
    def without(metadata: dict[str, Any]) -> dict[str, int]:
        body = {
            "eventName": "x",
            "externalEventId": "e",
            "metadata": {"amount": 5, "currency": "EUR", **metadata},
        }
        return cover([NewestAmlEvent(NOW, encode(body))]).without

    told = {"id": "x", "country": "DE"}
    assert without({"counterparty": told}) == without({"creditor": told}) == {}
    assert without({"counterparty": {"rating": 3}}) == {"counterparty": 1, "counterpartyCountry": 1}
