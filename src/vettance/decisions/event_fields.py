"""The names of fraud rules that an event states itself: its own members, and those of its metadata."""

import operator
from collections.abc import Callable
from typing import Any, Final

from vettance.clock import DAY_MS, HOUR_MS
from vettance.decisions.field_readers import Reader, member, read_amount, read_code, read_id, read_word
from vettance.decisions.value_domains import ADDRESS, COUNTRY, CURRENCY, EMAIL, LATITUDE, LONGITUDE, MOMENT
from vettance.events.event import Category, Event
from vettance.rules.domain import (
    ANYTHING,
    HOUR,
    LOWER_TRIMMED,
    TRIMMED,
    UPPER_TRIMMED,
    WEEKDAY,
    Domain,
    one_of,
    written,
)
from vettance.rules.schema import Field, Type, reads

#: Where the time of the event may stand beside its own member.
_TIMES: Final = ("metadata.occurredAt", "metadata.occurred_at")
_CATEGORY: Final = one_of(*Category)
_ID: Final = written(TRIMMED)
_WORD: Final = written(LOWER_TRIMMED)


def _country(event: Event) -> str | None:
    return read_code(event.country) if event.country else None


def _latitude(event: Event) -> float | None:
    return event.location[0] if event.location else None


def _longitude(event: Event) -> float | None:
    return event.location[1] if event.location else None


reads(_latitude, "metadata.location")
reads(_longitude, "metadata.location")


def _hour(event: Event) -> int:
    return event.occurred_at_ms % DAY_MS // HOUR_MS


def _weekday(event: Event) -> int:
    return (event.occurred_at_ms // DAY_MS + 3) % 7 + 1  # The Unix epoch was a Thursday; ISO 8601.


reads(_hour, *_TIMES)
reads(_weekday, *_TIMES)


def plain_fields() -> tuple[Field, ...]:
    """The names that stand in the event itself."""

    def plain(name: str, path: str, doc: str, domain: Domain = ANYTHING) -> Field:
        return Field(name, Type.TEXT, attribute(path), doc, path, domain)

    return (
        plain("event.name", "name", "The name of the event as the tenant sent it."),
        plain("event_name", "name", "The same as `event.name`."),
        plain(
            "event.category", "category.value", "AUTHENTICATION, TRANSACTION, ACCOUNT or OTHER.", _CATEGORY
        ),
        plain("event_category", "category.value", "The same as `event.category`.", _CATEGORY),
        plain("customer.external_id", "customer_id", "The tenant's own id of the customer."),
        plain("customer.email", "email", "The customer's e-mail address in lower case.", EMAIL),
        plain(
            "customer.key", "customer_key", "What the customer is known by: the external id, else the e-mail."
        ),
        plain("device.external_id", "device_id", "The tenant's own id of the device."),
        plain("device.fingerprint", "fingerprint", "The fingerprint of the device."),
        plain(
            "device.key", "device_key", "What the device is known by: the fingerprint, else the external id."
        ),
        plain("ip", "ip", "The address the event came from, in canonical form.", ADDRESS),
        plain("user_agent", "user_agent", "The user agent as sent."),
        Field(
            "session_id",
            Type.TEXT,
            reads(lambda event: event.session_id, "metadata.sessionId"),
            "The session: `sessionId`, else `metadata.sessionId`.",
            "session_id",
        ),
        Field(
            "country",
            Type.TEXT,
            _country,
            "The country code of the event in upper case, as long as it was sent.",
            domain=COUNTRY,
        ),
        Field(
            "location.latitude",
            Type.NUMBER,
            _latitude,
            "Degrees north, when the event carries coordinates.",
            domain=LATITUDE,
        ),
        Field(
            "location.longitude",
            Type.NUMBER,
            _longitude,
            "Degrees east, when the event carries coordinates.",
            domain=LONGITUDE,
        ),
        Field(
            "occurred_at_ms",
            Type.NUMBER,
            reads(lambda event: event.occurred_at_ms, *_TIMES),
            "Event time in Unix milliseconds.",
            "occurred_at_ms",
            MOMENT,
        ),
        Field("hour", Type.NUMBER, _hour, "Hour of the event, 0 to 23, UTC.", domain=HOUR),
        Field(
            "weekday",
            Type.NUMBER,
            _weekday,
            "Day of the week of the event, UTC: 1 is Monday, 7 is Sunday (ISO 8601).",
            domain=WEEKDAY,
        ),
    )


def attribute(name: str) -> Reader:
    """Make a reader of an attribute of the event."""
    return operator.attrgetter(name)


def metadata_fields() -> tuple[Field, ...]:
    """The members of `metadata` with a known meaning, under both spellings."""
    rows: tuple[tuple[tuple[str, ...], Type, Callable[[Any], Any], str, Domain], ...] = (
        (
            ("amount",),
            Type.NUMBER,
            read_amount,
            "Amount of money, a number or a decimal text.",
            ANYTHING,
        ),
        (("currency",), Type.TEXT, read_code, "Currency code in upper case.", CURRENCY),
        (("merchantId", "merchant_id"), Type.TEXT, read_id, "The merchant that is paid.", _ID),
        (("terminalId", "terminal_id"), Type.TEXT, read_id, "The terminal at which is paid.", _ID),
        (
            ("cardHash", "card_hash"),
            Type.TEXT,
            read_id,
            "A hash or token of the card; never its number.",
            _ID,
        ),
        (
            ("paymentMethod", "payment_method"),
            Type.TEXT,
            read_word,
            "How is paid, in lower case.",
            _WORD,
        ),
        (("channel",), Type.TEXT, read_word, "Where it happened (web, app, pos …), in lower case.", _WORD),
        (
            ("outcome",),
            Type.TEXT,
            read_word,
            "The outcome as sent, in lower case; `event.outcome` reads it for you.",
            _WORD,
        ),
        (
            ("promoCode", "promo_code"),
            Type.TEXT,
            read_code,
            "The code of the promotion in upper case.",
            written(UPPER_TRIMMED),
        ),
    )
    fields = []
    for names, kind, convert, doc, domain in rows:
        read = member(convert, *names)
        fields += [Field(f"metadata.{name}", kind, read, doc, domain=domain) for name in names]
    return (
        *fields,
        Field(
            "merchant.key",
            Type.TEXT,
            member(read_id, "terminalId", "terminal_id", "merchantId", "merchant_id"),
            "Where is paid: the terminal, else the merchant.",
            domain=_ID,
        ),
    )
