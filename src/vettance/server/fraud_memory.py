"""The memory of fraud events in one process: its own, filled from the log, or one that processes share."""

from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from vettance.db.engine import Store
from vettance.decisions.active_rulesets import RuleCache
from vettance.decisions.evaluate import Evaluator
from vettance.decisions.label_memory import LabelReplayer
from vettance.decisions.shared_velocity import SharedMemory
from vettance.decisions.velocity_rebuild import VelocityRebuilder
from vettance.deployment.protocols import Counters
from vettance.fairness.skipped_rows import Skipped
from vettance.velocity.memory.memory_velocity import MemoryVelocity
from vettance.velocity.sync.snapshot_store import SnapshotStore
from vettance.velocity.sync.velocity_snapshots import VelocitySnapshots


class FraudMemory(Protocol):
    """Puts the rules of tenants into force, and keeps what is remembered of their events equal to the log."""

    async def start(self, progress: Callable[[int], object] | None = None) -> int:
        """Put all rules into force and fill the memories; returns how many events were replayed for that."""

    async def reload(self, tenant: str) -> None:
        """Follow a change of a tenant's rules, or mend its memory."""

    async def run(self) -> None:
        """Do the work behind it, for ever."""

    async def save(self) -> None:
        """Keep what a later start would else replay; for the moment of stopping."""

    def forget(self, tenant: str) -> None:
        """Remove what is written of a tenant: it holds names that are to be forgotten."""


class OwnFraudMemory:
    """Implements `FraudMemory` in this process, with snapshots in a folder."""

    def __init__(self, rebuilder: VelocityRebuilder, snapshots: VelocitySnapshots) -> None:
        self.start = rebuilder.start
        self.reload = rebuilder.reload
        self.run = snapshots.run
        self.save = snapshots.save_all
        self.forget = snapshots.forget


class SharedFraudMemory:
    """Implements `FraudMemory` on one that processes share. It needs no snapshots; old ones are removed."""

    def __init__(self, shared: SharedMemory, old: SnapshotStore) -> None:
        self.start = shared.start
        self.reload = shared.reload
        self.run = shared.run
        self.forget = old.remove

    async def save(self) -> None:
        """The other processes remember it."""


def fraud_memory(
    store: Store,
    counters: Counters,
    velocity: MemoryVelocity,
    evaluator: Evaluator,
    cache: RuleCache,
    folder: Path,
    skipped: Skipped,
) -> FraudMemory:
    """Return the memory that the deployment has, and have the evaluator ask it. Snapshots go to `folder`."""
    snapshots = SnapshotStore(folder)
    snapshots.sweep()
    if counters.shared_velocity is not None:
        shared = SharedMemory(store, counters.shared_velocity, cache, skipped=skipped)
        evaluator.share(shared)
        return SharedFraudMemory(shared, snapshots)
    labels = LabelReplayer(store, velocity, skipped)
    written = VelocitySnapshots(store, velocity, evaluator, snapshots, note_labels=labels.note_newest)
    rebuilder = VelocityRebuilder(store, velocity, evaluator, cache, written.restore, skipped=skipped)
    return OwnFraudMemory(rebuilder, written)
