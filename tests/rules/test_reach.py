"""Comparisons that no event fulfils, or every one: what is said of them, and that nothing else is doubted.

`APPROVE=1 pytest tests/rules/test_reach.py` writes `tests/rules/doubted/` anew; read it before committing.
"""

import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vettance.aml.aml_event import AmlCategory, read_aml_event
from vettance.aml.features import aml_schema
from vettance.decisions.features import fraud_schema
from vettance.errors import Refusal
from vettance.events.event import read_taken_event
from vettance.events.kind import EventKind
from vettance.rules.domain import Domain, computed, doubt_about
from vettance.rules.language import check
from vettance.rules.packs import load_pack
from vettance.rules.ruleset import compile_document
from vettance.rules.schema import Schema, Type
from vettance.rules.value_ranges import verdict
from vettance.wire.payload import encode

APPROVED = Path(__file__).parent / "doubted"
FRAUD, AML = fraud_schema(), aml_schema()

#: The schema, the rule, and whether each doubt of it is an error ("e") or a warning ("w").
DOUBTED = {
    "kind-misspelt": (FRAUD, 'event.kind == "withdrawl"', "e"),
    "kind-misspelt-unequal": (FRAUD, 'event.kind != "withdrawl"', "e"),
    "kind-misspelt-on-the-left": (FRAUD, '"withdrawl" == event.kind', "e"),
    "kind-in-a-list": (FRAUD, 'event.kind in ["payment", "withdrawl", "xyz"]', "ee"),
    "outcome-in-other-words": (FRAUD, 'event.outcome == "failed"', "e"),
    "category-in-small-letters": (FRAUD, 'event.category == "transaction"', "e"),
    "kind-of-address": (FRAUD, 'ip.kind == "publc"', "e"),
    "version-of-address": (FRAUD, "ip.version == 5", "e"),
    "weekday-zero": (FRAUD, "weekday == 0", "e"),
    "weekday-beyond": (FRAUD, "weekday > 7", "e"),
    "weekday-of-zero": (FRAUD, "weekday_of(occurred_at_ms) == 0", "e"),
    "hour-beyond": (FRAUD, "hour >= 24", "e"),
    "hour-of-half": (FRAUD, "hour == 2.5", "e"),
    "hour-always": (FRAUD, "0 <= hour", "w"),
    "latitude-beyond": (FRAUD, "location.latitude > 91", "e"),
    "share-in-percent": (FRAUD, "email.digits_ratio > 50", "e"),
    "seconds-for-milliseconds": (FRAUD, "occurred_at_ms > 1700000000", "w"),
    "negative-measure": (FRAUD, "signals.form_seconds < 0", "w"),
    "country-in-small-letters": (FRAUD, 'country == "gb"', "e"),
    "country-that-is-none": (FRAUD, 'country == "UK"', "w"),
    "country-with-three-letters": (FRAUD, 'country not in ["GB", "DEU"]', "w"),
    "currency-that-is-none": (FRAUD, 'metadata.currency == "EURO"', "w"),
    "email-with-capitals": (FRAUD, 'customer.email == "Anna@Example.com"', "e"),
    "email-part-with-capitals": (FRAUD, 'ends_with(customer.email, "@Example.com")', "e"),
    "email-pattern-with-capitals": (FRAUD, r'matches(customer.email, r"^[A-Z]\S+\.Test$")', "w"),
    "domain-with-capitals": (FRAUD, 'domain(customer.email) in ["Example.com"]', "e"),
    "channel-with-capitals": (FRAUD, 'metadata.channel == "POS"', "e"),
    "identifier-with-spaces": (FRAUD, 'metadata.merchantId == "m-1 "', "e"),
    "address-in-other-letters": (FRAUD, 'ip == "2001:DB8::1"', "e"),
    "lowered-with-capitals": (FRAUD, 'lower(user_agent) == "Curl"', "e"),
    "kind-starts-otherwise": (FRAUD, 'starts_with(event.kind, "pw")', "e"),
    "kind-matches-nothing": (FRAUD, 'matches(event.kind, "^Log")', "e"),
    "count-below-zero": (FRAUD, 'count(by=ip, within="1h") < 0', "e"),
    "count-always": (FRAUD, 'count(by=ip, within="1h") >= 0', "w"),
    "distinct-beyond-its-values": (FRAUD, 'distinct(event.outcome, by=ip, within="1h") > 3', "e"),
    "last-seen-beyond-its-window": (FRAUD, 'last_seen(by=ip, within="1h") > 7200', "e"),
    "greatest-hour": (FRAUD, 'max(hour, by=ip, within="1h") > 23', "e"),
    "similarity-beyond-one": (FRAUD, "similarity(country, ip) > 1.5", "e"),
    "arithmetic": (FRAUD, "hour * 60 + 59 > 1440", "e"),
    "rest": (FRAUD, "hour % 6 == 6", "e"),
    "choice": (FRAUD, '("a" if hour < 5 else "b") == "c"', "e"),
    "kind-or-category": (FRAUD, "event.kind == event.category", "e"),
    "two-in-one-rule": (FRAUD, 'weekday == 0 and event.kind == "logn"', "ee"),
    "aml-category": (AML, 'event_category == "PAYMENT"', "e"),
    "aml-country": (AML, 'counterparty.country == "UK"', "e"),
    "aml-segment": (AML, 'customer.segment == "company"', "e"),
    "aml-amount": (AML, "amount < 0", "e"),
    "aml-weekday": (AML, "weekday in [0, 6]", "e"),
    "aml-channel": (AML, 'channel == "ATM"', "e"),
}

