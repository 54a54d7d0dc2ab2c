"""Boosted trees as text, and as functions: the log-odds of an event, and what each feature adds to them.

A node is `[feature, threshold, left where unknown, left, right, events]`, a leaf `[value, events]`. Nothing
but arithmetic is needed to serve a model, so a process that decides loads no library of machine learning.
"""

import functools
import hashlib
import math
from array import array
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

import msgspec

from vettance.models.calibration import NOT_CALIBRATED, Calibration, calibrated, check_calibration

_SPLIT: Final = 6
_NODES_MAX: Final = 50_000
#: How many patterns of answers are remembered for each tree, at most.
_PATTERNS_MAX: Final = 128
#: Trees that one function sums: one expression of many hundreds is slow to compile.
_TOGETHER: Final = 50

Row = Sequence[float | None]
Node = list[Any]


class TreeText(msgspec.Struct, frozen=True, omit_defaults=True):
    """What is stored of a model: the names of its features in their order, a constant, and its trees.

    `calibration` says which log-odds their sum means.
    """

    features: tuple[str, ...]
    base: float
    trees: list[Node]
    calibration: Calibration = NOT_CALIBRATED


def write_trees(model: TreeText) -> str:
    """Write a model as text; the same model always gives the same text."""
    return msgspec.json.encode(model).decode()


def text_digest(text: str) -> str:
    """Name the content of a model (SHA-256, hex)."""
    return hashlib.sha256(text.encode()).hexdigest()


class TreeModel:
    """A model ready to serve. Raises `ValueError` for a text that is none, or does not fit its digest."""

    def __init__(self, text: str, digest: str) -> None:
        if text_digest(text) != digest:
            raise ValueError("the model does not fit its digest")
        try:
            stored = msgspec.json.decode(text, type=TreeText)
        except msgspec.MsgspecError as error:
            raise ValueError(f"the model cannot be read: {error}") from None
        nodes = sum(map(_check_node, stored.trees, [len(stored.features)] * len(stored.trees)))
        if nodes > _NODES_MAX:
            raise ValueError(f"the model has {nodes} nodes, {_NODES_MAX} are allowed")
        check_calibration(stored.calibration)
        self.features = stored.features
        self._points = stored.calibration
        self._mean = stored.base + sum(map(_mean, stored.trees))
        self.base = calibrated(self._points, self._mean)
        self._base = stored.base
        self._sums = [
            _compile(stored.trees[start : start + _TOGETHER])
            for start in range(0, len(stored.trees), _TOGETHER)
        ]
        self._explained = [_ExplainedTree(tree) for tree in stored.trees]

    def log_odds(self, row: Row) -> float:
        """Return the log-odds of fraud of an event by the values of its features; None is unknown."""
        x = [math.nan if value is None else value for value in row] if None in row else row
        return calibrated(self._points, sum((one(x) for one in self._sums), self._base))

    def contributions(self, row: Row) -> list[float]:
        """Return what each feature adds to the log-odds; with `base` they add up to them.

        These are SHAP values by the paths of the trees (Lundberg et al., 2018); a calibration stretches all
        of an event alike.
        """
        x = [math.nan if value is None else value for value in row]
        effects = [0.0] * len(self.features)
        for tree in self._explained:
            for feature, effect in tree.effects(x):
                effects[feature] += effect
        raised = sum(effects)
        if not self._points or not raised:
            return effects
        stretch = (calibrated(self._points, self._mean + raised) - self.base) / raised
        return [stretch * effect for effect in effects]


def probability_of(log_odds: float) -> float:
    """Return the probability that log-odds stand for."""
    if log_odds >= 0:
        return 1 / (1 + math.exp(-log_odds))
    exp = math.exp(log_odds)
    return exp / (1 + exp)


def log_odds_of(probability: float) -> float:
    """Return the log-odds of a probability above 0 and below 1."""
    return math.log(probability / (1 - probability))


def _check_node(node: Node, features: int) -> int:
    """Count the nodes of a tree. Raises `ValueError` for what is none."""
    if len(node) == _SPLIT:
        feature, threshold, _, left, right, _ = node
        if not (type(feature) is int and 0 <= feature < features and isinstance(threshold, int | float)):
            raise ValueError("a split of the model is damaged")
        return 1 + _check_node(left, features) + _check_node(right, features)
    if len(node) != len(("value", "events")) or not isinstance(node[0], int | float):
        raise ValueError("a leaf of the model is damaged")
    return 1


