"""Guard: the headers of every page, and what a change must bring with it (ADR 100)."""

import base64
import binascii
import hashlib
import hmac
from collections.abc import Mapping
from typing import Final
from urllib.parse import urlsplit

POLICY: Final = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self' data:",
        "font-src 'self'",
        "connect-src 'self'",
        "form-action 'self'",
        "frame-ancestors 'none'",
        "base-uri 'none'",
    )
)
#: With `no-referrer` browsers would send `Origin: null` with plain forms.
GUARDS: Final = (
    (b"content-security-policy", POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"same-origin"),
    (b"cross-origin-opener-policy", b"same-origin"),
)
NO_STORE: Final = (b"cache-control", b"no-store")

SESSION_COOKIE: Final = "vettance_session"
_SECURE_PREFIX: Final = "__Host-"
_NONCE_BYTES: Final = 16


def is_own_origin(headers: Mapping[bytes, bytes], *, is_https: bool, proxies: int) -> bool:
    """Tell whether the page that sent a change is one of ours, by what the browser says of it."""
    sent = headers.get(b"origin")
    if sent is None:
        return False
    try:
        origin = urlsplit(sent.decode("latin-1"))
        port = origin.port
    except ValueError:
        return False
    scheme = "https" if is_https else "http"
    if origin.scheme != scheme or origin.hostname is None or origin.path or origin.query:
        return False
    hosts = [headers.get(b"host", b"")]
    if proxies:
        hosts.append(headers.get(b"x-forwarded-host", b"").rpartition(b",")[2].strip())
    return any(_host_of(host, scheme) == (origin.hostname, port or _PORTS[scheme]) for host in hosts)


_PORTS: Final = {"http": 80, "https": 443}


def _host_of(sent: bytes, scheme: str) -> tuple[str, int] | None:
    try:
        parts = urlsplit(f"//{sent.decode('latin-1')}")
        return (parts.hostname, parts.port or _PORTS[scheme]) if parts.hostname else None
    except ValueError:
        return None


def own_origin(headers: Mapping[bytes, bytes], *, is_https: bool, proxies: int) -> str:
    """Return our origin as the browser knows it, for what a provider sends people back to."""
    host = headers.get(b"x-forwarded-host", b"").rpartition(b",")[2].strip() if proxies else b""
    return f"{'https' if is_https else 'http'}://{(host or headers.get(b'host', b'')).decode('latin-1')}"


def is_https(scheme: str, headers: Mapping[bytes, bytes], proxies: int) -> bool:
    """Tell whether the browser came by https: a proxy of ours says so, and only such a one is believed."""
    if proxies:
        said = headers.get(b"x-forwarded-proto", b"").rpartition(b",")[2].strip().lower()
        if said:
            return said == b"https"
    return scheme == "https"


def mask_token(token: str, basis: str) -> str:
    """Return a token for the forms of one page, which differs from page to page.

    Pages are compressed and show what was searched for: the bare token could be guessed, letter by letter,
    from the sizes of answers (BREACH). The mask follows from `basis`: the same page has the same bytes.
    """
    secret = hashlib.sha256(token.encode()).digest()
    nonce = hmac.digest(secret, basis.encode(), "sha256")[:_NONCE_BYTES]
    return base64.urlsafe_b64encode(nonce + _crossed(secret, nonce)).decode().rstrip("=")


def fits_token(sent: str, token: str) -> bool:
    """Tell whether what a form sent is the token of its session."""
    try:
        masked = base64.urlsafe_b64decode(sent + "=" * (-len(sent) % 4))
    except (binascii.Error, ValueError):
        return False
    secret = hashlib.sha256(token.encode()).digest()
    crossed = _crossed(secret, masked[:_NONCE_BYTES])
    return hmac.compare_digest(masked[_NONCE_BYTES:], crossed)


def _crossed(secret: bytes, nonce: bytes) -> bytes:
    return hmac.digest(secret, b"form" + nonce, "sha256")


def read_cookie(headers: Mapping[bytes, bytes], *, is_https: bool, name: str = SESSION_COOKIE) -> str | None:
    """Return the value of a cookie of ours."""
    wanted = _SECURE_PREFIX + name if is_https else name
    for part in headers.get(b"cookie", b"").decode("latin-1").split(";"):
        found, equals, value = part.strip().partition("=")
        if equals and found == wanted:
            return value
    return None


def write_cookie(
    value: str, *, is_https: bool, name: str = SESSION_COOKIE, life_s: int | None = None
) -> tuple[str, str]:
    """Return the header that keeps a cookie for a time, else until the browser ends; no value removes it."""
    if is_https:
        name = _SECURE_PREFIX + name
    life_s = life_s if value else 0
    ending = "" if life_s is None else f"; Max-Age={life_s}"
    secure = "; Secure" if is_https else ""
    return "set-cookie", f"{name}={value}; Path=/; HttpOnly; SameSite=Lax{secure}{ending}"
