"""The provider of OpenID Connect: where it asks people who they are, and what its answers prove.

The code flow of OpenID Connect Core 1.0 (section 3.1) with PKCE (RFC 7636), OpenID Connect Discovery 1.0, and
the name of the issuer in the answer (RFC 9207). PyJWT verifies signatures.
"""

import asyncio
import base64
import hashlib
import hmac
import http.client
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from typing import Any, Final
from urllib.parse import quote, urlencode

import jwt
import msgspec

from vettance import clock
from vettance.clock import HOUR_MS, MINUTE_MS
from vettance.people.user import read_email
from vettance.settings.oidc_settings import OidcSettings, is_trustworthy

#: RFC 8725, section 3.1: algorithms are ours to choose. A key that both sides know would prove nothing.
_ALGORITHMS: Final = (
    "RS256",
    "RS384",
    "RS512",
    "PS256",
    "PS384",
    "PS512",
    "ES256",
    "ES384",
    "ES512",
    "EdDSA",
)
_ENDPOINTS: Final = ("authorization_endpoint", "token_endpoint", "jwks_uri")
_ANSWER_S_MAX: Final = 10.0
_ANSWER_BYTES_MAX: Final = 1_000_000
#: How long what the provider says of itself is believed; keys are asked for again no more often than this.
_KNOWN_MS: Final = HOUR_MS
_KEYS_AGAIN_MS: Final = MINUTE_MS
#: How far the clocks of the two may differ.
_LEEWAY_S: Final = 60


class ProviderFailed(Exception):
    """The provider cannot be reached, or what it says proves nothing; the message is for the audit log."""


class ProviderIdentity(msgspec.Struct, frozen=True, kw_only=True):
    """Who the provider says somebody is; `email` only where it has verified it."""

    issuer: str
    subject: str
    email: str | None
    name: str
    roles: frozenset[str]


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """Follows nothing: whom the settings name is asked, and nobody else."""

    def redirect_request(self, *_: Any) -> None:
        return None


_OPENER: Final = urllib.request.build_opener(_NoRedirect)


