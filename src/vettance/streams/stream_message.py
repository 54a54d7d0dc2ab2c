"""Messages of a stream: how one is named, and what becomes of it when it is read."""

import hashlib
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from vettance.aml.aml_event import AmlEventBody, read_aml_event
from vettance.errors import Invalid, PayloadTooLarge, Refusal, Unprocessable
from vettance.events.event import EventBody, check_event
from vettance.jobs.sql import JobKind
from vettance.wire.large_body import parse_body
from vettance.wire.payload import BODY_BYTES_MAX, JSON, encode, error_body, kept

#: Ids that are kept with the decision as they are; longer ones, and those with odd characters, by a digest.
_SHOWN_CHARACTERS_MAX: Final = 200
_KEY_BYTES: Final = 16
#: Of a body that is too large to be taken, so much is kept with the reason.
_LARGE_BYTES_KEPT: Final = 4_096
_NO_ID: Final = (
    "The message has no id: neither its producer nor the broker names it. Send a message id, or name a "
    "member of the body or a header with --id."
)


class StreamMessage(NamedTuple):
    """One message as a broker delivered it.

    `id` is what its producer named it by, `position` what the broker itself knows it by for ever, where it
    does. `receipt` belongs to the source that delivered it.
    """

    body: bytes
    id: str | None
    position: str | None
    headers: Mapping[str, str]
    key: str | None
    receipt: Any


class IdRule(NamedTuple):
    """Where the id of a message is: `member` (a path in the body), `header` or `key`; else as `--id` is
    left out, what its producer named it by."""

    where: str = ""
    name: str = ""

    @property
    def in_body(self) -> bool:
        """Whether the body has to be read for it."""
        return self.where == "member"


def read_id_rule(text: str | None) -> IdRule:
    """Read `--id`: `member:PATH`, `header:NAME` or `key`. Raises `ValueError`."""
    if text is None:
        return IdRule()
    where, _, name = text.partition(":")
    if (where in ("member", "header") and name) or (where == "key" and not name):
        return IdRule(where, name.lower() if where == "header" else name)
    raise ValueError("must be member:PATH, header:NAME or key")


class ReadMessage(NamedTuple):
    """A message that was read: an event to decide, or a refusal with its reason as JSON.

    `key` names it among the messages of its consumer and `digest` its content; both are 16 bytes. `shown` is
    its id as people see it, `sent` what is kept of its body.
    """

    message: StreamMessage
    key: bytes
    digest: bytes
    shown: str
    sent: bytes
    refusal: bytes | None = None

    def refused(self, refusal: Refusal) -> "ReadMessage":
        """Return the message as one that is refused. Its content is part of its key, so that it is recorded
        once too, and does not take its id from the event that its producer sends mended."""
        key = _digest(b"refused", self.key, self.digest)
        return self._replace(key=key, refusal=_reason(refusal))


def read_message(
    message: StreamMessage, kind: JobKind, consumer: str, rule: IdRule, now_ms: int
) -> ReadMessage:
    """Read a message as an event of a kind. What cannot be one is returned with its refusal; never raises."""
    body = message.body
    digest = _digest(body)
    value: JSON | None = None
    refusal: Refusal | None = None
    sent = body[:_LARGE_BYTES_KEPT]
    try:
        if len(body) > BODY_BYTES_MAX:
            raise PayloadTooLarge(f"The body has more than {BODY_BYTES_MAX:,} bytes.")
        sent = body
        value = parse_body(body, AmlEventBody if kind is JobKind.AML else EventBody)
        if kind is JobKind.AML:
            read_aml_event(value, body, now_ms)
        else:
            check_event(value, body, now_ms)
        sent = kept(body, value)
    except Refusal as fault:
        refusal = fault
    found = _id_of(message, kind, rule, value)
    if found is None:
        # The same content is recorded once: nothing else tells two such messages apart.
        return ReadMessage(message, _digest(b"body", digest), digest, "", sent).refused(
            refusal or Unprocessable(_NO_ID)
        )
    key = _digest(kind.value.encode(), consumer.encode(), found.encode())
    read = ReadMessage(message, key, digest, _shown(found), sent)
    return read if refusal is None else read.refused(refusal)


def other_content() -> Refusal:
    """Say that the id of a message was used for another one."""
    return Invalid("Another message with this id and other content was taken before.")


def _id_of(message: StreamMessage, kind: JobKind, rule: IdRule, value: JSON | None) -> str | None:
    found: str | None
    if rule.where == "header":
        found = message.headers.get(rule.name)
    elif rule.where == "key":
        found = message.key
    elif rule.in_body or kind is JobKind.AML:
        # Events of AML bear an id of their own, by which they are known for ever.
        found = _member(value, rule.name or "externalEventId")
    else:
        found = message.id
    if found:
        return f"id {found}"
    return f"at {message.position}" if message.position is not None else None


def _member(value: Any, path: str) -> str | None:
    for name in path.split("."):
        value = value.get(name) if isinstance(value, dict) else None
    if isinstance(value, bool) or not isinstance(value, str | int):
        return None
    return str(value)


def _shown(found: str) -> str:
    text = found.partition(" ")[2]
    if len(text) <= _SHOWN_CHARACTERS_MAX and text.isascii() and text.isprintable():
        return text
    return f"sha256:{hashlib.sha256(text.encode(errors='surrogatepass')).hexdigest()}"


def _digest(*parts: bytes) -> bytes:
    """Digest texts whose ends matter."""
    digest = hashlib.blake2b(digest_size=_KEY_BYTES)
    for part in parts:
        digest.update(len(part).to_bytes(8, "big"))
        digest.update(part)
    return digest.digest()


def _reason(refusal: Refusal) -> bytes:
    return encode(error_body(refusal)["error"])
