"""The second factor: its code at sign-in, setting it up, taking it away."""

import asyncio
from typing import Final

from vettance.audit.act import Act, acting
from vettance.console.page import (
    ANYBODY,
    HOME,
    READERS,
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
from vettance.console.profile_page import PATH as PROFILE
from vettance.console.qr_code import qr_picture
from vettance.console.shown_once import lead_to
from vettance.console.sign_in_page import signed_in_at
from vettance.console.words import Words
from vettance.errors import Unprocessable
from vettance.people.session import Stage
from vettance.people.sign_in import SignInPaused, SignInRefused
from vettance.people.totp import enrolment_uri, secret_text

SET_UP: Final = "/console/second-factor/set-up"
REMOVE: Final = "/console/second-factor/remove"


async def ask(visit: Visit) -> PageAnswer:
    """GET /console/second-factor: the code of who has given the password, or the set-up that is missing."""
    if visit.signed_in is None:
        return Redirect(SIGN_IN)
    if visit.signed.stage is Stage.FACTOR:
        return _code_form(visit)
    if visit.signed.stage is Stage.ENROLMENT:
        return await _set_up_form(visit)
    return Redirect(own_path(visit.query.get("next")))


async def give(visit: Visit) -> PageAnswer:
    """POST /console/second-factor."""
    if visit.signed_in is None:
        return Redirect(url_of(SIGN_IN, notice="session-ended"))
    if visit.signed.stage is not Stage.FACTOR:
        return Redirect(SECOND_FACTOR)
    agent = visit.headers.get(b"user-agent", b"").decode("latin-1")
    try:
        begun = await visit.parts.sessions.give_code(
            visit.cookie or "", visit.form.get("code"), visit.client or "", agent
        )
    except (SignInRefused, SignInPaused) as refused:
        return _code_form(visit, refused.message, refused.status, refused.headers)
    return signed_in_at(visit, begun, own_path(visit.form.get("next")))


async def set_up(visit: Visit) -> PageAnswer:
    """GET /console/second-factor/set-up."""
    if visit.signed_in is None or visit.signed.stage is Stage.FACTOR:
        return Redirect(url_of(SECOND_FACTOR, next=SET_UP))
    return await _set_up_form(visit)


async def confirm(visit: Visit) -> PageAnswer:
    """POST /console/second-factor/set-up. The profile shows the recovery codes, once."""
    if visit.signed_in is None or visit.signed.stage is Stage.FACTOR:
        return Redirect(url_of(SECOND_FACTOR, next=SET_UP))
    try:
        with acting(Act(visit.signed.actor, "second factor on", tenant=visit.signed.tenant_id)):
            codes = await visit.parts.credentials.confirm_factor(visit.signed, visit.form.get("code"))
    except Unprocessable as refused:
        return await _set_up_form(visit, str(refused.details.get("code", refused.message)))
    return lead_to(visit, PROFILE, codes=codes)


async def remove(visit: Visit) -> PageAnswer:
    """POST /console/second-factor/remove."""
    await visit.parts.credentials.remove_factor(visit.signed, visit.form.raw("password"))
    return visit.redirect(PROFILE, notice="factor-removed")


def _code_form(
    visit: Visit, fault: str = "", status: int = 200, headers: tuple[tuple[str, str], ...] = ()
) -> View:
    target = own_path(visit.form.get("next") or visit.query.get("next"))
    values = {"fault": fault, "next": "" if target == HOME else target}
    return View("second_factor.html", values, title=Words("Second factor"), status=status, headers=headers)


async def _set_up_form(visit: Visit, fault: str = "") -> View:
    secret = await visit.parts.credentials.begin_factor(visit.signed)
    values = {
        "picture": await asyncio.to_thread(qr_picture, enrolment_uri(secret, visit.signed.email)),
        "secret": secret_text(secret),
        "fault": fault,
        "is_needed": visit.signed.stage is Stage.ENROLMENT,
    }
    return View(
        "factor_set_up.html", values, title=Words("Set up a second factor"), status=422 if fault else 200
    )


PAGES: Final = (
    ConsolePage("GET", SECOND_FACTOR, ANYBODY, ask),
    ConsolePage("POST", SECOND_FACTOR, ANYBODY, give),
    ConsolePage("GET", SET_UP, ANYBODY, set_up),
    ConsolePage("POST", SET_UP, ANYBODY, confirm),
    ConsolePage("POST", REMOVE, READERS, remove),
)
