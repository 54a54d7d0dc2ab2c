"""The column: decisions laid out field by field, so that millions of them are filtered in milliseconds."""

import functools
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from vettance.decisions.decision import LEVELS, Outcome
from vettance.decisions.searchable_fields import (
    COLUMNS,
    ENTITIES,
    REASONS,
    REASONS_BIT,
    SEARCHABLE_FIELDS,
    Texts,
)
from vettance.events.event import Category
from vettance.ids import ID_DIGITS
from vettance.terms.sql import Term

#: Decisions in a chunk. Larger ones make fewer rows to read, smaller ones a shorter tail to look through.
CHUNK: Final = 4_096

#: Decisions of the log that are read and thought about at once: more would be more small objects than memory
#: without holes has room for, and keep other requests waiting.
AT_ONCE: Final = 256

#: Terms of a column that are compared at one time: 256 KB, which stay in the processor's memory.
_BLOCK: Final = 1 << 16
#: So many terms are looked for by comparing, more of them by a table.
_COMPARED_MAX: Final = 4
#: Putting a number in order takes about as long as clearing so many counters.
COUNTERS_EACH: Final = 64

Array = npt.NDArray[Any]

#: What `search` looks into, apart from the id.
SEARCHED: Final = (*(field.column for field in SEARCHABLE_FIELDS if field.searched_as is not None), REASONS)
#: The bit of each column of texts in `term.fields`.
BITS: Final = {field.column: 1 << field.term_bit for field in SEARCHABLE_FIELDS} | {REASONS: 1 << REASONS_BIT}
SEARCHED_BITS: Final = sum(BITS[name] for name in SEARCHED)

#: The entities that are counted by day.
COUNTED_ENTITIES: Final = ("customer", "device")
#: The columns by which they are known.
COUNTED_COLUMNS: Final = tuple(column for kind in COUNTED_ENTITIES for column in ENTITIES[kind])

TIMES: Final = ("evaluated_at_ms", "received_at_ms", "occurred_at_ms")
#: How the number of a term is stored; in memory it may take fewer bytes.
TERM: Final = np.dtype("<u4")
#: How each column is stored. `high` and `low` are the digits of the id. `reasons` has an entry for each code
#: of each decision, none for most decisions. A text is the number of its term, 0 for none.
TYPES: Final[dict[str, np.dtype[Any]]] = {
    "seq": np.dtype("<i8"),
    **dict.fromkeys(("high", "low"), np.dtype("<u8")),
    **dict.fromkeys(TIMES, np.dtype("<i8")),
    "score": np.dtype("u1"),
    "verdict": np.dtype("u1"),
    **dict.fromkeys(COLUMNS, TERM),
    REASONS: np.dtype([("place", "<u4"), ("term", TERM)]),
}


class PackedField(NamedTuple):
    """A field of at most four values, kept in two bits of the column `verdict` from `shift` on."""

    shift: int
    values: tuple[str, ...]


_PACKED_BITS: Final = 0b11
#: Outcomes are sorted by their words, which is the same order in both vocabularies.
OUTCOMES: Final = (Outcome.ALLOW, Outcome.BLOCK, Outcome.REVIEW)
OUTCOME_MASK: Final = _PACKED_BITS
#: By their columns in the table `decision`.
PACKED: Final = {
    "decision": PackedField(0, tuple(outcome.value for outcome in OUTCOMES)),
    "level": PackedField(2, tuple(LEVELS)),
    "event_category": PackedField(4, tuple(category.value for category in Category)),
}


class DecisionRow(NamedTuple):
    """One decision as the history sees it."""

    seq: int
    id: str
    evaluated_at_ms: int
    received_at_ms: int
    occurred_at_ms: int
    decision: str
    level: str
    event_category: str
    score: int
    reasons: str
    texts: Texts

    def text(self, column: str) -> str | None:
        """Return the text of a searchable field."""
        return self.texts[_PLACES[column]]


_PLACES: Final = {column: place for place, column in enumerate(COLUMNS)}
#: What is read of the table `decision` to make a row.
ROW_COLUMNS: Final = (*DecisionRow._fields[:-1], *COLUMNS)


def row_of(row: Sequence[Any]) -> DecisionRow:
    """Make a decision of the values of `ROW_COLUMNS`."""
    texts = len(ROW_COLUMNS) - len(COLUMNS)
    return DecisionRow._make((*row[:texts], tuple(row[texts:])))


class Chunk(NamedTuple):
    """What is known of a chunk without reading its columns; `id` is the `seq` of its newest decision."""

    id: int
    first_seq: int
    size: int
    evaluated_min_ms: int
    evaluated_max_ms: int
    received_min_ms: int
    received_max_ms: int
    occurred_min_ms: int
    occurred_max_ms: int


@functools.cache
def packed(**values: str) -> tuple[int, int]:
    """Return the bits that some packed fields take in `verdict`, and these bits with their values in them."""
    mask = value = 0
    for name, text in values.items():
        field = PACKED[name]
        mask |= _PACKED_BITS << field.shift
        value |= field.values.index(text) << field.shift
    return mask, value


