"""What the members of an event with a known meaning say, however a tenant spells or types them."""

from collections.abc import Callable, Mapping
from typing import Any, Final

from vettance.clock import HOUR_MS
from vettance.events.event import Event
from vettance.events.event_spellings import MINOR_SPELLINGS, SPELLINGS, spelt_in, spelt_members
from vettance.events.kind import OUTCOME_MEMBERS
from vettance.rules.expression import NUMBER_MAX
from vettance.rules.schema import reads
from vettance.wire.payload import read_moment
from vettance.wire.spelt_numbers import read_amount, read_number
from vettance.wire.suggestions import KnownNames

Reader = Callable[[Event], Any]


def bounded(value: float) -> float:
    """Return a number, or the end of those that rules compute with: what is far beyond any limit stays so."""
    return min(max(value, -NUMBER_MAX), NUMBER_MAX)


def read_id(value: Any) -> str | None:
    """Read an identifier; a number is the text of that number, so that 7 and "7" are one."""
    if type(value) is str:
        return value.strip() or None
    return str(value) if type(value) is int else None


def read_word(value: Any) -> str | None:
    """Read a word of a closed set in lower case, so that rules need not mind how a tenant writes it."""
    return (value.strip().lower() or None) if type(value) is str else None


def read_code(value: Any) -> str | None:
    """Read a code such as a currency or a country in upper case."""
    return (value.strip().upper() or None) if type(value) is str else None


def read_flag(value: Any) -> bool | None:
    """Read a flag; anything but true and false says nothing."""
    return value if type(value) is bool else None


#: Every member of `metadata` that something was made to read.
_READ: Final[dict[str, None]] = {}


def names_read() -> KnownNames:
    """Return the names with a meaning within events, in every spelling, by where they are read.

    What has a reader of its own counts from when that was made (`decisions.features` makes them).
    """
    outcomes = (*OUTCOME_MEMBERS, "sdkSignals", "sdk_signals", "signals")
    account = (*_CREATED_CUSTOMER, *_AGE_DAYS, *_NEW)
    by_path = {
        "metadata": (*_READ, *_CREATED, *_AGE_DAYS, *_NEW, *outcomes, *_READ_BY_EVENTS),
        "payload": (*_READ, *outcomes, "eventName"),
        "custom_fields": outcomes,
        "customer": account,
        "customer.metadata": account,
        "": outcomes,
    }
    return KnownNames({path: frozenset(names) for path, names in by_path.items()})


def any_flag(names: tuple[str, ...]) -> Reader:
    """Make a reader of several flags in `metadata`: true when one is, false when one was sent, else None."""

    known = frozenset(names)
    _READ.update(dict.fromkeys(names))

    def read(event: Event) -> bool | None:
        metadata = event.metadata
        if known.isdisjoint(metadata):
            return None
        sent = [value for name in names if type(value := metadata.get(name)) is bool]
        return any(sent) if sent else None

    return reads(read, *(f"metadata.{name}" for name in names))


def member(convert: Callable[[Any], Any], *names: str) -> Reader:
    """Make a reader of a known member: `metadata` first, then `payload`, where the browser's door puts it."""
    _READ.update(dict.fromkeys(names))

    def read(event: Event) -> Any:
        metadata = event.metadata
        for name in names:
            if (value := metadata.get(name)) is not None:
                return convert(value)
        if payload := event.payload:
            for name in names:
                if (value := payload.get(name)) is not None:
                    return convert(value)
        return None

    return reads(read, *(f"metadata.{name}" for name in names))


def spelt_member(convert: Callable[[Any], Any], name: str) -> Reader:
    """Make a reader of a member that is read under every spelling of `events.event_spellings`."""
    names = (*SPELLINGS[name], *MINOR_SPELLINGS.get(name, ()))
    _READ.update(dict.fromkeys(names))

    def read(event: Event) -> Any:
        value = event.metadata.get(name)
        if value is None or type(value) is dict:
            value = spelt_members(event).get(name)
        return convert(value) if value is not None else None

    return reads(read, *(f"metadata.{spelling}" for spelling in names))


