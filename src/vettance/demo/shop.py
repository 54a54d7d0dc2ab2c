"""A shop of one page on a port of its own, as a customer of the service would build one."""

import contextlib
import http.client
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Final

from vettance.demo.demo_client import DemoTarget
from vettance.websdk.pages import STATIC, newest_version

_FILES: Final = {
    "/": ("index.html", "text/html; charset=utf-8"),
    "/shop.js": ("shop.js", "text/javascript; charset=utf-8"),
    "/shop.css": ("shop.css", "text/css; charset=utf-8"),
}
_FOLDER: Final = Path(__file__).parent / "shop_static"
_TOKENS: Final = "/api/v1/websdk/tokens"
_TIMEOUT_S: Final = 10


class _Shop(ThreadingHTTPServer):
    """Serves the page and mints tokens: the API key stays on this side."""

    daemon_threads = True

    def __init__(self, port: int, target: DemoTarget) -> None:
        super().__init__(("127.0.0.1", port), _Handler)
        self.target = target
        self.origin = f"http://127.0.0.1:{self.server_address[1]}"


class _Handler(BaseHTTPRequestHandler):
    server: _Shop
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        """Answer the page and what it is made of."""
        path, _, query = self.path.partition("?")
        if path not in _FILES:
            self._answer(404, b"", "text/plain")
            return
        name, kind = _FILES[path]
        self._answer(
            200, _page(name, self.server.target.base_url, "core" if query == "core" else "full"), kind
        )

    def do_POST(self) -> None:
        """Mint a token for the page that asks. A page of another origin gets none."""
        self.rfile.read(int(self.headers.get("content-length") or 0))
        if self.path != "/token" or self.headers.get("origin") != self.server.origin:
            self._answer(404, b"", "text/plain")
            return
        target = self.server.target
        line = http.client.HTTPConnection(target.host, target.port, timeout=_TIMEOUT_S)
        try:
            body = json.dumps({"origin": self.server.origin, "flow": "demo"})
            headers = {"x-api-key": target.api_key, "content-type": "application/json"}
            line.request("POST", _TOKENS, body, headers)
            answer = line.getresponse()
            self._answer(answer.status, answer.read(), "application/json")
        except OSError:
            self._answer(502, b"{}", "application/json")
        finally:
            line.close()

    def _answer(self, status: int, content: bytes, kind: str) -> None:
        api = self.server.target.base_url
        self.send_response(status)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(content)))
        self.send_header("cache-control", "no-store")
        self.send_header(
            "content-security-policy",
            f"default-src 'none'; script-src 'self' {api}; connect-src 'self' {api}; style-src 'self'; "
            "img-src data:; require-trusted-types-for 'script'; trusted-types 'none'; "
            "base-uri 'none'; form-action 'self'",
        )
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_arguments: object) -> None:
        """Say nothing: the terminal belongs to the demo."""


def _page(name: str, api: str, build: str) -> bytes:
    """Return a file of the page; the script of the SDK is named with its version and its hash."""
    script = f"vettance-{build}.js"
    text = (_FOLDER / name).read_text("utf-8")
    version = newest_version()
    manifest = json.loads((STATIC / version / "manifest.json").read_text("utf-8"))
    integrity = manifest["files"][script]["integrity"]
    words = {"{api}": api, "{version}": version, "{script}": script, "{integrity}": integrity}
    for word, value in words.items():
        text = text.replace(word, value)
    return text.encode()


@contextlib.contextmanager
def open_shop(target: DemoTarget, port: int = 0) -> Iterator[str]:
    """Keep the shop open until the block ends; gives its address."""
    shop = _Shop(port, target)
    thread = threading.Thread(target=shop.serve_forever, daemon=True)
    thread.start()
    try:
        yield shop.origin
    finally:
        shop.shutdown()
        shop.server_close()
        thread.join()
