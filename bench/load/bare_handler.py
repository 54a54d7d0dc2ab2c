"""The yardstick: a handler that parses a body and answers 600 bytes, served exactly as the service is.

Prints its address, then serves until SIGTERM.
"""

import argparse
import gc
import socket
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
import uvicorn
import uvloop

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
    argparse.ArgumentParser(description=__doc__).parse_args()
    listener = socket.create_server(("127.0.0.1", 0))
    print(f"http://127.0.0.1:{listener.getsockname()[1]}/", flush=True)
    # The same settings of the collector as the service's, so that neither has an advantage.
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 50)
    server = uvicorn.Server(server_config(bare))  # type: ignore[arg-type]
    uvloop.run(server.serve(sockets=[listener]))
