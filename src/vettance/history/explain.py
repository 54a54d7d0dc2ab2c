"""Reads a stored decision back and gives every number in it its name."""

import asyncio
from collections.abc import Sequence
from typing import Final

import msgspec

from vettance.db.engine import PIECE_BYTES, Store, StoreDown, in_pieces, still_asked
from vettance.decisions import sql
from vettance.decisions.active_rulesets import ActiveRules, RuleCache, active_rules
from vettance.decisions.answers import read_sent
from vettance.decisions.counterfactual import Counterfactual, find_counterfactuals
from vettance.decisions.decision import Decision, DecisionRecordData, Outcome, decide, decide_again
from vettance.decisions.evaluate import Evaluator
from vettance.decisions.load_ruleset import find_version
from vettance.decisions.recompute import Recomputation, recompute
from vettance.errors import NotFound
from vettance.feedback import sql as feedback_sql
from vettance.feedback.label import Feedback
from vettance.history.entity_links import EntityLink, EntityLinker
from vettance.ids import is_id
from vettance.models.keep_models import ModelMirror
from vettance.models.model_score import Contribution
from vettance.reviews.review import Review
from vettance.reviews.sql import review_of, select_review
from vettance.rules.compiler import compile_rules
from vettance.rules.rule_reads import ConditionReader
from vettance.rules.ruleset import RuleSet
from vettance.rules.schema import Schema
from vettance.rules.unknowns import Failure
from vettance.telemetry.logs import logger
from vettance.velocity.port import Value
from vettance.wire.payload import JSON

#: What a decision is shown with whose rules this version cannot read.
_NO_RULES: Final = RuleSet(name="")
_NOTHING: Final = compile_rules((), Schema(()))

_log = logger()


class Explanation(msgspec.Struct, frozen=True):
    """A stored decision, with the rules that made it and the entities it touches."""

    stored: sql.StoredDecision
    sent: JSON
    active: ActiveRules
    decision: Decision
    features: dict[str, Value]
    unknown: list[Failure]  # What could not be computed of the event, or read back.
    inexact: list[str]  # The names of the features that may be off.
    links: dict[str, EntityLink]
    feedback: list[Feedback]
    review: Review | None
    counterfactuals: list[Counterfactual]
    contributions: list[Contribution]  # What each feature added to what the model said.
    base: float | None  # What the model says before any feature.


