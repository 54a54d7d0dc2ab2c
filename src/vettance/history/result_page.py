"""The page: the order of a list, and which of its decisions are on the page that is asked for."""

import enum
import itertools
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

import numpy as np

from vettance.decisions.searchable_fields import COLUMNS
from vettance.history.segment import SEARCHED, Array, DecisionRow
from vettance.ids import ID_DIGITS

_BLOCK: Final = 1 << 16
_ID_HEAD: Final = "evt_"
_HEX: Final = frozenset("0123456789abcdef")
TRIGRAM: Final = 3
_BETWEEN: Final = "\0"
_SEARCHED: Final = tuple(column in SEARCHED for column in COLUMNS)


class Order(enum.Enum):
    """What a list is sorted by; equal ones, and all of the first, by their place in the log."""

    EVALUATED = "evaluatedAt"
    RECEIVED = "receivedAt"
    SCORE = "riskScore"
    OUTCOME = "decision"


class IdPart(NamedTuple):
    """What a searched text can match of an id: `anywhere` in its digits, or as their `beginning`."""

    everything: bool = False
    beginning: str | None = None
    anywhere: str | None = None


def id_part(search: str) -> IdPart:
    """Tell how a searched text, in lower case, can be a part of `evt_` and 32 hex digits."""
    if search in _ID_HEAD:
        return IdPart(everything=True)
    for start in range(len(_ID_HEAD)):
        head = _ID_HEAD[start:]
        if search.startswith(head):
            digits = search[len(head) :]
            return IdPart(beginning=digits) if _is_digits(digits) else IdPart()
    if _is_digits(search):
        return IdPart(anywhere=search)
    return IdPart()


def _is_digits(text: str) -> bool:
    return len(text) <= ID_DIGITS and _HEX.issuperset(text)


def rows_holding(rows: Iterable[DecisionRow], search: str) -> Iterator[DecisionRow]:
    """Yield the decisions that hold a text (in folded case) somewhere that `search` looks into."""
    part = id_part(search)
    for row in rows:
        digits = row.id[len(_ID_HEAD) :]
        if (
            part.everything
            or (part.beginning is not None and digits.startswith(part.beginning))
            or (part.anywhere is not None and part.anywhere in digits)
            or search in _searched_text(row)
        ):
            yield row


def _searched_text(row: DecisionRow) -> str:
    """Return all that is searched of a decision, in folded case, joined by a character that no text has."""
    texts = filter(None, itertools.compress(row.texts, _SEARCHED))
    return _BETWEEN.join((*texts, *row.reasons.split())).casefold()


def pick(mask: Array | None, bounds: tuple[int, int], offset: int, limit: int, *, descending: bool) -> Array:
    """Return up to `limit` places, beyond the first `offset`, in `bounds`, that a mask lets through.

    Works through the mask in blocks from the end where the list begins, so that the first pages are cheap.
    """
    low, high = bounds
    if mask is None:
        found = np.arange(min(offset, high - low), min(offset + limit, high - low))
        return high - 1 - found if descending else low + found
    picked: list[Array] = []
    starts = range(low, high, _BLOCK)
    for start in reversed(starts) if descending else starts:
        block = mask[start : min(start + _BLOCK, high)]
        count = int(np.count_nonzero(block))
        if offset >= count:
            offset -= count
            continue
        places = np.flatnonzero(block) + start
        if descending:
            places = places[::-1]
        picked.append(places[offset : offset + limit])
        limit -= len(picked[-1])
        offset = 0
        if limit == 0:
            break
    return np.concatenate(picked) if picked else np.empty(0, np.int64)


class ResultSet(NamedTuple):
    """Everything that a list asks for: the decisions in chunks (a mask over them), then the newer ones.

    `keys` and `tail_keys` are what they are sorted by; without `keys`, by their place in the log alone.
    """

    size: int
    mask: Array | None
    tail: Array
    keys: Array | None
    tail_keys: Array

    @property
    def total(self) -> int:
        """How many there are."""
        return _count(self.mask, (0, self.size)) + len(self.tail)


class PageCursor(NamedTuple):
    """Where a page ended: the key and `seq` of its last decision.

    `cut` divides the places of the chunks: in a descending list those below it are still to come, in an
    ascending one the others.
    """

    key: int
    seq: int
    cut: int


class PageRow(NamedTuple):
    """One decision of a page: its place in the chunks, or (when that is -1) its `seq`; and its key."""

    place: int
    seq: int
    key: int


