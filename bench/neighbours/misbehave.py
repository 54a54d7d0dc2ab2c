"""Twelve ways in which a tenant may misbehave, each for some seconds, against a running service.

    python bench misbehave WAY --url http://127.0.0.1:8080 --key vtc_test_… --seconds 10

It prints, as JSON, how often each status was answered (0: the connection broke). `python bench neighbour`
runs it beside a tenant that behaves. Every way is bounded in connections and time, and
goes to this machine only.
"""

import argparse
import asyncio
import contextlib
import itertools
import json
import random
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import uvloop

from vettance.demo.demo_client import ClientFault, Connection, DemoTarget, request
from vettance.tenants.tenant import make_key

EVALUATE = "/api/v1/decisions/evaluate"
LINES = 8  # Connections of those who flood.
STALLED = 169  # What held up everybody's bodies before they were shared out.
SLOW = 50
BODY_BYTES = 1 << 20
PAUSE_S = 0.2  # Between the events of those whose webhooks do the harm.


class Attack(NamedTuple):
    """The service and the key it is asked with, how long, and how often each status was answered."""

    target: DemoTarget
    seconds: float
    statuses: Counter[str]

    @property
    def key(self) -> str:
        """The API key."""
        return self.target.api_key

    async def line(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Open a connection that need not behave."""
        return await asyncio.open_connection(self.target.host, self.target.port)


Next = Iterator[bytes]


async def flood(attack: Attack, make: Callable[[int], Next], lines: int = LINES, pause_s: float = 0) -> None:
    """Send requests over numbered connections, each after the answer to the one before."""
    await asyncio.gather(*(_flood_line(attack, make(number), pause_s) for number in range(lines)))


async def _flood_line(attack: Attack, asks: Next, pause_s: float) -> None:
    while True:
        try:
            connection = await Connection.open(attack.target)
            try:
                while True:
                    answer = await connection.ask(next(asks))
                    attack.statuses[str(answer.status)] += 1
                    await asyncio.sleep(pause_s)
            finally:
                connection.close()
        except ClientFault:
            attack.statuses["0"] += 1
            await asyncio.sleep(0.05)


def _posts(attack: Attack, path: str, bodies: Iterator[Any]) -> Next:
    return (request("POST", path, attack.key, body) for body in bodies)


def _event(number: int, **more: Any) -> dict[str, Any]:
    return {
        "eventName": "payment.attempt",
        "eventCategory": "TRANSACTION",
        "customer": {"externalId": f"bad_{number}"},
        "metadata": {"amount": 10.0, "currency": "EUR"},
        **more,
    }


async def big_bodies(attack: Attack) -> None:
    """Events of 30 KB that are taken, and bodies of 1 MiB that are not."""

    def bodies(line: int) -> Iterator[Any]:
        for number in itertools.count():
            taken = _event(line, custom_fields={f"field_{n}": "x" * 70 for n in range(350)})
            yield taken if number % 2 else _event(line, note="x" * (BODY_BYTES - 300))

    await flood(attack, lambda line: _posts(attack, EVALUATE, bodies(line)))


async def deep_bodies(attack: Attack) -> None:
    """Bodies of 1 MiB that are nothing but brackets, side by side and inside each other."""
    flat = b'{"eventName":"x","a":[' + b"[]," * (BODY_BYTES // 3 - 20) + b"[]]}"
    deep = b'{"eventName":"x","a":' + b"[" * (BODY_BYTES // 2 - 50) + b"]" * (BODY_BYTES // 2 - 50) + b"}"
    await flood(attack, lambda _line: _posts(attack, EVALUATE, itertools.cycle((flat, deep))))


async def stalled_bodies(attack: Attack) -> None:
    """Bodies of 1 MiB of which most arrives, and then nothing more."""

    async def stall() -> None:
        whole = request("POST", EVALUATE, attack.key, b"{" + b" " * (BODY_BYTES - 2) + b"}")
        while True:
            with contextlib.suppress(OSError):
                reader, writer = await attack.line()
                writer.write(whole[:-100_000])
                head = await reader.read(1024)
                attack.statuses[head[9:12].decode() or "0"] += 1
                writer.close()
            await asyncio.sleep(5)

    await asyncio.gather(*(stall() for _ in range(STALLED)))


async def slow_readers(attack: Attack) -> None:
    """Ask for the largest pages, one after the other, and read nothing."""

    async def ask() -> None:
        page = request("GET", "/api/v1/events?limit=100", attack.key)
        while True:
            with contextlib.suppress(OSError):
                _, writer = await attack.line()
                writer.transport.pause_reading()  # type: ignore[attr-defined]
                writer.write(page * 20)
                attack.statuses["unread"] += 20
                await asyncio.sleep(5)
                writer.close()
            await asyncio.sleep(0.1)

    events = _posts(attack, EVALUATE, (_event(n, custom_fields={"x": "y" * 30_000}) for n in range(100)))
    with contextlib.suppress(StopIteration, RuntimeError):
        await _flood_line(attack, events, 0)
    await asyncio.gather(*(ask() for _ in range(SLOW)))


async def steady_events(attack: Attack) -> None:
    """Events at a modest rate; the subscriptions that were made before do the harm."""
    bodies = (_event(number) for number in itertools.count())
    await flood(attack, lambda _line: _posts(attack, EVALUATE, bodies), lines=1, pause_s=PAUSE_S)


async def sessions(attack: Attack) -> None:
    """Sessions of browsers, each with batches of signals as large as they may be."""

    async def browse(line: int) -> None:
        connection = await Connection.open(attack.target)
        for number in itertools.count():
            session = f"s-{line}-{number}"
            asked = request("POST", "/api/v1/websdk/tokens", attack.key, {"sdkSessionId": session})
            answer = await connection.ask(asked)
            attack.statuses[str(answer.status)] += 1
            if answer.status != 201:
                await asyncio.sleep(0.05)
                continue
            bearer = f"Authorization: Bearer {json.loads(answer.body)['token']}"
            for batch in range(4):
                signals = {f"signal_{n}": "x" * 60 for n in range(400)}
                sent = {
                    "schemaVersion": "websdk.v1",
                    "batchId": f"{batch}",
                    "sdkSessionId": session,
                    "sentAt": int(time.time() * 1000),
                    "signals": signals,
                }
                answer = await connection.ask(request("POST", "/api/v1/websdk/signals", "", sent, [bearer]))
                attack.statuses[str(answer.status)] += 1

    async def again(line: int) -> None:
        while True:
            with contextlib.suppress(ClientFault):
                await browse(line)
            await asyncio.sleep(0.05)

    await asyncio.gather(*(again(line) for line in range(LINES)))


async def keys(attack: Attack) -> None:
    """Keys that are well-formed and were never issued."""

    def guesses(_line: int) -> Next:
        while True:
            yield request("POST", EVALUATE, make_key(live=False), _event(1))

    await flood(attack, guesses)


async def list_entries(attack: Attack) -> None:
    """Entries on lists, without end."""

    def entries(line: int) -> Iterator[Any]:
        for number in itertools.count():
            yield {"type": "DEVICE", "value": f"bad-{line}-{number}", "listType": "block"}

    await flood(attack, lambda line: _posts(attack, "/api/v1/lists", entries(line)))


async def async_jobs(attack: Attack) -> None:
    """Events to be decided later, without end."""
    bodies = (_event(number) for number in itertools.count())
    await flood(attack, lambda _line: _posts(attack, "/api/v1/events/async", bodies))


async def screenings(attack: Attack) -> None:
    """Names to be screened, without end."""
    rng = random.Random(1)
    words = ["Mohammed", "Kim", "Ivanov", "Trading", "Abdul", "Rahman", "Li", "Wang", "Petrov", "Bank"]
    bodies = (
        {"inputName": " ".join(rng.choices(words, k=3)), "externalId": f"bad-{number}"}
        for number in itertools.count()
    )
    await flood(attack, lambda _line: _posts(attack, "/api/v1/aml/screen", bodies))


#: Every way by its name. Those of webhooks differ in what subscriptions `neighbour.py` makes before.
WAYS: dict[str, Callable[[Attack], Awaitable[None]]] = {
    "big-bodies": big_bodies,
    "deep-bodies": deep_bodies,
    "stalled-bodies": stalled_bodies,
    "slow-readers": slow_readers,
    "hostile-names": steady_events,
    "dead-receivers": steady_events,
    "subscriptions": steady_events,
    "sessions": sessions,
    "keys": keys,
    "list-entries": list_entries,
    "async-jobs": async_jobs,
    "screenings": screenings,
}


async def misbehave(way: str, attack: Attack) -> None:
    """Do so until the time is over."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(attack.seconds):
            await WAYS[way](attack)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("way", choices=WAYS)
    parser.add_argument("--url", required=True, help="the address of the service")
    parser.add_argument("--key", required=True, help="an API key of the tenant that misbehaves")
    parser.add_argument("--seconds", type=float, default=10)
    options = parser.parse_args()
    where = urlsplit(options.url)
    if where.hostname != "127.0.0.1":
        raise SystemExit("only a service on 127.0.0.1 is attacked")
    attack = Attack(DemoTarget(where.hostname, where.port or 80, options.key), options.seconds, Counter())
    uvloop.run(misbehave(options.way, attack))
    print(json.dumps(attack.statuses))
