"""The values that decisions of the log knew, by their names in rules, whichever version decided."""

import operator
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any, Final, NamedTuple

from vettance.db.engine import Row, Store
from vettance.decisions.active_rulesets import ActiveRules, RuleCache, logged_event
from vettance.decisions.decision import DecisionRecordData
from vettance.decisions.features import fraud_schema
from vettance.decisions.load_ruleset import find_version
from vettance.decisions.sql import record_of
from vettance.events.event import Event
from vettance.models.feature_set import set_in_force
from vettance.rules.compiler import Facts, compile_rules
from vettance.rules.language import check
from vettance.rules.ruleset import compile_document
from vettance.rules.schema import Schema
from vettance.suggestions import sql
from vettance.suggestions.labelled_log import Numbers

#: Decisions that are read at a time.
_CHUNK: Final = 512
#: Names that are read by one text; that of a rule has a greatest length.
_NAMES_AT_ONCE: Final = 20

FactsReader = Callable[[Event], Facts]


class WantedValues(NamedTuple):
    """The names whose values are read: of facts, of aggregates, and of features with their set."""

    facts: tuple[str, ...] = ()
    aggregates: tuple[str, ...] = ()
    features: tuple[int, ...] = ()
    feature_set: str = ""


class LoggedDecision(NamedTuple):
    """One decision with the values that were wanted of it; what it did not know is None."""

    place: int
    record: DecisionRecordData
    values: tuple[Any, ...]


class _LogShape(NamedTuple):
    """How the values are got of a version's records: `facts_of` reads what these lack, where they lack any.

    `pick` takes from what was read, the facts, the answers and the features, joined behind a None.
    """

    facts_of: FactsReader | None
    pick: Callable[[tuple[Any, ...]], tuple[Any, ...]]
    lengths: tuple[int, int]


class LogReader:
    """Reads decisions of one tenant by their places in the log."""

    def __init__(self, store: Store, tenant: str, schema: Schema | None = None) -> None:
        self.schema: Schema = schema or fraud_schema()
        self._store = store
        self._tenant = tenant
        self._cache = RuleCache(lambda text: compile_document(text, self.schema))
        self._versions: dict[int, ActiveRules | None] = {}
        #: Decisions that could not be read.
        self.skipped = 0

    async def version(self, number: int) -> ActiveRules | None:
        """Return a version of the tenant's rules; None when it can no longer be read."""
        if number not in self._versions:
            try:
                found = await find_version(self._store, self._cache, self._tenant, number)
            except Exception:  # noqa: BLE001  A version that this code refuses, or that is gone.
                self._versions[number] = None
            else:
                self._versions[number] = found
        return self._versions[number]

    async def read(self, places: Numbers, wanted: WantedValues) -> AsyncIterator[list[LoggedDecision]]:
        """Yield decisions in the order of the log, some at a time."""
        layouts: dict[int, _LogShape] = {}
        async for rows in self._rows(places, bodies=bool(wanted.facts)):
            found = []
            for row in rows:
                try:
                    record = record_of(row[5])
                    number = record.ruleset_version
                    if number not in layouts:
                        layouts[number] = _layout(await self.version(number), wanted, self.schema)
                    values = _values(row, record, layouts[number], wanted)
                    found.append(LoggedDecision(row[0], record, values))
                except Exception:  # noqa: BLE001  One row must not keep the others from being read.
                    self.skipped += 1
            yield found

    async def bodies(self, places: Numbers) -> list[bytes]:
        """Return events as they were sent."""
        return [row[3] async for rows in self._rows(places) for row in rows]

    async def _rows(self, places: Numbers, *, bodies: bool = True) -> AsyncIterator[list[Row]]:
        for start in range(0, len(places), _CHUNK):
            asked = places[start : start + _CHUNK].tolist()
            while asked:
                rows = await self._store.read(sql.select_logged(self._tenant, asked, bodies=bodies))
                if not rows:
                    break  # Removed meanwhile.
                yield rows
                # A read of large rows stops early.
                asked = [place for place in asked if place > rows[-1][0]]


def facts_reader(names: Sequence[str], schema: Schema) -> FactsReader:
    """Return what reads some names of an event at once. There may be more of them than a rule can be long."""
    parts = (names[start : start + _NAMES_AT_ONCE] for start in range(0, len(names), _NAMES_AT_ONCE))
    texts = (" or ".join(f"present({name})" for name in part) for part in parts)
    compiled = compile_rules([("names", check(text, schema)) for text in texts], schema)
    assert compiled.fact_names == tuple(names), "each name is read once, in order"
    return compiled.facts


def _layout(active: ActiveRules | None, wanted: WantedValues, schema: Schema) -> _LogShape:
    recorded: tuple[str, ...] = active.compiled.fact_names if active is not None else ()
    counted: tuple[str, ...] = active.compiled.plan.aggregate_names if active is not None else ()
    # What was recorded counts: what a network file said then, a process without one cannot say.
    lacking = [name for name in wanted.facts if name not in recorded]
    place_of = {name: 1 + place for place, name in enumerate((*lacking, *recorded))}
    first = 1 + len(lacking) + len(recorded)
    answer_of = {name: first + place for place, name in enumerate(counted)}
    places = [place_of[name] for name in wanted.facts]
    places += [answer_of.get(name, 0) for name in wanted.aggregates]
    places += [first + len(counted) + place for place in wanted.features]
    pick = operator.itemgetter(*places, 0, 0)  # Of one place, a getter gives no tuple.
    return _LogShape(facts_reader(lacking, schema) if lacking else None, pick, (len(recorded), len(counted)))


def _values(row: Row, record: DecisionRecordData, layout: _LogShape, wanted: WantedValues) -> tuple[Any, ...]:
    if (len(record.facts), len(record.answers)) != layout.lengths:
        raise ValueError("the record is of other rules")
    read: Facts = ()
    if layout.facts_of is not None:
        read = layout.facts_of(logged_event((row[0], "", *row[1:5])))
    is_wanted = set_in_force(record.feature_set) == wanted.feature_set
    features = record.features if is_wanted else ()
    if wanted.features and not features:
        features = (None,) * (max(wanted.features) + 1)
    return layout.pick((None, *read, *record.facts, *record.answers, *features))[:-2]
