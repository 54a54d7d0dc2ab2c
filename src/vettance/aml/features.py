"""The names that AML rules may use: one row for each, with its type, its reader and its manual line."""

from collections.abc import Callable, Mapping
from typing import Any, Final

from vettance.aml.aml_event import AmlCategory, AmlEvent
from vettance.aml.aml_fields import (
    adds_instrument,
    age_years,
    below_limit,
    cash_below,
    category,
    coordinate,
    country,
    description,
    hour,
    instrument,
    large,
    place,
    price_stated,
    round_sum,
    unit_price_of,
    weekday,
    worth_of,
)
from vettance.decisions.value_domains import (
    ADDRESS,
    COUNTRY_FOUND,
    CURRENCY,
    EMAIL,
    LATITUDE,
    LONGITUDE,
    MEASURED,
    MOMENT,
)
from vettance.reference.currencies import Currencies
from vettance.reference.jurisdictions import Jurisdictions
from vettance.rules.domain import (
    ANYTHING,
    COUNT,
    HOUR,
    LOWER_TRIMMED,
    NOT_NEGATIVE,
    WEEKDAY,
    Domain,
    one_of,
    written,
)
from vettance.rules.schema import Field, Namespace, Schema, Type

_SEGMENT: Final = one_of("person", "business")
_WORD: Final = written(LOWER_TRIMMED)


def _plain(
    name: str, attribute: str, doc: str, kind: Type = Type.TEXT, domain: Domain | None = None
) -> Field:
    if domain is None:
        # Numbers of AML are amounts, ages, counts and shares: none is negative.
        domain = NOT_NEGATIVE if kind is Type.NUMBER else ANYTHING
    return Field(name, kind, _attribute(attribute), doc, attribute, domain)


def _attribute(path: str) -> Callable[[AmlEvent], Any]:
    names = path.split(".")

    def read(event: AmlEvent) -> Any:
        value: Any = event
        for name in names:
            value = getattr(value, name)
        return value

    return read


def _event_fields() -> tuple[Field, ...]:
    return (
        _plain("event_name", "name", "The event name as the tenant sends it."),
        Field(
            "event_category",
            Type.TEXT,
            category,
            "CUSTOMER, ACCOUNT, TRANSACTION …; missing when not sent.",
            domain=one_of(*AmlCategory),
        ),
        _plain("customer.external_id", "customer_id", "The tenant's own id of the customer."),
        _plain("customer.email", "email", "The customer's e-mail address in small letters.", domain=EMAIL),
        _plain("customer.key", "customer_key", "Whom the event is about: id, else e-mail, else account."),
        _plain("device.key", "device_key", "The device: its fingerprint, else the external id."),
        _plain("ip", "ip", "The address the event came from, in canonical form.", domain=ADDRESS),
        _plain("session_id", "session_id", "The session."),
        _plain("reference", "reference", "The tenant's reference."),
        Field(
            "country",
            Type.TEXT,
            country,
            "Country of the event or its location, ISO 3166-1 alpha-2.",
            domain=COUNTRY_FOUND,
        ),
        Field("place", Type.TEXT, place, "Where it was done: branch, city, location, else the country."),
        Field(
            "location.latitude",
            Type.NUMBER,
            coordinate(("latitude", "lat"), 90),
            "Degrees north.",
            domain=LATITUDE,
        ),
        Field(
            "location.longitude",
            Type.NUMBER,
            coordinate(("longitude", "lon", "lng"), 180),
            "Degrees east.",
            domain=LONGITUDE,
        ),
        _plain("occurred_at_ms", "occurred_at_ms", "Event time in Unix milliseconds.", Type.NUMBER, MOMENT),
        Field("hour", Type.NUMBER, hour, "Hour of the event, 0 to 23, UTC.", domain=HOUR),
        Field(
            "weekday", Type.NUMBER, weekday, "Day of the week, UTC: Monday (1) to Sunday (7).", domain=WEEKDAY
        ),
    )


