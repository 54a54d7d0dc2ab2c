"""The example shops of the clients, each a real process, driven over HTTP as a browser drives it."""

import http.cookiejar
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path
from typing import Any

from tests.clients.three_clients import TYPESCRIPT
from tests.live import Answer, Caller, Service

PYTHON = Path(__file__).parents[2] / "clients" / "python"
PASSWORD = "correct horse"
PEOPLE = ("anna@example.com", "review@example.com", "deny@example.com")
START_S_MAX = 60


def rule(name: str, when: str, score: int, event: dict[str, Any]) -> dict[str, Any]:
    tests = [{"name": "fires", "event": event, "fires": True}]
    tests.append({"name": "does not", "event": {"eventName": "other"}, "fires": False})
    said = {"name": name, "reason": name.upper(), "explanation": f"{name}."}
    return {"id": name, "when": when, "score": score, "tests": tests, **said}


def login_rule(word: str, score: int) -> dict[str, Any]:
    event = {"eventName": "user.login", "customer": {"email": f"{word}@example.com"}}
    when = f'event_name == "user.login" and customer.email == "{word}@example.com"'
    return rule(word, f"{when} and metadata.outcome == 'success'", score, event | {"metadata": SUCCESS})


SUCCESS = {"outcome": "success"}
PAYMENT = {"eventName": "payment.attempt", "metadata": {"amount": 2000}}
RULES = {
    "name": "shop",
    "rules": [
        login_rule("review", 70),
        login_rule("deny", 95),
        rule("large", "metadata.amount > 100", 70, PAYMENT),
        rule("huge", "metadata.amount > 1000", 30, PAYMENT),
    ],
}


def shop_tenant(service: Service, folder: Path, name: str) -> Caller:
    """Make a tenant whose rules decide by the e-mail of a login and the amount of a payment."""
    file = folder / f"{name}.yaml"
    file.write_text(json.dumps(RULES))
    tenant_id, key = service.new_tenant(name)
    service.cli("rules", "push", str(file), "--tenant", tenant_id, "--yes", "--json")
    caller = Caller(service, tenant_id, key)
    probe = {"eventName": "p", "metadata": {"amount": 150}}
    service.wait_for(
        lambda: caller.post("/api/v1/decisions/evaluate", probe).json["decision"] == "review", seconds=10
    )
    return caller


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


