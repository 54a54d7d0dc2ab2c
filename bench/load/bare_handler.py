"""The yardstick: a handler that parses a body and answers 600 bytes, served exactly as the service is.

Prints its address, then serves until SIGTERM.

    python bench bare_handler
"""

import argparse
import contextlib
import gc
import socket
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from typing import Any
from urllib.parse import urlsplit

import msgspec
import uvicorn
import uvloop

from bench import BENCH
from bench.client.blocking import ask_once
from vettance.demo.demo_client import request
from vettance.demo.launch import READY_S_MAX
from vettance.server.web_process import server_config

_decode = msgspec.json.Decoder().decode
_encode = msgspec.json.Encoder().encode
_ANSWER = {"decision": "approve", "riskScore": 0, "reasonCodes": [], "note": "x" * 540}


async def bare(
    _scope: dict[str, Any],
    receive: Callable[[], Awaitable[dict[str, Any]]],
    send: Callable[[dict[str, Any]], Awaitable[None]],
) -> None:
    """Read the body, parse it, answer."""
    message = await receive()
    body = message["body"]
    while message["more_body"]:
        message = await receive()
        body += message["body"]
    _decode(body)
    answer = _encode(_ANSWER)
    length = str(len(answer)).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", length)]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": answer})


def main() -> None:
    argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    ).parse_args()
    listener = socket.create_server(("127.0.0.1", 0))
    print(f"http://127.0.0.1:{listener.getsockname()[1]}/", flush=True)
    # The same settings of the collector as the service's, so that neither has an advantage.
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 50)
    server = uvicorn.Server(server_config(bare))  # type: ignore[arg-type]
    uvloop.run(server.serve(sockets=[listener]))


@contextlib.contextmanager
def bare_server() -> Iterator[str]:
    """Run the bare handler in a process of its own; yields its address."""
    process = subprocess.Popen(
        [sys.executable, str(BENCH), "bare_handler"], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    try:
        address = process.stdout.readline().strip()
        until = time.monotonic() + READY_S_MAX
        while time.monotonic() < until:
            with contextlib.suppress(OSError):
                parts = urlsplit(address)
                ask_once(parts.hostname or "", parts.port or 80, request("POST", "/", "", b"{}"))
                break
            time.sleep(0.05)
        yield address
    finally:
        process.terminate()
        process.wait(15)
        process.stdout.close()
