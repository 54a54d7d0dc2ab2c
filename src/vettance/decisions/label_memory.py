"""Brings labels into the memory of past events, live and in replay alike, so that rules count them."""

from collections import deque
from collections.abc import Sequence
from typing import Final, NamedTuple

from vettance.db.engine import Row, Store
from vettance.decisions.active_rulesets import ActiveRules
from vettance.events.event import Event, read_taken_event, with_session_signals
from vettance.fairness.skipped_rows import Skipped
from vettance.feedback import label_sql
from vettance.feedback.label_change import LabelChange
from vettance.telemetry.meter_table import Rows
from vettance.velocity.port import LabelledVelocity, Observation, Velocity
from vettance.velocity.sync.event_log import EventLog
from vettance.velocity.sync.log_by_time import TimedLog
from vettance.wire.payload import decode

#: Labels read at a time while events are answered: some milliseconds of the thread that decides.
_CHUNK: Final = 200
#: The log of labels, for a memory that processes share.
LABEL_LOG: Final = EventLog(
    label_sql.select_log,
    label_sql.select_tenant_log,
    tenant_column=1,
    id_column=2,
    kept_ms=0,  # As far back as the events are read.
    chunk=5_000,
    live_chunk=_CHUNK,
)
#: The same in the order of the moments from which labels count.
TIMED_LABELS: Final = TimedLog(label_sql.select_moments, label_sql.select_rows)


class LoggedLabel(NamedTuple):
    """A row of the log of labels: what it changes about which event, and where in the log of events."""

    seq: int
    change: LabelChange
    event: Event
    after_seq: int


def logged_label(row: Row) -> LoggedLabel:
    """Read a row of the log of labels. Raises whatever there is to raise: the event may be damaged."""
    seq, _, label_id, _, sent, signals, event_received_at_ms, event_id, fraud, weight, at_ms, after_seq = row
    event = read_taken_event(decode(sent), event_received_at_ms)
    if signals is not None:
        event = with_session_signals(event, decode(signals))
    change = LabelChange(label_id, event_id, bool(fraud), weight, at_ms)
    return LoggedLabel(seq, change, event, after_seq)


def label_observation(active: ActiveRules, event: Event, change: LabelChange) -> Observation | None:
    """Return what a label means to the memory of some rules; None where they count no such labels."""
    return active.asked.label(event, float(change.weight), fraud=change.fraud)


def record_label(
    velocity: Velocity, active: ActiveRules, memory: str, event: Event, change: LabelChange
) -> None:
    """Record a label in a memory of this process."""
    seen = label_observation(active, event, change)
    if seen is not None:
        velocity.observe(memory, change.id, change.at_ms, seen)


class LabelReplayer:
    """Records the labels of the log in memories of this process."""

    def __init__(self, store: Store, velocity: LabelledVelocity, skipped: Skipped | None = None) -> None:
        self._store = store
        self._velocity = velocity
        self._skipped = skipped or Skipped()

    async def replay(self, memory: str, tenant: str, active: ActiveRules, since_ms: int) -> None:
        """Record, in the memory of a name, the labels given since a moment that it does not have yet."""
        if not any(active.asked.labels.masks):
            return
        after = self._velocity.labels(memory)
        while rows := await self._store.read(label_sql.select_tenant_log(tenant, after, since_ms, _CHUNK)):
            for row in rows:
                try:
                    label = logged_label(row)
                    record_label(self._velocity, active, memory, label.event, label.change)
                except Exception as error:  # noqa: BLE001  One row must not keep a process from its start.
                    self._skipped.note(Rows.EVENT, row[1], row[2], error)
            after = rows[-1][0]
            self._velocity.note_labels(memory, after)

    async def note_newest(self, tenant: str) -> None:
        """Note which labels are in a tenant's memory while none is under way: all of them."""
        rows = await self._store.read(label_sql.select_newest(tenant))
        self._velocity.note_labels(tenant, rows[0][0] or 0)


class LabelReader:
    """Reads the labels of a tenant in the order in which they were given, as far as they are asked for."""

    def __init__(self, store: Store, tenant: str, since_ms: int) -> None:
        self._store = store
        self._tenant = tenant
        self._since_ms = since_ms
        self._after = 0
        self._ahead: deque[Row] = deque()
        self._ended = False

    async def before(self, seq: int) -> Sequence[LoggedLabel]:
        """Return the labels that were given before the event at a place of the log, and not returned yet."""
        found: list[LoggedLabel] = []
        while True:
            while self._ahead and self._ahead[0][11] < seq:
                row = self._ahead.popleft()
                try:
                    found.append(logged_label(row))
                except Exception:  # noqa: BLE001, S112  The live memory left it out as well, and logged it.
                    continue
            if self._ahead or self._ended:
                return found
            rows = await self._store.read(
                label_sql.select_tenant_log(self._tenant, self._after, self._since_ms, _CHUNK)
            )
            self._ahead.extend(rows)
            if rows:
                self._after = rows[-1][0]
            self._ended = not rows
