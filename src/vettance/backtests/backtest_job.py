"""The job of a backtest: what it was asked, how far it is, and what it found."""

import enum
import hashlib
from collections.abc import Callable
from typing import Annotated, Any, ClassVar, Final

import msgspec

from vettance.backtests.job_turn import WORK_S_MAX
from vettance.rules.gate import DOCUMENT_BYTES_MAX
from vettance.wire.body import how, read_body
from vettance.wire.payload import JSON, Faults, Wire, decode, read_moment, timestamp

#: What the ids of backtests begin with.
BACKTEST_PREFIX: Final = "bkt"
#: Events that would be decided otherwise, shown with the result.
SAMPLES: Final = 50
#: Later than anything happens.
END_MS: Final = 2**62
_PARTS: Final = 1_000_000
_VERSION_MAX: Final = 2**31 - 1


class JobState(enum.StrEnum):
    """How far a job is."""

    QUEUED = "queued"
    RUNNING = "running"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"


#: The states in which a job holds the place of its tenant: there is one at a time.
UNDER_WAY: Final = (JobState.QUEUED, JobState.RUNNING)


class BacktestOrder(msgspec.Struct, frozen=True):
    """What a job is to do: complete rules as YAML, the span (Unix milliseconds), the share of events.

    `kind` is the pack that the rules are of: `fraud` or `aml`. `missed` has the tests that the rules do not
    pass, for the result to name.
    """

    document: str
    version: int
    from_ms: int
    to_ms: int
    sample: float
    kind: str = "fraud"
    missed: tuple[JSON, ...] = ()


class BacktestJob(msgspec.Struct, frozen=True):
    """One job. `order` is JSON, of the kind that its id begins with, and so is `result`.

    Moments are Unix milliseconds.
    """

    tenant: str
    id: str
    state: JobState
    order: msgspec.Raw
    progress: float
    created_at_ms: int
    started_at_ms: int | None
    ended_at_ms: int | None
    result: bytes | None
    error: str | None

    def left_s(self, now_ms: int) -> int | None:
        """Return about how many seconds it still takes; None where that cannot be said."""
        if self.state is not JobState.RUNNING or self.started_at_ms is None or self.progress <= 0:
            return None
        return round((now_ms - self.started_at_ms) / 1000 * (1 - self.progress) / self.progress)

    def members(self, now_ms: int) -> dict[str, Any]:
        """Return what endpoints answer of a job of any kind: how far it is, and what came of it."""
        return {
            "state": self.state.value,
            "progress": round(self.progress, 4),
            "seconds_left": self.left_s(now_ms),
            "seconds_allowed": WORK_S_MAX,
            "created_at": timestamp(self.created_at_ms),
            "started_at": _timestamp(self.started_at_ms),
            "ended_at": _timestamp(self.ended_at_ms),
            "result": None if self.result is None else decode(self.result),
            "error": self.error,
        }


def _timestamp(at_ms: int | None) -> str | None:
    return None if at_ms is None else timestamp(at_ms)


def _share(value: float) -> float | None:
    return value if 0 < value <= 1 else None


def _in_range(least: int, most: int) -> Callable[[int], int | None]:
    return lambda value: value if least <= value <= most else None


class BacktestBody(Wire, frozen=True):
    """What to try: one of a version, a document and a change to one rule; of which events."""

    EXAMPLE: ClassVar[JSON] = {"rule": {"id": "webdriver", "score": 20}, "from": "2026-10-01T00:00:00Z"}

    version: (
        Annotated[
            int,
            msgspec.Meta(
                ge=0, le=_VERSION_MAX, description="A version of your rule set; 0 is the default pack."
            ),
            how(check=_in_range(0, _VERSION_MAX), message="is no version"),
        ]
        | None
    ) = None
    document: (
        Annotated[
            str,
            msgspec.Meta(description="A rule set as YAML, checked first."),
            how(keeps_empty=True, chars_max=DOCUMENT_BYTES_MAX),
        ]
        | None
    ) = None
    rule: (
        Annotated[
            dict[str, Any],
            msgspec.Meta(
                description="Members of one rule, with its `id`: they replace those of the rule in force."
            ),
            how(is_bounded=True),
        ]
        | None
    ) = None
    moment_from: Annotated[
        Any,
        msgspec.Meta(description="Event time, Unix seconds or ISO 8601; all events when left out."),
        how(as_sent=True),
    ] = msgspec.field(name="from", default=None)
    moment_to: Annotated[
        Any, msgspec.Meta(description="The end of the span, exclusive."), how(as_sent=True)
    ] = msgspec.field(name="to", default=None)
    sample: (
        Annotated[
            float,
            msgspec.Meta(gt=0, le=1, description="The share of events that are counted; 1 when left out."),
            how(check=_share, message="must be above 0 and at most 1"),
        ]
        | None
    ) = None


class AmlBacktestBody(BacktestBody, frozen=True):
    """What to try: one of a version, a document and a change to one rule; of which AML events."""

    EXAMPLE: ClassVar[JSON] = {"rule": {"id": "structuring", "score": 50}, "from": "2026-10-01T00:00:00Z"}


def read_backtest(body: JSON) -> tuple[BacktestBody, int, int]:
    """Read a body and its span (Unix milliseconds). Raises `Invalid` (400) or `Unprocessable` (422)."""
    faults = Faults()
    said = read_body(body, BacktestBody, faults)
    from_ms, to_ms = read_span(said.moment_from, said.moment_to, faults)
    given = [name for name in ("version", "document", "rule") if getattr(said, name) is not None]
    if not faults.shape and len(given) != 1:
        faults.meaning.setdefault("version", "give one of version, document and rule")
    faults.raise_any()
    return said, from_ms, to_ms


def read_span(since: Any, until: Any, faults: Faults) -> tuple[int, int]:
    """Read the moments of a body, from and before, as Unix milliseconds; all of time where none is given."""
    from_ms = _moment("from", since, 0, faults)
    to_ms = _moment("to", until, END_MS, faults)
    if from_ms >= to_ms:
        faults.meaning.setdefault("from", "must be before `to`")
    return from_ms, to_ms


def _moment(name: str, value: Any, default: int, faults: Faults) -> int:
    if value is None:
        return default
    moment_ms = read_moment(value)
    if moment_ms is None:
        faults.shape.setdefault(name, "must be Unix seconds or ISO 8601")
        return default
    return moment_ms


def sampler(share: float) -> Callable[[str], bool]:
    """Return what picks a share of events by their ids, the same ones each time."""
    if share >= 1:
        return lambda _event: True
    bound = int(share * _PARTS)

    def is_in(event: str) -> bool:
        digest = hashlib.blake2b(event.encode(), digest_size=8).digest()
        return int.from_bytes(digest) % _PARTS < bound

    return is_in