class OpenIdProvider:
    """Makes the addresses that people are sent to, and reads what they come back with."""

    def __init__(
        self, settings: OidcSettings, secret: bytes, now_ms: Callable[[], int] = clock.now_ms
    ) -> None:
        self.settings = settings
        self._secret = secret
        self._now_ms = now_ms
        self._metadata: dict[str, Any] = {}
        self._metadata_at_ms = 0
        self._keys: list[Mapping[str, Any]] = []
        self._keys_at_ms = 0

    async def address(self, state: str, return_to: str) -> str:
        """Return where somebody proves who they are. Raises `ProviderFailed`."""
        metadata = await self._discover()
        challenge = _text(hashlib.sha256(self._derived("verifier", state).encode()).digest())
        asked = {
            "response_type": "code",
            "client_id": self.settings.client_id,
            "redirect_uri": return_to,
            "scope": self.settings.scopes,
            "state": state,
            "nonce": self._derived("nonce", state),
            "code_challenge": challenge,
            "code_challenge_method": "S256",
        }
        endpoint: str = metadata["authorization_endpoint"]
        return f"{endpoint}{'&' if '?' in endpoint else '?'}{urlencode(asked)}"

    async def identify(self, code: str, state: str, return_to: str, issuer: str = "") -> ProviderIdentity:
        """Exchange a code for who somebody is. Raises `ProviderFailed`."""
        if issuer and issuer != self.settings.issuer:
            raise ProviderFailed("the answer is of another issuer")
        metadata = await self._discover()
        given = await self._exchange(metadata, code, state, return_to)
        token = given.get("id_token")
        if not isinstance(token, str):
            raise ProviderFailed("the answer has no ID token")
        claims = await self._verified(metadata, token)
        if not _same(claims.get("nonce"), self._derived("nonce", state)):
            raise ProviderFailed("the ID token is for another sign-in")
        more = await self._more(metadata, given.get("access_token"))
        if more.get("sub") == claims["sub"]:
            claims = {**more, **claims}
        return self._identity(claims)

    async def _exchange(
        self, metadata: Mapping[str, Any], code: str, state: str, return_to: str
    ) -> dict[str, Any]:
        fields = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": return_to,
            "code_verifier": self._derived("verifier", state),
        }
        headers = {}
        client, secret = self.settings.client_id, self.settings.client_secret
        ways = metadata.get("token_endpoint_auth_methods_supported") or ["client_secret_basic"]
        if secret is None:
            fields["client_id"] = client
        elif "client_secret_basic" in ways:
            # RFC 6749, section 2.3.1: both are form-encoded before they are joined.
            pair = f"{quote(client, safe='')}:{quote(secret, safe='')}".encode()
            headers["Authorization"] = f"Basic {base64.b64encode(pair).decode()}"
        else:
            fields |= {"client_id": client, "client_secret": secret}
        return await _ask(metadata["token_endpoint"], urlencode(fields).encode(), headers)

    async def _verified(self, metadata: Mapping[str, Any], token: str) -> dict[str, Any]:
        """Return the claims of an ID token whose signature, issuer, audience and times are right."""
        try:
            head = jwt.get_unverified_header(token)
            offered = metadata.get("id_token_signing_alg_values_supported") or ["RS256"]
            algorithm = head.get("alg")
            if algorithm not in _ALGORITHMS or algorithm not in offered:
                raise ProviderFailed("the ID token is signed in a way that is not accepted")
            claims: dict[str, Any] = jwt.decode(
                token,
                jwt.PyJWK(dict(await self._key(metadata, head.get("kid"))), algorithm=algorithm).key,
                algorithms=[algorithm],
                audience=self.settings.client_id,
                issuer=self.settings.issuer,
                leeway=_LEEWAY_S,
                options={"require": ["iss", "sub", "aud", "exp", "iat"]},
            )
        except (jwt.PyJWTError, ValueError, TypeError, RecursionError) as error:
            raise ProviderFailed(f"the ID token is not valid: {type(error).__name__}") from None
        several = isinstance(claims["aud"], list) and len(claims["aud"]) > 1
        if claims.get("azp", None if several else self.settings.client_id) != self.settings.client_id:
            raise ProviderFailed("the ID token is for another client")
        return claims

    async def _key(self, metadata: Mapping[str, Any], kid: object) -> Mapping[str, Any]:
        """Return the key of an id; keys are asked for again when it is new."""
        for _ in range(2):
            fitting = [one for one in self._keys if kid is None or one.get("kid") == kid]
            if len(fitting) == 1 or (fitting and kid is not None):
                return fitting[0]
            now_ms = self._now_ms()
            if now_ms - self._keys_at_ms < _KEYS_AGAIN_MS:
                break
            answer = await _ask(metadata["jwks_uri"])
            found = answer.get("keys")
            signing = found if isinstance(found, list) else []
            self._keys = [one for one in signing if isinstance(one, dict) and one.get("use") in (None, "sig")]
            self._keys_at_ms = now_ms
        raise ProviderFailed("the ID token is signed by a key that the provider does not publish")

    async def _more(self, metadata: Mapping[str, Any], access: object) -> Mapping[str, Any]:
        """Return what the provider says of somebody beyond the ID token; nothing where it does not."""
        endpoint = metadata.get("userinfo_endpoint")
        if not isinstance(access, str) or not is_trustworthy(endpoint) or not access.isprintable():
            return {}
        try:
            return await _ask(str(endpoint), None, {"Authorization": f"Bearer {access}"})
        except ProviderFailed:
            return {}

    async def _discover(self) -> Mapping[str, Any]:
        now_ms = self._now_ms()
        if not self._metadata or now_ms - self._metadata_at_ms >= _KNOWN_MS:
            url = f"{self.settings.issuer.rstrip('/')}/.well-known/openid-configuration"
            found = await _ask(url)
            if found.get("issuer") != self.settings.issuer:
                raise ProviderFailed("the provider calls itself by another name")
            if not all(is_trustworthy(found.get(name)) for name in _ENDPOINTS):
                raise ProviderFailed("the provider does not name its endpoints")
            self._metadata, self._metadata_at_ms = found, now_ms
        return self._metadata

    def _identity(self, claims: Mapping[str, Any]) -> ProviderIdentity:
        email, name = claims.get("email"), claims.get("name")
        is_verified = claims.get("email_verified") in (True, "true")
        values = claims.get(self.settings.role_claim)
        values = [values] if isinstance(values, str) else values if isinstance(values, list) else []
        return ProviderIdentity(
            issuer=self.settings.issuer,
            subject=str(claims["sub"]),
            email=read_email(email) if isinstance(email, str) and is_verified else None,
            name=name if isinstance(name, str) else "",
            roles=frozenset(one for one in values if isinstance(one, str)),
        )

    def _derived(self, purpose: str, state: str) -> str:
        """Return a secret of one sign-in: it follows from the state, so nothing need be remembered."""
        return _text(hmac.digest(self._secret, f"oidc {purpose} {state}".encode(), "sha256"))


async def _ask(
    url: str, body: bytes | None = None, headers: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """Return the JSON object that an endpoint answers. Raises `ProviderFailed`."""
    return await asyncio.to_thread(_fetch, url, body, headers or {})


def _fetch(url: str, body: bytes | None, headers: Mapping[str, str]) -> dict[str, Any]:
    sent = {"Accept": "application/json", "User-Agent": "vettance", **headers}
    request = urllib.request.Request(url, body, sent)  # noqa: S310  `is_trustworthy` has seen it.
    try:
        with _OPENER.open(request, timeout=_ANSWER_S_MAX) as answer:
            content = answer.read(_ANSWER_BYTES_MAX)
        return msgspec.json.decode(content, type=dict[str, Any])
    except urllib.error.HTTPError as refused:
        refused.close()
        raise ProviderFailed(f"the provider answers {refused.code}") from None
    except (OSError, http.client.HTTPException, msgspec.MsgspecError, ValueError) as error:
        raise ProviderFailed(f"the provider does not answer as it should: {error}") from None


def _same(found: object, expected: str) -> bool:
    return isinstance(found, str) and hmac.compare_digest(found.encode(), expected.encode())


def _text(content: bytes) -> str:
    return base64.urlsafe_b64encode(content).decode().rstrip("=")
