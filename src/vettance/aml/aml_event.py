"""The AML event: what a product reports of its customers' money, parsed once at the door."""

import enum
import hashlib
from typing import Annotated, Any, ClassVar, Final

import msgspec

from vettance.aml.transfer import NO_TRANSFER, Transfer, read_transfer
from vettance.events.event import AHEAD_MS_MAX, CustomerBody, DeviceBody
from vettance.events.ip_address import canonical_ip
from vettance.reference.jurisdictions import iso_code
from vettance.wire.body import FreeForm, Text, how, read_fitting, too_long
from vettance.wire.declared import declared, hold_bounds
from vettance.wire.payload import (
    JSON,
    STRING_CHARS_MAX,
    Faults,
    Wire,
    encode,
    is_within_bounds,
    put_first,
    read_moment,
)


class AmlCategory(enum.StrEnum):
    """What an AML event is about, in the vocabulary of the specification."""

    CUSTOMER = "CUSTOMER"
    ACCOUNT = "ACCOUNT"
    APPLICATION = "APPLICATION"
    CONTRACT = "CONTRACT"
    TRANSACTION = "TRANSACTION"
    PAYMENT_INSTRUMENT = "PAYMENT_INSTRUMENT"
    COUNTERPARTY = "COUNTERPARTY"


class TransferHistory(msgspec.Struct, frozen=True, gc=False):
    """What the recent transfers of the tenant say of an event; filled in by the memory, not by the door.

    `sender` and `receiver` name the two parties however their accounts are called; `…_own` tells whether
    that is a customer who was reported of, `…_segment` what was said of it. `pair_is_new`: no transfer
    between them in this direction was seen for 90 days. `idle_days`: since the party's event before this
    one; `awake_hours`: since it came back from 30 days of silence. `cycle` counts the parties of a circle
    that this transfer closes (`old_cycle` also where they dealt with each other before), `chain` the hops
    that one sum has made through it, `gathered` the accounts over which money of one source meets again
    here, `spread` the new parties that its source has paid, `grid` the senders that share three receivers
    with this one, `shared` the most receivers that another one has in common with it. `mirror` is this sum
    as a share of the closest one received within a day. `repeats` counts the similar transfers of a day
    between the two, `split_days` the days since the receiver last collected a sum in parts from anybody.
    `benford` is the chi-square of the first digits of the party's amounts, from 50 amounts on. `peers_above`
    is the share of its peers (`peers.py`) to whom as much comes in a month. `path` names the parties of
    the circle or chain. `newer_ms` are the moments of the newest transfers of the two parties where this
    one comes late, behind them. Keys of parties are `p:` and an id, or `a:` and an account where nobody's id
    is known.
    """

    party: str | None = None
    counterparty: str | None = None
    sender: str | None = None
    receiver: str | None = None
    sender_own: bool = False
    receiver_own: bool = False
    sender_segment: str | None = None
    receiver_segment: str | None = None
    pair_is_new: bool | None = None
    idle_days: float | None = None
    awake_hours: float | None = None
    watched_days: float | None = None
    cycle: int = 0
    old_cycle: int = 0
    chain: int = 0
    gathered: int = 0
    spread: int = 0
    grid: int = 0
    shared: int = 0
    mirror: float | None = None
    repeats: int = 0
    split_days: float | None = None
    benford: float | None = None
    peers_above: float | None = None
    path: tuple[str, ...] = ()
    newer_ms: tuple[int, ...] = ()


NO_TRAIL: Final = TransferHistory()


class AmlEvent(msgspec.Struct, frozen=True, kw_only=True):
    """One AML event of one tenant. `occurred_at_ms` is when its source says it happened (Unix ms)."""

    name: str
    external_id: str
    category: AmlCategory | None = None
    customer_id: str | None = None
    email: str | None = None
    device_id: str | None = None
    fingerprint: str | None = None
    ip: str | None = None
    user_agent: str | None = None
    country: str | None = None
    session_id: str | None = None
    reference: str | None = None
    location: Any = None
    customer: JSON = {}
    device: JSON = {}
    metadata: JSON = {}
    custom_fields: JSON = {}
    extra: JSON = {}
    received_at_ms: int = 0
    occurred_at_ms: int = 0
    transfer: Transfer = NO_TRANSFER
    trail: TransferHistory = NO_TRAIL

    @property
    def customer_key(self) -> str | None:
        """Whom the event is about: the customer, else the account."""
        return self.customer_id or self.email or self.transfer.account

    @property
    def device_key(self) -> str | None:
        """What the device is known by: the fingerprint, else the external id."""
        return self.fingerprint or self.device_id


