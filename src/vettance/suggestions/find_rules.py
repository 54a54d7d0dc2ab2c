"""Finds new rules in the labels of a tenant, and measures each on a later time that was not looked at."""

from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from vettance.decisions.active_rulesets import ActiveRules
from vettance.rules.language import RuleFault, check
from vettance.rules.schema import Schema
from vettance.suggestions.candidate_conditions import (
    CandidateCondition,
    ConditionTable,
    Mask,
    condition_table,
)
from vettance.suggestions.counted_log import COUNTS, CountedLog
from vettance.suggestions.labelled_log import ANSWERS, LabelledLog, Numbers
from vettance.suggestions.logged_values import LogReader, WantedValues
from vettance.suggestions.rule_search import Alternatives, search_rules
from vettance.suggestions.value_columns import (
    ColumnCollector,
    SourceTable,
    ValueColumn,
    ValueSource,
    members_of,
    sources_of,
)
from vettance.wire.payload import decode

#: Frauds that are learned from, the newest, and a sample of all other events of that time.
FRAUDS_MAX: Final = 20_000
REST_MAX: Final = 60_000
#: Of the later events that are no fraud, so many measure; beyond that a sample.
REST_MEASURED_MAX: Final = 200_000
#: Bodies that are looked through for members of free-form objects.
_BODIES: Final = 500
#: Frauds, and other events, by which is seen what tells anything at all.
_PROBED: Final = 1_500

Advance = Callable[[int], Any]


class FeatureSource(NamedTuple):
    """The features that a tenant's records hold: names with their expressions, and the digest of the set."""

    features: tuple[tuple[str, str], ...] = ()
    digest: str = ""


class RuleCondition(NamedTuple):
    """The condition of a rule that was found: conjunctions, one of which has to hold."""

    alternatives: tuple[tuple[CandidateCondition, ...], ...]

    @property
    def text(self) -> str:
        """The condition in the rule language."""
        return " or ".join(" and ".join(one.text for one in each) for each in self.alternatives)

    @property
    def parts(self) -> tuple[CandidateCondition, ...]:
        """Every comparison in it."""
        return tuple(one for each in self.alternatives for one in each)

    def fires(self, held: dict[CandidateCondition, Mask]) -> Mask:
        """Tell on which rows it holds, by those on which its comparisons do."""
        found: Mask = np.logical_or.reduce(
            [np.logical_and.reduce([held[one] for one in each]) for each in self.alternatives]
        )
        return found


class MeasuredRules(NamedTuple):
    """Rules with the decisions of `log` on which each would have fired, a line of `fired` for each rule.

    A decision about anything but a labelled fraud stands for `rest_weight` of them. `others` counts decisions
    that another version than that in force made.
    """

    rules: tuple[RuleCondition, ...]
    log: LabelledLog
    fired: npt.NDArray[np.bool_]
    rest_weight: float
    others: int

    @classmethod
    def nothing(cls, log: LabelledLog) -> "MeasuredRules":
        """Return what is measured where no rule was found."""
        return cls((), log, np.zeros((0, len(log.places)), dtype=np.bool_), 1.0, 0)


async def find_conditions(
    reader: LogReader,
    learned: LabelledLog,
    active: ActiveRules,
    features: FeatureSource,
    counted: CountedLog,
    advance: Advance,
) -> list[RuleCondition]:
    """Search the time that is learned from; the most telling come first."""
    sampled, weight = learned.sample(REST_MAX)
    frauds = sampled.places[sampled.truths == 1][-FRAUDS_MAX:]
    chosen = sampled.places[sampled.truths != 1]
    if not len(chosen) or not len(frauds):
        return []
    members = await _members(reader, frauds[-_BODIES:], chosen[-_BODIES:])
    table = sources_of(reader.schema, active.compiled, members, features.features, features.digest)
    table = await _telling(reader, table, np.sort(np.concatenate([frauds[-_PROBED:], chosen[-_PROBED:]])))
    places = np.sort(np.concatenate([frauds, chosen]))
    collector = ColumnCollector(table.sources)
    read: list[int] = []
    async for found in reader.read(places, table.wanted):
        collector.take([one.values for one in found])
        read += [one.place for one in found]
        advance(len(found))
    at = np.searchsorted(learned.places, np.array(read, dtype=np.int64))
    is_fraud = learned.truths[at] == 1
    missed = is_fraud & (learned.answers[at] == ANSWERS["ALLOW"])
    if not missed.any():
        return []
    columns = collector.columns()
    counts = counted.counts_for(learned.places[at[is_fraud]])
    columns += [ValueColumn(one.source, values) for one, values in counted.values(counts, learned.places[at])]
    conditions = condition_table(columns, is_fraud, missed)
    rules = search_rules(conditions, weight)
    return [
        rule
        for one in rules
        if _reads(rule := RuleCondition(_named(conditions, one.alternatives)), reader.schema)
    ]


