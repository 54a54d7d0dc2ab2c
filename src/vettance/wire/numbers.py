"""Numbers that come as text from outside, read as they are documented and in no other way.

`int` and `float` take what nobody means: digits of other scripts, underscores, spaces, a plus sign, zeros in
front, `nan` and `inf`. Two programs then read one text as two numbers, or one refuses what the other took.
"""

import re
from typing import Final

#: An integer of 64 bits has 19 digits. To convert a text of many thousands takes quadratic time.
DIGITS_MAX: Final = 19

_POSITIVE: Final = rf"[1-9][0-9]{{0,{DIGITS_MAX - 1}}}"
_WHOLE: Final = re.compile(rf"0|-?{_POSITIVE}", re.ASCII)
_DECIMAL: Final = re.compile(rf"-?(?:0|{_POSITIVE})(?:\.[0-9]{{1,{DIGITS_MAX}}})?", re.ASCII)
_MINUS_ZERO: Final = re.compile(r"-[0.]+", re.ASCII)


def read_whole(text: str, least: int = 0, most: int = 2**63 - 1) -> int | None:
    """Read an integer in decimal ASCII digits, or None when it is none or not within the bounds."""
    if not _WHOLE.fullmatch(text):
        return None
    value = int(text)
    return value if least <= value <= most else None


def is_decimal(text: str) -> bool:
    """Tell whether a text is a decimal number: ASCII digits, on both sides of a point if it has one.

    It has no exponent, no plus sign, no zeros in front and no minus sign before zero.
    """
    return bool(_DECIMAL.fullmatch(text)) and not _MINUS_ZERO.fullmatch(text)
