"""Somebody at the console: signs in by its form, keeps the cookie and looks at pages, one after the other."""

import re
from typing import Any
from urllib.parse import urlencode

from bench.client.blocking import Caller
from vettance.demo.demo_client import DemoTarget, HttpAnswer, request

#: A page over a cold store may take long, which is what is to be seen.
_ANSWER_S_MAX = 120.0
_COOKIE = re.compile(rb"set-cookie: ([^;\r]+)", re.IGNORECASE)


class PageVisitor:
    """A browser without scripts, over one kept connection."""

    def __init__(self, target: DemoTarget) -> None:
        self._caller = Caller(target.host, target.port, _ANSWER_S_MAX)
        self._target = target
        self._cookie = ""

    def sign_in(self, email: str, password: str) -> None:
        """Sign in. Raises `ConnectionError` when the service refuses."""
        answer = self.post("/console/sign-in", email=email, password=password)
        found = _COOKIE.search(answer.head)
        if answer.status != 303 or found is None:
            raise ConnectionError(f"the console answered {answer.status} to the form of signing in")
        self._cookie = found[1].decode()

    def get(self, path: str) -> HttpAnswer:
        """Look at a page."""
        return self._caller.ask(request("GET", path, "", None, self._headers(), self._target.host))

    def post(self, path: str, **fields: str) -> HttpAnswer:
        """Send a form."""
        origin = f"Origin: http://{self._target.host}"
        headers = [*self._headers(), origin, "Content-Type: application/x-www-form-urlencoded"]
        content = urlencode(fields).encode()
        lines = [f"POST {path} HTTP/1.1", f"Host: {self._target.host}", *headers]
        lines.append(f"Content-Length: {len(content)}")
        return self._caller.ask("\r\n".join(lines).encode() + b"\r\n\r\n" + content)

    def ask(self, method: str, path: str, body: Any = None) -> HttpAnswer:
        """Ask the API with the key of the target."""
        return self._caller.ask(request(method, path, self._target.api_key, body))

    def close(self) -> None:
        """Close the connection."""
        self._caller.close()

    def _headers(self) -> list[str]:
        sent = ["Accept-Encoding: gzip"]
        return [*sent, f"Cookie: {self._cookie}"] if self._cookie else sent
