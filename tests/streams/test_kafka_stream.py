"""Kafka's protocol against the broker for tests that librdkafka holds: no broker, but its client in earnest.

With a real broker, named by VETTANCE_TEST_KAFKA, `test_consume.py` does what it does with the others.
"""

import secrets
from collections.abc import Iterator

import pytest
from confluent_kafka import Producer

from tests.streams.brokers import KafkaBroker, login
from vettance.streams.broker import BrokerDown, OutgoingMessage
from vettance.streams.kafka_stream import KafkaSink, KafkaSource
from vettance.streams.stream_address import read_stream_address
from vettance.streams.stream_message import StreamMessage

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def servers() -> Iterator[str]:
    """The address of a broker for tests; it lives as long as the producer that holds it."""
    holder = Producer({"test.mock.num.brokers": 1, "log_level": 0})
    found = holder.list_topics(timeout=10).brokers.values()
    yield ",".join(f"{one.host}:{one.port}" for one in found)
    holder.flush(1)


def source_of(address: str, name: str) -> KafkaSource:
    """A source whose group soon takes a member that left for gone: this broker does not see it leave."""
    return KafkaSource(read_stream_address(f"{address}?session.timeout.ms=3000"), name)


async def fetch(source: KafkaSource, count: int) -> list[StreamMessage]:
    """Fetch until so many are there; joining a group takes some seconds."""
    found: list[StreamMessage] = []
    for _ in range(120):
        found += await source.fetch(count - len(found), 0.25)
        if len(found) >= count:
            break
    return found


async def test_messages_are_delivered_until_they_are_confirmed(servers: str) -> None:
    broker = KafkaBroker(servers)
    broker.send([login(n) for n in range(30)], [f"e{n}" for n in range(30)])
    first = source_of(broker.events, "c")
    await first.open()
    messages = await fetch(first, 30)
    assert sorted(one.headers["event-id"] for one in messages) == sorted(f"e{n}" for n in range(30))
    assert {one.key for one in messages} == {f"e{n}" for n in range(30)}
    assert len({one.position for one in messages}) == 30
    assert {one.id for one in messages} == {None}
    await first.close()  # Nothing was confirmed.
    second = source_of(broker.events, "c")
    await second.open()
    again = await fetch(second, 30)
    assert {one.position for one in again} == {one.position for one in messages}
    await second.confirm(again)
    await second.close()
    third = source_of(broker.events, "c")
    await third.open()
    broker.send([login(30)], ["e30"])
    assert [one.headers["event-id"] for one in await fetch(third, 1)] == ["e30"]
    await third.close()


async def test_results_arrive_with_their_ids(servers: str) -> None:
    name = f"test-{secrets.token_hex(6)}"
    address = read_stream_address(f"kafka://{servers}/{name}")
    sink = KafkaSink(address)
    await sink.open()
    await sink.send(
        [OutgoingMessage(f"job_{n}", f"e{n}", b"{}", {"Vettance-Reason": "x"}) for n in range(20)]
    )
    await sink.close()
    source = source_of(f"kafka://{servers}/{name}", "reader")
    await source.open()
    found = await fetch(source, 20)
    assert {one.headers["message-id"] for one in found} == {f"job_{n}" for n in range(20)}
    assert {one.headers["vettance-reason"] for one in found} == {"x"}
    assert {one.key for one in found} == {f"e{n}" for n in range(20)}
    await source.close()


async def test_a_broker_that_is_not_there_is_said_so() -> None:
    source = KafkaSource(
        read_stream_address("kafka://127.0.0.1:1/x?socket.connection.setup.timeout.ms=1000"), "c"
    )
    with pytest.raises(BrokerDown):
        await source.open()


async def test_a_setting_that_there_is_not_is_refused() -> None:
    source = KafkaSource(read_stream_address("kafka://127.0.0.1:1/x?no.such.setting=1"), "c")
    with pytest.raises(BrokerDown, match=r"no\.such\.setting"):
        await source.open()
