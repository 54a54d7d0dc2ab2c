"""What tenants send about webhooks, read and checked: every fault is found, not only the first."""

from typing import Annotated, ClassVar, Final

import msgspec

from vettance.outbox import MessageType
from vettance.webhooks.receiver_address import URL_CHARS_MAX, AddressForbidden, read_target
from vettance.webhooks.webhook import DeliveryState
from vettance.wire.body import how, one_of, read_body
from vettance.wire.payload import JSON, Faults, Wire, read_moment

_PHASES: Final = ("prepare", "promote")
_LATEST_MS: Final = 2**53

Span = tuple[int, int]


def _readable(moment: str | float) -> str | float | None:
    return moment if read_moment(moment) is not None else None


_MOMENT: Final = how(check=_readable, message="must be an ISO 8601 time or Unix seconds")


class SubscriptionBody(Wire, frozen=True):
    """Where to tell of what."""

    EXAMPLE: ClassVar[JSON] = {
        "url": "https://hooks.example.com/vettance",
        "eventTypes": ["EVENT_RISK_EVALUATED"],
    }

    url: Annotated[str, msgspec.Meta(max_length=URL_CHARS_MAX, description="An https URL.")]
    event_types: Annotated[list[MessageType], msgspec.Meta(min_length=1)]


class RotationBody(Wire, frozen=True):
    """`prepare` makes a new secret, `promote` puts it in force."""

    EXAMPLE: ClassVar[JSON] = {"phase": "prepare"}

    phase: Annotated[str, msgspec.Meta(pattern=f"^({'|'.join(_PHASES)})$"), one_of(_PHASES)]


class ReplayBody(Wire, frozen=True):
    """Which deliveries to send again; without a state, all that did not arrive."""

    EXAMPLE: ClassVar[JSON] = {"since": "2026-01-31T12:00:00Z"}

    since: Annotated[
        str | float | None, msgspec.Meta(description="Made at or after: ISO 8601 or Unix seconds."), _MOMENT
    ] = None
    until: Annotated[
        str | float | None, msgspec.Meta(description="Made before: ISO 8601 or Unix seconds."), _MOMENT
    ] = None
    state: DeliveryState | None = None


def read_subscription(body: JSON, *, unsafe: bool) -> tuple[str, tuple[MessageType, ...]]:
    """Read (url, event types) of a new subscription. Raises `Invalid` (400) or `Unprocessable` (422)."""
    faults = Faults()
    asked = read_body(body, SubscriptionBody, faults)
    if asked.url:
        try:
            read_target(asked.url, unsafe=unsafe)
        except AddressForbidden as forbidden:
            faults.meaning["url"] = str(forbidden)
    faults.raise_any()
    return asked.url, tuple(dict.fromkeys(asked.event_types))


def read_phase(body: JSON) -> str:
    """Read which step of a rotation is asked for. Raises `Invalid` (400)."""
    faults = Faults()
    asked = read_body(body, RotationBody, faults)
    faults.raise_any()
    return asked.phase


def read_replay(body: JSON) -> tuple[Span, DeliveryState | None]:
    """Read (span in Unix milliseconds, state) of a replay in bulk. Raises `Invalid` or `Unprocessable`."""
    faults = Faults()
    asked = read_body(body, ReplayBody, faults)
    since = read_moment(asked.since) if asked.since is not None else None
    until = read_moment(asked.until) if asked.until is not None else None
    span = since if since is not None else 0, until if until is not None else _LATEST_MS
    if span[0] > span[1]:
        faults.shape = {"since": "must not be later than `until`", **faults.shape}
    faults.raise_any()
    return span, asked.state
