"""Values of rules in plain words, on the pages of decisions and cases."""

from collections import Counter

import pytest

from vettance.aml.features import aml_schema
from vettance.console.value_words import value_in_words
from vettance.decisions.features import fraud_schema
from vettance.rules.packs import load_pack_text
from vettance.rules.ruleset import compile_document
from vettance.rules.schema import Schema


@pytest.mark.parametrize(
    ("name", "words"),
    [
        (
            'distinct(customer.key, by=ip, within="1h", where=event.login_failed)',
            "different customers of the address within 1 h, counting failed logins",
        ),
        (
            'distinct(customer.key, by=device.key, within="1d", where=not in_person)',
            "different customers of the device within 1 day, counting events not in person",
        ),
        ('count(event.spends, by=customer.key, within="90d")', "payments of the customer within 90 days"),
        ('count(by=customer.key, within="1m")', "events of the customer within 1 min"),
        (
            'count(moves_money and worth >= 400, by=party, within="4d")',
            "events of the party within 4 days, of money, with amount of at least 400",
        ),
        (
            'count(event.logged_in, by=ip.prefix if event.logged_in else "", within="90d")',
            "logins of the network within 90 days",
        ),
        (
            'count(event.login_failed, by="x" if (event.logged_in or event.login_failed) else "")',
            "failed logins of all together",
        ),
        (
            'distinct(ip, by=merchant.key if not in_person else "", within="1h", where=event.payment_failed)',
            "different addresses of the merchant within 1 h, counting failed payments not in person",
        ),
        (
            'count(event.spends, by=merchant.key if (metadata.amount <= 5 and not in_person) else "")',
            "payments of the merchant, not in person, with amount of at most 5",
        ),
        ('count(event.logged_in, by="all", within="90d")', "logins of all together within 90 days"),
        (
            'seen(country, by=(customer.key, default(country, "-")), within="30d")',
            "known country of the customer and the country within 30 days",
        ),
        ('sum(worth, by=party, within="7d")', "sum of amounts of the party within 7 days"),
        (
            'distinct(metadata.cardHash, by=customer.key, within="1d")',
            "different cards of the customer within 1 day",
        ),
        ('frauds(by=merchant.key, within="28d")', "events of the merchant labelled as fraud within 28 days"),
        ("last_fraud(by=customer.key)", "seconds since the last fraud of the customer"),
        (
            'last_seen(event.kind == "signup", by=customer.key, within="1d")',
            "seconds since the last sign-up of the customer within 1 day",
        ),
        (
            'last_seen(present(location.latitude), by=customer.key, within="7d")',
            "seconds since the last event of the customer within 7 days, that meet the rule's condition",
        ),
    ],
)
def test_aggregates_are_said_in_words(name: str, words: str) -> None:
    assert value_in_words(name) == words


@pytest.mark.parametrize(
    "name",
    [
        "metadata.amount",
        "event.logged_in",
        "worth +",
        "soon(by=x)",
        "sum(by=x)",
        "count(a, within=3)",
        "f(x)",
        'frauds(by=ip, within="7d", where=event.spends)',
        'count(event.spends, by=ip, within="7d", where=event.logged_in)',
        'count(event.spends, by=ip if event.logged_in else "", within="7d")',
        'count(event.spends, by=ip if event.spends else device.key, within="7d")',
    ],
)
def test_other_names_have_no_words(name: str) -> None:
    assert value_in_words(name) is None


@pytest.mark.parametrize(("pack", "schema"), [("fraud", fraud_schema()), ("aml", aml_schema())])
def test_every_aggregate_of_a_pack_has_words_of_its_own(pack: str, schema: Schema) -> None:
    _, compiled = compile_document(load_pack_text(pack), schema)
    words = Counter(map(value_in_words, compiled.plan.aggregate_names))
    assert None not in words
    assert not [said for said, times in words.items() if times > 1]
