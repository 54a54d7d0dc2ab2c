"""Webhooks as values: subscriptions, signatures, headers, and when a failed delivery is tried again."""

import base64
import enum
import hashlib
import hmac
import secrets
from collections.abc import Sequence
from typing import Final

import msgspec

from vettance import __version__
from vettance.clock import DAY_MS
from vettance.outbox import MessageType
from vettance.webhooks.retry_policy import ATTEMPT_S_MAX
from vettance.wire.numbers import read_whole

SECRET_PREFIX: Final = "whsec_"  # noqa: S105 - the mark that every signing secret begins with
_SECRET_BYTES: Final = 32

#: After a promotion the former secret still signs for this long, so that no receiver misses a delivery.
OLD_SECRET_MS: Final = DAY_MS

#: How much of a receiver's answer is kept for people to read.
ANSWER_BYTES_MAX: Final = 1024

#: How far a webhook's own timestamp may be off before a receiver should take it for a replayed recording.
#: Five minutes is what the Standard Webhooks specification recommends (standardwebhooks.com).
TOLERANCE_S: Final = 300
#: The year 5138; beyond it a timestamp is surely in milliseconds.
_STAMP_S_MAX: Final = 99_999_999_999

_SLOTS: Final = 0x10000

SIGNATURE_HEADER: Final = "X-Webhook-Signature"
USER_AGENT: Final = f"Vettance/{__version__}"


class DeliveryState(enum.StrEnum):
    """How a delivery stands."""

    PENDING = "pending"
    DELIVERED = "delivered"
    EXHAUSTED = "exhausted"
    CANCELED = "canceled"


class AttemptFailure(enum.StrEnum):
    """Why an attempt failed: the class that its log shows."""

    STATUS = "status"  # an answer, but not 2xx
    TIMEOUT = "timeout"
    REFUSED = "refused"  # nobody listens
    DISCONNECTED = "disconnected"  # hung up before the answer was complete enough to have a status
    DNS = "dns"
    TLS = "tls"
    NETWORK = "network"
    PROTOCOL = "protocol"  # an answer that is not HTTP/1.1
    ADDRESS = "forbidden_address"
    INTERNAL = "internal"  # a bug of ours
    SECRET = "secret"  # noqa: S105 - our own: the signing secret cannot be opened with this deployment's key


#: What a failure without an answer means, for the tenant.
UNREACHED: Final = {
    AttemptFailure.TIMEOUT: f"The receiver gave no status within {ATTEMPT_S_MAX:g} seconds.",
    AttemptFailure.REFUSED: "Nobody listens at the address and port of the receiver.",
    AttemptFailure.DISCONNECTED: "The receiver closed the connection without an answer.",
    AttemptFailure.DNS: "The receiver's name could not be resolved.",
    AttemptFailure.TLS: "The certificate of the receiver does not hold, or it speaks no TLS.",
    AttemptFailure.NETWORK: "There is no way through the network to the receiver.",
    AttemptFailure.PROTOCOL: "What the receiver answered is not HTTP/1.1.",
    AttemptFailure.ADDRESS: "The receiver's name leads to an address that webhooks are not sent to.",
}


class AttemptOutcome(msgspec.Struct, frozen=True, gc=False):
    """How one attempt went. `status` is 0 when there was no answer; `answer` holds its first bytes.

    Moments are Unix milliseconds, the end rounded up, so that a delay counted from it never begins too early.
    """

    status: int
    failure: AttemptFailure | None
    answer: bytes
    started_at_ms: int
    ended_at_ms: int
    duration_ms: int


class Subscription(msgspec.Struct, frozen=True, kw_only=True):
    """Where a tenant receives which messages, and how that has gone so far. Secrets are not part of it."""

    id: str
    tenant: str
    slot: str
    url: str
    event_types: tuple[MessageType, ...]
    created_at_ms: int
    updated_at_ms: int
    rotating: bool = False
    old_until_ms: int | None = None
    last_triggered_at_ms: int | None = None
    last_success_at_ms: int | None = None
    last_failure_at_ms: int | None = None
    failures_in_a_row: int = 0
    last_error: str | None = None
    overflowed: int = 0
    overflowed_at_ms: int | None = None


