"""The events of a shop: what its visitors do, as the service takes it."""

import re
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Literal, cast

from vettance_client.bodies import CustomerBody, EventBody

Outcome = Literal["success", "failure"]

_TEXT_CHARS_MAX = 1024
_SESSION = re.compile(r"[0-9a-f]{32}")


@dataclass(frozen=True)
class Visitor:
    """Who sent a request, as far as the request says."""

    ip: str | None
    user_agent: str | None
    session_id: str | None


def new_session_id() -> str:
    """Return a name for a visitor's session that says nothing else. It is no credential of the shop."""
    return secrets.token_hex(16)


def session_id_of(cookie: str | None) -> str | None:
    """Return the session that a cookie names, None for anything that is not one of ours."""
    return cookie if cookie is not None and _SESSION.fullmatch(cookie) else None


def login_event(
    customer: str | None, outcome: Outcome, email: str | None, metadata: Mapping[str, Any] | None
) -> EventBody:
    """Return the event of an attempt to sign in; `customer` is your own id, None for an unknown name."""
    if outcome not in ("success", "failure"):
        raise ValueError(f"outcome is success or failure, not {outcome!r}")
    event: EventBody = {
        "eventName": "user.login",
        "eventCategory": "AUTHENTICATION",
        "metadata": {**(metadata or {}), "outcome": outcome},
    }
    return _with_customer(event, customer, email)


def payment_event(
    customer: str | None,
    amount: Decimal | float,
    currency: str,
    email: str | None,
    metadata: Mapping[str, Any] | None,
) -> EventBody:
    """Return the event of a payment, before the money moves; `amount` is in units, not in cents."""
    number = float(amount)
    if not 0 <= number < float("inf"):
        raise ValueError(f"amount must be a number that is not negative, not {amount!r}")
    if not (isinstance(currency, str) and len(currency) == 3 and currency.isascii() and currency.isalpha()):
        raise ValueError(f"currency is three letters such as EUR, not {currency!r}")
    event: EventBody = {
        "eventName": "payment.attempt",
        "eventCategory": "TRANSACTION",
        "metadata": {**(metadata or {}), "amount": number, "currency": currency.upper()},
    }
    return _with_customer(event, customer, email)


def with_visitor(event: EventBody, visitor: Visitor) -> EventBody:
    """Return an event with what the request says of its visitor; what the event says itself is kept."""
    said = {
        "ip": visitor.ip,
        "userAgent": visitor.user_agent and visitor.user_agent[:_TEXT_CHARS_MAX],
        "sessionId": visitor.session_id,
    }
    return cast("EventBody", {**{name: value for name, value in said.items() if value}, **event})


def _with_customer(event: EventBody, customer: str | None, email: str | None) -> EventBody:
    said: CustomerBody = {}
    if customer is not None:
        said["externalId"] = str(customer)
    if email:
        said["email"] = email[:_TEXT_CHARS_MAX]
    if said:
        event["customer"] = said
    return event
