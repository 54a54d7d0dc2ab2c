"""A receiver in a thread, for tests that drive the whole service."""

import http.server
import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


class Sink:
    """A receiver in a thread: keeps (headers, body) of what it gets; answers with `status` and `answer`."""

    def __init__(self) -> None:
        self.got: list[tuple[dict[str, str], bytes]] = []
        self.status = 200
        self.answer = b"taken"
        sink = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                sink.got.append(({name.lower(): value for name, value in self.headers.items()}, body))
                self.send_response(sink.status)
                self.send_header("Content-Length", str(len(sink.answer)))
                self.end_headers()
                self.wfile.write(sink.answer)

            def log_message(self, *_: Any) -> None:
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}/hook?from=vettance"
        threading.Thread(
            target=self.server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True
        ).start()

    def of(self, kind: str) -> list[dict[str, Any]]:
        return [json.loads(body) for headers, body in self.got if headers["x-webhook-event-type"] == kind]

    def wait(self, count: int, seconds: float = 10.0) -> None:
        until = time.monotonic() + seconds
        while len(self.got) < count:
            assert time.monotonic() < until, f"{len(self.got)} of {count} came"
            time.sleep(0.01)


@contextmanager
def sinking() -> Iterator[Sink]:
    """Run a sink until the block ends."""
    running = Sink()
    try:
        yield running
    finally:
        running.server.shutdown()
        running.server.server_close()
