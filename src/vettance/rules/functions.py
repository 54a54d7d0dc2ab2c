"""The words of the rule language: one small function each; its docstring is its page in the manual.

A word is unknown when any of its arguments is unknown, so no function here ever sees None. A function answers
None when it cannot say. None of them raises, loops over more than its input, or returns more than about its
input.
"""

import math
import re
from collections.abc import Callable
from typing import Any, Final

import re2

from vettance.rules.domain import (
    COUNT,
    LOWER,
    LOWER_TRIMMED,
    NOT_NEGATIVE,
    SHARE,
    TRIMMED,
    UPPER,
    Domain,
    refolded,
    written,
)
from vettance.rules.place_functions import PLACES
from vettance.rules.schema import Type
from vettance.rules.word import RuleWord, entering

NUMBER, TEXT, BOOL, LIST, ANY = Type.NUMBER, Type.TEXT, Type.BOOL, Type.LIST, Type.ANY

PATTERN_CHARS_MAX: Final = 256  # Longer patterns cannot be reviewed; a list of texts says it better.
PATTERN_BYTES_MAX: Final = 1 << 20  # Memory RE2 may use for one pattern. It refuses patterns that need more.
NUMBERS_MAX: Final = 10  # How many numbers `min_of` and `max_of` take.
SIMILARITY_CHARS_MAX: Final = 64  # Similarity looks at this many characters; its cost grows with them.
#: Banks write amounts with a sign and with zeros in front; neither makes another number of them.
_NUMBER: Final = re.compile(r"[+-]?[0-9]+(?:\.[0-9]+)?", re.ASCII)
_NUMBER_CHARS_MAX: Final = 40
_NUMBER_MAX: Final = 1e15

WORDS: dict[str, RuleWord] = {}
_word = entering(WORDS)

# --- What words make of the values they take ---


def _trimmed(text: Domain) -> Domain:
    return refolded(text, TRIMMED) if text.fold is None else text


def _whole(x: Domain) -> Domain:
    low, high = (end if math.isinf(end) else math.floor(end) for end in (x.low, x.high))
    return Domain(low=low, high=high + 1, whole=True, closed=x.closed)


def _least(*x: Domain) -> Domain:
    ends = min(each.low for each in x), min(each.high for each in x)
    return Domain(low=ends[0], high=ends[1], closed=all(each.closed for each in x))


def _greatest(*x: Domain) -> Domain:
    ends = max(each.low for each in x), max(each.high for each in x)
    return Domain(low=ends[0], high=ends[1], closed=all(each.closed for each in x))


# --- Words that the compiler knows by heart; they are in the table for the manual and the checker. ---


@_word({"x": ANY}, BOOL, cost=1)
def missing(x: Any) -> bool:
    """True when x is not known: the event does not say, or it cannot be computed. Never unknown itself.

    Example: `missing(customer.email)`
    """
    return x is None


@_word({"x": ANY}, BOOL, cost=1)
def present(x: Any) -> bool:
    """True when x is known; the opposite of `missing`. Never unknown itself.

    Example: `present(device.fingerprint)`
    """
    return x is not None


@_word({"x": ANY, "fallback": ANY}, ANY, cost=1)
def default(x: Any, fallback: Any) -> Any:
    """x where it is known and of the fallback's type, else the fallback.

    Example: `default(metadata.amount, 0) > 500`
    """
    return fallback if x is None else x


# --- Texts ---


@_word({"text": TEXT}, TEXT, domain=lambda text: refolded(text, LOWER))
def lower(text: str) -> str:
    """The text in small letters.

    Example: `lower(country) == "gb"`
    """
    return text.lower()


@_word({"text": TEXT}, TEXT, domain=lambda text: refolded(text, UPPER))
def upper(text: str) -> str:
    """The text in capital letters.

    Example: `upper(metadata.currency) == "EUR"`
    """
    return text.upper()


