"""The gate: whose key or token a request carries, and whether the route and its limits let it in."""

import math
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Final, NamedTuple, Protocol

from vettance.errors import Forbidden, LimitReached, Refusal, Unauthorized, Unavailable
from vettance.limits.quota import QUOTA_WINDOW_S
from vettance.limits.throttle import THROTTLE_WINDOW_S
from vettance.limits.verdict import LimitCounters, Verdict
from vettance.redis_link.down import StateDown
from vettance.tenants.browser_token import TokenClaims, TokenRefused, normal_origin
from vettance.tenants.key_scope import lacking
from vettance.tenants.tenant import Key, Tenant
from vettance.web.admission import Admission
from vettance.web.asgi import Header
from vettance.web.routing import Access, Route

# One sentence for a missing, malformed, unknown and revoked key: which of these it was would help a guesser.
# RFC 9110, section 11.6.1, wants a challenge with every 401; this scheme makes no browser ask for a password.
_NO_KEY: Final = "Send a valid API key in the x-api-key header."
_CHALLENGE: Final = (("www-authenticate", 'ApiKey realm="vettance"'),)
_NO_TOKEN: Final = "Send a valid token in the Authorization header, as Bearer."  # noqa: S105 (a sentence)
_BEARER: Final = (("www-authenticate", 'Bearer realm="vettance"'),)  # RFC 6750, section 3
_BAD_TOKEN: Final = (("www-authenticate", 'Bearer realm="vettance", error="invalid_token"'),)


class ApiKeys(Protocol):
    """Knows every API key that works."""

    def find(self, api_key: str) -> tuple[Key, Tenant] | None:
        """Return the key and its tenant, or None when it is unknown or revoked."""

    def issued(self, key_id: str) -> tuple[Key, Tenant] | None:
        """Return the key of an id and its tenant, or None when it is unknown or revoked."""


class TokenReader(Protocol):
    """Knows which tokens are good."""

    def read(self, token: str, now_s: float) -> TokenClaims:
        """Return what a token says at a moment in Unix seconds. Raises `TokenRefused`."""


class _Who(NamedTuple):
    """Who calls: whose throttle is charged, and why the route is not theirs to call, where that is so."""

    tenant: Tenant
    key: Key
    claims: TokenClaims | None
    caller: str
    barred: Forbidden | None


class Gate:
    """Checks credential, product, throttle and quota, in this order. Who is refused is charged nothing."""

    def __init__(
        self,
        keys: ApiKeys,
        limits: LimitCounters,
        tokens: TokenReader | None = None,
        unix_s: Callable[[], float] = time.time,
        freshen: Callable[[str], Awaitable[None]] | None = None,
    ) -> None:
        """`freshen` takes in what other processes have changed for a tenant, before its request goes on."""
        self._keys = keys
        self._limits = limits
        self._tokens = tokens
        self._unix_s = unix_s
        self._freshen = freshen

    async def admit(self, route: Route, headers: Mapping[bytes, bytes], sent: Sequence[Header]) -> Admission:
        """Let a request through, or say why not. `sent` is the same headers as a list, repeats included.

        Raises `Unauthorized` (401), and `Unavailable` (503) when the counters cannot be reached: a request
        that cannot be counted is not let in. A refusal of a caller who is known is part of the admission, so
        that its answer carries the limit headers too.
        """
        now_s = self._unix_s()
        who = self._find_out(route, headers, sent, now_s)
        tenant = who.tenant
        try:
            charge = await self._limits.charge(
                tenant.id, who.caller, tenant.throttle, tenant.quota, looking=who.barred is not None
            )
        except StateDown:
            raise Unavailable("The limits cannot be counted at the moment. Try again.") from None
        if self._freshen is not None:
            await self._freshen(tenant.id)
        return _admission(who, charge.rate, charge.use, now_s)

    async def refund(self, admission: Admission) -> list[Header]:
        """Take back what a request was charged that a later check refused, as far as the counters can be
        reached; return the limit headers then."""
        tenant = admission.tenant
        try:
            charge = await self._limits.refund(
                tenant.id, admission.caller, tenant.throttle, tenant.quota, admission.quota_reset_s
            )
        except StateDown:
            return admission.headers
        return _limit_headers(charge.use, charge.rate, self._unix_s())

    def _find_out(
        self, route: Route, headers: Mapping[bytes, bytes], sent: Sequence[Header], now_s: float
    ) -> _Who:
        if route.access is Access.TOKEN and not _comes_with_key(route, headers):
            claims, key, tenant = self._identify_session(headers, sent, now_s)
            return _Who(tenant, key, claims, f"{tenant.id} {claims.sdk_session}", None)
        key, tenant = self._identify(headers, sent)
        if route.key_setting is not None and not getattr(tenant, route.key_setting):
            raise Unauthorized(_NO_TOKEN, headers=_BEARER)
        return _Who(tenant, key, None, key.id, _barred(route, tenant, key))

    def _identify(self, headers: Mapping[bytes, bytes], sent: Sequence[Header]) -> tuple[Key, Tenant]:
        """Find out who calls. Of two keys in one request neither is believed."""
        raw = headers.get(b"x-api-key")
        if raw is not None and raw.isascii():
            once = len(headers) == len(sent) or sum(name == b"x-api-key" for name, _ in sent) == 1
            found = self._keys.find(raw.decode()) if once else None
            if found is not None:
                return found
        raise Unauthorized(_NO_KEY, headers=_CHALLENGE)

    def _identify_session(
        self, headers: Mapping[bytes, bytes], sent: Sequence[Header], now_s: float
    ) -> tuple[TokenClaims, Key, Tenant]:
        """Find out for which session of which tenant a page speaks, and whether from where it may."""
        scheme, _, token = headers.get(b"authorization", b"").decode("latin-1").partition(" ")
        if scheme.lower() != "bearer" or self._tokens is None:
            raise Unauthorized(_NO_TOKEN, headers=_BEARER)
        if not _is_single(b"authorization", headers, sent) or not _is_single(b"origin", headers, sent):
            raise Unauthorized("Of two credentials or origins none is believed.", headers=_BAD_TOKEN)
        try:
            claims = self._tokens.read(token.strip(), now_s)
        except TokenRefused as refused:
            raise Unauthorized(str(refused), headers=_BAD_TOKEN) from None
        found = self._keys.issued(claims.key)
        if found is None or found[1].id != claims.tenant:
            raise Unauthorized("The token is not valid.", headers=_BAD_TOKEN)
        _check_origin(headers.get(b"origin"), claims.origin, found[1])
        return claims, *found