def texts_of(rows: Sequence[DecisionRow]) -> dict[str, int]:
    """Return each distinct text of some decisions with the fields it occurs in."""
    found: dict[str, int] = {}
    for place, name in enumerate(COLUMNS):
        bit = BITS[name]
        for value in {row.texts[place] for row in rows}:
            if value is not None:
                found[value] = found.get(value, 0) | bit
    for codes in {row.reasons for row in rows}:
        for code in codes.split():
            found[code] = found.get(code, 0) | BITS[REASONS]
    return found


def layout(rows: Sequence[DecisionRow], terms: Mapping[str, int], start: int = 0) -> dict[str, Array]:
    """Lay decisions out by columns; `terms` numbers every text of `texts_of`.

    `start` is how many decisions of the same chunk come before these.
    """
    columns: dict[str, Array] = {
        name: np.fromiter((getattr(row, name) for row in rows), TYPES[name], len(rows))
        for name in ("seq", *TIMES, "score")
    }
    for name, digits in (("high", slice(-ID_DIGITS, -ID_DIGITS // 2)), ("low", slice(-ID_DIGITS // 2, None))):
        columns[name] = np.fromiter((int(row.id[digits], 16) for row in rows), TYPES[name], len(rows))
    columns["verdict"] = np.fromiter(
        (
            packed(decision=row.decision, level=row.level, event_category=row.event_category)[1]
            for row in rows
        ),
        TYPES["verdict"],
        len(rows),
    )
    numbers: dict[str | None, int] = {None: 0}
    numbers.update(terms)
    for place, name in enumerate(COLUMNS):
        columns[name] = np.fromiter((numbers[row.texts[place]] for row in rows), TYPES[name], len(rows))
    pairs = [(place, terms[code]) for place, row in enumerate(rows, start) for code in row.reasons.split()]
    columns[REASONS] = np.array(pairs, TYPES[REASONS])
    return columns


def describe(columns: Mapping[str, Array]) -> Chunk:
    """Describe a chunk of some columns."""
    bounds = [int(bound) for name in TIMES for bound in (columns[name].min(), columns[name].max())]
    seq = columns["seq"]
    return Chunk(int(seq[-1]), int(seq[0]), len(seq), *bounds)


def ids_of(columns: Mapping[str, Array], first: int, end: int) -> list[tuple[int, str]]:
    """Return (seq, digits of the id) of some decisions."""
    parts = [columns[name][first:end].tolist() for name in ("seq", "high", "low")]
    width = ID_DIGITS // 2
    return [(seq, f"{high:0{width}x}{low:0{width}x}") for seq, high, low in zip(*parts, strict=True)]


def keys_of(columns: Mapping[str, Array]) -> dict[str, Array]:
    """Return the terms of the customers and devices of some decisions, 0 for none."""
    return {kind: entity_terms(kind, columns) for kind in COUNTED_ENTITIES}


def entity_terms(kind: str, columns: Mapping[str, Array], places: Array | None = None) -> Array:
    """Return the terms by which an entity is known in some decisions: of the first column that has one.

    With `places` in the decisions there.
    """
    first, *others = ENTITIES[kind]
    terms = _at(columns[first], places)
    for name in others:
        is_unknown = terms == 0
        if is_unknown.any():
            terms = np.where(is_unknown, _at(columns[name], places), terms)
    return terms


def _at(column: Array, places: Array | None) -> Array:
    # Places are right: looking whether each is takes a quarter of the time.
    return column if places is None else column.take(places, mode="clip")


def columns_of(kind: str, term: Term) -> tuple[str, ...]:
    """Return the columns that tell where an entity is known by a term: those before its own say where not."""
    names = ENTITIES[kind]
    own = [place for place, name in enumerate(names) if term.fields & BITS[name]]
    return names[: own[-1] + 1] if own else ()


def places_of(columns: Mapping[str, Array], kind: str, terms: Sequence[Term]) -> list[Array]:
    """Return the places, in order, where entities of a kind are known by each of some terms.

    Looks only into columns in which a term was ever seen (see `columns_of`).
    """
    names = ENTITIES[kind]
    found: list[list[Array]] = [[] for _ in terms]
    for number, name in enumerate(names):
        asked = [place for place, term in enumerate(terms) if term.fields & BITS[name]]
        if not asked:
            continue
        for place, here in zip(asked, _places_in(columns[name], [terms[at].id for at in asked]), strict=True):
            known = here
            for earlier in names[:number]:
                known = known[columns[earlier][known] == 0]
            found[place].append(known)
    # They are in order but for those that a later column showed; a stable sort takes runs as they are.
    return [
        np.sort(np.concatenate(places), kind="stable") if places else np.empty(0, np.int64)
        for places in found
    ]


def _places_in(column: Array, terms: Sequence[int]) -> list[Array]:
    """Return the places of each of some terms in a column.

    Goes through it in blocks that stay in the processor's memory. Each comparison takes as long as another;
    looking every number up in a table takes as long as four of them, however many terms there are.
    """
    found: list[list[Array]] = [[] for _ in terms]
    wanted = np.array(terms, np.int64)
    table = lookup_table(wanted) if len(terms) > _COMPARED_MAX else None
    for start in range(0, len(column), _BLOCK):
        block = column[start : start + _BLOCK]
        at: Array | None = None
        if table is not None:
            at = np.flatnonzero(table.take(block, mode="clip"))
            block = block[at]
        for places, term in zip(found, terms, strict=True):
            is_here = block == term
            if is_here.any():
                here = np.flatnonzero(is_here)
                places.append((here if at is None else at[here]) + start)
    return [np.concatenate(places) if places else np.empty(0, np.int64) for places in found]


def lookup_table(terms: Array) -> Array:
    """Return a table that is true at some numbers, and not at its last place, to which higher ones go."""
    table = np.zeros(int(terms.max()) + 2, bool)
    table[terms] = True
    return table


def count_terms(terms: Array) -> tuple[Array, Array]:
    """Return the different terms among some, 0 left out, and how often each is there.

    Where they lie close together, counters for all are cheaper than putting them in order.
    """
    end = int(terms.max(initial=0)) + 1
    if end > COUNTERS_EACH * len(terms):
        found, counts = np.unique(terms, return_counts=True)
        return found[found > 0], counts[found > 0]
    every = np.bincount(terms, minlength=1)
    found = np.flatnonzero(every[1:]) + 1
    return found, every[found]


def count_outcomes(verdicts: Array, mask: Array | None) -> list[int]:
    """Count decisions by their outcomes, in the order of `OUTCOMES`; with a mask, those that it lets through.

    Comparing in blocks that stay in the processor's memory takes half as long as picking out what is counted.
    """
    counts = [0] * len(OUTCOMES)
    for start in range(0, len(verdicts), _BLOCK):
        part = slice(start, start + _BLOCK)
        outcomes = verdicts[part] & np.uint8(OUTCOME_MASK)
        for place in range(len(OUTCOMES)):
            is_counted = outcomes == place
            if mask is not None:
                is_counted &= mask[part]
            counts[place] += int(np.count_nonzero(is_counted))
    return counts


class ColumnData:
    """One column of all chunks of a tenant, in memory: it grows at its end as chunks are added.

    Numbers of texts take as many bytes as the highest of them needs: one for a shop of few customers.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._kept = np.empty(0, np.uint8 if name in COLUMNS else TYPES[name])
        self._used = 0
        self._places = 0
        self._first = 0
        self._chunks = 0
        #: The id of the newest chunk in it, 0 when there is none.
        self.through = 0

    @property
    def memory_bytes(self) -> int:
        """How much memory it takes."""
        return int(self._kept.nbytes)

    def begins(self, ids: Sequence[int], starts: Array) -> bool:
        """Tell whether what it holds is a beginning of some chunks: older ones may have been removed.

        `starts` are the places where these chunks begin, and at last the place where they end.
        """
        count = min(self._chunks, len(ids))
        if not self._chunks:
            return True
        if not count or ids[0] != self._first:
            return False
        # The caller may have read the list before the newest chunks were added; those are cut off for it.
        return count < self._chunks or (ids[count - 1], int(starts[count])) == (self.through, self._places)

    @property
    def values(self) -> Array:
        """Everything in it; later growth does not change what was returned."""
        used: Array = self._kept[: self._used]
        return used

    def reserve(self, places: int) -> None:
        """Make room for so many decisions if they are many more: else growing moves them again and again."""
        if self._name != REASONS and places > len(self._kept) * 3 // 2:
            grown = np.empty(places, self._kept.dtype)
            grown[: self._used] = self._kept[: self._used]
            self._kept = grown

    def add(self, chunks: Sequence[tuple[int, int, bytes | None]]) -> None:
        """Add the next chunks: of each its id, how many decisions it has, and its values.

        None has a value in a chunk that was made before this column.
        """
        kind = TYPES[self._name]
        parts = [bytes(size * kind.itemsize) if data is None else data for _, size, data in chunks]
        more = np.frombuffer(b"".join(parts), kind)
        sizes = [size for _, size, _ in chunks]
        end = self._used + len(more)
        kind = self._kept.dtype
        if self._name in COLUMNS:
            kind = np.promote_types(kind, np.min_scalar_type(more.max(initial=0)))
        if end > len(self._kept) or kind != self._kept.dtype:
            room = len(self._kept)
            grown = np.empty(room if end <= room else max(end, room * 3 // 2), kind)
            grown[: self._used] = self._kept[: self._used]
            self._kept = grown
        self._kept[self._used : end] = more
        if self._name == REASONS:
            # In a chunk, places count from its own start.
            starts = self._places + np.cumsum([0, *sizes[:-1]], dtype=np.uint32)
            entries = [len(part) // kind.itemsize for part in parts]
            self._kept["place"][self._used : end] += np.repeat(starts, entries).astype(np.uint32)
        self._used = end
        self._places += sum(sizes)
        self._first = self._first or chunks[0][0]
        self._chunks += len(chunks)
        self.through = chunks[-1][0]
