"""The names that AML rules may use: one row for each, with its type, its reader and its manual line."""

from collections.abc import Callable, Mapping
from typing import Any, Final

from vettance.aml.event import AmlEvent
from vettance.aml.jurisdiction import Jurisdictions, country_of
from vettance.clock import HOUR_MS
from vettance.rules.schema import Field, Namespace, Schema, Type
from vettance.wire import read_moment

#: What many laws have banks report: 10,000 (31 CFR 1010.311 in dollars; Directive (EU) 2015/849 in euros).
THRESHOLD: Final = 10_000
_YEAR_MS: Final = 365.2425 * 24 * HOUR_MS


def _plain(name: str, attribute: str, doc: str, kind: Type = Type.TEXT) -> Field:
    return Field(name, kind, _attribute(attribute), doc, attribute)


def _attribute(path: str) -> Callable[[AmlEvent], Any]:
    names = path.split(".")

    def read(event: AmlEvent) -> Any:
        value: Any = event
        for name in names:
            value = getattr(value, name)
        return value

    return read


def _category(event: AmlEvent) -> str | None:
    return event.category.value if event.category is not None else None


def _near_threshold(event: AmlEvent) -> bool:
    amount = event.transfer.amount
    return event.transfer.moves and amount is not None and 0.9 * THRESHOLD <= amount < THRESHOLD


def _below_threshold(event: AmlEvent) -> bool:
    amount = event.transfer.amount
    return event.transfer.moves and amount is not None and 0.6 * THRESHOLD <= amount < THRESHOLD


def _cash_below(event: AmlEvent) -> bool:
    transfer = event.transfer
    return transfer.incoming and transfer.cash and (transfer.amount or 0) < THRESHOLD


def _round_sum(event: AmlEvent) -> bool:
    amount = event.transfer.amount
    return event.transfer.moves and amount is not None and amount >= 1000 and amount % 500 == 0


def _large(event: AmlEvent) -> bool:
    return event.transfer.moves and (event.transfer.amount or 0) >= THRESHOLD


def _place(event: AmlEvent) -> str | None:
    """Name where it was done: the branch or city, else the place of the event, else its country."""
    if event.transfer.city is not None:
        return event.transfer.city
    where = event.location
    if type(where) is dict:
        for name in ("branchId", "branch", "city", "name", "country"):
            if type(where.get(name)) is str and where[name]:
                return str(where[name])
    if type(where) is str and where:
        return where
    return event.country


def _country(event: AmlEvent) -> str | None:
    """The country of the event, else that of its location."""
    if event.country is not None:
        return event.country
    where = event.location
    named = where.get("country", where.get("countryCode")) if type(where) is dict else None
    return country_of(named) if type(named) is str else None


def _coordinate(names: tuple[str, ...], bound: float) -> Callable[[AmlEvent], float | None]:
    def read(event: AmlEvent) -> float | None:
        if type(event.location) is not dict:
            return None
        found = next((v for n in names if type(v := event.location.get(n)) in (int, float)), None)
        return float(found) if found is not None and abs(found) <= bound else None

    return read


def _instrument(event: AmlEvent) -> str | None:
    """The instrument used; of an event about an instrument, else its reference."""
    if event.transfer.instrument is not None:
        return event.transfer.instrument
    return event.reference if _category(event) == "PAYMENT_INSTRUMENT" else None


def _adds_instrument(event: AmlEvent) -> bool:
    if _category(event) != "PAYMENT_INSTRUMENT":
        return False
    name = event.name.lower()
    return not any(word in name for word in ("remov", "delet", "expir", "declin", "block"))


def _description(event: AmlEvent) -> str | None:
    text = event.transfer.description
    return text if text is not None and len(text) >= 4 else None


def _age_years(event: AmlEvent) -> float | None:
    """The customer's age at the event, from a date of birth (`yyyy-mm-dd`) in `customer` or its metadata."""
    profile = event.customer.get("metadata")
    for holder in (event.customer, profile if type(profile) is dict else {}, event.metadata):
        for name in ("dateOfBirth", "date_of_birth", "birthDate", "birth_date", "dob"):
            born_ms = read_moment(holder.get(name)) if type(holder.get(name)) is str else None
            if born_ms is not None and born_ms < event.occurred_at_ms:
                return (event.occurred_at_ms - born_ms) / _YEAR_MS
    return None


def _hour(event: AmlEvent) -> int:
    return event.occurred_at_ms // HOUR_MS % 24


def _event_fields() -> tuple[Field, ...]:
    return (
        _plain("event_name", "name", "The event name as the tenant sends it."),
        Field(
            "event_category", Type.TEXT, _category, "CUSTOMER, ACCOUNT, TRANSACTION …; missing when not sent."
        ),
        _plain("customer.external_id", "customer_id", "The tenant's own id of the customer."),
        _plain("customer.email", "email", "The customer's e-mail address in small letters."),
        _plain("customer.key", "customer_key", "Whom the event is about: id, else e-mail, else account."),
        _plain("device.key", "device_key", "The device: its fingerprint, else the external id."),
        _plain("ip", "ip", "The address the event came from, in canonical form."),
        _plain("session_id", "session_id", "The session."),
        _plain("reference", "reference", "The tenant's reference."),
        Field("country", Type.TEXT, _country, "Country of the event or its location, ISO 3166-1 alpha-2."),
        Field("place", Type.TEXT, _place, "Where it was done: branch, city, location, else the country."),
        Field("location.latitude", Type.NUMBER, _coordinate(("latitude", "lat"), 90), "Degrees north."),
        Field(
            "location.longitude", Type.NUMBER, _coordinate(("longitude", "lon", "lng"), 180), "Degrees east."
        ),
        _plain("occurred_at_ms", "occurred_at_ms", "Event time in Unix milliseconds.", Type.NUMBER),
        Field("hour", Type.NUMBER, _hour, "Hour of the event, 0 to 23, UTC."),
    )


