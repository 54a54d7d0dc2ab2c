"""Searches rules of conditions that catch frauds which the rules in force let through.

A beam search as CN2 makes it (Clark and Niblett, 1989), with FOIL's gain (Quinlan, 1990) to choose what is
built on, over sets of rows kept as bits; after each round, the frauds that its best rule
catches are left out.
"""

import heapq
import itertools
from collections.abc import Iterable, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from vettance.suggestions.candidate_conditions import Bits, ConditionTable, count_bits

#: Conditions of one rule.
LENGTH_MAX: Final = 3
#: Rules that are built on, of one condition and of two.
_BEAMS: Final = (60, 60)
#: A false hit weighs as much as so many frauds: rules below three quarters of precision are not worth it.
_FALSE_HIT: Final = 3.0
#: What a fraud counts that the rules in force stop already.
_STOPPED: Final = 0.4
#: Each condition beyond the first has to be worth this share of what the rule gains.
_LENGTH_COST: Final = 0.04
#: Hits on the rest that are expected where the sample shows none.
_UNSEEN: Final = 0.5
_ROUNDS_MAX: Final = 8
#: Rules of one round that are measured; they differ in what they hit.
_KEPT: Final = 8
#: Rules of one round that are joined in pairs, and the share of their frauds that both must see.
_JOINED: Final = 60
_SAME_ATTACK: Final = 0.15
_GAIN_MIN: Final = 5.0
_ALIKE: Final = 0.85

Counts = npt.NDArray[np.int64]
Gains = npt.NDArray[np.float64]


#: Conjunctions, one of which has to hold: each is conditions by their places in the table.
Alternatives = tuple[tuple[int, ...], ...]


class FoundRule(NamedTuple):
    """A rule by its conditions, what it gains where it was learned, and the rows that it hits there."""

    alternatives: Alternatives
    gain: float
    missed: int
    stopped: int
    rest: int


class _Partial(NamedTuple):
    """A conjunction with its rows."""

    places: tuple[int, ...]
    missed: Bits
    stopped: Bits
    rest: Bits


def search_rules(table: ConditionTable, rest_weight: float) -> list[FoundRule]:
    """Return rules, the best of each round first. `rest_weight` is how many events one row of the rest is."""
    if not table.conditions:
        return []
    left = np.full(table.missed.shape[1], np.iinfo(np.uint64).max, dtype=np.uint64)
    found: list[FoundRule] = []
    for _ in range(_ROUNDS_MAX):
        best = _Round(table, left, rest_weight).run()
        if not best:
            break
        known = {one.alternatives for one in found}
        found += [one for one in best if one.alternatives not in known]
        left = left & ~_rows_of(table.missed, best[0].alternatives)
        if int(np.bitwise_count(left & _any(table.missed)).sum()) < _GAIN_MIN:
            break
    return found


def _rows(bits: Bits, places: tuple[int, ...]) -> Bits:
    found: Bits = np.bitwise_and.reduce(bits[list(places)], axis=0)
    return found


def _rows_of(bits: Bits, alternatives: Alternatives) -> Bits:
    found: Bits = np.bitwise_or.reduce([_rows(bits, places) for places in alternatives], axis=0)
    return found


def _any(bits: Bits) -> Bits:
    found: Bits = np.bitwise_or.reduce(bits, axis=0)
    return found


