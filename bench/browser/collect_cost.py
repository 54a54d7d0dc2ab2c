"""What `/collect` costs against `/decisions/evaluate` for the same event, in CPU time per request.

    python bench collect_cost --requests 6000

Both go through the whole edge (credential, limits, parse, decide, durable write), 32 at a time, in rounds
that take turns, so that a machine busy with other things is busy for both. The writer is another process
and has the same to write for both.
"""

import argparse
import asyncio
import contextlib
import json
import math
import os
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

import uvloop

from vettance.demo.launch import QUOTA, THROTTLE, command
from vettance.server.lifecycle import running
from vettance.settings.settings import Settings

ABREAST = 32
ROUNDS = 30
SIGNALS = {
    "sdk": "core",
    "interactionCount": 61,
    "mouseMoves": 214,
    "keystrokeIntervals": [80.5 + number * 37 % 190 for number in range(40)],
    "keystrokeGaps": [10.5 + number * 37 % 90 for number in range(40)],
    "keystrokeDwells": [70.5 + number * 13 % 60 for number in range(40)],
    "pressDwells": [96, 112.1, 88.7],
    "mouseEntropy": 0.65,
    "mouse": {"strokes": 3, "turn": 0.135, "deviation": 0.101, "speedVariation": 0.84, "speedSpread": 1.4},
    "fields": {"filled": 2, "typed": 2},
    "timezoneOffset": -60,
    "languages": ["de-DE"],
}
PAYLOAD = {"amount": 20, "currency": "EUR", "merchantId": "m-1"}


class Caller:
    """Calls an ASGI application as a server would."""

    def __init__(self, app: Any, path: str, headers: list[tuple[bytes, bytes]], body: dict[str, Any]) -> None:
        self.app = app
        self.content = json.dumps(body).encode()
        head = [
            (b"content-type", b"application/json"),
            (b"content-length", b"%d" % len(self.content)),
            *headers,
        ]
        self.scope = {
            "type": "http",
            "method": "POST",
            "path": path,
            "raw_path": path.encode(),
            "query_string": b"",
            "headers": head,
            "client": ("127.0.0.1", 1),
        }

    async def call(self, expected: int = 200) -> bytes:
        said: list[Any] = []

        async def receive() -> dict[str, Any]:
            return {"type": "http.request", "body": self.content, "more_body": False}

        async def send(message: Any) -> None:
            said.append(message)

        await self.app(dict(self.scope), receive, send)
        assert said[0]["status"] == expected, said
        body: bytes = said[1]["body"]
        return body

    async def round(self, count: int) -> float:
        """Return the CPU microseconds of this process for each of `count` calls, a multiple of `ABREAST`."""
        began = time.process_time()
        for _ in range(count // ABREAST):
            await asyncio.gather(*(self.call() for _ in range(ABREAST)))
        return (time.process_time() - began) / count * 1e6


async def measure(folder: Path, api_key: str, requests: int) -> None:
    key = (b"x-api-key", api_key.encode())
    async with running(Settings(data=folder)) as service:
        mint = Caller(service.edge, "/api/v1/websdk/tokens", [key], {"origin": "https://shop.example"})
        token = json.loads(await mint.call(201))
        bearer = [
            (b"authorization", b"Bearer " + token["token"].encode()),
            (b"origin", b"https://shop.example"),
        ]
        event = {
            "eventName": "payment.attempt",
            "eventCategory": "TRANSACTION",
            "sessionId": token["sdkSessionId"],
            "customer": {"externalId": "c-1"},
            "device": {"externalId": "d-1"},
            "payload": PAYLOAD,
            "sdkSignals": SIGNALS,
        }
        question = {
            "sessionId": token["sdkSessionId"],
            "category": "TRANSACTION",
            "customerId": "c-1",
            "deviceId": "d-1",
            "payload": {"eventName": "payment.attempt", **PAYLOAD},
            "sdkSignals": SIGNALS,
        }
        evaluate = Caller(service.edge, "/api/v1/decisions/evaluate", [key], event)
        collect = Caller(service.edge, "/api/v1/collect", bearer, question)
        each = math.ceil(requests / ROUNDS / ABREAST) * ABREAST
        took: dict[str, list[float]] = {"evaluate": [], "collect": []}
        for _ in range(ROUNDS + 1):
            took["evaluate"].append(await evaluate.round(each))
            took["collect"].append(await collect.round(each))
    medians = {name: statistics.median(values[1:]) for name, values in took.items()}
    for name, microseconds in medians.items():
        print(f"{name:9} {microseconds:7.1f} µs of CPU per request")
    # Rounds that follow each other find the machine alike, so they are compared by pairs.
    ratios = [more / less for less, more in zip(took["evaluate"], took["collect"], strict=True)][1:]
    print(f"collect costs {statistics.median(ratios) - 1:+.1%}, load {os.getloadavg()[0]:.1f}")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--requests", type=int, default=6000)
    arguments = parser.parse_args()
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        tenant = command(folder, "tenant", "create", "Bench")["tenantId"]
        command(folder, "tenant", "set", tenant, "--throttle", str(THROTTLE), "--quota", str(QUOTA))
        api_key = command(folder, "key", "create", "--tenant", tenant)["apiKey"]
        uvloop.run(measure(folder, api_key, arguments.requests))
