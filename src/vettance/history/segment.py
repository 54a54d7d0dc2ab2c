"""The column: decisions laid out field by field, so that millions of them are filtered in milliseconds."""

import functools
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from vettance.decisions.decision import LEVELS, Outcome
from vettance.events.event import Category
from vettance.ids import ID_DIGITS

#: Decisions in a chunk. Larger ones make fewer rows to read, smaller ones a shorter tail to look through.
CHUNK: Final = 4_096

#: Decisions of the log that are read and thought about at once: more would be more small objects than memory
#: without holes has room for, and keep other requests waiting.
AT_ONCE: Final = 256

Array = npt.NDArray[Any]

#: Fields that hold a text; in a column it is the number of the term, 0 for none.
TEXTS: Final = (
    "customer_id",
    "email",
    "device_id",
    "fingerprint",
    "ip",
    "event_name",
    "country",
    "session_id",
)
REASONS: Final = "reasons"
#: Fields that `search` looks into, beside the id.
SEARCHED: Final = ("customer_id", "email", "device_id", "fingerprint", "ip", "event_name", REASONS)
#: The bit of each field in `term.fields`.
BITS: Final = {name: 1 << place for place, name in enumerate((*TEXTS, REASONS))}
SEARCHED_BITS: Final = sum(BITS[name] for name in SEARCHED)

TIMES: Final = ("evaluated_at_ms", "received_at_ms", "occurred_at_ms")
#: How the number of a term is stored; in memory it may take fewer bytes.
TERM: Final = np.dtype("<u4")
#: How each column is stored. `high` and `low` are the digits of the id. `reasons` has an entry for each code
#: of each decision, none for most decisions.
TYPES: Final[dict[str, np.dtype[Any]]] = {
    "seq": np.dtype("<i8"),
    **dict.fromkeys(("high", "low"), np.dtype("<u8")),
    **dict.fromkeys(TIMES, np.dtype("<i8")),
    "score": np.dtype("u1"),
    "verdict": np.dtype("u1"),
    **dict.fromkeys(TEXTS, TERM),
    REASONS: np.dtype([("place", "<u4"), ("term", TERM)]),
}

#: Outcomes are sorted by their words, which is the same order in both vocabularies.
OUTCOMES: Final = (Outcome.ALLOW, Outcome.BLOCK, Outcome.REVIEW)
CATEGORIES: Final = tuple(Category)
OUTCOME_MASK: Final = 0b11
LEVEL_SHIFT: Final = 2
CATEGORY_SHIFT: Final = 4


class DecisionRow(NamedTuple):
    """One decision as the history sees it."""

    seq: int
    id: str
    evaluated_at_ms: int
    received_at_ms: int
    occurred_at_ms: int
    outcome: str
    level: str
    category: str
    score: int
    customer_id: str | None
    email: str | None
    device_id: str | None
    fingerprint: str | None
    ip: str | None
    event_name: str
    country: str | None
    session_id: str | None
    reasons: str


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
def verdict(outcome: str, level: str, category: str) -> int:
    """Pack what has few values into one byte."""
    return (
        OUTCOMES.index(Outcome(outcome))
        | LEVELS.index(level) << LEVEL_SHIFT
        | CATEGORIES.index(Category(category)) << CATEGORY_SHIFT
    )


def texts_of(rows: Sequence[DecisionRow]) -> dict[str, int]:
    """Return each distinct text of some decisions with the fields it stands in."""
    found: dict[str, int] = {}
    for name in TEXTS:
        bit = BITS[name]
        for value in {getattr(row, name) for row in rows}:
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
        (verdict(row.outcome, row.level, row.category) for row in rows), TYPES["verdict"], len(rows)
    )
    numbers: dict[str | None, int] = {None: 0}
    numbers.update(terms)
    for name in TEXTS:
        columns[name] = np.fromiter((numbers[getattr(row, name)] for row in rows), TYPES[name], len(rows))
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
    """Return what customers and devices are known by, as `Event.customer_key` and `device_key` tell it."""
    customer, device = columns["customer_id"], columns["fingerprint"]
    return {
        "customer": np.where(customer > 0, customer, columns["email"]),
        "device": np.where(device > 0, device, columns["device_id"]),
    }


class ColumnData:
    """One column of all chunks of a tenant, in memory: it grows at its end as chunks are added.

    Numbers of texts take as many bytes as the highest of them needs: one for a shop of few customers.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._kept = np.empty(0, np.uint8 if name in TEXTS else TYPES[name])
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
        # Whoever asks may have looked before the newest chunks were added; those are cut off for them.
        return count < self._chunks or (ids[count - 1], int(starts[count])) == (self.through, self._places)

    @property
    def values(self) -> Array:
        """Everything in it; later growth does not change what was returned."""
        used: Array = self._kept[: self._used]
        return used

    def add(self, chunk_id: int, size: int, data: bytes) -> None:
        """Add the next chunk, of `size` decisions."""
        more = np.frombuffer(data, TYPES[self._name])
        end = self._used + len(more)
        kind = self._kept.dtype
        if self._name in TEXTS:
            kind = np.promote_types(kind, np.min_scalar_type(more.max(initial=0)))
        if end > len(self._kept) or kind != self._kept.dtype:
            grown = np.empty(max(end, len(self._kept) * 3 // 2), kind)
            grown[: self._used] = self._kept[: self._used]
            self._kept = grown
        self._kept[self._used : end] = more
        if self._name == REASONS:
            # In a chunk, places count from its own start.
            self._kept["place"][self._used : end] += np.uint32(self._places)
        self._used = end
        self._places += size
        self._first = self._first or chunk_id
        self._chunks += 1
        self.through = chunk_id