class _Round:
    """One search for the frauds that are `left`."""

    def __init__(self, table: ConditionTable, left: Bits, rest_weight: float) -> None:
        self._missed = table.missed & left
        self._table = table
        self._weight = rest_weight
        self._best: list[tuple[float, tuple[int, ...], tuple[int, int, int]]] = []
        self._seen: set[tuple[int, ...]] = set()
        self._abouts = [one.source.text for one in table.conditions]
        #: What a conjunction has to catch, all false hits left aside, to be among the best.
        self._floor = _GAIN_MIN

    def run(self) -> list[FoundRule]:
        """Return the best rules that differ from each other."""
        table = self._table
        whole = (self._missed, table.stopped, table.rest)
        start = _Partial((), *(np.full(bits.shape[1], np.iinfo(np.uint64).max, np.uint64) for bits in whole))
        partials = [start]
        for depth in range(LENGTH_MAX):
            beam = _BEAMS[depth] if depth < len(_BEAMS) else 0
            offered: list[tuple[float, tuple[int, ...]]] = []
            for one in partials:
                offered += self._extend(one, beam)
            chosen = heapq.nlargest(beam, offered)
            partials = [self._partial(places) for _, places in chosen]
        return self._distinct()

    def _partial(self, places: tuple[int, ...]) -> _Partial:
        table = self._table
        return _Partial(places, *(_rows(bits, places) for bits in (self._missed, table.stopped, table.rest)))

    def _extend(self, one: _Partial, beam: int) -> list[tuple[float, tuple[int, ...]]]:
        """Try every condition on top of a conjunction; return those that are worth building on."""
        missed = count_bits(self._missed & one.missed)
        stopped = count_bits(self._table.stopped & one.stopped)
        able = missed + _STOPPED * stopped >= self._floor
        able &= missed > 0
        if one.places:
            known = {self._abouts[place] for place in one.places}
            able &= np.array([about not in known for about in self._abouts])
        chosen = np.flatnonzero(able)
        if not len(chosen):
            return []
        rest = self._count_rest(chosen, one)
        hits, caught = missed[chosen], stopped[chosen]
        gains = self._gain(hits, caught, rest, len(one.places) + 1)
        before_hits, before_rest = self._before(one)
        promise = foil(hits + _STOPPED * caught, rest * self._weight, before_hits, before_rest * self._weight)
        offered = []
        for at, place in enumerate(chosen.tolist()):
            places = tuple(sorted((*one.places, place)))
            if places in self._seen:
                continue
            self._seen.add(places)
            self._enter(float(gains[at]), places, (int(hits[at]), int(caught[at]), int(rest[at])))
            offered.append((float(promise[at]), places))
        return heapq.nlargest(beam, offered)

    def _count_rest(self, chosen: Counts, one: _Partial) -> Counts:
        """Count rows of the rest, looking only at the words where the conjunction has any."""
        words = np.flatnonzero(one.rest)
        if not len(words):
            return np.zeros(len(chosen), dtype=np.int64)
        if len(words) > 0.7 * len(one.rest):
            return count_bits(self._table.rest[chosen] & one.rest)
        return count_bits(self._table.rest[np.ix_(chosen, words)] & one.rest[words])

    def _before(self, one: _Partial) -> tuple[float, float]:
        if not one.places:
            every = _any(self._missed)
            return float(np.bitwise_count(every).sum()), float(np.bitwise_count(_any(self._table.rest)).sum())
        hits = float(np.bitwise_count(one.missed).sum()) + _STOPPED * float(
            np.bitwise_count(one.stopped).sum()
        )
        return hits, float(np.bitwise_count(one.rest).sum())

    def _gain(self, missed: Counts, stopped: Counts, rest: Counts, length: int) -> Gains:
        false = (rest + _UNSEEN) * self._weight
        gains: Gains = missed + _STOPPED * stopped - _FALSE_HIT * false
        return np.where(gains > 0, gains * (1 - _LENGTH_COST * (length - 1)), gains)

    def _enter(self, gain: float, places: tuple[int, ...], counts: tuple[int, int, int]) -> None:
        if gain < _GAIN_MIN:
            return
        self._best.append((gain, places, counts))
        if len(self._best) > 400:
            self._best.sort(key=lambda one: (-one[0], one[1]))
            del self._best[200:]
            self._floor = self._best[-1][0]

    def _distinct(self) -> list[FoundRule]:
        self._best.sort(key=lambda one: (-one[0], len(one[1]), one[1]))
        rules = [FoundRule((places,), gain, *counts) for gain, places, counts in self._best]
        rules += self._joined(self._different(rules, _JOINED))
        rules.sort(key=lambda one: -one.gain)
        return self._different(rules, _KEPT)

    def _different(self, rules: Iterable[FoundRule], count: int) -> list[FoundRule]:
        """Return the first so many rules that hit other rows than those before them."""
        kept: list[tuple[FoundRule, Bits]] = []
        for one in rules:
            rows = _rows_of(self._missed, one.alternatives)
            if all(alike(rows, other) < _ALIKE for _, other in kept):
                kept.append((one, rows))
            if len(kept) == count:
                break
        return [one for one, _ in kept]

    def _joined(self, rules: Sequence[FoundRule]) -> list[FoundRule]:
        """Join rules that see the same attack from two sides; those of two attacks stay two rules."""
        found = []
        for one, other in itertools.combinations(rules, 2):
            alternatives = (*one.alternatives, *other.alternatives)
            length = sum(map(len, alternatives))
            if length > LENGTH_MAX:
                continue
            first, second = (_rows_of(self._missed, each.alternatives) for each in (one, other))
            if alike(first, second) < _SAME_ATTACK:
                continue
            missed, stopped, rest = (
                count_bits(_rows_of(bits, alternatives))
                for bits in (self._missed, self._table.stopped, self._table.rest)
            )
            gain = float(self._gain(missed, stopped, rest, length))
            if gain > max(one.gain, other.gain):
                found.append(FoundRule(alternatives, gain, int(missed), int(stopped), int(rest)))
        return found


def foil(hits: npt.NDArray[Any], rest: npt.NDArray[Any], hits_before: float, rest_before: float) -> Gains:
    """Return the gain in information of a condition: the bits saved for each fraud that it still covers."""
    after = (hits + 1e-9) / (hits + rest + 1.0)
    before = (hits_before + 1e-9) / (hits_before + rest_before + 1.0)
    gains: Gains = hits * np.log2(after / before)
    return gains


def alike(one: Bits, other: Bits) -> float:
    """Return the share of rows of two sets that both have (Jaccard)."""
    either = int(np.bitwise_count(one | other).sum())
    return int(np.bitwise_count(one & other).sum()) / either if either else 1.0