class FrameworkShop:
    """A running example: `django`, `fastapi` or `express`."""

    def __init__(self, framework: str, folder: Path, *, port: int | None = None) -> None:
        self.framework = framework
        self.folder = folder
        self.port = port or free_port()
        self.origin = f"http://127.0.0.1:{self.port}"
        self.said: list[str] = []
        self.process: subprocess.Popen[str] | None = None

    def start(self, risk_url: str, key: str, **settings: str) -> None:
        """Start it, with its people, against a service."""
        env = {
            **os.environ,
            "PYTHONPATH": str(PYTHON / "src"),
            "PYTHONUNBUFFERED": "1",
            "VETTANCE_URL": risk_url,
            "VETTANCE_KEY": key,
            "SHOP_ORIGIN": self.origin,
            "SHOP_PORT": str(self.port),
            "SHOP_DATABASE": str(self.folder / "shop.sqlite3"),
            "SHOP_PEOPLE": ",".join(f"{one}={PASSWORD}" for one in PEOPLE),
            "SHOP_DEADLINE_MS": "10000",  # Machines of tests are slow.
            **settings,
        }
        if self.framework == "django" and not Path(env["SHOP_DATABASE"]).exists():
            self._fill_django(env)
        self.process = subprocess.Popen(
            self._command(),
            cwd=self._place(),
            env=env,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        until = time.monotonic() + START_S_MAX
        while True:
            try:
                self.visit().get("/vettance/start.js")
                return
            except OSError:
                assert self.process.poll() is None, "".join(self.said)
                assert time.monotonic() < until, "".join(self.said)
                time.sleep(0.1)

    def stop(self) -> None:
        if self.process is not None:
            self.process.send_signal(signal.SIGKILL)
            self.process.wait(20)
            self._reader.join(10)
            assert self.process.stdout is not None
            self.process.stdout.close()

    def visit(self) -> "Visit":
        return Visit(self)

    def code(self) -> str:
        """The last code that the shop mailed."""
        until = time.monotonic() + 20
        while not (codes := re.findall(r"code (\d{6})", "".join(self.said))):
            assert time.monotonic() < until, self.said
            time.sleep(0.05)
        return str(codes[-1])

    def _place(self) -> Path:
        return (TYPESCRIPT if self.framework == "express" else PYTHON) / "examples" / self.framework

    def _command(self) -> list[str]:
        if self.framework == "django":
            return [sys.executable, "manage.py", "runserver", "--noreload", f"127.0.0.1:{self.port}"]
        if self.framework == "express":
            return ["node", "shop.js"]
        return [sys.executable, "-m", "uvicorn", "main:app", "--port", str(self.port)]

    def _fill_django(self, env: dict[str, str]) -> None:
        make = "from django.contrib.auth.models import User\n" + "".join(
            f"User.objects.create_user({one!r}, {one!r}, {PASSWORD!r})\n" for one in PEOPLE
        )
        for arguments in (("migrate", "--run-syncdb"), ("shell", "-v", "0", "-c", make)):
            done = subprocess.run(
                [sys.executable, "manage.py", *arguments],
                cwd=self._place(),
                env=env,
                capture_output=True,
                text=True,
                check=False,
                timeout=100,
            )
            assert done.returncode == 0, done.stderr

    def _read(self) -> None:
        assert self.process is not None
        assert self.process.stdout is not None
        self.said.extend(self.process.stdout)


class Visit:
    """A visitor with cookies, and the headers of a proxy if wanted."""

    def __init__(self, shop: FrameworkShop) -> None:
        self.shop = shop
        self.cookies = http.cookiejar.CookieJar()
        self.headers: dict[str, str] = {"User-Agent": "Mozilla/5.0 (X11; Linux x86_64) Chrome/140.0"}
        self._opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(self.cookies))

    def get(self, path: str) -> Answer:
        return self.send("GET", path)

    def send(
        self, method: str, path: str, body: bytes | None = None, headers: dict[str, str] | None = None
    ) -> Answer:
        request = urllib.request.Request(
            self.shop.origin + path, body, {**self.headers, **(headers or {})}, method=method
        )
        try:
            with self._opener.open(request, timeout=30) as answer:
                lower = {name.lower(): value for name, value in answer.headers.items()}
                return Answer(answer.status, {**lower, "url": answer.url}, answer.read())
        except urllib.error.HTTPError as error:
            with error:
                lower = {name.lower(): value for name, value in error.headers.items()}
                return Answer(error.code, {**lower, "url": error.url}, error.read())

    def post(self, path: str, **fields: str) -> Answer:
        """Send a form, as a browser does."""
        csrf = {one.name: one.value for one in self.cookies}.get("csrftoken")
        if csrf:
            fields["csrfmiddlewaretoken"] = csrf
        return self.send(
            "POST",
            path,
            urllib.parse.urlencode(fields).encode(),
            {"Content-Type": "application/x-www-form-urlencoded", "Origin": self.shop.origin},
        )

    def log_in(self, email: str, password: str = PASSWORD) -> str:
        """Sign in; returns `in`, `code` or `refused`."""
        if self.shop.framework == "django":
            self.get("/login/")
            answer = self.post("/login/", username=email, password=password)
            if answer.headers["url"].endswith("/second-factor/"):
                return "code"
            return "refused" if answer.headers["url"].endswith("/login/") else "in"
        answer = self.post("/login", email=email, password=password)
        return {202: "code", 401: "refused"}.get(answer.status, "in" if answer.status == 200 else "failed")

    def give_code(self, code: str) -> bool:
        """Give the code of the second factor; returns whether the visitor is in."""
        path = "/second-factor/" if self.shop.framework == "django" else "/second-factor"
        return self.post(path, code=code).status == 200

    def pay(self, amount: float) -> int:
        path = "/pay/" if self.shop.framework == "django" else "/pay"
        return self.post(path, amount=str(amount)).status

    def orders(self) -> list[tuple[float, str]]:
        if self.shop.framework == "django":
            text = self.get("/").body.decode()
            return [(float(a), state) for a, state in re.findall(r"<li>([\d.]+) (\w+)</li>", text)]
        return [(one["amount"], one["state"]) for one in self.get("/orders").json]

    def token(self, origin: str | None) -> Answer:
        headers = {"Origin": origin} if origin else {}
        return self.send("POST", "/vettance/token", b"", headers)
