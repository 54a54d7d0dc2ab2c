"""NATS JetStream: messages pulled by a durable consumer, results published with an id for its deduplication.

<https://docs.nats.io/nats-concepts/jetstream/consumers>,
<https://docs.nats.io/using-nats/developer/develop_jetstream/model_deep_dive#message-deduplication>
"""

import asyncio
import contextlib
from collections.abc import Sequence
from typing import Any, Final

import nats
import nats.errors
import nats.js.errors
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.js.client import JetStreamContext

from vettance.streams.broker import BrokerDown, OutgoingMessage
from vettance.streams.stream_address import StreamAddress
from vettance.streams.stream_message import StreamMessage

_CONNECT_S: Final = 5.0
_AGAIN_S: Final = 0.1
#: When a message is delivered again that was fetched and not confirmed; `ack_wait` in the address.
_ACK_WAIT_S: Final = 30.0
_ID: Final = "Nats-Msg-Id"
_FAULTS: Final = (nats.errors.Error, nats.js.errors.Error, OSError, asyncio.TimeoutError)
#: Messages under way to the broker at one time.
_SENDING_MAX: Final = 256


def _told(error: BaseException) -> str:
    text = " ".join(str(error).split()) or type(error).__name__
    return text.removeprefix("nats: ")


async def _connect(address: StreamAddress) -> Client:
    async def ignore(_error: Exception) -> None:
        """What matters is raised by the call that it concerns."""

    try:
        return await nats.connect(
            address.server,
            allow_reconnect=False,
            max_reconnect_attempts=1,  # Of a first connection; otherwise it is tried for ever.
            reconnect_time_wait=_AGAIN_S,
            connect_timeout=int(_CONNECT_S),
            error_cb=ignore,
            name="vettance",
        )
    except _FAULTS as error:
        raise BrokerDown(_told(error)) from None


async def _disconnect(client: Client | None) -> None:
    if client is not None:
        with contextlib.suppress(*_FAULTS):
            async with asyncio.timeout(_CONNECT_S):
                await client.close()


class NatsSource:
    """A stream, or what it holds of a subject (`?subject=`)."""

    quiet_s = 1.0

    def __init__(self, address: StreamAddress, consumer: str, in_flight: int) -> None:
        self._address = address
        self._durable = f"vettance-{consumer}"
        self._in_flight = in_flight
        self._client: Client | None = None
        self._pulled: JetStreamContext.PullSubscription | None = None

    async def open(self) -> None:
        """Connect, and make the durable consumer where there is none."""
        options = self._address.options
        subject = options.get("subject", "")
        self._client = await _connect(self._address)
        config = nats.js.api.ConsumerConfig(
            ack_policy=nats.js.api.AckPolicy.EXPLICIT,
            deliver_policy=nats.js.api.DeliverPolicy.ALL,
            ack_wait=float(options.get("ack_wait", _ACK_WAIT_S)),
            max_ack_pending=self._in_flight,
            filter_subject=subject or None,
        )
        try:
            self._pulled = await self._client.jetstream().pull_subscribe(
                subject, durable=self._durable, stream=self._address.name, config=config
            )
        except nats.js.errors.NotFoundError:
            raise BrokerDown(f"there is no stream {self._address.name}") from None
        except _FAULTS as error:
            raise BrokerDown(_told(error)) from None

    async def fetch(self, limit: int, wait_s: float) -> list[StreamMessage]:
        """Pull some messages."""
        assert self._pulled is not None
        assert self._client is not None
        try:
            return [_message_of(one) for one in await self._pulled.fetch(limit, wait_s)]
        except (TimeoutError, nats.errors.TimeoutError):
            if self._client.is_connected:
                return []
            raise BrokerDown("the connection ended") from None
        except _FAULTS as error:
            raise BrokerDown(_told(error)) from None

    async def confirm(self, taken: Sequence[StreamMessage]) -> None:
        """Acknowledge each message."""
        assert self._client is not None
        try:
            for one in taken:
                await one.receipt.ack()
            await self._client.flush(int(_CONNECT_S))
        except _FAULTS as error:
            raise BrokerDown(_told(error)) from None

    async def close(self) -> None:
        """Disconnect."""
        await _disconnect(self._client)


def _message_of(one: Msg) -> StreamMessage:
    about = one.metadata
    headers = {name.lower(): value for name, value in (one.headers or {}).items()}
    # A stream that was removed and made anew counts from 1 again; it cannot have the same moments.
    position = f"{about.stream}:{about.sequence.stream}:{about.timestamp.timestamp():.6f}"
    return StreamMessage(one.data, headers.get(_ID.lower()), position, headers, None, one)


class NatsSink:
    """A subject of some stream."""

    def __init__(self, address: StreamAddress) -> None:
        self._address = address
        self._client: Client | None = None

    async def open(self) -> None:
        """Connect."""
        self._client = await _connect(self._address)

    async def send(self, messages: Sequence[OutgoingMessage]) -> None:
        """Publish messages. A stream knows an id that it has met within its `duplicate_window` again."""
        assert self._client is not None
        context = self._client.jetstream(publish_async_max_pending=_SENDING_MAX)
        try:
            acks = [await self._begin(context, one) for one in messages]
            async with asyncio.timeout(_CONNECT_S + len(messages) / 100):
                await asyncio.gather(*acks)
        except nats.js.errors.NoStreamResponseError:
            raise BrokerDown(f"no stream takes the subject {self._address.name}") from None
        except _FAULTS as error:
            raise BrokerDown(_told(error)) from None

    async def _begin(self, context: JetStreamContext, one: OutgoingMessage) -> "asyncio.Future[Any]":
        headers = {**one.headers, _ID: one.id}
        return await context.publish_async(self._address.name, one.body, _CONNECT_S, headers=headers)

    async def close(self) -> None:
        """Disconnect."""
        await _disconnect(self._client)
