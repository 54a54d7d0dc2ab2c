"""What browsers need on paths that pages of other origins call: CORS, and the address they call from."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from vettance.events.ip_address import canonical_ip
from vettance.web.asgi import Header

# Names of answer headers are written as their standards write them, for clients that compare texts.
# The Fetch standard, section 3.2 (https://fetch.spec.whatwg.org/#http-cors-protocol). Any origin is echoed:
# which one may use a token is a claim of the token, and a preflight carries none. Credentials are never
# allowed, so that no cookie of any site has a meaning here.
_EXPOSED: Final = (
    b"access-control-expose-headers",
    b"Date, Retry-After, X-Request-Id, X-Quota-Limit, X-Quota-Remaining, X-Quota-Reset, "
    b"X-RateLimit-Limit, X-RateLimit-Remaining, X-RateLimit-Reset, X-Vettance-Unknown",
)
_VARY: Final = (b"vary", b"Origin")
_ORIGIN_CHARS_MAX: Final = 512

# What a page may send. Browsers keep the answer for as long as they are willing to (Chromium: two hours).
_ALLOWED: Final = (
    (
        b"access-control-allow-headers",
        b"authorization, content-type, idempotency-key, x-api-key, x-request-id",
    ),
    (b"access-control-max-age", b"7200"),
)


def sharing_headers(headers: Mapping[bytes, bytes]) -> list[Header]:
    """Return the headers that let the page which asked read the answer, whatever the answer is."""
    origin = headers.get(b"origin")
    if origin is None or len(origin) > _ORIGIN_CHARS_MAX:
        return [_VARY]
    return [(b"access-control-allow-origin", origin), _VARY, _EXPOSED]


def is_preflight(method: str, headers: Mapping[bytes, bytes]) -> bool:
    """Tell whether a browser asks, before the request of a page itself, what the page may send."""
    return method == "OPTIONS" and b"origin" in headers and b"access-control-request-method" in headers


def preflight_headers(allow: Sequence[str]) -> tuple[Header, ...]:
    """Return what answers a preflight besides the sharing headers; `allow` lists the methods of the path."""
    return ((b"access-control-allow-methods", ", ".join(allow).encode()), *_ALLOWED)


def client_address(peer: Any, sent: Sequence[Header], proxies: int) -> str | None:
    """Return the address of the browser, or None when it is not known.

    `peer` is the ASGI `client` (host, port). Behind `proxies` proxies of ours it is what the outermost
    of them wrote into `X-Forwarded-For`, counted from the right: whatever is further left, the caller
    wrote.
    """
    if proxies == 0:
        return canonical_ip(peer[0]) if peer else None
    hops = [hop for name, value in sent if name == b"x-forwarded-for" for hop in value.split(b",")]
    if len(hops) < proxies:
        return None
    text = hops[-proxies].decode("latin-1").strip()
    if text.startswith("["):
        text = text[1:].partition("]")[0]
    elif text.count(":") == 1:
        text = text.partition(":")[0]
    return canonical_ip(text)
