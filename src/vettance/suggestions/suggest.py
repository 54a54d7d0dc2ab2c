"""Makes a suggestion: reads the log with its labels, and does what an order asks for."""

from collections.abc import Callable, Mapping
from typing import Any, Final

from vettance.db.engine import Store
from vettance.decisions.active_rulesets import ActiveRules, RuleCache
from vettance.decisions.features import fraud_schema
from vettance.decisions.load_ruleset import load_active
from vettance.feedback.find_maturity import find_label_timing
from vettance.history.sql import count_after
from vettance.learning.change_models import find_setting
from vettance.learning.sql import select_labels
from vettance.models.feature_set import read_feature_set
from vettance.models.serving_model import ModelMode
from vettance.rules.rule_reads import ConditionReader
from vettance.rules.ruleset import compile_document
from vettance.rules.schema import Schema
from vettance.suggestions import find_rules, sql
from vettance.suggestions.calibrate_rules import NoTraffic, calibrate_rules
from vettance.suggestions.counted_log import CountedLog, KeyColumns
from vettance.suggestions.find_rules import (
    FeatureSource,
    MeasuredRules,
    find_conditions,
    measure_conditions,
)
from vettance.suggestions.labelled_log import LabelColumns, LabelledLog, LogColumns
from vettance.suggestions.logged_values import LogReader
from vettance.suggestions.measure_threshold import measure_threshold
from vettance.suggestions.suggested_rules import choose, measures_of, rules_result
from vettance.suggestions.suggestion_order import FRAUDS_MIN, SuggestionOrder
from vettance.suggestions.threshold_curve import NoThreshold, RuleComparisons, find_movable_rule
from vettance.suggestions.weigh_rules import weigh_rules
from vettance.wire.payload import JSON

_CHUNK: Final = 5_000
_LABELS: Final = 20_000
#: What reading an outline takes, against reading a decision whole.
_OUTLINE_COST: Final = 0.1

Say = Callable[[float], Any]


class NoSuggestion(Exception):
    """Nothing can be suggested; the text is for the one who asked. `details` are as those of a refusal."""

    def __init__(self, text: str, details: JSON | None = None) -> None:
        super().__init__(text)
        self.details = details or {}


class _Progress:
    """Says how much of the work is done, by what is still to be read."""

    def __init__(self, say: Say) -> None:
        self._say = say
        self._total = 1.0
        self._done = 0.0

    def expect(self, total: float) -> None:
        """Note how much is to be read in all."""
        self._total = max(total, self._done, 1.0)

    def outlines(self, count: int) -> None:
        """Count outlines that were read."""
        self._add(count * _OUTLINE_COST)

    def decisions(self, count: int) -> None:
        """Count decisions that were read."""
        self._add(count)

    def _add(self, amount: float) -> None:
        self._done += amount
        self._say(min(self._done / self._total, 0.999))


async def suggest(
    store: Store, tenant: str, order: SuggestionOrder, say: Say, scales: Mapping[str, float] | None = None
) -> JSON:
    """Do what an order asks for; `say` takes the share of the work that is done. Raises `NoSuggestion`.

    `scales` are those of currencies that the settings name.
    """
    progress, schema = _Progress(say), fraud_schema(scales=scales)
    total = (await store.read(count_after(tenant, 0)))[0][0]
    if order.kind == "calibration":
        progress.expect(total)
        return await _calibrate(store, tenant, order, schema, progress)
    # At first nobody knows how many decisions are read whole.
    progress.expect(total * (_OUTLINE_COST + 0.4))
    reader = LogReader(store, tenant, schema)
    active = await load_active(store, RuleCache(lambda text: compile_document(text, reader.schema)), tenant)
    moved = _moved(order, active, reader) if order.kind == "threshold" else None
    log = await read_log(store, tenant, (order.from_ms, order.to_ms), progress.outlines)
    if moved is not None:
        progress.expect(total * _OUTLINE_COST + len(log.places))
        return await measure_threshold(reader, log, moved, order, progress.decisions)
    known = log.known()
    if known.frauds < FRAUDS_MIN:
        raise NoSuggestion(_too_few(log, known))
    if order.kind == "weights":
        progress.expect(total * _OUTLINE_COST + len(known.places))
        return await weigh_rules(reader, log, known, active, progress.decisions)
    counted = await read_keys(store, tenant, order.to_ms, progress.outlines)
    return await _suggest_rules(reader, log, known, active, await _features(store, tenant), counted, progress)