#: What looks like one of those, and is none.
SENSIBLE = (
    "weekday in [6, 7] and weekday >= 1 + 1",
    "hour < 5 or hour == 23",
    'lower(country) == "gb" and upper(country) == "GB"',
    'default(country, "none") == "none"',
    'default(event.kind, "never") != "login"',
    'count(by=ip, within="1h") == 0 and count(by=ip, within="1h") > 0',
    'distinct(event.kind, by=ip, within="1h") >= 14',
    r'matches(customer.email, r"(?i)^Anna") and matches(customer.email, r"^\S+@[^A-Z]+$")',
    'metadata.anything == "As It Is" and metadata.level > 200',
    'custom_fields.kind == "withdrawl"',
    'event_name == "User.Login"',
    "metadata.amount < 0",
    "floor(hour / 2) == 11 and -weekday < -6",
    'prefix(customer.email, 3) == "ann"',
    'contains(user_agent, "HeadlessChrome")',
    'last(hour, by=ip) == 23 and sum(metadata.amount, by=ip, within="1h") < 0',
    "signals.timezone_offset < 0 and signals.keystroke_gap_low_ms < 0",
)


@pytest.mark.parametrize("name", DOUBTED)
def test_what_is_said_of_a_comparison_is_approved(name: str) -> None:
    schema, text, severities = DOUBTED[name]
    doubts = check(text, schema).doubts
    assert "".join("w" if doubt.warning else "e" for doubt in doubts) == severities
    message = "".join(f"{'warning: ' if doubt.warning else ''}{doubt}\n" for doubt in doubts)
    approved = APPROVED / f"{name}.txt"
    if os.environ.get("APPROVE"):
        approved.write_text(message, "utf-8")
    assert approved.read_text("utf-8") == message


def test_every_approved_message_belongs_to_a_case() -> None:
    assert {file.stem for file in APPROVED.glob("*.txt")} == set(DOUBTED)


@pytest.mark.parametrize("text", SENSIBLE)
def test_what_an_event_may_fulfil_is_not_doubted(text: str) -> None:
    assert check(text, FRAUD).doubts == ()


@pytest.mark.parametrize(("pack", "schema"), [("fraud", FRAUD), ("aml", AML)])
def test_the_packs_hold_nothing_doubtful(pack: str, schema: Schema) -> None:
    for rule in load_pack(pack).rules:
        assert check(rule.when, schema).doubts == (), rule.id


