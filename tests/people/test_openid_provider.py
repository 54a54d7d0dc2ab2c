"""What the answers of a provider prove: a far end that lies in each way is not believed."""

import asyncio
import base64
import json
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from vettance.people.openid_provider import OpenIdProvider, ProviderFailed
from vettance.settings.oidc_settings import OidcSettings

KEY = rsa.generate_private_key(public_exponent=65537, key_size=2048)
STRANGE = rsa.generate_private_key(public_exponent=65537, key_size=2048)
PUBLIC = KEY.public_key().public_bytes(
    serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
)
STATE, RETURN = "a state", "http://127.0.0.1/console/sign-in/return"


class FarEnd:
    """Answers as a provider does; `said` are the answers by path."""

    def __init__(self) -> None:
        said: dict[str, Any] = {}
        self.said = said

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                answer = said.get(self.path)
                content = json.dumps(answer).encode()
                self.send_response(200 if answer is not None else 404)
                self.send_header("content-length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            def do_POST(self) -> None:
                self.rfile.read(int(self.headers["content-length"]))
                self.do_GET()

            def log_message(self, *_: Any) -> None: ...

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        jwk = json.loads(jwt.algorithms.RSAAlgorithm.to_jwk(KEY.public_key()))
        said["/jwks"] = {"keys": [{**jwk, "kid": "one", "use": "sig"}]}
        said["/.well-known/openid-configuration"] = {
            "issuer": self.url,
            "authorization_endpoint": f"{self.url}/authorize",
            "token_endpoint": f"{self.url}/token",
            "jwks_uri": f"{self.url}/jwks",
            "userinfo_endpoint": f"{self.url}/me",
        }
        settings = OidcSettings(issuer=self.url, client_id="vettance", client_secret="s")
        self.provider = OpenIdProvider(settings, b"s" * 32)

    def claims(self, **changes: Any) -> dict[str, Any]:
        now = int(time.time())
        nonce = self.provider._derived("nonce", STATE)
        found = {
            "iss": self.url,
            "sub": "ann",
            "aud": "vettance",
            "iat": now,
            "exp": now + 60,
            "nonce": nonce,
        }
        return {name: value for name, value in {**found, **changes}.items() if value is not None}

    def answer(self, token: str, **more: Any) -> None:
        self.said["/token"] = {"id_token": token, "access_token": "a", **more}

    def identify(self, issuer: str = "") -> Any:
        return asyncio.run(self.provider.identify("code", STATE, RETURN, issuer))


@pytest.fixture
def far() -> Iterator[FarEnd]:
    end = FarEnd()
    yield end
    end.server.shutdown()
    end.server.server_close()


def signed(claims: dict[str, Any], key: Any = KEY, algorithm: str = "RS256", kid: str = "one") -> str:
    return jwt.encode(claims, key, algorithm, headers={"kid": kid})


def by_public_key(claims: dict[str, Any]) -> str:
    """Sign with what everybody knows, as if it were a secret that both sides share."""
    head, body = (
        base64.urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=")
        for part in ({"alg": "HS256", "kid": "one", "typ": "JWT"}, claims)
    )
    mac = jwt.algorithms.HMACAlgorithm(jwt.algorithms.HMACAlgorithm.SHA256)
    seal = base64.urlsafe_b64encode(mac.sign(f"{head}.{body}".encode(), PUBLIC)).decode().rstrip("=")
    return f"{head}.{body}.{seal}"


def test_a_right_answer_names_the_person_with_what_userinfo_adds(far: FarEnd) -> None:
    far.answer(signed(far.claims()))
    far.said["/me"] = {"sub": "ann", "email": "Ann@Example.com", "email_verified": True, "roles": ["x", 7]}
    found = far.identify(issuer=far.url)
    assert (found.subject, found.email, found.roles) == ("ann", "ann@example.com", {"x"})


def test_userinfo_of_somebody_else_adds_nothing(far: FarEnd) -> None:
    far.answer(signed(far.claims()))
    far.said["/me"] = {"sub": "bo", "email": "bo@example.com", "email_verified": True}
    assert far.identify().email is None


def test_new_keys_are_asked_for_but_not_again_and_again(far: FarEnd) -> None:
    far.answer(signed(far.claims()))
    far.identify()
    far.answer(signed(far.claims(), STRANGE, kid="two"))
    jwk = json.loads(jwt.algorithms.RSAAlgorithm.to_jwk(STRANGE.public_key()))
    far.said["/jwks"] = {"keys": [{**jwk, "kid": "two"}]}
    with pytest.raises(ProviderFailed):
        far.identify()
    far.provider._keys_at_ms -= 60_001
    assert far.identify().subject == "ann"


@pytest.mark.parametrize(
    "lie",
    [
        lambda far: signed(far.claims(aud="another")),
        lambda far: signed(far.claims(aud=["vettance", "another"])),
        lambda far: signed(far.claims(azp="another")),
        lambda far: signed(far.claims(iss="https://evil.example")),
        lambda far: signed(far.claims(exp=int(time.time()) - 120)),
        lambda far: signed(far.claims(exp=None)),
        lambda far: signed(far.claims(sub=None)),
        lambda far: signed(far.claims(nonce=None)),
        lambda far: signed(far.claims(nonce="of another sign-in")),
        lambda far: signed(far.claims(), STRANGE),
        lambda far: signed(far.claims(), kid="unknown"),
        lambda far: jwt.encode(far.claims(), "", "none", headers={"kid": "one"}),
        lambda far: by_public_key(far.claims()),
        lambda _: "not.a.token",
        lambda _: None,
    ],
)
def test_a_lie_proves_nothing(far: FarEnd, lie: Callable[[FarEnd], Any]) -> None:
    far.answer(lie(far))
    with pytest.raises(ProviderFailed):
        far.identify()


def test_another_issuer_endpoints_elsewhere_or_no_answer_prove_nothing(far: FarEnd) -> None:
    far.answer(signed(far.claims()))
    with pytest.raises(ProviderFailed):
        far.identify(issuer="https://evil.example")
    for changed in ({"issuer": "https://evil.example"}, {"token_endpoint": "http://evil.example/token"}):
        far.provider._metadata = {}
        known = far.said["/.well-known/openid-configuration"]
        far.said["/.well-known/openid-configuration"] = known | changed
        with pytest.raises(ProviderFailed):
            far.identify()
        far.said["/.well-known/openid-configuration"] = known
    far.said.pop("/token")
    with pytest.raises(ProviderFailed):
        far.identify()
