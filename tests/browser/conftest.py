"""A real Chromium, a shop page of another origin than the service's, and a session for each test."""

import json
import os
import shutil
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, TypeVar

import pytest

from tests.live import Caller, Service

#: Machines that test are busy, and stop for a while now and then; nothing here depends on how fast they are.
PATIENCE_S = 100

Found = TypeVar("Found")

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
    collectTimeoutMs: {patience_ms},
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
            self.answer(SCRIPT.format(api=api, patience_ms=PATIENCE_S * 1000), "text/javascript")
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


@pytest.fixture(scope="module")
def tenant(service: Service) -> Caller:
    """The tenant of all shops; each page has a session of its own."""
    return Caller(service, *service.new_tenant("Shop"))


@pytest.fixture
def shop(tenant: Caller) -> Iterator[Shop]:
    """A shop with a page of its own origin."""
    shop = Shop(tenant)
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

    def wait(self, condition: str) -> None:
        """Wait until an expression is true. The driver's own way is forbidden by the policy of the page."""
        self.until(lambda: self.page.evaluate(condition), condition)

    def until(self, found: Callable[[], Found], what: str) -> Found:
        """Wait until something is there, and return it."""
        deadline = time.monotonic() + PATIENCE_S
        while not (there := found()):
            assert time.monotonic() < deadline, what
            self.page.wait_for_timeout(20)
        return there

    def collect_with_device(self, category: str = "OTHER") -> Any:
        """Ask until the device is known: the browser finds it out in its own time, after the start."""

        def asked() -> Any:
            decision = self.collect(category)
            return decision if "fingerprint" in self.sent("/collect")[-1]["sdkSignals"] else None

        return self.until(asked, "a fingerprint")

    def type(self, field: str, text: str, pauses_ms: Sequence[float], held_ms: Sequence[float]) -> None:
        """Type with times of one's own: the events carry them, whatever the machine is busy with.

        `pauses_ms` are those from key to key, `held_ms` how long each is held; both begin again at their end.
        """
        self.page.locator(field).focus()
        line = self.page.context.new_cdp_session(self.page)
        at_s = time.time()
        events = []
        for number, letter in enumerate(text):
            key = {
                "key": letter,
                "code": f"Key{letter.upper()}",
                "windowsVirtualKeyCode": ord(letter.upper()),
            }
            up_s = at_s + held_ms[number % len(held_ms)] / 1000
            events += [(at_s, {"type": "keyDown", "text": letter, **key}), (up_s, {"type": "keyUp", **key})]
            at_s += pauses_ms[number % len(pauses_ms)] / 1000
        for each_s, event in sorted(events, key=lambda event: event[0]):
            line.send("Input.dispatchKeyEvent", {**event, "timestamp": each_s})
        line.detach()

    def type_like_a_person(self, field: str, text: str) -> None:
        """Unevenly, and with keys that overlap now and then."""
        self.type(field, text, (143, 88, 201, 120, 610, 97, 260, 76), (92, 104, 81, 110, 73))

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
        context.set_default_timeout(PATIENCE_S * 1000)
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
