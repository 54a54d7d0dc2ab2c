"""Domains: which values of its type a name can have, so that a comparison no value fulfils is found early."""

import difflib
import math
from collections.abc import Callable
from typing import Final, NamedTuple

import msgspec

Scalar = int | float | str | bool

_SHOWN_MAX: Final = 15  # Values of a closed set that a message lists; every kind of event fits in.


class Fold(NamedTuple):
    """How every text of a name is written: `said` in words, `whole` applied to a text, `part` to a piece."""

    said: str
    whole: Callable[[str], str]
    part: Callable[[str], str]


def _unchanged(text: str) -> str:
    return text


LOWER: Final = Fold("in small letters", str.lower, str.lower)
UPPER: Final = Fold("in capital letters", str.upper, str.upper)
LOWER_TRIMMED: Final = Fold("in small letters", lambda text: text.strip().lower(), str.lower)
UPPER_TRIMMED: Final = Fold("in capital letters", lambda text: text.strip().upper(), str.upper)
TRIMMED: Final = Fold("without spaces around it", str.strip, _unchanged)


class Domain(msgspec.Struct, frozen=True, kw_only=True):
    """The values of a name or an expression, as narrow as they are known.

    `values` are all there are (none: any); `fold` is how texts are written; numbers lie from `low` to `high`,
    and are `whole` or not. A domain that is not `closed` has a few values beyond `values`, `low` and `high`:
    what lies there is doubted, not refused. `nearest` knows what was meant by a text that is none of the
    values; `note` says what the values mean.
    """

    values: frozenset[Scalar] = frozenset()
    fold: Fold | None = None
    low: float = -math.inf
    high: float = math.inf
    whole: bool = False
    closed: bool = True
    nearest: Callable[[str], str | None] | None = None
    note: str = ""

    @property
    def bounded(self) -> bool:
        """Whether anything is known of its numbers."""
        return self.low > -math.inf or self.high < math.inf


ANYTHING: Final = Domain()
NOT_NEGATIVE: Final = Domain(low=0)
COUNT: Final = Domain(low=0, whole=True)
SHARE: Final = Domain(low=0, high=1)
HOUR: Final = Domain(low=0, high=23, whole=True)
WEEKDAY: Final = Domain(low=1, high=7, whole=True, note="1 is Monday and 7 is Sunday, as in ISO 8601")


class Doubt(NamedTuple):
    """What is wrong with a value that a rule writes: a message, how to mend it, whether that is certain."""

    message: str
    hint: str | None
    certain: bool = True


def one_of(*values: str, fold: Fold | None = None) -> Domain:
    """Make the domain of a closed set of texts."""
    return Domain(values=frozenset(values), fold=fold)


def written(fold: Fold) -> Domain:
    """Make the domain of texts that are all written in one way."""
    return Domain(fold=fold)


def quoted(value: Scalar) -> str:
    """Write a value as a rule writes it."""
    return f'"{value}"' if isinstance(value, str) else shown_number(value)


