"""The rules in force for a tenant, compiled once for each document however many tenants share it."""

from collections.abc import Callable
from typing import Final, NamedTuple

import msgspec

from vettance.clock import DAY_MS
from vettance.db.engine import Row
from vettance.decisions.decision import Decision, decide
from vettance.events import sql as events_sql
from vettance.events.event import Event, read_taken_event, with_session_signals
from vettance.models.feature_set import FeatureSet
from vettance.models.model_score import MODEL_PROBABILITY, MODEL_SCORE
from vettance.rules.compiled_features import CompiledFeatures
from vettance.rules.compiler import CompiledRules, Facts
from vettance.rules.list_effect import effects_of
from vettance.rules.rollout import RuleStage, stages_of
from vettance.rules.rule import ListEffect
from vettance.rules.ruleset import RuleSet
from vettance.rules.schema import Schema
from vettance.rules.sql import document_digest
from vettance.rules.unknowns import Failure, failures_of, message_of
from vettance.telemetry.logs import logger
from vettance.velocity.aggregates import WINDOW_MS_MAX
from vettance.velocity.port import Observation, Plan, Velocity, VelocityAnswer, nothing_known
from vettance.velocity.sync.event_log import EventLog
from vettance.wire.payload import decode

_log = logger()

#: How far back the log is read: the longest window, and two days, so that a caller who reports the day before
#: in one go is answered exactly after a start as well.
REPLAYED_MS: Final = WINDOW_MS_MAX + 2 * DAY_MS
#: The log of events that fraud rules count.
FRAUD_LOG: Final = EventLog(
    events_sql.select_log,
    events_sql.select_tenant_log,
    tenant_column=1,
    id_column=2,
    kept_ms=REPLAYED_MS,
    chunk=5_000,
    live_chunk=200,
)
#: What the memory of past events is called where it could not be asked.
MEMORY: Final = "memory"


class ActiveRules(msgspec.Struct, frozen=True):
    """One version of a tenant's rule set, ready to run."""

    version: int
    digest: str
    ruleset: RuleSet
    compiled: CompiledRules
    stages: dict[int, RuleStage]  # Of the rules that do not act always, by their places.
    effects: dict[int, ListEffect]  # What active rules put on lists, by their places.
    quiet: Decision  # What is decided when no rule fires and no list entry matches: most of all decisions.
    features: CompiledFeatures | None = None  # What a model is made of, where the tenant has one.
    recorded: FeatureSet | None = None  # These features, which each decision's record names.
    model_places: tuple[tuple[int, str], ...] = ()  # Of the facts by which rules ask what the model says.

    @property
    def feature_set(self) -> str:
        """The digest of the features that are recorded; empty where none are."""
        return "" if self.recorded is None else self.recorded.digest

    @property
    def asked(self) -> CompiledRules:
        """The rules with everything that features need behind their own facts and aggregates."""
        return self.compiled if self.features is None else self.features.asked


def active_rules(version: int, digest: str, ruleset: RuleSet, compiled: CompiledRules) -> ActiveRules:
    """Return a version of a rule set, ready to run."""
    quiet = decide(ruleset, version, (), ())
    running = ruleset.running
    stages, effects = stages_of(running), effects_of(running)
    asked = (MODEL_SCORE, MODEL_PROBABILITY)
    places = tuple((place, name) for place, name in enumerate(compiled.fact_names) if name in asked)
    return ActiveRules(version, digest, ruleset, compiled, stages, effects, quiet, model_places=places)


class RuleInputs(NamedTuple):
    """The rules to decide an event by, its facts, what the memory says, and what could not be computed."""

    active: ActiveRules
    facts: Facts
    answer: VelocityAnswer
    unknown: list[Failure]


class RuleCache:
    """Compiles documents, and keeps what it compiled last: most tenants share a few rule sets."""

    def __init__(
        self,
        compile_document: Callable[[str], tuple[RuleSet, CompiledRules]],
        size: int = 256,
        schema: Schema | None = None,
    ) -> None:
        """With a schema, the features of a tenant are compiled together with its rules."""
        self.schema = schema
        self._compile = compile_document
        self._size = size
        self._ready: dict[str, tuple[RuleSet, CompiledRules]] = {}

    def active(self, version: int, document: str) -> ActiveRules:
        """Return a version ready to run. Raises `RuleSetRefused` when this code no longer accepts it."""
        digest = document_digest(document)
        return self.keep(version, digest, self.find(digest) or self.compile(version, document))

    def find(self, digest: str) -> tuple[RuleSet, CompiledRules] | None:
        """Return what was compiled of a document, unless it has been dropped."""
        return self._ready.get(digest)

    def compile(self, version: int, document: str) -> tuple[RuleSet, CompiledRules]:
        """Compile a document; this may be done in any thread. Raises `RuleSetRefused`."""
        ready = self._compile(document)
        if doubtful := ready[1].doubtful:
            # They were saved before the gate knew better; `vettance rules check` says which they are.
            _log.warning("rules_that_never_fire", version=version, rules=len(doubtful))
        return ready

    def keep(self, version: int, digest: str, ready: tuple[RuleSet, CompiledRules]) -> ActiveRules:
        """Keep what was compiled as what was used last, and return it ready to run."""
        self._ready.pop(digest, None)
        self._ready[digest] = ready
        while len(self._ready) > self._size:
            del self._ready[next(iter(self._ready))]
        return active_rules(version, digest, *ready)


def ask(
    velocity: Velocity,
    plan: Plan,
    tenant: str,
    event_id: str,
    at_ms: int,
    seen: Observation,
    failures: list[Failure],
) -> VelocityAnswer:
    """Ask a memory about an event and record it there; should that raise, nothing is known of the past.

    Live and in replay alike, so that the memory is the same after a restart.
    """
    try:
        return velocity.observe(tenant, event_id, at_ms, seen)
    except Exception as error:  # noqa: BLE001  A decision never fails because of one event.
        failures.append((MEMORY, message_of(error)))
        return nothing_known(plan)


def consider(velocity: Velocity, active: ActiveRules, tenant: str, event_id: str, event: Event) -> RuleInputs:
    """Read the facts of an event, ask a memory of this process about it and record it there."""
    compiled = active.asked
    facts = compiled.facts(event)
    seen = compiled.observe(facts)
    unknown = failures_of(facts, seen)
    answer = ask(velocity, compiled.plan, tenant, event_id, event.occurred_at_ms, seen, unknown)
    return RuleInputs(active, facts, answer, unknown)


def logged_event(row: Row) -> Event:
    """Read the event of a row of the log.

    Raises whatever there is to raise: the bounds were narrowed since it was taken, or it is damaged.
    """
    _, _, _, received_at_ms, sent, signals = row
    event = read_taken_event(decode(sent), received_at_ms)
    return event if signals is None else with_session_signals(event, decode(signals))


def legible_event(row: Row) -> Event | None:
    """Read the event of a row of the log; None when it cannot be read."""
    try:
        return logged_event(row)
    except Exception:  # noqa: BLE001  The live memory, which leaves it out as well, has logged it.
        return None


def observation_of(active: ActiveRules, row: Row) -> tuple[int, Observation]:
    """Return what a row of the log means to the memory, and when. Raises as `logged_event` does."""
    event = logged_event(row)
    return event.occurred_at_ms, active.asked.seen(event)