def _transfer_fields() -> tuple[Field, ...]:
    number, flag = Type.NUMBER, Type.BOOL
    return (
        _plain("moves_money", "transfer.moves", "Whether an amount was moved, and did not fail.", flag),
        _plain("transfers", "transfer.transfers", "Whether it did, or its name or type says it does.", flag),
        _plain("incoming", "transfer.incoming", "Whether money comes to the customer.", flag),
        _plain("outgoing", "transfer.outgoing", "Whether money goes from the customer.", flag),
        _plain("cash", "transfer.cash", "Whether it is cash: by channel, type or name.", flag),
        _plain("repayment", "transfer.repays", "Whether it repays a loan, by its type or name.", flag),
        _plain("early_repayment", "transfer.repays_early", "Whether it says to repay before its time.", flag),
        _plain("loan_paid_out", "transfer.lends", "Whether it pays out a loan, by its type or name.", flag),
        _plain("purchase", "transfer.buys", "Whether something is bought, by channel, type or name.", flag),
        _plain("wages", "transfer.pays_wages", "Whether it is pay, by type, name or text.", flag),
        _plain("regular", "transfer.is_regular", "Whether it is a standing order or a direct debit.", flag),
        _plain("amount", "transfer.amount", "The amount, never negative.", number),
        _plain("currency", "transfer.currency", "Currency code in upper case.", domain=CURRENCY),
        _plain("account.id", "transfer.account", "The customer's account."),
        _plain(
            "account.age_days", "transfer.age_days", "Age of the account in days, where it is told.", number
        ),
        _plain(
            "account.balance_after", "transfer.balance_after", "The balance afterwards.", number, ANYTHING
        ),
        _plain(
            "customer.income", "transfer.income", "Declared income or turnover of a month.", number, ANYTHING
        ),
        Field(
            "customer.age_years",
            number,
            age_years,
            "Age of the customer, from a date of birth.",
            domain=NOT_NEGATIVE,
        ),
        _plain(
            "customer.segment",
            "transfer.segment",
            "`person` or `business`; missing when not sent.",
            domain=_SEGMENT,
        ),
        _plain("counterparty.id", "transfer.counterparty_id", "Who is on the other side."),
        _plain("counterparty.name", "transfer.counterparty_name", "Their name."),
        _plain(
            "counterparty.country",
            "transfer.counterparty_country",
            "Their country, alpha-2.",
            domain=COUNTRY_FOUND,
        ),
        _plain("counterparty.account", "transfer.counterparty_account", "Their account."),
        _plain("channel", "transfer.channel", "How it was done, in small letters.", domain=_WORD),
        _plain("transaction_type", "transfer.type", "What it was, in small letters.", domain=_WORD),
        Field(
            "description",
            Type.TEXT,
            description,
            "The text on the statement in small letters, from 4 characters on.",
            domain=_WORD,
        ),
        _plain(
            "invoice_amount", "transfer.invoice_amount", "What the invoice of a trade says.", number, ANYTHING
        ),
        _plain("market_value", "transfer.market_value", "What the goods are worth.", number, ANYTHING),
        _plain("goods", "transfer.goods", "Which goods are traded, in small letters.", domain=_WORD),
        Field("instrument", Type.TEXT, instrument, "The card, wallet or mandate used or added."),
        Field("adds_instrument", flag, adds_instrument, "Whether an instrument is new, by category or name."),
    )


def _scaled(name: str, currencies: Currencies, member: str, doc: str) -> Field:
    return Field(name, Type.NUMBER, worth_of(currencies, member), doc)


def _money_fields(currencies: Currencies) -> tuple[Field, ...]:
    number, flag = Type.NUMBER, Type.BOOL
    return (
        Field(
            "worth",
            number,
            worth_of(currencies),
            "The amount in units of about a dollar or euro, by the scale of its currency.",
            domain=NOT_NEGATIVE,
        ),
        _scaled("invoice_worth", currencies, "invoice_amount", "What the invoice says, in the same units."),
        _scaled("market_worth", currencies, "market_value", "What the goods are worth, likewise."),
        Field("price_stated", flag, price_stated, "Whether a unit price or an invoice is stated."),
        Field("unit_price", number, unit_price_of(currencies), "The price of one unit.", None, NOT_NEGATIVE),
        _scaled("customer.income_worth", currencies, "income", "Income or turnover of a month, likewise."),
        Field(
            "near_threshold",
            flag,
            below_limit(currencies, 0.9),
            "Whether the amount is within 10 % below 10,000, or below the limit of its currency.",
        ),
        Field(
            "below_threshold",
            flag,
            below_limit(currencies, 0.6),
            "Whether the amount is from 6,000 to below 10,000, or so of the limit of its currency.",
        ),
        Field(
            "cash_below_threshold",
            flag,
            cash_below(currencies),
            "Whether less than 10,000, or the limit of its currency, is paid in as cash.",
        ),
        Field(
            "round_sum",
            flag,
            round_sum(currencies),
            "Whether it is a multiple of 50 from 200 on, by its currency, and neither cash nor a purchase.",
        ),
        Field(
            "large_sum",
            flag,
            large(currencies),
            "Whether it is 10,000 or the limit of its currency, or more.",
        ),
    )


