"""AMQP 0.9.1 (RabbitMQ): messages of a queue, results with publisher confirms.

<https://www.rabbitmq.com/docs/confirms>
"""

import asyncio
import contextlib
import logging
from collections.abc import Sequence
from typing import Any, Final

import aiormq
import aiormq.exceptions
from aiormq.abc import AbstractChannel, AbstractConnection, DeliveredMessage
from pamqp.commands import Basic

from vettance.streams.broker import BrokerDown, OutgoingMessage
from vettance.streams.stream_address import StreamAddress
from vettance.streams.stream_message import StreamMessage

_CONNECT_S: Final = 10.0
_CONFIRM_S: Final = 30.0
_PERSISTENT: Final = 2
_FAULTS: Final = (aiormq.exceptions.AMQPError, OSError, asyncio.TimeoutError, RuntimeError)
# What the client writes of a connection that failed, it also raises.
logging.getLogger("aiormq").addHandler(logging.NullHandler())
#: Messages under way to the broker at one time.
_SENDING_MAX: Final = 256


def _told(error: BaseException) -> str:
    text = " ".join(str(one) for one in error.args if one is not None)
    return " ".join(text.split()) or type(error).__name__


class _Link:
    """A connection with one channel."""

    def __init__(self, address: StreamAddress) -> None:
        self._address = address
        self._connection: AbstractConnection | None = None

    async def open(self) -> AbstractChannel:
        try:
            async with asyncio.timeout(_CONNECT_S):
                self._connection = await aiormq.connect(self._address.server)
                return await self._connection.channel()
        except _FAULTS as error:
            raise BrokerDown(_told(error)) from None

    async def close(self) -> None:
        if self._connection is not None:
            with contextlib.suppress(*_FAULTS, asyncio.CancelledError):
                async with asyncio.timeout(_CONNECT_S):
                    await self._connection.close()


class AmqpSource:
    """A queue. It has no positions: only its producer can name a message."""

    quiet_s = 1.0

    def __init__(self, address: StreamAddress, in_flight: int) -> None:
        self._address = address
        self._link = _Link(address)
        self._in_flight = in_flight
        self._channel: AbstractChannel | None = None
        #: Bounded by the prefetch count, which the broker keeps.
        self._arrived: asyncio.Queue[DeliveredMessage] = asyncio.Queue()

    async def open(self) -> None:
        """Connect and have messages sent, no more than may be in flight."""
        self._channel = await self._link.open()
        self._arrived = asyncio.Queue()
        try:
            await self._channel.basic_qos(prefetch_count=self._in_flight, timeout=_CONNECT_S)
            await self._channel.basic_consume(self._address.name, self._arrived.put, timeout=_CONNECT_S)
        except _FAULTS as error:
            raise BrokerDown(_told(error)) from None

    async def fetch(self, limit: int, wait_s: float) -> list[StreamMessage]:
        """Return what has arrived, or wait for the first."""
        assert self._channel is not None
        try:
            async with asyncio.timeout(wait_s):
                first = await self._arrived.get()
        except TimeoutError:
            if self._channel.is_closed:
                raise BrokerDown("the connection ended") from None
            return []
        found = [first]
        while len(found) < limit and not self._arrived.empty():
            found.append(self._arrived.get_nowait())
        return [_message_of(one) for one in found]

    async def confirm(self, taken: Sequence[StreamMessage]) -> None:
        """Acknowledge everything up to the last message."""
        assert self._channel is not None
        try:
            await self._channel.basic_ack(taken[-1].receipt, multiple=True)
        except _FAULTS as error:
            raise BrokerDown(_told(error)) from None

    async def close(self) -> None:
        """Disconnect."""
        await self._link.close()


def _message_of(one: DeliveredMessage) -> StreamMessage:
    about = one.header.properties
    headers = {name.lower(): _text(value) for name, value in (about.headers or {}).items()}
    return StreamMessage(one.body, about.message_id, None, headers, None, one.delivery_tag)


def _text(value: Any) -> str:
    return value.decode(errors="replace") if isinstance(value, bytes) else str(value)


class AmqpSink:
    """A queue, or with `?exchange=` an exchange, of which the name is the routing key."""

    def __init__(self, address: StreamAddress) -> None:
        self._address = address
        self._link = _Link(address)
        self._channel: AbstractChannel | None = None
        self._places = asyncio.Semaphore(_SENDING_MAX)

    async def open(self) -> None:
        """Connect, with a channel that confirms."""
        self._channel = await self._link.open()

    async def send(self, messages: Sequence[OutgoingMessage]) -> None:
        """Publish messages, each of which has to reach a queue."""
        try:
            async with asyncio.timeout(_CONFIRM_S):
                await asyncio.gather(*map(self._publish, messages))
        except aiormq.exceptions.PublishError:
            raise BrokerDown(f"no queue takes messages for {self._address.name}") from None
        except _FAULTS as error:
            raise BrokerDown(_told(error)) from None

    async def _publish(self, one: OutgoingMessage) -> None:
        assert self._channel is not None
        properties = Basic.Properties(
            content_type="application/json",
            delivery_mode=_PERSISTENT,
            message_id=one.id,
            headers=dict(one.headers) or None,
        )
        async with self._places:
            await self._channel.basic_publish(
                one.body,
                exchange=self._address.options.get("exchange", ""),
                routing_key=self._address.name,
                properties=properties,
                mandatory=True,
            )

    async def close(self) -> None:
        """Disconnect."""
        await self._link.close()
