"""The memory engine of the velocity port: everything in this process, nothing awaited, nothing shared."""

from collections.abc import Callable, Iterable, Iterator
from typing import Final, NamedTuple

from vettance.velocity.fingerprint import draw_modulus
from vettance.velocity.memory.snapshot_format import dump_memory, load_memory
from vettance.velocity.memory.tenant_memory import TenantMemory
from vettance.velocity.plan_layout import MOMENT_MAX
from vettance.velocity.port import Observation, Plan, VelocityAnswer

# A rough charge in bytes for what CPython keeps besides the words: a dictionary's slot, a fingerprint and the
# head of a `bytes` value for each key; objects and room to grow for a busy one. Measured by
# `bench/parts/velocity_in_memory.py`.
_KEY_BYTES: Final = 52 + 32 + 33
_BUSY_BYTES: Final = 900
_RAW_BYTES: Final = 18


class Size(NamedTuple):
    """How much is remembered of one tenant. An event counts once for each key (or series of a busy key)."""

    keys: int
    entries: int
    bytes: int  # an estimate


class MemoryVelocity:
    """Remembers observations in memory, exactly up to 256 for each key and series, in sub-buckets beyond.

    *Late events* are recorded at their own time and answered as of their own time. Expiry goes by the newest
    event time of the tenant. Whatever is as old as its series' longest window, and a further allowance (that
    window again, but at least ten minutes and at most one hour), may be forgotten. So an event no later than
    the allowance is answered as if nothing was ever forgotten; a later one is answered from what is left, and
    those of its aggregates whose window reaches into what may be forgotten are marked inexact. One that is
    older than all that is kept is answered but not recorded. The allowance also makes one event harmless that
    is up to ten minutes ahead of the others. With a clock, one that is further ahead of it counts with the
    newest of those before it, and expiry never goes further ahead than that.
    """

    def __init__(self, modulus: int | None = None, now_ms: Callable[[], int] | None = None) -> None:
        """Make an empty engine. `modulus` is the secret prime of its fingerprints, drawn when left out.

        `now_ms` is the clock by which an event may be too far ahead; without one, every event is believed.
        """
        self._modulus = modulus or draw_modulus()
        self._now_ms = now_ms
        self._memories: dict[str, TenantMemory] = {}

    def install(self, tenant: str, plan: Plan) -> None:
        """Give a tenant an empty memory for a plan; what was remembered for it before is dropped.

        Raises `ValueError` when the plan asks of a series what it cannot answer.
        """
        self._memories[tenant] = TenantMemory(plan, self._modulus)

    def uninstall(self, tenant: str) -> None:
        """Drop everything remembered for a tenant; one without a memory is left as it is."""
        self._memories.pop(tenant, None)

    def dump(self, tenant: str) -> Iterator[bytes]:
        """Return a snapshot of a tenant's memory, in pieces to be stored one after the other.

        It is of the moment of this call, whatever is observed while the pieces are being read.
        """
        return dump_memory(self._memories[tenant])

    def load(self, tenant: str, plan: Plan, chunks: Iterable[bytes]) -> None:
        """Give a tenant the memory of a snapshot, cut into pieces in whatever way.

        It then answers bit for bit as the original would. Raises `SnapshotRefused` when the snapshot is
        damaged, cut short, of another version or of another plan; the tenant then keeps the memory it has.
        """
        self._memories[tenant] = load_memory(plan, chunks)

    def adopt(self, tenant: str, coming: str) -> None:
        """Give a tenant the memory that was filled under the name `coming`; its old memory is dropped."""
        self._memories[tenant] = self._memories.pop(coming)

    def forget_before(self, tenant: str, moment_ms: int) -> None:
        """Take note that a tenant's memory may lack events before a moment (Unix milliseconds).

        Answers whose windows may reach them are then inexact.
        """
        self._memories[tenant].forget_before(moment_ms)

    def labels(self, tenant: str) -> int:
        """Return the number of the newest label that a replay brought into a memory, or its snapshot did."""
        return self._memories[tenant].labels

    def note_labels(self, tenant: str, number: int) -> None:
        """Note that a memory has the labels up to a number."""
        self._memories[tenant].labels = number

    def reached(self, tenant: str) -> int | None:
        """Return the newest event time of a memory; None before there was an event."""
        memory = self._memories.get(tenant)
        return None if memory is None or memory.high_ms <= -MOMENT_MAX else memory.high_ms

    def observe(self, tenant: str, event_id: str, at_ms: int, seen: Observation) -> VelocityAnswer:
        """Read every aggregate as of the events observed before, then record this event.

        Exactly one effect for each event id among the last 2,048 of the tenant: the same id again answers
        the same and records nothing. Raises `KeyError` for a tenant without a plan.
        """
        now_ms = None if self._now_ms is None else self._now_ms()
        return self._memories[tenant].observe(event_id, at_ms, seen, now_ms)

    def look(self, tenant: str, at_ms: int, seen: Observation) -> VelocityAnswer:
        """Read every aggregate as of a moment (Unix milliseconds) that was reached, and record nothing."""
        return self._memories[tenant].look(at_ms, seen)

    def sweep(self, tenant: str, keys_max: int) -> int:
        """Look for expired keys among up to `keys_max`; return how many were looked at, 0 when none can have
        expired.

        `observe` sweeps as it goes; this is for tenants that have gone quiet.
        """
        looked = 0
        for keys in self._memories[tenant].keys:
            looked += keys.sweep(self._memories[tenant].high_ms, keys_max - looked)
            if looked >= keys_max:
                break
        return looked

    def size(self, tenant: str) -> Size:
        """Return how much is remembered of a tenant; costs nothing to speak of."""
        sizes = self._memories[tenant].keys
        count = sum(len(keys.records) for keys in sizes)
        entries = sum(keys.entries + keys.raw for keys in sizes)
        held = sum(keys.packed_bytes + keys.busy * _BUSY_BYTES + keys.raw * _RAW_BYTES for keys in sizes)
        return Size(count, entries, held + count * _KEY_BYTES)
