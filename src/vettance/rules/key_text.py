"""Keys: how the value of a `by=` becomes one text that no other value shares.

Plain texts stand for themselves. Other values, joined parts and long texts are marked with control characters
that are escaped where a text holds them, so that no two different keys ever look alike.
"""

import hashlib
from typing import Any, Final

KEY_CHARS_MAX: Final = 256  # Longer texts are hashed: they cost memory for every key and tell nothing more.
_MARK: Final = "\x1e"
_BETWEEN: Final = "\x1f"


def digest_key(text: str) -> str:
    """Return a short text that stands for a long one: BLAKE2b of 128 bits, marked as a digest."""
    data = text.encode("utf-8", "surrogatepass")
    return f"{_MARK}h{hashlib.blake2b(data, digest_size=16).hexdigest()}"


def single_key(value: Any, plain: bool) -> str | None:
    """Return the key text of one value; None when it is missing, empty or no scalar.

    `plain` says that the values are always texts, which then need no marks.
    """
    if isinstance(value, str):
        if not value:
            return None
        if len(value) > KEY_CHARS_MAX:
            return digest_key(value)
        return value if plain else _escaped(value)
    if isinstance(value, bool):
        return f"{_MARK}b{int(value)}"
    if isinstance(value, int | float):
        # 5 and 5.0 are one number and make one key.
        return f"{_MARK}n{int(value) if value == int(value) else value!r}"
    return None


def composite_key(values: tuple[Any, ...]) -> str | None:
    """Return the key text of several values; None when any of them has none."""
    parts = []
    for value in values:
        part = single_key(value, False)  # noqa: FBT003
        if part is None:
            return None
        parts.append(part)
    return _BETWEEN.join(parts)


def _escaped(text: str) -> str:
    if _MARK in text or _BETWEEN in text:
        return text.replace(_MARK, f"{_MARK}0").replace(_BETWEEN, f"{_MARK}1")
    return text


def scalar(value: Any) -> int | float | str | bool | None:
    """Return a value that a series can keep as it is; None for lists and objects."""
    return value if isinstance(value, int | float | str | bool) else None