@_word({"text": TEXT}, TEXT, domain=_trimmed)
def trim(text: str) -> str:
    """The text without white space at both ends.

    Example: `trim(metadata.reference) == ""`
    """
    return text.strip()


@_word({"text": (TEXT, LIST)}, NUMBER, total=False, domain=COUNT)
def length(text: Any) -> int | None:
    """How many characters a text has, or how many items a list.

    Example: `length(user_agent) < 20`
    """
    return len(text) if isinstance(text, str | list) else None


@_word({"text": (TEXT, LIST), "part": (TEXT, NUMBER, BOOL)}, BOOL, total=False, cost=3)
def contains(text: Any, part: Any) -> bool | None:
    """True when the text holds the part, or the list holds the item. Capital and small letters differ.

    Example: `contains(lower(user_agent), "headless")`
    """
    if isinstance(text, str):
        return part in text if isinstance(part, str) else None
    if not isinstance(text, list):
        return None
    # 1 == True in Python, so an item only counts when both are true/false or neither is.
    is_bool = isinstance(part, bool)
    return any(item == part and isinstance(item, bool) == is_bool for item in text)


@_word({"text": TEXT, "start": TEXT}, BOOL)
def starts_with(text: str, start: str) -> bool:
    """True when the text begins with the other one.

    Example: `starts_with(event_name, "payment.")`
    """
    return text.startswith(start)


@_word({"text": TEXT, "end": TEXT}, BOOL)
def ends_with(text: str, end: str) -> bool:
    """True when the text ends with the other one.

    Example: `ends_with(customer.email, ".invalid")`
    """
    return text.endswith(end)


def _prefix_of(characters: float) -> Callable[[str], str]:
    if characters not in range(1, 65):
        raise ValueError("prefix takes 1 to 64 characters, a whole number")
    size = int(characters)
    return lambda text: text[:size]


@_word({"text": TEXT, "characters": NUMBER}, TEXT, literal=("characters",), prepare=_prefix_of)
def prefix(text: str, characters: int) -> str:
    """The first characters of a text (1 to 64 of them); a shorter text stays as it is.

    Example: `count(by=prefix(metadata.cardNumber, 6), within="1h") > 20`
    """
    return text[:characters]


def _pattern(pattern: str) -> Callable[[str], bool]:
    if len(pattern) > PATTERN_CHARS_MAX:
        raise ValueError(f"a pattern is at most {PATTERN_CHARS_MAX} characters long")
    options = re2.Options()
    options.max_mem = PATTERN_BYTES_MAX
    options.log_errors = False
    options.never_capture = True
    try:
        # Searching bytes spares the library its translation of positions, which nobody asks for.
        search = re2.compile(pattern.encode("utf-8", "replace"), options).search
    except re2.error as error:
        reason = error.args[0] if error.args else ""
        shown = reason.decode("utf-8", "replace") if isinstance(reason, bytes) else str(reason)
        raise ValueError(f"RE2 does not take this pattern: {shown}") from None

    def found(text: str) -> bool:
        return search(text.encode("utf-8", "replace")) is not None

    return found


@_word(
    {"text": TEXT, "pattern": TEXT},
    BOOL,
    literal=("pattern",),
    cost=75,
    prepare=_pattern,
)
def matches(text: str, pattern: str) -> bool:
    """True when the regular expression is found anywhere in the text; write ^ and $ to hold it to the whole.

    The syntax is that of RE2, which takes time proportional to the text whatever the pattern.

    Example: `matches(event_name, r"^(login|signin)[._]failed$")`
    """
    return _pattern(pattern)(text)


@_word({"email": TEXT}, TEXT, total=False, domain=written(LOWER_TRIMMED))
def domain(email: str) -> str | None:
    """What stands after the last @ of an e-mail address, in small letters; unknown without an @.

    Example: `domain(customer.email) in ["example.com", "example.org"]`
    """
    name = email.rpartition("@")[2] if "@" in email else ""
    return name.strip().lower() or None


