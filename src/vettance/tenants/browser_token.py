"""The token: what lets one page of one origin speak for one session, for a quarter of an hour."""

import functools
import hashlib
import re
import secrets
from typing import Any, Final

import jwt
import msgspec

#: Seconds that a token is good for.
LIFE_S: Final = 900

#: A signing key that was replaced is still believed for this long: its last token has expired by then.
GRACE_MS: Final = (LIFE_S + 60) * 1000

_ISSUER: Final = "vettance"
_AUDIENCE: Final = "vettance.websdk"
_ALGORITHM: Final = "HS256"  # The only one ever read: the token itself has no say (RFC 8725, section 3.1).
_REQUIRED: Final = ("iss", "aud", "sub", "iat", "exp", "jti", "sdkSessionId", "key")
#: No token of ours is longer: four claims of 1,024 characters, six bytes of JSON each, in base64; and a rest.
_TOKEN_CHARS_MAX: Final = 36 * 1024
_KID: Final = re.compile(r"[a-z0-9]{1,32}", re.ASCII)

#: A kilobyte each; the few that are much longer are read anew each time.
REMEMBERED: Final = 2048
_REMEMBERED_CHARS_MAX: Final = 8 * 1024

#: The name of the signing key before the first rotation.
FIRST_KID: Final = "first"