class _Group(NamedTuple):
    """The decisions of one key: how many of them are in chunks, and the newer ones."""

    key: int
    compacted: int
    tail: Array


def page_of(
    matches: ResultSet, offset: int, limit: int, after: PageCursor | None = None, *, descending: bool
) -> list[PageRow]:
    """Return one page, of those beyond `after` when it is given."""
    if matches.keys is not None and matches.keys.itemsize > 1:
        return _page_by_moment(matches, offset, limit, after, descending=descending)
    found: list[PageRow] = []
    for group in _groups(matches, descending=descending):
        bounds, compacted, tail = (0, matches.size), group.compacted, group.tail
        mask = None
        if after is not None and group.key != after.key and (group.key > after.key) == descending:
            continue
        if after is not None and group.key == after.key:
            bounds = (0, after.cut) if descending else (after.cut, matches.size)
            tail = tail[tail < after.seq] if descending else tail[tail > after.seq]
            mask = _mask_of(matches, group.key)
            compacted = _count(mask, bounds)
        if offset >= compacted + len(tail):
            offset -= compacted + len(tail)
            continue
        if mask is None:
            mask = _mask_of(matches, group.key)
        room = limit - len(found)
        first = len(tail) if descending else compacted
        # The chunks hold the older part of a group, the tail the newer one.
        places = pick(
            mask,
            bounds,
            max(0, offset - first) if descending else offset,
            room,
            descending=descending,
        )
        older = [PageRow(int(place), -1, group.key) for place in places]
        if descending:
            newer = _newer(tail[::-1], offset, room, group.key)
            found += newer + older[: room - len(newer)]
        else:
            found += older + _newer(tail, max(0, offset - first), room - len(older), group.key)
        offset = 0
        if len(found) >= limit:
            break
    return found


def _groups(matches: ResultSet, *, descending: bool) -> list[_Group]:
    """Split a result set by its keys (bytes), in the order of the list."""
    if matches.keys is None:
        return [_Group(0, _count(matches.mask, (0, matches.size)), matches.tail)]
    counts = np.bincount(matches.keys if matches.mask is None else matches.keys[matches.mask], minlength=256)
    present = sorted(
        {*np.flatnonzero(counts).tolist(), *np.unique(matches.tail_keys).tolist()}, reverse=descending
    )
    return [_Group(key, int(counts[key]), matches.tail[matches.tail_keys == key]) for key in present]


def _newer(tail: Array, offset: int, limit: int, key: int) -> list[PageRow]:
    return [PageRow(-1, seq, key) for seq in tail[offset : offset + limit].tolist()]


def _mask_of(matches: ResultSet, key: int) -> Array | None:
    if matches.keys is None:
        return matches.mask
    same: Array = matches.keys == key
    return same if matches.mask is None else same & matches.mask


def _count(mask: Array | None, bounds: tuple[int, int]) -> int:
    low, high = bounds
    return max(0, high - low) if mask is None else int(np.count_nonzero(mask[low:high]))


def _page_by_moment(
    matches: ResultSet, offset: int, limit: int, after: PageCursor | None, *, descending: bool
) -> list[PageRow]:
    """Sort by a key of many values. Moments come nearly sorted, which the stable sort makes use of."""
    assert matches.keys is not None, "a list by moments has moments"
    places = np.arange(matches.size) if matches.mask is None else np.flatnonzero(matches.mask)
    keys = np.concatenate((matches.keys[places], matches.tail_keys))
    seqs = np.concatenate((np.full(len(places), -1), matches.tail))
    places = np.concatenate((places, np.full(len(matches.tail), -1)))
    if after is not None:
        compacted = seqs < 0
        if descending:
            newer = np.where(compacted, places < after.cut, seqs < after.seq)
            rest = (keys < after.key) | ((keys == after.key) & newer)
        else:
            newer = np.where(compacted, places >= after.cut, seqs > after.seq)
            rest = (keys > after.key) | ((keys == after.key) & newer)
        keys, seqs, places = keys[rest], seqs[rest], places[rest]
    order = np.argsort(keys, kind="stable")
    if descending:
        order = order[::-1]
    page = order[offset : offset + limit]
    return [
        PageRow(int(place), int(seq), int(key))
        for place, seq, key in zip(places[page], seqs[page], keys[page], strict=True)
    ]
