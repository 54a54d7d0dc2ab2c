"""What the default pack finds does not depend on the currency, nor on the unit that a tenant sends."""

from typing import Any

import pytest

from vettance.aml.aml_event import read_taken_aml_event
from vettance.aml.aml_memory import AmlMemory
from vettance.aml.evidence import EvidenceWriter
from vettance.aml.features import aml_schema
from vettance.aml.findings import judge
from vettance.aml.transfer import transfer_of, unreadable_amounts
from vettance.reference.currencies import SCALES, Currencies, read_scales
from vettance.reference.jurisdictions import Jurisdictions
from vettance.rules.packs import load_pack
from vettance.rules.ruleset import compile_ruleset
from vettance.settings.settings import SettingsError, read_settings
from vettance.velocity.memory.memory_velocity import MemoryVelocity

HOUR_MS = 3_600_000
START_MS = 1_767_225_600_000
PACK = load_pack("aml")


def found(sums: list[float], currency: str | None, scales: dict[str, float] | None = None) -> set[str]:
    """Name the typologies that deposits of a person within a day give."""
    compiled = compile_ruleset(PACK, aml_schema(Jurisdictions(scales=scales or {})))
    memory = AmlMemory(MemoryVelocity())
    memory.install("t", compiled.plan)
    names: set[str] = set()
    for number, amount in enumerate(sums):
        metadata: dict[str, Any] = {"amount": amount, "segment": "person", "direction": "in"}
        if currency is not None:
            metadata["currency"] = currency
        at_ms = START_MS + number * HOUR_MS
        body = {
            "eventName": "deposit",
            "eventCategory": "TRANSACTION",
            "externalEventId": str(number),
            "customer": {"externalId": "c"},
            "metadata": metadata,
            "sourceReportedAt": at_ms / 1000,
        }
        event = memory.follow("t", read_taken_aml_event(body, at_ms))
        facts = compiled.facts(event)
        answer = memory.observe("t", str(number), at_ms, compiled.observe(facts))
        fired, failed = compiled.run(facts, answer.values)
        assert not failed
        names |= {finding.typology for finding in judge(PACK, fired, {}, event)} if fired else set()
    return names


@pytest.mark.parametrize(
    ("sums", "currency"),
    [
        ([9_500] * 3, None),
        ([9_500] * 3, "EUR"),
        ([9_500 * 150] * 3, "JPY"),  # Below 10,000 dollars in yen.
        ([1_900_000] * 3, "jpy"),  # Below what the law of Japan names.
        ([48_000] * 3, "ZAR"),
        ([2.9e3] * 3, "KWD"),
    ],
)
def test_sums_just_below_a_limit_are_found_in_every_currency(sums: list[float], currency: str | None) -> None:
    assert "STRUCTURING" in found(sums, currency)


@pytest.mark.parametrize("currency", ["JPY", "KRW", "IDR"])
def test_small_sums_of_a_currency_with_large_numbers_alert_nobody(currency: str) -> None:
    sums = [50 * SCALES[currency] + number for number in range(5)]
    assert not found(sums, currency)


def test_a_setting_gives_scales_to_what_the_table_does_not_know() -> None:
    cents = [950_000.0] * 3
    assert "STRUCTURING" not in found(cents, None)
    assert "STRUCTURING" in found(cents, None, {"*": 100})
    assert "STRUCTURING" in found([9_500 * 7.0] * 3, "XXP", {"XXP": 7})
    assert Currencies({"JPY": 200, "*": 3}).scale("JPY") == 200
    assert Currencies({"*": 3}).scale("EUR") == Currencies({"*": 3}).scale(None) == 3


