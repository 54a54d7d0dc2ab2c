"""Signing in by OpenID Connect, with a real provider (`oidc-provider`) in a process of its own."""

import http.cookiejar
import json
import re
import shutil
import socket
import subprocess
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.console.visitor import PASSWORD, PageAnswer, Visitor, make_user
from tests.live import Service, place_store, started
from vettance.people.role import Role
from vettance.settings.oidc_settings import ROLE_WORDS, read_oidc

FOLDER = Path(__file__).parent / "oidc_provider"
START, RETURN = "/console/sign-in/provider", "/console/sign-in/return"
PEOPLE = {
    "ann": {"email": "Ann@Example.com", "email_verified": True, "name": "Ann", "groups": ["fraud", "other"]},
    "bo": {"email": "bo@example.com", "email_verified": True, "groups": ["other"]},
    "cy": {"email": "cy@example.com", "email_verified": False, "groups": ["fraud"]},
    "di": {"email": "di@example.com", "email_verified": True, "groups": ["heads", "fraud"]},
}

needs_node = pytest.mark.skipif(
    shutil.which("node") is None or not (FOLDER / "node_modules").exists(),
    reason="the provider is not installed: `make oidc-provider` (needs Node 20 with npm)",
)


class Stay(urllib.request.HTTPRedirectHandler):
    """Shows each redirection instead of following it."""

    def redirect_request(self, *_: Any) -> None:
        return None


class Browser:
    """Goes through the pages of the provider as somebody of its people."""

    def __init__(self, name: str) -> None:
        self.name = name
        cookies = urllib.request.HTTPCookieProcessor(http.cookiejar.CookieJar())
        self._opener = urllib.request.build_opener(Stay, cookies)

    def _open(self, url: str, form: dict[str, str] | None = None) -> Any:
        body = urllib.parse.urlencode(form).encode() if form is not None else None
        try:
            return self._opener.open(url, body, timeout=20)
        except urllib.error.HTTPError as answer:
            return answer

    def prove(self, url: str, return_to: str) -> str:
        """Sign in at the provider, agree, and return the path it sends back to."""
        form: dict[str, str] | None = None
        for _ in range(12):
            with self._open(url, form) as answer:
                text, form = answer.read().decode(), None
                if 300 <= answer.status < 400:
                    url = urllib.parse.urljoin(url, answer.headers["location"])
                    if url.startswith(return_to):
                        return url[url.index("/console/") :]
                    continue
            url = urllib.parse.urljoin(url, re.findall(r'action="([^"]+)"', text)[0])
            prompt = re.findall(r'name="prompt" value="([^"]+)"', text)[0]
            form = {"prompt": prompt, "login": self.name, "password": "any"}
        raise AssertionError("the provider does not come to an end")


