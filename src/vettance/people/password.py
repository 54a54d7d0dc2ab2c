"""Passwords: which are taken, and how they are hashed (Argon2id, RFC 9106)."""

import functools
import itertools
from typing import Final

from argon2 import PasswordHasher
from argon2.exceptions import Argon2Error, InvalidHashError

from vettance.reference.dictionary import read_lines

CHARS_MIN: Final = 12
CHARS_MAX: Final = 256

# OWASP's Password Storage Cheat Sheet asks for at least 19 MiB in 2 passes; these take about 0.1 s of one
# processor, and few run at once (see `sign_in.py`).
_TIME_COST: Final = 2
_MEMORY_KIB: Final = 64 * 1024
_PARALLELISM: Final = 1
#: More than there are code points.
_CHARACTERS: Final = 1 << 21


@functools.cache
def _common() -> frozenset[str]:
    return frozenset(read_lines("common_passwords"))


def refused_because(password: str) -> str | None:
    """Say why a password is not taken, or None where it is."""
    if len(password) < CHARS_MIN:
        return f"has fewer than {CHARS_MIN} characters"
    if len(password) > CHARS_MAX:
        return f"has more than {CHARS_MAX} characters"
    try:
        password.encode()
    except UnicodeEncodeError:
        return "holds characters that cannot be stored"
    folded = password.casefold()
    if folded in _common():
        return "is in the list of common passwords"
    if _repeats(folded) or _counts(folded):
        return "is too regular: it repeats itself or counts"
    return None


def _repeats(text: str) -> bool:
    """Tell whether a text is a shorter one, written twice or more."""
    return text in (text + text)[1:-1]


def _counts(text: str) -> bool:
    """Tell whether each digit or letter is the next, or the one before, of the character to its left."""
    # 0 follows 9 as on a keyboard.
    circle = 10 if text.isdigit() else _CHARACTERS
    steps = {(ord(right) - ord(left)) % circle for left, right in itertools.pairwise(text)}
    return steps in ({1}, {circle - 1})


@functools.cache
def _hasher() -> PasswordHasher:
    return PasswordHasher(_TIME_COST, _MEMORY_KIB, _PARALLELISM)


def hash_password(password: str) -> str:
    """Hash a password for the store. It takes a tenth of a second: not on the event loop."""
    return _hasher().hash(password)


@functools.cache
def _nobody() -> str:
    """The hash of a password that nobody has, against which the tries at unknown accounts are held."""
    return hash_password("nobody has this password")


def verify_password(hashed: str | None, password: str) -> bool:
    """Tell whether a password is that of a hash; without one it takes the same time and is wrong.

    As slow as hashing: not on the event loop.
    """
    if len(password) > CHARS_MAX:
        hashed, password = None, password[:CHARS_MAX]
    try:
        _hasher().verify(hashed or _nobody(), password.encode(errors="surrogatepass"))
    except (Argon2Error, InvalidHashError):
        return False
    return hashed is not None
