"""What the default fraud pack promises: who is let through, and which attacks are stopped how soon."""

import itertools
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.packs.stream import DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS, START_MS, Answer, Stream
from vettance.events.event import Category

JSON = dict[str, Any]

NAMES = [
    "user.login",
    "login.attempt",
    "login.succeeded",
    "user.login_failed",
    "signup",
    "account.created",
    "payment.attempt",
    "checkout.submit",
    "transfer",
    "withdrawal",
    "password.reset",
    "email.changed",
    "promo.redeem",
    "card.added",
    "mfa.challenge",
    "page.viewed",
]
ADDRESSES = [
    None,
    "10.0.0.1",
    "127.0.0.1",
    "192.168.1.9",
    "203.0.113.7",
    "8.8.8.8",
    "::1",
    "2001:db8::7",
    "no ip",
]
METADATA: list[JSON] = [
    {},
    {"amount": 25, "currency": "EUR", "merchantId": "m", "cardHash": "k"},
    {"amount": "4999.00", "currency": "USD", "terminalId": "t", "promoCode": "HELLO", "outcome": "success"},
    {"amount": 0.5, "channel": "web", "isNewAccount": True},
]


def not_allowed_from(answers: list[Answer]) -> int:
    """Return which event, counted from 1, was the first not to be allowed; 0 when all were."""
    return next((number for number, answer in enumerate(answers, 1) if answer.outcome != "ALLOW"), 0)


@settings(max_examples=300, deadline=None)
@given(
    st.sampled_from(NAMES),
    st.sampled_from([category.value for category in Category]),
    st.sampled_from(ADDRESSES),
    st.sampled_from([None, {"fingerprint": "f"}, {"externalId": "d"}]),
    st.sampled_from(METADATA),
    st.sampled_from(["c@example.com", "a.b+tag@gmail.com", "q7x@mailinator.com", None]),
    st.sampled_from([None, "Mozilla/5.0 (X11; Linux x86_64) Firefox/128.0", "python-requests/2.32"]),
    st.sampled_from([None, "US", "DEU"]),
)
def test_one_event_of_a_new_customer_is_allowed(
    name: str,
    category: str,
    ip: str | None,
    device: JSON | None,
    metadata: JSON,
    email: str | None,
    user_agent: str | None,
    country: str | None,
) -> None:
    if email == "q7x@mailinator.com" and (user_agent == "python-requests/2.32" or "promoCode" in metadata):
        return  # A throw-away mailbox and a script together are no ordinary customer.
    answer = Stream().send(
        START_MS,
        name,
        eventCategory=category,
        customer={"externalId": "c", "email": email},
        device=device,
        ip=ip,
        metadata=metadata,
        userAgent=user_agent,
        country=country,
        sessionId="s",
    )
    assert answer.outcome == "ALLOW", answer


@pytest.mark.parametrize(
    ("name", "metadata"),
    [
        ("user.login_failed", {}),
        ("login.failed", {}),
        ("LoginFailure", {}),
        ("user.login", {"outcome": "failed"}),
        ("user.login", {"outcome": "failure"}),
        ("user.login", {"success": False}),
        ("auth", {"result": "invalid_credentials"}),
        ("signin", {"status": 401}),
    ],
)
@pytest.mark.parametrize("apart_ms", [0, 3 * SECOND_MS])
@pytest.mark.parametrize("known_by", ["externalId", "email"])
def test_failed_logins_of_many_customers_from_one_address_are_stopped(
    name: str, metadata: JSON, apart_ms: int, known_by: str
) -> None:
    stream = Stream()
    answers = [
        stream.send(
            START_MS + number * apart_ms,
            name,
            eventCategory="AUTHENTICATION",
            customer={known_by: f"c{number}@example.com"},
            ip="203.0.113.7",
            metadata=metadata,
        )
        for number in range(20)
    ]
    assert 0 < not_allowed_from(answers) <= 8
    assert answers[-1].outcome == "BLOCK"


@pytest.mark.parametrize("device", [None, {"fingerprint": "f"}])
def test_a_burst_of_logins_without_outcome_from_one_address_is_stopped(device: JSON | None) -> None:
    stream = Stream()
    answers = [
        stream.send(
            START_MS + number * 3 * SECOND_MS,
            "user.login",
            customer={"externalId": f"c{number}"},
            ip="203.0.113.7",
            device=device,
        )
        for number in range(20)
    ]
    assert 0 < not_allowed_from(answers) <= 12
    assert answers[-1].outcome != "ALLOW"


@pytest.mark.parametrize("customers", [1, 10])
def test_ten_cards_tried_with_small_amounts_on_one_device_are_stopped(customers: int) -> None:
    stream = Stream()
    answers = [
        stream.send(
            START_MS + number * 30 * SECOND_MS,
            "payment.attempt",
            customer={"externalId": f"c{number % customers}"},
            device={"fingerprint": "f"},
            metadata={"amount": 1 + number / 10, "cardHash": f"k{number}"},
        )
        for number in range(10)
    ]
    assert 0 < not_allowed_from(answers) <= 7
    assert answers[-1].outcome == "BLOCK"


