"""How long every page of the console keeps the thread that decides, over a store of five million decisions.

    python bench console_pieces [--decisions 5000000] [--folder bench-data/history] [--rounds 10] [--json]

The store is that of `console_pages`. The service runs in this process, and its pages are asked without
sockets. *Processor* is the time of all threads,
*thread* that of the event loop alone, and *piece* the longest time of it without a pause: a decision that
arrives meanwhile waits so long. All three are processor time, so that what else runs takes no part; the
median of the rounds counts.
"""

import argparse
import asyncio
import contextvars
import json
import statistics
import time
from asyncio import events
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlencode

from bench.fixtures.processes import machine, say
from bench.store.console_addresses import addresses
from bench.store.console_rows import EMAIL, PASSWORD, prepare
from vettance.demo.demo_client import HttpAnswer
from vettance.server.lifecycle import running
from vettance.settings.settings import read_settings
from vettance.wire.payload import encode

PIECE_MS_MAX = 10.0
_ANSWER_S_MAX = 300.0
_HOST = b"127.0.0.1"


class PageCost(NamedTuple):
    """What one look at a page took of the processors, in milliseconds."""

    processor_ms: float
    thread_ms: float
    piece_ms: float


class LoopPieces:
    """Measures what a page's tasks take of the thread of the event loop, piece by piece."""

    def __init__(self) -> None:
        self._page: contextvars.ContextVar[list[float] | None] = contextvars.ContextVar("page", default=None)
        self._run = events.Handle._run
        events.Handle._run = self._measured()  # type: ignore[method-assign,assignment]

    def _measured(self) -> Callable[[events.Handle], None]:
        run, page = self._run, self._page

        def measured(handle: events.Handle) -> None:
            # Tasks that a page begins have a copy of its context.
            pieces = handle._context.get(page)  # type: ignore[attr-defined]
            if pieces is None:
                run(handle)
                return
            began_s = time.thread_time()
            run(handle)
            pieces.append(time.thread_time() - began_s)

        return measured

    async def look(self, look: Callable[[], Awaitable[Any]]) -> PageCost:
        """Measure one look."""
        pieces: list[float] = []
        self._page.set(pieces)
        before_s = time.process_time()
        await asyncio.create_task(_awaited(look))
        took_s = time.process_time() - before_s
        self._page.set(None)
        return PageCost(took_s * 1000, sum(pieces) * 1000, max(pieces) * 1000)


async def _awaited(look: Callable[[], Awaitable[Any]]) -> None:
    await look()


class InnerVisitor:
    """Somebody at the console and a caller of the API, without sockets, in another thread than the loop's."""

    def __init__(self, app: Any, loop: asyncio.AbstractEventLoop, api_key: str) -> None:
        self._app = app
        self._loop = loop
        self._key = api_key
        self._cookie = b""

    def sign_in(self, email: str, password: str) -> None:
        """Sign in. Raises `ConnectionError` when the service refuses."""
        form = urlencode({"email": email, "password": password}).encode()
        headers = [(b"content-type", b"application/x-www-form-urlencoded"), (b"origin", b"http://" + _HOST)]
        status, sent, _ = self._wait(self._send("POST", "/console/sign-in", headers, form))
        if status != 303:
            raise ConnectionError(f"the console answered {status} to the form of signing in")
        self._cookie = dict(sent)[b"set-cookie"].partition(b";")[0]

    def ask(self, method: str, path: str, body: Any = None) -> HttpAnswer:
        """Ask the API with the key."""
        content = encode(body) if body is not None else b""
        headers = [(b"x-api-key", self._key.encode()), (b"content-type", b"application/json")]
        headers += [(b"content-length", b"%d" % len(content))] if content else []
        status, _, answer = self._wait(self._send(method, path, headers, content))
        return HttpAnswer(status, b"", answer)

    async def look(self, path: str) -> None:
        """Look at a page, on the loop. Raises `ConnectionError` when it is not shown."""
        headers = [(b"cookie", self._cookie), (b"accept-encoding", b"gzip")]
        status, _, _ = await self._send("GET", path, headers, b"")
        if status not in (200, 303, 404):
            raise ConnectionError(f"{path} answered {status}")

    def _wait(self, sent: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(sent, self._loop).result(_ANSWER_S_MAX)

    async def _send(
        self, method: str, path: str, headers: list[tuple[bytes, bytes]], body: bytes
    ) -> tuple[int, list[tuple[bytes, bytes]], bytes]:
        raw_path, _, query = path.partition("?")
        scope = {
            "type": "http",
            "method": method,
            "scheme": "http",
            "raw_path": raw_path.encode(),
            "query_string": query.encode(),
            "headers": [(b"host", _HOST), *headers],
            "client": ("127.0.0.1", 1),
            "extensions": {},
        }
        answers: list[dict[str, Any]] = []

        async def receive() -> dict[str, Any]:
            return {"type": "http.request", "body": body, "more_body": False}

        async def send(message: dict[str, Any]) -> None:
            answers.append(message)

        await self._app(scope, receive, send)
        content = b"".join(one.get("body", b"") for one in answers)
        return answers[0]["status"], answers[0]["headers"], content


async def measure(folder: Path, key: str, rounds: int) -> dict[str, dict[str, float]]:
    """Run the service and look at all pages in rounds, after one look that is not counted."""
    pieces, loop = LoopPieces(), asyncio.get_running_loop()
    async with running(read_settings(data=str(folder))) as service:
        visitor = InnerVisitor(service.app, loop, key)
        await asyncio.to_thread(visitor.sign_in, EMAIL, PASSWORD)
        walked = await asyncio.to_thread(addresses, visitor)
        found: dict[str, list[PageCost]] = {name: [] for name in walked}
        for number in range(rounds + 1):
            for name, path in walked.items():
                cost = await pieces.look(lambda path=path: visitor.look(path))  # type: ignore[misc]
                if number:
                    found[name].append(cost)
            say(f"round {number} of {rounds}")
    return {name: _medians(costs) for name, costs in found.items()}


def _medians(costs: list[PageCost]) -> dict[str, float]:
    processor, thread, piece = (round(statistics.median(part), 1) for part in zip(*costs, strict=True))
    return {"processorMs": processor, "threadMs": thread, "pieceMs": piece}


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        prog="bench console_pieces", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--decisions", type=int, default=5_000_000)
    parser.add_argument("--folder", type=Path, default=Path("bench-data/history"))
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    _, key = prepare(given.folder, given.decisions)
    say("starting; the first time the whole log is read")
    pages = asyncio.run(measure(given.folder, key, given.rounds))
    if given.json:
        print(json.dumps({"machine": machine(), "decisions": given.decisions, "pages": pages}))
        return
    about = machine()
    print(f"{about['cpu']}, {about['cores']} cores, load {about['load']}, {given.decisions:,} decisions\n")
    print("| page | processor | thread | piece |\n|---|---:|---:|---:|")
    for name, one in pages.items():
        piece = f"**{one['pieceMs']}**" if one["pieceMs"] > PIECE_MS_MAX else one["pieceMs"]
        print(f"| {name} | {one['processorMs']} | {one['threadMs']} | {piece} |")


if __name__ == "__main__":
    main()
