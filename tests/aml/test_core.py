"""The core of AML: payloads as values, transfers however they are told, judging, cases."""

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vettance.aml.aml_event import AmlEvent, TransferHistory, payload_digest, read_taken_aml_event
from vettance.aml.aml_fields import adds_instrument
from vettance.aml.case import CaseState, OfficerSettings, Resolution, open_case, reject, resolve
from vettance.aml.findings import COMBINED, AmlFinding, Severity, judge, rule_weight
from vettance.aml.member_spellings import KNOWN_MEMBERS, PROFILE_SPELLINGS, SPELLINGS
from vettance.aml.sql import AmlRecord, stored_of
from vettance.aml.suppression import REPEAT_MS, is_raised, mistaken, repeated
from vettance.backtests.raised_alerts import TriedAlert
from vettance.errors import Conflict
from vettance.reference.jurisdictions import iso_code, read_codes
from vettance.rules.rule import Levels, Rule, RuleSet, Thresholds

NOW = 1_790_000_000_000
ONE_KEY, OTHER_KEY = "key_" + "1" * 32, "key_" + "2" * 32
ONE_USER = "usr_" + "3" * 32
JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4),
    max_leaves=12,
)


def shuffled(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: shuffled(value[key]) for key in reversed(value)}
    if isinstance(value, list):
        return [shuffled(item) for item in value]
    return float(value) if type(value) is int and abs(value) < 2**50 else value


@given(st.dictionaries(st.text(max_size=4), JSON_VALUES, max_size=5))
def test_order_and_the_form_of_numbers_do_not_make_another_payload(body: dict[str, Any]) -> None:
    body.pop("tenantId", None)
    assert payload_digest(shuffled(body)) == payload_digest(body)
    assert payload_digest(body | {"tenantId": "ten_1"}) == payload_digest(body)


@given(
    st.dictionaries(st.sampled_from("abc"), JSON_VALUES, max_size=3),
    st.dictionaries(st.sampled_from("abc"), JSON_VALUES, max_size=3),
)
def test_other_values_make_another_payload(one: dict[str, Any], other: dict[str, Any]) -> None:
    same = json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)
    assert (payload_digest(one) == payload_digest(other)) == same


@pytest.mark.parametrize(
    ("name", "metadata", "incoming", "outgoing", "amount"),
    [
        ("x", {"amount": 5, "direction": "in"}, True, False, 5),
        ("x", {"amount": "1,234.50", "direction": "OUT"}, False, True, 1234.5),
        ("cash.deposit", {"amount": 5}, True, False, 5),
        ("atmWithdrawal", {"amount": 5}, False, True, 5),
        ("x", {"amount": 5, "counterparty_id": "y"}, False, True, 5),
        ("x", {"amount": 5}, False, False, 5),
        ("x", {"amount": 5, "direction": "in", "status": "failed"}, False, False, 5),
        ("x", {"amount": 5, "direction": "C", "counterpartyId": "y"}, True, False, 5),
        ("x", {"amount": 5, "debitCredit": "D"}, False, True, 5),
        ("x", {"amount": 5, "direction": "RC"}, False, True, 5),
        ("x", {"amount": 5, "direction": "Cr.", "counterpartyId": "y"}, True, False, 5),
        ("x", {"amount": 5, "direction": "CREDIT_TRANSFER", "counterpartyId": "y"}, True, False, 5),
        ("x", {"amount": True, "direction": "in"}, False, False, None),
        ("x", {"amount": 0, "direction": "in"}, False, False, 0),
    ],
)
def test_a_transfer_is_read_however_it_is_told(
    name: str, metadata: dict[str, Any], incoming: bool, outgoing: bool, amount: float | None
) -> None:
    event = read_taken_aml_event({"eventName": name, "externalEventId": "e", "metadata": metadata}, NOW)
    found = event.transfer
    assert (found.incoming, found.outgoing, found.amount) == (incoming, outgoing, amount)