def _shape_fields() -> tuple[Field, ...]:
    number = Type.NUMBER
    return (
        _plain(
            "cycle", "trail.cycle", "Parties of a circle that this transfer closes, else 0.", number, COUNT
        ),
        _plain(
            "old_cycle",
            "trail.old_cycle",
            "The same where some of them have dealt with each other before.",
            number,
            COUNT,
        ),
        _plain("chain", "trail.chain", "Hops that one sum has made up to and with this one.", number, COUNT),
        _plain(
            "gathered",
            "trail.gathered",
            "Parties over which money of one source meets again here.",
            number,
            COUNT,
        ),
        _plain("spread", "trail.spread", "New parties that the source of this sum paid.", number, COUNT),
        _plain("shared", "trail.shared", "Receivers in common with one other sender.", number, COUNT),
        _plain(
            "grid",
            "trail.grid",
            "Senders that pay this receiver and two others of this sender.",
            number,
            COUNT,
        ),
    )


def _trail_fields() -> tuple[Field, ...]:
    number, flag = Type.NUMBER, Type.BOOL
    return (
        _plain("party", "trail.party", "The customer's side under one key, whichever account is named."),
        _plain("counterparty.key", "trail.counterparty", "The other side under one key."),
        _plain("sender", "trail.sender", "Who pays, under one key."),
        _plain("receiver", "trail.receiver", "Who is paid, under one key."),
        _plain("sender.own", "trail.sender_own", "Whether who pays is a customer of the tenant.", flag),
        _plain("receiver.own", "trail.receiver_own", "Whether who is paid is one.", flag),
        _plain(
            "sender.segment",
            "trail.sender_segment",
            "`person` or `business`, where it was told.",
            domain=_SEGMENT,
        ),
        _plain("receiver.segment", "trail.receiver_segment", "The same of who is paid.", domain=_SEGMENT),
        _plain(
            "pair_is_new",
            "trail.pair_is_new",
            "Whether this sender did not pay this receiver in 90 days.",
            flag,
        ),
        _plain(
            "idle_days",
            "trail.idle_days",
            "Days since the party's transfer before this one.",
            number,
            MEASURED,
        ),
        _plain(
            "awake_hours",
            "trail.awake_hours",
            "Hours since it came back from 30 silent days.",
            number,
            MEASURED,
        ),
        _plain(
            "watched_days", "trail.watched_days", "Days since the tenant's first event.", number, MEASURED
        ),
        *_shape_fields(),
        _plain("mirror", "trail.mirror", "Share of the closest sum received within a day.", number),
        _plain(
            "repeats",
            "trail.repeats",
            "Similar transfers of a day between the two, by no habit.",
            number,
            COUNT,
        ),
        _plain(
            "split_days",
            "trail.split_days",
            "Days since the receiver collected a sum in parts.",
            number,
            MEASURED,
        ),
        _plain(
            "peers_above", "trail.peers_above", "Share of its peers to whom as much comes a month.", number
        ),
        _plain("benford", "trail.benford", "Chi-square of first digits, from 50 amounts on.", number),
    )


def _jurisdiction_fields(jurisdictions: Jurisdictions) -> tuple[Field, ...]:
    def either(codes: frozenset[str]) -> Callable[[AmlEvent], bool]:
        def read(event: AmlEvent) -> bool:
            return event.transfer.counterparty_country in codes or country(event) in codes

        return read

    return (
        Field(
            "place.call_for_action",
            Type.BOOL,
            either(jurisdictions.call_for_action),
            "Whether the counterparty or the event is in a jurisdiction under a call for action.",
        ),
        Field(
            "place.high_risk",
            Type.BOOL,
            either(jurisdictions.high_risk | jurisdictions.call_for_action),
            "Whether it is in a high-risk jurisdiction.",
        ),
        Field(
            "place.sanctioned",
            Type.BOOL,
            either(jurisdictions.sanctioned),
            "Whether it is in a jurisdiction under a general embargo.",
        ),
    )


def _inner_metadata(holder: str) -> Callable[[AmlEvent], Mapping[str, Any]]:
    def read(event: AmlEvent) -> Mapping[str, Any]:
        found = getattr(event, holder).get("metadata")
        return found if type(found) is dict else {}

    return read


_NAMESPACES: Final = (
    Namespace("metadata", _attribute("metadata"), "Everything sent in `metadata`.", "metadata"),
    Namespace(
        "custom_fields", _attribute("custom_fields"), "Everything in `custom_fields`.", "custom_fields"
    ),
    Namespace("extra", _attribute("extra"), "Members that the interface does not name.", "extra"),
    Namespace("customer.metadata", _inner_metadata("customer"), "Everything in `customer.metadata`."),
    Namespace("device.metadata", _inner_metadata("device"), "Everything in `device.metadata`."),
)


def aml_schema(jurisdictions: Jurisdictions | None = None) -> Schema:
    """Return the names of AML rules; `jurisdictions` says which countries count as what."""
    jurisdictions = jurisdictions or Jurisdictions()
    return Schema(
        (
            *_event_fields(),
            *_transfer_fields(),
            *_money_fields(Currencies(jurisdictions.scales)),
            *_trail_fields(),
            *_jurisdiction_fields(jurisdictions),
        ),
        _NAMESPACES,
    )
