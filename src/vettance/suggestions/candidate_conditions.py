"""Conditions that rules may be made of: comparisons with values that tell fraud from the rest."""

import json
import math
from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from vettance.rules.schema import Type
from vettance.suggestions.value_columns import FREE_FORM, ValueColumn, ValueSource

Bits = npt.NDArray[np.uint64]
Mask = npt.NDArray[np.bool_]

#: Bounds are the quantiles of frauds, and of the others at their ends.
_QUANTILES: Final = (0.02, 0.05, 0.1, 0.2, 0.35, 0.5, 0.65, 0.8, 0.9, 0.95)
_REST_QUANTILES: Final = (0.005, 0.02, 0.1, 0.9, 0.98, 0.995, 0.999)
_BOUNDS_MAX: Final = 14
#: Significant digits of a bound that is no whole number.
_DIGITS: Final = 2
#: Values of one text that a condition lists.
_LISTED_MAX: Final = 5
_KINDS_TRIED: Final = 12
#: A text is listed with others where it is so many times as common among frauds.
_TELLING: Final = 2.0
#: A condition must hold for at least so much of fraud against the rest.
_LIFT_MIN: Final = 1.15
#: Conditions that are combined, those that tell most.
CONDITIONS_MAX: Final = 1_600
_WORD: Final = 64


class CandidateCondition(NamedTuple):
    """A comparison of one expression: `>=` or `<=` a number, `in` some texts, `is` true (1) or false (0)."""

    source: ValueSource
    sign: str
    bound: float = 0.0
    listed: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """The condition as a rule says it."""
        name = self.source.text
        if self.sign == "in":
            listed = [json.dumps(one, ensure_ascii=False) for one in self.listed]
            return f"{name} == {listed[0]}" if len(listed) == 1 else f"{name} in [{', '.join(listed)}]"
        if self.sign != "is":
            return f"{_operand(name)} {self.sign} {shown(self.bound)}"
        if name.startswith(FREE_FORM):  # What a free-form object holds may be of any type.
            return f"{name} == {'true' if self.bound else 'false'}"
        return name if self.bound else f"not {name}"

    def holds(self, values: Sequence[Any]) -> Mask:
        """Tell where it holds of values as the log has them; of what is unknown nothing does."""
        found: Mask
        if self.sign == "in":
            return np.array([type(one) is str and one in self.listed for one in values], dtype=np.bool_)
        wanted = (bool,) if self.sign == "is" else (int, float)
        numbers = np.array([one if type(one) in wanted else math.nan for one in values], dtype=np.float64)
        with np.errstate(invalid="ignore"):
            match self.sign:
                case "is":
                    found = numbers == self.bound
                case ">=":
                    found = numbers >= self.bound
                case _:
                    found = numbers <= self.bound
        return found


class FoundCondition(NamedTuple):
    """A condition with the rows of a column where it holds."""

    condition: CandidateCondition
    holds: Mask


class ConditionTable(NamedTuple):
    """Conditions with the rows where each holds, as bits: of missed frauds, of stopped ones, of the rest."""

    conditions: tuple[CandidateCondition, ...]
    missed: Bits
    stopped: Bits
    rest: Bits


def pack(masks: Sequence[Mask], count: int) -> Bits:
    """Pack masks of so many rows to words of 64 bits, a line for each mask."""
    words = (count + _WORD - 1) // _WORD
    table = np.zeros((len(masks), words * 8), dtype=np.uint8)
    for line, mask in enumerate(masks):
        packed = np.packbits(mask)
        table[line, : len(packed)] = packed
    return table.view(np.uint64)


def count_bits(bits: Bits) -> npt.NDArray[np.int64]:
    """Count the set bits of each line."""
    found: npt.NDArray[np.int64] = np.bitwise_count(bits).sum(axis=-1, dtype=np.int64)
    return found


