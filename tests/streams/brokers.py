"""Brokers for tests: those that run here, with streams and queues of the test's own, removed at its end."""

import asyncio
import functools
import json
import os
import secrets
from collections.abc import Sequence
from typing import Any, Protocol

import aiormq
import nats
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient, NewTopic
from pamqp.commands import Basic

NATS = os.environ.get("VETTANCE_TEST_NATS", "nats://127.0.0.1:4222")
AMQP = os.environ.get("VETTANCE_TEST_AMQP", "amqp://guest:guest@127.0.0.1:5672")
#: No broker of Kafka is looked for by itself: it is no package of Debian.
KAFKA = os.environ.get("VETTANCE_TEST_KAFKA")

Taken = tuple[bytes, dict[str, str], str | None]


class Broker(Protocol):
    """One broker with places for events, results and dead letters."""

    events: str
    results: str
    dead: str

    def open(self) -> None: ...
    def close(self) -> None: ...
    def send(self, bodies: Sequence[bytes], ids: Sequence[str | None]) -> None: ...
    def read(self, place: str) -> list[Taken]:
        """Everything that is there: bodies, headers and ids."""
        ...

    def left(self) -> int | None:
        """How many events are not confirmed, where the broker tells."""
        ...


class NatsBroker:
    """A stream for events and one for what is sent."""

    def __init__(self) -> None:
        self._name = f"TEST_{secrets.token_hex(6)}"
        self.events = f"{NATS}/{self._name}?ack_wait=2"
        self.results = f"{NATS}/{self._name}.results"
        self.dead = f"{NATS}/{self._name}.dead"

    def open(self) -> None:
        asyncio.run(self._open())

    async def _open(self) -> None:
        async with await nats.connect(NATS) as client:
            context = client.jetstream()
            await context.add_stream(name=self._name, subjects=[f"{self._name}.events"])
            await context.add_stream(
                name=f"{self._name}_OUT", subjects=[f"{self._name}.{one}" for one in ("results", "dead")]
            )

    def close(self) -> None:
        asyncio.run(self._close())

    async def _close(self) -> None:
        async with await nats.connect(NATS) as client:
            for name in (self._name, f"{self._name}_OUT"):
                await client.jetstream().delete_stream(name)

    def send(self, bodies: Sequence[bytes], ids: Sequence[str | None]) -> None:
        asyncio.run(self._send(bodies, ids))

    async def _send(self, bodies: Sequence[bytes], ids: Sequence[str | None]) -> None:
        async with await nats.connect(NATS) as client:
            for body, name in zip(bodies, ids, strict=True):
                headers = None if name is None else {"Nats-Msg-Id": name}
                await client.publish(f"{self._name}.events", body, headers=headers)
            await client.flush()

    def read(self, place: str) -> list[Taken]:
        return asyncio.run(self._read(place.rpartition("/")[2]))

    async def _read(self, subject: str) -> list[Taken]:
        found: list[Taken] = []
        async with await nats.connect(NATS) as client:
            sub = await client.jetstream().subscribe(subject, ordered_consumer=True)
            while True:
                try:
                    one = await sub.next_msg(0.5)
                except nats.errors.TimeoutError:
                    return found
                headers = dict(one.headers or {})
                found.append((one.data, headers, headers.get("Nats-Msg-Id")))

    def left(self) -> int | None:
        return asyncio.run(self._left())

    async def _left(self) -> int:
        async with await nats.connect(NATS) as client:
            about = await client.jetstream().consumer_info(self._name, f"vettance-{self._name}")
            return (about.num_pending or 0) + (about.num_ack_pending or 0)


