"""What kind of thing happened and how it ended, whatever words a tenant's own taxonomy uses for it.

Every tenant names its events itself (`user.login`, `auth_login_failed`, `checkoutSubmit`, `CARD DECLINED`).
Rules are written once, against the kinds and outcomes of this page; two tables of words lead from one to
the other. A name that no row knows falls back on the category of the event.
"""

import enum
import functools
import itertools
import re
from typing import Any, Final, NamedTuple

from vettance.events.event import Category, Event
from vettance.events.event_spellings import WRAPPERS, spelt_members
from vettance.wire.payload import JSON


class EventKind(enum.StrEnum):
    """The kinds of events that fraud rules tell apart."""

    LOGIN = "login"
    LOGOUT = "logout"
    MFA = "mfa"
    SIGNUP = "signup"
    PASSWORD_CHANGE = "password_change"  # noqa: S105 (the name of a kind, no password)
    PASSWORD_RESET = "password_reset"  # noqa: S105 (the name of a kind, no password)
    PROFILE_CHANGE = "profile_change"
    CARD_ADDED = "card_added"
    PAYMENT = "payment"
    CHECKOUT = "checkout"
    WITHDRAWAL = "withdrawal"
    TRANSFER = "transfer"
    PROMO = "promo"
    REFUND = "refund"
    OTHER = "other"


class EventOutcome(enum.StrEnum):
    """How it ended, as far as the tenant says."""

    SUCCESS = "success"
    FAILURE = "failure"
    UNKNOWN = "unknown"


#: The kinds in which money (or goods for money) leaves the customer's hands.
MONEY_KINDS: Final = frozenset(
    {EventKind.PAYMENT, EventKind.CHECKOUT, EventKind.WITHDRAWAL, EventKind.TRANSFER}
)

#: The kinds in which somebody proves to be the customer.
SIGN_IN_KINDS: Final = frozenset({EventKind.LOGIN, EventKind.MFA})

#: The kinds by which an intruder makes a stolen account their own.
CREDENTIAL_KINDS: Final = frozenset(
    {EventKind.PASSWORD_CHANGE, EventKind.PASSWORD_RESET, EventKind.PROFILE_CHANGE}
)


class Pattern(NamedTuple):
    """One row of the table of kinds: a name matches with a word of every group and none of `without`."""

    kind: EventKind
    groups: tuple[frozenset[str], ...]
    without: frozenset[str]


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


def _row(kind: EventKind, *groups: str, without: str = "") -> Pattern:
    return Pattern(kind, tuple(_words(group) for group in groups), _words(without))


_ADD = (
    "add added adding link linked attach attached save saved new register registered create created "
    "enroll enrolled"
)
_CHANGE = (
    "change changed changing update updated updating modify modified edit edited set replaced remove removed"
)
_PAY = (
    "payment payments pay paid charge charged purchase purchased transaction txn trx tx debit debited "
    "deposit deposited topup billing buy bought sale donation donate capture captured"
)

# Logins and card payments both begin with an "auth"; the category knows which is meant.
_AUTHENTICATION: Final = _row(
    EventKind.LOGIN, "auth authenticate authenticated authentication", without=f"card {_PAY} order"
)

