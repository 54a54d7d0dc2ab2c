"""What authors read when a rule is refused, word for word: `tests/rules/approved/`.

`APPROVE=1 pytest tests/rules/test_messages.py` writes the files anew; read the difference before committing.
"""

import os
from pathlib import Path

import pytest

from tests.rules.words import SCHEMA
from vettance.rules.language import RuleFault, check

APPROVED = Path(__file__).parent / "approved"

REFUSED = {
    "unknown-name": "metadata.amount > 5 and custmer.external_id == country",
    "unknown-name-without-its-group": "amount > 5",
    "namespace-as-a-value": "present(metadata)",
    "word-as-a-value": "lower == ip",
    "null": "ip == null",
    "none": "ip == None",
    "text-for-a-number": 'metadata.amount > "5"',
    "text-field-for-a-number": "ip > 5",
    "number-for-a-text": "ip == 5",
    "true-compared-with-a-number": "customer.is_new == 1",
    "order-of-true": "customer.is_new > true",
    "not-a-condition": "metadata.amount",
    "side-of-and": 'ip and country == "GB"',
    "assignment": 'country = "GB"',
    "and-in-another-language": 'ip == "a" && country == "GB"',
    "or-in-another-language": 'ip == "a" || country == "GB"',
    "not-in-another-language": "!customer.is_new",
    "unequal-in-another-language": "metadata.amount <> 5",
    "and-in-capitals": 'metadata.amount > 5 AND country == "GB"',
    "in-in-capitals": 'country IN ["GB"]',
    "not-in-capitals": "NOT customer.is_new",
    "like": 'customer.external_id like "a%"',
    "arrow-for-at-least": "metadata.amount => 5",
    "nothing-between": 'country == "GB" then',
    "window-without-quotes": "count(by=ip, within=10m) > 5",
    "span-with-a-unit": "first_fraud(by=customer.key) < 100d",
    "comma-before-where": 'sum(metadata.amount, by=ip, within="1h" where=customer.is_new) > 5',
    "condition-at-the-end": 'count(by=ip, within="1h", customer.is_new) > 5',
    "name-by-its-end": 'customer.id == "c"',
    "name-by-its-beginning": 'customer.ext == "c"',
    "unknown-name-below-a-group": 'customer.shoe_size == "c"',
    "power": "metadata.amount ** 2 > 5",
    "whole-division": "metadata.amount // 2 > 5",
    "division-by-zero": "metadata.amount / 0 > 5",
    "unknown-word": "len(ip) > 5",
    "misspelt-word": 'start_with(ip, "10.")',
    "method": 'ip.startswith("10.")',
    "missing-argument": "starts_with(ip)",
    "named-argument": 'contains(text=ip, part="a")',
    "wrong-argument": "distance_km(ip, 1, 2, 3) > 5",
    "pattern-not-written-out": "matches(ip, country)",
    "pattern-broken": 'matches(ip, r"(10|")',
    "pattern-with-a-bare-backslash": 'matches(ip, "\\d+")',
    "network-broken": 'in_network(ip, "10.0.0.1/8")',
    "empty-list": "ip in []",
    "mixed-list": 'country in ["GB", 44]',
    "list-of-names": "country in [ip, country]",
    "wrong-list": "country in [1, 2]",
    "in-a-text": '"bot" in user_agent',
    "missing-comma": 'country in ["GB" "US"]',
    "list-compared": 'country == ["GB"]',
    "index": 'metadata["amount"] > 5',
    "aggregate-without-by": 'count(ip == "a", within="1h") > 5',
    "aggregate-without-window": "count(by=ip) > 5",
    "aggregate-with-a-bad-window": 'count(by=ip, within="91d") > 5',
    "aggregate-of-a-text": 'sum(ip, by=ip, within="1h") > 5',
    "aggregate-without-a-value": 'avg(by=ip, within="1h") > 5',
    "aggregate-in-an-aggregate": 'count(count(by=ip, within="1h") > 5, by=ip, within="1h") > 5',
    "aggregate-with-where-on-count": 'count(where=customer.is_new, by=ip, within="1h") > 5',
    "aggregate-by-a-literal": 'count(by="all", within="1h") > 5',
    "default-of-another-type": 'default(metadata.amount, "0") > 5',
    "missing-of-what-is-known": "missing(5)",
    "import": "import os",
    "dunder": "ip.__class__ == country",
    "lambda": "lambda: 1",
    "unclosed-text": 'ip == "10.',
    "unclosed-bracket": '(ip == "10." and (country == "GB")',
    "closing-bracket": 'ip == "10.") or country == "GB"',
    "unfinished": 'ip == "10." and',
    "second-line": 'ip == "10."\nand metadata.amount > "5"\nand customer.is_new',
    "far-to-the-right": " and ".join(['country != "GB"'] * 12) + " and contry == country",
    "accents-before-the-fault": 'country == "Ελλάδα" and contry == country',
    "foreign-letters": "ｉｐ == country",
    "control-character": 'ip == "a\x07"',
    "empty": "  ",
    "too-long": "ip == country or " * 400,
    "too-deep": "(" * 60 + "customer.is_new" + ")" * 60,
    "number-too-large": "metadata.amount > 1e400",
    "number-of-many-digits": "metadata.amount > 12345678901234567890",
}


@pytest.mark.parametrize("name", REFUSED)
def test_the_message_is_the_approved_one(name: str) -> None:
    with pytest.raises(RuleFault) as caught:
        check(REFUSED[name], SCHEMA)
    message = f"{caught.value}\n"
    approved = APPROVED / f"{name}.txt"
    if os.environ.get("APPROVE"):
        approved.write_text(message, "utf-8")
    assert approved.read_text("utf-8") == message


def test_every_approved_message_belongs_to_a_case() -> None:
    assert {file.stem for file in APPROVED.glob("*.txt")} == set(REFUSED)