def test_ten_cards_declined_from_one_address_are_stopped() -> None:
    stream = Stream()
    answers = [
        stream.send(
            START_MS + number * MINUTE_MS,
            "payment.declined",
            customer={"externalId": f"c{number}"},
            ip="198.51.100.7",
            metadata={"amount": 2, "cardHash": f"k{number}"},
        )
        for number in range(10)
    ]
    assert not_allowed_from(answers) > 0


def history(days: int, payments: int) -> list[tuple[float, str, JSON]]:
    """Return logins on each of `days` days and payments on the first of them, all on the own device."""
    own: JSON = {"customer": {"externalId": "c"}, "device": {"fingerprint": "own"}, "ip": "81.2.69.1"}
    rows: list[tuple[float, str, JSON]] = [
        (START_MS + day * DAY_MS, "user.login", own) for day in range(days)
    ]
    rows += [
        (START_MS + day * DAY_MS + HOUR_MS, "payment", own | {"metadata": {"amount": 40 + day}})
        for day in range(payments)
    ]
    return rows


@pytest.mark.parametrize("payments", [0, 1, 3, 6, 12])
@pytest.mark.parametrize("changed_on", ["own", "other"])
@pytest.mark.parametrize("change", ["password.changed", "password_reset", "email.changed"])
def test_a_takeover_ends_before_the_money_is_gone(payments: int, changed_on: str, change: str) -> None:
    thief: JSON = {"customer": {"externalId": "c"}, "device": {"fingerprint": "other"}, "ip": "45.83.64.1"}
    then = START_MS + 13 * DAY_MS
    answers = Stream().replay(
        [
            *history(12, payments),
            (then, change, thief | {"device": {"fingerprint": changed_on}}),
            (then + 10 * MINUTE_MS, "user.login", thief),
            (then + 20 * MINUTE_MS, "payment.attempt", thief | {"metadata": {"amount": 1500}}),
        ]
    )
    assert answers[-1].outcome != "ALLOW"
    # The login is held already: neither its device nor its network is the customer's.
    assert not_allowed_from(answers) == len(answers) - 1


def test_a_customer_who_resets_the_password_and_shops_on_is_allowed() -> None:
    own: JSON = {"customer": {"externalId": "c"}, "device": {"fingerprint": "own"}, "ip": "81.2.69.1"}
    then = START_MS + 13 * DAY_MS
    answers = Stream().replay(
        [
            *history(12, 12),
            (then, "login.failed", own),
            (then + MINUTE_MS, "password.reset", own),
            (then + 2 * MINUTE_MS, "login.succeeded", own),
            (then + 9 * MINUTE_MS, "payment", own | {"metadata": {"amount": 95}}),
        ]
    )
    assert not_allowed_from(answers) == 0


@pytest.mark.parametrize("name", ["signup", "account.created", "user_registered"])
def test_a_ring_of_registrations_on_one_device_is_stopped(name: str) -> None:
    stream = Stream()
    answers = [
        stream.send(
            START_MS + number * MINUTE_MS,
            name,
            customer={"externalId": f"c{number}", "email": f"name{number}@example.com"},
            device={"fingerprint": "f"},
        )
        for number in range(10)
    ]
    assert 0 < not_allowed_from(answers) <= 5
    assert answers[-1].outcome == "BLOCK"


def test_one_device_of_many_customers_is_stopped() -> None:
    stream = Stream()
    answers = [
        stream.send(
            START_MS + number * 10 * MINUTE_MS,
            "login.succeeded",
            customer={"externalId": f"c{number}"},
            device={"externalId": "d"},
        )
        for number in range(15)
    ]
    assert 0 < not_allowed_from(answers) <= 10


def test_impossible_travel_is_stopped_and_a_flight_is_not() -> None:
    paris, new_york = {"latitude": 48.86, "longitude": 2.35}, {"latitude": 40.71, "longitude": -74.01}
    for hours, expected in ((1, "REVIEW"), (9, "ALLOW")):
        stream = Stream()
        stream.send(START_MS, "login", customer={"externalId": "c"}, location=paris)
        later = stream.send(
            START_MS + hours * HOUR_MS, "login", customer={"externalId": "c"}, location=new_york
        )
        assert later.outcome == expected


SIGNALS: list[JSON] = [
    {"clipboardPaste": True},
    {"keystrokeIntervals": [1] * 20},
    {"mouseEntropy": 0.0},
    {"mouseMoveCount": 0},
    {"formSeconds": 0.05},
    {"assistive": True},
]


@pytest.mark.parametrize("name", ["user.login", "signup", "payment.attempt", "card.added"])
def test_password_managers_and_assistive_tools_alone_are_never_reviewed(name: str) -> None:
    for size in range(len(SIGNALS) + 1):
        for chosen in itertools.combinations(SIGNALS, size):
            signals: JSON = {}
            for signal in chosen:
                signals |= signal
            answer = Stream().send(START_MS, name, customer={"externalId": "c"}, sdkSignals=signals)
            assert answer.outcome == "ALLOW", (signals, answer)


def test_a_browser_that_admits_to_be_driven_is_stopped() -> None:
    signals = {"webdriver": True, "headless": True}
    answer = Stream().send(START_MS, "signup", customer={"externalId": "c"}, sdkSignals=signals)
    assert answer.outcome == "BLOCK"
