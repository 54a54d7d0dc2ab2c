"""Forms that come after their session is over: kept, and shown once more to whose session it was."""

from collections.abc import Awaitable, Callable
from typing import Final
from urllib.parse import urlencode, urlsplit

import msgspec

from vettance.console import guard
from vettance.console.layout import page_values
from vettance.console.page import HOME, SIGN_IN, FormFields, Redirect, View, Visit, own_path, url_of
from vettance.console.page_table import PageTable
from vettance.console.refused_forms import (
    KEPT_FIELD,
    PAGE_FIELD,
    SECRET_FIELDS,
    SaidFaults,
    SentForm,
    filled_again,
    typed_fields,
)
from vettance.console.rendering import environment, render
from vettance.console.shown_again import ShownAgain, places
from vettance.console.words import Words
from vettance.errors import Refusal
from vettance.people.session import csrf_token

#: Fields that nobody typed, and that the page has anew.
_OWN_FIELDS: Final = frozenset({"csrf", "tenant", PAGE_FIELD, KEPT_FIELD})
_NOT_DONE: Final = Words("This was not done.")
_SEND_AGAIN: Final = Words("Your session had ended. Look at it once more, and send it again.")
_NOT_HERE: Final = Words("What you sent was not done, and its form cannot be filled again.")


class KeptForm(msgspec.Struct, frozen=True):
    """A form without its secrets: the tenant and the page it was about, where it was sent to, its fields."""

    tenant: str
    page: str
    path: str
    pairs: list[tuple[str, str]]


class SessionEnded(Refusal):
    """401: a part of a page asks by itself after its session; the page stays, and what is typed there."""

    status = 401
    code = "UNAUTHORIZED"

    def __init__(self) -> None:
        super().__init__("Your session has ended. Sign in again.")


async def ask_to_sign_in(visit: Visit, read_form: Callable[[], Awaitable[FormFields]] | None) -> Redirect:
    """Lead to the sign-in page, and back from there to what was asked for.

    `read_form` reads a form that a page of ours sent. Raises `SessionEnded`, and what it raises.
    """
    over = await visit.parts.kept.session_over(visit.cookie) if visit.cookie else None
    cookies: tuple[tuple[str, str], ...] = ()
    if visit.cookie and over is None:  # That of a session that is over tells whose form comes later.
        cookies = (guard.write_cookie("", is_https=visit.is_https),)
    if visit.method != "POST":
        return Redirect(url_of(SIGN_IN, next=own_path(_asked_for(visit))), cookies)
    kept = None
    if over is not None and read_form is not None:
        visit.form = await read_form()
        if guard.fits_token(visit.form.get("csrf"), csrf_token(visit.cookie or "")):
            kept = _kept_form(visit, over.tenant_id)
    if kept is not None and over is not None:
        await visit.parts.kept.keep(over, msgspec.json.encode(kept))
        place = urlsplit(kept.page)
        fields = {KEPT_FIELD: over.id, "tenant": kept.tenant}
        target = f"{place.path}?{place.query}{'&' if place.query else ''}{urlencode(fields)}"
        return Redirect(url_of(SIGN_IN, next=target, notice="form-kept"), cookies)
    if visit.is_partial:
        raise SessionEnded
    return Redirect(url_of(SIGN_IN, next=page_of(visit), notice="form-not-done"), cookies)


async def shown_kept(visit: Visit, view: View, kept_id: str, pages: PageTable) -> ShownAgain:
    """Return a page with the form that was kept of another session of the same user, filled again."""
    values = page_values(view, visit, pages)
    language = values["language"]
    content = (await render(view.template, values, language)).decode()
    found = await visit.parts.kept.find(visit.signed.user_id, kept_id)
    form = msgspec.json.decode(found, type=KeptForm) if found is not None else None
    is_here = form is not None and urlsplit(form.page).path == urlsplit(visit.url).path
    if form is not None and is_here and form.tenant == visit.tenant.id:
        sent = SentForm("POST", form.path, form.page, [*form.pairs, (KEPT_FIELD, kept_id)])
        if typed_fields(content, sent) is not None:
            say = environment(language).say  # type: ignore[attr-defined]
            above = SaidFaults([say(_NOT_DONE, 0), say(_SEND_AGAIN, 0)])
            return ShownAgain(view.status, filled_again(content, sent, above, same_base=True).encode())
    return ShownAgain(
        view.status, await render(view.template, {**values, "notice": _NOT_HERE, "warns": True}, language)
    )


def without_kept(visit: Visit) -> str:
    """Take the id of a kept form off the address of a page, so that no link has it; return the id."""
    kept_id = visit.query.get(KEPT_FIELD) if visit.method == "GET" else ""
    if kept_id:
        rest = [pair for pair in visit.query.pairs if pair[0] not in (KEPT_FIELD, "tenant")]
        visit.url = urlsplit(visit.url).path + (f"?{urlencode(rest)}" if rest else "")
    return kept_id


def _asked_for(visit: Visit) -> str:
    if not visit.is_partial:
        return visit.url if visit.method in ("GET", "HEAD") else ""
    current = urlsplit(visit.headers.get(b"hx-current-url", b"").decode("latin-1"))
    return f"{current.path}?{current.query}" if current.query else current.path


def _kept_form(visit: Visit, tenant: str) -> KeptForm | None:
    """Return what is kept of a form; None where nothing was typed."""
    pairs = [one for one in visit.form.pairs if one[0] not in SECRET_FIELDS | _OWN_FIELDS]
    page = page_of(visit)
    if not pairs or page == HOME:
        return None
    return KeptForm(visit.form.get("tenant") or tenant, page, urlsplit(visit.url).path, pairs)


def page_of(visit: Visit) -> str:
    """Return the page that a form was on, as far as it is known; home otherwise."""
    found = (one for one in places(visit) if visit.roles_at(urlsplit(one).path) is not None)
    return next(found, HOME)
