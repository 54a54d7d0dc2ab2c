"""Secrets that are shown once: sealed into a cookie on the way from the form to the page that shows them.

A form that makes a key ends with a redirect, as every change does: reloading the page that shows the key
makes no other one. The store never has the secret, and no address, history or log of a proxy does (ADR 223).
"""

from typing import Any, Final
from urllib.parse import urlsplit

import msgspec

from vettance.clock import MINUTE_MS
from vettance.console.guard import read_cookie, write_cookie
from vettance.console.page import Redirect, View, Visit
from vettance.wire.payload import decode, encode

_COOKIE: Final = "vettance_shown"
#: A browser asks for the next page at once; what it keeps beyond that is of no use to anybody.
_KEPT_MS: Final = 5 * MINUTE_MS


def lead_to(visit: Visit, page: str, **shown: Any) -> Redirect:
    """Lead to a page that shows values once, by `with_shown`: to this user of this tenant, at this path."""
    text = encode({"at": visit.now_ms, "shown": shown}).decode()
    sealed = visit.parts.tokens.seal(_owner(visit), page, text)
    cookie = write_cookie(sealed, is_https=visit.is_https, name=_COOKIE, life_s=_KEPT_MS // 1000)
    return Redirect(page, (cookie,))


def with_shown(visit: Visit, view: View) -> View:
    """Return a page with `shown_once`: what the form before it has made, if it has just come from there."""
    sealed = read_cookie(visit.headers, is_https=visit.is_https, name=_COOKIE)
    if sealed is None:
        return view
    over = write_cookie("", is_https=visit.is_https, name=_COOKIE)
    text = visit.parts.tokens.open(_owner(visit), urlsplit(visit.url).path, sealed)
    found = decode(text) if text is not None else None
    if found is None or visit.now_ms - found["at"] > _KEPT_MS:
        return view.with_headers(over)
    values = {**view.values, "shown_once": found["shown"]}
    return msgspec.structs.replace(view, values=values).with_headers(over)


def _owner(visit: Visit) -> str:
    """Return whom a seal is for: somebody may be signed in for another tenant before the page is shown."""
    return f"{visit.signed.tenant_id} {visit.signed.user_id}"
