"""What a message of a stream is taken for: its id, its reason when it is none, its address."""

import json

import pytest

from tests.streams.brokers import login
from vettance.jobs.sql import JobKind
from vettance.streams.stream_address import consumer_name, read_stream_address
from vettance.streams.stream_message import (
    IdRule,
    ReadMessage,
    StreamMessage,
    other_content,
    read_id_rule,
    read_message,
)

NOW_MS = 1_790_000_000_000


def message(
    body: bytes,
    sent_id: str | None = None,
    position: str | None = None,
    key: str | None = None,
    **headers: str,
) -> StreamMessage:
    return StreamMessage(body, sent_id, position, headers, key, None)


def read(
    one: StreamMessage, rule: str | None = None, kind: JobKind = JobKind.FRAUD, name: str = "c"
) -> ReadMessage:
    return read_message(one, kind, name, read_id_rule(rule), NOW_MS)


def code(one: ReadMessage) -> str | None:
    return None if one.refusal is None else json.loads(one.refusal)["code"]


def test_a_message_is_known_by_the_id_of_its_producer_then_by_its_position() -> None:
    named, placed = read(message(login(1), "e1", "S:7")), read(message(login(1), None, "S:7"))
    assert (named.shown, placed.shown) == ("e1", "S:7")
    assert read(message(login(1), "e1", "S:8")).key == named.key, "the position does not matter"
    assert read(message(login(1), "S:7")).key != placed.key, "an id cannot be taken for a position"
    assert read(message(login(1), "e1"), name="d").key != named.key, "each consumer takes it"
    assert named.refusal is None
    assert named.sent == login(1)


@pytest.mark.parametrize(
    ("rule", "shown"),
    [("member:metadata.number", "5"), ("member:metadata.none", "S:7"), ("header:x-id", "h"), ("key", "k")],
)
def test_the_id_stands_where_it_is_said_to(rule: str, shown: str) -> None:
    one = StreamMessage(login(5), "e1", "S:7", {"x-id": "h"}, "k", None)
    assert read(one, rule).shown == shown


def test_an_event_of_aml_is_known_by_its_own_id() -> None:
    body = {
        "externalEventId": "tx-1",
        "eventName": "transaction.wire",
        "customerId": "c",
        "amount": 5,
        "currency": "EUR",
    }
    one = read(message(json.dumps(body).encode(), "other"), kind=JobKind.AML)
    assert one.shown == "tx-1", one.refusal


def test_a_message_that_nothing_names_is_refused_with_what_to_do() -> None:
    one = read(message(login(1)))
    assert code(one) == "UNPROCESSABLE_ENTITY" or "--id" in json.loads(one.refusal or b"")["message"]
    assert one.key == read(message(login(1))).key
    assert one.key != read(message(login(2))).key


@pytest.mark.parametrize(
    "body",
    [b"", b"nonsense", b"[]", b'{"eventName": 1}', b'{"a":"\\u0000"}', b"\xff\xfe", b'"' + b"x" * 1_100_000],
)
def test_what_is_no_event_is_refused_and_never_raises(body: bytes) -> None:
    one = read(message(body, "e1"))
    assert one.refusal is not None
    assert len(one.sent) <= max(4_096, len(body) if len(body) < 1_000_000 else 0)


def test_a_refused_message_does_not_take_the_id_of_the_mended_one() -> None:
    bad, good = read(message(b"{}", "e1")), read(message(login(1), "e1"))
    assert bad.key != good.key
    assert bad.key == read(message(b"{}", "e1")).key
    assert good.refused(other_content()).key != good.key


@pytest.mark.parametrize("sent_id", ["x" * 201, "a\nb", "ä", "\x00"])
def test_an_odd_id_is_shown_by_its_digest(sent_id: str) -> None:
    assert read(message(login(1), sent_id)).shown.startswith("sha256:")


@pytest.mark.parametrize("text", ["member:", "header:", "key:x", "body", ""])
def test_a_rule_that_names_nothing_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="must be member"):
        read_id_rule(text)


def test_no_rule_is_the_default() -> None:
    assert read_id_rule(None) == IdRule()


@pytest.mark.parametrize(
    ("text", "server", "name"),
    [
        ("nats://u:p@h:4222/EVENTS?ack_wait=5", "nats://u:p@h:4222", "EVENTS"),
        ("amqp://u:p@h/queue", "amqp://u:p@h/%2F", "queue"),
        ("amqps://h:5671/vhost/a%2Fb", "amqps://h:5671/vhost", "a/b"),
        ("kafka://a:1,b:2/logins?security.protocol=SSL", "a:1,b:2", "logins"),
    ],
)
def test_an_address_names_a_server_and_a_stream(text: str, server: str, name: str) -> None:
    address = read_stream_address(text)
    assert (address.server, address.name) == (server, name)
    assert "p@" not in address.shown
    assert "?" not in address.shown


@pytest.mark.parametrize(
    "text",
    ["", "EVENTS", "http://h/x", "nats://h", "nats://h/", "nats:///x", "nats://h/a/b", "kafka://h/a?x"],
)
def test_an_address_that_leads_nowhere_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"must|is not"):
        read_stream_address(text)


def test_a_consumer_is_called_by_its_stream() -> None:
    assert consumer_name(None, read_stream_address("nats://h/orders.eu.>")) == "orders-eu"
    assert consumer_name("mine", read_stream_address("nats://h/x")) == "mine"
    with pytest.raises(ValueError, match="letters"):
        consumer_name("a.b", read_stream_address("nats://h/x"))


def test_an_address_is_shown_without_its_password() -> None:
    address = read_stream_address("amqp://shop:secret-word@127.0.0.1:5672/events")
    assert "secret-word" in address.server
    assert "secret-word" not in str(address)