@pytest.mark.parametrize(
    ("status", "moves"),
    [
        *((text, False) for text in ("DENIED", "returned", "timed_out", "RJCT", "card.declined", "Void")),
        *((text, True) for text in ("completed", "PENDING", "ACSC", "settled", "", "accepted")),
    ],
)
def test_what_was_denied_or_came_back_moves_no_money(status: str, moves: bool) -> None:
    body = {"eventName": "x", "externalEventId": "e", "metadata": {"amount": 5, "status": status}}
    assert read_taken_aml_event(body, NOW).transfer.moves is moves


def test_a_deposit_that_expired_is_paid_out() -> None:
    body = {"eventName": "deposit.expired", "externalEventId": "e", "metadata": {"amount": 5}}
    assert read_taken_aml_event(body, NOW).transfer.moves


MEMBERS = (
    ("amount", "12.50", "amount", 12.5),
    ("currency", "eur", "currency", "EUR"),
    ("accountId", "a", "account", "a"),
    ("counterpartyId", "x", "counterparty_id", "x"),
    ("counterpartyName", "Ann", "counterparty_name", "Ann"),
    ("counterpartyCountry", "PRK", "counterparty_country", "KP"),
    ("counterpartyAccount", "b", "counterparty_account", "b"),
    ("channel", "ATM", "channel", "atm"),
    ("transactionType", "Repayment", "type", "repayment"),
    ("balanceAfter", 7, "balance_after", 7),
    ("declaredMonthlyIncome", "2,400", "income", 2400),
    ("segment", "business", "segment", "business"),
    ("description", "Rent", "description", "rent"),
    ("invoiceAmount", 8, "invoice_amount", 8),
    ("marketValue", "9", "market_value", 9),
    ("goodsCode", " 7403  A", "goods", "7403 a"),
    ("quantity", "5", "quantity", 5),
    ("unitPrice", "2.5", "unit_price", 2.5),
    ("instrumentId", "k", "instrument", "k"),
    ("senderId", "s", "counterparty_id", "s"),
    ("senderName", "Ann", "counterparty_name", "Ann"),
    ("senderCountry", "PRK", "counterparty_country", "KP"),
    ("senderAccount", "b", "counterparty_account", "b"),
    ("receiverId", "r", "counterparty_id", "r"),
    ("receiverName", "Ann", "counterparty_name", "Ann"),
    ("receiverCountry", "PRK", "counterparty_country", "KP"),
    ("receiverAccount", "b", "counterparty_account", "b"),
)


@pytest.mark.parametrize(("member", "sent", "attribute", "expected"), MEMBERS)
def test_every_documented_member_is_read_in_both_spellings(
    member: str, sent: Any, attribute: str, expected: Any
) -> None:
    snake = "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in member)
    for spelling in {member, snake}:
        body = {"eventName": "x", "externalEventId": "e", "metadata": {spelling: sent}}
        assert getattr(read_taken_aml_event(body, NOW).transfer, attribute) == expected
    known = {name for name, _, _, _ in MEMBERS} | {"direction", "accountOpenedAt", "status", "city"}
    assert known == {name for name, _ in KNOWN_MEMBERS}


@pytest.mark.parametrize(
    ("member", "spelling"), [(member, text) for member, texts in SPELLINGS.items() for text in texts]
)
def test_every_spelling_of_a_member_is_read_as_the_member(member: str, spelling: str) -> None:
    samples = {name: (sent, attribute, expected) for name, sent, attribute, expected in MEMBERS}
    sent, attribute, expected = samples.get(member, ("Riga", "city", "Riga"))
    more = {"direction": ("cr", "incoming", True), "status": ("failed", "moves", False)}
    sent, attribute, expected = more.get(member, (sent, attribute, expected))
    if member == "accountOpenedAt":
        sent, attribute, expected = NOW // 1000 - 86_400, "age_days", 1.0
    metadata = {spelling: sent} if member == "amount" else {"amount": 5, spelling: sent}
    body = {"eventName": "x", "externalEventId": "e", "metadata": metadata}
    found = getattr(read_taken_aml_event(body, NOW).transfer, attribute)
    assert found == (pytest.approx(expected, abs=0.1) if type(expected) is float else expected)


