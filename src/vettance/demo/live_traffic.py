"""Traffic that goes on while somebody looks at the demo: an event a second, and labels a while later."""

import asyncio
import contextlib
import threading
from collections import deque
from collections.abc import Iterator
from random import Random
from typing import Any, Final

import msgspec

from vettance.demo.delayed_labels import JudgedDecision, label_request
from vettance.demo.demo_client import ClientFault, Connection, DemoTarget, post
from vettance.demo.drive import PATH
from vettance.demo.feed import Sample
from vettance.wire.payload import encode

#: Seconds between two events on average.
_EVERY_S: Final = 1.0
#: Decisions that wait for their label: at most a few minutes of them.
_UNTOLD: Final = 30
_decode = msgspec.json.Decoder().decode


@contextlib.contextmanager
def live_traffic(samples: Iterator[Sample], to: DemoTarget) -> Iterator[None]:
    """Send samples as if they happened now, one after the other, until the block ends."""
    ended = threading.Event()
    thread = threading.Thread(target=_run, args=(samples, to, ended), daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def _run(samples: Iterator[Sample], to: DemoTarget, ended: threading.Event) -> None:
    with contextlib.suppress(ClientFault):  # The service has ended, and the demo says so itself.
        asyncio.run(_send(samples, to, ended))


async def _send(samples: Iterator[Sample], to: DemoTarget, ended: threading.Event) -> None:
    rng = Random()  # noqa: S311 - pauses, not secrets.
    untold: deque[JudgedDecision] = deque()
    connection = await Connection.open(to)
    try:
        for sample in samples:
            if await asyncio.to_thread(ended.wait, rng.expovariate(1 / _EVERY_S)):
                return
            answer = await connection.ask(post(to, PATH, _now(sample.body)))
            decided: dict[str, Any] = _decode(answer.body)
            if answer.status == 200 and (sample.fraud or decided["decision"] != "approve"):
                untold.append(JudgedDecision(decided["correlationIds"]["eventId"], sample.fraud))
            if len(untold) > _UNTOLD:
                path, body = label_request(untold.popleft())
                await connection.ask(post(to, path, encode(body)))
    finally:
        connection.close()


def _now(body: bytes) -> bytes:
    """Return the body of an event without its moment: it happens when it arrives."""
    event: dict[str, Any] = _decode(body)
    event["metadata"].pop("occurredAt", None)
    return encode(event)
