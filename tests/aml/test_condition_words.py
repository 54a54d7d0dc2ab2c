"""Sentences of alerts speak no rule language."""

import pytest

from vettance.aml.condition_words import condition_in_words, one_of


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("1000 <= amount and amount < 10000", "with amount of at least 1,000 and below 10,000"),
        ("1000 <= amount < 10000", "with amount of at least 1,000 and below 10,000"),
        ("cash\nand incoming", "in cash, coming in"),
        ("cash and not outgoing", "in cash, not going out"),
        ("cash and (10 <= worth and worth < 50)", "in cash, with amount of at least 10 and below 50"),
        ("incoming and not loan_paid_out", "coming in, not of loans paid out"),
        ("cash and (incoming or wages)", "that meet the rule's condition"),
        ('country in ["KP", "IR"]', "with country KP or IR"),
        ("not (cash or incoming)", "that meet the rule's condition"),
        ("worth > 3 * income", "that meet the rule's condition"),
    ],
)
def test_conditions_are_said_in_words(text: str, words: str) -> None:
    assert condition_in_words(text) == words


@pytest.mark.parametrize(
    ("scale", "words"),
    [
        (150.0, "with amount of at least 7,500, with balance of at least 50"),
        (0.31, "with amount of at least 15.5, with balance of at least 50"),
        (90_000.0, "with amount of at least 4,500,000, with balance of at least 50"),
    ],
)
def test_bounds_of_worth_are_said_in_the_currency_of_the_event(scale: float, words: str) -> None:
    assert condition_in_words("worth >= 50 and balance >= 50", scale) == words


@pytest.mark.parametrize(
    ("several", "one"),
    [("counterparties", "counterparty"), ("places", "place"), ("metadata alias", "metadata alias")],
)
def test_one_of_several_is_called_so(several: str, one: str) -> None:
    assert one_of(several) == one