#: Tried from the top; the first row that matches names the kind. Adjacent words in a name also count
#: as one word ("log in", "sign_up", "check-out"), so the rows hold the joined form only.
PATTERNS: Final = (
    # Talk about an event is not the event; money that comes back is not money spent.
    _row(EventKind.OTHER, "viewed view pageview impression rendered notification reminder"),
    _row(EventKind.OTHER, "chargeback dispute disputed reversal reversed"),
    _row(EventKind.REFUND, "refund refunded refunds"),
    _row(EventKind.OTHER, "transfer wire", "received incoming inbound"),
    _row(EventKind.LOGOUT, "logout signout logoff loggedout signedout"),
    _row(EventKind.LOGOUT, "session", "ended end expired terminated closed destroyed"),
    _row(
        EventKind.PROFILE_CHANGE,
        "mfa 2fa tfa totp twofactor",
        f"{_CHANGE} {_ADD} enabled disabled disable reset",
    ),
    _row(EventKind.MFA, "mfa 2fa tfa otp totp twofactor stepup passcode webauthn"),
    _row(
        EventKind.PASSWORD_RESET, "password credential credentials", "reset forgot forgotten recovery recover"
    ),
    _row(EventKind.PASSWORD_RESET, "account", "recovery recover recovered"),
    _row(EventKind.PASSWORD_CHANGE, "password passcode pin credential credentials", f"{_CHANGE} new reset"),
    _row(
        EventKind.CARD_ADDED,
        "card cards creditcard paymentmethod bank bankaccount iban wallet beneficiary payee "
        "recipient instrument",
        _ADD,
        without="paid charge purchase transaction txn transfer withdrawal payout order cardpayment",
    ),
    _row(EventKind.SIGNUP, "signup signedup registration onboarding onboarded"),
    _row(EventKind.LOGIN, "login logon signin signon loggedin signedin relogin sso"),
    _AUTHENTICATION,
    _row(EventKind.LOGIN, "session", "created create started start new opened"),
    _row(
        EventKind.SIGNUP,
        "account user customer profile member client",
        "created create new opened open opening register registered join joined",
        without="device order payment card transfer withdrawal payout email phone address ticket "
        "message review post comment listing item cart basket subscription",
    ),
    _row(
        EventKind.SIGNUP,
        "register registered enroll enrolled joined",
        without="device webhook order payment card",
    ),
    _row(
        EventKind.PROFILE_CHANGE,
        "email mail phone mobile msisdn address profile account user customer username contact security",
        _CHANGE,
        without=f"order {_PAY} transfer withdrawal payout",
    ),
    _row(EventKind.PROFILE_CHANGE, "paymentmethod", _CHANGE),
    _row(
        EventKind.PROMO,
        "promo promocode promotion coupon voucher referral refer bonus reward rewards discount freebet trial "
        "redeem redeemed redemption cashback loyalty",
    ),
    _row(EventKind.PROMO, "giftcard giftcards", without=f"{_PAY} order checkout"),
    _row(
        EventKind.WITHDRAWAL,
        "withdraw withdrawal withdrawals withdrawn cashout payout payouts disbursement disburse",
    ),
    _row(
        EventKind.TRANSFER,
        "transfer transfers transferred remit remittance wire p2p sepa ach swift pix zelle sendmoney "
        "moneysent",
        without="deposit",
    ),
    _row(EventKind.PAYMENT, _PAY, without="paymentmethod"),
    _row(
        EventKind.PAYMENT,
        "card",
        "auth authorization authorisation authorized authorised declined approved swipe tap",
    ),
    _row(EventKind.CHECKOUT, "checkout order orders ordered"),
    _row(
        EventKind.CHECKOUT,
        "cart basket",
        "submit submitted place placed confirm confirmed complete completed",
    ),
    # A password that is neither changed nor reset was typed to get in.
    _row(EventKind.LOGIN, "password passcode pin"),
)

_FAILURE: Final = _words(
    "failed fail fails failure failures failing denied deny declined decline rejected reject refused "
    "refuse error errored invalid incorrect wrong bad unsuccessful blocked locked lockout unauthorized "
    "unauthorised forbidden ko nok mismatch insufficient timeout"
)
_SUCCESS: Final = _words(
    "success successful successfully succeeded succeed succeeds ok okay passed pass approved approve "
    "accepted accept authorized authorised captured completed complete confirmed granted verified settled "
    "paid valid"
)
_SYNONYMS: Final = {
    "pwd": "password",
    "passwd": "password",
    "multifactor": "mfa",
}
_VOCABULARY: Final = frozenset(
    word for pattern in PATTERNS for group in (*pattern.groups, pattern.without) for word in group
) | (_FAILURE | _SUCCESS | _words("attempt attempted user account submit event request requested customer"))

_NAME_CHARS: Final = (
    200  # No taxonomy needs more; a longer name is read up to here so that reading stays cheap.
)
_CAMEL: Final = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|[0-9]+")
_PLAIN: Final = re.compile(r"[a-z0-9]+")
_WORD_CHARS_MIN: Final = 3  # Shorter pieces ("in", "ok") would split ordinary words by accident.
_WORD_CHARS_MAX: Final = 40


