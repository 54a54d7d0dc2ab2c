"""Entries of the audit log, and the chain that makes any change of them show.

An entry has four parts that may name somebody: actor, subject, before and after. The chain holds a digest of
each part with a salt of its own, never the text, so that an erasure can replace a text without breaking it;
what replaces it is named, by its digest, in an entry that the erasure adds. Each tenant has a chain of its
own, and `*` has one for what concerns no tenant.
"""

import hashlib
import json
import re
import secrets
from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

PARTS: Final = ("actor", "subject", "before", "after")
#: The action of the entry that names replaced texts.
ERASURE: Final = "audit erase"
_TEXT_CHARS_MAX: Final = 500
_ITEMS_MAX: Final = 100
_SECRET: Final = re.compile(
    r"secret|password|passwd|token|api.?key|signature|recovery|totp|\bcode\b|csrf", re.I
)
_SALT_BYTES: Final = 16


class AuditPart(msgspec.Struct, frozen=True):
    """A part of an entry with its salt."""

    name: str
    salt: str
    text: str

    @property
    def digest(self) -> str:
        """What the chain holds of it."""
        return hashlib.sha256(f"{self.salt}:{self.text}".encode()).hexdigest()


class AuditEntry(msgspec.Struct, frozen=True, kw_only=True):
    """One entry. `before` and `after` are JSON values or None; the moment is in Unix milliseconds."""

    id: str
    tenant: str
    at_ms: int
    action: str
    actor: str
    subject: str
    before: Any = None
    after: Any = None


class KeptEntry(msgspec.Struct, frozen=True, kw_only=True):
    """An entry as the store holds it: its place in the chain, the digests of its parts, and the parts."""

    tenant: str
    seq: int
    id: str
    at_ms: int
    action: str
    digests: str
    chain: str
    parts: Mapping[str, AuditPart]

    @property
    def content(self) -> str:
        """What the chain is computed over."""
        return content_of(self.id, self.at_ms, self.action, self.digests)


def content_of(entry_id: str, at_ms: int, action: str, digests: str) -> str:
    """Write what the chain is computed over; none of the first three holds a line break."""
    return f"{entry_id}\n{at_ms}\n{action}\n{digests}"


def parts_of(entry: AuditEntry) -> list[AuditPart]:
    """Return the parts of an entry, each with a new salt."""
    texts = (entry.actor, entry.subject, written(entry.before), written(entry.after))
    return [salted(name, text) for name, text in zip(PARTS, texts, strict=True)]


def salted(name: str, text: str) -> AuditPart:
    """Return a part with a new salt."""
    return AuditPart(name, secrets.token_hex(_SALT_BYTES), text)


def written(value: Any) -> str:
    """Write a value of an entry as JSON; nothing for None."""
    return "" if value is None else json.dumps(value, ensure_ascii=False, sort_keys=True, default=str)


def link(chain: str, content: str) -> str:
    """Return the next value of a chain; the stores compute the same (`sql.py`)."""
    return hashlib.sha256((chain + content).encode()).hexdigest()


def without_secrets(value: Any, name: str = "") -> Any:
    """Return a value as the log may hold it: no secrets, and long texts as their digests."""
    if name and _SECRET.search(name) and not isinstance(value, bool | int | None):
        return "(not logged)"
    if isinstance(value, Mapping):
        kept = list(value.items())[:_ITEMS_MAX]
        return {str(key): without_secrets(member, str(key)) for key, member in kept}
    if isinstance(value, list | tuple | set | frozenset):
        return [without_secrets(member) for member in list(value)[:_ITEMS_MAX]]
    if isinstance(value, str) and len(value) > _TEXT_CHARS_MAX:
        digest = hashlib.sha256(value.encode(errors="replace")).hexdigest()
        return f"(a text of {len(value):,} characters, SHA-256 {digest})"
    if value is None or isinstance(value, str | int | float | bool):
        return value
    return str(value)


class ChainCheck:
    """Follows one chain from its beginning and says where it was changed."""

    def __init__(self, tenant: str) -> None:
        self.tenant = tenant
        self._seq = 0
        self._chain = ""
        #: Parts that do not fit what their entry says, until an erasure names them.
        self._open: dict[tuple[str, str], tuple[str, str]] = {}

    @property
    def count(self) -> int:
        """How many entries were followed."""
        return self._seq

    def follow(self, one: KeptEntry) -> str | None:
        """Take the next entry; returns what is wrong, or None."""
        if one.seq != self._seq + 1:
            return self._said(
                one.seq, "entries before it were removed" if one.seq > self._seq else "inserted"
            )
        self._seq += 1
        self._chain = link(self._chain, one.content)
        if one.chain != self._chain:
            return self._said(one.seq, f"{one.id} was changed, or inserted")
        digests = one.digests.split(" ")
        if set(one.parts) != set(PARTS) or len(digests) != len(PARTS):
            return self._said(one.seq, f"parts of {one.id} were removed or inserted")
        for name, digest in zip(PARTS, digests, strict=True):
            found = one.parts[name].digest
            if found != digest:
                self._open[one.id, name] = (found, f"the {name} of {one.id} was changed")
        if one.action == ERASURE and all(one.parts[name].digest in digests for name in PARTS):
            for entry_id, name, digest in json.loads(one.parts["after"].text or "[]"):
                if (entry_id, name) in self._open and self._open[entry_id, name][0] == digest:
                    del self._open[entry_id, name]
        return None

    def finish(self, head: tuple[int, str] | None) -> str | None:
        """Hold the end against the head, which is kept apart; returns what is wrong, or None."""
        if head is None:
            return self._said(self._seq, "its head was removed") if self._seq else None
        if head != (self._seq, self._chain):
            return self._said(self._seq + 1, "the newest entries were removed, or its head was changed")
        for _, said in self._open.values():
            return f"audit log of {self.tenant}: {said}"
        return None

    def _said(self, seq: int, said: str) -> str:
        return f"audit log of {self.tenant}: at entry {seq}: {said}"


def replaced_parts(parts: Sequence[tuple[str, AuditPart]]) -> list[list[str]]:
    """Name parts that an erasure has replaced, for the `after` of its own entry."""
    return [[entry_id, part.name, part.digest] for entry_id, part in parts]
