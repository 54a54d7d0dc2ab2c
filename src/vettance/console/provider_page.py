"""The pages that lead to the provider of OpenID Connect and back."""

import base64
import binascii
import hmac
from typing import Final

from vettance.clock import MINUTE_MS
from vettance.console.guard import own_origin, read_cookie, write_cookie
from vettance.console.page import ANYBODY, SIGN_IN, ConsolePage, PageAnswer, Redirect, Visit, own_path
from vettance.console.sign_in_page import sign_in_form, signed_in_at
from vettance.errors import NotFound, Refusal
from vettance.people.provider_sign_in import REFUSED
from vettance.people.sign_in import SignInRefused
from vettance.people.user import is_token, new_token

START: Final = f"{SIGN_IN}/provider"
_RETURN: Final = f"{SIGN_IN}/return"
_COOKIE: Final = "vettance_oidc"
#: Somebody may have to find their phone before the provider lets them go on.
_LIFE_MS: Final = 15 * MINUTE_MS


async def start(visit: Visit) -> PageAnswer:
    """GET /console/sign-in/provider: a link, since the policy of pages lets forms lead to no other host."""
    signing = visit.parts.provider
    if signing is None:
        raise NotFound
    state = new_token()
    try:
        to = await signing.address(state, _return_url(visit))
    except Refusal as refused:
        return sign_in_form(visit, own_path(visit.query.get("next")), refused)
    kept = _kept(visit, state, own_path(visit.query.get("next")))
    return Redirect(to, (write_cookie(kept, is_https=visit.is_https, name=_COOKIE),))


async def finish(visit: Visit) -> PageAnswer:
    """GET /console/sign-in/return: where the provider sends people to, with a code."""
    signing = visit.parts.provider
    if signing is None:
        raise NotFound
    state, target = _read(visit)
    forgotten = write_cookie("", is_https=visit.is_https, name=_COOKIE)
    agent = visit.headers.get(b"user-agent", b"").decode("latin-1")
    try:
        if not state or not _same(state, visit.query.get("state")) or "code" not in visit.query:
            raise SignInRefused(REFUSED)
        code, issuer = visit.query.get("code"), visit.query.get("iss")
        begun = await signing.begin(code, state, _return_url(visit), issuer, visit.client or "", agent)
    except Refusal as refused:
        form = sign_in_form(visit, target, refused)
        return form.with_headers(forgotten)
    if visit.cookie:
        await visit.parts.sessions.end(visit.cookie)
    answer = signed_in_at(visit, begun, target)
    return Redirect(answer.to, (*answer.headers, forgotten))


def _return_url(visit: Visit) -> str:
    origin = own_origin(visit.headers, is_https=visit.is_https, proxies=visit.parts.proxies)
    return f"{origin}{_RETURN}"


def _kept(visit: Visit, state: str, target: str) -> str:
    """Return what the browser keeps meanwhile: the state, and where to go; sealed, for a few minutes."""
    said = f"{state}.{visit.now_ms + _LIFE_MS}.{base64.urlsafe_b64encode(target.encode()).decode()}"
    return f"{said}.{_seal(visit, said)}"


def _read(visit: Visit) -> tuple[str, str]:
    """Return the state and where to go that the browser kept; no state when it is not ours, or too old."""
    kept = read_cookie(visit.headers, is_https=visit.is_https, name=_COOKIE) or ""
    said, _, seal = kept.rpartition(".")
    if not _same(seal, _seal(visit, said)):
        return "", own_path("")
    state, until, target = said.split(".")
    if int(until) <= visit.now_ms or not is_token(state):
        return "", own_path("")
    try:
        return state, own_path(base64.urlsafe_b64decode(target).decode())
    except (binascii.Error, ValueError):
        return state, own_path("")


def _same(one: str, other: str) -> bool:
    return hmac.compare_digest(one.encode(), other.encode())


def _seal(visit: Visit, said: str) -> str:
    return hmac.digest(visit.parts.secret, b"oidc cookie " + said.encode(), "sha256").hex()


PAGES: Final = (ConsolePage("GET", START, ANYBODY, start), ConsolePage("GET", _RETURN, ANYBODY, finish))
