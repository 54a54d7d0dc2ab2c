"""Verifies webhooks: that they are from the service, and what they say."""

import base64
import binascii
import hashlib
import hmac
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec


class BadSignature(Exception):
    """The webhook is not from the service, or was changed on the way: answer 401 and do nothing else."""


@dataclass(frozen=True)
class WebhookEvent:
    """What a webhook says. `id` and `event_type` together are what to deduplicate on."""

    event_type: str
    timestamp: str
    data: dict[str, Any]

    @property
    def id(self) -> str:
        """The id in `data`, the same for all attempts at one delivery."""
        return str(self.data.get("id", ""))


def verify_webhook(
    body: bytes,
    headers: Mapping[str, str],
    secret: str | Sequence[str],
    *,
    tolerance_s: float | None = None,
    now_s: float | None = None,
) -> WebhookEvent:
    """Verify the signature of the raw bytes of a webhook, and only then read them.

    `secret` is the subscription's `signingSecret`, or several while it is rotated. Either signature will do:
    `X-Webhook-Signature`, or one of `webhook-signature` (Standard Webhooks), which during a rotation carries
    those of the old and of the new secret. With `tolerance_s`, only the latter counts, if its time is no
    further off than that. Raises `BadSignature`.
    """
    if not isinstance(body, bytes | bytearray | memoryview):
        raise TypeError("body must be the raw bytes of the request, as they came")
    named = {str(name).lower(): str(value) for name, value in headers.items()}
    secrets = [secret] if isinstance(secret, str) else list(secret)
    content = bytes(body)
    if not any(secrets):
        raise ValueError("secret must not be empty")
    good = _is_standard(content, named, secrets)
    if tolerance_s is None:
        good = good or _is_simple(content, named, secrets)
    elif good:
        good = abs((time.time() if now_s is None else now_s) - int(named["webhook-timestamp"])) <= tolerance_s
    if not good:
        raise BadSignature("The signature of the webhook is missing or wrong.")
    try:
        envelope = msgspec.json.decode(content, type=dict[str, Any])
        return WebhookEvent(str(envelope["eventType"]), str(envelope["timestamp"]), dict(envelope["data"]))
    except (msgspec.DecodeError, msgspec.ValidationError, KeyError, TypeError, ValueError) as error:
        raise BadSignature(
            "The webhook is signed, yet not an envelope with eventType, timestamp and data."
        ) from error


def sign_webhook(body: bytes, secret: str) -> str:
    """Return what `X-Webhook-Signature` must be: for tests of your own receiver."""
    return f"sha256={hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()}"


def _is_simple(body: bytes, headers: Mapping[str, str], secrets: Sequence[str]) -> bool:
    given = headers.get("x-webhook-signature", "").strip().encode()
    # All are compared, so that the time does not say which one it was.
    same = [hmac.compare_digest(sign_webhook(body, one).encode(), given) for one in secrets if one]
    return any(same)


def _is_standard(body: bytes, headers: Mapping[str, str], secrets: Sequence[str]) -> bool:
    signatures = headers.get("webhook-signature", "").split()
    given = [one[3:].encode() for one in signatures if one.startswith("v1,")]
    webhook_id, timestamp = headers.get("webhook-id", ""), headers.get("webhook-timestamp", "")
    if not (given and timestamp.isascii() and timestamp.isdigit()):
        return False
    signed = b".".join((webhook_id.encode(), timestamp.encode(), body))
    made = [
        base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest())
        for key in map(_key_of, secrets)
        if key
    ]
    same = [hmac.compare_digest(mine, one) for mine in made for one in given]
    return any(same)


def _key_of(secret: str) -> bytes:
    try:
        return base64.b64decode(secret.removeprefix("whsec_"), validate=True)
    except (binascii.Error, ValueError):
        return b""