def make_secret() -> str:
    """Make a signing secret: `whsec_` and the base64 of 32 random bytes."""
    return SECRET_PREFIX + base64.b64encode(secrets.token_bytes(_SECRET_BYTES)).decode()


def free_slot(taken: Sequence[str]) -> str:
    """Return a slot (four hex digits) that no subscription in `taken` has. Raises `LookupError`."""
    used = set(taken)
    for number in range(_SLOTS):
        slot = f"{number:04x}"
        if slot not in used:
            return slot
    raise LookupError("every slot is taken")


def plain_signature(secret: str, body: bytes) -> str:
    """Sign as `X-Webhook-Signature` does: hex HMAC-SHA256 of the body, keyed with the secret as text."""
    return "sha256=" + hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()


def standard_signature(secret: str, webhook_id: str, timestamp_s: int, body: bytes) -> str:
    """Sign as the Standard Webhooks specification does (standardwebhooks.com, symmetric signatures, `v1`).

    The key is what the secret's base64 stands for; what is signed is id, timestamp and body, joined by dots.
    """
    key = base64.b64decode(secret.removeprefix(SECRET_PREFIX))
    signed = b"%s.%d.%s" % (webhook_id.encode(), timestamp_s, body)
    return "v1," + base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()


def signed_headers(
    message_type: str, webhook_id: str, attempt: int, timestamp_s: int, body: bytes, keys: Sequence[str]
) -> tuple[tuple[str, str], ...]:
    """Return the headers of one attempt.

    `keys` are the secrets that sign: the first alone makes `X-Webhook-Signature`, all of them together make
    `webhook-signature`. `attempt` counts from 1.
    """
    signatures = " ".join(standard_signature(key, webhook_id, timestamp_s, body) for key in keys)
    return (
        ("Content-Type", "application/json"),
        ("User-Agent", USER_AGENT),
        (SIGNATURE_HEADER, plain_signature(keys[0], body)),
        ("X-Webhook-Event-Type", message_type),
        ("X-Webhook-Attempt", str(attempt)),
        ("webhook-id", webhook_id),
        ("webhook-timestamp", str(timestamp_s)),
        ("webhook-signature", signatures),
    )


class SignatureInvalid(Exception):
    """A delivery whose signature does not hold; the message says what is wrong."""


def verify(secret: str, headers: dict[str, str], body: bytes, now_s: int) -> None:
    """Check a received delivery against a secret; `headers` have lower-case names. Raises `SignatureInvalid`.

    Every signature that is there must hold, and there must be one.
    """
    plain, standard = headers.get(SIGNATURE_HEADER.lower()), headers.get("webhook-signature")
    if plain is None and standard is None:
        raise SignatureInvalid("there is no signature")
    if plain is not None and not _same(plain, plain_signature(secret, body)):
        raise SignatureInvalid(f"{SIGNATURE_HEADER} does not belong to this body and secret")
    if standard is None:
        return
    stamp = read_whole(headers.get("webhook-timestamp", ""), 0, _STAMP_S_MAX)
    if stamp is None:
        raise SignatureInvalid("webhook-timestamp is missing or no number")
    if abs(now_s - stamp) > TOLERANCE_S:
        raise SignatureInvalid(f"webhook-timestamp is more than {TOLERANCE_S} seconds from now")
    expected = standard_signature(secret, headers.get("webhook-id", ""), stamp, body)
    if not any(_same(one, expected) for one in standard.split(" ")):
        raise SignatureInvalid("webhook-signature does not belong to this body, id, timestamp and secret")


def _same(given: str, expected: str) -> bool:
    return hmac.compare_digest(given.encode(), expected.encode())
