"""What rules can see of an event: typed, whatever was sent, and never an exception."""

import operator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vettance.decisions.features import fraud_schema
from vettance.events.event import Event, read_taken_event
from vettance.rules.schema import Field, Type

NOW_MS = 1_760_000_000_000  # 2025-10-09T08:53:20Z, a Thursday
SCHEMA = fraud_schema()
FULL: dict[str, Any] = {
    "eventName": "payment.attempt",
    "eventCategory": "TRANSACTION",
    "customer": {"externalId": "c1", "email": "J.Doe+x@Gmail.com", "metadata": {"tier": "gold"}},
    "device": {"externalId": "d1", "fingerprint": "f1", "metadata": {"os": "ios"}},
    "ip": "8.8.8.8",
    "userAgent": "curl/8.5",
    "country": "de",
    "sessionId": "s1",
    "location": {"latitude": 52.5, "longitude": 13.4},
    "metadata": {
        "amount": "12.50",
        "currency": "eur",
        "merchant_id": 77,
        "cardHash": "k1",
        "channel": "POS",
        "promo_code": "hello",
        "outcome": "Declined",
        "ipCountry": "at",
        "isVpn": True,
        "isTor": False,
    },
    "custom_fields": {"plan": {"name": "basic"}},
    "sdkSignals": {"clipboardPaste": True, "keystrokeIntervals": [100, 200], "webdriver": False, "own": 3},
    "tip": 2,
}


def event(**changes: Any) -> Event:
    return read_taken_event({**FULL, **changes}, NOW_MS)


def value(name: str, seen: Event) -> Any:
    field = SCHEMA.fields.get(name)
    if field is not None:
        return field.read(seen)
    found = SCHEMA.namespace_of(name)
    assert found is not None
    namespace, path = found
    inner: Any = namespace.read(seen)
    for part in path:
        inner = inner.get(part) if isinstance(inner, dict) else None
    return inner


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("event.name", "payment.attempt"),
        ("event_name", "payment.attempt"),
        ("event.category", "TRANSACTION"),
        ("event.kind", "payment"),
        ("event.outcome", "failure"),
        ("event.moves_money", True),
        ("event.spends", False),
        ("event.payment_failed", True),
        ("event.logged_in", False),
        ("event.login_failed", False),
        ("event.changes_credentials", False),
        ("customer.external_id", "c1"),
        ("customer.email", "j.doe+x@gmail.com"),
        ("customer.key", "c1"),
        ("device.external_id", "d1"),
        ("device.fingerprint", "f1"),
        ("device.key", "f1"),
        ("ip", "8.8.8.8"),
        ("user_agent", "curl/8.5"),
        ("user_agent.automation", True),
        ("user_agent.family", "curl"),
        ("user_agent.system", None),
        ("user_agent.client", "curl"),
        ("ip.prefix", "8.8.8.0/24"),
        ("country", "DE"),
        ("session_id", "s1"),
        ("location.latitude", 52.5),
        ("location.longitude", 13.4),
        ("occurred_at_ms", NOW_MS),
        ("hour", 8),
        ("weekday", 4),
        ("metadata.amount", 12.5),
        ("metadata.currency", "EUR"),
        ("metadata.merchantId", "77"),
        ("metadata.merchant_id", "77"),
        ("merchant.key", "77"),
        ("metadata.terminalId", None),
        ("metadata.cardHash", "k1"),
        ("metadata.card_hash", "k1"),
        ("metadata.channel", "pos"),
        ("metadata.promoCode", "HELLO"),
        ("in_person", True),
        ("account.age_hours", None),
        ("account.is_new", None),
        ("email.valid", True),
        ("email.domain", "gmail.com"),
        ("email.mailbox", "jdoe@gmail.com"),
        ("email.free", True),
        ("email.plus_tag", True),
        ("email.disposable", False),
        ("ip.valid", True),
        ("ip.version", 4),
        ("ip.kind", "public"),
        ("ip.private", False),
        ("ip.country", "AT"),
        ("ip.hosting", None),
        ("ip.anonymous", True),
        ("signals.paste", True),
        ("signals.keystroke_count", 2.0),
        ("signals.keystroke_mean_ms", 150.0),
        ("signals.keystroke_cv", 1 / 3),
        ("signals.webdriver", False),
        ("signals.mouse_entropy", None),
        ("signals.own", 3),
        ("custom_fields.plan.name", "basic"),
        ("customer.metadata.tier", "gold"),
        ("device.metadata.os", "ios"),
        ("extra.tip", 2),
    ],
)
def test_a_full_event_shows_every_feature(name: str, expected: Any) -> None:
    found = value(name, event())
    assert found == (pytest.approx(expected) if isinstance(expected, float) else expected)
    assert type(found) is not bool or isinstance(expected, bool)


def test_without_ids_the_email_and_the_device_id_are_the_keys() -> None:
    seen = event(customer={"email": "a@b.de"}, device={"externalId": "d1"})
    assert (value("customer.key", seen), value("device.key", seen)) == ("a@b.de", "d1")


