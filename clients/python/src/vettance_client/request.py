"""One request, made ready to be sent; nothing here knows how."""

import os
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote

import msgspec

from vettance_client.endpoint import Endpoint, Repeat, Reply
from vettance_client.errors import UnreadableAnswer

VERSION = "0.2.0"
_AGENT = f"vettance-client-python/{VERSION}"


class Request(msgspec.Struct, frozen=True):
    """What goes over the wire."""

    method: str
    target: str
    headers: dict[str, str]
    content: bytes | None


def request_of(
    endpoint: Endpoint[Any],
    path: tuple[str, ...],
    query: Mapping[str, Any] | None,
    body: Any,
    *,
    credential: tuple[str, str] | None,
    idempotency_key: str | None,
) -> Request:
    """Make a request ready. A POST that creates something gets an `Idempotency-Key` if it has none."""
    target = endpoint.path
    if path:
        target = _filled(target, path)
    if query:
        pairs = [f"{name}={_text(value)}" for name, value in query.items() if value is not None]
        if pairs:
            target = f"{target}?{'&'.join(pairs)}"
    headers = {"User-Agent": _AGENT, "Accept": "application/json"}
    if credential is not None:
        headers[credential[0]] = credential[1]
    if endpoint.repeat is Repeat.WITH_KEY:
        headers["Idempotency-Key"] = idempotency_key or os.urandom(16).hex()
    content = None
    if body is not None:
        headers["Content-Type"] = "application/json"
        content = msgspec.json.encode(body)
    return Request(endpoint.method, target, headers, content)


def answer_of(endpoint: Endpoint[Reply], content_type: str, content: bytes) -> Reply:
    """Read a success. Text that is not JSON is returned as it is."""
    if content_type and "json" not in content_type:
        return content.decode("utf-8", "replace")  # type: ignore[return-value]
    try:
        return endpoint.decoder.decode(content)
    except (msgspec.DecodeError, ValueError) as error:
        raise UnreadableAnswer(f"The answer to {endpoint.name} cannot be read: {error}") from error


def _filled(path: str, values: tuple[str, ...]) -> str:
    parts, rest = [], iter(values)
    for part in path.split("/"):
        if part.startswith("{"):
            value = next(rest)
            if not value:
                raise ValueError(f"{part[1:-1]} must not be empty")
            parts.append(quote(value, safe=""))
        else:
            parts.append(part)
    return "/".join(parts)


def _text(value: Any) -> str:
    if isinstance(value, datetime):
        moment = value if value.tzinfo else value.replace(tzinfo=UTC)
        return repr(moment.timestamp())
    if isinstance(value, bool):
        return "true" if value else "false"
    return quote(str(value), safe="")
