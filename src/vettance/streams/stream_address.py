"""Addresses of streams: which broker, which stream, queue or topic there, and how to reach it."""

import re
from collections.abc import Mapping
from typing import Final, NamedTuple
from urllib.parse import SplitResult, parse_qsl, quote, unquote, urlsplit

#: What a consumer may be called: brokers keep it, so that it is what all of them take.
_NAME: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")
_OTHERS: Final = re.compile(r"[^A-Za-z0-9_-]+")
#: The schemes, and what the last part of the path names at each broker.
SCHEMES: Final = {
    "nats": "stream (subject, where results go)",
    "tls": "stream (subject, where results go)",
    "amqp": "queue",
    "amqps": "queue",
    "kafka": "topic",
}


class StreamAddress(NamedTuple):
    """Where messages come from or go to.

    `server` is what the client of the broker takes; it may hold a password. `name` is the stream, subject,
    queue or topic, `options` what follows the question mark, and `shown` the address without its secrets.
    """

    scheme: str
    server: str
    name: str
    options: Mapping[str, str]
    shown: str

    def __str__(self) -> str:
        return self.shown


def read_stream_address(text: str) -> StreamAddress:
    """Read an address such as `nats://127.0.0.1:4222/EVENTS`.

    Raises `ValueError` with what is wrong; the text itself, which may hold a password, is not repeated.
    """
    try:
        parts = urlsplit(text)
        options = dict(parse_qsl(parts.query, keep_blank_values=True, strict_parsing=bool(parts.query)))
    except ValueError:
        raise ValueError("is not a URL") from None
    if parts.scheme not in SCHEMES:
        raise ValueError(f"must begin with one of {', '.join(f'{one}://' for one in SCHEMES)}")
    folder, _, last = parts.path.rpartition("/")
    name = unquote(last)
    if not parts.netloc.rpartition("@")[2] or not name:
        raise ValueError(f"must name a server and a {SCHEMES[parts.scheme]}: {parts.scheme}://HOST/NAME")
    if folder.strip("/") and not parts.scheme.startswith("amqp"):
        raise ValueError("must have one name after the server")
    place = parts.netloc.rpartition("@")[2]
    shown = f"{parts.scheme}://{place}{parts.path}"
    return StreamAddress(parts.scheme, _server(parts, folder), name, options, shown)


def _server(parts: SplitResult, folder: str) -> str:
    if parts.scheme == "kafka":
        return parts.netloc.rpartition("@")[2]
    if parts.scheme.startswith("amqp"):
        # The virtual host comes before the queue; most brokers have only the one called /.
        host = unquote(folder.removeprefix("/")) or "/"
        return f"{parts.scheme}://{parts.netloc}/{quote(host, safe='')}"
    return f"{parts.scheme}://{parts.netloc}"


def consumer_name(given: str | None, address: StreamAddress) -> str:
    """Return what a consumer is called: as it was given, else by its stream. Raises `ValueError`."""
    name = given if given is not None else _OTHERS.sub("-", address.name).strip("-")[:64] or "events"
    if not _NAME.fullmatch(name):
        raise ValueError("must be 1 to 64 letters, digits, hyphens and underscores")
    return name
