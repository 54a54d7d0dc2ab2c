"""Whatever words a tenant uses, the same thing is the same kind with the same outcome."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vettance.events.event import Category, Event
from vettance.events.kind import EventKind, EventOutcome, kind_of, meaning_of

NAMES = [
    (
        EventKind.LOGIN,
        "user.login login.attempt auth_login_failed sign_in LOGIN_FAILED loginfailed userlogin sign_in",
    ),
    (
        EventKind.LOGIN,
        "log-in signinFailure auth.failed session.started sso.success invalid_password AccountLogin login",
    ),
    (EventKind.LOGOUT, "logout user.log_out sign-out session.ended"),
    (EventKind.MFA, "mfa.failed 2fa.challenge 2FA_FAILED otp.verify login.mfa.succeeded"),
    (
        EventKind.SIGNUP,
        "signup sign_up account.created user.created customer_registered registration.completed",
    ),
    (
        EventKind.PASSWORD_RESET,
        "password.reset password_reset_requested forgot-password account.recovery resetPassword",
    ),
    (EventKind.PASSWORD_CHANGE, "passwordChanged user.password_updated pin.changed PASSWORD_CHANGE"),
    (
        EventKind.PROFILE_CHANGE,
        "email.changed profile.update phone_changed shippingAddressChanged mfa.disabled",
    ),
    (EventKind.PROFILE_CHANGE, "account.email.updated payment_method.updated"),
    (EventKind.CARD_ADDED, "card.added payment_method.added bank_account.linked beneficiaryAdded iban.added"),
    (
        EventKind.PAYMENT,
        "payment.attempt purchase charge.succeeded card.declined card.payment.created topup tx",
    ),
    (
        EventKind.PAYMENT,
        "transaction.create Payment-Declined paymentattempt card.authorization giftcard.purchase deposit",
    ),
    (EventKind.CHECKOUT, "checkout.submit order.placed cart.checkout check_out"),
    (EventKind.WITHDRAWAL, "withdrawal cash_out payout.created withdraw.request"),
    (EventKind.TRANSFER, "transfer p2p.transfer send_money wire.sent"),
    (EventKind.REFUND, "charge.refunded refund.requested orderRefund REFUND_ISSUED"),
    (EventKind.PROMO, "promo.redeem coupon.applied referralClaimed bonus.granted gift_card.check"),
    (
        EventKind.OTHER,
        "page.viewed login.page.viewed charge.disputed transfer.received device.registered token.refresh",
    ),
]
ROWS = [(kind, name) for kind, names in NAMES for name in names.split()]


@pytest.mark.parametrize(("kind", "name"), ROWS)
def test_a_name_is_read_as_its_kind(kind: EventKind, name: str) -> None:
    assert kind_of(name) is kind


@pytest.mark.parametrize(
    ("name", "category", "kind"),
    [
        ("attempt", Category.AUTHENTICATION, EventKind.LOGIN),
        ("attempt", Category.TRANSACTION, EventKind.PAYMENT),
        ("attempt", Category.OTHER, EventKind.OTHER),
        ("attempt", Category.ACCOUNT, EventKind.OTHER),
        ("auth", Category.TRANSACTION, EventKind.PAYMENT),
        ("auth", Category.AUTHENTICATION, EventKind.LOGIN),
        ("user.login", Category.TRANSACTION, EventKind.LOGIN),
        ("payment", Category.AUTHENTICATION, EventKind.PAYMENT),
    ],
)
def test_a_name_without_meaning_falls_back_on_its_category(
    name: str, category: Category, kind: EventKind
) -> None:
    assert kind_of(name, category) is kind


@given(
    st.sampled_from(
        ["user login failed", "card added", "password changed", "order placed", "account created"]
    ),
    st.sampled_from([".", "_", "-", " ", ":", "/", "camel", "Pascal"]),
    st.booleans(),
)
def test_case_and_separators_do_not_matter(words: str, separator: str, upper: bool) -> None:
    expected = kind_of(words)
    parts = words.split()
    if separator == "Pascal":
        name = "".join(part.title() for part in parts)
    elif separator == "camel":
        name = parts[0] + "".join(part.title() for part in parts[1:])
    else:
        name = separator.join(parts)
        name = name.upper() if upper else name
    assert expected is not EventKind.OTHER
    assert kind_of(name) is expected


@given(st.text(max_size=300), st.sampled_from(list(Category)))
def test_any_text_has_a_kind(name: str, category: Category) -> None:
    assert kind_of(name, category) in EventKind


def test_a_long_hostile_name_is_read_quickly() -> None:
    started = time.perf_counter()
    for index in range(50):
        kind_of("loginpayment" * 85 + str(index))
        kind_of("a." * 500 + str(index))
    assert time.perf_counter() - started < 0.5


def event(name: str = "user.login", **members: object) -> Event:
    return Event(name=name, **members)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("name", "metadata", "outcome"),
    [
        ("user.login_failed", {}, EventOutcome.FAILURE),
        ("login.failed", {}, EventOutcome.FAILURE),
        ("LoginFailure", {}, EventOutcome.FAILURE),
        ("user.login", {"outcome": "failed"}, EventOutcome.FAILURE),
        ("user.login", {"outcome": "FAILURE"}, EventOutcome.FAILURE),
        ("user.login", {"result": "invalid_credentials"}, EventOutcome.FAILURE),
        ("user.login", {"success": False}, EventOutcome.FAILURE),
        ("user.login", {"success": "false"}, EventOutcome.FAILURE),
        ("user.login", {"isFailed": True}, EventOutcome.FAILURE),
        ("user.login", {"failureReason": "bad password"}, EventOutcome.FAILURE),
        ("user.login", {"status": 401}, EventOutcome.FAILURE),
        ("user.login", {"status": 200}, EventOutcome.SUCCESS),
        ("user.login", {"success": True}, EventOutcome.SUCCESS),
        ("user.login", {"failureReason": None, "outcome": "ok"}, EventOutcome.SUCCESS),
        ("login.succeeded", {}, EventOutcome.SUCCESS),
        ("payment.declined", {"outcome": "approved"}, EventOutcome.SUCCESS),
        ("payment", {"declineCode": "00"}, EventOutcome.UNKNOWN),
        ("payment", {"declineCode": "51"}, EventOutcome.FAILURE),
        ("payment", {"status": "pending"}, EventOutcome.UNKNOWN),
        ("user.login", {"outcome": {"deep": 1}}, EventOutcome.UNKNOWN),
        ("user.login", {"error": ""}, EventOutcome.UNKNOWN),
        ("user.login", {}, EventOutcome.UNKNOWN),
    ],
)
def test_an_outcome_is_read_however_it_is_said(
    name: str, metadata: dict[str, object], outcome: EventOutcome
) -> None:
    assert meaning_of(event(name, metadata=metadata)).outcome == outcome


@pytest.mark.parametrize("holder", ["metadata", "payload", "custom_fields", "extra"])
def test_an_outcome_is_found_in_every_object(holder: str) -> None:
    assert meaning_of(event(**{holder: {"success": False}})).outcome == EventOutcome.FAILURE


@given(
    st.dictionaries(
        st.sampled_from(["outcome", "success", "error", "status", "failed", "x"]),
        st.none()
        | st.booleans()
        | st.integers()
        | st.floats()
        | st.text(max_size=20)
        | st.lists(st.integers(), max_size=2),
    )
)
def test_no_value_breaks_the_reading_of_an_outcome(metadata: dict[str, object]) -> None:
    assert meaning_of(event(metadata=metadata)).outcome in list(EventOutcome)
