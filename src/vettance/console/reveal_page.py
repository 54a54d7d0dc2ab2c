"""Revealing: a viewer looks behind the masks of one page for five minutes, and the audit log knows."""

import hashlib
from typing import Final
from urllib.parse import parse_qsl, urlencode, urlsplit

from vettance.audit.act import describe
from vettance.clock import MINUTE_MS
from vettance.console.decision_filters import FILTERS
from vettance.console.page import READERS, ConsolePage, PageAnswer, Visit, own_path, segment
from vettance.errors import Forbidden, NotFound

PATH: Final = "/console/reveal"
#: What is revealed stays so for so long; after that the page is masked again.
REVEAL_MS: Final = 5 * MINUTE_MS
#: The field of a page's address that says that it was revealed, and its kind among the tokens.
_FIELD: Final = "revealed"
#: Fields of addresses that hold a personal value, and its kind among the tokens.
_PERSONAL: Final = {one.name: one.kind for one in FILTERS if one.kind} | {"q": "text"}


async def reveal(visit: Visit) -> PageAnswer:
    """POST /console/reveal: leads back to the page that the form names, which then shows what it masked."""
    sent = visit.form.get("page")
    page = _without_mark(sent)
    roles = visit.roles_at(urlsplit(page).path)
    if roles is None or sent != own_path(sent):
        raise NotFound
    if not visit.may(*roles):
        raise Forbidden("Your roles do not let you read that page.")
    describe(subject=urlsplit(page).path)
    if not visit.sight.is_masked:
        return visit.redirect(page)
    until_ms = visit.now_ms + REVEAL_MS
    mark = visit.sight.name(_FIELD, f"{until_ms} {_digest(visit, page)}")
    return visit.redirect(f"{page}{'&' if '?' in page else '?'}{urlencode({_FIELD: mark})}")


def revealed_until(visit: Visit) -> int | None:
    """Return until when (Unix milliseconds) the page of a visit is revealed to this session, or None."""
    mark = visit.query.get(_FIELD)
    if not mark or not visit.sight.is_masked:
        return None
    until, _, digest = visit.sight.value(_FIELD, mark).partition(" ")
    if not until.isdecimal() or digest != _digest(visit, _without_mark(visit.url)):
        return None
    return int(until) if visit.now_ms < int(until) else None


def page_to_reveal(visit: Visit) -> str:
    """Return what the form of a page names: its address, with tokens for the values that a viewer typed."""
    path, _, query = _without_mark(visit.url).partition("?")
    kind = "session" if "session" in visit.path else visit.path.get("kind", "")
    if kind and (value := visit.path.get("session") or visit.path.get("value")):
        path = f"{path.rpartition('/')[0]}/{segment(_token(visit, kind, value))}"
    fields = {
        name: _token(visit, _PERSONAL[name], text) if name in _PERSONAL else text
        for name, text in parse_qsl(query, keep_blank_values=True)
    }
    return f"{path}?{urlencode(fields)}" if fields else path


def _token(visit: Visit, kind: str, text: str) -> str:
    return visit.sight.name(kind, visit.sight.value(kind, text))


def _digest(visit: Visit, page: str) -> str:
    """Bind a mark to the session and the page: an address that somebody else opens reveals nothing."""
    return hashlib.sha256(f"{visit.signed.session_id} {page}".encode()).hexdigest()


def _without_mark(url: str) -> str:
    """Return an address without what a reveal or a notice adds to it."""
    parts = urlsplit(url)
    kept = [
        (name, value)
        for name, value in parse_qsl(parts.query, keep_blank_values=True)
        if name not in (_FIELD, "notice", "settled")
    ]
    return f"{parts.path}?{urlencode(kept)}" if kept else parts.path


PAGES: Final = (ConsolePage("POST", PATH, READERS, reveal),)
