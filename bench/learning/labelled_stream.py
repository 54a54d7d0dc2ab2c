"""Streams of labelled events, the labels given for them later, and how well a stream was scored."""

import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from vettance.clock import DAY_MS
from vettance.generate.fraud_stream import Traffic, stream
from vettance.learning.train import average_precision, calibration
from vettance.wire.payload import parse_object, timestamp

_WEEK_MS = 7 * DAY_MS


class LabelledEvent(NamedTuple):
    """An event as it is sent, when it happens, and the truth about it."""

    at_ms: int
    body: dict[str, Any]
    fraud: bool


class GivenLabel(NamedTuple):
    """What is said of the event at a place of the stream, and when (event time)."""

    at_ms: int
    place: int
    fraud: bool


def read_payments(file: Path) -> list[LabelledEvent]:
    """Read card payments: a parquet file of `ts`, `customer_id`, `terminal_id`, `amount` and `fraud`."""
    import pyarrow.parquet as parquet

    table = parquet.read_table(file)
    moments = table["ts"].cast("timestamp[ms]").cast("int64").to_pylist()
    columns = [table[name].to_pylist() for name in ("customer_id", "terminal_id", "amount", "fraud")]
    events = []
    for at_ms, customer, terminal, amount, fraud in zip(moments, *columns, strict=True):
        metadata = {"amount": amount, "currency": "EUR", "terminalId": f"t{terminal}"}
        body = {
            "eventName": "payment.authorized",
            "eventCategory": "TRANSACTION",
            "customer": {"externalId": f"c{customer}"},
            "metadata": metadata,
        }
        events.append(LabelledEvent(at_ms, body, bool(fraud)))
    return sorted(events, key=lambda one: one.at_ms)


def generated(customers: int, days: int, seed: int) -> list[LabelledEvent]:
    """Return what `vettance generate fraud` writes."""
    traffic = Traffic(customers=customers, days=days, seed=seed)
    return [
        LabelledEvent(one.at_ms, parse_object(one.body(f"ref_{number}")), one.fraud)
        for number, one in enumerate(stream(traffic))
    ]


def moved_to(events: Sequence[LabelledEvent], end_ms: int) -> list[LabelledEvent]:
    """Return events with their moments in them, by whole weeks moved so that they end before a moment."""
    weeks = (end_ms - events[-1].at_ms) // _WEEK_MS
    moved = []
    for one in events:
        at_ms = one.at_ms + weeks * _WEEK_MS
        metadata = {name: value for name, value in one.body["metadata"].items() if name != "occurredAt"}
        body = {**one.body, "metadata": metadata, "occurredAt": timestamp(at_ms)}
        moved.append(one._replace(at_ms=at_ms, body=body))
    return moved


def labels_of(
    events: Sequence[LabelledEvent],
    delay_days: float = 7,
    missing: float = 0,
    wrong: float = 0,
    seed: int = 1,
    silent: float = 0,
) -> list[GivenLabel]:
    """Return the labels of a stream in their order.

    Of the frauds the share `missing` is never labelled, of the others the share `silent`; a share of the
    labels of fraud says legitimate, and as many legitimate events are said to be fraud.
    """
    draw = random.Random(seed)
    frauds = [place for place, one in enumerate(events) if one.fraud]
    unsaid = set(draw.sample(frauds, round(missing * len(frauds))))
    said = [place for place in frauds if place not in unsaid]
    turned = set(draw.sample(said, round(wrong * len(said))))
    turned |= set(draw.sample([place for place, one in enumerate(events) if not one.fraud], len(turned)))
    others = [place for place, one in enumerate(events) if not one.fraud and place not in turned]
    unsaid |= set(draw.sample(others, round(silent * len(others)))) if silent else set()
    return [
        GivenLabel(one.at_ms + int(delay_days * DAY_MS), place, one.fraud is not (place in turned))
        for place, one in enumerate(events)
        if place not in unsaid
    ]


class ScoredEvent(NamedTuple):
    """What was said of an event: the model's probability, None without a model, and the risk score.

    `held` says whether the rules alone hold it up; None where that is not known.
    """

    probability: float | None
    score: int
    held: bool | None = None


class CaughtAtLoad(NamedTuple):
    """Frauds among the events that rules alone hold up, and among as many with the highest scores of both."""

    held: int
    frauds: int
    alone: int
    both: int

    def line(self) -> str:
        """Say it in one line."""
        missed = max(self.frauds - self.alone, 1)
        return (
            f"; rules hold {self.held:,} with {self.alone} frauds, as many by both scores have {self.both}: "
            f"{(self.both - self.alone) / missed:.0%} of what rules miss"
        )


class StreamFigures(NamedTuple):
    """How well the last days of a stream were scored. An event without a probability counts as 0."""

    events: int
    frauds: int
    probability: float
    score: float
    calibration_error: float
    without: int
    load: CaughtAtLoad | None = None

    def line(self) -> str:
        """Say it in one line."""
        return (
            f"{self.events:,} events, {self.frauds} frauds: average precision {self.probability:.3f} of the "
            f"probability, {self.score:.3f} of the score; calibration error {self.calibration_error:.4f}; "
            f"{self.without:,} before the first model"
        ) + (self.load.line() if self.load is not None else "")


def measure(
    events: Sequence[LabelledEvent], scored: Sequence[ScoredEvent], last_days: float
) -> StreamFigures:
    """Measure the events of the last days, counted from midnight (UTC)."""
    since_ms = (events[-1].at_ms // DAY_MS + 1) * DAY_MS - last_days * DAY_MS
    places = [place for place, one in enumerate(events) if one.at_ms >= since_ms]
    fraud = np.array([float(events[place].fraud) for place in places])
    said = np.array([scored[place].probability or 0.0 for place in places])
    points = np.array([float(scored[place].score) for place in places])
    weight = np.ones(len(places))
    bins = calibration(fraud, said, weight)
    return StreamFigures(
        len(places),
        int(fraud.sum()),
        average_precision(fraud, said, weight),
        average_precision(fraud, points, weight),
        sum(one["events"] * abs(one["predicted"] - one["true"]) for one in bins) / len(places),
        sum(scored[place].probability is None for place in places),
        _caught([(events[place].fraud, scored[place]) for place in places]),
    )


def _caught(known: Sequence[tuple[bool, ScoredEvent]]) -> CaughtAtLoad | None:
    if any(one.held is None for _, one in known):
        return None
    held = [fraud for fraud, one in known if one.held]
    highest = sorted(known, key=lambda pair: (-pair[1].score, -(pair[1].probability or 0.0)))[: len(held)]
    return CaughtAtLoad(
        len(held), sum(fraud for fraud, _ in known), sum(held), sum(fraud for fraud, _ in highest)
    )