@pytest.mark.parametrize("spelling", PROFILE_SPELLINGS["segment"])
def test_the_kind_of_customer_is_read_from_its_metadata_in_every_spelling(spelling: str) -> None:
    body = {
        "eventName": "x",
        "externalEventId": "e",
        "metadata": {"amount": 5, "type": "transfer"},
        "customer": {"externalId": "c", "metadata": {spelling: "company"}},
    }
    assert read_taken_aml_event(body, NOW).transfer.segment == "business"


def test_the_documented_spelling_counts_before_others_and_metadata_before_payload() -> None:
    body = {
        "eventName": "x",
        "externalEventId": "e",
        "metadata": {"goodsMarketValue": 1, "market_value": 2},
        "payload": {"marketValue": 3, "market_value": 4},
    }
    assert read_taken_aml_event(body, NOW).transfer.market_value == 3


@pytest.mark.parametrize(
    ("name", "metadata", "buys", "wages"),
    [
        ("card.payment", {}, True, False),
        ("x", {"channel": "POS"}, True, False),
        ("x", {"transactionType": "PAYMENT"}, True, False),
        ("payment.sent", {}, False, False),
        ("x", {"description": "Salary May"}, False, True),
        ("payroll.run", {}, False, True),
    ],
)
def test_purchases_and_pay_are_told_from_transfers(
    name: str, metadata: dict[str, Any], buys: bool, wages: bool
) -> None:
    body = {"eventName": name, "externalEventId": "e", "metadata": {"amount": 5, **metadata}}
    found = read_taken_aml_event(body, NOW).transfer
    assert (found.buys, found.pays_wages) == (buys, wages)


@pytest.mark.parametrize(
    ("kind", "direction", "lends"),
    [
        ("loan_disbursement", "in", True),
        ("loan", "in", True),
        ("MORTGAGE_PAYMENT", "in", True),
        ("loan", "out", False),
        ("loan_repayment", "in", False),
        ("transfer", "in", False),
    ],
)
def test_a_loan_that_comes_in_is_paid_out(kind: str, direction: str, lends: bool) -> None:
    told = {"amount": 5, "direction": direction, "transactionType": kind}
    body = {"eventName": "x", "externalEventId": "e", "metadata": told}
    assert read_taken_aml_event(body, NOW).transfer.lends is lends


@pytest.mark.parametrize(
    ("name", "more", "adds"),
    [
        ("card.added", {}, True),
        ("addCard", {"eventCategory": "ACCOUNT"}, True),
        ("PAYMENT_METHOD_UPDATED", {"eventCategory": "CUSTOMER"}, True),
        ("bank_account.linked", {}, True),
        ("x", {"eventCategory": "PAYMENT_INSTRUMENT"}, True),
        ("card.removed", {"eventCategory": "PAYMENT_INSTRUMENT"}, False),
        ("card.add_failed", {}, False),
        ("card.payment.created", {"metadata": {"amount": 5}}, False),
        ("account.created", {}, False),
        ("card.blocked", {}, False),
        ("card.pin.changed", {}, False),
        ("iban_changed", {}, True),
        ("card.declined", {"eventCategory": "PAYMENT_INSTRUMENT"}, False),
    ],
)
def test_a_new_instrument_is_known_by_category_or_name(name: str, more: dict[str, Any], adds: bool) -> None:
    body = {"eventName": name, "externalEventId": "e", **more}
    assert adds_instrument(read_taken_aml_event(body, NOW)) is adds


def test_codes_are_assigned_ones_in_either_length_and_case() -> None:
    assert [iso_code(code) for code in ("KP", "prk", "USA", "UK", "ZZ", "UAE", "Iran", "")] == [
        *("KP", "KP", "US", None, None, None, None, None)
    ]
    assert read_codes("kp, IRN,MM ") == {"KP", "IR", "MM"}
    with pytest.raises(ValueError, match="XYZ"):
        read_codes("KP, XYZ")