def _segment(token: str) -> list[str] | None:
    """Split a token written without separators ("loginfailed") into known words, or return None."""
    if token in _VOCABULARY:
        return [token]
    for cut in range(len(token) - _WORD_CHARS_MIN, _WORD_CHARS_MIN - 1, -1):
        if token[:cut] in _VOCABULARY and (rest := _segment(token[cut:])) is not None:
            return [token[:cut], *rest]
    return None


def words_of(name: str) -> frozenset[str]:
    """Return the lower-case words of a name: camelCase and separators split, neighbours also joined."""
    name = name[:_NAME_CHARS]
    ordered = [word.lower() for word in _CAMEL.findall(name)]
    if "_" not in name and name.isupper():
        ordered = _PLAIN.findall(name.lower())
    found = set(ordered) | set(_PLAIN.findall(name.lower()))
    found |= {first + second for first, second in itertools.pairwise(ordered)}
    for token in tuple(found):
        if token in _SYNONYMS:
            found.add(_SYNONYMS[token])
        elif token not in _VOCABULARY and len(token) <= _WORD_CHARS_MAX:
            found.update(_segment(token) or ())
    return frozenset(found)


_BY_CATEGORY: Final = {Category.AUTHENTICATION: EventKind.LOGIN, Category.TRANSACTION: EventKind.PAYMENT}


@functools.lru_cache(maxsize=4096)
def kind_of(name: str, category: Category = Category.OTHER) -> EventKind:
    """Return the kind of an event by the words of its name, else by its category.

    The cache is bounded because a tenant may put an order number into its event names.
    """
    words = words_of(name)
    for pattern in PATTERNS:
        if not words.isdisjoint(pattern.without):
            continue
        if all(not words.isdisjoint(group) for group in pattern.groups):
            of_payment = pattern is _AUTHENTICATION and category is Category.TRANSACTION
            return EventKind.PAYMENT if of_payment else pattern.kind
    return _BY_CATEGORY.get(category, EventKind.OTHER)


@functools.lru_cache(maxsize=4096)
def outcome_of_words(text: str) -> EventOutcome:
    """Return the outcome that a text speaks of; a word of failure outweighs one of success."""
    words = words_of(text)
    if not words.isdisjoint(_FAILURE):
        return EventOutcome.FAILURE
    return EventOutcome.UNKNOWN if words.isdisjoint(_SUCCESS) else EventOutcome.SUCCESS


def _by_text(value: Any) -> EventOutcome:
    if type(value) is str:
        return outcome_of_words(value)
    if type(value) is bool:
        return EventOutcome.SUCCESS if value else EventOutcome.FAILURE
    if type(value) is int and 200 <= value < 600:  # An HTTP status (RFC 9110, section 15).
        return (
            EventOutcome.SUCCESS
            if value < 300
            else EventOutcome.FAILURE
            if value >= 400
            else EventOutcome.UNKNOWN
        )
    return EventOutcome.UNKNOWN


_TRUE: Final = frozenset({"true", "yes", "1"})
_FALSE: Final = frozenset({"false", "no", "0"})


def _by_flag(value: Any) -> EventOutcome:
    text = value.strip().lower() if type(value) is str else str(value).lower()
    return (
        EventOutcome.SUCCESS if text in _TRUE else EventOutcome.FAILURE if text in _FALSE else _by_text(value)
    )


def _by_opposite_flag(value: Any) -> EventOutcome:
    text = value.strip().lower() if type(value) is str else str(value).lower()
    return (
        EventOutcome.FAILURE
        if text in _TRUE
        else EventOutcome.SUCCESS
        if text in _FALSE
        else EventOutcome.UNKNOWN
    )


_NO_REASON: Final = frozenset({"", "0", "00", "000", "none", "null", "false", "ok", "success", "approved"})


def _by_reason(value: Any) -> EventOutcome:
    """Read a reason of failure: its presence says that there was one (`00` is ISO 8583's "approved")."""
    if value is None or (type(value) is str and value.strip().lower() in _NO_REASON) or value in (0, False):
        return EventOutcome.UNKNOWN
    return EventOutcome.FAILURE


