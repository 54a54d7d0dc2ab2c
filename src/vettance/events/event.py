"""The event: what a product reports, parsed once at the door and trusted afterwards."""

import enum
from typing import Annotated, Any, ClassVar, Final

import msgspec

from vettance.events.ip_address import canonical_ip
from vettance.wire.body import FreeForm, Text, how, read_fitting
from vettance.wire.declared import declared, hold_bounds
from vettance.wire.payload import (
    JSON,
    STRING_CHARS_MAX,
    Faults,
    Wire,
    is_within_bounds,
    put_first,
    read_moment,
)

AHEAD_MS_MAX: Final = 5 * 60 * 1000
BACK_MS_MAX: Final = 400 * 86_400 * 1000


class Category(enum.StrEnum):
    """What kind of thing happened, in the vocabulary of the specification."""

    AUTHENTICATION = "AUTHENTICATION"
    TRANSACTION = "TRANSACTION"
    ACCOUNT = "ACCOUNT"
    OTHER = "OTHER"


class EventSource(enum.StrEnum):
    """The door an event came in by."""

    EVENTS = "events"
    ASYNC = "async"
    EVALUATE = "evaluate"
    COLLECT = "collect"
    IMPORT = "import"


class Event(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One event of one tenant. Texts are as sent, except `ip`, `email` and `country`, in canonical form.

    `occurred_at_ms` is event time (Unix milliseconds): the time the caller names, else that of receipt.
    Windows, novelty and statistics go by it.
    """

    name: str
    category: Category = Category.OTHER
    customer_id: str | None = None
    email: str | None = None
    device_id: str | None = None
    fingerprint: str | None = None
    ip: str | None = None
    user_agent: str | None = None
    country: str | None = None
    session_id: str | None = None
    location: tuple[float, float] | None = None
    customer: JSON = {}
    device: JSON = {}
    metadata: JSON = {}
    custom_fields: JSON = {}
    payload: JSON = {}
    extra: JSON = {}
    session_signals: JSON = {}  # what the browser had queued for this session before the event
    received_at_ms: int = 0
    occurred_at_ms: int = 0

    @property
    def customer_key(self) -> str | None:
        """What the customer is known by: the external id, else the e-mail address."""
        return self.customer_id or self.email

    @property
    def device_key(self) -> str | None:
        """What the device is known by: the fingerprint, else the external id."""
        return self.fingerprint or self.device_id


class CustomerBody(Wire, frozen=True):
    """Whom the event is about."""

    external_id: Text | None = None
    email: Text | None = None
    metadata: FreeForm | None = None


class DeviceBody(Wire, frozen=True):
    """The device it came from."""

    external_id: Text | None = None
    fingerprint: Text | None = None
    metadata: FreeForm | None = None


class EventBody(Wire, frozen=True):
    """An event as products send it. Unknown members are kept with it; rules read them under `extra`."""

    EXAMPLE: ClassVar[JSON] = {
        "eventName": "payment.attempt",
        "eventCategory": "TRANSACTION",
        "customer": {"externalId": "c-1001", "email": "anna@example.com"},
        "device": {"fingerprint": "fp-77"},
        "ip": "203.0.113.9",
        "country": "DE",
        "sessionId": "session-1",
        "metadata": {"amount": 4.90, "currency": "EUR", "merchantId": "m-12", "cardHash": "card-1"},
    }

    event_name: Annotated[str, msgspec.Meta(min_length=1, max_length=STRING_CHARS_MAX)]
    event_category: Category | None = None
    customer: CustomerBody | None = None
    device: DeviceBody | None = None
    ip: Text | None = None
    user_agent: Text | None = None
    country: Text | None = None
    session_id: Text | None = None
    location: Annotated[Any, msgspec.Meta(description="Coordinates as `latitude` and `longitude`.")] = None
    occurred_at: Annotated[
        str | float | None,
        msgspec.Meta(description="ISO 8601 or Unix seconds; the time of receipt if left out."),
        how(as_sent=True),
    ] = None
    metadata: FreeForm | None = None
    custom_fields: FreeForm | None = msgspec.field(default=None, name="custom_fields")
    payload: FreeForm | None = None


_NOBODY: Final = CustomerBody()
_NO_DEVICE: Final = DeviceBody()
_KNOWN: Final = frozenset((*declared(EventBody), "tenantId"))
_MOMENTS: Final = frozenset(("occurredAt", "occurred_at"))  # in `metadata`
_BAD_MOMENT: Final = "must be an ISO 8601 time or Unix seconds, at most 5 minutes ahead and 400 days back"
#: The faults that are named first, in this order; the others come as the members are declared.
_NAMED_FIRST: Final = (
    *("eventName", "eventCategory", "customer", "device", "metadata", "custom_fields", "payload"),
    *("customer.metadata", "device.metadata", "customer.email", "ip", "sessionId"),
)


def read_event(body: JSON, sent: bytes, now_ms: int) -> Event:
    """Make an event of a parsed body, which was `sent` as these bytes and received at `now_ms`.

    Raises `Invalid` (400) or `Unprocessable` (422) naming every fault by its field path.
    """
    faults = Faults()
    if not is_within_bounds(sent):
        hold_bounds(body, EventBody, faults)
    event = _read(body, now_ms, faults)
    faults.raise_any()
    return event


def read_taken_event(body: JSON, received_at_ms: int) -> Event:
    """Make an event of a body that was taken at the door: it was held to its bounds, or to wider ones, there.

    Raises as `read_event` does, where more was narrowed since than the bounds.
    """
    faults = Faults()
    event = _read(body, received_at_ms, faults)
    faults.raise_any()
    return event


def check_event(body: JSON, sent: bytes, now_ms: int) -> str:
    """Hold a parsed body to all that `read_event` demands, and return the name of its event.

    Raises as `read_event` does. Most bodies fit the schema, are small and name no time of their own: to see
    that takes a third of the time of making an event.
    """
    if not is_within_bounds(sent):
        return read_event(body, sent, now_ms).name
    try:
        fitting = msgspec.convert(body, EventBody)
    except msgspec.ValidationError:
        return read_event(body, sent, now_ms).name
    metadata = fitting.metadata
    if fitting.occurred_at is not None or (metadata and not _MOMENTS.isdisjoint(metadata)):
        return read_event(body, sent, now_ms).name
    return fitting.event_name


def with_session_signals(event: Event, signals: JSON) -> Event:
    """Return an event with the signals queued for its session; an event of no device gets the session's."""
    fingerprint = event.fingerprint
    if event.device_key is None and type(found := signals.get("fingerprint")) is str:
        fingerprint = found if 0 < len(found) <= STRING_CHARS_MAX else None
    return msgspec.structs.replace(event, session_signals=signals, fingerprint=fingerprint)


def _read(body: JSON, now_ms: int, faults: Faults) -> Event:
    said = read_fitting(body, EventBody, faults)
    if faults.shape:
        faults.shape = put_first(faults.shape, _NAMED_FIRST)
    customer, device = said.customer or _NOBODY, said.device or _NO_DEVICE
    metadata = said.metadata or {}
    session_id = said.session_id
    if not session_id and type(inner := metadata.get("sessionId")) is str:
        session_id = inner if len(inner) <= STRING_CHARS_MAX else None
    email, ip = customer.email, said.ip
    return Event(
        name=said.event_name,
        category=said.event_category or Category.OTHER,
        customer_id=customer.external_id or None,
        email=email.strip().lower() if email else None,
        device_id=device.external_id or None,
        fingerprint=device.fingerprint or None,
        ip=(canonical_ip(ip.strip()) or ip) if ip else None,
        user_agent=said.user_agent or None,
        country=(said.country.strip().upper() or None) if said.country else None,
        session_id=session_id or None,
        location=_read_location(said.location) or _read_location(metadata.get("location")),
        customer=body["customer"] if said.customer else {},
        device=body["device"] if said.device else {},
        metadata=metadata,
        custom_fields=said.custom_fields or {},
        payload=said.payload or {},
        extra={} if _KNOWN.issuperset(body) else {key: body[key] for key in body if key not in _KNOWN},
        received_at_ms=now_ms,
        occurred_at_ms=_read_occurred_at(said.occurred_at, metadata, now_ms, faults),
    )


def _read_occurred_at(stated: Any, metadata: JSON, now_ms: int, faults: Faults) -> int:
    for path, value in (
        ("occurredAt", stated),
        ("metadata.occurredAt", metadata.get("occurredAt", metadata.get("occurred_at"))),
    ):
        if value is None:
            continue
        if type(value) not in (str, int, float):
            faults.shape[path] = "must be a string or a number"
            return now_ms
        moment = read_moment(value)
        if moment is None or not now_ms - BACK_MS_MAX <= moment <= now_ms + AHEAD_MS_MAX:
            faults.meaning[path] = _BAD_MOMENT
            return now_ms
        return moment
    return now_ms


_LATITUDES: Final = ("latitude", "lat")
_LONGITUDES: Final = ("longitude", "lon", "lng")


def _read_location(value: Any) -> tuple[float, float] | None:
    """Read coordinates in degrees (WGS 84); a location in any other form is kept but not understood."""
    if type(value) is not dict:
        return None
    latitude = next((value[key] for key in _LATITUDES if type(value.get(key)) in (int, float)), None)
    longitude = next((value[key] for key in _LONGITUDES if type(value.get(key)) in (int, float)), None)
    if latitude is None or longitude is None or not (-90 <= latitude <= 90 and -180 <= longitude <= 180):
        return None
    return float(latitude), float(longitude)