class Place:
    """A service with its provider."""

    def __init__(self, service: Service, other: str) -> None:
        self.service = service
        self.other = other

    def begin(self, visitor: Visitor, target: str = "/console/queue") -> str:
        answer = visitor.get(f"{START}?next={urllib.parse.quote(target)}")
        assert answer.status == 303, answer.words
        return answer.location

    def enter(self, name: str, visitor: Visitor | None = None) -> tuple[Visitor, PageAnswer]:
        visitor = visitor or Visitor(self.service.base_url)
        back = Browser(name).prove(self.begin(visitor), self.service.base_url + RETURN)
        return visitor, visitor.get(back)

    def user(self, email: str) -> Any:
        users = self.service.cli("user", "list", "--json")
        return next((one for one in users if one["email"] == email), None)


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    port, service = free_port(), Service(tmp_path_factory.mktemp("oidc"))
    service.env = place_store()
    service.tenant_id, service.api_key = service.new_tenant("First")
    other = service.cli("tenant", "create", "Other", "--json")["tenantId"]
    first = service.tenant_id
    service.env |= {
        "VETTANCE_OIDC_ISSUER": f"http://127.0.0.1:{port}",
        "VETTANCE_OIDC_CLIENT_ID": "vettance",
        "VETTANCE_OIDC_CLIENT_SECRET": "a secret of tests",
        "VETTANCE_OIDC_SCOPES": "openid email profile groups",
        "VETTANCE_OIDC_ROLE_CLAIM": "groups",
        "VETTANCE_OIDC_ROLES": f"fraud={first}:analyst, heads={first}:lead+admin",
    }
    service.start()
    command = ["node", "server.mjs", str(port), service.base_url + RETURN, json.dumps(PEOPLE)]
    provider = subprocess.Popen(
        command, cwd=FOLDER, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    try:
        assert provider.stdout is not None
        assert provider.stdout.readline() == "listens\n"
        yield Place(service, other)
    finally:
        provider.kill()
        provider.wait(10)
        provider.stdout.close()
        service.stop()


@needs_node
def test_claims_make_a_user_with_their_roles(place: Place) -> None:
    visitor, answer = place.enter("ann")
    assert (answer.status, answer.location) == (303, "/console/queue")
    assert "vettance_oidc" not in visitor.cookies
    assert visitor.get("/console/queue").status == 200
    assert visitor.get("/console/settings").status == 403
    user = place.user("ann@example.com")
    assert [one["roles"] for one in user["memberships"]] == [["analyst"]]
    entries = [json.loads(line) for line in place.service.cli("audit", "export").stdout.splitlines()]
    signed = [one for one in entries if one["action"] == "sign in" and one["actor"] == "ann@example.com"]
    assert signed[-1]["after"]["method"] == "oidc"


@needs_node
def test_claims_take_roles_away_and_know_the_person_by_subject(place: Place) -> None:
    di, _ = place.enter("di")
    assert di.get("/console/settings").status == 200
    email, first = "di@example.com", place.service.tenant_id
    place.service.cli("user", "set", email, "--tenant", first, "--role", "auditor")
    place.service.cli("user", "set", email, "--tenant", place.other, "--role", "viewer")
    again, _ = place.enter("di")
    assert again.get("/console/queue").status == 200
    roles = {one["tenantId"]: set(one["roles"]) for one in place.user(email)["memberships"]}
    assert roles == {first: {"analyst", "lead", "admin"}, place.other: {"viewer"}}
    assert place.service.cli("audit", "verify").returncode == 0


@needs_node
@pytest.mark.parametrize("name", ["bo", "cy"])
def test_nobody_without_a_role_or_a_verified_e_mail_gets_in(place: Place, name: str) -> None:
    visitor, answer = place.enter(name)
    assert answer.status == 401
    assert "has not let you in" in answer.words
    assert visitor.get("/console/").status == 303
    assert place.user(f"{name}@example.com") is None


@needs_node
def test_a_disabled_user_stays_out(place: Place) -> None:
    place.enter("ann")
    place.service.cli("user", "set", "ann@example.com", "--disabled", "on")
    assert place.enter("ann")[1].status == 401
    place.service.cli("user", "set", "ann@example.com", "--disabled", "off")


@needs_node
def test_an_answer_for_another_browser_or_twice_is_refused(place: Place) -> None:
    mine, other = Visitor(place.service.base_url), Visitor(place.service.base_url)
    back = Browser("ann").prove(place.begin(mine), place.service.base_url + RETURN)
    place.begin(other)
    assert other.get(back).status == 401
    for wrong in ("state=x", "state=%C3%A9"):
        assert mine.get(back.replace("state=", wrong)).status == 401
        place.begin(mine)
    place.begin(mine)
    assert mine.get(back).status == 401, "an answer to an earlier question"
    fresh = Visitor(place.service.base_url)
    back = Browser("ann").prove(place.begin(fresh), place.service.base_url + RETURN)
    kept = dict(fresh.cookies)
    assert fresh.get(back).status == 303
    fresh.cookies = kept
    assert fresh.get(back).status == 401, "a code works once"
    fresh.cookies = {name: value[:-2] + "00" for name, value in kept.items()}
    assert fresh.get(back).status == 401


@needs_node
def test_the_question_has_a_challenge_and_leads_to_no_strange_page(place: Place) -> None:
    visitor = Visitor(place.service.base_url)
    assert "Sign in with your organisation" in visitor.get("/console/sign-in").words
    asked = urllib.parse.parse_qs(urllib.parse.urlsplit(place.begin(visitor, "//evil.example")).query)
    assert asked["code_challenge_method"] == ["S256"]
    assert asked["response_type"] == ["code"]
    assert {"nonce", "state", "code_challenge"} <= asked.keys()
    back = Browser("ann").prove(place.begin(visitor, "//evil.example"), place.service.base_url + RETURN)
    assert visitor.get(back).location == "/console/"


def test_without_a_provider_there_is_no_such_page(service: Service) -> None:
    stranger = Visitor(service.base_url)
    assert stranger.get(START).status == stranger.get(RETURN).status == 404
    assert "organisation" not in stranger.get("/console/sign-in").words


def test_a_password_still_works_where_the_provider_is_away(tmp_path: Path) -> None:
    service = started(tmp_path, VETTANCE_OIDC_ISSUER="http://127.0.0.1:9", VETTANCE_OIDC_CLIENT_ID="vettance")
    try:
        make_user(service, "ann@example.com", service.tenant_id, "viewer")
        visitor = Visitor(service.base_url)
        answer = visitor.get(START)
        assert (answer.status, "cannot be reached" in answer.words) == (503, True)
        assert visitor.sign_in("ann@example.com", PASSWORD).status == 303
    finally:
        service.stop()


@pytest.mark.parametrize(
    "wrong",
    [
        {"VETTANCE_OIDC_ISSUER": "http://accounts.example.com", "VETTANCE_OIDC_CLIENT_ID": "x"},
        {"VETTANCE_OIDC_ISSUER": "https://accounts.example.com"},
        {"VETTANCE_OIDC_SCOPES": "email"},
        {"VETTANCE_OIDC_ROLES": "fraud=ten_1:analyst"},
        {"VETTANCE_OIDC_ROLES": f"fraud=ten_{'1' * 32}:king"},
    ],
)
def test_settings_that_cannot_be_meant_are_refused(wrong: dict[str, str]) -> None:
    right = {"VETTANCE_OIDC_ISSUER": "https://accounts.example.com", "VETTANCE_OIDC_CLIENT_ID": "x"}
    with pytest.raises(ValueError, match="VETTANCE_OIDC"):
        read_oidc(wrong if "VETTANCE_OIDC_ISSUER" in wrong else right | wrong)


@pytest.mark.parametrize("name", ["CLIENT_ID", "CLIENT_SECRET", "ROLES"])
def test_settings_of_a_provider_that_is_not_named_are_refused(name: str) -> None:
    with pytest.raises(ValueError, match=f"VETTANCE_OIDC_{name} needs VETTANCE_OIDC_ISSUER as well"):
        read_oidc({f"VETTANCE_OIDC_{name}": f"fraud=ten_{'1' * 32}:analyst", "VETTANCE_OIDC_ISSUER": ""})
    assert read_oidc({"VETTANCE_OIDC_SCOPES": "openid", "VETTANCE_OIDC_ROLE_CLAIM": "roles"}) is None


def test_the_roles_of_settings_are_those_of_people() -> None:
    assert {role.value for role in Role} == ROLE_WORDS