def shown_number(value: float) -> str:
    """Write a number without a needless point."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(int(value)) if value == int(value) else repr(value)


def doubt_about(domain: Domain, name: str, value: Scalar) -> Doubt | None:
    """Say why `name`, whose values are those of `domain`, can never equal `value`; None when it can."""
    if isinstance(value, bool):
        return None
    if isinstance(value, str):
        return _doubt_about_text(domain, name, value)
    if domain.whole and value != int(value):
        return Doubt(f"{name} is always a whole number", None)
    outside = value < domain.low or value > domain.high
    if outside or (domain.values and value not in domain.values):
        return Doubt(f"{name} is never {shown_number(value)}", range_hint(domain), domain.closed)
    return None


def _doubt_about_text(domain: Domain, name: str, value: str) -> Doubt | None:
    if domain.values and value in domain.values:
        return None
    meant = _nearest(domain, value) if domain.values else None
    hint = f'did you mean "{meant}"?' if meant is not None else listed(domain)
    if domain.values and domain.closed:
        return Doubt(f'{name} is never "{value}"', hint)
    if domain.fold is not None and (folded := domain.fold.whole(value)) != value:
        said = TRIMMED.said if folded == value.strip() else domain.fold.said
        return Doubt(f"{name} is always {said}", hint or f'did you mean "{folded}"?')
    if domain.values:
        return Doubt(f'"{value}" is none of the known values of {name}', hint, certain=False)
    return None


def doubt_about_part(
    domain: Domain, name: str, part: str, word: str, holds: Callable[[str], bool]
) -> Doubt | None:
    """Say why no value of `name` fulfils `word` (such as `contains`) with a part; `holds` asks one value."""
    if domain.values and domain.closed:
        if any(holds(value) for value in domain.values if isinstance(value, str)):
            return None
        return Doubt(f"{word} is true of no value that {name} can have", listed(domain))
    if domain.fold is not None and domain.fold.part(part) != part:
        folded = f'did you mean "{domain.fold.part(part)}"?'
        return Doubt(f"{name} is always {domain.fold.said}", folded)
    return None


def listed(domain: Domain) -> str | None:
    """List the values of a closed set, when a message can hold them."""
    if not 0 < len(domain.values) <= _SHOWN_MAX:
        return None
    return "it is one of " + ", ".join(quoted(value) for value in sorted(domain.values, key=str))


def range_hint(domain: Domain) -> str | None:
    """Say where the numbers of a domain lie."""
    if domain.values:
        return listed(domain)
    what = "a whole number" if domain.whole else "a number"
    note = f"; {domain.note}" if domain.note else ""
    if domain.low > -math.inf and domain.high < math.inf:
        return f"it is {what} from {shown_number(domain.low)} to {shown_number(domain.high)}{note}"
    if domain.low > -math.inf:
        return f"it is never below {shown_number(domain.low)}{note}"
    return f"it is never above {shown_number(domain.high)}{note}" if domain.high < math.inf else None


def _nearest(domain: Domain, value: str) -> str | None:
    if domain.nearest is not None and (meant := domain.nearest(value)) is not None:
        return meant
    known = {str(each).lower(): str(each) for each in domain.values}
    plain = value.strip().lower()
    if plain in known:
        return known[plain]
    # Two letters are near to far too many codes of two letters.
    close = difflib.get_close_matches(plain[:64], known, 1, 0.6) if len(plain) > 2 else []
    return known[close[0]] if close else None


# --- What becomes of domains ---


def union(one: Domain, other: Domain) -> Domain:
    """Return the domain of a value that is of the one domain or of the other."""
    values = one.values | other.values if one.values and other.values else frozenset()
    return Domain(
        values=values,
        fold=one.fold if one.fold is other.fold else _shared_fold(one, other),
        low=min(one.low, other.low),
        high=max(one.high, other.high),
        whole=one.whole and other.whole,
        closed=one.closed and other.closed,
        nearest=one.nearest or other.nearest,
        note=one.note or other.note,
    )


def _shared_fold(one: Domain, other: Domain) -> Fold | None:
    """Return the fold of the one domain that the texts of the other, all known, are written in as well."""
    for fold, texts in ((one.fold, other.values), (other.fold, one.values)):
        if fold is not None and texts and all(fold.whole(str(text)) == text for text in texts):
            return fold
    return None


def refolded(domain: Domain, fold: Fold) -> Domain:
    """Return the domain of the texts of a domain, brought into a fold."""
    values = frozenset(fold.whole(str(value)) for value in domain.values)
    return Domain(values=values, fold=fold, closed=domain.closed)


def of_value(value: Scalar) -> Domain:
    """Return the domain of a value that is written out."""
    if isinstance(value, bool):
        return ANYTHING
    if isinstance(value, str):
        return Domain(values=frozenset((value,)))
    return Domain(low=value, high=value, whole=value == int(value))


def computed(sign: str, left: Domain, right: Domain) -> Domain:
    """Return the domain of `left sign right`, by the ends of both."""
    fixed = right.low if right.low == right.high else 0.0
    whole = left.whole and right.whole and sign != "/"
    match sign:
        case "+":
            ends = [left.low + right.low, left.high + right.high]
        case "-":
            ends = [left.low - right.high, left.high - right.low]
        case "*":
            pairs = [(one, other) for one in (left.low, left.high) for other in (right.low, right.high)]
            # Nothing times anything is nothing, however large.
            ends = [one * other if one and other else 0.0 for one, other in pairs]
        case "/" if fixed:
            ends = [left.low / fixed, left.high / fixed]
        case "%" if fixed > 0:
            ends = [0.0, fixed - 1 if whole else fixed]
        case _:
            return ANYTHING
    return Domain(low=min(ends), high=max(ends), whole=whole, closed=left.closed and right.closed)
