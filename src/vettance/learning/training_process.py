"""The process of one training: reads its order from standard input, and says what came of it in one line."""

import asyncio
import os
import sys
import threading
import time
from collections import Counter
from typing import Any, Final

import msgspec

from vettance.commands import open_store
from vettance.db.engine import Store
from vettance.decisions.sql import record_of
from vettance.deployment.connect import long_reads
from vettance.feedback.find_maturity import find_label_timing
from vettance.ids import is_pseudonym
from vettance.learning import sql
from vettance.learning.earlier_sets import SetsTaken, take_sets
from vettance.learning.held_out import HoldOuts
from vettance.learning.training_rows import (
    FRAUDS_MIN,
    RowCollector,
    StandingLabel,
    TooFewLabels,
    check_labels,
    decided_row,
    standing_labels,
)
from vettance.models import feature_version_sql
from vettance.models.feature_set import FeatureSet, read_feature_set, set_in_force, write_feature_set
from vettance.models.trees import text_digest, write_trees
from vettance.reference.jurisdictions import Jurisdictions
from vettance.wire.payload import JSON, encode

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
    if order.kind == ALERTS:
        return await _work_on_alerts(store, order, countries, seed)
    began_s = time.monotonic()
    features = read_feature_set(order.features)
    collector, taken = await collect(store, order.tenant, features, FRAUDS_MIN)
    names = tuple(one.name for one in taken.features.features)
    rows = collector.rows()
    try:
        check_labels(rows)
        # Loading what trains takes a second of processor, which this process hardly gets on a busy machine.
        from vettance.learning.train import train

        made = train(rows, names, order.champion, seed)
    except TooFewLabels as few:
        return {"error": str(few)}
    text = write_trees(made.trees)
    card = {
        **made.card,
        "featureSet": taken.features.digest,
        "earlierSets": len(taken.places) - 1,
        "labelDelaySeconds": collector.timing.delay_ms // 1000,
        "maturitySeconds": collector.timing.maturity_ms // 1000,
        "promoted": made.is_better,
        "seed": seed,
        "seconds": round(time.monotonic() - began_s, 2),
    }
    is_whole = taken.features is features
    made_from = order.features if is_whole else write_feature_set(taken.features.features)
    return {
        "body": text,
        "digest": text_digest(text),
        "features": made_from,
        "card": card,
        "isBetter": made.is_better,
    }


async def _work_on_alerts(
    store: Store, order: TrainingOrder, countries: Jurisdictions | None, seed: int
) -> JSON:
    from vettance.learning.train_alerts import train_alerts

    began_s = time.monotonic()
    try:
        made = await train_alerts(store, order.tenant, order.champion, countries, seed)
    except TooFewLabels as few:
        return {"error": str(few)}
    text = write_trees(made.trees)
    card = {**made.card, "promoted": made.is_better, "seconds": round(time.monotonic() - began_s, 2)}
    return {"body": text, "digest": text_digest(text), "card": card, "isBetter": made.is_better}


async def collect(
    store: Store, tenant: str, features: FeatureSet, frauds_min: int
) -> tuple[RowCollector, SetsTaken]:
    """Read what a model with these features can be made from, and the feature sets that were taken for it.

    Where the decisions of this set have fewer labelled frauds than are needed, those of the sets before it
    are read too, as far back as it takes; the features are those that all of them have.
    """
    labels, timing = await _read_labels(store, tenant), await find_label_timing(store, tenant)
    taken, collector = take_sets([features]), RowCollector(labels, timing)
    frauds = await _take_decisions(store, tenant, taken, collector)
    if frauds[features.digest] < frauds_min:
        wider = await _take_earlier(store, tenant, features, frauds, frauds_min)
        if len(wider.places) > 1:
            taken, collector = wider, RowCollector(labels, timing)
            await _take_decisions(store, tenant, taken, collector)
    return collector, taken


async def _take_earlier(
    store: Store, tenant: str, features: FeatureSet, frauds: Counter[str], frauds_min: int
) -> SetsTaken:
    """Take earlier versions of the features, the newest first, until their decisions have enough frauds."""
    sets = [features]
    for row in await store.read(feature_version_sql.select_digests(tenant)):
        (digest,) = row
        if sum(frauds[one.digest] for one in sets) >= frauds_min:
            break
        if frauds[digest] and digest not in {one.digest for one in sets}:
            rows = await store.read(feature_version_sql.select_features_by_digest(tenant, digest))
            wider = [*sets, read_feature_set(rows[0][0])]
            if not take_sets(wider).features.features:
                break
            sets = wider
    return take_sets(sets)


async def _read_labels(store: Store, tenant: str) -> dict[str, StandingLabel]:
    """Return the labels that hold in the end."""
    changes: list[Any] = []
    after = 0
    while rows := await store.read(sql.select_labels(tenant, after, _LABELS)):
        after = rows[-1][0]
        changes += [row[1:] for row in rows]
    return standing_labels(changes)


async def _take_decisions(
    store: Store, tenant: str, taken: SetsTaken, collector: RowCollector
) -> Counter[str]:
    """Have the decisions of the sets taken collected; return the labelled frauds of every set there is."""
    frauds: Counter[str] = Counter()
    hold_outs = HoldOuts(store, tenant)
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
            digest = set_in_force(record.feature_set)
            frauds[digest] += collector.is_fraud(event)
            # Behind the set there may be what only the model in service needed.
            values = taken.values(digest, record.features)
            if values is not None:
                row = decided_row(event, occurred_at_ms, record)._replace(features=values)
                collector.take(await hold_outs.weigh(row, record))
    return frauds


def end_with_parent() -> None:
    """End this process as soon as its standard input ends: what asked for the training is gone, and the next
    start of it asks again."""

    def watch() -> None:
        # Not through `sys.stdin`, whose lock would be held at the end of the process.
        while os.read(0, 1):
            pass
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


async def main(data: str) -> None:
    """Read the order, do it, and say what came of it."""
    line = sys.stdin.buffer.readline()
    order = msgspec.json.decode(line, type=TrainingOrder)
    if line.endswith(b"\n"):
        end_with_parent()
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
    asyncio.run(main(sys.argv[1]))
