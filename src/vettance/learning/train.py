"""Trains a model on rows, and measures it against the one in service on the newest frauds."""

import math
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import lightgbm
import numpy as np
import numpy.typing as npt

from vettance.learning.isotonic import ScoredRows, apply, chances, find_calibration, losses
from vettance.learning.training_rows import TrainingRow, check_labels
from vettance.models.calibration import NOT_CALIBRATED, Calibration
from vettance.models.trees import TreeText

#: The newest frauds by which a model is compared with the one in service.
COMPARED_MIN: Final = 30
COMPARED_SHARE: Final = 0.2
BINS: Final = 10
_BOOTSTRAPS: Final = 50
_RATIO: Final = (0.5, 2.0)
_POINTS_SHOWN: Final = 50
#: How many trees a model may have. The fewest are taken whose log loss on the newest rows is hardly above the
#: least: each costs every decision a tenth of a microsecond, and few frauds carry few trees.
_TREES: Final = (100, 150, 200, 250, 300)
_HARDLY: Final = 1.005
_SETTINGS: Final = {
    "objective": "binary",
    "num_leaves": 7,
    "learning_rate": 0.05,
    "min_data_in_leaf": 20,
    "feature_fraction": 0.5,
    "bagging_fraction": 0.8,
    "bagging_freq": 1,
    "lambda_l2": 5.0,
    "max_bin": 127,
    "num_threads": 1,
    "deterministic": True,
    "force_row_wise": True,
    "verbose": -1,
}

Numbers = npt.NDArray[np.float64]


class TrainedModel(NamedTuple):
    """A model with everything that was measured of it, and whether it should serve."""

    trees: TreeText
    card: dict[str, Any]
    is_better: bool


class _Table(NamedTuple):
    values: Numbers
    fraud: Numbers
    weight: Numbers

    def part(self, place: slice) -> "_Table":
        return _Table(self.values[place], self.fraud[place], self.weight[place])


def train(
    rows: Sequence[TrainingRow], names: Sequence[str], champion: int | None, seed: int = 1
) -> TrainedModel:
    """Train on all rows. Raises `TooFewLabels`.

    Before that, a candidate is trained on the older ones, and measured on the newest frauds and what happened
    meanwhile; the champion is measured by what it said when it decided them. None is the rules alone.
    """
    check_labels(rows)
    frauds = [place for place, row in enumerate(rows) if row.fraud]
    table = _table_of(rows, len(names))
    cut = frauds[-max(COMPARED_MIN, int(COMPARED_SHARE * len(frauds)))]
    older, newest = table.part(slice(0, cut)), table.part(slice(cut, None))
    candidate = _fit(older, names, seed, _TREES[-1])
    trees = _trees_needed(candidate, newest)
    held = ScoredRows(_raw(candidate, newest, trees), newest.fraud, newest.weight)
    points, shown = find_calibration(held)
    before = np.array([_said_before(row, champion) for row in rows[cut:]])
    # A calibration keeps the order of events.
    measured = average_precision(held.fraud, held.log_odds, held.weight)
    known = average_precision(held.fraud, before, held.weight)
    deviation = _deviation(held)
    said = chances(shown.log_odds)
    ratio = float(np.average(said, weights=shown.weight)) / max(
        float(np.average(shown.fraud, weights=shown.weight)), 1e-9
    )
    # Of frauds alone a candidate learns to call everything fraud, and any order of them is right.
    tells = not older.fraud.all() and not newest.fraud.all()
    is_better = tells and measured >= known - deviation and _RATIO[0] <= ratio <= _RATIO[1]
    booster = _fit(table, names, seed, trees)
    gains = sorted(
        zip(names, booster.feature_importance("gain").tolist(), strict=True),
        key=lambda one: (-one[1], one[0]),
    )
    card = {
        "rows": len(rows),
        "frauds": len(frauds),
        "from": rows[0].occurred_at_ms,
        "to": max(row.occurred_at_ms for row in rows),
        "trees": trees,
        "comparedRows": len(rows) - cut,
        "comparedFrauds": int(newest.fraud.sum()),
        "calibrated": bool(points),
        "averagePrecision": round(measured, 4),
        "deviation": round(deviation, 4),
        "averagePrecisionBefore": round(known, 4),
        "predictedToTrue": round(ratio, 4),
        "precisionRecall": _curve(held, points),
        "calibration": calibration(shown.fraud, said, shown.weight),
        "gain": [{"feature": name, "gain": round(gain, 2)} for name, gain in gains],
        "distribution": _distribution(
            table.values, chances(apply(points, _raw(booster, table, trees))), names
        ),
    }
    return TrainedModel(trees_of(booster, names, points), card, is_better)


def _table_of(rows: Sequence[TrainingRow], width: int) -> _Table:
    values = np.frombuffer(b"".join(row.features for row in rows), dtype=np.float64).reshape(-1, width)
    fraud = np.array([float(row.fraud) for row in rows])
    return _Table(values, fraud, np.array([row.weight for row in rows]))


def _said_before(row: TrainingRow, champion: int | None) -> float:
    if champion is None or row.log_odds is None:
        return row.points / 1_000_000 if champion is not None else float(row.points)
    return 1 / (1 + math.exp(-max(min(row.log_odds, 50.0), -50.0)))


def _trees_needed(candidate: lightgbm.Booster, newest: _Table) -> int:
    """Return the fewest trees that say as much of the newest rows as more of them would."""
    losses = [_log_loss(newest, _raw(candidate, newest, count)) for count in _TREES]
    least = min(losses)
    return next(count for count, loss in zip(_TREES, losses, strict=True) if loss <= _HARDLY * least)


