"""The generated stream: repeatable, in order, true to its share of fraud, taken by the service."""

import time
from collections import Counter, defaultdict
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vettance.clock import DAY_MS
from vettance.events.event import read_event
from vettance.generate.attacks import ATTACKS
from vettance.generate.fraud_stream import Traffic, reference, stream
from vettance.generate.generated_event import ORDINARY
from vettance.wire.payload import parse_object, read_timestamp


def bodies(traffic: Traffic) -> list[bytes]:
    return [event.body(reference(number)) for number, event in enumerate(stream(traffic))]


@settings(max_examples=12, deadline=None)
@given(customers=st.integers(1, 40), days=st.integers(1, 6), seed=st.integers())
def test_the_same_seed_gives_the_same_bytes(customers: int, days: int, seed: int) -> None:
    traffic = Traffic(customers=customers, days=days, seed=seed, fraud_share=0.1)
    assert bodies(traffic) == bodies(traffic)


def test_another_seed_gives_other_traffic() -> None:
    one = bodies(Traffic(customers=20, days=3, seed=1))
    assert one != bodies(Traffic(customers=20, days=3, seed=2))


@settings(max_examples=12, deadline=None)
@given(customers=st.integers(1, 40), days=st.integers(1, 6), seed=st.integers())
def test_events_come_in_time_order_within_the_days_asked_for(customers: int, days: int, seed: int) -> None:
    traffic = Traffic(customers=customers, days=days, seed=seed, fraud_share=0.1)
    moments = [event.at_ms for event in stream(traffic)]
    assert moments == sorted(moments)
    assert all(0 <= moment - traffic.start_ms < days * DAY_MS for moment in moments)


def test_every_event_is_one_the_service_takes() -> None:
    now_ms = time.time_ns() // 1_000_000
    traffic = Traffic(customers=60, days=10, seed=3, start_ms=now_ms - 10 * DAY_MS, fraud_share=0.2)
    kinds = set()
    for number, event in enumerate(stream(traffic)):
        body = event.body(reference(number))
        assert len(body) < 2048
        parsed = read_event(parse_object(body), body, now_ms)
        assert parsed.occurred_at_ms == event.at_ms
        assert parsed.metadata["reference"] == reference(number)
        if event.customer:
            assert event.customer == parsed.customer_key
        kinds.add(parsed.name)
    assert {"user.login", "user.signup", "payment.attempt", "user.password_changed", "promo.redeem"} <= kinds


def test_a_shifted_event_differs_in_its_moment_only() -> None:
    event = next(stream(Traffic(customers=50, days=1, seed=5)))
    plain = msgspec.json.decode(event.body("ref_1"))
    later = msgspec.json.decode(event.body("ref_1", shift_ms=90_000))
    moment, moved = plain["metadata"].pop("occurredAt"), later["metadata"].pop("occurredAt")
    assert plain == later
    first, second = read_timestamp(moment), read_timestamp(moved)
    assert first is not None
    assert second == first + 90_000


def test_fraud_keeps_its_share_in_the_long_run_and_every_scenario_appears() -> None:
    scenarios = Counter(event.scenario for event in stream(Traffic(customers=900, days=60, seed=11)))
    share = 1 - scenarios[ORDINARY] / scenarios.total()
    assert 0.007 < share < 0.014
    assert set(scenarios) == {ORDINARY} | {attack.scenario for attack in ATTACKS if attack.weight}


def test_the_weight_zero_leaves_a_scenario_out() -> None:
    traffic = Traffic(customers=150, days=10, seed=2, fraud_share=0.3, weights={"bot": 0, "card_testing": 0})
    scenarios = {event.scenario for event in stream(traffic)}
    assert "bot" not in scenarios
    assert "card_testing" not in scenarios
    assert "account_takeover" in scenarios


def test_without_fraud_the_ordinary_customers_do_the_same() -> None:
    clean = [event.head for event in stream(Traffic(customers=40, days=5, seed=4, fraud_share=0))]
    mixed = [
        event.head
        for event in stream(Traffic(customers=40, days=5, seed=4, fraud_share=0.2))
        if not event.fraud
    ]
    assert clean == mixed


def test_customers_keep_to_few_devices_and_addresses_of_their_own() -> None:
    devices = defaultdict(set)
    emails = defaultdict(set)
    for event in stream(Traffic(customers=80, days=30, seed=9, fraud_share=0)):
        body = msgspec.json.decode(event.body("ref"))
        customer = body["customer"]["externalId"]
        emails[body["customer"]["email"]].add(customer)
        if "device" in body:
            devices[customer].add(body["device"]["fingerprint"])
    assert max(len(owned) for owned in devices.values()) <= 5
    assert sum(len(owned) for owned in devices.values()) / len(devices) < 2.2
    assert max(len(owners) for owners in emails.values()) == 1


def test_nothing_in_an_event_names_the_attack_it_belongs_to() -> None:
    words = [attack.scenario.encode() for attack in ATTACKS if attack.scenario != "bot"]
    for event in stream(Traffic(customers=100, days=10, seed=6, fraud_share=0.3)):
        body = event.body("ref")
        assert b"case_" not in body
        assert not any(word in body for word in words)


def test_the_parts_of_the_attacks_sum_to_one() -> None:
    assert sum(attack.share * attack.weight for attack in ATTACKS) == pytest.approx(1)


def test_slow_stuffing_is_played_when_asked_for() -> None:
    weights = {attack.scenario: 0.0 for attack in ATTACKS} | {"slow_stuffing": 1.0}
    events = stream(Traffic(customers=100, days=20, seed=8, fraud_share=0.2, weights=weights))
    cases = defaultdict(list)
    for event in events:
        if event.fraud:
            cases[event.case].append(event.at_ms)
    assert sum(len(moments) for moments in cases.values()) > 100
    longest = max(cases.values(), key=len)
    assert (longest[-1] - longest[0]) / len(longest) > 60_000


def test_people_on_the_way_have_as_many_networks_as_asked_for() -> None:
    def networks(roaming: float) -> float:
        owned = defaultdict(set)
        for event in stream(Traffic(customers=80, days=30, seed=9, fraud_share=0, roaming=roaming)):
            body = msgspec.json.decode(event.body("ref"))
            if "ip" in body:
                owned[body["customer"]["externalId"]].add(body["ip"].rpartition(".")[0])
        return sum(len(each) for each in owned.values()) / len(owned)

    homely, mixed, restless = (networks(roaming) for roaming in (0.0, 0.3, 0.8))
    assert homely + 2 < mixed < restless - 2


@pytest.mark.parametrize(
    "bad",
    [
        {"customers": 0},
        {"days": 0},
        {"fraud_share": 1.0},
        {"start_ms": -1},
        {"start_ms": 253402300000000},
        {"roaming": 1.0},
    ],
)
def test_traffic_that_cannot_be_is_refused(bad: dict[str, Any]) -> None:
    with pytest.raises(ValueError):
        next(stream(Traffic(**({"customers": 1, "days": 1, "seed": 1} | bad))))
