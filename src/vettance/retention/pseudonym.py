"""The pseudonym: what stands for a customer once their names are erased."""

import hashlib
import re
from collections.abc import Mapping
from typing import Any, Final

from vettance.wire import JSON, decode, encode

_DIGITS: Final = 24
_HEAD: Final = "erased_"
_INSIDE_CHARS_MIN: Final = 6


def pseudonym(secret: bytes, tenant: str, value: str, erased_at_ms: int) -> str:
    """Make the name that stands for another one: keyed BLAKE2b, so that nobody can try names against it.

    The moment of the erasure goes into it: what is known of a customer who comes back stays apart.
    """
    text = f"{tenant}\x00{value}\x00{erased_at_ms}".encode()
    return _HEAD + hashlib.blake2b(text, key=secret, digest_size=_DIGITS // 2).hexdigest()


def renamed(value: Any, names: Mapping[str, str]) -> Any:
    """Return a JSON value in which every text that names the customer is replaced.

    `names` maps folded texts to pseudonyms. A text is replaced where it is the whole value or key, or stands
    inside a longer text.
    """
    if isinstance(value, str):
        return renamed_text(value, names)
    if isinstance(value, list | tuple):
        return [renamed(member, names) for member in value]
    if isinstance(value, dict):
        return {renamed_text(key, names): renamed(member, names) for key, member in value.items()}
    return value


def renamed_text(text: str, names: Mapping[str, str]) -> str:
    """Replace the customer's names in one text, in any letter case."""
    whole = names.get(text.strip().casefold())
    if whole is not None:
        return whole
    for name, other in names.items():
        # Short names (an id such as `7`) are only replaced as a whole: inside of texts they mean anything.
        if len(name) >= _INSIDE_CHARS_MIN:
            text = re.sub(re.escape(name), other, text, flags=re.IGNORECASE)
    return text


def renamed_event(sent: bytes, names: Mapping[str, str]) -> bytes:
    """Return an event as sent without its customer's names; what was said of the customer as such goes."""
    body: JSON = renamed(decode(sent), names)
    customer = body.get("customer")
    if isinstance(customer, dict):
        known = {key: customer[key] for key in ("externalId", "email") if key in customer}
        body["customer"] = known
    return encode(body)


def renamed_json(content: bytes, names: Mapping[str, str]) -> bytes:
    """Return JSON without the customer's names."""
    return encode(renamed(decode(content), names))
