"""Recorded inputs: what rules know of an event, taken from the record of its decision instead of a memory.

A record keeps every fact and answer that the rules of its version read. Rules that read nothing else, such as
those in force with other numbers, are tried on the log without deciding the past again: that is eight times
as fast, and takes no memory. Decisions on fraud and watched events of AML keep the same.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from operator import itemgetter
from typing import Any, Final, NamedTuple

from vettance.db.engine import Statement, Store
from vettance.decisions import sql
from vettance.decisions.active_rulesets import ActiveRules, RuleCache
from vettance.decisions.load_ruleset import PACK_VERSION, find_version
from vettance.quality.rule_timing import RuleInputRecord
from vettance.rules.compiler import Answers, CompiledRules, Facts
from vettance.rules.sql import DECIDING, RuleSets

#: A record is a list in JSON, and begins with the version of the rules.
_VERSION: Final = re.compile(rb"\[(\d+),")
#: More versions than this within a span are not worth compiling.
_VERSIONS_MAX: Final = 50
#: Records that are looked at in one read: it takes some tens of milliseconds.
_STEP: Final = 20_000

_Take = Callable[[Sequence[Any]], tuple[Any, ...]]


class RecordLog(NamedTuple):
    """A log of records: whose rules decided, and how beginnings of records are read.

    `further` names facts that are wanted as well, whether or not the rules read them.
    """

    sets: RuleSets
    select_beginnings: Callable[[str, tuple[int, int], int, int], Statement]
    further: tuple[str, ...] = ()


DECISION_LOG: Final = RecordLog(DECIDING, sql.select_record_beginnings)


class InputPlaces(NamedTuple):
    """Where the facts and answers that rules read are in the records of another version.

    `further` takes the facts that the log names.
    """

    facts: _Take
    answers: _Take
    further: _Take


class RecordedInputs:
    """Reads what rules know of events from records of the versions in `places`."""

    def __init__(self, places: Mapping[int, InputPlaces]) -> None:
        self._places = places

    def of(self, record: RuleInputRecord) -> tuple[Facts, Answers]:
        """Return the facts and answers of a record. Raises `LookupError` when it does not hold them."""
        places = self._places[record.ruleset_version]
        return places.facts(record.facts), places.answers(record.answers)

    def late_answers(self, record: RuleInputRecord, late: Sequence[Answers]) -> list[Answers]:
        """Return the answers that a record of a late event has for each moment. Raises as `of` does."""
        answers = self._places[record.ruleset_version].answers
        return [answers(one) for one in late]

    def further(self, record: RuleInputRecord) -> tuple[Any, ...]:
        """Return the facts that the log names. Raises as `of` does."""
        return self._places[record.ruleset_version].further(record.facts)


async def recorded_inputs(
    store: Store,
    cache: RuleCache,
    tenant: str,
    active: ActiveRules,
    span: tuple[int, int],
    log: RecordLog = DECISION_LOG,
) -> RecordedInputs | None:
    """Return what reads the inputs of rules from the records of a span (Unix milliseconds, from and before).

    None where some of its events were decided by rules that did not read all of what these read.
    """
    versions = await _versions_in(store, tenant, span, log)
    # The default pack as version 0 is what this service came with, another one than then perhaps.
    if PACK_VERSION in versions or len(versions) > _VERSIONS_MAX:
        return None
    places: dict[int, InputPlaces] = {}
    for version in versions:
        try:
            older = await find_version(store, cache, tenant, version, log.sets)
        except Exception:  # noqa: BLE001  It is gone, or this service takes it no more.
            return None
        found_places = places_in(older.compiled, active.compiled, log.further)
        if found_places is None:
            return None
        places[version] = found_places
    return RecordedInputs(places)


async def _versions_in(store: Store, tenant: str, span: tuple[int, int], log: RecordLog) -> set[int]:
    """Return the versions that decided the events of a span; records that are damaged are skipped later."""
    versions: set[int] = set()
    after = 0
    while rows := await store.read(log.select_beginnings(tenant, span, after, _STEP)):
        after = max(place for _, place in rows)
        found = (_VERSION.match(beginning) for beginning, _ in rows if type(beginning) is bytes)
        versions.update(int(match[1]) for match in found if match is not None)
    return versions


def places_in(older: CompiledRules, wanted: CompiledRules, further: Sequence[str] = ()) -> InputPlaces | None:
    """Return where the records of some rules have what other rules read; None where they lack any of it."""
    facts = _taker(older.fact_names, wanted.fact_names)
    answers = _taker(older.plan.aggregate_names, wanted.plan.aggregate_names)
    named = _taker(older.fact_names, further)
    if facts is None or answers is None or named is None:
        return None
    return InputPlaces(facts, answers, named)


def _taker(there: Sequence[str], wanted: Sequence[str]) -> _Take | None:
    """Return what picks values by their names; None where some are not there."""
    if tuple(there) == tuple(wanted):
        return tuple
    places = {name: place for place, name in enumerate(there)}
    if not all(name in places for name in wanted):
        return None
    chosen = [places[name] for name in wanted]
    if len(chosen) > 1:
        return itemgetter(*chosen)
    return lambda values: tuple(values[place] for place in chosen)