def _mean(node: Node) -> float:
    """Return what a tree gives on average."""
    if len(node) != _SPLIT:
        return float(node[0])
    left, right = node[3], node[4]
    return (_mean(left) * _events(left) + _mean(right) * _events(right)) / (_events(left) + _events(right))


def _events(node: Node) -> float:
    return max(float(node[-1]), 1e-9)


def _compile(trees: Sequence[Node]) -> Callable[[Sequence[Any]], float]:
    used = sorted({feature for tree in trees for feature in _features_of(tree)})
    lines = [
        "def score(x):",
        *(f"    f{feature} = x[{feature}]" for feature in used),
        f"    return {' + '.join(map(_expression, trees)) or '0.0'}",
    ]
    scope: dict[str, Any] = {"__builtins__": {}}
    # Nothing gets into the source but numbers, whose types were checked.
    exec(compile("\n".join(lines), "<model>", "exec"), scope)  # noqa: S102
    score: Callable[[Sequence[Any]], float] = scope["score"]
    return score


def _expression(node: Node) -> str:
    if len(node) != _SPLIT:
        return repr(float(node[0]))
    feature, threshold, unknown_left, left, right, _ = node
    # A comparison with an unknown value, NaN, is false.
    test = f"not f{feature} > {float(threshold)!r}" if unknown_left else f"f{feature} <= {float(threshold)!r}"
    return f"({_expression(left)} if {test} else {_expression(right)})"


def _features_of(node: Node) -> list[int]:
    if len(node) != _SPLIT:
        return []
    return [node[0], *_features_of(node[3]), *_features_of(node[4])]


class _ExplainedTree:
    """SHAP values of one tree, which depend on nothing but which way its splits send an event."""

    def __init__(self, tree: Node) -> None:
        self._splits: list[Node] = []
        #: Each leaf: its value, and by feature (the share of events that go on, the splits passed).
        self._leaves: list[tuple[float, dict[int, tuple[float, list[tuple[int, bool]]]]]] = []
        self._walk(tree, {})
        self._features = tuple(dict.fromkeys(feature for _, path in self._leaves for feature in path))
        # Numbers alone: pairs with their features took three times the memory, for each pattern of each tree.
        self._known = functools.lru_cache(_PATTERNS_MAX)(self._explain)

    def _walk(self, node: Node, path: dict[int, tuple[float, list[tuple[int, bool]]]]) -> None:
        if len(node) != _SPLIT:
            self._leaves.append((float(node[0]), path))
            return
        place = len(self._splits)
        self._splits.append(node)
        total = _events(node[3]) + _events(node[4])
        for child, is_left in ((node[3], True), (node[4], False)):
            share, passed = path.get(node[0], (1.0, []))
            step = (share * _events(child) / total, [*passed, (place, is_left)])
            self._walk(child, {**path, node[0]: step})

    def effects(self, x: Sequence[float]) -> Iterator[tuple[int, float]]:
        """Yield (feature, effect) for an event."""
        pattern = 0
        for place, (feature, threshold, unknown_left, *_) in enumerate(self._splits):
            value = x[feature]
            if (not value > threshold) if unknown_left else value <= threshold:
                pattern |= 1 << place
        return zip(self._features, self._known(pattern), strict=True)

    def _explain(self, pattern: int) -> "array[float]":
        effects = dict.fromkeys(self._features, 0.0)
        for value, path in self._leaves:
            steps = [
                (feature, share, all(bool(pattern >> place & 1) is left for place, left in passed))
                for feature, (share, passed) in path.items()
            ]
            count = len(steps)
            for place, (feature, share, goes) in enumerate(steps):
                weights = [1.0]  # By how many of the other features are known.
                for other, (_, other_share, other_goes) in enumerate(steps):
                    if other != place:
                        weights = _extend(weights, other_share, float(other_goes))
                total = sum(
                    weight * math.factorial(known) * math.factorial(count - known - 1)
                    for known, weight in enumerate(weights)
                ) / math.factorial(count)
                effects[feature] += value * (float(goes) - share) * total
        return array("d", effects.values())


def _extend(weights: list[float], unknown: float, known: float) -> list[float]:
    """Multiply a polynomial by `unknown + known * z`."""
    longer = [*(weight * unknown for weight in weights), 0.0]
    for place, weight in enumerate(weights):
        longer[place + 1] += weight * known
    return longer
