"""List entries: values that a tenant always blocks or always allows, and how an event is matched to them."""

import enum
import ipaddress
import re
from collections.abc import Callable, Iterable, Iterator
from typing import Final, NamedTuple

import msgspec

from vettance.events.event import Event
from vettance.events.ip_address import canonical_ip, packed_ip
from vettance.wire.numbers import read_whole

VALUE_CHARS_MAX = 512

# RFC 5321 allows 64 octets before the @ and 255 after it; what is there is left to the mail system.
_EMAIL = re.compile(r"[^\s@\x00-\x1f\x7f]{1,64}@[^\s@\x00-\x1f\x7f.]+(?:\.[^\s@\x00-\x1f\x7f.]+)*")
_DOMAIN_CHARS_MAX = 255


class HostBits(ValueError):
    """A range is written with an address inside it, so it is not certain which of the two was meant."""


class EntryType(enum.StrEnum):
    """What kind of value an entry holds."""

    IP = "IP"
    DEVICE = "DEVICE"
    EMAIL = "EMAIL"


class ListType(enum.StrEnum):
    """Which list an entry stands on."""

    BLOCK = "block"
    ALLOW = "allow"


class ListEntry(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One entry of one tenant. `value` is in canonical form; moments are Unix milliseconds."""

    id: str
    tenant: str
    type: EntryType
    value: str
    list_type: ListType
    reason: str | None
    expires_at_ms: int | None
    created_at_ms: int
    updated_at_ms: int

    def live(self, now_ms: int) -> bool:
        """Tell whether the entry still counts."""
        return self.expires_at_ms is None or self.expires_at_ms > now_ms


def _canonical_address(value: str) -> str | None:
    return canonical_ip(value) or _canonical_network(value)


def _canonical_network(value: str) -> str | None:
    address, slash, length = value.partition("/")
    packed = packed_ip(address)
    # RFC 4632, section 3.1, and RFC 4291, section 2.3: a decimal number, without zeros before it.
    bits = read_whole(length, 0, 128)
    if not slash or packed is None or bits is None:
        return None
    if len(packed) == 4 and ":" in address:
        bits -= 96  # An IPv4-mapped range counts its prefix from the start of the IPv6 address.
    if not 0 <= bits <= 8 * len(packed):
        return None
    network = ipaddress.ip_network((packed, bits), strict=False)
    if network.network_address.packed != packed:
        raise HostBits
    return str(network.network_address) if network.prefixlen == network.max_prefixlen else str(network)


def values_holding(address: str) -> list[str]:
    """Return the canonical forms of an IP address and of every range that holds it, the narrowest first."""
    packed = packed_ip(address)
    if packed is None:
        return []
    ranges = [
        str(ipaddress.ip_network((packed, bits), strict=False)) for bits in range(8 * len(packed) - 1, -1, -1)
    ]
    return [str(ipaddress.ip_address(packed)), *ranges]


def _canonical_fingerprint(value: str) -> str | None:
    return value if value.isprintable() and value == value.strip() and value else None


def _canonical_email(value: str) -> str | None:
    address = value.strip().lower()
    good = _EMAIL.fullmatch(address) and len(address.rpartition("@")[2]) <= _DOMAIN_CHARS_MAX
    return address if good else None


class ValueKind(NamedTuple):
    """A type of value: its canonical form, what is said of a text without one, and where events hold it.

    Of several values of an event, each matches entries, and the first is what a rule puts on a list.
    """

    canonical: Callable[[str], str | None]
    fault: str
    values_of: Callable[[Event], Iterable[str | None]]


#: E-mail addresses are lower-cased, IP addresses and CIDR ranges brought to canonical form (the IPv4-mapped
#: form of an IPv6 address is its IPv4); fingerprints stay as they are.
#: Matches of an event come in this order.
VALUE_KINDS: Final = {
    EntryType.EMAIL: ValueKind(_canonical_email, "must be an e-mail address", lambda event: (event.email,)),
    # An entry that is the fingerprint and the external id of one device is one match.
    EntryType.DEVICE: ValueKind(
        _canonical_fingerprint,
        "must be a device fingerprint: printable text without white space around it",
        lambda event: dict.fromkeys((event.fingerprint, event.device_id)),
    ),
    EntryType.IP: ValueKind(
        _canonical_address,
        "must be an IPv4 or IPv6 address, or a CIDR range",
        lambda event: (event.ip,),
    ),
}


def canonical_value(entry_type: EntryType, value: str) -> str | None:
    """Return the form in which a value is stored and matched, or None when it is no such value.

    Raises `HostBits` for a range that is written with an address inside it.
    """
    return VALUE_KINDS[entry_type].canonical(value)


class ListBook:
    """All entries of one tenant, in memory, looked up by value in constant time (CIDR: by prefix length)."""

    def __init__(self, entries: Iterable[ListEntry] = ()) -> None:
        self._by_id: dict[str, ListEntry] = {}
        self._exact: dict[tuple[EntryType, str], dict[str, ListEntry]] = {}
        self._networks: dict[tuple[int, int], dict[int, dict[str, ListEntry]]] = {}
        for entry in entries:
            self.put(entry)

    def __len__(self) -> int:
        return len(self._by_id)

    def put(self, entry: ListEntry) -> None:
        """Add an entry, or replace the one with its id."""
        self.drop(entry.id)
        self._by_id[entry.id] = entry
        if entry.type is EntryType.IP and "/" in entry.value:
            size, bits, masked = _network_key(entry.value)
            slots = self._networks.setdefault((size, bits), {})
            slots.setdefault(masked, {})[entry.id] = entry
        else:
            self._exact.setdefault((entry.type, entry.value), {})[entry.id] = entry

    def find(self, entry_type: EntryType, value: str, list_type: ListType, now_ms: int) -> ListEntry | None:
        """Return the live entry of exactly this value on a list; a range is not one of its addresses."""
        for entry in self._exact.get((entry_type, value), {}).values():
            if entry.list_type is list_type and entry.live(now_ms):
                return entry
        return None

    def drop(self, entry_id: str) -> None:
        """Forget an entry; nothing happens when it is not there."""
        entry = self._by_id.pop(entry_id, None)
        if entry is None:
            return
        if entry.type is EntryType.IP and "/" in entry.value:
            size, bits, masked = _network_key(entry.value)
            slots = self._networks[size, bits]
            del slots[masked][entry.id]
            if not slots[masked]:
                del slots[masked]
            if not slots:
                del self._networks[size, bits]
        else:
            place = self._exact[entry.type, entry.value]
            del place[entry.id]
            if not place:
                del self._exact[entry.type, entry.value]

    def forget(self, now_ms: int) -> None:
        """Drop the entries that have expired."""
        for entry in [entry for entry in self._by_id.values() if not entry.live(now_ms)]:
            self.drop(entry.id)

    def match(self, event: Event, now_ms: int) -> tuple[ListEntry, ...]:
        """Return every live entry that an event matches by its IP, device fingerprint or customer e-mail."""
        if not self._by_id:
            return ()
        return tuple(entry for entry in self._candidates(event) if entry.live(now_ms))

    def _candidates(self, event: Event) -> Iterator[ListEntry]:
        for entry_type, kind in VALUE_KINDS.items():
            for value in kind.values_of(event):
                if value is not None:
                    yield from self._exact.get((entry_type, value), {}).values()
        if self._networks and event.ip is not None and (packed := packed_ip(event.ip)) is not None:
            number, size = int.from_bytes(packed), len(packed)
            for (network_size, bits), slots in self._networks.items():
                if network_size == size:
                    yield from slots.get(number >> (8 * size - bits), {}).values()


def _network_key(value: str) -> tuple[int, int, int]:
    """Return (bytes of an address, prefix length, leading bits) of a canonical CIDR range."""
    address, _, length = value.partition("/")
    packed = packed_ip(address)
    if packed is None:
        raise ValueError("a stored range is not canonical")
    bits = int(length)
    return len(packed), bits, int.from_bytes(packed) >> (8 * len(packed) - bits)


def winning_list(entries: Iterable[ListEntry]) -> ListType | None:
    """Return which list decides: block over allow, None when nothing matched."""
    kinds = {entry.list_type for entry in entries}
    if ListType.BLOCK in kinds:
        return ListType.BLOCK
    return ListType.ALLOW if kinds else None
