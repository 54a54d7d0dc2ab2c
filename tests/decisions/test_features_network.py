"""What an IP address tells, with and without files of addresses."""

import ipaddress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vettance.decisions.network import FileUnreadable, Network, kind_of_address
from vettance.events.ip_address import packed_ip


@pytest.mark.parametrize(
    ("address", "kind"),
    [
        ("10.0.0.1", "private"),
        ("172.31.255.255", "private"),
        ("172.32.0.0", "public"),
        ("192.168.1.1", "private"),
        ("127.0.0.1", "loopback"),
        ("100.64.0.1", "shared"),
        ("169.254.169.254", "link_local"),
        ("203.0.113.7", "documentation"),
        ("0.0.0.0", "reserved"),
        ("255.255.255.255", "reserved"),
        ("224.0.0.1", "multicast"),
        ("8.8.8.8", "public"),
        ("::1", "loopback"),
        ("::", "reserved"),
        ("fd00::1", "private"),
        ("fe80::1", "link_local"),
        ("2001:db8::1", "documentation"),
        ("2001:4860:4860::8888", "public"),
        ("::ffff:10.0.0.1", "private"),
        ("ff02::1", "multicast"),
    ],
)
def test_an_address_is_of_the_kind_its_registry_says(address: str, kind: str) -> None:
    assert Network().facts(address).kind == kind


@given(st.ip_addresses())
def test_a_public_address_is_what_the_standard_library_calls_global(address: Any) -> None:
    packed = packed_ip(str(address))
    assert packed is not None
    mapped = getattr(address, "ipv4_mapped", None)
    plain = mapped or ipaddress.ip_address(str(address))
    # Versions of the standard library disagree about this block of protocol assignments.
    disputed = plain.version == 4 and plain in ipaddress.ip_network("192.0.0.0/24")
    if plain.is_global and not plain.is_multicast and not plain.is_reserved and not disputed:
        assert kind_of_address(packed) == "public"


@pytest.mark.parametrize("text", ["", "localhost", "1.2.3", "1.2.3.4.5", "::g", "10.0.0.0/8", "\x00", "é"])
def test_what_is_no_address_is_invalid(text: str) -> None:
    assert not Network().facts(text).valid


class Records:
    """Stands in for a file of addresses, the far end of this module."""

    def __init__(self, found: dict[str, Any]) -> None:
        self.found = found

    def get(self, ip_address: str) -> Any:
        if ip_address == "9.9.9.1":
            raise RuntimeError("damaged record")
        if ip_address == "2600::1":
            raise ValueError("IPv6 in an IPv4 file")
        return self.found.get(ip_address)


def test_files_give_country_and_network_of_public_addresses_only() -> None:
    network = Network(
        Records({"8.8.8.8": {"country": {"iso_code": "US"}}, "10.0.0.1": {"country": {"iso_code": "US"}}}),
        Records(
            {
                "8.8.8.8": {
                    "autonomous_system_number": 24940,
                    "autonomous_system_organization": "Hetzner Online GmbH",
                }
            }
        ),
    )
    facts = network.facts("8.8.8.8")
    assert (facts.country, facts.asn, facts.hosting) == ("US", 24940, True)
    assert network.facts("10.0.0.1").country is None
    assert network.facts("9.9.9.9").hosting is None
    assert network.facts("2600::1").country is None
    assert network.facts("9.9.9.1").country is None


def test_flat_records_of_other_publishers_are_read_too() -> None:
    network = Network(
        Records({"8.8.8.8": {"country_code": "fr"}}),
        Records({"8.8.8.8": {"asn": "AS3215", "as_name": "Orange S.A."}}),
    )
    facts = network.facts("8.8.8.8")
    assert (facts.country, facts.asn, facts.hosting) == ("FR", 3215, False)


def test_records_of_any_other_form_are_passed_over() -> None:
    network = Network(Records({"8.8.8.8": ["x"]}), Records({"8.8.8.8": {"asn": "ASx", "name": 3}}))
    facts = network.facts("8.8.8.8")
    assert (facts.country, facts.asn, facts.organisation, facts.hosting) == (None, None, None, None)


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    damaged = tmp_path / "damaged.mmdb"
    damaged.write_bytes(b"nothing of the kind")
    for path in (damaged, tmp_path / "absent.mmdb"):
        with pytest.raises(FileUnreadable, match=path.name):
            Network(path)


def encoded(value: Any) -> bytes:
    """Encode a value as the MaxMind DB File Format Specification 2.0 says (sizes below 285 only)."""
    if isinstance(value, str):
        if len(value) >= 29:
            return bytes([2 << 5 | 29, len(value) - 29]) + value.encode()
        return bytes([2 << 5 | len(value)]) + value.encode()
    if isinstance(value, int):
        return bytes([6 << 5 | 4]) + value.to_bytes(4, "big")
    if isinstance(value, bytes):  # An unsigned integer of 2 or 8 bytes, as the metadata wants them.
        return (bytes([5 << 5 | 2]) if len(value) == 2 else bytes([8, 9 - 7])) + value
    if isinstance(value, list):
        return bytes([len(value), 11 - 7]) + b"".join(map(encoded, value))
    parts = b"".join(encoded(name) + encoded(member) for name, member in value.items())
    return bytes([7 << 5 | len(value)]) + parts


def write_records(path: Path, network: str, record: dict[str, Any]) -> Path:
    """Write a file that holds one network: a node for each bit of it, its record, the metadata."""
    block = ipaddress.ip_network(network)
    bits, nodes = int(block.network_address) >> (32 - block.prefixlen), block.prefixlen
    tree = b""
    for depth in range(nodes):
        following = depth + 1 if depth + 1 < nodes else nodes + 16
        pair = [nodes, nodes]
        pair[bits >> (nodes - 1 - depth) & 1] = following
        tree += b"".join(pointer.to_bytes(3, "big") for pointer in pair)
    metadata = {
        "binary_format_major_version": (2).to_bytes(2, "big"),
        "binary_format_minor_version": (0).to_bytes(2, "big"),
        "build_epoch": (1_760_000_000).to_bytes(8, "big"),
        "database_type": "Test",
        "description": {"en": "Test"},
        "ip_version": (4).to_bytes(2, "big"),
        "languages": ["en"],
        "node_count": nodes,
        "record_size": (24).to_bytes(2, "big"),
    }
    marker = b"\xab\xcd\xefMaxMind.com"
    path.write_bytes(tree + bytes(16) + encoded(record) + marker + encoded(metadata))
    return path


def test_real_files_in_the_format_of_maxmind_are_read(tmp_path: Path) -> None:
    country = write_records(tmp_path / "country.mmdb", "8.8.8.0/24", {"country": {"iso_code": "US"}})
    asn = write_records(
        tmp_path / "asn.mmdb",
        "8.8.0.0/16",
        {"autonomous_system_number": 64496, "autonomous_system_organization": "Example Hosting"},
    )
    network = Network(country, asn)
    facts = network.facts("8.8.8.8")
    assert (facts.country, facts.asn, facts.organisation) == ("US", 64496, "Example Hosting")
    assert facts.hosting
    assert network.facts("9.9.9.9").country is None
    assert network.facts("2600::1").country is None
