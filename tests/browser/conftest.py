"""A real Chromium, a shop page of another origin than the service's, and a session for each test."""

import json
import os
import shutil
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from live import Caller, Service

NEEDED = "Chromium is not here: `apt-get install chromium`, or say where with CHROMIUM=…"

PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Shop</title>
<link rel="icon" href="data:,">
<style>input,button{{display:block;margin:12px 40px;width:240px;height:30px}}</style>
<script src="{api}/sdk/v1/vettance-{build}.js" crossorigin="anonymous"></script>
<script src="/page.js"></script></head>
<body><form id="form"><input id="user" name="user" autocomplete="off">
<input id="secret" name="secret" type="password" autocomplete="off">
<input id="note" name="note"><button id="go" type="submit">Go</button></form>
<p id="end" style="height:600px">end</p></body></html>"""

SCRIPT = """
window.said = {{ errors: [], queued: [], violations: [] }}
document.addEventListener('securitypolicyviolation', (event) => said.violations.push(event.violatedDirective))
window.make = (options = {{}}) => {{
  const sdk = Vettance.createVettance({{
    endpoint: '{api}',
    consent: true,
    flushEveryMs: 300,
    getToken: async () => (await fetch('/token', {{ method: 'POST' }})).json(),
    ...options,
  }})
  sdk.on('error', (event) => said.errors.push(event))
  sdk.on('queued', (event) => said.queued.push(event.batchId))
  return sdk
}}
addEventListener('DOMContentLoaded', () => {{
  document.getElementById('form').addEventListener('submit', (event) => event.preventDefault())
  window.sdk = make(window.sdkOptions)
  sdk.start()
}})
"""


def chromium() -> str | None:
    """Where Chromium is, or None."""
    named = os.environ.get("CHROMIUM", "/usr/bin/chromium")
    return named if Path(named).exists() else shutil.which("chromium")


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Say loudly what was left out."""
    if chromium() is None:
        terminalreporter.section("The browser tests were left out", red=True, bold=True)
        terminalreporter.write_line(NEEDED)


class Shop(ThreadingHTTPServer):
    """The tenant's own server: a page under a strict policy, and tokens minted with the API key."""

    daemon_threads = True

    def __init__(self, tenant: Caller) -> None:
        super().__init__(("127.0.0.1", 0), ShopHandler)
        self.tenant = tenant
        self.origin = f"http://127.0.0.1:{self.server_address[1]}"
        self.claims: dict[str, Any] = {}
        self.minted: list[dict[str, Any]] = []

    @property
    def session(self) -> str:
        return self.minted[-1]["sdkSessionId"]

    def mint(self) -> bytes:
        claims = {"origin": self.origin, **self.claims}
        answer = self.tenant.post("/api/v1/websdk/tokens", claims)
        self.minted.append(answer.json)
        return answer.body


class ShopHandler(BaseHTTPRequestHandler):
    server: Shop

    def do_GET(self) -> None:
        path, _, query = self.path.partition("?")
        api = self.server.tenant.service.base_url
        build = "full" if "full" in query else "core"
        if path == "/page.js":
            self.answer(SCRIPT.format(api=api), "text/javascript")
        elif path == "/plain":
            self.answer("<!doctype html><title>Elsewhere</title>", "text/html")
        else:
            self.answer(PAGE.format(api=api, build=build), "text/html")

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers.get("content-length") or 0))
        self.answer(self.server.mint().decode(), "application/json")

    def answer(self, text: str, kind: str) -> None:
        api = self.server.tenant.service.base_url
        content = text.encode()
        self.send_response(200)
        self.send_header("content-type", f"{kind}; charset=utf-8")
        self.send_header("content-length", str(len(content)))
        self.send_header(
            "content-security-policy",
            f"default-src 'none'; script-src 'self' {api}; connect-src 'self' {api}; img-src data:; "
            "style-src 'unsafe-inline'; require-trusted-types-for 'script'; trusted-types 'none'",
        )
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """Headless Chromium as Debian packages it; where there is none, its tests are left out loudly."""
    found = chromium()
    if found is None:
        pytest.skip(NEEDED)
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        launched = playwright.chromium.launch(
            executable_path=found,
            args=["--no-sandbox", "--disable-blink-features=AutomationControlled", "--disable-dev-shm-usage"],
        )
        yield launched
        launched.close()


@pytest.fixture
def shop(service: Service) -> Iterator[Shop]:
    """A shop of a tenant of its own."""
    shop = Shop(Caller(service, *service.new_tenant("Shop")))
    thread = threading.Thread(target=shop.serve_forever, daemon=True)
    thread.start()
    yield shop
    shop.shutdown()
    shop.server_close()
    thread.join()


class Visit:
    """A tab on the shop's page, and everything that left it."""

    def __init__(self, page: Any, shop: Shop) -> None:
        self.page = page
        self.shop = shop
        self.requests: list[Any] = []
        page.on("request", lambda request: self.requests.append(request))  # noqa: PLW0108

    def sent(self, path: str) -> list[dict[str, Any]]:
        """The bodies sent to a path of the service, oldest first."""
        return [
            json.loads(each.post_data)
            for each in self.requests
            if each.url.endswith(path) and each.method == "POST" and each.post_data
        ]

    def collect(self, category: str = "AUTHENTICATION", **payload: Any) -> Any:
        question = {"category": category, "payload": payload}
        return self.page.evaluate("question => sdk.collect(question)", question)

    def wait(self, condition: str, seconds: float = 10) -> None:
        """Wait until an expression is true. The driver's own way is forbidden by the policy of the page."""
        deadline = time.monotonic() + seconds
        while not self.page.evaluate(condition):
            assert time.monotonic() < deadline, condition
            self.page.wait_for_timeout(20)

    def evaluated(self) -> dict[str, Any]:
        """What the tenant's server is told of this session."""
        event = {"eventName": "page.viewed", "sessionId": self.shop.session}
        answer = self.shop.tenant.post("/api/v1/decisions/evaluate", event).json
        record = self.shop.tenant.get(f"/api/v1/decisions/{answer['correlationIds']['eventId']}").json
        return record["inputs"].get("sessionSignals", {})


@pytest.fixture
def visit(browser: Any, shop: Shop) -> Iterator[Callable[..., Visit]]:
    """Open the shop's page; `options` are given to the SDK, `build` is `core` or `full`."""
    contexts = []

    def open_page(*, build: str = "core", before: str = "", **options: Any) -> Visit:
        context = browser.new_context(locale="de-DE", timezone_id="Europe/Berlin")
        contexts.append(context)
        page = context.new_page()
        visit = Visit(page, shop)
        page.add_init_script(f"window.sdkOptions = {json.dumps(options)};{before}")
        page.goto(f"{shop.origin}/?{build}")
        visit.wait("window.sdk !== undefined")
        return visit

    yield open_page
    for context in contexts:
        context.close()