@_word({"a": TEXT, "b": TEXT}, NUMBER, cost=400, domain=SHARE)
def similarity(a: str, b: str) -> float:
    """How alike two texts are, from 0 to 1, whatever their letter case: the share of letter pairs in common.

    This is the coefficient of Dice (1945) and Sørensen (1948) over pairs of neighbouring characters, of the
    first 64 characters of each.

    Example: `similarity(metadata.cardholder, metadata.accountName) < 0.4`
    """
    left, right = a[:SIMILARITY_CHARS_MAX].lower(), b[:SIMILARITY_CHARS_MAX].lower()
    if left == right:
        return 1.0
    pairs = [left[at : at + 2] for at in range(len(left) - 1)]
    others = [right[at : at + 2] for at in range(len(right) - 1)]
    if not pairs or not others:
        return 0.0
    total, common = len(pairs) + len(others), 0
    counts: dict[str, int] = {}
    for pair in pairs:
        counts[pair] = counts.get(pair, 0) + 1
    for pair in others:
        left_over = counts.get(pair, 0)
        if left_over:
            counts[pair] = left_over - 1
            common += 1
    return 2 * common / total


# --- Numbers ---


@_word({"text": (TEXT, NUMBER)}, NUMBER, total=False, cost=5)
def number(text: Any) -> int | float | None:
    """The number that a text writes in decimal digits, such as "12.50"; a number stays as it is.

    Unknown for any other text, and beyond 1e15.

    Example: `number(metadata.price) > 99.5`
    """
    if isinstance(text, bool) or not isinstance(text, int | float | str):
        return None
    if not isinstance(text, str):
        return text
    digits = text.strip()
    if len(digits) > _NUMBER_CHARS_MAX or not _NUMBER.fullmatch(digits):
        return None
    value = float(digits)
    return value if -_NUMBER_MAX <= value <= _NUMBER_MAX else None


@_word({"x": NUMBER}, NUMBER, domain=NOT_NEGATIVE)
def _abs(x: float) -> float:
    """The number without its sign.

    Example: `abs(metadata.balance) > 10000`
    """
    return abs(x)


def _rounded(x: float, digits: int) -> float:
    return round(x, digits) if digits else round(x)


def _rounding(digits: float = 0) -> Callable[[float], float]:
    if digits not in range(13):
        raise ValueError("round takes 0 to 12 digits, a whole number")
    places = int(digits)
    return lambda x: _rounded(x, places)


@_word(
    {"x": NUMBER, "digits": NUMBER},
    NUMBER,
    literal=("digits",),
    optional=1,
    prepare=_rounding,
)
def _round(x: float, digits: int = 0) -> float:
    """The nearest number with so many digits after the point (0 to 12; 0 when left out). Half goes to even.

    Example: `round(metadata.amount, 2) == metadata.amount`
    """
    return _rounded(x, digits)


@_word({"x": NUMBER}, NUMBER, domain=_whole)
def floor(x: float) -> int:
    """The greatest whole number that is not above x.

    Example: `floor(metadata.amount) == metadata.amount`
    """
    return math.floor(x)


@_word({"x": NUMBER}, NUMBER, domain=_whole)
def ceil(x: float) -> int:
    """The least whole number that is not below x.

    Example: `ceil(metadata.amount / 100) >= 5`
    """
    return math.ceil(x)


@_word({"x": NUMBER}, NUMBER, many=True, cost=4, domain=_least)
def min_of(*x: float) -> float:
    """The least of 2 to 10 numbers.

    Example: `min_of(metadata.amount, metadata.limit) > 1000`
    """
    return min(x)


@_word({"x": NUMBER}, NUMBER, many=True, cost=4, domain=_greatest)
def max_of(*x: float) -> float:
    """The greatest of 2 to 10 numbers.

    Example: `metadata.amount > max_of(50, 3 * avg(metadata.amount, by=customer.external_id, within="30d"))`
    """
    return max(x)


WORDS.update(PLACES)
