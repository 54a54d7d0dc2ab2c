"""The rows that a model is trained on: decisions with their features, and what they turned out to be."""

import math
import random
from array import array
from collections import deque
from collections.abc import Collection, Iterable, Sequence
from typing import Final, NamedTuple

from vettance.decisions.decision import DecisionRecordData, Outcome
from vettance.feedback.maturity import LABELLED_SHARE, LabelTiming
from vettance.models.model_score import score_of

#: A model is made from so many labelled frauds at least.
FRAUDS_MIN: Final = 50
#: And from so many legitimate ones: where all is fraud, a model learns to call everything fraud.
LEGIT_MIN: Final = 10
ROWS_MAX: Final = 300_000
#: Of these the newest are taken whole, older ones by a sample with weights.
NEWEST_MAX: Final = 200_000
_SEED: Final = 20_260_101


#: The end of what is said where there are too few labels.
NEEDED: Final = "are needed before a model is trained"


class TooFewLabels(Exception):
    """There is too little to learn from: `count` of what `words` say, where there must be `least`."""

    def __init__(self, count: int, words: str, least: int) -> None:
        super().__init__(f"{count} {words}, {least} {NEEDED}")


def says_too_few(failure: str) -> bool:
    """Tell whether a training gave no model only because there were too few labels: that is no fault."""
    return failure.endswith(NEEDED)


class StandingLabel(NamedTuple):
    """What labels say of an event in all: whether it was fraud, and since when that counts (event time)."""

    fraud: bool
    at_ms: int


class DecidedRow(NamedTuple):
    """A decision as training reads it: the score of the rules, what a model said, and how much it counts."""

    event: str
    occurred_at_ms: int
    features: Sequence[float | None]
    was_denied: bool
    points: int
    log_odds: float | None
    weight: float = 1.0


class TrainingRow(NamedTuple):
    """A row: when it happened, its features as 64-bit numbers, whether it was fraud, how much it counts."""

    occurred_at_ms: int
    features: bytes
    fraud: bool
    weight: float
    points: int
    log_odds: float | None


def decided_row(event: str, occurred_at_ms: int, record: DecisionRecordData) -> DecidedRow:
    """Return what training reads of a decision."""
    said = record.model.log_odds if record.model is not None else None
    # An active model has raised the score; what the rules gave cannot be known then.
    points = record.score if said is None else min(record.score, score_of(said))
    denied = record.outcome is Outcome.BLOCK and not record.held_out
    return DecidedRow(event, occurred_at_ms, record.features, denied, points, said)


class RowCollector:
    """Takes decisions in the order of the log and keeps what a model can be trained on, in bounded memory."""

    def __init__(self, labels: dict[str, StandingLabel], timing: LabelTiming) -> None:
        self._labels = labels
        self.timing = timing
        self._frauds: list[tuple[int, TrainingRow]] = []
        self._newest: deque[tuple[int, TrainingRow]] = deque()
        self._sample: list[tuple[int, TrainingRow]] = []
        self._older = 0
        self._young = self._young_labelled = 0
        self._unlabelled: deque[tuple[int, TrainingRow]] = deque(maxlen=ROWS_MAX - NEWEST_MAX)
        self._number = 0
        self._random = random.Random(_SEED)  # noqa: S311  The same log gives the same model.

    def is_fraud(self, event: str) -> bool:
        """Tell whether an event was labelled as fraud."""
        label = self._labels.get(event)
        return label is not None and label.fraud

    def take(self, row: DecidedRow) -> None:
        """Take the next decision."""
        is_labelled, is_young = row.event in self._labels, row.occurred_at_ms > self.timing.mature_ms
        self._young += is_young
        self._young_labelled += is_young and is_labelled
        if not is_labelled and row.was_denied:
            return  # Nobody will ever know.
        fraud = self.is_fraud(row.event)
        values = array("d", [math.nan if value is None else value for value in row.features]).tobytes()
        kept = TrainingRow(row.occurred_at_ms, values, fraud, row.weight, row.points, row.log_odds)
        self._number += 1
        one = self._number, kept
        if is_young and not is_labelled:
            self._unlabelled.append(one)
        elif fraud:
            self._frauds.append(one)
        else:
            self._newest.append(one)
            if len(self._newest) > NEWEST_MAX:
                self._take_older(self._newest.popleft())

    def _take_older(self, one: tuple[int, TrainingRow]) -> None:
        self._older += 1
        room = ROWS_MAX - NEWEST_MAX
        if len(self._sample) < room:
            self._sample.append(one)
        elif (place := self._random.randrange(self._older)) < room:
            self._sample[place] = one

    def rows(self) -> list[TrainingRow]:
        """Return the rows in the order of the log.

        Where few of the youngest events have a label yet, those that have are mostly fraud: all of that time
        is left out. Where too few frauds are left then, only what is younger than half of the labels take is
        left out, and nothing where that still leaves too few. What nobody labelled counts as legitimate
        then: some of it is not, but it tells how rare fraud is.
        """
        room = max(ROWS_MAX - len(self._frauds) - len(self._newest), 0)
        sample = self._sample[:room]
        weight = self._older / len(sample) if sample else 1.0
        older = [(number, row._replace(weight=weight * row.weight)) for number, row in sample]
        labelled = [*self._frauds, *self._newest, *older]
        if self._young_labelled >= LABELLED_SHARE * self._young:
            return _in_order(labelled)
        rows = _in_order([*labelled, *self._unlabelled])
        for latest_ms in (self.timing.mature_ms, self.timing.reached_ms - self.timing.delay_ms):
            old = [row for row in rows if row.occurred_at_ms <= latest_ms]
            if sum(row.fraud for row in old) >= FRAUDS_MIN:
                return old
        return rows


def _in_order(numbered: Iterable[tuple[int, TrainingRow]]) -> list[TrainingRow]:
    return [row for _, row in sorted(numbered, key=lambda one: one[0])]


def standing_labels(rows: Iterable[tuple[str, int, int, int]]) -> dict[str, StandingLabel]:
    """Read (event, fraud, weight, at_ms) of the log of labels, oldest first: what holds in the end."""
    found: dict[str, StandingLabel] = {}
    for event, fraud, weight, at_ms in rows:
        if weight > 0:
            found[event] = StandingLabel(bool(fraud), at_ms)
        elif event in found and found[event].fraud is bool(fraud):
            del found[event]
    return found


def check_labels(rows: Collection[TrainingRow]) -> None:
    """Demand that there is enough of both kinds to learn from. Raises `TooFewLabels`."""
    frauds = sum(row.fraud for row in rows)
    if frauds < FRAUDS_MIN:
        raise TooFewLabels(frauds, "labelled frauds were decided since features are kept", FRAUDS_MIN)
    if (legit := len(rows) - frauds) < LEGIT_MIN:
        words = "decisions since features are kept are legitimate, by a label or by their age"
        raise TooFewLabels(legit, words, LEGIT_MIN)
