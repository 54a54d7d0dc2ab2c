"""A stream of labelled events in this process: rules, memory, features and training as the service has them.

No store and no sockets. What a server does in processes of its own is done at once: a training is over when
the event that made it due has been decided.
"""

import time
from collections.abc import Iterator, Sequence

import msgspec

from bench.learning.labelled_stream import GivenLabel, LabelledEvent, ScoredEvent
from vettance import clock
from vettance.decisions.active_rulesets import RuleCache, consider
from vettance.decisions.decision import DecisionRecordData, Outcome, decide
from vettance.decisions.evaluated_event import EvaluationInput, conclude
from vettance.decisions.features import fraud_schema
from vettance.decisions.label_memory import record_label
from vettance.events.event import Event, read_taken_event
from vettance.feedback.label_change import LabelChange
from vettance.feedback.maturity import timing_of
from vettance.learning.change_features import EVENTS_LOOKED_THROUGH
from vettance.learning.keep_learning import is_training_due
from vettance.learning.train import TrainedModel, train
from vettance.learning.training_rows import DecidedRow, RowCollector, StandingLabel, TooFewLabels, decided_row
from vettance.models.discovery import discover, features_of
from vettance.models.feature_set import compile_with_rules, read_feature_set, write_feature_set
from vettance.models.serving_model import ModelMode, ServingModel
from vettance.models.sql import ModelSetting
from vettance.models.trees import TreeModel, text_digest, write_trees
from vettance.rules.packs import load_pack_text
from vettance.rules.ruleset import compile_document
from vettance.velocity.memory.memory_velocity import MemoryVelocity

_TENANT = "t"


class OfflineStream:
    """Decides a stream with the default pack and the model that it trains on the way, active."""

    def __init__(self, events: Sequence[LabelledEvent], seed: int = 1) -> None:
        self._events = events
        self._seed = seed
        self._now_ms = clock.now_ms()
        self._schema = fraud_schema()
        cache = RuleCache(lambda document: compile_document(document, self._schema), schema=self._schema)
        self._active = cache.active(1, load_pack_text("fraud"))
        self._velocity = MemoryVelocity()
        self._velocity.install(_TENANT, self._active.asked.plan)
        self._taken: list[Event] = []
        self._rows: list[DecidedRow] = []
        self._labels: dict[str, StandingLabel] = {}
        self._delays: list[int] = []
        self._setting = ModelSetting(_TENANT, may_block=True)
        self._frauds = 0
        self._serving: ServingModel | None = None
        #: The models that were trained, and the seconds of processor time that all of it took.
        self.trained: list[TrainedModel] = []
        self.training_s = self.deciding_s = 0.0

    def run(self, labels: Sequence[GivenLabel]) -> list[ScoredEvent]:
        """Decide every event, and return what was said of each."""
        return list(self.steps(labels))

    def steps(self, labels: Sequence[GivenLabel]) -> Iterator[ScoredEvent]:
        """Decide one event after the other."""
        waiting = iter([*labels, None])
        label = next(waiting)
        for place, event in enumerate(self._events):
            while label is not None and label.at_ms <= event.at_ms:
                self._take(label, event.at_ms)
                label = next(waiting)
            if is_training_due(self._setting, self._frauds, self._now_ms):
                self._train(event.at_ms)
            yield self._decide(place, event)

    def _take(self, label: GivenLabel, now_ms: int) -> None:
        if self._active.features is None:
            self._begin()
        name = str(label.place)
        change = LabelChange(f"{name}.0", name, label.fraud, 1, self._taken[-1].occurred_at_ms)
        record_label(self._velocity, self._active, _TENANT, self._taken[label.place], change)
        self._labels[name] = StandingLabel(label.fraud, now_ms)
        self._delays.append(now_ms - self._events[label.place].at_ms)
        self._frauds += label.fraud

    def _begin(self) -> None:
        """Have features computed from now on, with a memory that has seen the past."""
        newest = self._events[max(len(self._taken) - EVENTS_LOOKED_THROUGH, 0) : len(self._taken)]
        features = read_feature_set(write_feature_set(features_of(discover(one.body for one in newest))))
        compiled = compile_with_rules(self._active.ruleset, features, self._schema)
        self._active = msgspec.structs.replace(self._active, features=compiled, recorded=features)
        self._features = features
        self._velocity.install(_TENANT, self._active.asked.plan)
        for place, event in enumerate(self._taken):
            consider(self._velocity, self._active, _TENANT, str(place), event)

    def _train(self, now_ms: int) -> None:
        began_s = time.process_time()
        names = tuple(one.name for one in self._features.features)
        champion = None if self._serving is None else self._serving.version
        self._setting = msgspec.structs.replace(
            self._setting, trained_frauds=self._frauds, trained_at_ms=self._now_ms
        )
        collector = RowCollector(self._labels, timing_of(now_ms, self._delays))
        for row in self._rows:
            if row.features:  # Before the first label there are none.
                collector.take(row)
        try:
            made = train(collector.rows(), names, champion, seed=self._seed)
        except TooFewLabels:
            return
        self.trained.append(made)
        if made.is_better:
            text = write_trees(made.trees)
            trees = TreeModel(text, text_digest(text))
            self._serving = ServingModel(
                version=len(self.trained),
                mode=ModelMode.SHADOW,
                may_block=True,
                features=self._features,
                trees=trees,
            )
        self.training_s += time.process_time() - began_s

    def _decide(self, place: int, event: LabelledEvent) -> ScoredEvent:
        began_s, name = time.process_time(), str(place)
        taken = read_taken_event(event.body, self._now_ms)
        self._taken.append(taken)
        asked = consider(self._velocity, self._active, _TENANT, name, taken)
        question = EvaluationInput(name, taken, (), asked, "", time.perf_counter_ns(), model=self._serving)
        _, record = conclude(question, self._now_ms)
        self.deciding_s += time.process_time() - began_s
        score = self._active_score(record)
        self._rows.append(decided_row(name, event.at_ms, record))
        said = record.model
        held = record.outcome is not Outcome.ALLOW
        return ScoredEvent(None if said is None else said.probability, score, held)

    def _active_score(self, record: DecisionRecordData) -> int:
        """Return the score as an active model makes it; reasons, which take longest, are left out."""
        if record.model is None:
            return record.score
        model, ruleset = record.model._replace(mode=ModelMode.ACTIVE), self._active.ruleset
        return decide(ruleset, record.ruleset_version, record.acting, (), model=model).score

    @property
    def is_serving(self) -> bool:
        """Whether a model is in service."""
        return self._serving is not None

    @property
    def trees(self) -> int:
        """How many trees the model in service has."""
        return len(self.trained[-1].trees.trees) if self.trained else 0

    @property
    def width(self) -> int:
        """How many features there are."""
        return len(self._active.features.names) if self._active.features is not None else 0

    def say(self, place: int) -> float | None:
        """Return what the model in service says of the features of an event that was decided."""
        assert self._serving is not None
        return self._serving.say(self._active.feature_set, self._rows[place].features).probability
