"""Kafka: a consumer group whose offsets follow the store, and an idempotent producer, both of librdkafka.

Options of the address are settings of librdkafka, such as `?security.protocol=SASL_SSL`:
<https://github.com/confluentinc/librdkafka/blob/master/CONFIGURATION.md>
"""

import asyncio
import logging
from collections.abc import Sequence
from typing import Any, Final, cast

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition

from vettance.streams.broker import BrokerDown, OutgoingMessage
from vettance.streams.stream_address import StreamAddress
from vettance.streams.stream_message import StreamMessage

_CONNECT_S: Final = 10.0
_CONFIRM_S: Final = 30.0
_POLL_S: Final = 0.1
#: Another member of the group has the partitions now. It reads them again, and knows what was taken.
_MOVED: Final = frozenset(
    {
        KafkaError.ILLEGAL_GENERATION,
        KafkaError.REBALANCE_IN_PROGRESS,
        KafkaError.UNKNOWN_MEMBER_ID,
        KafkaError._NO_OFFSET,
        KafkaError._ASSIGNMENT_LOST,
    }
)
#: What librdkafka mends by itself while it goes on.
_PASSING: Final = frozenset(
    {
        KafkaError._PARTITION_EOF,
        KafkaError._TRANSPORT,
        KafkaError._MAX_POLL_EXCEEDED,
    }
)


def _silent() -> logging.Logger:
    """What matters to us is raised; what librdkafka writes by itself names hosts on standard error."""
    log = logging.getLogger("vettance.streams.kafka")
    log.addHandler(logging.NullHandler())
    log.propagate = False
    return log


def _told(error: KafkaException) -> str:
    said = error.args[0] if error.args else error
    return said.str() if isinstance(said, KafkaError) else str(said)


class KafkaSource:
    """The topics of a name (several with commas), read by the consumer group `vettance-NAME`."""

    #: Joining a group takes some seconds.
    quiet_s = 15.0

    def __init__(self, address: StreamAddress, consumer: str) -> None:
        self._address = address
        self._group = f"vettance-{consumer}"
        self._consumer: Consumer | None = None

    async def open(self) -> None:
        """Join the group and begin where its offsets are, at first with the oldest message."""
        settings: dict[str, Any] = {
            "auto.offset.reset": "earliest",
            "group.id": self._group,
            **self._address.options,
            "bootstrap.servers": self._address.server,
            "enable.auto.commit": False,
            "enable.auto.offset.store": False,
        }
        topics = self._address.name.split(",")

        def join() -> Consumer:
            consumer = Consumer(settings, logger=_silent())
            for topic in topics:
                known = consumer.list_topics(topic, timeout=_CONNECT_S).topics[topic]
                if known.error is not None:
                    consumer.close()
                    raise BrokerDown(f"topic {topic}: {known.error.str()}")
            consumer.subscribe(topics)
            return consumer

        self._consumer = await _off_the_loop(join)

    async def fetch(self, limit: int, wait_s: float) -> list[StreamMessage]:
        """Return what is there, or wait for the first."""
        assert self._consumer is not None
        consumer = self._consumer

        def take() -> list[Message]:
            found = consumer.consume(1, wait_s)
            return found + consumer.consume(limit - 1, 0.0) if found and limit > 1 else found

        messages = []
        for one in await _off_the_loop(take):
            fault = one.error()
            if fault is None:
                messages.append(_message_of(one))
            elif fault.code() not in _PASSING:
                raise BrokerDown(fault.str())
        return messages

    async def confirm(self, taken: Sequence[StreamMessage]) -> None:
        """Commit the offset after the last message of each partition."""
        assert self._consumer is not None
        consumer = self._consumer
        ends: dict[tuple[str, int], int] = {}
        for one in taken:
            topic, partition, offset = one.receipt
            ends[topic, partition] = max(offset + 1, ends.get((topic, partition), 0))
        offsets = [TopicPartition(*place, end) for place, end in ends.items()]

        def commit() -> None:
            try:
                consumer.commit(offsets=offsets, asynchronous=False)
            except KafkaException as error:
                if error.args[0].code() not in _MOVED:
                    raise

        await _off_the_loop(commit)

    async def close(self) -> None:
        """Leave the group."""
        if self._consumer is not None:
            await asyncio.to_thread(self._consumer.close)


def _message_of(one: Message) -> StreamMessage:
    topic, partition, offset = one.topic(), one.partition(), one.offset()
    sent = cast("list[tuple[str, str | bytes | None]]", one.headers() or [])
    headers = {name.lower(): _text(value) for name, value in sent}
    # A topic that was removed and made anew counts from 0 again; it cannot have the same moments.
    position = f"{topic}:{partition}:{offset}:{one.timestamp()[1]}"
    key = one.key()
    receipt = topic, partition, offset
    return StreamMessage(
        _bytes(one.value()), None, position, headers, None if key is None else _text(key), receipt
    )


def _bytes(value: str | bytes | None) -> bytes:
    return value.encode() if isinstance(value, str) else value or b""


def _text(value: str | bytes | None) -> str:
    return value.decode(errors="replace") if isinstance(value, bytes) else value or ""


class KafkaSink:
    """A topic."""

    def __init__(self, address: StreamAddress) -> None:
        self._address = address
        self._producer: Producer | None = None

    async def open(self) -> None:
        """Connect."""
        settings: dict[str, Any] = {
            **self._address.options,
            "bootstrap.servers": self._address.server,
            "enable.idempotence": True,
            "message.timeout.ms": int(_CONFIRM_S * 1000),
        }

        def connect() -> Producer:
            producer = Producer(settings, logger=_silent())
            known = producer.list_topics(self._address.name, timeout=_CONNECT_S).topics[self._address.name]
            if known.error is not None:
                raise BrokerDown(f"topic {self._address.name}: {known.error.str()}")
            return producer

        self._producer = await _off_the_loop(connect)

    async def send(self, messages: Sequence[OutgoingMessage]) -> None:
        """Produce messages and wait until all replicas that are in sync have them."""
        assert self._producer is not None
        producer = self._producer
        faults: list[KafkaError] = []

        def note(fault: KafkaError | None, _message: Message) -> None:
            if fault is not None:
                faults.append(fault)

        def produce() -> None:
            for one in messages:
                headers: list[tuple[str, str | bytes | None]] = [*one.headers.items(), ("message-id", one.id)]
                while True:
                    try:
                        producer.produce(
                            self._address.name,
                            value=one.body,
                            key=one.key,
                            headers=headers,
                            on_delivery=note,
                        )
                        break
                    except BufferError:
                        producer.poll(_POLL_S)
            if producer.flush(_CONFIRM_S):
                raise BrokerDown("it did not confirm in time")

        await _off_the_loop(produce)
        if faults:
            raise BrokerDown(faults[0].str())

    async def close(self) -> None:
        """Let go of the connection."""
        self._producer = None


async def _off_the_loop(act: Any) -> Any:
    """Run a call of the client, which blocks. Raises `BrokerDown`."""
    try:
        return await asyncio.to_thread(act)
    except KafkaException as error:
        raise BrokerDown(_told(error)) from None