class AmlEventBody(Wire, frozen=True):
    """An AML event as products send it; members that are not named here are kept with it."""

    EXAMPLE: ClassVar[JSON] = {
        "eventName": "transfer.sent",
        "externalEventId": "tx-8842",
        "eventCategory": "TRANSACTION",
        "customer": {"externalId": "c-17"},
        "metadata": {
            "amount": "9500.00",
            "currency": "EUR",
            "direction": "out",
            "accountId": "DE-1",
            "counterpartyId": "x-9",
            "counterpartyCountry": "KP",
        },
    }

    event_name: Annotated[str, msgspec.Meta(min_length=1, max_length=1024)]
    external_event_id: Annotated[
        str, msgspec.Meta(min_length=1, max_length=1024, description="The caller's id, unique per tenant.")
    ]
    event_category: Annotated[AmlCategory | None, how(value_is_422=True)] = None
    customer: CustomerBody | None = None
    device: DeviceBody | None = None
    ip: Text | None = None
    user_agent: Text | None = None
    country: Annotated[str, msgspec.Meta(description="ISO 3166-1 alpha-2 or alpha-3.")] | None = None
    session_id: Text | None = None
    source_reported_at: Annotated[
        str | float | None,
        msgspec.Meta(description="ISO 8601 or Unix seconds; the time of receipt if left out."),
        how(as_sent=True),
    ] = None
    timestamp: Annotated[
        float | None,
        msgspec.Meta(description="Legacy: Unix seconds; `sourceReportedAt` is preferred."),
        how(as_sent=True),
    ] = None
    reference: Text | None = None
    location: Annotated[Any, msgspec.Meta(description="Coordinates or the context of the place.")] = None
    metadata: FreeForm | None = None
    custom_fields: FreeForm | None = msgspec.field(default=None, name="custom_fields")
    payload: Annotated[
        dict[str, Any] | None, msgspec.Meta(description="Legacy; kept as `metadata.payload`.")
    ] = None


_KNOWN: Final = frozenset((*declared(AmlEventBody), "tenantId", "occurredAt"))
_IN_REACH: Final = "since 1970 and at most 5 minutes ahead"
_BAD_MOMENT: Final = f"must be an ISO 8601 time or Unix seconds, {_IN_REACH}"
_BAD_SECONDS: Final = f"must be Unix seconds, {_IN_REACH}; `sourceReportedAt` also takes ISO 8601"
#: Where an event may name its time, the first of them that does counts.
MOMENTS: Final = ("sourceReportedAt", "timestamp", "occurredAt")
_INNER: Final = ("customer.metadata", "device.metadata")
#: The faults that are named first, in this order; the others come as the members are declared.
_NAMED_FIRST: Final = (
    *("eventName", "externalEventId", "customer", "device", "metadata", "custom_fields", "payload"),
    *("country", "ip"),
)
_NOBODY: Final = CustomerBody()
_NO_DEVICE: Final = DeviceBody()


def read_aml_event(body: JSON, sent: bytes, now_ms: int) -> AmlEvent:
    """Make an AML event of a parsed body, which was `sent` as these bytes and received at `now_ms`.

    Raises `Unprocessable` (422) naming every fault by its field path: on AML endpoints a body that is
    well-formed JSON is never answered with 400.
    """
    faults = Faults()
    if not is_within_bounds(sent):
        hold_bounds(body, AmlEventBody, faults)
    event = _read(body, now_ms, faults)
    faults.raise_unprocessable()
    return event


