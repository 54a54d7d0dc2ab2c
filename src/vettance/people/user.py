"""Users of the console and their memberships, and the forms in which their e-mails and names are kept."""

import hashlib
import re
import secrets
import unicodedata
from typing import Final

import msgspec

from vettance.people.role import Role

EMAIL_CHARS_MAX: Final = 254  # RFC 5321, section 4.5.3.1.3: a path of 256 with its brackets.
NAME_CHARS_MAX: Final = 200
#: A link lets a user in for one day.
LINK_LIFE_MS: Final = 24 * 60 * 60 * 1000

_EMAIL: Final = re.compile(r"[^\s@<>\"(),:;\\\[\]\x00-\x1f]{1,64}@[^\s@<>\"(),:;\\\[\]\x00-\x1f]{1,255}")
_TOKEN: Final = re.compile(r"[A-Za-z0-9_-]{43}", re.ASCII)


class UserAccount(msgspec.Struct, frozen=True, kw_only=True):
    """A person who may sign in. `password` is an Argon2id hash; `totp` and `totp_new` are sealed."""

    id: str
    email: str
    name: str
    password: str | None = None
    oidc_issuer: str | None = None
    oidc_subject: str | None = None
    totp: bytes | None = None
    totp_new: bytes | None = None
    totp_step: int = 0
    disabled: bool = False
    theme: str = "auto"
    time_zone: str = "UTC"
    created_at_ms: int
    updated_at_ms: int


class UserMembership(msgspec.Struct, frozen=True, kw_only=True):
    """What a user may do for one tenant."""

    tenant_id: str
    tenant_name: str
    roles: frozenset[Role]
    second_factor: bool = False


def read_email(text: str) -> str | None:
    """Return an e-mail address in the form that is kept and looked for, or None where the text is none.

    Composed (NFC) and case folded as a whole: nobody tells two people apart by capitals.
    """
    email = unicodedata.normalize("NFC", text.strip()).casefold()
    if len(email) > EMAIL_CHARS_MAX or not email.isprintable() or not _EMAIL.fullmatch(email):
        return None
    return email


def read_name(text: str) -> str | None:
    """Return a person's name without spaces around it, or None where it cannot be shown."""
    name = text.strip()
    return name if len(name) <= NAME_CHARS_MAX and (name == "" or name.isprintable()) else None


def new_token() -> str:
    """Return a random token of 256 bits, for a link or a session."""
    return secrets.token_urlsafe(32)


def is_token(text: str) -> bool:
    """Tell whether a text has the shape of a token."""
    return _TOKEN.fullmatch(text) is not None


def token_digest(token: str) -> str:
    """Return what the store knows a token by. It needs no key: nobody guesses 256 bits."""
    return hashlib.sha256(token.encode()).hexdigest()