def condition_table(columns: Sequence[ValueColumn], frauds: Mask, missed: Mask) -> ConditionTable:
    """Return the conditions that hold more often for fraud, each set of rows once.

    `frauds` and `missed` (those among them that nothing stopped) are masks of the rows of the columns.
    """
    support = max(5, int(0.01 * missed.sum()))
    found: list[tuple[float, FoundCondition]] = []
    seen: set[bytes] = set()
    rest = ~frauds
    for column in columns:
        for one in conditions_of(column, missed, rest):
            hits, others = int(one.holds[missed].sum()), float(one.holds[rest].mean())
            share = hits / max(int(missed.sum()), 1)
            key = np.packbits(one.holds).tobytes()
            if hits < support or share < _LIFT_MIN * others or key in seen:
                continue
            seen.add(key)
            found.append((share * math.log(share / max(others, 1e-5)), one))
    found.sort(key=lambda one: (-one[0], len(one[1].condition.text), one[1].condition.text))
    kept = [one for _, one in found[:CONDITIONS_MAX]]
    stopped = frauds & ~missed
    return ConditionTable(
        tuple(one.condition for one in kept),
        *(pack([one.holds[rows] for one in kept], int(rows.sum())) for rows in (missed, stopped, rest)),
    )


def conditions_of(column: ValueColumn, missed: Mask, rest: Mask) -> Iterator[FoundCondition]:
    """Yield the conditions that a column offers."""
    source, values = column.source, column.values
    if source.type is Type.TEXT:
        yield from _texts(column, missed, rest)
    elif source.type is Type.BOOL:
        for flag in (1.0, 0.0):
            yield FoundCondition(CandidateCondition(source, "is", flag), values == flag)
    else:
        for bound in bounds_of(values[missed], values[rest]):
            with np.errstate(invalid="ignore"):
                yield FoundCondition(CandidateCondition(source, ">=", bound), values >= bound)
                yield FoundCondition(CandidateCondition(source, "<=", bound), values <= bound)


def _operand(text: str) -> str:
    """Return the text of an expression so that it can be compared."""
    depth = 0
    for place, sign in enumerate(text):
        depth += (sign == "(") - (sign == ")")
        if depth == 0 and sign == " " and place:
            return f"({text})"
    return text


def _texts(column: ValueColumn, missed: Mask, rest: Mask) -> Iterator[FoundCondition]:
    codes, kinds = column.values, column.kinds
    hits = _tally(codes[missed], len(kinds))
    others = _tally(codes[rest], len(kinds))
    share, base = hits / max(int(missed.sum()), 1), others / max(int(rest.sum()), 1)
    tried = [int(place) for place in np.argsort(-hits, kind="stable")[:_KINDS_TRIED] if hits[place]]
    telling = [place for place in tried if share[place] > _TELLING * base[place]]
    lists = [[place] for place in tried]
    lists += [telling[:count] for count in range(2, min(len(telling), _LISTED_MAX) + 1)]
    for places in lists:
        listed = tuple(sorted(kinds[place] for place in places))
        yield FoundCondition(CandidateCondition(column.source, "in", listed=listed), np.isin(codes, places))


def _tally(codes: npt.NDArray[np.float32], count: int) -> npt.NDArray[np.int64]:
    known = codes[~np.isnan(codes)].astype(np.int64)
    return np.bincount(known, minlength=count)


def bounds_of(frauds: npt.NDArray[np.float32], rest: npt.NDArray[np.float32]) -> list[float]:
    """Return the numbers that a value may be compared with: few, and as round as people write them."""
    frauds, rest = frauds[np.isfinite(frauds)], rest[np.isfinite(rest)]
    if not len(frauds):
        return []
    quantiles = list(np.quantile(frauds.astype(np.float64), _QUANTILES))
    if len(rest):
        quantiles += list(np.quantile(rest.astype(np.float64), _REST_QUANTILES))
    whole = bool((frauds == np.floor(frauds)).all() and (rest == np.floor(rest)).all())
    if whole:
        small = np.unique(frauds[np.abs(frauds) <= 8])
        quantiles += small.tolist()
    found = sorted({_rounded(float(one), whole=whole) for one in quantiles})
    if len(found) > 2 * _BOUNDS_MAX:
        found = found[:: math.ceil(len(found) / (2 * _BOUNDS_MAX))]
    return found


def _rounded(value: float, *, whole: bool) -> float:
    if value == 0 or not math.isfinite(value):
        return 0.0
    if whole and abs(value) < 100:
        return float(round(value))
    step = 10.0 ** (math.floor(math.log10(abs(value))) - _DIGITS + 1)
    rounded = round(value / step) * step
    return float(round(rounded)) if whole else float(f"{rounded:.{_DIGITS}g}")


def shown(value: float) -> str:
    """Write a number as a rule does."""
    if value == int(value) and abs(value) < 1e15:
        return str(int(value))
    text = repr(value)
    return text if "e" not in text else f"{value:.12f}".rstrip("0")