def read_taken_aml_event(body: JSON, received_at_ms: int) -> AmlEvent:
    """Make an AML event of a body that was taken at the door: it was held to bounds there.

    Raises as `read_aml_event` does, where more was narrowed since than the bounds.
    """
    faults = Faults()
    event = _read(body, received_at_ms, faults)
    faults.raise_unprocessable()
    return event


def _read(body: JSON, now_ms: int, faults: Faults) -> AmlEvent:
    said = _read_members(body, faults)
    customer, device = said.customer or _NOBODY, said.device or _NO_DEVICE
    country = _read_country(said.country, faults) if said.country else None
    occurred_at_ms = _read_occurred_at(body, now_ms, faults)
    email, ip, category = customer.email, said.ip, said.event_category
    metadata, payload = said.metadata or {}, said.payload or {}
    if payload:
        metadata = {**metadata, "payload": payload}
    return AmlEvent(
        name=said.event_name,
        external_id=said.external_event_id,
        category=category,
        customer_id=customer.external_id or None,
        email=email.strip().lower() if email else None,
        device_id=device.external_id or None,
        fingerprint=device.fingerprint or None,
        ip=(canonical_ip(ip.strip()) or ip) if ip else None,
        user_agent=said.user_agent or None,
        country=country,
        session_id=said.session_id or None,
        reference=said.reference or None,
        location=said.location,
        customer=body["customer"] if said.customer else {},
        device=body["device"] if said.device else {},
        metadata=metadata,
        custom_fields=said.custom_fields or {},
        extra={key: value for key, value in body.items() if key not in _KNOWN},
        received_at_ms=now_ms,
        occurred_at_ms=occurred_at_ms,
        transfer=read_transfer(
            said.event_name or "",
            category,
            metadata,
            payload,
            customer.metadata or {},
            customer.external_id or None,
            occurred_at_ms,
        ),
    )


def _read_members(body: JSON, faults: Faults) -> AmlEventBody:
    said = read_fitting(body, AmlEventBody, faults)
    if faults.shape:
        faults.meaning |= {path: faults.shape.pop(path) for path in _INNER if path in faults.shape}
        faults.shape = put_first(faults.shape, _NAMED_FIRST)
    return said


def _read_country(sent: str, faults: Faults) -> str | None:
    if len(sent) > STRING_CHARS_MAX:
        faults.shape["country"] = too_long(STRING_CHARS_MAX)
        return None
    if (code := iso_code(sent.strip())) is None:
        faults.meaning["country"] = "must be an ISO 3166-1 alpha-2 or alpha-3 code"
    return code


def _read_occurred_at(body: JSON, now_ms: int, faults: Faults) -> int:
    """Read every moment that was sent, so that each bad one is named; the first of them counts."""
    found: int | None = None
    for path in MOMENTS:
        value = body.get(path)
        if value is None:
            continue
        moment = None if path == "timestamp" and type(value) is str else read_moment(value)
        if moment is None or not 0 <= moment <= now_ms + AHEAD_MS_MAX:
            faults.meaning[path] = _BAD_SECONDS if path == "timestamp" else _BAD_MOMENT
        elif found is None:
            found = moment
    return now_ms if found is None else found


def payload_digest(body: JSON) -> bytes:
    """Name the payload as a JSON value: equal for equal values, however members are ordered and spaced.

    1 and 1.0 are one number. A `tenantId` is ignored everywhere, so it does not count here either. The answer
    is 32 bytes (BLAKE2b).
    """
    plain = {key: _canonical(value) for key, value in body.items() if key != "tenantId"}
    return hashlib.blake2b(encode(_ordered(plain)), digest_size=32).digest()


def _canonical(value: Any) -> Any:
    if type(value) is dict:
        return {key: _canonical(member) for key, member in value.items()}
    if type(value) is list:
        return [_canonical(item) for item in value]
    if type(value) is float and value.is_integer() and abs(value) < 2**63:
        return int(value)
    return value


def _ordered(value: Any) -> Any:
    if type(value) is dict:
        return {key: _ordered(value[key]) for key in sorted(value)}
    if type(value) is list:
        return [_ordered(item) for item in value]
    return value
