"""What tenants send to put a value on a list, and the addresses for each type of value."""

from typing import Annotated, ClassVar, Final, NamedTuple

import msgspec

from vettance.lists.entry import VALUE_CHARS_MAX, VALUE_KINDS, EntryType, HostBits, ListType
from vettance.wire.body import NOT_TEXT, BodyStruct, how, read_body
from vettance.wire.payload import JSON, Faults, Wire, put_first, read_timestamp

_HOST_BITS: Final = (
    "must be the first address of its range: bits beyond the prefix length are set; leave the length out if "
    "one address is meant"
)
#: Ranges that are everybody, whom few mean to block or to allow; `confirm` says that it is meant.
EVERY_ADDRESS: Final = {"0.0.0.0/0": ("IPv4", 32), "::/0": ("IPv6", 128)}

_Type = Annotated[EntryType, how(also_named="valueType", any_case=True, wrong_type=NOT_TEXT)]
_List = Annotated[ListType, how(wrong_type=NOT_TEXT)]
_Value = Annotated[str | None, how(chars_max=VALUE_CHARS_MAX)]
_Confirm = Annotated[
    bool,
    msgspec.Meta(
        description="An entry of every address there is (`0.0.0.0/0`, `::/0`) is 422 unless this is true."
    ),
    how(as_sent=True),
]


class EntryBody(Wire, frozen=True):
    """A new list entry. `valueType` is taken for `type`, in any letter case."""

    EXAMPLE: ClassVar[JSON] = {
        "type": "IP",
        "value": "203.0.113.9",
        "listType": "block",
        "reason": "Card testing.",
    }

    type: _Type
    value: Annotated[str, msgspec.Meta(max_length=VALUE_CHARS_MAX)]
    list_type: _List
    reason: str | None = None
    expires_at: Annotated[str | None, msgspec.Meta(description="ISO 8601, in the future.")] = None
    confirm: _Confirm = False


class CustomerEntryBody(Wire, frozen=True):
    """What the add of a customer takes; the e-mail address stands in the path."""

    EXAMPLE: ClassVar[JSON] = {"listType": "block", "reason": "Chargebacks."}

    list_type: _List = ListType.BLOCK
    reason: str | None = None
    expires_at: str | None = None


class DeviceEntryBody(CustomerEntryBody, frozen=True):
    """What the add of a device takes: `fingerprint`, or `value` for it."""

    EXAMPLE: ClassVar[JSON] = {"fingerprint": "fp-77", "listType": "block", "reason": "Card testing."}

    fingerprint: _Value = None
    value: Annotated[_Value, how(stands_for="fingerprint")] = None


class IpBody(CustomerEntryBody, frozen=True):
    """What the add of an IP address or CIDR range takes: `ip`, or `value` for it."""

    EXAMPLE: ClassVar[JSON] = {"ip": "198.51.100.7", "listType": "block", "reason": "Card testing."}

    ip: _Value = None
    value: Annotated[_Value, how(stands_for="ip")] = None
    confirm: _Confirm = False


class Scope(NamedTuple):
    """The addresses for one type of value: below `/lists`, with the value in the path or in the body."""

    entry_type: EntryType
    what: str
    add: str
    remove: str
    takes: type[CustomerEntryBody]
    #: The members of the body that may hold the value, none where it is in the path.
    members: tuple[str, ...] = ()


SCOPES: Final = (
    Scope(
        EntryType.EMAIL,
        "a customer's e-mail address",
        add="customer/{email}",
        remove="customer/{email}",
        takes=CustomerEntryBody,
    ),
    Scope(
        EntryType.DEVICE,
        "a device fingerprint",
        add="device",
        remove="device/{fingerprint}",
        takes=DeviceEntryBody,
        members=("fingerprint", "value"),
    ),
    Scope(
        EntryType.IP,
        "an IP address or CIDR range",
        add="ip",
        remove="ip/{ip}",
        takes=IpBody,
        members=("ip", "value"),
    ),
)


class NewEntry(NamedTuple):
    """What a tenant wants on a list; the value is in canonical form."""

    type: EntryType
    value: str
    list_type: ListType
    reason: str | None
    expires_at_ms: int | None


def read_entry(body: JSON, now_ms: int) -> NewEntry:
    """Read a new entry of any type. Raises `Invalid` (400) or `Unprocessable` (422) naming every fault."""
    faults = Faults()
    said = _read(body, EntryBody, faults)
    canonical = _read_value("value", said.type, said.value, said, faults)
    return _new_entry(said.type, canonical, said, now_ms, faults)


def read_scoped_entry(scope: Scope, path: dict[str, str], body: JSON, now_ms: int) -> NewEntry:
    """Read a new entry of the type of a scope, whose value is in the path or the body; raises likewise."""
    faults = Faults()
    said = _read(body, scope.takes, faults)
    if scope.members:
        name = next((each for each in scope.members if body.get(each) not in (None, "")), scope.members[0])
        value = getattr(said, name)
    else:
        ((name, value),) = path.items()
    canonical = _read_value(name, scope.entry_type, value, said, faults)
    return _new_entry(scope.entry_type, canonical, said, now_ms, faults)


def _read(body: JSON, shape: type[BodyStruct], faults: Faults) -> BodyStruct:
    said = read_body(body, shape, faults)
    names = ("type", "valueType", "listType", *dict.fromkeys(name for one in SCOPES for name in one.members))
    faults.shape = put_first(faults.shape, names)
    return said


def _read_value(
    name: str,
    entry_type: EntryType | None,
    value: str | None,
    said: EntryBody | CustomerEntryBody,
    faults: Faults,
) -> str | None:
    """Return the canonical form of a value that was sent as `name`."""
    if entry_type is None or value is None:
        return None
    canonical, fault = read_value(entry_type, value)
    confirmed = isinstance(said, EntryBody | IpBody) and said.confirm is True
    if fault is None and canonical in EVERY_ADDRESS and said.list_type is not None and not confirmed:
        family, bits = EVERY_ADDRESS[canonical]
        every = f"every {family} address there is (2^{bits})"
        fault = f'would {said.list_type} {every}; add "confirm": true if that is meant'
    if fault is not None:
        faults.meaning[name] = fault
    return canonical


def read_value(entry_type: EntryType, value: str) -> tuple[str | None, str | None]:
    """Return the form in which a value is stored, and what is wrong with it if anything is."""
    kind = VALUE_KINDS[entry_type]
    try:
        canonical = kind.canonical(value) if len(value) <= VALUE_CHARS_MAX else None
    except HostBits:
        return None, _HOST_BITS
    return canonical, kind.fault if canonical is None else None


def _new_entry(
    entry_type: EntryType,
    canonical: str | None,
    said: EntryBody | CustomerEntryBody,
    now_ms: int,
    faults: Faults,
) -> NewEntry:
    expires_at_ms = None
    if said.expires_at:
        expires_at_ms = read_timestamp(said.expires_at)
        if expires_at_ms is None:
            faults.meaning["expiresAt"] = "must be an ISO 8601 time"
        elif expires_at_ms <= now_ms:
            faults.meaning["expiresAt"] = "must be in the future"
    faults.raise_any()
    assert canonical is not None, "a value without canonical form was refused"
    return NewEntry(entry_type, canonical, said.list_type, said.reason, expires_at_ms)