def _moved(order: SuggestionOrder, active: ActiveRules, reader: LogReader) -> RuleComparisons:
    try:
        return find_movable_rule(order.rule, active.ruleset.running, ConditionReader(reader.schema))
    except NoThreshold as fault:
        raise NoSuggestion(f"{order.rule} {fault}.", {"ruleId": str(fault)}) from None


async def _calibrate(
    store: Store, tenant: str, order: SuggestionOrder, schema: Schema, progress: _Progress
) -> JSON:
    active = await load_active(store, RuleCache(lambda text: compile_document(text, schema)), tenant)
    try:
        return await calibrate_rules(store, tenant, active, schema, order, progress.decisions)
    except NoTraffic as fault:
        raise NoSuggestion(f"{fault}.") from None


async def _suggest_rules(
    reader: LogReader,
    log: LabelledLog,
    known: LabelledLog,
    active: ActiveRules,
    features: FeatureSource,
    counted: CountedLog,
    progress: _Progress,
) -> JSON:
    learned, later = known.split()
    learned_count = min(len(learned.places), find_rules.REST_MAX + find_rules.FRAUDS_MAX)
    progress.expect(
        2 * len(log.places) * _OUTLINE_COST
        + learned_count
        + min(len(later.places), find_rules.REST_MEASURED_MAX)
    )
    found = await find_and_measure(reader, learned, later, active, features, counted, progress.decisions)
    return rules_result(log, learned, found, active.ruleset, choose(measures_of(found)))


async def find_and_measure(
    reader: LogReader,
    learned: LabelledLog,
    later: LabelledLog,
    active: ActiveRules,
    features: FeatureSource,
    counted: CountedLog,
    advance: Callable[[int], Any],
) -> MeasuredRules:
    """Find rules in one part of time, and say of the later one where they would have fired."""
    conditions = await find_conditions(reader, learned, active, features, counted, advance)
    if not conditions:
        return MeasuredRules.nothing(later)
    return await measure_conditions(reader, later, conditions, active, features, counted, advance)


def _too_few(log: LabelledLog, known: LabelledLog) -> str:
    frauds = "1 labelled fraud" if known.frauds == 1 else f"{known.frauds} labelled frauds"
    said = f"{frauds} can be learned from, {FRAUDS_MIN} are needed."
    young = log.frauds - known.frauds
    if young:
        more = f"{young} more {'is' if young == 1 else 'are'} so young"
        said += f" {more} that other events of their time may still be labelled."
    return said


async def read_log(
    store: Store, tenant: str, span: tuple[int, int], advance: Callable[[int], Any]
) -> LabelledLog:
    """Read the decisions of a span of event time (Unix milliseconds, from and before), with their labels."""
    labels = LabelColumns()
    after = 0
    while rows := await store.read(select_labels(tenant, after, _LABELS)):
        after = rows[-1][0]
        labels.take([(row[1], row[2], row[3]) for row in rows])
    timing = await find_label_timing(store, tenant)
    columns = LogColumns(span, labels.standing(), timing.mature_ms)
    after = 0
    while rows := await store.read(sql.select_outlines(tenant, after, _CHUNK)):
        after = rows[-1][0]
        columns.take([(row[0], row[1], row[2], row[3]) for row in rows])
        advance(len(rows))
    return columns.finish()


async def read_keys(store: Store, tenant: str, end_ms: int, advance: Callable[[int], Any]) -> CountedLog:
    """Read the keys of all decisions about what happened before a moment; the newest of too many."""
    columns = KeyColumns(end_ms)
    after = 0
    while rows := await store.read(sql.select_keys(tenant, after, _CHUNK)):
        after = rows[-1][0]
        columns.take([(row[0], row[1], row[2], row[3], row[4], row[5], row[6]) for row in rows])
        advance(len(rows))
    return columns.finish()


async def _features(store: Store, tenant: str) -> FeatureSource:
    """Return the features that the tenant's decisions record, if they record any."""
    setting = await find_setting(store, tenant)
    if not setting.features or setting.mode is ModelMode.OFF:
        return FeatureSource()
    features = read_feature_set(setting.features)
    return FeatureSource(tuple((one.name, one.value) for one in features.features), features.digest)