def _named(table: ConditionTable, alternatives: Alternatives) -> tuple[tuple[CandidateCondition, ...], ...]:
    return tuple(tuple(table.conditions[place] for place in places) for places in alternatives)


async def _telling(reader: LogReader, table: SourceTable, places: Numbers) -> SourceTable:
    """Leave out what some events show to be always the same, or to name somebody: reading it takes time."""
    collector = ColumnCollector(table.sources)
    async for found in reader.read(places, table.wanted):
        collector.take([one.values for one in found])
    telling = {column.source.text for column in collector.columns()}
    return table.keeping(telling)


async def _members(reader: LogReader, *places: Numbers) -> list[str]:
    bodies = []
    for some in places:
        for sent in await reader.bodies(some):
            try:
                body = decode(sent)
            except Exception:  # noqa: BLE001, S112  One damaged body must not keep the others from being read.
                continue
            if isinstance(body, dict):
                bodies.append(body)
    return members_of(bodies, reader.schema)


def _reads(rule: RuleCondition, schema: Schema) -> bool:
    """Tell whether the rule language takes a rule, without a doubt about it."""
    try:
        return not check(rule.text, schema).doubts
    except RuleFault:
        return False


async def measure_conditions(
    reader: LogReader,
    later: LabelledLog,
    rules: Sequence[RuleCondition],
    active: ActiveRules,
    features: FeatureSource,
    counted: CountedLog,
    advance: Advance,
) -> MeasuredRules:
    """Say of every later decision which rules would have fired."""
    later, weight = later.sample(REST_MEASURED_MAX)
    conditions = list(dict.fromkeys(one for rule in rules for one in rule.parts))
    counts = {one.source: one for one in COUNTS}
    asked = [counts[one.source] for one in conditions if one.source in counts]
    values = {one.source: found for one, found in counted.values(dict.fromkeys(asked), later.places)}
    table = _sources([one for one in conditions if one.source not in counts], active, features)
    place_of = {source.text: place for place, source in enumerate(table.sources)}
    lines: list[npt.NDArray[np.bool_]] = []
    read: list[int] = []
    others = 0
    async for found in reader.read(later.places, table.wanted):
        columns = list(zip(*(one.values for one in found), strict=True))
        here = np.searchsorted(later.places, np.array([one.place for one in found], dtype=np.int64))
        held: dict[CandidateCondition, Mask] = {
            one: one.holds(
                values[one.source][here].tolist()
                if one.source in counts
                else columns[place_of[one.source.text]]
            )
            for one in conditions
        }
        lines.append(np.array([rule.fires(held) for rule in rules]))
        read += [one.place for one in found]
        others += sum(one.record.ruleset_version != active.version for one in found)
        advance(len(found))
    fired = np.concatenate([np.zeros((len(rules), 0), dtype=np.bool_), *lines], axis=1)
    was_read = np.isin(later.places, np.array(read, dtype=np.int64))
    return MeasuredRules(tuple(rules), later.pick(was_read), fired, weight, others)


def _sources(
    conditions: Sequence[CandidateCondition], active: ActiveRules, features: FeatureSource
) -> SourceTable:
    """Return what the conditions read, and nothing else."""
    counted = set(active.compiled.plan.aggregate_names)
    said = {text: place for place, (_, text) in enumerate(features.features)}
    sources = {one.source.text: one.source for one in conditions}
    aggregates = [text for text in sources if text in counted]
    of_model = [text for text in sources if text not in counted and text in said and "(" in text]
    facts = [text for text in sources if text not in aggregates and text not in of_model]
    wanted = WantedValues(
        tuple(facts), tuple(aggregates), tuple(said[text] for text in of_model), features.digest
    )
    ordered: list[ValueSource] = [sources[text] for text in (*facts, *aggregates, *of_model)]
    return SourceTable(wanted, tuple(ordered))
