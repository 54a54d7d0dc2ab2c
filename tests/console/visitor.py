"""A person at the console: signs in by its forms, keeps the cookie, follows links and sends forms."""

import gzip
import html
import http.client
import os
import re
from typing import Any
from urllib.parse import urlencode, urlsplit

from tests.forked_commands import run_command
from tests.live import Service

PASSWORD = "correct horse battery staple"


class PageAnswer:
    """What a page answered: `status`, `headers` (lower-case names) and `text`."""

    def __init__(self, status: int, headers: dict[str, str], body: bytes) -> None:
        self.status = status
        self.headers = headers
        self.size = len(body)
        content = gzip.decompress(body) if headers.get("content-encoding") == "gzip" else body
        self.text = content.decode()

    @property
    def location(self) -> str:
        return self.headers["location"]

    @property
    def csrf(self) -> str:
        """The token of the page's forms."""
        found = re.search(r'name="csrf" value="([^"]+)"', self.text)
        assert found is not None, self.text
        return found[1]

    @property
    def words(self) -> str:
        """The text of the page without its tags, blanks made one."""
        return " ".join(html.unescape(re.sub(r"<[^>]*>", " ", self.text.replace("<wbr>", ""))).split())


class Visitor:
    """A browser without scripts."""

    def __init__(self, base_url: str) -> None:
        self.base_url = base_url
        self.cookies: dict[str, str] = {}

    def get(self, path: str, **headers: str) -> PageAnswer:
        return self._send("GET", path, None, headers)

    def head(self, path: str) -> PageAnswer:
        return self._send("HEAD", path, None, {})

    def post(self, path: str, fields: dict[str, Any], origin: str | None = "", **headers: str) -> PageAnswer:
        """Send a form; `origin` is ours when left out, none when None."""
        if origin is not None:
            headers["Origin"] = origin or self.base_url
        headers["Content-Type"] = "application/x-www-form-urlencoded"
        return self._send("POST", path, urlencode(fields, doseq=True).encode(), headers)

    def follow(self, answer: PageAnswer) -> PageAnswer:
        """Open the page that an answer leads to."""
        assert answer.status == 303, answer.words
        return self.get(answer.location)

    def submit(self, page: str, path: str, **fields: Any) -> PageAnswer:
        """Open a page and send a form that stands on it."""
        return self.post(path, {"csrf": self.get(page).csrf, **fields})

    def sign_in(self, email: str, password: str = PASSWORD) -> PageAnswer:
        return self.post("/console/sign-in", {"email": email, "password": password})

    def _send(self, method: str, path: str, body: bytes | None, headers: dict[str, str]) -> PageAnswer:
        where = urlsplit(self.base_url)
        assert where.hostname is not None
        connection = http.client.HTTPConnection(where.hostname, where.port, timeout=20)
        sent = {"Accept-Encoding": "gzip", **{name.replace("_", "-"): text for name, text in headers.items()}}
        if self.cookies:
            sent["Cookie"] = "; ".join(f"{name}={value}" for name, value in self.cookies.items())
        try:
            connection.request(method, path, body, sent)
            answer = connection.getresponse()
            for cookie in answer.headers.get_all("set-cookie") or ():
                name, _, value = cookie.partition(";")[0].partition("=")
                self.cookies.pop(name, None)
                if value:
                    self.cookies[name] = value
            found = {name.lower(): value for name, value in answer.getheaders()}
            return PageAnswer(answer.status, found, answer.read())
        finally:
            connection.close()


def make_user(service: Service, email: str, tenant_id: str, *roles: str) -> None:
    """Make a user with the password of all tests."""
    chosen = [part for role in roles for part in ("--role", role)]
    words = ("user", "create", email, "--tenant", tenant_id, *chosen, "--password-stdin")
    made = run_command(
        (*words, "--data", str(service.data)), {**os.environ, **service.env}, timeout_s=60, typed=PASSWORD
    )
    assert made.returncode == 0, made.stderr


def visitor_of(service: Service, tenant_id: str, *roles: str) -> Visitor:
    """Return somebody with these roles, who has just signed in."""
    email = f"{'-'.join(roles)}@{tenant_id[-12:]}.example"
    make_user(service, email, tenant_id, *roles)
    visitor = Visitor(service.base_url)
    assert visitor.sign_in(email).status == 303
    # A tenant that a command has just made is known to the service within a second.
    service.wait_for(lambda: visitor.get("/console/profile").status != 404)
    return visitor
