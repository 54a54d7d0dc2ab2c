"""Puts the parts of AML together: which memory, which rules, which doors."""

from pathlib import Path
from typing import Final, NamedTuple

from vettance.aml import sql
from vettance.aml.aml_memory import AmlMemory, SnapshotVelocity
from vettance.aml.aml_rebuild import AmlRebuilder
from vettance.aml.api import AmlDoors
from vettance.aml.case_review import Reviewer
from vettance.aml.evidence import EvidenceWriter
from vettance.aml.features import aml_schema
from vettance.aml.monitor import Monitor
from vettance.aml.party_screening import InlineScreener
from vettance.aml.screening.screen import Screener
from vettance.aml.screening.screening_review import ScreeningReviewer
from vettance.aml.turns.serialized import SerializedWatch
from vettance.db.engine import Store, Turns
from vettance.decisions.active_rulesets import RuleCache
from vettance.fairness.skipped_rows import Skipped
from vettance.ids import IdSource
from vettance.reference.currencies import Currencies
from vettance.reference.jurisdictions import Jurisdictions
from vettance.rules.ruleset import compile_document
from vettance.telemetry.meters import Meters
from vettance.velocity.sync.snapshot_store import SnapshotStore
from vettance.velocity.sync.velocity_snapshots import VelocitySnapshots

#: Events of a tenant after which its memory is worth a new snapshot: some seconds of replay at a start.
WORTH_EVENTS: Final = 50_000


class Aml(NamedTuple):
    """The pipeline of AML, apart from that of fraud."""

    monitor: Monitor
    rebuilder: AmlRebuilder
    reviewer: Reviewer
    screenings: ScreeningReviewer
    doors: AmlDoors
    preserver: VelocitySnapshots
    names: InlineScreener


def assemble(
    store: Store,
    velocity: SnapshotVelocity,
    ids: IdSource,
    data: Path,
    screener: Screener,
    jurisdictions: Jurisdictions | None = None,
    turns: Turns | None = None,
    meters: Meters | None = None,
) -> Aml:
    """Build the pipeline on a store; snapshots go into a folder of their own in the folder `data`.

    `velocity` must be an engine of its own: tenants have two memories. Processes that share the store watch
    events in `turns`.
    """
    shelf = SnapshotStore(data / "memory" / "aml")
    shelf.sweep()
    jurisdictions = jurisdictions or Jurisdictions()
    schema = aml_schema(jurisdictions)
    writer = EvidenceWriter(schema, Currencies(jurisdictions.scales))
    memory = AmlMemory(velocity, Skipped(meters))
    names = InlineScreener(screener)
    monitor = Monitor(store, memory, ids, writer, names, meters=meters)
    cache = RuleCache(lambda document: compile_document(document, schema))
    share = SerializedWatch(store, turns, memory, monitor) if turns is not None else None
    reach = share.reach if share is not None else None
    newest, event_at = sql.select_last_event, sql.select_event_at
    preserver = VelocitySnapshots(store, memory, monitor, shelf, newest, event_at, WORTH_EVENTS, reach)
    rebuilder = AmlRebuilder(store, memory, monitor, cache, preserver.restore)
    if share is not None:
        monitor.crew = share
        share.reload, rebuilder.follow = rebuilder.reload, share.follow
    reviewer = Reviewer(store, rebuilder.reload)
    screenings = ScreeningReviewer(store, ids, reviewer)
    doors = AmlDoors(store, monitor, reviewer, screenings)
    return Aml(monitor, rebuilder, reviewer, screenings, doors, preserver, names)