class TokenClaims(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What a token says. `key` is the id of the API key that minted it; moments are Unix seconds."""

    tenant: str
    key: str
    sdk_session: str
    tenant_session: str | None = None
    origin: str | None = None
    flow: str | None = None
    user: str | None = None
    issued_at_s: int
    expires_at_s: int
    id: str


class SigningKey(msgspec.Struct, frozen=True):
    """A signing key by its name. Its tokens are refused from `refused_from_ms` (Unix milliseconds) on."""

    kid: str
    refused_from_ms: int | None = None


class TokenRefused(Exception):
    """A token that is not believed; the message is a sentence that may be answered."""


@functools.lru_cache(maxsize=64)
def signing_key(secret: bytes, kid: str) -> bytes:
    """Derive a signing key of 32 bytes from the secret of the deployment and the key's name.

    Personalised BLAKE2b (RFC 7693, section 2.8 of the BLAKE2 paper), so that no other use of the same secret
    ever gives the same bytes. Every process derives the same key from the name alone, also one that has
    not heard of a rotation yet.
    """
    return hashlib.blake2b(kid.encode(), key=secret, person=b"vettance-websdk", digest_size=32).digest()


def new_kid() -> str:
    """Return a name for a new signing key."""
    return secrets.token_hex(6)


class TokenIssuer:
    """Mints tokens with the newest signing key and reads those of every key that is still believed.

    Sessions call several times with one token; reading it once spares most of the work. `remembered` of the
    latest tokens at least, and twice as many at most, are kept as they were read.
    """

    def __init__(self, secret: bytes, remembered: int = REMEMBERED) -> None:
        self._remembered = remembered
        self._secret = secret
        self._kid = FIRST_KID
        self._refused: dict[str, int] = {}
        self._recent: dict[str, tuple[str, TokenClaims]] = {}
        self._older: dict[str, tuple[str, TokenClaims]] = {}

    def replace(self, keys: list[SigningKey]) -> None:
        """Take over the signing keys that the store knows, oldest first; none means the first one."""
        self._kid = keys[-1].kid if keys else FIRST_KID
        self._refused = {key.kid: key.refused_from_ms for key in keys if key.refused_from_ms is not None}
        self._recent, self._older = {}, {}

    def mint(self, claims: TokenClaims) -> str:
        """Write and sign a token."""
        payload: dict[str, Any] = {
            "iss": _ISSUER,
            "aud": _AUDIENCE,
            "sub": claims.tenant,
            "key": claims.key,
            "sdkSessionId": claims.sdk_session,
            "tenantSessionId": claims.tenant_session,
            "origin": claims.origin,
            "flow": claims.flow,
            "userExternalId": claims.user,
            "iat": claims.issued_at_s,
            "exp": claims.expires_at_s,
            "jti": claims.id,
        }
        sent = {name: value for name, value in payload.items() if value is not None}
        key = signing_key(self._secret, self._kid)
        # As UTF-8: escapes in ASCII would make three characters of each byte, too many for a header.
        content = msgspec.json.encode(sent)
        return jwt.api_jws.encode(content, key, algorithm=_ALGORITHM, headers={"kid": self._kid})

    def read(self, token: str, now_s: float) -> TokenClaims:
        """Return what a token says at a moment (Unix seconds). Raises `TokenRefused`."""
        remembered = self._recent.get(token)
        if remembered is None:
            remembered = self._older.pop(token, None) or self._verify(token)
            if len(self._recent) >= self._remembered:
                self._older, self._recent = self._recent, {}
            if len(token) <= _REMEMBERED_CHARS_MAX:
                self._recent[token] = remembered
        kid, claims = remembered
        if now_s >= claims.expires_at_s:
            raise TokenRefused("The token has expired; mint a new one.")
        refused_from_ms = self._refused.get(kid)
        if refused_from_ms is not None and now_s * 1000 >= refused_from_ms:
            raise TokenRefused("The token is signed with a key that was taken out of use; mint a new one.")
        return claims

    def _verify(self, token: str) -> tuple[str, TokenClaims]:
        if len(token) > _TOKEN_CHARS_MAX:
            raise TokenRefused(_NOT_OURS)
        try:
            kid = jwt.get_unverified_header(token).get("kid")
            if type(kid) is not str or not _KID.fullmatch(kid):
                raise TokenRefused(_NOT_OURS)
            said = jwt.decode(
                token,
                signing_key(self._secret, kid),
                algorithms=[_ALGORITHM],
                audience=_AUDIENCE,
                issuer=_ISSUER,
                # Time is looked at by `read`, whose clock is an argument; here it would be hidden.
                options={"require": list(_REQUIRED), "verify_exp": False, "verify_iat": False},
            )
        except (jwt.InvalidTokenError, ValueError, RecursionError):
            raise TokenRefused(_NOT_OURS) from None
        # What carries our signature has our shape: it came from `mint`.
        return kid, TokenClaims(
            tenant=said["sub"],
            key=said["key"],
            sdk_session=said["sdkSessionId"],
            tenant_session=said.get("tenantSessionId"),
            origin=said.get("origin"),
            flow=said.get("flow"),
            user=said.get("userExternalId"),
            issued_at_s=said["iat"],
            expires_at_s=said["exp"],
            id=said["jti"],
        )


_NOT_OURS: Final = "The token is not valid."

_ORIGIN: Final = re.compile(
    r"(?P<scheme>[a-z][a-z0-9+.-]{0,31})://(?P<host>\[[0-9a-f:.]{2,45}\]|[^\s/?#@:\[\]\\]{1,253})(?::(?P<port>[0-9]{1,5}))?/?"
)
_DEFAULT_PORTS: Final = {"http": "80", "https": "443"}


@functools.lru_cache(maxsize=1024)
def normal_origin(text: str) -> str | None:
    """Return an origin as browsers write it (RFC 6454, section 6.2), or None when the text is none.

    Scheme and host in lower case (a host outside ASCII in its IDNA form), without the scheme's default port
    and without a slash at the end. `null`, the origin of sandboxed pages, is nobody's and gives None.
    """
    match = _ORIGIN.fullmatch(text.strip().lower())
    if match is None:
        return None
    scheme, host, port = match["scheme"], match["host"], match["port"]
    if not host.isascii():
        try:
            host = host.encode("idna").decode()
        except UnicodeError:
            return None
    if port is None or port.lstrip("0") == _DEFAULT_PORTS.get(scheme):
        return f"{scheme}://{host}"
    return f"{scheme}://{host}:{int(port)}" if int(port) <= 65535 else None
