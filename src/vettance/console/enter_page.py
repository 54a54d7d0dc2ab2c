"""The page behind a one-time link: its user sets a password and is signed in."""

from typing import Any, Final

from vettance.console.error_pages import plain_error
from vettance.console.page import ANYBODY, HOME, ConsolePage, PageAnswer, View, Visit
from vettance.console.sign_in_page import signed_in_at
from vettance.console.words import Words
from vettance.errors import NotFound, Unprocessable
from vettance.people.password import CHARS_MAX, CHARS_MIN

PATH: Final = "/console/enter/{token}"


async def show(visit: Visit) -> PageAnswer:
    """GET /console/enter/{token}. It may be opened often: some programs open links before people do."""
    return await _form(visit)


async def enter(visit: Visit) -> PageAnswer:
    """POST /console/enter/{token}."""
    password = visit.form.raw("password")
    if password != visit.form.raw("again"):
        return await _form(visit, {"again": "is not the same password"})
    agent = visit.headers.get(b"user-agent", b"").decode("latin-1")
    try:
        begun = await visit.parts.credentials.enter(visit.path["token"], password, visit.client or "", agent)
    except Unprocessable as refused:
        return await _form(visit, dict(refused.details))
    except NotFound:
        return _too_late()
    return signed_in_at(visit, begun, HOME)


async def _form(visit: Visit, faults: dict[str, str] | None = None) -> View:
    user = await visit.parts.credentials.link_user(visit.path["token"])
    if user is None:
        return _too_late()
    values: dict[str, Any] = {
        "email": user.email,
        "faults": faults or {},
        "least": CHARS_MIN,
        "most": CHARS_MAX,
    }
    return View("enter.html", values, title=Words("Welcome"), status=422 if faults else 200)


def _too_late() -> View:
    return plain_error(
        404,
        Words("This link works no more"),
        "A link lets one person in, once, within 24 hours.",
        "Ask an administrator of your organisation for a new one, or sign in with your password.",
    )


PAGES: Final = (
    ConsolePage("GET", PATH, ANYBODY, show),
    ConsolePage("POST", PATH, ANYBODY, enter),
)