def _raw(booster: lightgbm.Booster, table: _Table, trees: int) -> Numbers:
    found: Numbers = np.asarray(booster.predict(table.values, num_iteration=trees, raw_score=True))
    return found


def _log_loss(table: _Table, said: Numbers) -> float:
    return float(np.average(losses(said, table.fraud), weights=table.weight))


def _fit(table: _Table, names: Sequence[str], seed: int, trees: int) -> lightgbm.Booster:
    # LightGBM refuses names with the characters of expressions; the order stands for them.
    places = [f"f{place}" for place in range(len(names))]
    data = lightgbm.Dataset(
        table.values, table.fraud, weight=table.weight, feature_name=places, free_raw_data=True
    )
    # Few frauds carry few splits.
    leaf = max(2, min(20, int(table.fraud.sum()) // 5))
    return lightgbm.train({**_SETTINGS, "min_data_in_leaf": leaf, "seed": seed}, data, trees)


def trees_of(
    booster: lightgbm.Booster, names: Sequence[str], points: Calibration = NOT_CALIBRATED
) -> TreeText:
    """Return what is stored of a trained model."""
    found = booster.dump_model()["tree_info"]
    return TreeText(tuple(names), 0.0, [_node(one["tree_structure"]) for one in found], points)


def _node(node: dict[str, Any]) -> list[Any]:
    if "leaf_value" in node:
        return [node["leaf_value"], node.get("leaf_count", 1)]
    threshold = node["threshold"]
    # A feature that was always known in training counts as 0 where it is unknown.
    unknown_left = node["default_left"] if node["missing_type"] == "NaN" else threshold >= 0
    left, right = _node(node["left_child"]), _node(node["right_child"])
    return [node["split_feature"], threshold, bool(unknown_left), left, right, node["internal_count"]]


def average_precision(fraud: Numbers, said: Numbers, weight: Numbers) -> float:
    """Return the mean of the precision over the frauds; events with the same score count together."""
    order = np.argsort(-said, kind="stable")
    found, all_weight, score = (fraud * weight)[order].cumsum(), weight[order].cumsum(), said[order]
    last = np.append(score[1:] != score[:-1], True)
    if not len(found) or found[-1] == 0:
        return 0.0
    steps = np.diff(found[last], prepend=0.0)
    return float((steps * found[last] / all_weight[last]).sum() / found[-1])


def _deviation(rows: ScoredRows) -> float:
    """Return the standard deviation of average precision over samples drawn with replacement."""
    draw = np.random.default_rng(1)
    count = len(rows.fraud)
    found = []
    for _ in range(_BOOTSTRAPS):
        places = draw.integers(0, count, count)
        found.append(average_precision(rows.fraud[places], rows.log_odds[places], rows.weight[places]))
    return float(np.std(found))


def calibration(fraud: Numbers, said: Numbers, weight: Numbers) -> list[dict[str, float]]:
    """Return what was predicted against what was true, in ten bins of equal width."""
    places = np.minimum((said * BINS).astype(int), BINS - 1)
    rows = []
    for place in range(BINS):
        inside = places == place
        total = float(weight[inside].sum())
        if total:
            rows.append(
                {
                    "from": place / BINS,
                    "events": total,
                    "predicted": float(np.average(said[inside], weights=weight[inside])),
                    "true": float(np.average(fraud[inside], weights=weight[inside])),
                }
            )
    return rows


def _curve(rows: ScoredRows, points: Calibration) -> list[dict[str, float]]:
    """Return precision and recall over thresholds of the probability, the highest first."""
    fraud, said, weight = rows.fraud, chances(apply(points, rows.log_odds)), rows.weight
    order = np.argsort(-said, kind="stable")
    found, all_weight, score = (fraud * weight)[order].cumsum(), weight[order].cumsum(), said[order]
    total = max(float(found[-1]), 1e-9)
    places = np.unique(np.geomspace(1, len(score), _POINTS_SHOWN).astype(int)) - 1
    return [
        {
            "probability": float(score[place]),
            "precision": round(float(found[place] / all_weight[place]), 4),
            "recall": round(float(found[place]) / total, 4),
        }
        for place in places
    ]


def _distribution(values: Numbers, said: Numbers, names: Sequence[str]) -> dict[str, Any]:
    """Return the deciles of the probability and of each feature, by which drift is measured later."""
    quantiles = np.linspace(0, 1, BINS + 1)[1:-1]
    found: dict[str, Any] = {"probability": {"bounds": np.quantile(said, quantiles).tolist(), "unknown": 0.0}}
    for place, name in enumerate(names):
        column = values[:, place]
        known = column[np.isfinite(column)]
        bounds = np.unique(np.quantile(known, quantiles)).tolist() if len(known) else []
        counts = np.histogram(known, [-np.inf, *bounds, np.inf])[0] if bounds else np.zeros(0)
        shares = counts / max(len(column), 1)
        unknown = 1 - len(known) / max(len(column), 1)
        found[name] = {"bounds": bounds, "shares": [*map(float, shares)], "unknown": unknown}
    shares = np.histogram(said, [-np.inf, *np.unique(found["probability"]["bounds"]), np.inf])[0] / len(said)
    found["probability"]["bounds"] = np.unique(found["probability"]["bounds"]).tolist()
    found["probability"]["shares"] = [*map(float, shares)]
    return found
