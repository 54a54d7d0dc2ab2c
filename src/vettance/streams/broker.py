"""The port of brokers: where messages come from, and where results go."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol

from vettance.streams.stream_message import StreamMessage


class BrokerDown(Exception):
    """A broker cannot be reached, refuses us, or has ended the connection. The text is a sentence part for
    people: what it said."""


class OutgoingMessage(NamedTuple):
    """A message to send. `id` is the same whenever it is sent again, `key` is what partitions go by."""

    id: str
    key: str
    body: bytes
    headers: Mapping[str, str]


class MessageSource(Protocol):
    """Delivers each message until the message is confirmed. Every call raises `BrokerDown`."""

    #: How long none may come although there are some.
    quiet_s: float

    async def open(self) -> None:
        """Connect and begin after the last message that was taken."""

    async def fetch(self, limit: int, wait_s: float) -> list[StreamMessage]:
        """Return up to so many messages, as soon as there are some; none when none came in that time."""

    async def confirm(self, taken: Sequence[StreamMessage]) -> None:
        """Tell the broker that messages are taken: all that the last `fetch` returned, or the first of them.

        When this is lost, they are delivered again.
        """

    async def close(self) -> None:
        """Disconnect; what was fetched and not confirmed is delivered again. Never raises."""


class MessageSink(Protocol):
    """Takes messages. Every call raises `BrokerDown`."""

    async def open(self) -> None:
        """Connect."""

    async def send(self, messages: Sequence[OutgoingMessage]) -> None:
        """Send messages; when this returns, the broker has confirmed that it keeps every one of them."""

    async def close(self) -> None:
        """Disconnect. Never raises."""