def _admission(who: _Who, rate: Verdict, use: Verdict, now_s: float) -> Admission:
    refusal: Refusal | None = who.barred
    if refusal is not None:
        pass
    elif not rate.admitted:
        whose = "key" if who.claims is None else "session"
        refusal = _limit_reached(f"The {whose} has made too many requests.", rate, THROTTLE_WINDOW_S)
    elif not use.admitted:
        refusal = _limit_reached("The quota of this hour is used up.", use, QUOTA_WINDOW_S)
    headers = _limit_headers(use, rate, now_s)
    return Admission(who.tenant, who.key, headers, refusal, who.claims, who.caller, use.reset_s)


def _barred(route: Route, tenant: Tenant, key: Key) -> Forbidden | None:
    """Say why a route is not open to a key: its product is not the tenant's, or the key lacks the scope."""
    if route.product is not None and not getattr(tenant, route.product):
        return Forbidden("This product is not enabled for your account.")
    scope = lacking(key.scopes, route.scopes, route.method)
    if scope is None:
        return None
    return Forbidden(
        f"This key lacks the scope {scope.value}. Use one that has it.",
        {"reason": "insufficient_scope", "scope": scope.value},
    )


def _comes_with_key(route: Route, headers: Mapping[bytes, bytes]) -> bool:
    return route.key_setting is not None and b"x-api-key" in headers and b"authorization" not in headers


def _is_single(name: bytes, headers: Mapping[bytes, bytes], sent: Sequence[Header]) -> bool:
    return len(headers) == len(sent) or sum(each == name for each, _ in sent) <= 1


def _check_origin(origin: bytes | None, claimed: str | None, tenant: Tenant) -> None:
    """Hold a request to the origin its token was minted for. Pages cannot choose what their browser sends."""
    if origin is None:
        if tenant.require_origin:
            raise Unauthorized(
                "Your account takes tokens from browsers only; send Origin.", headers=_BAD_TOKEN
            )
    elif claimed is not None and normal_origin(origin.decode("latin-1")) != claimed:
        raise Unauthorized("The token was minted for another origin.", headers=_BAD_TOKEN)


def _limit_reached(message: str, verdict: Verdict, window_s: int) -> LimitReached:
    # Rounded up: a caller that comes back a fraction of a second early would be refused again.
    return LimitReached(message, verdict.limit, window_s, max(1, math.ceil(verdict.retry_after_s)))


def _limit_headers(use: Verdict, rate: Verdict, now_s: float) -> list[Header]:
    return [
        (b"x-quota-limit", b"%d" % use.limit),
        (b"x-quota-remaining", b"%d" % use.remaining),
        (b"x-quota-reset", b"%d" % use.reset_s),
        (b"x-ratelimit-limit", b"%d" % rate.limit),
        (b"x-ratelimit-remaining", b"%d" % rate.remaining),
        (b"x-ratelimit-reset", b"%d" % math.ceil(now_s + rate.reset_s)),
    ]
