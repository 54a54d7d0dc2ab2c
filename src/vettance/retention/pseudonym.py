"""The pseudonym: what stands for a customer once their names are erased."""

import hashlib
from typing import Any

import msgspec

from vettance.ids import PSEUDONYM_DIGITS, PSEUDONYM_HEAD
from vettance.retention.name_forms import Names
from vettance.wire.payload import JSON, decode, encode


def pseudonym(secret: bytes, tenant: str, value: str, erased_at_ms: int) -> str:
    """Make the pseudonym of a name: keyed BLAKE2b, so that names cannot be tried against it.

    The moment of the erasure goes into it: data of a customer who comes back stays separate.
    """
    text = f"{tenant}\x00{value}\x00{erased_at_ms}".encode()
    return PSEUDONYM_HEAD + hashlib.blake2b(text, key=secret, digest_size=PSEUDONYM_DIGITS // 2).hexdigest()


def renamed(value: Any, names: Names) -> Any:
    """Return a JSON value in which every text that names the customer is replaced: members and their keys."""
    if isinstance(value, str):
        return names.replaced(value)
    if isinstance(value, list | tuple):
        return [renamed(member, names) for member in value]
    if isinstance(value, dict):
        return {names.replaced(key): renamed(member, names) for key, member in value.items()}
    return value


def renamed_event(sent: bytes, names: Names) -> bytes:
    """Return an event as sent without its customer's names; what was said of the customer as such goes."""
    body: JSON = renamed(decode(sent), names)
    customer = body.get("customer")
    if isinstance(customer, dict):
        known = {key: customer[key] for key in ("externalId", "email") if key in customer}
        body["customer"] = known
    return encode(body)


def renamed_content(content: Any, names: Names) -> Any:
    """Return what a column holds without the customer's names: the same value where it has none.

    JSON is read member by member; other bytes (what a receiver answered) as text that may be cut anywhere.
    """
    if not names.may_be_in((content,)):
        return content
    if isinstance(content, str):
        return _renamed_text(content, names)
    try:
        value = decode(content)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return names.replaced(content.decode(errors="surrogateescape")).encode(errors="surrogateescape")
    other = renamed(value, names)
    return content if other == value else encode(other)


def _renamed_text(text: str, names: Names) -> str:
    if text[:1] in ("{", "["):
        try:
            value = decode(text.encode())
        except msgspec.DecodeError:
            return names.replaced(text)
        other = renamed(value, names)
        return text if other == value else encode(other).decode()
    return names.replaced(text)
