"""The pages for signing in and out."""

from vettance.console.guard import write_cookie
from vettance.console.page import (
    ANYBODY,
    HOME,
    SECOND_FACTOR,
    SIGN_IN,
    ConsolePage,
    PageAnswer,
    Redirect,
    View,
    Visit,
    own_path,
    url_of,
)
from vettance.console.words import Words
from vettance.errors import Refusal
from vettance.people.session import Stage
from vettance.people.sign_in import NewSession, SignInPaused, SignInRefused


async def ask(visit: Visit) -> PageAnswer:
    """GET /console/sign-in."""
    target = own_path(visit.query.get("next"))
    if visit.signed_in is not None:
        return Redirect(target)
    form = sign_in_form(visit, target)
    if visit.is_partial:  # A part of a page whose session has ended: the browser opens the whole page.
        said = visit.query.get("notice")
        return form.with_headers(("hx-redirect", url_of(SIGN_IN, next=target, notice=said)))
    return form


async def sign_in(visit: Visit) -> PageAnswer:
    """POST /console/sign-in."""
    target = own_path(visit.form.get("next"))
    email, password = visit.form.get("email"), visit.form.raw("password")
    agent = visit.headers.get(b"user-agent", b"").decode("latin-1")
    try:
        begun = await visit.parts.sessions.sign_in(email, password, visit.client or "", agent)
    except (SignInRefused, SignInPaused) as refused:
        return sign_in_form(visit, target, refused)
    if visit.cookie:
        await visit.parts.sessions.end(visit.cookie)
    return signed_in_at(visit, begun, target)


def signed_in_at(visit: Visit, begun: NewSession, target: str) -> Redirect:
    """Give the browser a session that has just begun, and lead to a page; to the second factor first."""
    to = target if begun.stage is Stage.FULL else url_of(SECOND_FACTOR, next=target)
    return Redirect(to, (write_cookie(begun.token, is_https=visit.is_https),))


async def sign_out(visit: Visit) -> PageAnswer:
    """POST /console/sign-out."""
    if visit.cookie:
        await visit.parts.sessions.end(visit.cookie)
    return Redirect(url_of(SIGN_IN, notice="signed-out"), (write_cookie("", is_https=visit.is_https),))


def sign_in_form(visit: Visit, target: str, refused: Refusal | None = None) -> View:
    """Return the form, with what was refused."""
    fault = refused.message if refused is not None else ""
    values = {
        "next": "" if target == HOME else target,
        "fault": fault,
        "email": visit.form.get("email"),
        "provider": url_of(f"{SIGN_IN}/provider", next=target) if visit.parts.provider is not None else "",
    }
    status, headers = (refused.status, refused.headers) if refused is not None else (200, ())
    return View("sign_in.html", values, title=Words("Sign in"), status=status, headers=headers)


PAGES = (
    ConsolePage("GET", SIGN_IN, ANYBODY, ask),
    ConsolePage("POST", SIGN_IN, ANYBODY, sign_in, begins_session=True),
    ConsolePage("POST", "/console/sign-out", ANYBODY, sign_out),
)
