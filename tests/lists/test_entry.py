"""The core of the lists: canonical values, and which entries an event matches."""

import ipaddress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vettance.events.event import Event
from vettance.lists.entry import (
    EntryType,
    HostBits,
    ListBook,
    ListEntry,
    ListType,
    canonical_value,
    winning_list,
)


def entry(entry_id: str, value: str, kind: EntryType = EntryType.IP, **changes: object) -> ListEntry:
    values = {
        "id": entry_id,
        "tenant": "ten_1",
        "type": kind,
        "value": value,
        "list_type": ListType.BLOCK,
        "reason": None,
        "expires_at_ms": None,
        "created_at_ms": 0,
        "updated_at_ms": 0,
        **changes,
    }
    return ListEntry(**values)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("kind", "sent", "kept"),
    [
        (EntryType.IP, "203.0.113.7", "203.0.113.7"),
        (EntryType.IP, "2001:DB8:0:0::1", "2001:db8::1"),
        (EntryType.IP, "::ffff:203.0.113.7", "203.0.113.7"),
        (EntryType.IP, "203.0.113.0/24", "203.0.113.0/24"),
        (EntryType.IP, "203.0.113.7/32", "203.0.113.7"),
        (EntryType.IP, "::ffff:203.0.113.0/120", "203.0.113.0/24"),
        (EntryType.IP, "2001:DB8::/32", "2001:db8::/32"),
        (EntryType.IP, "0.0.0.0/0", "0.0.0.0/0"),
        (EntryType.EMAIL, "Anna@Example.COM", "anna@example.com"),
        (EntryType.EMAIL, "anna+shop@sub.example.com", "anna+shop@sub.example.com"),
        (EntryType.DEVICE, "Fp-AbC 1", "Fp-AbC 1"),
    ],
)
def test_values_are_kept_in_canonical_form(kind: EntryType, sent: str, kept: str) -> None:
    assert canonical_value(kind, sent) == kept
    assert canonical_value(kind, kept) == kept


@pytest.mark.parametrize(
    ("kind", "sent"),
    [
        (EntryType.IP, ""),
        (EntryType.IP, "300.1.1.1"),
        (EntryType.IP, "010.0.0.1"),
        (EntryType.IP, "1.2.3"),
        (EntryType.IP, "1.2.3.4/33"),
        (EntryType.IP, "1.2.3.4/-1"),
        (EntryType.IP, "1.2.3.4/"),
        (EntryType.IP, "198.51.100.0/00024"),
        (EntryType.IP, "198.51.100.0/024"),
        (EntryType.IP, "198.51.100.0/+24"),
        (EntryType.IP, "198.51.100.0/ 24"),
        (EntryType.IP, "198.51.100.0/2_4"),
        (EntryType.IP, "198.51.100.0/24/24"),
        (EntryType.IP, "198.51.100.0/255.255.255.0"),
        (EntryType.IP, "198.51.100.0/٢٤"),
        (EntryType.IP, "2001:db8::/00032"),
        (EntryType.IP, "2001:db8::/129"),
        (EntryType.IP, "::/0000"),
        (EntryType.IP, "１.2.3.4"),
        (EntryType.IP, "::ffff:1.2.3.4/95"),
        (EntryType.IP, "fe80::1%eth0"),
        (EntryType.IP, "1.2.3.4\x00"),
        (EntryType.EMAIL, "anna"),
        (EntryType.EMAIL, "anna@"),
        (EntryType.EMAIL, "@example.com"),
        (EntryType.EMAIL, "an na@example.com"),
        (EntryType.EMAIL, "anna@exa..mple.com"),
        (EntryType.EMAIL, "a@b@c.com"),
        (EntryType.EMAIL, "a" * 65 + "@example.com"),
        (EntryType.DEVICE, " fp"),
        (EntryType.DEVICE, "fp\n"),
        (EntryType.DEVICE, ""),
    ],
)
def test_what_is_no_such_value_has_no_canonical_form(kind: EntryType, sent: str) -> None:
    assert canonical_value(kind, sent) is None


