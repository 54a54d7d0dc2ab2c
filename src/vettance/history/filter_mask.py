"""The mask: which decisions of the chunks a list asks for, as one byte for each."""

import operator
from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec
import numpy as np

from vettance.decisions.searchable_fields import FIELD_OF_COLUMN, REASONS
from vettance.history.id_search import begins
from vettance.history.search_criteria import FieldCondition, SearchCriteria
from vettance.history.segment import BITS, PACKED, Array, lookup_table, packed
from vettance.terms.sql import Term

_FEW: Final = 2
_BLOCK: Final = 1 << 16  # Numbers looked up at one time; all at once take twice as long.


class TermMatches(msgspec.Struct, frozen=True):
    """Where a searched text was found: terms of each field, and decisions by their ids.

    Those are their places, or a mask of all. `beginning` is still to be looked for in the ids.
    """

    terms: Mapping[str, Array]
    ids: Array | None = None
    beginning: str | None = None
    is_everything: bool = False


class Lookup(msgspec.Struct, frozen=True, kw_only=True):
    """What had to be looked up for a list: the terms of its texts, and what its search found.

    `moments` is the mask of the span that it asks for.
    """

    terms: Mapping[str, Term] = {}
    moments: Array | None = None
    sought: TermMatches | None = None

    def term_in(self, column: str, text: str) -> int:
        """Return the number of a text if it was ever seen in a column; otherwise 0, which is no term."""
        term = self.terms.get(text)
        return term.id if term is not None and term.fields & BITS[column] else 0


#: Columns that hold terms.
TERMED: Final = frozenset((*FIELD_OF_COLUMN, REASONS))
_COMPARISONS: Final[Mapping[str, Callable[[Array, Any], Array]]] = {
    "=": operator.eq,
    ">=": operator.ge,
    "<=": operator.le,
}


def columns_needed(wanted: SearchCriteria, lookup: Lookup) -> set[str]:
    """Name the columns that `mask_of` looks into."""
    needed = set()
    for condition in wanted.conditions:
        for column, value in condition.choices:
            if column in PACKED:
                needed.add("verdict")
            elif column not in TERMED or lookup.term_in(column, str(value)):
                needed.add(column)
    if lookup.sought is not None:
        needed.update(name for name, terms in lookup.sought.terms.items() if len(terms))
        if lookup.sought.beginning is not None:
            needed |= {"high", "low"}
    return needed


def mask_of(wanted: SearchCriteria, lookup: Lookup, size: int, columns: Mapping[str, Array]) -> Array | None:
    """Combine everything asked for; None when nothing is."""
    masks = [lookup.moments, _verdicts(wanted, columns)]
    masks += [_compare(condition, lookup, size, columns) for condition in wanted.conditions]
    if lookup.sought is not None:
        masks.append(_search(lookup.sought, size, columns))
    asked = [mask for mask in masks if mask is not None]
    if not asked:
        return None
    together = asked[0]
    for mask in asked[1:]:
        together = together & mask
    return together


def _verdicts(wanted: SearchCriteria, columns: Mapping[str, Array]) -> Array | None:
    """Compare all packed fields at once."""
    asked = {
        column: str(value)
        for condition in wanted.conditions
        for column, value in condition.choices
        if column in PACKED
    }
    mask, packed_value = packed(**asked)
    return (columns["verdict"] & np.uint8(mask)) == packed_value if mask else None


def _compare(
    condition: FieldCondition, lookup: Lookup, size: int, columns: Mapping[str, Array]
) -> Array | None:
    """Compare columns of numbers or terms, of which one must hold; None for packed fields."""
    compare = _COMPARISONS[condition.comparison]
    (column, value), *others = condition.choices
    if column in PACKED:
        return None
    if column not in TERMED:
        return compare(columns[column], value)
    either = np.zeros(size, bool)
    for name, text in ((column, value), *others):
        term = lookup.term_in(name, str(text))
        if term and name == REASONS:
            pairs = columns[REASONS]
            either[pairs["place"][pairs["term"] == term]] = True
        elif term:
            either |= columns[name] == term
    return either


def _search(sought: TermMatches, size: int, columns: Mapping[str, Array]) -> Array:
    if sought.is_everything:
        return np.ones(size, bool)
    found = np.zeros(size, bool)
    if sought.ids is not None:
        found[sought.ids] = True
    if sought.beginning is not None:
        found |= begins(columns["high"], columns["low"], sought.beginning)
    for name, terms in sought.terms.items():
        if not len(terms):
            continue
        if name == REASONS:
            pairs = columns[REASONS]
            found[pairs["place"][among(pairs["term"], terms)]] = True
        else:
            found |= among(columns[name], terms)
    return found


def among(values: Array, terms: Array) -> Array:
    """Which of `values` are one of some term numbers."""
    if len(terms) <= _FEW:
        found = np.zeros(len(values), bool)
        for term in terms.tolist():
            found |= values == term
        return found
    # Whatever is higher than the highest term falls onto the last place, which stays empty.
    table = lookup_table(terms)
    picked = np.empty(len(values), bool)
    for start in range(0, len(values), _BLOCK):
        part = slice(start, start + _BLOCK)
        table.take(values[part], mode="clip", out=picked[part])
    return picked