@pytest.mark.parametrize("name", ["VETTANCE_CURRENCY_SCALES", "VETTANCE_AML_SCALES"])
def test_scales_are_read_from_the_environment_under_the_former_name_too(name: str) -> None:
    assert read_settings({name: "jpy=160, *=100"}).jurisdictions.scales == {"JPY": 160, "*": 100}
    both = {"VETTANCE_AML_SCALES": "JPY=1", "VETTANCE_CURRENCY_SCALES": "JPY=2"}
    assert read_settings(both).jurisdictions.scales == {"JPY": 2}
    empty = {"VETTANCE_AML_SCALES": "JPY=1", "VETTANCE_CURRENCY_SCALES": " "}
    assert read_settings(empty).jurisdictions.scales == {"JPY": 1}
    assert read_scales("") == {}


@pytest.mark.parametrize(
    ("metadata", "amount"),
    [
        ({"amountCents": 950_000, "currency": "EUR"}, 9_500),
        ({"amount_minor": 950_000, "currency": "JPY"}, 950_000),
        ({"transaction": {"amountMinor": 950_000, "currency": "BHD"}}, 950),
        ({"amount": {"minor": 950_000}, "currency": "USD"}, 9_500),
        ({"amount": 3, "amountCents": 950_000}, 3),
        ({"amountCents": "950,000"}, 9_500),
        ({"unitAmount": 950_000}, 9_500),
        ({"UnitAmount": 49.95}, 49.95),
        ({"UnitAmount": 49.95, "quantity": 2}, None),
        ({"unit_amount": {"value": "50", "currency_code": "EUR"}}, 50),
        ({"unit_amount": {"value": "50", "currency_code": "EUR"}, "quantity": 2}, None),
        ({"unitAmount": 4_995, "invoiceAmountCents": 9_990}, None),
        ({"unitAmount": 4_995, "quantity": 2, "amount": 99.9}, 99.9),
    ],
)
def test_an_amount_in_minor_units_is_read_by_the_decimals_of_its_currency(
    metadata: dict[str, Any], amount: float | None
) -> None:
    assert transfer_of({"eventName": "deposit", "metadata": metadata}).amount == amount
    assert not unreadable_amounts({"metadata": metadata})


def test_income_and_balance_are_read_in_minor_units_by_the_currency_of_the_event() -> None:
    customer = {"metadata": {"monthlyIncomeCents": 250_000}}
    metadata = {"amountCents": 100, "balanceAfterMinor": 900, "currency": "EUR"}
    transfer = transfer_of({"eventName": "deposit", "metadata": metadata, "customer": customer})
    assert (transfer.amount, transfer.balance_after, transfer.income) == (1, 9, 2_500)


def test_a_summary_says_prices_in_the_currency_of_an_event_that_says_no_amount() -> None:
    schema, currencies = aml_schema(), Currencies()
    compiled = compile_ruleset(PACK, schema)
    memory = AmlMemory(MemoryVelocity())
    memory.install("t", compiled.plan)
    rule = next(one for one in PACK.running if one.id == "mispriced-goods")
    metadata = {"goods": "tea", "quantity": 2, "invoiceAmount": 3_000_000, "currency": "JPY"}
    body = {"eventName": "trade.payment", "externalEventId": "1", "metadata": metadata}
    event = memory.follow("t", read_taken_aml_event(body, START_MS))
    facts = compiled.facts(event)
    answer = memory.observe("t", "1", START_MS, compiled.observe(facts))
    said, values = EvidenceWriter(schema, currencies).tell(rule, compiled, facts, answer.values, event)
    assert "one costs 1,500,000.00 JPY" in said.replace("One", "one")
    assert values["invoice_worth"] == 20_000


@pytest.mark.parametrize("text", ["JPY", "JPY=", "JPY=0", "JPY=-1", "JPY=nan", "J=1", "¥=150", "JPY=1e99"])
def test_a_scale_that_says_nothing_is_refused_with_its_text(text: str) -> None:
    for name in ("VETTANCE_CURRENCY_SCALES", "VETTANCE_AML_SCALES"):
        with pytest.raises(SettingsError, match=name):
            read_settings({name: text})
