"""The mask: which decisions of the chunks a list asks for, as one byte for each."""

from collections.abc import Mapping
from typing import Final

import msgspec
import numpy as np

from vettance.decisions.decision import LEVELS
from vettance.history.filter import Wanted
from vettance.history.id_search import begins
from vettance.history.segment import (
    CATEGORIES,
    CATEGORY_SHIFT,
    LEVEL_SHIFT,
    OUTCOME_MASK,
    OUTCOMES,
    REASONS,
    Array,
)

_FEW: Final = 8
_BLOCK: Final = 1 << 16  # Numbers looked up at one time; all at once take twice as long.


class Sought(msgspec.Struct, frozen=True):
    """Where a searched text was found: terms of each field, and decisions by their ids.

    Those are their places, or a mask of all. `beginning` is still to be looked for in the ids.
    """

    terms: Mapping[str, Array]
    ids: Array | None = None
    beginning: str | None = None
    is_everything: bool = False


class Lookup(msgspec.Struct, frozen=True, kw_only=True):
    """What had to be looked up for a list: the numbers of its texts, and when its chunks were decided.

    `texts` holds (field, term) of which one must be so, for each filter; `moments` is a mask of its own.
    """

    texts: tuple[tuple[tuple[str, int], ...], ...] = ()
    moments: Array | None = None
    sought: Sought | None = None


def columns_needed(wanted: Wanted, lookup: Lookup) -> set[str]:
    """Name the columns that `mask_of` looks into."""
    needed = {field for choices in lookup.texts for field, term in choices if term}
    if wanted.outcome is not None or wanted.level is not None or wanted.category is not None:
        needed.add("verdict")
    if wanted.score_min is not None or wanted.score_max is not None:
        needed.add("score")
    if lookup.sought is not None:
        needed.update(name for name, terms in lookup.sought.terms.items() if len(terms))
        if lookup.sought.beginning is not None:
            needed |= {"high", "low"}
    return needed


def mask_of(wanted: Wanted, lookup: Lookup, size: int, columns: Mapping[str, Array]) -> Array | None:
    """Combine everything asked for; None when nothing is."""
    masks = [lookup.moments, _verdicts(wanted, columns)]
    if wanted.score_min is not None:
        masks.append(columns["score"] >= wanted.score_min)
    if wanted.score_max is not None:
        masks.append(columns["score"] <= wanted.score_max)
    for choices in lookup.texts:
        either = np.zeros(size, bool)
        for field, term in choices:
            if term:
                either |= columns[field] == term
        masks.append(either)
    if lookup.sought is not None:
        masks.append(_search(lookup.sought, size, columns))
    asked = [mask for mask in masks if mask is not None]
    if not asked:
        return None
    together = asked[0]
    for mask in asked[1:]:
        together = together & mask
    return together


def _verdicts(wanted: Wanted, columns: Mapping[str, Array]) -> Array | None:
    mask, value = 0, 0
    if wanted.outcome is not None:
        mask, value = OUTCOME_MASK, OUTCOMES.index(wanted.outcome)
    if wanted.level is not None:
        mask, value = mask | 3 << LEVEL_SHIFT, value | LEVELS.index(wanted.level) << LEVEL_SHIFT
    if wanted.category is not None:
        mask |= 3 << CATEGORY_SHIFT
        value |= CATEGORIES.index(wanted.category) << CATEGORY_SHIFT
    return (columns["verdict"] & np.uint8(mask)) == value if mask else None


def _search(sought: Sought, size: int, columns: Mapping[str, Array]) -> Array:
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
    table = np.zeros(int(terms.max()) + 2, bool)
    table[terms] = True
    picked = np.empty(len(values), bool)
    for start in range(0, len(values), _BLOCK):
        part = slice(start, start + _BLOCK)
        table.take(values[part], mode="clip", out=picked[part])
    return picked
