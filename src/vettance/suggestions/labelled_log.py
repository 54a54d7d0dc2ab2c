"""The log of decisions as columns: when each happened, how it was answered, and what it turned out to be."""

from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from vettance.clock import DAY_MS
from vettance.feedback.maturity import LABELLED_SHARE

#: The newest decisions of a span that are looked at.
EVENTS_MAX: Final = 3_000_000
#: The share of labelled frauds from which is learned; those after it, and what happened meanwhile, measure.
LEARNED_SHARE: Final = 0.65
ANSWERS: Final = {"ALLOW": 0, "REVIEW": 1, "BLOCK": 2}
UNLABELLED: Final = -1
#: What cannot be presumed legitimate either: it is too young, or nobody learned what it was.
UNKNOWN: Final = -2
_SEED: Final = 20_260_101

Numbers = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]


class LabelledLog(NamedTuple):
    """Decisions in the order of the log; `truths` has 1 for fraud, 0 for legitimate, -1 for no label.

    `mature_ms` is the moment (event time) up to which an event without a label counts as legitimate.
    """

    places: Numbers
    moments: Numbers
    answers: npt.NDArray[np.int8]
    truths: npt.NDArray[np.int8]
    mature_ms: int

    def pick(self, which: Flags) -> "LabelledLog":
        """Return some of the decisions."""
        return LabelledLog(
            self.places[which], self.moments[which], self.answers[which], self.truths[which], self.mature_ms
        )

    @property
    def frauds(self) -> int:
        """How many are labelled as fraud."""
        return int((self.truths == 1).sum())

    def known(self) -> "LabelledLog":
        """Return the decisions of which is known, or may be presumed, what they were.

        Nobody learns what a denied event was. Where few of the youngest events have a label yet, those that
        have are mostly fraud: all of that time is left out.
        """
        young = self.moments > self.mature_ms
        labelled = self.truths != UNLABELLED
        is_labelled_soon = bool(young.any()) and float(labelled[young].mean()) >= LABELLED_SHARE
        old = ~young & (labelled | (self.answers != ANSWERS["BLOCK"]))
        return self.pick(old | (young & labelled) if is_labelled_soon else old)

    def with_unknown(self) -> "LabelledLog":
        """Return all decisions, with what is not known of some as their truth."""
        truths = np.where(np.isin(self.places, self.known().places), self.truths, UNKNOWN)
        return self._replace(truths=truths.astype(np.int8))

    def sample(self, rest_max: int) -> tuple["LabelledLog", float]:
        """Return all frauds, a sample of so many others at most, and how many each of those stands for."""
        rest = np.flatnonzero(self.truths != 1)
        if len(rest) <= rest_max:
            return self, 1.0
        left_out = np.random.default_rng(_SEED).permutation(rest)[rest_max:]
        chosen = np.ones(len(self.truths), dtype=np.bool_)
        chosen[left_out] = False
        return self.pick(chosen), len(rest) / max(rest_max, 1)

    def split(self) -> tuple["LabelledLog", "LabelledLog"]:
        """Part in two by time: what is learned from, and the later part by which that is measured."""
        moments = np.sort(self.moments[self.truths == 1])
        cut = moments[min(int(len(moments) * LEARNED_SHARE), len(moments) - 1)]
        return self.pick(self.moments < cut), self.pick(self.moments >= cut)

    @property
    def days(self) -> float:
        """The days from the first event to the last, 1 at least."""
        if not len(self.moments):
            return 1.0
        return max(float(self.moments.max() - self.moments.min()) / DAY_MS, 1.0)


class LabelColumns:
    """Takes the log of labels, oldest first, and tells what holds in the end.

    Events are known by a hash of 64 bits: of a million labels, two collide once in ten million such logs.
    """

    def __init__(self) -> None:
        self._hashes: list[Numbers] = []
        self._values: list[Numbers] = []

    def take(self, rows: list[tuple[str, int, int]]) -> None:
        """Take (event, fraud, weight) of further changes."""
        self._hashes.append(hashes_of([row[0] for row in rows]))
        values = [int(fraud) if weight > 0 else UNLABELLED for _, fraud, weight in rows]
        self._values.append(np.array(values, dtype=np.int64))

    def standing(self) -> tuple[Numbers, Numbers]:
        """Return hashes of events in order, and their truths."""
        empty = np.zeros(0, dtype=np.int64)
        hashes, values = (np.concatenate([empty, *parts]) for parts in (self._hashes, self._values))
        found, last = np.unique(hashes[::-1], return_index=True)
        return found, values[::-1][last]


class LogColumns:
    """Takes the outlines of decisions in the order of the log and keeps the newest, as columns."""

    def __init__(self, span: tuple[int, int], standing: tuple[Numbers, Numbers], mature_ms: int) -> None:
        self._span = span
        self._mature_ms = mature_ms
        self._standing = standing
        self._parts: list[tuple[Numbers, Numbers, npt.NDArray[np.int8], npt.NDArray[np.int8]]] = []
        self._count = 0

    def take(self, rows: list[tuple[int, str, int, str]]) -> None:
        """Take (place, id, moment, decision) of further decisions."""
        moments = np.array([row[2] for row in rows], dtype=np.int64)
        inside = (moments >= self._span[0]) & (moments < self._span[1])
        truths = self._label(hashes_of([row[1] for row in rows]))
        places = np.array([row[0] for row in rows], dtype=np.int64)
        answers = np.array([ANSWERS.get(row[3], 0) for row in rows], dtype=np.int8)
        self._parts.append((places[inside], moments[inside], answers[inside], truths[inside]))
        self._count += int(inside.sum())
        while self._count - len(self._parts[0][0]) >= EVENTS_MAX:
            self._count -= len(self._parts.pop(0)[0])

    def _label(self, hashes: Numbers) -> npt.NDArray[np.int8]:
        known, truths = self._standing
        if not len(known):
            return np.full(len(hashes), UNLABELLED, dtype=np.int8)
        at = np.minimum(np.searchsorted(known, hashes), len(known) - 1)
        return np.where(known[at] == hashes, truths[at], UNLABELLED).astype(np.int8)

    def finish(self) -> LabelledLog:
        """Return the columns."""
        empty = np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
        no_bytes = np.zeros(0, dtype=np.int8), np.zeros(0, dtype=np.int8)
        places, moments, answers, truths = (
            np.concatenate(parts) for parts in zip((*empty, *no_bytes), *self._parts, strict=True)
        )
        return LabelledLog(places, moments, answers, truths, self._mature_ms)


def hashes_of(ids: list[str]) -> Numbers:
    """Return a number for each id, the same one within a process."""
    return np.fromiter(map(hash, ids), dtype=np.int64, count=len(ids))