@pytest.mark.parametrize(
    ("sent", "amount"),
    [
        (12, 12),
        (12.5, 12.5),
        ("12.50", 12.5),
        (" 7 ", 7.0),
        ("-3.5", -3.5),
        ("1,234.50", 1234.5),
        ("12,50", 12.5),
        ({"value": "9.99", "currency": "EUR"}, 9.99),
        ({"amount": 9}, 9),
        (True, None),
        ("", None),
        ("twelve", None),
        ("1e5", None),
        ("9" * 40, None),
        ("1,23,4", None),
        ([12], None),
        (None, None),
    ],
)
def test_an_amount_is_read_in_the_forms_products_send(sent: Any, amount: float | None) -> None:
    assert value("metadata.amount", event(metadata={"amount": sent})) == amount


def test_known_members_are_found_in_the_payload_when_metadata_has_none() -> None:
    seen = event(metadata={}, payload={"amount": 5, "card_hash": "k", "success": False})
    assert value("metadata.amount", seen) == 5
    assert value("metadata.cardHash", seen) == "k"
    assert value("event.outcome", seen) == "failure"


@pytest.mark.parametrize(
    ("changes", "hours", "new"),
    [
        ({"metadata": {"accountCreatedAt": "2025-10-09T06:53:20Z"}}, 2.0, True),
        ({"metadata": {"account_age_days": 3}}, 72.0, False),
        ({"customer": {"createdAt": NOW_MS / 1000 - 3600}}, 1.0, True),
        ({"customer": {"metadata": {"signupDate": "2020-01-01"}}}, 50600.89, False),
        ({"metadata": {"isNewAccount": True}}, None, True),
        ({"metadata": {"createdAt": "2025-10-09T06:53:20Z"}}, None, None),
        ({"metadata": {"accountCreatedAt": "yesterday"}}, None, None),
    ],
)
def test_the_age_of_an_account_is_read_where_products_send_it(
    changes: dict[str, Any], hours: float | None, new: bool | None
) -> None:
    seen = event(**changes)
    found = value("account.age_hours", seen)
    assert found == (pytest.approx(hours, abs=0.02) if hours is not None else None)
    assert value("account.is_new", seen) is new


@pytest.mark.parametrize("holder", ["sdkSignals", "signals"])
@pytest.mark.parametrize("inside", [None, "metadata", "payload"])
def test_signals_are_found_wherever_a_product_puts_them(holder: str, inside: str | None) -> None:
    signals: dict[str, Any] = {holder: {"mouse_entropy_score": 0.25, "isEmulator": True}}
    body: dict[str, Any] = {"eventName": "login"} | (signals if inside is None else {inside: signals})
    seen = read_taken_event(body, NOW_MS)
    assert value("signals.mouse_entropy", seen) == 0.25
    assert value("signals.emulator", seen) is True


def test_reading_two_events_in_turns_never_mixes_them() -> None:
    login, payment = event(eventName="login", metadata={}), event(metadata={})
    for _ in range(3):
        assert value("event.kind", login) == "login"
        assert value("event.kind", payment) == "payment"
        assert value("event.logged_in", payment) is False
        assert value("event.logged_in", login) is True


JUNK = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63)
    | st.floats(allow_nan=False)
    | st.text(max_size=30),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=4,
)
MEMBERS = (
    "amount currency merchantId cardHash channel outcome promoCode accountCreatedAt createdAt accountAgeDays "
    "isNewAccount ipCountry ipAsn ipHosting isVpn success status error sdkSignals signals keystrokeIntervals "
    "mouseEntropy paste metadata"
)
NAMES = st.sampled_from(MEMBERS.split())
OBJECTS = st.dictionaries(NAMES, JUNK | st.dictionaries(NAMES, JUNK | st.lists(JUNK, max_size=4), max_size=3))
RIGHT = {Type.NUMBER: (int, float), Type.TEXT: (str,), Type.BOOL: (bool,), Type.LIST: (list,)}


@given(OBJECTS, OBJECTS, OBJECTS, st.text(max_size=20) | st.none(), st.text(max_size=20) | st.none())
def test_whatever_is_sent_every_feature_keeps_its_type(
    metadata: dict[str, Any],
    customer: dict[str, Any],
    extra: dict[str, Any],
    email: str | None,
    ip: str | None,
) -> None:
    seen = Event(
        name="x",
        metadata=metadata,
        payload=extra,
        customer=customer,
        extra=extra,
        email=email,
        ip=ip,
        user_agent=email,
        country=ip,
        occurred_at_ms=NOW_MS,
    )
    for field in SCHEMA.fields.values():
        found = field.read(seen)
        assert found is None or is_of(field, found), (field.name, found)
    for namespace in SCHEMA.namespaces.values():
        assert isinstance(namespace.read(seen), dict)


def is_of(field: Field, found: Any) -> bool:
    if isinstance(found, bool):
        return field.type is Type.BOOL
    return isinstance(found, RIGHT[field.type])


def test_every_feature_is_documented_in_a_sentence() -> None:
    for field in (*SCHEMA.fields.values(), *SCHEMA.namespaces.values()):
        assert field.doc.endswith("."), field.name
        assert "|" not in field.doc


def test_a_declared_attribute_and_its_reader_agree() -> None:
    seen = event()
    for field in SCHEMA.fields.values():
        if field.attribute is not None:
            assert operator.attrgetter(field.attribute)(seen) == field.read(seen)
