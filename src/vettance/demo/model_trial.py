"""The demo's model: trained from labels that come in on the way, and what it adds to the rules."""

import importlib.util
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec

from vettance.clock import DAY_MS
from vettance.demo.delayed_labels import DELAY_MS
from vettance.demo.demo_client import ClientFault, Connection, DemoTarget, request
from vettance.demo.feed import Sample
from vettance.demo.launch import LaunchFault, command

#: Days of the stream: until the first labels, and those of the end in which the model says what it thinks:
#: fewer where a stream has too little labelled fraud to train on until then.
FIRST_DAYS: Final = 5
LAST_DAYS: Final = 9
#: A training gives way to everything else that the machine does.
_TRAINING_S_MAX: Final = 600.0
_LAST_DAYS_MIN: Final = 5
_DAYS_A_TRY: Final = 2
DAYS_MIN: Final = 20
#: From this age on, no label is expected any more.
LABEL_DAYS: Final = 2 * DELAY_MS // DAY_MS
_FEATURES_S_MAX: Final = 15.0
_PAUSE_S: Final = 0.3
#: How long it takes at most until a new model scores events, whichever process decides them.
_SERVED_S_MAX: Final = 5.0
_PAGE: Final = 100
_decode = msgspec.json.Decoder().decode


def can_learn() -> bool:
    """Tell whether what models are trained with is installed."""
    return importlib.util.find_spec("lightgbm") is not None


class StreamParts:
    """Cuts a stream at moments (Unix milliseconds); the parts are to be read one after the other."""

    def __init__(self, samples: Iterator[Sample]) -> None:
        self._samples = samples
        self._ahead: Sample | None = None

    def until(self, at_ms: float) -> Iterator[Sample]:
        """Return the samples before a moment that no part before has given."""
        while (sample := self._next()) is not None:
            if sample.at_ms >= at_ms:
                self._ahead = sample
                return
            yield sample

    def first_ms(self) -> int | None:
        """Return when the next sample happens."""
        self._ahead = self._next()
        return self._ahead.at_ms if self._ahead is not None else None

    def _next(self) -> Sample | None:
        sample, self._ahead = self._ahead, None
        return sample if sample is not None else next(self._samples, None)


def bounds_of(first_ms: int, days: int) -> tuple[int, list[int]]:
    """Return when the first labels are given, and the moments to try a training at, one after the other."""
    tries = [first_ms + (days - last) * DAY_MS for last in range(LAST_DAYS, _LAST_DAYS_MIN - 1, -_DAYS_A_TRY)]
    return first_ms + FIRST_DAYS * DAY_MS, tries


def expect_labels(folder: Path, tenant: str) -> None:
    """Say how long labels take here, where they come a day after their events, instead of the usual weeks."""
    command(folder, "tenant", "set", tenant, "--label-maturity", f"{LABEL_DAYS}")


def wait_for_features(folder: Path, tenant: str) -> None:
    """Wait until the service records features with its decisions, which it does after the first labels."""
    until_s = time.monotonic() + _FEATURES_S_MAX
    while not command(folder, "model", "show", "--tenant", tenant)["recordsFeatures"]:
        if time.monotonic() > until_s:
            return  # The table will say what came of it.
        time.sleep(_PAUSE_S)


def train(folder: Path, tenant: str) -> str | None:
    """Have a model trained, and wait until it scores; return why none does."""
    try:
        found = command(folder, "model", "train", "--tenant", tenant, "--wait", seconds_max=_TRAINING_S_MAX)
    except LaunchFault as fault:
        return str(fault).removeprefix("Error: ")
    if found["champion"] is None:
        return "the one that was trained was no better than the rules on the days after"
    time.sleep(_SERVED_S_MAX)
    return None


class ComparedOrder(NamedTuple):
    """What an order by score finds: frauds among as many events as the rules hold up, average precision."""

    name: str
    caught: int
    average_precision: float


class ModelComparison(NamedTuple):
    """Rules alone and with the model, over `events` of which the model scored `scored`."""

    events: int
    scored: int
    frauds: int
    held: int
    orders: tuple[ComparedOrder, ...]


async def compare(to: DemoTarget, count: int, frauds: Collection[str]) -> ModelComparison:
    """Read the newest `count` events back, and compare their scores. Raises `ClientFault`."""
    rows: list[dict[str, Any]] = []
    connection = await Connection.open(to)
    try:
        cursor = ""
        while len(rows) < count:
            path = f"/api/v1/events?limit={_PAGE}{cursor}"
            answer = await connection.ask(request("GET", path, to.api_key, host=to.host))
            if answer.status != 200:
                raise ClientFault(f"the events cannot be listed: {answer.status}")
            page = _decode(answer.body)
            rows += page["data"]
            if not page["hasMore"]:
                break
            cursor = f"&cursor={page['nextCursor']}"
    finally:
        connection.close()
    return compare_rows(rows[:count], frauds)


def compare_rows(rows: Sequence[dict[str, Any]], frauds: Collection[str]) -> ModelComparison:
    """Compare the order of events by the score of the rules with that by the higher of it and the model's."""
    held = [row for row in rows if row["decision"] != "ALLOW"]
    highest = sorted(rows, key=_both, reverse=True)[: len(held)]
    orders = (
        ComparedOrder("rules alone", _frauds(held, frauds), _precision(rows, frauds, _alone)),
        ComparedOrder("rules with the model", _frauds(highest, frauds), _precision(rows, frauds, _both)),
    )
    scored = sum(_said(row) is not None for row in rows)
    return ModelComparison(len(rows), scored, _frauds(rows, frauds), len(held), orders)


def _frauds(rows: Sequence[dict[str, Any]], frauds: Collection[str]) -> int:
    return sum(row["id"] in frauds for row in rows)


def _said(row: dict[str, Any]) -> dict[str, Any] | None:
    model: dict[str, Any] | None = (row.get("outputs") or {}).get("model")
    return model if model is not None and model.get("score") is not None else None


def _alone(row: dict[str, Any]) -> tuple[float, float]:
    return float(row["score"]), 0.0


def _both(row: dict[str, Any]) -> tuple[float, float]:
    model = _said(row)
    if model is None:
        return _alone(row)
    return float(max(row["score"], model["score"])), float(model["probability"])


def _precision(
    rows: Sequence[dict[str, Any]],
    frauds: Collection[str],
    key: Callable[[dict[str, Any]], tuple[float, float]],
) -> float:
    """Return the average precision of an order; events of one place count together."""
    places: dict[tuple[float, float], list[int]] = {}
    for row in rows:
        counts = places.setdefault(key(row), [0, 0])
        counts[0] += row["id"] in frauds
        counts[1] += 1
    total = sum(hits for hits, _ in places.values())
    found = seen = 0
    area = 0.0
    for place in sorted(places, reverse=True):
        hits, count = places[place]
        found, seen = found + hits, seen + count
        area += hits / max(total, 1) * found / seen
    return area
