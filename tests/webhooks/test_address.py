"""Nothing that only this machine or its network can reach is subscribed, or connected to."""

import asyncio
import contextlib
import ipaddress
import socket
import ssl
import subprocess
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.webhooks.names import name_server
from tests.webhooks.receivers import receiving
from vettance.webhooks.http_client import WebhookClient
from vettance.webhooks.receiver_address import (
    AddressForbidden,
    ReceiverTarget,
    check_address,
    check_receiver,
    is_own,
    read_target,
)
from vettance.webhooks.webhook import AttemptFailure

HOSTILE = [
    line
    for line in (Path(__file__).parent / "hostile_addresses.txt").read_text("utf-8").splitlines()
    if line and not line.startswith("# ")
]
UNPRINTABLE = [
    "https://hooks.example.com/\r\nHost: internal",
    "https://a\tb.example/",
    " https://hooks.example.com/",
    "https://hooks.example.com/\x00",
    "",
]


@pytest.mark.parametrize("url", [*HOSTILE, *UNPRINTABLE])
def test_a_hostile_url_is_refused(url: str) -> None:
    with pytest.raises(AddressForbidden):
        read_target(url)


@pytest.mark.parametrize(
    ("url", "target"),
    [
        ("https://hooks.example.com", ReceiverTarget("https", "hooks.example.com", 443, "/")),
        (
            "HTTPS://Hooks.Example.COM/In?a=1&b=%20",
            ReceiverTarget("https", "hooks.example.com", 443, "/In?a=1&b=%20"),
        ),
        ("https://hooks.example.com?x=1", ReceiverTarget("https", "hooks.example.com", 443, "/?x=1")),
        ("https://hooks.example.com:8443/in", ReceiverTarget("https", "hooks.example.com", 8443, "/in")),
        ("https://xn--bcher-kva.example/", ReceiverTarget("https", "xn--bcher-kva.example", 443, "/")),
        ("https://8.8.8.8/", ReceiverTarget("https", "8.8.8.8", 443, "/")),
        ("https://[2606:4700:0:0::1111]/", ReceiverTarget("https", "2606:4700::1111", 443, "/")),
        ("https://[64:ff9b::8.8.8.8]/", ReceiverTarget("https", "64:ff9b::808:808", 443, "/")),
        ("https://receiver.test/", ReceiverTarget("https", "receiver.test", 443, "/")),
    ],
)
def test_an_ordinary_url_is_taken_apart(url: str, target: ReceiverTarget) -> None:
    assert read_target(url) == target


def test_the_host_header_names_the_port_only_where_it_is_not_the_usual_one() -> None:
    assert read_target("https://a.example:8443/").authority == "a.example:8443"
    assert read_target("https://a.example:443/").authority == "a.example"
    assert read_target("https://[2606:4700::1111]:8443/").authority == "[2606:4700::1111]:8443"


@given(st.ip_addresses())
def test_no_address_is_connected_to_that_the_standard_library_knows_as_special(address: Any) -> None:
    special = address.is_private or address.is_loopback or address.is_link_local or address.is_multicast
    if special or address.is_reserved or address.is_unspecified:
        # What holds an IPv4 address is judged by it: the next test.
        holds = any(address in ipaddress.ip_network(text) for text in ("64:ff9b::/96", "::ffff:0:0/96"))
        if not holds:
            with pytest.raises(AddressForbidden):
                check_address(str(address))


@given(st.ip_addresses(v=4))
def test_an_ipv4_address_is_judged_alike_in_its_ipv6_disguises(address: ipaddress.IPv4Address) -> None:
    def taken(text: str) -> bool:
        try:
            check_address(text)
        except AddressForbidden:
            return False
        return True

    plain = taken(str(address))
    assert taken(f"::ffff:{address}") == plain
    assert taken(f"64:ff9b::{address}") == plain
    assert not taken(f"::{address}")
    assert not taken(str(ipaddress.IPv6Address(0x2002 << 112 | int(address) << 80)))


async def test_a_name_that_leads_to_this_machine_is_refused_at_the_socket() -> None:
    """DNS rebinding: the name was fine when subscribing and says something else now."""
    async with receiving() as receiver:
        with name_server() as server:
            postman = WebhookClient(name_servers=[server.address])
            outcome = await postman.post(f"https://hooks.example.com:{max(receiver.port, 1024)}/", (), b"{}")
            await postman.close()
        assert outcome.failure is AttemptFailure.ADDRESS
        assert receiver.connections == 0


def test_an_address_of_this_host_is_known_in_every_spelling_and_others_are_not_taken_for_it() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        # What this host would be seen as from outside; on one without a network it is 127.0.0.1.
        with contextlib.suppress(OSError):
            probe.connect(("93.184.216.34", 9))
        ours = ipaddress.IPv4Address(probe.getsockname()[0])
    for own in (ours, ipaddress.IPv4Address("127.0.0.1")):
        if int(own):
            assert is_own(str(own))
            assert is_own(f"::ffff:{own}")
            assert is_own(str(ipaddress.IPv6Address(0x64FF9B << 96 | int(own))))
    for other in ("93.184.216.34", "::ffff:93.184.216.34", "64:ff9b::5db8:d822", "2606:2800:220:1::1"):
        assert not is_own(other)
        check_receiver(other)
    with pytest.raises(AddressForbidden):
        check_receiver("127.0.0.1")
    check_receiver("127.0.0.1", unsafe=True)


@pytest.mark.parametrize("url", ["http://127.0.0.1:9/", "https://127.0.0.1/", "https://[::1]/"])
async def test_a_forbidden_url_in_the_store_is_not_connected_to_either(url: str) -> None:
    postman = WebhookClient()
    assert (await postman.post(url, (), b"{}")).failure is AttemptFailure.ADDRESS
    await postman.close()


@pytest.fixture
def certificate(tmp_path: Path) -> tuple[Path, Path]:
    """A certificate for `localhost` that nobody trusts, and its key."""
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
         "-keyout", str(key), "-out", str(certificate), "-days", "2", "-subj", "/CN=localhost",
         "-addext", "subjectAltName=DNS:localhost"],
        check=True, capture_output=True,
    )  # fmt: skip
    return certificate, key


async def test_the_certificate_must_be_the_receivers(certificate: tuple[Path, Path]) -> None:
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(*certificate)
    trusting = ssl.create_default_context(cafile=str(certificate[0]))
    async with receiving(tls=server) as receiver:
        for trust, host, failure in (
            (trusting, "localhost", None),
            (trusting, "127.0.0.1", AttemptFailure.TLS),
            (None, "localhost", AttemptFailure.TLS),
        ):
            postman = WebhookClient(unsafe=True, trust=trust)
            outcome = await postman.post(f"https://{host}:{receiver.port}/", (), b"{}")
            await postman.close()
            assert outcome.failure is failure
        assert len(receiver.received) == 1


async def test_attempts_that_begin_together_read_the_certificates_of_the_system_once(
    certificate: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(*certificate)
    read: list[ssl.SSLContext] = []
    make = ssl.create_default_context

    def counted() -> ssl.SSLContext:
        read.append(make())
        return read[-1]

    monkeypatch.setattr(ssl, "create_default_context", counted)
    async with receiving(tls=server) as receiver:
        postman = WebhookClient(unsafe=True)
        attempts = (postman.post(f"https://localhost:{receiver.port}/", (), b"{}") for _ in range(20))
        outcomes = await asyncio.gather(*attempts)
        await postman.close()
    assert {one.failure for one in outcomes} == {AttemptFailure.TLS}
    assert len(read) == 1