@pytest.mark.parametrize("sent", ["203.0.113.7/24", "2001:db8::1/32", "::ffff:203.0.113.7/120", "1.0.0.0/0"])
def test_a_range_that_is_written_with_an_address_inside_it_is_refused(sent: str) -> None:
    with pytest.raises(HostBits):
        canonical_value(EntryType.IP, sent)


def test_an_entry_of_a_device_matches_its_fingerprint_or_its_external_id_once() -> None:
    entry = ListEntry(
        id="lst_1",
        tenant="ten_1",
        type=EntryType.DEVICE,
        value="fp-77",
        list_type=ListType.BLOCK,
        reason=None,
        expires_at_ms=None,
        created_at_ms=0,
        updated_at_ms=0,
    )
    book = ListBook([entry])
    for device in ({"fingerprint": "fp-77"}, {"device_id": "fp-77"}):
        assert book.match(Event(name="x", **device), 1) == (entry,)
    assert book.match(Event(name="x", fingerprint="fp-77", device_id="fp-77"), 1) == (entry,)
    assert book.match(Event(name="x", fingerprint="a", device_id="b"), 1) == ()


addresses = st.one_of(st.ip_addresses(v=4), st.ip_addresses(v=6))


@given(addresses, st.integers(0, 128), addresses)
def test_a_range_matches_exactly_the_addresses_that_lie_in_it(
    base: ipaddress.IPv4Address | ipaddress.IPv6Address,
    length: int,
    asked: ipaddress.IPv4Address | ipaddress.IPv6Address,
) -> None:
    if base.version == 6 and base.ipv4_mapped:
        return
    network = ipaddress.ip_network((base, min(length, base.max_prefixlen)), strict=False)
    value = canonical_value(EntryType.IP, str(network))
    assert value is not None
    book = ListBook([entry("lst_1", value)])
    for address in (asked, network.network_address, network.broadcast_address):
        if address.version == 6 and address.ipv4_mapped:
            continue
        event = Event(name="x", ip=canonical_value(EntryType.IP, str(address)))
        expected = address.version == network.version and address in network
        assert bool(book.match(event, 0)) == expected


@given(
    st.lists(
        st.tuples(
            st.sampled_from("abcd"), st.sampled_from(["1.1.1.1", "1.1.1.0/24", "1.1.0.0/16", "2.2.2.2"])
        )
    )
)
def test_a_book_holds_what_a_plain_list_of_entries_holds(steps: list[tuple[str, str]]) -> None:
    book, plain = ListBook(), {}
    for name, value in steps:
        if name in plain:
            book.drop(name)
            del plain[name]
        else:
            plain[name] = entry(name, value)
            book.put(plain[name])
        matched = {found.id for found in book.match(Event(name="x", ip="1.1.1.1"), 0)}
        assert matched == {name for name, one in plain.items() if one.value != "2.2.2.2"}
        assert len(book) == len(plain)


def test_an_expired_entry_does_not_match() -> None:
    book = ListBook([entry("lst_1", "1.1.1.1", expires_at_ms=1_000)])
    event = Event(name="x", ip="1.1.1.1")
    assert book.match(event, 999)
    assert not book.match(event, 1_000)


def test_an_event_matches_by_ip_fingerprint_and_email() -> None:
    book = ListBook(
        [
            entry("lst_ip", "1.1.1.1"),
            entry("lst_fp", "fp", EntryType.DEVICE),
            entry("lst_mail", "a@example.com", EntryType.EMAIL),
        ]
    )
    event = Event(name="x", ip="1.1.1.1", fingerprint="fp", email="a@example.com")
    assert {found.id for found in book.match(event, 0)} == {"lst_ip", "lst_fp", "lst_mail"}
    assert not book.match(Event(name="x", ip="fp", fingerprint="1.1.1.1"), 0)


def test_block_wins_over_allow() -> None:
    block = entry("lst_1", "1.1.1.1")
    allow = entry("lst_2", "fp", EntryType.DEVICE, list_type=ListType.ALLOW)
    assert winning_list([allow, block]) is ListType.BLOCK
    assert winning_list([allow]) is ListType.ALLOW
    assert winning_list([]) is None