#: Members that say how an event ended, the most explicit first, with the function that reads each.
OUTCOME_MEMBERS: Final = {
    **dict.fromkeys(("outcome", "result", "status", "authResult", "auth_result", "loginResult"), _by_text),
    **dict.fromkeys(
        ("login_result", "paymentStatus", "payment_status", "loginStatus", "login_status"), _by_text
    ),
    **dict.fromkeys(
        ("success", "successful", "succeeded", "isSuccess", "is_success", "ok", "passed"), _by_flag
    ),
    **dict.fromkeys(("approved", "authorized", "authorised", "authenticated", "loginSuccess"), _by_flag),
    **dict.fromkeys(("login_success", "isSuccessful", "is_successful"), _by_flag),
    **dict.fromkeys(
        ("failed", "failure", "declined", "isFailed", "is_failed", "loginFailed"), _by_opposite_flag
    ),
    **dict.fromkeys(
        ("failureReason", "failure_reason", "failureCode", "failure_code", "declineCode"), _by_reason
    ),
    **dict.fromkeys(
        ("decline_code", "declineReason", "decline_reason", "errorCode", "error_code"), _by_reason
    ),
    **dict.fromkeys(("error", "loginError", "login_error"), _by_reason),
}
_MEMBER_NAMES: Final = frozenset(OUTCOME_MEMBERS)
_WRAPPERS: Final = frozenset(WRAPPERS)


def _outcome_within(members: JSON) -> EventOutcome:
    if _MEMBER_NAMES.isdisjoint(members):
        return EventOutcome.UNKNOWN
    for name, read in OUTCOME_MEMBERS.items():
        if name in members and (outcome := read(members[name])) is not EventOutcome.UNKNOWN:
            return outcome
    return EventOutcome.UNKNOWN


class Meaning(NamedTuple):
    """What one event means, as plain texts and flags: everything rules ask about kind and outcome."""

    kind: str
    outcome: str
    moves_money: bool
    spends: bool
    payment_failed: bool
    logged_in: bool
    login_failed: bool
    changes_credentials: bool


@functools.lru_cache(maxsize=4096)
def meaning(name: str, category: Category, said: EventOutcome, *, to_payee: bool = False) -> Meaning:
    """Return what an event of this name and category means; `said` is the outcome that its members state.

    A payment `to_payee`, an account that the customer names, is a transfer: nothing is bought with it.
    """
    named = kind_of(name, category)
    kind = EventKind.TRANSFER if to_payee and named is EventKind.PAYMENT else named
    outcome = outcome_of_words(name) if said is EventOutcome.UNKNOWN else said
    failed = outcome is EventOutcome.FAILURE
    return Meaning(
        kind=kind.value,
        outcome=outcome.value,
        moves_money=kind in MONEY_KINDS,
        spends=kind in MONEY_KINDS and not failed,
        payment_failed=kind in MONEY_KINDS and failed,
        logged_in=kind is EventKind.LOGIN and not failed,
        login_failed=kind in SIGN_IN_KINDS and failed,
        changes_credentials=kind in CREDENTIAL_KINDS,
    )


#: What says of a payment that something is bought with it, even where the seller is called a payee.
_BUYS: Final = frozenset({"cardHash", "merchantId", "terminalId"})


def said_outcome(event: Event) -> EventOutcome:
    """Return the outcome that the members of an event state, whatever its name says."""
    if metadata := event.metadata:
        if (outcome := _outcome_within(metadata)) is not EventOutcome.UNKNOWN:
            return outcome
        for name in () if _WRAPPERS.isdisjoint(metadata) else WRAPPERS:
            inner = metadata.get(name)
            if type(inner) is dict and (outcome := _outcome_within(inner)) is not EventOutcome.UNKNOWN:
                return outcome
    for members in (event.payload, event.custom_fields, event.extra):
        if members and (outcome := _outcome_within(members)) is not EventOutcome.UNKNOWN:
            return outcome
    return EventOutcome.UNKNOWN


def meaning_of(event: Event) -> Meaning:
    """Return what an event means: what its members say, else what the words of its name say."""
    named = spelt_members(event)
    to_payee = "payeeId" in named and _BUYS.isdisjoint(named)
    return meaning(event.name, event.category, said_outcome(event), to_payee=to_payee)