def rule(name: str, score: int, reason: str, **more: Any) -> Rule:
    return Rule(id=name, name=name, when="true", score=score, reason=reason, explanation="Because.", **more)


RULES = RuleSet(
    name="t",
    thresholds=Thresholds(review=60, block=100),
    rules=(
        rule("strong", 70, "A"),
        rule("same", 65, "A"),
        rule("hint-1", 25, "B"),
        rule("hint-2", 25, "C"),
        rule("hint-3", 25, "D"),
        rule("twice", 25, "D"),
        rule("must", 10, "E", outcome="REVIEW"),
        rule("shadow", 90, "F", mode="shadow"),
        rule("payee", 80, "G", action="REVIEW_RECEIVER"),
    ),
)
EVENT = AmlEvent(
    name="x", external_id="e", customer_id="c", trail=TransferHistory(party="p:c", receiver="p:r")
)


def typologies(fired: list[int], weights: dict[str, float] | None = None) -> list[str]:
    return [finding.typology for finding in judge(RULES, fired, weights or {}, EVENT)]


def test_strong_rules_alert_alone_and_hints_only_together() -> None:
    assert typologies([0, 1, 2]) == ["A"]
    assert typologies([2, 3]) == []
    assert typologies([2, 3, 4]) == [COMBINED]
    assert typologies([2, 4, 5]) == []
    assert typologies([7]) == []
    assert typologies([6]) == ["E"]


BEGUN = RuleSet(
    name="t",
    levels=Levels(medium=60, high=75, critical=95),
    thresholds=Thresholds(review=40, block=100),
    rules=(
        rule("half", 45, "FAN_IN"),
        rule("whole", 70, "SMURFING"),
        rule("other", 70, "CYCLE"),
        *(rule(f"hint-{name}", 20, name) for name in "BCD"),
        rule("payee", 45, "FAN_IN", action="REVIEW_RECEIVER"),
    ),
)


@pytest.mark.parametrize(
    ("fired", "expected"),
    [
        ([0], ["FAN_IN LOW c"]),
        ([0, 1], ["SMURFING MEDIUM c"]),
        ([0, 2], ["CYCLE MEDIUM c", "FAN_IN LOW c"]),
        ([1, 6], ["SMURFING MEDIUM c", "FAN_IN LOW r"]),
        ([3, 4], []),
        ([3, 4, 5], [f"{COMBINED} MEDIUM c"]),
        ([0, 3, 4], ["FAN_IN LOW c"]),
        ([0, 3, 4, 5], [f"{COMBINED} MEDIUM c", "FAN_IN LOW c"]),
    ],
)
def test_half_shapes_alert_with_low_severity_unless_the_whole_is_found(
    fired: list[int], expected: list[str]
) -> None:
    found = judge(BEGUN, fired, {}, EVENT)
    assert [f"{finding.typology} {finding.severity} {finding.subject}" for finding in found] == expected


def a_finding(typology: str, severity: Severity) -> AmlFinding:
    return AmlFinding(0, (), typology, severity, "c", mandatory=False)


def an_alert(typology: str, severity: Severity, **more: Any) -> TriedAlert:
    return TriedAlert("half", typology, severity, NOW, is_counted=True, **more)


def test_an_alert_about_half_a_shape_takes_up_the_whole_when_that_is_more_severe() -> None:
    low = an_alert("FAN_IN", Severity.LOW)
    assert repeated(a_finding("SMURFING", Severity.MEDIUM), [low], NOW) is low
    assert repeated(a_finding("SMURFING", Severity.LOW), [low], NOW) is None
    assert repeated(a_finding("CYCLE", Severity.HIGH), [low], NOW) is None
    assert repeated(a_finding("SMURFING", Severity.MEDIUM), [low], NOW + REPEAT_MS + 1) is None
    medium = an_alert("FAN_IN", Severity.MEDIUM)
    assert repeated(a_finding("SMURFING", Severity.HIGH), [medium], NOW) is None
    own = an_alert("SMURFING", Severity.MEDIUM)
    assert repeated(a_finding("SMURFING", Severity.MEDIUM), [low, own], NOW) is own
    assert is_raised(a_finding("FAN_IN", Severity.MEDIUM), low)
    assert not is_raised(a_finding("FAN_IN", Severity.MEDIUM), medium)


