"""What tenants send about webhooks, read and checked: every fault is found, not only the first."""

from typing import Any, Final

from vettance.outbox import MessageType
from vettance.webhooks.receiver_address import URL_CHARS_MAX, AddressForbidden, read_target
from vettance.webhooks.webhook import DeliveryState
from vettance.wire.payload import JSON, Faults, read_moment

_TYPES: Final = {kind.value: kind for kind in MessageType}
_STATES: Final = {state.value: state for state in DeliveryState}
_PHASES: Final = ("prepare", "promote")
_LATEST_MS: Final = 2**53

Span = tuple[int, int]


def read_subscription(body: JSON, *, unsafe: bool) -> tuple[str, tuple[MessageType, ...]]:
    """Read (url, event types) of a new subscription. Raises `Invalid` (400) or `Unprocessable` (422)."""
    faults = Faults()
    url = _read_url(body.get("url"), faults, unsafe=unsafe)
    types = _read_types(body.get("eventTypes"), faults)
    faults.raise_any()
    return url, types


def _read_url(value: Any, faults: Faults, *, unsafe: bool) -> str:
    if value is None or value == "":
        faults.shape["url"] = "is required"
    elif type(value) is not str:
        faults.shape["url"] = "must be a string"
    elif len(value) > URL_CHARS_MAX:
        faults.shape["url"] = f"must not be longer than {URL_CHARS_MAX} characters"
    else:
        try:
            read_target(value, unsafe=unsafe)
        except AddressForbidden as forbidden:
            faults.meaning["url"] = str(forbidden)
        return value
    return ""


def _read_types(value: Any, faults: Faults) -> tuple[MessageType, ...]:
    if value is None or value == []:
        faults.shape["eventTypes"] = "is required"
        return ()
    if type(value) is not list:
        faults.shape["eventTypes"] = "must be an array"
        return ()
    types: dict[MessageType, None] = {}
    for index, name in enumerate(value):
        known = _TYPES.get(name) if type(name) is str else None
        if known is None:
            faults.shape[f"eventTypes.{index}"] = "must be one of " + ", ".join(_TYPES)
        else:
            types[known] = None
    return tuple(types)


def read_phase(body: JSON) -> str:
    """Read which step of a rotation is asked for. Raises `Invalid` (400)."""
    faults = Faults()
    phase = body.get("phase")
    if phase is None or phase == "":
        faults.shape["phase"] = "is required"
    elif phase not in _PHASES:
        faults.shape["phase"] = "must be one of " + ", ".join(_PHASES)
    faults.raise_any()
    return str(phase)


def read_replay(body: JSON) -> tuple[Span, DeliveryState | None]:
    """Read (span in Unix milliseconds, state) of a replay in bulk. Raises `Invalid` or `Unprocessable`."""
    faults = Faults()
    since = _read_moment(body, "since", faults, 0)
    until = _read_moment(body, "until", faults, _LATEST_MS)
    if since > until:
        faults.shape["since"] = "must not be later than `until`"
    name = body.get("state")
    state = _STATES.get(name) if type(name) is str else None
    if name is not None and state is None:
        faults.shape["state"] = "must be one of " + ", ".join(_STATES)
    faults.raise_any()
    return (since, until), state


def _read_moment(body: JSON, name: str, faults: Faults, default: int) -> int:
    value = body.get(name)
    if value is None or value == "":
        return default
    if type(value) not in (str, int, float):
        faults.shape[name] = "must be a string or a number"
        return default
    moment = read_moment(value)
    if moment is None:
        faults.meaning[name] = "must be an ISO 8601 time or Unix seconds"
        return default
    return moment