def test_a_stored_rule_set_with_a_doubtful_rule_goes_on_deciding() -> None:
    document = """
name: Before
rules:
  - {id: r, name: r, when: 'event.kind == "withdrawl" or hour > 23', score: 5, reason: R, explanation: e}
"""
    ruleset, compiled = compile_document(document, FRAUD)
    assert compiled.rule_ids == ("r",)
    assert ruleset.running[0].id == "r"


TEXTS = st.one_of(st.sampled_from(["gb", " Gb ", "10.0.0.1", "2001:DB8::1", "A@B.c", "POS ", "x"]), st.text())
NUMBERS = st.one_of(st.integers(-(10**9), 10**9), st.floats(-1e6, 1e6), st.booleans())
MEMBERS = st.sampled_from(
    [
        *("amount", "currency", "merchantId", "terminal_id", "cardHash", "paymentMethod", "channel"),
        *("outcome", "promoCode", "ipCountry", "ipAsn", "sdkSignals", "accountAgeDays"),
        *("customerCreatedAt", "direction", "segment", "counterpartyCountry", "balanceAfter", "city"),
        *("transactionType", "description"),
    ]
)
BODIES = st.fixed_dictionaries(
    {"eventName": st.sampled_from(["login", "payment.failed", "Withdrawal", "x", "transfer.received"])},
    optional={
        "eventCategory": st.sampled_from(["TRANSACTION", "ACCOUNT"]),
        "customer": st.fixed_dictionaries({}, optional={"email": TEXTS, "externalId": TEXTS}),
        "ip": TEXTS,
        "country": TEXTS,
        "location": st.fixed_dictionaries({"latitude": NUMBERS, "longitude": NUMBERS}),
        "metadata": st.dictionaries(MEMBERS, st.one_of(TEXTS, NUMBERS), max_size=6),
    },
)
NOW = st.integers(1_600_000_000_000, 1_900_000_000_000)


@given(body=BODIES, now_ms=NOW, aml=st.booleans())
def test_no_value_of_an_event_is_one_that_is_said_never_to_come(
    body: dict[str, Any], now_ms: int, aml: bool
) -> None:
    schema = AML if aml else FRAUD
    try:
        event = (
            read_aml_event({"externalEventId": "e", **body}, encode(body), now_ms)
            if aml
            else read_taken_event(body, now_ms)
        )
    except Refusal:
        return
    for field in schema.fields.values():
        value = field.read(event)
        if value is not None and field.type in (Type.NUMBER, Type.TEXT):
            doubt = doubt_about(field.domain, field.name, value)
            assert doubt is None or not doubt.certain, (field.name, value)


ENDS = st.integers(-6, 6)
RANGES = st.tuples(ENDS, ENDS).map(sorted)


@given(left=RANGES, right=RANGES, sign=st.sampled_from(["<", "<=", ">", ">=", "=="]))
def test_a_verdict_is_that_of_every_pair_of_values(left: list[int], right: list[int], sign: str) -> None:
    whole = [Domain(low=ends[0], high=ends[1], whole=True) for ends in (left, right)]
    found = {
        eval(f"{one} {sign} {other}")
        for one in range(left[0], left[1] + 1)
        for other in range(right[0], right[1] + 1)
    }
    said = verdict(sign, *whole)
    assert said is None or found == {said}
    if sign != "==":
        assert found != {False} or said is False


@given(left=RANGES, right=RANGES, sign=st.sampled_from("+-*/%"), data=st.data())
def test_what_is_computed_lies_where_it_is_said_to_lie(
    left: list[int], right: list[int], sign: str, data: st.DataObject
) -> None:
    one, other = data.draw(st.integers(*left)), data.draw(st.integers(*right))
    if other == 0 and sign in "/%":
        return
    domain = computed(sign, *(Domain(low=low, high=high, whole=True) for low, high in (left, right)))
    value = eval(f"({one}) {sign} ({other})")
    assert domain.low <= value <= domain.high
    assert not domain.whole or value == int(value)


def test_closed_sets_are_those_of_the_events() -> None:
    assert FRAUD.fields["event.kind"].domain.values == frozenset(EventKind)
    assert AML.fields["event_category"].domain.values == frozenset(AmlCategory)
