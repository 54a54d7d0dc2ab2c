"""Measures what a model changes, or would change: decisions with it against the rules alone."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from typing import Final, NamedTuple

from vettance.db.engine import Store
from vettance.db.log_walk import END
from vettance.decisions.decision import DecisionRecordData, Outcome, decide, entries_of
from vettance.decisions.sql import record_of
from vettance.learning import drift_sql, sql
from vettance.learning.training_rows import StandingLabel, standing_labels
from vettance.models.serving_model import ModelMode
from vettance.models.sql import ModelSetting
from vettance.rules.ruleset import RuleSet

EFFECT_ROWS: Final = 2_000
_PIECE: Final = 250
_LABELS: Final = 20_000

RuleSetOf = Callable[[int], Awaitable[RuleSet]]


class _ComparedDecision(NamedTuple):
    """One decision by the rules alone and with the model; `rank` orders by both scores, then by the model."""

    alone: Outcome
    both: Outcome
    score: int
    rank: tuple[int, float]
    fraud: bool


class ModelEffect(NamedTuple):
    """Over `rows` decisions that the model scored: how many it changes, and what it catches at the same load.

    `load` is how many the rules alone hold up, `frauds` the labelled frauds among all, `caught_alone` those
    that the rules hold up, `caught_with` those among the `load` decisions with the highest score of both.
    """

    rows: int
    changed: int
    to_review: int
    to_deny: int
    load: int
    frauds: int
    caught_alone: int
    caught_with: int

    @property
    def changed_share(self) -> float:
        """The part of decisions that it changes."""
        return self.changed / self.rows if self.rows else 0.0


async def effect_of(
    store: Store, setting: ModelSetting, version: int, ruleset_of: RuleSetOf, count: int = EFFECT_ROWS
) -> ModelEffect:
    """Return what a version changes, by `may_block` of the setting, over the newest `count` decisions."""
    tenant, before, left = setting.tenant, END, count
    weighed: list[_ComparedDecision] = []
    labels = await _labels_of(store, tenant)
    while left > 0 and (
        found := await store.read(drift_sql.select_records(tenant, before, min(_PIECE, left)))
    ):
        before, left = found[-1][0], left - len(found)
        for _, event, stored in found:
            with contextlib.suppress(Exception):  # A damaged record tells nothing.
                record = record_of(stored)
                if record.model is None or record.model.version != version or record.model.log_odds is None:
                    continue
                label = labels.get(event)
                ruleset = await ruleset_of(record.ruleset_version)
                fraud = label is not None and label.fraud
                weighed.append(_weigh(ruleset, record, tenant, may_block=setting.may_block, fraud=fraud))
        await asyncio.sleep(0)
    return _sum_up(weighed)


async def _labels_of(store: Store, tenant: str) -> dict[str, StandingLabel]:
    """Return what labels say, of the newest of them."""
    rows = await store.read(sql.select_newest_labels(tenant, _LABELS))
    return standing_labels(rows[::-1])


def _weigh(
    ruleset: RuleSet, record: DecisionRecordData, tenant: str, *, may_block: bool, fraud: bool
) -> _ComparedDecision:
    model = record.model
    assert model is not None
    entries = entries_of(tenant, record.lists)
    active = model._replace(mode=ModelMode.ACTIVE, may_block=may_block)
    version, fired = record.ruleset_version, record.acting
    alone = decide(ruleset, version, fired, entries, held_out=record.held_out)
    both = decide(ruleset, version, fired, entries, held_out=record.held_out, model=active)
    return _ComparedDecision(
        alone.outcome, both.outcome, alone.score, (both.score, model.log_odds or 0.0), fraud=fraud
    )


def _sum_up(weighed: list[_ComparedDecision]) -> ModelEffect:
    held = [one for one in weighed if one.alone is not Outcome.ALLOW]
    highest = sorted(weighed, key=lambda one: one.rank, reverse=True)[: len(held)]
    changed = [one for one in weighed if one.both is not one.alone]
    return ModelEffect(
        rows=len(weighed),
        changed=len(changed),
        to_review=sum(one.both is Outcome.REVIEW for one in changed),
        to_deny=sum(one.both is Outcome.BLOCK for one in changed),
        load=len(held),
        frauds=sum(one.fraud for one in weighed),
        caught_alone=sum(one.fraud for one in held),
        caught_with=sum(one.fraud for one in highest),
    )
