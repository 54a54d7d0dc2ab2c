"""One generated event on its way out: when it happens, its text, and the truth about it."""

from random import Random
from typing import Any, Final, NamedTuple

import msgspec

from vettance.generate.world import EventOrigin, lognormal
from vettance.wire.payload import timestamp

ORDINARY: Final = "ordinary"
_encode = msgspec.json.Encoder().encode


class Happening(NamedTuple):
    """An event whose reference and moment are still to be written, so that streams can be shifted.

    `head` is the JSON of the event without its last two brackets (those of `metadata` and of the event);
    `at_ms` is event time in Unix milliseconds. `case` names the planted attack it belongs to, or is empty.
    """

    at_ms: int
    head: bytes
    customer: str
    scenario: str = ORDINARY
    case: str = ""

    @property
    def fraud(self) -> bool:
        """Whether this event was planted by an attack."""
        return self.scenario != ORDINARY

    def body(self, reference: str, shift_ms: int = 0) -> bytes:
        """Return the JSON body as the service takes it, `shift_ms` later than generated."""
        moment = timestamp(self.at_ms + shift_ms)
        return self.head + f',"reference":"{reference}","occurredAt":"{moment}"}}}}'.encode()


def write_head(
    name: str,
    category: str,
    origin: EventOrigin | None,
    metadata: dict[str, Any],
    *,
    customer: str = "",
    email: str = "",
    session: str = "",
) -> bytes:
    """Write an event up to its last metadata member. `metadata` must not be empty."""
    event: dict[str, Any] = {"eventName": name, "eventCategory": category}
    if customer or email:
        who = {"externalId": customer} if customer else {}
        event["customer"] = who | {"email": email} if email else who
    if origin is not None:
        device = origin.device
        if device is not None:
            event["device"] = {"fingerprint": device.fingerprint, "externalId": device.external_id}
            event["userAgent"] = device.user_agent
            metadata = {"channel": device.channel} | metadata
        event["ip"] = origin.ip
        event["country"] = origin.country
        if origin.coordinates is not None:
            latitude, longitude = origin.coordinates
            event["location"] = {"latitude": latitude, "longitude": longitude}
    if session:
        event["sessionId"] = session
    event["metadata"] = metadata
    return _encode(event)[:-2]


def human_signals(rng: Random) -> dict[str, Any]:
    """Draw what a browser measures of a person: uneven keystrokes, a wandering pointer, a paste at times."""
    pace_ms = lognormal(rng, 140, 0.3)
    return {
        "pasteDetected": rng.random() < 0.25,
        "keystrokeIntervals": [int(lognormal(rng, pace_ms, 0.45)) for _ in range(6 + int(rng.random() * 10))],
        "mouseEntropy": round(rng.betavariate(6, 2.5), 3),
        "webdriver": False,
    }


def machine_signals(rng: Random) -> dict[str, Any]:
    """Draw what a browser measures of a script; the careful ones imitate people in part."""
    if rng.random() < 0.3:
        return human_signals(rng)
    pace_ms = rng.uniform(5, 60)
    return {
        "pasteDetected": rng.random() < 0.6,
        "keystrokeIntervals": [
            max(1, int(rng.normalvariate(pace_ms, 2))) for _ in range(6 + int(rng.random() * 10))
        ],
        "mouseEntropy": round(rng.betavariate(1, 8), 3),
        "webdriver": rng.random() < 0.4,
    }