def amount_in(body: Any) -> tuple[float | int | None, str | None]:
    """Return the amount that the body of an event states, and the code of its currency in upper case."""
    holders = [body.get(name) if type(body) is dict else None for name in ("metadata", "payload")]
    said = spelt_in(*(holder if type(holder) is dict else {} for holder in holders))
    return read_amount(said.get("amount")), read_code(said.get("currency"))


_IN_PERSON_CHANNELS: Final = frozenset(
    {
        "pos",
        "in_store",
        "in-store",
        "instore",
        "in store",
        "store",
        "retail",
        "branch",
        "atm",
        "kiosk",
        "card_present",
    }
)
_read_channel: Final = spelt_member(read_word, "channel")


def in_person(event: Event) -> bool:
    """Tell whether the customer stood at a shared machine, where one device serves many people by design."""
    return _read_channel(event) in _IN_PERSON_CHANNELS


reads(in_person, *vars(_read_channel)["members"])


_CREATED: Final = ("accountCreatedAt", "account_created_at", "customerCreatedAt", "customer_created_at")
_CREATED_CUSTOMER: Final = (
    *_CREATED,
    "createdAt",
    "created_at",
    "registeredAt",
    "registered_at",
    "signupDate",
)
_AGE_DAYS: Final = ("accountAgeDays", "account_age_days", "customerAgeDays", "customer_age_days")
_NEW: Final = (
    "isNewAccount",
    "is_new_account",
    "newAccount",
    "isNewCustomer",
    "is_new_customer",
    "newCustomer",
)
_READ_BY_EVENTS: Final = ("occurredAt", "occurred_at", "sessionId", "location")
_AGE_MEMBERS: Final = frozenset((*_CREATED_CUSTOMER, *_AGE_DAYS, *_NEW))


def _holders(event: Event) -> list[tuple[Mapping[str, Any], tuple[str, ...]]]:
    """Return the objects that say anything of the account's age; most events have none."""
    customer, metadata = event.customer, event.metadata
    found: list[tuple[Mapping[str, Any], tuple[str, ...]]] = []
    inner = customer.get("metadata")
    if type(inner) is dict and not _AGE_MEMBERS.isdisjoint(inner):
        found.append((inner, _CREATED_CUSTOMER))
    if not _AGE_MEMBERS.isdisjoint(customer):
        found.append((customer, _CREATED_CUSTOMER))
    if not _AGE_MEMBERS.isdisjoint(metadata):
        found.append((metadata, _CREATED))
    return found


def account_age_hours(event: Event) -> float | None:
    """Return the age of the account in hours at the time of the event, when the tenant tells it."""
    for holder, created_names in _holders(event):
        for name in created_names:
            if (value := holder.get(name)) is not None and (created_ms := read_moment(value)) is not None:
                return max(0.0, (event.occurred_at_ms - created_ms) / HOUR_MS)
        for name in _AGE_DAYS:
            if (days := read_number(holder.get(name))) is not None:
                return max(0.0, bounded(days) * 24.0)
    return None


def account_is_new(event: Event) -> bool | None:
    """Tell whether the tenant says that the account is new: a flag, or an age below 24 hours."""
    holders = _holders(event)
    for holder, _ in holders:
        for name in _NEW:
            if type(value := holder.get(name)) is bool:
                return value
    age = account_age_hours(event) if holders else None
    return age < 24 if age is not None else None


def _paths(names: tuple[str, ...], *, created: bool) -> tuple[str, ...]:
    """Return the paths of names about the account; if `created`, also of those that only the customer has."""
    everywhere = [
        f"{holder}.{name}" for name in names for holder in ("metadata", "customer", "customer.metadata")
    ]
    only = _CREATED_CUSTOMER[len(_CREATED) :] if created else ()
    return (
        *everywhere,
        *(f"{holder}.{name}" for name in only for holder in ("customer", "customer.metadata")),
    )


_AGE_PATHS: Final = (*_paths(_CREATED, created=True), *_paths(_AGE_DAYS, created=False))
reads(account_age_hours, *_AGE_PATHS)
reads(account_is_new, *_paths(_NEW, created=False), *_AGE_PATHS)