def _transfer_fields() -> tuple[Field, ...]:
    number, flag = Type.NUMBER, Type.BOOL
    return (
        _plain("moves_money", "transfer.moves", "Whether an amount was moved, and did not fail.", flag),
        _plain("incoming", "transfer.incoming", "Whether money comes to the customer.", flag),
        _plain("outgoing", "transfer.outgoing", "Whether money goes from the customer.", flag),
        _plain("cash", "transfer.cash", "Whether it is cash: by channel, type or name.", flag),
        _plain("repayment", "transfer.repays", "Whether it repays a loan, by its type or name.", flag),
        _plain("early_repayment", "transfer.repays_early", "Whether it says to repay before its time.", flag),
        _plain("loan_paid_out", "transfer.lends", "Whether it pays out a loan, by its type or name.", flag),
        _plain("purchase", "transfer.buys", "Whether something is bought, by channel, type or name.", flag),
        _plain("wages", "transfer.pays_wages", "Whether it is pay, by type, name or text.", flag),
        _plain("amount", "transfer.amount", "The amount, never negative.", number),
        _plain("currency", "transfer.currency", "Currency code in upper case."),
        _plain("account.id", "transfer.account", "The customer's account."),
        _plain(
            "account.age_days", "transfer.age_days", "Age of the account in days, where it is told.", number
        ),
        _plain("account.balance_after", "transfer.balance_after", "The balance afterwards.", number),
        _plain("customer.income", "transfer.income", "The declared income or turnover of a month.", number),
        Field("customer.age_years", number, _age_years, "Age of the customer, from a date of birth."),
        _plain("customer.segment", "transfer.segment", "`person` or `business`; missing when not sent."),
        _plain("counterparty.id", "transfer.counterparty_id", "Who is on the other side."),
        _plain("counterparty.name", "transfer.counterparty_name", "Their name."),
        _plain("counterparty.country", "transfer.counterparty_country", "Their country, alpha-2."),
        _plain("counterparty.account", "transfer.counterparty_account", "Their account."),
        _plain("channel", "transfer.channel", "How it was done, in small letters."),
        _plain("transaction_type", "transfer.type", "What it was, in small letters."),
        Field("description", Type.TEXT, _description, "The text on the statement, from 4 characters on."),
        _plain("invoice_amount", "transfer.invoice_amount", "What the invoice of a trade says.", number),
        _plain("market_value", "transfer.market_value", "What the goods are worth.", number),
        Field("instrument", Type.TEXT, _instrument, "The card, wallet or mandate used or added."),
        Field("adds_instrument", flag, _adds_instrument, "Whether a payment instrument is added or changed."),
        Field("near_threshold", flag, _near_threshold, "Whether the amount is within 10 % below 10,000."),
        Field("below_threshold", flag, _below_threshold, "Whether the amount is from 6,000 to below 10,000."),
        Field("cash_below_threshold", flag, _cash_below, "Whether less than 10,000 is paid in as cash."),
        Field("round_sum", flag, _round_sum, "Whether it is a multiple of 500, from 1,000 on."),
        Field("large_sum", flag, _large, "Whether it is 10,000 or more."),
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
        _plain("sender.segment", "trail.sender_segment", "`person` or `business`, where it was told."),
        _plain("receiver.segment", "trail.receiver_segment", "The same of who is paid."),
        _plain(
            "pair_is_new",
            "trail.pair_is_new",
            "Whether this sender did not pay this receiver in 90 days.",
            flag,
        ),
        _plain("idle_days", "trail.idle_days", "Days since the party's transfer before this one.", number),
        _plain("awake_hours", "trail.awake_hours", "Hours since it came back from 30 silent days.", number),
        _plain("watched_days", "trail.watched_days", "Days since the tenant's first event.", number),
        _plain("cycle", "trail.cycle", "Parties of a circle that this transfer closes, else 0.", number),
        _plain("chain", "trail.chain", "Hops that one sum has made up to and with this one.", number),
        _plain(
            "gathered", "trail.gathered", "Parties over which money of one source meets again here.", number
        ),
        _plain("grid", "trail.grid", "Senders that pay this receiver and two others of this sender.", number),
        _plain("mirror", "trail.mirror", "Share of the closest sum received within a day.", number),
        _plain(
            "repeats", "trail.repeats", "Similar transfers of a day between the two, by no habit.", number
        ),
        _plain("split_days", "trail.split_days", "Days since the receiver collected a sum in parts.", number),
        _plain("benford", "trail.benford", "Chi-square of first digits, from 50 amounts on.", number),
    )


def _jurisdiction_fields(jurisdictions: Jurisdictions) -> tuple[Field, ...]:
    def either(codes: frozenset[str]) -> Callable[[AmlEvent], bool]:
        def read(event: AmlEvent) -> bool:
            return event.transfer.counterparty_country in codes or _country(event) in codes

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
    return Schema(
        (
            *_event_fields(),
            *_transfer_fields(),
            *_trail_fields(),
            *_jurisdiction_fields(jurisdictions or Jurisdictions()),
        ),
        _NAMESPACES,
    )
