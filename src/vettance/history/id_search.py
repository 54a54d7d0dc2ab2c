"""Finds a part of an id among millions, as bits of two numbers for each id."""

from typing import Final

import numpy as np

from vettance.history.segment import Array

WORD_DIGITS: Final = 16  # Hex digits of an id in each of its two numbers, `high` and `low`.
_BLOCK: Final = 1 << 13  # Ids looked through at one time: what is worked out for them stays in the processor.
_DIGIT_BITS: Final = 4
_EVERY_DIGIT: Final = 0x1111_1111_1111_1111
_LOW_BITS: Final = np.uint64(0x7777_7777_7777_7777)


def begins(high: Array, low: Array, digits: str) -> Array:
    """Which ids begin with some digits."""
    found = _begins(high, digits[:WORD_DIGITS])
    return found & _begins(low, digits[WORD_DIGITS:]) if len(digits) > WORD_DIGITS else found


def _begins(words: Array, digits: str) -> Array:
    if not digits:
        return np.ones(len(words), bool)
    shift = np.uint64(_DIGIT_BITS * (WORD_DIGITS - len(digits)))
    same: Array = words >> shift == np.uint64(int(digits, 16))
    return same


def holds(high: Array, low: Array, digits: str) -> Array:
    """Which ids hold some digits anywhere."""
    found = np.empty(len(high), bool)
    is_common = True
    for start in range(0, len(high), _BLOCK):
        part = slice(start, start + _BLOCK)
        # Digits that every id has are those of time and version, which ids made one after the other have in
        # common: checking that takes a tenth of the time, and it holds for many blocks or for none.
        if is_common and digits in _in_common(high[part], low[part]):
            found[part] = True
            continue
        found[part] = _holds(high[part], low[part], digits)
        is_common = bool(found[part].all())
    return found


def _in_common(high: Array, low: Array) -> str:
    """Return the 32 digits of some ids, with a gap wherever they differ."""
    texts = []
    for words in (high, low):
        every, any_ = (int(how.reduce(words)) for how in (np.bitwise_and, np.bitwise_or))
        differ = f"{every ^ any_:016x}"
        texts += [digit if same == "0" else " " for digit, same in zip(f"{every:016x}", differ, strict=True)]
    return "".join(texts)


def _holds(high: Array, low: Array, digits: str) -> Array:
    """Mark the places of each digit, shift its marks back by its position, and return where all coincide."""
    marks = {digit: (_mark(high, digit), _mark(low, digit)) for digit in set(digits)}
    in_high, in_low = marks[digits[0]]
    for place, digit in enumerate(digits[1:WORD_DIGITS], 1):
        shift, rest = np.uint64(_DIGIT_BITS * place), np.uint64(_DIGIT_BITS * (WORD_DIGITS - place))
        next_high, next_low = marks[digit]
        in_high = in_high & (next_high << shift | next_low >> rest)
        in_low = in_low & next_low << shift
    for place, digit in enumerate(digits[WORD_DIGITS:]):
        in_high = in_high & marks[digit][1] << np.uint64(_DIGIT_BITS * place)
        in_low = np.zeros_like(in_low)
    together: Array = (in_high | in_low) != 0
    return together


def _mark(words: Array, digit: str) -> Array:
    """Set the highest bit of every hex digit that is `digit`, and no other bit."""
    # A digit that is equal becomes 0. Adding 7 to the three low bits of each digit carries into its fourth
    # unless they are all 0, and never further.
    rest = words ^ np.uint64(int(digit, 16) * _EVERY_DIGIT)
    marks: Array = ~((rest & _LOW_BITS) + _LOW_BITS | rest | _LOW_BITS)
    return marks
