"""The names of fraud rules that an event states itself: its own members, and those of its metadata."""

from collections.abc import Callable
from typing import Any, Final

from vettance.clock import DAY_MS, HOUR_MS
from vettance.decisions.field_readers import (
    member,
    read_code,
    read_id,
    read_word,
    spelt_member,
)
from vettance.decisions.searchable_fields import SEARCHABLE_FIELDS, attribute_field
from vettance.decisions.value_domains import CURRENCY, LATITUDE, LONGITUDE, MOMENT
from vettance.events.event import Category, Event
from vettance.reference.currencies import Currencies
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
from vettance.wire.spelt_numbers import read_amount

#: Where the time of the event may be, other than in its own member.
_TIMES: Final = ("metadata.occurredAt", "metadata.occurred_at")
_CATEGORY: Final = one_of(*Category)
_ID: Final = written(TRIMMED)
_WORD: Final = written(LOWER_TRIMMED)


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
    """The names of values in the event itself: its searchable fields, then the others."""
    return (
        *(name for field in SEARCHABLE_FIELDS for name in field.rule_names),
        attribute_field(
            "event.category", "category.value", "AUTHENTICATION, TRANSACTION, ACCOUNT or OTHER.", _CATEGORY
        ),
        attribute_field("event_category", "category.value", "The same as `event.category`.", _CATEGORY),
        attribute_field(
            "customer.key", "customer_key", "What the customer is known by: the external id, else the e-mail."
        ),
        attribute_field(
            "device.key", "device_key", "What the device is known by: the fingerprint, else the external id."
        ),
        attribute_field("user_agent", "user_agent", "The user agent as sent."),
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


def metadata_fields(currencies: Currencies) -> tuple[Field, ...]:
    """The members of `metadata` with a known meaning, and what an amount weighs by its currency."""
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
            ("promoCode", "promo_code"),
            Type.TEXT,
            read_code,
            "The code of the promotion in upper case.",
            written(UPPER_TRIMMED),
        ),
        (
            ("payeeId", "payee_id"),
            Type.TEXT,
            read_id,
            "Who is paid, where the customer names them: an account or an id.",
            _ID,
        ),
    )
    fields = []
    for names, kind, convert, doc, domain in rows:
        read = spelt_member(convert, names[0])
        fields += [Field(f"metadata.{name}", kind, read, doc, domain=domain) for name in names]
    outcome = member(read_word, "outcome")
    return (
        *fields,
        Field(
            "metadata.outcome",
            Type.TEXT,
            outcome,
            "The outcome as sent, in lower case; `event.outcome` reads it for you.",
            domain=_WORD,
        ),
        Field("worth", Type.NUMBER, _worth_of(currencies), "The amount by the scale of its currency."),
        Field(
            "merchant.key",
            Type.TEXT,
            _merchant_key,
            "Where is paid: the terminal, else the merchant.",
            domain=_ID,
        ),
    )


_read_sum: Final = spelt_member(read_amount, "amount")
_read_currency: Final = spelt_member(read_code, "currency")
_read_terminal: Final = spelt_member(read_id, "terminalId")
_read_merchant: Final = spelt_member(read_id, "merchantId")


def _worth_of(currencies: Currencies) -> Callable[[Event], float | int | None]:
    """Read what the amount weighs among the bounds of rules: in yen, 150 times less than in dollars."""

    def read(event: Event) -> float | int | None:
        amount: float | int | None = _read_sum(event)
        if amount is None:
            return None
        scale = currencies.scale(_read_currency(event))
        return amount if scale == 1 else amount / scale

    return reads(read, *vars(_read_sum)["members"], *vars(_read_currency)["members"])


def _merchant_key(event: Event) -> str | None:
    found: str | None = _read_terminal(event) or _read_merchant(event)
    return found


reads(_merchant_key, *vars(_read_terminal)["members"], *vars(_read_merchant)["members"])
