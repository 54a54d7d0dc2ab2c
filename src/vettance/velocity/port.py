"""The velocity port: what rules need remembered between events, and how an engine is asked for it."""

import enum
from typing import Any, Final, NamedTuple, Protocol

# A remembered value is a number or a short text; None is "not there".
Value = float | int | str | bool | None


class Series(NamedTuple):
    """One stream of observations kept for each value of a key.

    An event is recorded in the series when its bit in `mask` is set, its key is present, and, where the
    series keeps a value, that value is present. `value` is an index into the values of the observation, or
    None when only the moments are kept (count, first and last seen).
    """

    key: int
    value: int | None
    kind: str  # "moments" | "numbers" | "texts": what is kept along with the moment


class Aggregate(NamedTuple):
    """One question about a series over the window (t - window_ms, t] before the observed event.

    `kind` names a row of the table in `aggregates.py`.
    """

    kind: str
    series: int
    window_ms: int


class Plan(NamedTuple):
    """Everything a rule set needs remembered. Engines know plans; they know nothing of rules."""

    keys: tuple[str, ...]  # canonical text of each key, for traces and to recognise an unchanged series
    series: tuple[Series, ...]
    series_names: tuple[str, ...]  # canonical text of each series: filter, key and value
    aggregates: tuple[Aggregate, ...]
    aggregate_names: tuple[str, ...]  # canonical text of each aggregate, as a trace shows it


class Observation(NamedTuple):
    """What one event adds to a plan: computed once by the compiled rule set, the same live and in replay."""

    keys: tuple[Value, ...]  # one for each key of the plan; None: absent, the aggregates of it are unknown
    mask: int  # bit i set: the event belongs to series i
    values: tuple[Value, ...]  # one for each value expression


class VelocityAnswer(NamedTuple):
    """The value of every aggregate of the plan, and which of them are exact."""

    values: tuple[Value, ...]
    inexact: int  # bit i set: aggregate i came from sub-buckets and may be off at the edge of its window


class Unready(Exception):
    """A memory cannot be asked now: it is `lost`, `stale` (kept for another plan) or `paused`."""


class Condition(enum.Enum):
    """The condition of a shared memory for a plan: ready, being filled, of another plan, or lost."""

    READY = "ready"
    DEGRADED = "degraded"
    STALE = "stale"
    LOST = "lost"


#: The inexact bits of an answer from a memory that is being filled: none of it is exact.
EVERYTHING: Final = -1


def nothing_known(plan: Plan) -> VelocityAnswer:
    """Return the answer of a memory that could not be asked: every aggregate is unknown."""
    return VelocityAnswer((None,) * len(plan.aggregates), EVERYTHING)


class SharedVelocity(Protocol):
    """A memory that several processes share: every call waits for it, and each raises `StateDown`."""

    async def observe(
        self,
        tenant: str,
        event_id: str,
        at_ms: int,
        seen: Observation,
        plan: Plan | None = None,
        *,
        received: bool = False,
    ) -> VelocityAnswer:
        """As `Velocity.observe`, by a plan; `received`: the moment is that of receipt. Raises `Unready`."""

    async def reached(self, tenant: str) -> int | None:
        """Return the newest event time of a memory; None before there was an event."""

    async def record(self, tenant: str, at_ms: int, seen: Observation, plan: Plan) -> None:
        """Record an event of the log and ask nothing. Raises `Unready`."""

    def settle(self, tenant: str, event_id: str) -> None:
        """Forget the answer of an event: it is in the log."""

    async def settle_all(self) -> set[str]:
        """Settle events; return the tenants whose memory may lack one of them."""

    async def install(self, tenant: str, plan: Plan, lacking_before_ms: int | None = None) -> None:
        """Give a tenant an empty memory; one to be filled aside is named tenant + `#` + token of a lease.

        It may lack events before a moment, see `Velocity.forget_before`.
        """

    async def found(self, tenant: str, plan: Plan) -> None:
        """Give a tenant that has none an empty memory that answers nothing as exact."""

    async def adopt(self, tenant: str, coming: str, *, held: bool = False) -> None:
        """Give a tenant the memory filled under the name `coming`; with `held` only under the lease of that.

        Raises `Unready`.
        """

    async def condition(self, tenant: str, plan: Plan) -> Condition:
        """Return the condition of the memory of a tenant for a plan."""

    async def hold(self, tenant: str, hold_s: float, *, again: bool = False) -> bool:
        """Take no events of a tenant for so long, or until another memory is adopted.

        With `again` only if none are taken at the moment; answers whether that is so.
        """

    async def let_go(self, tenant: str) -> None:
        """Take events of a tenant again."""

    async def pending(self, tenant: str) -> list[str]:
        """Return the ids of events that were observed and are not settled."""

    async def lease(self, tenant: str, lease_s: float) -> bytes | None:
        """Take the lease of filling a tenant's next memory; None while another process has it."""

    async def keep(self, tenant: str, holder: bytes, lease_s: float) -> bool:
        """Keep a lease, or give it up with 0; answer whether it was still ours."""

    async def abandon(self, coming: str) -> int:
        """Delete what was filled of a coming memory that will not be adopted; return how many keys."""

    async def sweep(self, tenant: str) -> int:
        """Delete what is not asked any more; return how many keys."""


class Velocity(Protocol):
    """Remembers observations for each tenant. One call for each event; nothing awaits inside it."""

    def observe(self, tenant: str, event_id: str, at_ms: int, seen: Observation) -> VelocityAnswer:
        """Read every aggregate as of the events observed before, then record this event.

        Exactly one effect for each event id: the same id again answers the same and records nothing.
        """

    def install(self, tenant: str, plan: Plan) -> Any:
        """Give a tenant an empty memory for a plan; what was remembered for it before is dropped."""

    def uninstall(self, tenant: str) -> Any:
        """Drop everything remembered for a tenant; one without a memory is left as it is."""

    def adopt(self, tenant: str, coming: str) -> None:
        """Give a tenant the memory that was filled under the name `coming`; its old memory is dropped."""

    def forget_before(self, tenant: str, moment_ms: int) -> None:
        """Note that a memory may lack events before a moment; answers that may reach them are inexact."""


class LabelledVelocity(Velocity, Protocol):
    """A memory of this process that counts labels as well."""

    def labels(self, tenant: str) -> int:
        """Return the number of the newest label that a replay brought into a memory, or its snapshot did."""

    def note_labels(self, tenant: str, number: int) -> None:
        """Note that a memory has the labels up to a number."""

    def reached(self, tenant: str) -> int | None:
        """Return the newest event time of a memory; None before there was an event."""


class WorkClaims(Protocol):
    """Claims by which a process takes a piece of work. The claim of one that dies lapses within seconds.

    Each call raises `StateDown`; nothing rests on a claim but that work is not done twice.
    """

    async def take(self, tenant: str, name: str) -> bytes | None:
        """Claim `name`; returns the token of the claim, None while another process has it."""

    async def give_up(self, tenant: str, name: str, holder: bytes) -> None:
        """Let another take it at once, if it is still ours."""