class Explainer:
    """Finds decisions of a tenant and explains them with the rule set version that made them.

    Lists are read from `reading`, which may be a replica; one decision by its id, and those of reviews, are
    asked for right after they were made.
    """

    def __init__(
        self,
        store: Store,
        evaluator: Evaluator,
        cache: RuleCache,
        linker: EntityLinker,
        conditions: ConditionReader,
        models: ModelMirror | None = None,
        *,
        reading: Store | None = None,
    ) -> None:
        self._store = store
        self._reading = reading or store
        self._evaluator = evaluator
        self._cache = cache
        self._linker = linker
        self.conditions = conditions
        self._models = models or ModelMirror(store, {})

    async def find(self, tenant: str, event_id: str) -> tuple[sql.StoredDecision, Decision, ActiveRules]:
        """Return one event with its decision. Raises `NotFound` when it is absent or another tenant's."""
        if not is_id(event_id, "evt"):
            raise NotFound
        rows = await self._store.read(sql.select_decision(tenant, event_id))
        if not rows:
            raise NotFound
        stored = sql.stored_of(rows[0])
        return stored, *await self._decided(tenant, stored)

    async def find_all(self, tenant: str, seqs: Sequence[int]) -> list[tuple[sql.ListedDecision, Decision]]:
        """Return the decisions at some places of the log, in the order of `seqs`, without what was sent."""
        return await self._find_all(self._reading, tenant, seqs)

    async def _find_all(
        self, store: Store, tenant: str, seqs: Sequence[int]
    ) -> list[tuple[sql.ListedDecision, Decision]]:
        found: list[sql.ListedDecision] = []
        asked = seqs
        while asked:
            rows = await store.read(sql.select_listed_decisions(tenant, asked, bodies=False))
            found += map(sql.listed_decision_of, rows)
            asked = still_asked(asked, rows)
        return await self._in_order(tenant, seqs, found)

    async def find_by_ids(self, tenant: str, ids: Sequence[str]) -> list[tuple[sql.ListedDecision, Decision]]:
        """Return some decisions in the order of `ids`, without what was sent; gone ones are left out."""
        if not ids:
            return []
        places: dict[str, int] = dict(await self._store.read(sql.select_places(tenant, ids)))
        return await self._find_all(self._store, tenant, [places[one] for one in ids if one in places])

    async def find_all_bodies(
        self, tenant: str, seqs: Sequence[int], bytes_max: int = PIECE_BYTES
    ) -> list[tuple[sql.ListedDecision, Decision]] | None:
        """Return the same with what was sent, or None when that is larger than `bytes_max`."""
        if not seqs:
            return []
        rows = await self._reading.read(
            in_pieces(sql.select_listed_decisions(tenant, seqs, bodies=True), bytes_max)
        )
        if still_asked(seqs, rows, bytes_max):
            return None
        return await self._in_order(tenant, seqs, [sql.listed_decision_of(row) for row in rows])

    async def _in_order(
        self, tenant: str, seqs: Sequence[int], found: Sequence[sql.ListedDecision]
    ) -> list[tuple[sql.ListedDecision, Decision]]:
        at = {listed.seq: listed for listed in found}
        # What retention has removed since it was found is left out.
        listed = [at[seq] for seq in seqs if seq in at]
        return [(one, (await self._decided(tenant, one.stored))[0]) for one in listed]

    async def _decided(self, tenant: str, stored: sql.StoredDecision) -> tuple[Decision, ActiveRules]:
        """Return what was answered, in full, and the rules that decided it."""
        record = stored.record
        if record is sql.DAMAGED:
            return await self._damaged(tenant, stored.id)
        try:
            active = await self.rules_of(tenant, record.ruleset_version)
            decision = decide_again(active.ruleset, record, tenant)
        except StoreDown:
            raise
        except Exception as error:  # noqa: BLE001  What was answered is shown without its rules then.
            version, reason = record.ruleset_version, type(error).__name__
            _log.warning("rules_not_read", tenant=tenant, version=version, reason=reason)
            decision = decide(_NO_RULES, version, (), ())
            active = active_rules(version, "", _NO_RULES, _NOTHING)
        # What was answered stays, even if a later version of this code would score the same hits differently.
        kept = {"outcome": record.outcome, "score": record.score, "level": record.level}
        return msgspec.structs.replace(decision, **kept), active

    async def _damaged(self, tenant: str, event_id: str) -> tuple[Decision, ActiveRules]:
        """Return what was answered where nothing else can be read."""
        _log.warning("decision_record_damaged", tenant=tenant, decision=event_id)
        nothing = decide(_NO_RULES, sql.DAMAGED.ruleset_version, (), ())
        active = active_rules(nothing.ruleset_version, "", _NO_RULES, _NOTHING)
        rows = await self._store.read(sql.select_outcome(tenant, event_id))
        if not rows:
            raise NotFound  # It was removed a moment ago.
        outcome, score, level = rows[0]
        return msgspec.structs.replace(nothing, outcome=Outcome(outcome), score=score, level=level), active

    async def explain(self, tenant: str, event_id: str) -> Explanation:
        """Return everything about one decision. Raises `NotFound`."""
        stored, decision, active = await self.find(tenant, event_id)
        compiled, record = active.compiled, stored.record
        features: dict[str, Value] = {}
        names = compiled.plan.aggregate_names
        for known, values in ((compiled.fact_names, record.facts), (names, record.answers)):
            # Without the rules that were in force, the values have no names.
            if len(known) == len(values):
                features.update(zip(known, values, strict=True))
        inexact = [name for bit, name in enumerate(names) if record.inexact >> bit & 1]
        entities = {kind: value for kind, value in stored.entities.items() if value is not None}
        links = await self._linker.links(tenant, entities)
        feedback = await self.feedback(tenant, [event_id])
        unknown, sent = list(record.unknown), read_sent(stored.sent)
        if not sent:
            unknown.append(("event", "what was sent is damaged"))
        found = await self._store.read(select_review(tenant, event_id))
        review = review_of(found[0]) if found else None
        return Explanation(
            stored,
            sent,
            active,
            decision,
            features,
            unknown,
            inexact,
            links,
            feedback,
            review,
            await self._counterfactuals(tenant, stored, active),
            *await self._contributions(tenant, record),
        )

    async def _contributions(
        self, tenant: str, record: DecisionRecordData
    ) -> tuple[list[Contribution], float | None]:
        """Return what each feature added, by the model that scored the event; nothing once it is gone."""
        if record.model is None or record.model.log_odds is None:
            return [], None
        model = await self._models.find(tenant, record.model.version)
        if model is None or model.trees is None:
            return [], None
        values = await self._models.values_of(tenant, model, record.feature_set, record.features)
        return ([], None) if values is None else (model.explain(values), model.trees.base)

    async def _counterfactuals(
        self, tenant: str, stored: sql.StoredDecision, active: ActiveRules
    ) -> list[Counterfactual]:
        try:
            # Up to 20 ms of a thread: decisions of others do not wait for them.
            return await asyncio.to_thread(find_counterfactuals, active, stored.record, self.conditions)
        except Exception as error:  # noqa: BLE001  What was decided is shown without what might have been.
            reason = type(error).__name__
            _log.warning("counterfactuals_failed", tenant=tenant, decision=stored.id, reason=reason)
            return []

    async def recompute(self, tenant: str, event_id: str) -> Recomputation:
        """Compute a decision again from its record. Raises `NotFound`."""
        stored, _, active = await self.find(tenant, event_id)
        return recompute(stored, active)

    async def feedback(self, tenant: str, event_ids: Sequence[str]) -> list[Feedback]:
        """Return the feedback about some events, oldest first for each."""
        if not event_ids:
            return []
        rows = await self._store.read(feedback_sql.select_feedback(tenant, event_ids))
        return [feedback_sql.feedback_of(row) for row in rows]

    async def rules_of(self, tenant: str, version: int) -> ActiveRules:
        """Return a version of a tenant's rules. Raises `LookupError` when there is none."""
        active = self._evaluator.rules.get(tenant)
        if active is not None and active.version == version:
            return active
        return await find_version(self._store, self._cache, tenant, version)
