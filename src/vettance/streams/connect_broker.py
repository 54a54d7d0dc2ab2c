"""Builds the source or the sink of an address; the client of a broker is imported only when it is used."""

from vettance.streams.broker import MessageSink, MessageSource
from vettance.streams.stream_address import StreamAddress

#: Unconfirmed messages, in batches: the next one is on its way while one is taken into the store.
_BATCHES_IN_FLIGHT = 2


class MissingClient(Exception):
    """The client of a broker is not installed; the text says how to install it."""


def source_of(address: StreamAddress, consumer: str, batch: int) -> MessageSource:
    """Return where messages come from. Raises `MissingClient`."""
    in_flight = batch * _BATCHES_IN_FLIGHT
    try:
        if address.scheme in ("nats", "tls"):
            from vettance.streams.nats_stream import NatsSource

            return NatsSource(address, consumer, in_flight)
        if address.scheme in ("amqp", "amqps"):
            from vettance.streams.amqp_stream import AmqpSource

            return AmqpSource(address, in_flight)
        from vettance.streams.kafka_stream import KafkaSource

        return KafkaSource(address, consumer)
    except ImportError:
        raise _missing() from None


def sink_of(address: StreamAddress) -> MessageSink:
    """Return where messages go. Raises `MissingClient`."""
    try:
        if address.scheme in ("nats", "tls"):
            from vettance.streams.nats_stream import NatsSink

            return NatsSink(address)
        if address.scheme in ("amqp", "amqps"):
            from vettance.streams.amqp_stream import AmqpSink

            return AmqpSink(address)
        from vettance.streams.kafka_stream import KafkaSink

        return KafkaSink(address)
    except ImportError:
        raise _missing() from None


def _missing() -> MissingClient:
    return MissingClient("Streams need an extra: pip install 'vettance[streams]'")
