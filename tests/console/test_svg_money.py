"""The money of a case: sums by whom it came from or went to."""

from vettance.aml.transfer import transfer_of
from vettance.console.svg_money import flows_of


def test_each_currency_is_added_up_by_itself() -> None:
    sent = {"counterpartyId": "x-1", "direction": "out"}
    events = (
        {**sent, "amount": 100, "currency": "EUR"},
        {**sent, "amount": 12_000, "currency": "JPY"},
        {**sent, "amount": 50, "currency": "EUR"},
        {**sent, "amount": 7, "currency": "EUR", "direction": "in"},
        {**sent, "amount": "much", "currency": "EUR"},
    )
    assert flows_of(transfer_of({"metadata": one}) for one in events) == [
        ("x-1", False, 12_000, 1, "JPY"),
        ("x-1", False, 150, 2, "EUR"),
        ("x-1", True, 7, 1, "EUR"),
    ]


def test_members_in_other_spellings_and_objects_are_read_as_rules_read_them() -> None:
    sent = {
        "customer": {"externalId": "c"},
        "metadata": {"transactionAmount": "5", "debtor": {"id": "x"}, "creditor": {"id": "c"}},
    }
    assert flows_of([transfer_of(sent)]) == [("x", True, 5, 1, "")]
    assert flows_of([transfer_of({"eventName": "customer.changed"})]) == []