def test_half_a_shape_closed_as_a_mistake_keeps_the_whole_awake() -> None:
    closed = an_alert("FAN_IN", Severity.LOW, resolution=Resolution.FALSE_POSITIVE)
    assert mistaken(a_finding("FAN_IN", Severity.LOW), [closed])
    assert not mistaken(a_finding("FAN_IN", Severity.MEDIUM), [closed])
    assert mistaken(
        a_finding("FAN_IN", Severity.HIGH),
        [an_alert("FAN_IN", Severity.MEDIUM, resolution=Resolution.FALSE_POSITIVE)],
    )


def test_a_weakened_rule_no_longer_alerts_but_a_mandatory_one_does() -> None:
    weak = rule_weight(0, 10)
    assert 0.5 <= weak < 60 / 70
    assert typologies([0], {"strong": weak}) == []
    assert typologies([6], {"must": weak}) == ["E"]
    assert rule_weight(100, 0) == 1.0
    assert rule_weight(0, 10_000) == 0.5


def test_the_action_says_whom_an_alert_is_about() -> None:
    (payee,) = judge(RULES, [8], {}, EVENT)
    (own,) = judge(RULES, [0], {}, EVENT)
    assert (payee.subject, own.subject) == ("r", "c")


def test_one_officer_closes_without_four_eyes_and_two_with_them() -> None:
    case = open_case("cas_1", "c", NOW)
    mistake = Resolution.FALSE_POSITIVE
    assert (
        resolve(case, mistake, "", "ann", OfficerSettings(), NOW, signer=ONE_KEY).case.state
        is CaseState.CLOSED
    )
    eyes = OfficerSettings(four_eyes=True)
    proposed = resolve(case, mistake, "", "ann", eyes, NOW, signer=ONE_KEY).case
    assert proposed.state is CaseState.PENDING
    with pytest.raises(Conflict):
        resolve(proposed, mistake, "", "bo", eyes, NOW, signer=ONE_KEY)
    with pytest.raises(Conflict):
        reject(case, "", "bo", NOW)
    assert resolve(proposed, mistake, "", "bo", eyes, NOW, signer=OTHER_KEY).case.resolved_by == "bo"
    by_user = resolve(case, mistake, "", "ann", eyes, NOW, signer=ONE_USER).case
    with pytest.raises(Conflict):
        resolve(by_user, mistake, "", "ann", eyes, NOW, signer=ONE_USER)
    assert resolve(by_user, mistake, "", "bo", eyes, NOW, signer=ONE_KEY).case.state is CaseState.CLOSED


def test_what_was_held_in_former_times_is_read_as_alerted() -> None:
    record = msgspec.json.encode(
        AmlRecord(ruleset_version=3, facts=(), answers=(), inexact=0, fired=[], failed=[])
    )
    row = ("evt_1", "e", NOW, b"digest", "HELD", b"[]", record)
    assert (stored_of(row).status, stored_of(row).ruleset_version) == ("ALERTED", 3)
    for status in ("CLEAR", "ALERTED", "APPROVED", "REJECTED"):
        assert stored_of((*row[:4], status, b"[]", record)).status == status


def test_an_event_whose_record_is_damaged_has_its_answer_and_no_version() -> None:
    for damaged in (b"", b"[1", b"[]", b'{"a": 1}', b"\xff"):
        stored = stored_of(("evt_1", "e", NOW, b"digest", "CLEAR", b"[]", damaged))
        assert (stored.status, stored.alerts, stored.ruleset_version) == ("CLEAR", b"[]", None)
