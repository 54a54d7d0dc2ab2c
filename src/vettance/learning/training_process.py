"""The process of one training: reads its order from standard input, and says what came of it in one line."""

import asyncio
import os
import sys
import time
from typing import Any, Final

import msgspec

from vettance.commands import open_store
from vettance.db.engine import Store
from vettance.decisions.sql import record_of
from vettance.deployment.connect import long_reads
from vettance.ids import is_pseudonym
from vettance.learning import sql
from vettance.learning.training_rows import RowCollector, decided_row, standing_labels
from vettance.models.feature_set import FeatureSet, read_feature_set, set_in_force
from vettance.models.trees import text_digest, write_trees
from vettance.reference.jurisdictions import Jurisdictions
from vettance.wire.payload import JSON, encode

_NICE: Final = 19
_ROWS: Final = 2_000
_LABELS: Final = 20_000


#: Kinds of models: those that score events, and those that order alerts.
EVENTS: Final = "events"
ALERTS: Final = "alerts"


class TrainingOrder(msgspec.Struct, frozen=True):
    """What the process is to do: train for a tenant on decisions with these features."""

    tenant: str
    features: str
    champion: int | None
    kind: str = EVENTS


async def work(
    store: Store, order: TrainingOrder, countries: Jurisdictions | None = None, seed: int = 1
) -> JSON:
    """Train, and return the model with its card, or why there is none."""
    from vettance.learning.train import TooFewLabels, train

    if order.kind == ALERTS:
        return await _work_on_alerts(store, order, countries, seed)
    began_s = time.monotonic()
    features = read_feature_set(order.features)
    names = tuple(one.name for one in features.features)
    collector = await _collect(store, order.tenant, features)
    try:
        made = train(collector.rows(), names, order.champion, seed)
    except TooFewLabels as few:
        return {"error": str(few)}
    text = write_trees(made.trees)
    card = {
        **made.card,
        "featureSet": features.digest,
        "labelDelaySeconds": collector.delay_ms // 1000,
        "maturitySeconds": collector.maturity_ms // 1000,
        "promoted": made.is_better,
        "seed": seed,
        "seconds": round(time.monotonic() - began_s, 2),
    }
    return {"body": text, "digest": text_digest(text), "card": card, "isBetter": made.is_better}


async def _work_on_alerts(
    store: Store, order: TrainingOrder, countries: Jurisdictions | None, seed: int
) -> JSON:
    from vettance.learning.train import TooFewLabels
    from vettance.learning.train_alerts import train_alerts

    began_s = time.monotonic()
    try:
        made = await train_alerts(store, order.tenant, order.champion, countries, seed)
    except TooFewLabels as few:
        return {"error": str(few)}
    text = write_trees(made.trees)
    card = {**made.card, "promoted": made.is_better, "seconds": round(time.monotonic() - began_s, 2)}
    return {"body": text, "digest": text_digest(text), "card": card, "isBetter": made.is_better}


async def _collect(store: Store, tenant: str, features: FeatureSet) -> RowCollector:
    changes: list[Any] = []
    after = 0
    while rows := await store.read(sql.select_labels(tenant, after, _LABELS)):
        after = rows[-1][0]
        changes += [row[1:] for row in rows]
    labels = standing_labels(changes)
    reached_ms, moments = await _moments(store, tenant)
    delays = [one.at_ms - moments[event] for event, one in labels.items() if event in moments]
    collector = RowCollector(labels, reached_ms, delays)
    after = 0
    while rows := await store.read(sql.select_decided(tenant, after, _ROWS)):
        after = rows[-1][0]
        for _, event, occurred_at_ms, stored, customer, email in rows:
            if is_pseudonym(customer or email):
                continue  # Of a customer who was erased nothing is learned any more.
            try:
                record = record_of(stored)
            except Exception:  # noqa: BLE001, S112  One damaged row must not keep the others from being used.
                continue
            if set_in_force(record.feature_set) == features.digest:
                row = decided_row(event, occurred_at_ms, record)
                # Behind the set there may be what only the model in service needed.
                collector.take(row._replace(features=row.features[: len(features.features)]))
    return collector


async def _moments(store: Store, tenant: str) -> tuple[int, dict[str, int]]:
    """Return the newest event time, and those of the newest labelled events."""
    found = await store.read(sql.select_label_moments(tenant, _LABELS))
    newest = await store.read(sql.select_reached(tenant))
    return newest[0][0] or 0, dict(found)


async def main(data: str) -> None:
    """Read the order, do it, and say what came of it."""
    order = msgspec.json.decode(sys.stdin.buffer.read(), type=TrainingOrder)
    async with open_store(data) as (store, settings):
        try:
            async with long_reads(settings, store, order.tenant) as reading:
                said = await work(reading, order, settings.jurisdictions, settings.training_seed)
        except Exception as error:
            said = {"error": f"The training could not be done ({type(error).__name__})."}
            raise
        finally:
            sys.stdout.buffer.write(encode(said) + b"\n")
            sys.stdout.buffer.flush()


if __name__ == "__main__":
    os.nice(_NICE)
    asyncio.run(main(sys.argv[1]))
