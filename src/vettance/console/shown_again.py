"""Showing a page again whose form was refused: nothing that somebody typed is lost."""

from collections.abc import Iterator
from typing import Final
from urllib.parse import parse_qsl, urlencode, urlsplit

import msgspec

from vettance.console.error_pages import status_of
from vettance.console.layout import page_values
from vettance.console.page import ANYBODY, FormFields, Handler, View, Visit, own_path
from vettance.console.page_table import PageTable
from vettance.console.refusal_words import faults_of
from vettance.console.refused_forms import KEPT_FIELD, PAGE_FIELD, SentForm, filled_again, typed_fields
from vettance.console.rendering import environment, render
from vettance.console.reveal_page import revealed_until
from vettance.console.words import Words
from vettance.errors import MethodNotAllowed, Refusal

#: Statuses of refusals after which nothing is done, and the page can still be shown.
_ABOUT_FORM: Final = frozenset({400, 403, 409, 422, 429, 502})
_NOT_DONE: Final = Words("This was not done.")
_NOT_SHOWN: Final = Words("This cannot be shown as asked.")
#: How many parts of an address are left off in search of the page that a form was on.
_PARENTS: Final = 3
#: Fields of addresses that say what was done before.
_PASSED: Final = frozenset({"notice", "tenant", KEPT_FIELD})


class ShownAgain(msgspec.Struct, frozen=True):
    """A page with a form that was refused, as it is sent."""

    status: int
    content: bytes


async def shown_again(visit: Visit, refused: Refusal, pages: PageTable) -> ShownAgain | None:
    """Return the page that a refused form was on, filled as it was sent; None where there is none.

    A form that nobody typed into is none: its refusal has a page of its own.
    """
    status = status_of(refused)
    if status not in _ABOUT_FORM or visit.is_partial:
        return None
    for page in places(visit):
        again = _visit_of(visit, page, pages)
        if again is None:
            continue
        here, handler = again
        try:
            answer = await handler(here)
        except Refusal:
            continue
        if not isinstance(answer, View):
            continue
        values = page_values(answer, here, pages)
        content = (await render(answer.template, values, values["language"])).decode()
        sent = _sent(visit, page)
        names = typed_fields(content, sent)
        if names is not None:
            say = environment(values["language"]).say  # type: ignore[attr-defined]
            lead = say(_NOT_DONE if visit.method == "POST" else _NOT_SHOWN, 0)
            return ShownAgain(status, filled_again(content, sent, faults_of(refused, names, lead)).encode())
    return None


def refilled(visit: Visit, content: bytes) -> bytes:
    """Return a page that says itself why its form was refused, with everything that was typed."""
    sent = _sent(visit, urlsplit(visit.url).path)
    return filled_again(content.decode(), sent, faults_of(None, set(), "")).encode()


def _sent(visit: Visit, page: str) -> SentForm:
    fields = visit.form if visit.method == "POST" else visit.query
    return SentForm(visit.method, urlsplit(visit.url).path, page, fields.pairs)


def places(visit: Visit) -> Iterator[str]:
    """Yield where a form may have been that was sent, the likeliest first."""
    path = urlsplit(visit.url).path
    if visit.method != "POST":
        yield path
        return
    came = urlsplit(visit.headers.get(b"referer", b"").decode("latin-1"))
    kept = [pair for pair in parse_qsl(came.query, keep_blank_values=True) if pair[0] not in _PASSED]
    browser = f"{came.path}?{urlencode(kept)}" if kept else came.path
    parents = (path.rsplit("/", level)[0] for level in range(_PARENTS))
    for page in dict.fromkeys((visit.form.get(PAGE_FIELD), browser, *parents)):
        if page and own_path(page) == page:
            yield page


def _visit_of(visit: Visit, page: str, pages: PageTable) -> tuple[Visit, Handler] | None:
    """Return a visit of the same person to a page, and what answers it; None where they may not read one."""
    where = urlsplit(page)
    try:
        found = pages.find("GET", where.path.encode())
        query = FormFields.parse(where.query.encode("ascii"))
    except (MethodNotAllowed, ValueError):
        return None
    if found is None or found[0].roles == ANYBODY or not visit.may(*found[0].roles):
        return None
    here = msgspec.structs.replace(
        visit, method="GET", url=page, path=found[1], query=query, form=FormFields()
    )
    here.sight.is_revealed = revealed_until(here) is not None
    return here, found[0].handler