class RabbitBroker:
    """Three queues."""

    def __init__(self) -> None:
        self._name = f"test-{secrets.token_hex(6)}"
        self.events = f"{AMQP}/{self._name}"
        self.results = f"{AMQP}/{self._name}-results"
        self.dead = f"{AMQP}/{self._name}-dead"
        self._queues = [one.rpartition("/")[2] for one in (self.events, self.results, self.dead)]

    def open(self) -> None:
        asyncio.run(
            self._act(lambda channel: [channel.queue_declare(one, durable=True) for one in self._queues])
        )

    def close(self) -> None:
        asyncio.run(self._act(lambda channel: [channel.queue_delete(one) for one in self._queues]))

    async def _act(self, acts: Any) -> list[Any]:
        connection = await aiormq.connect(AMQP)
        try:
            channel = await connection.channel()
            return [await one for one in acts(channel)]
        finally:
            await connection.close()

    def send(self, bodies: Sequence[bytes], ids: Sequence[str | None]) -> None:
        asyncio.run(
            self._act(
                lambda channel: [
                    asyncio.gather(
                        *(
                            channel.basic_publish(
                                body,
                                routing_key=self._queues[0],
                                properties=Basic.Properties(message_id=name, delivery_mode=2),
                            )
                            for body, name in zip(bodies, ids, strict=True)
                        )
                    )
                ]
            )
        )

    def read(self, place: str) -> list[Taken]:
        return asyncio.run(self._read(place.rpartition("/")[2]))

    async def _read(self, queue: str) -> list[Taken]:
        found: list[Taken] = []
        connection = await aiormq.connect(AMQP)
        try:
            channel = await connection.channel()
            while (one := await channel.basic_get(queue)).delivery_tag is not None:
                about = one.header.properties
                found.append(
                    (
                        one.body,
                        {name: str(value) for name, value in (about.headers or {}).items()},
                        about.message_id,
                    )
                )
            return found  # Not acknowledged: they go back when the connection ends.
        finally:
            await connection.close()

    def left(self) -> int | None:
        (about,) = asyncio.run(
            self._act(lambda channel: [channel.queue_declare(self._queues[0], passive=True)])
        )
        count: int = about.message_count
        return count


class KafkaBroker:
    """Three topics of a real broker, or of the one for tests that librdkafka holds in its process."""

    def __init__(self, servers: str) -> None:
        self._servers = servers
        self._name = f"test-{secrets.token_hex(6)}"
        self.events = f"kafka://{servers}/{self._name}"
        self.results = f"kafka://{servers}/{self._name}-results"
        self.dead = f"kafka://{servers}/{self._name}-dead"
        self._topics = [one.rpartition("/")[2] for one in (self.events, self.results, self.dead)]

    def open(self) -> None:
        admin = AdminClient({"bootstrap.servers": self._servers})
        for made in admin.create_topics([NewTopic(one, 3, 1) for one in self._topics]).values():
            made.result(30)

    def close(self) -> None:
        admin = AdminClient({"bootstrap.servers": self._servers})
        for removed in admin.delete_topics(self._topics).values():
            removed.result(30)

    def send(self, bodies: Sequence[bytes], ids: Sequence[str | None]) -> None:
        producer = Producer({"bootstrap.servers": self._servers})
        for body, name in zip(bodies, ids, strict=True):
            headers: list[tuple[str, str | bytes | None]] = [] if name is None else [("event-id", name)]
            producer.produce(self._topics[0], body, key=name, headers=headers)
        assert not producer.flush(30)

    def read(self, place: str) -> list[Taken]:
        settings = {
            "bootstrap.servers": self._servers,
            "group.id": secrets.token_hex(6),
            "auto.offset.reset": "earliest",
        }
        consumer = Consumer(settings)
        consumer.subscribe([place.rpartition("/")[2]])
        found: list[Taken] = []
        waits = 40
        while waits:
            messages = consumer.consume(500, 0.5)
            waits = 4 if messages else waits - 1
            for one in messages:
                assert one.error() is None
                headers = {name: value.decode() for name, value in one.headers() or []}
                found.append((one.value(), headers, headers.get("message-id")))
        consumer.close()
        return found

    def left(self) -> int | None:
        return None


async def _ask_nats() -> None:
    async with await nats.connect(NATS, allow_reconnect=False, connect_timeout=2) as client:
        await client.jetstream().account_info()


async def _ask_rabbit() -> None:
    await (await aiormq.connect(AMQP)).close()


@functools.cache
def absence(kind: str) -> str | None:
    """Why there is no broker of a kind, or None when there is one."""
    if kind == "kafka":
        return None if KAFKA else "no broker of Kafka is named by VETTANCE_TEST_KAFKA"
    try:
        asyncio.run(_ask_nats() if kind == "nats" else _ask_rabbit())
    except (OSError, TimeoutError, nats.errors.Error, aiormq.exceptions.AMQPError) as error:
        return f"no {kind} here ({type(error).__name__})"
    return None


def broker(kind: str) -> Broker:
    """Return a broker of a kind that is here."""
    if kind == "nats":
        return NatsBroker()
    if kind == "amqp":
        return RabbitBroker()
    return KafkaBroker(KAFKA or "")


def login(number: int, **more: Any) -> bytes:
    """An event that can be decided."""
    body = {
        "eventName": "login.attempt",
        "customer": {"externalId": f"c{number % 97}"},
        "metadata": {"number": number},
    }
    return json.dumps({**body, **more}).encode()
