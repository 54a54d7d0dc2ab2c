"""The people of the organisation: who they are, what they may do, and how they get in."""

from typing import Any, Final

from vettance.console.guard import own_origin
from vettance.console.page import ADMINS, OVERSEERS, ConsolePage, PageAnswer, Redirect, View, Visit
from vettance.console.shown_once import lead_to, with_shown
from vettance.console.words import Words
from vettance.errors import Conflict, Unprocessable
from vettance.people.administer import TenantUser, link_path
from vettance.people.role import MEANINGS, Role

PATH: Final = "/console/settings/users"
_STALE: Final = Words(
    "Somebody has changed the roles of this person since you opened this page. "
    "What you chose is still marked below; look at it once more and save."
)


async def team(visit: Visit) -> PageAnswer:
    """GET /console/settings/users."""
    return with_shown(visit, await _page(visit))


async def invite(visit: Visit) -> PageAnswer:
    """POST /console/settings/users. The page shows the link, once."""
    email, name, roles = visit.form.get("email"), visit.form.get("name"), _roles(visit)
    try:
        token = await visit.parts.administration.invite(visit.tenant.id, email, name, roles)
    except Unprocessable as refused:
        return await _page(visit, refused.details)
    if token is None:
        return visit.redirect(PATH, notice="member-added")
    return _with_link(visit, email, token)


async def change_roles(visit: Visit) -> PageAnswer:
    """POST /console/settings/users/{id}/roles. Without a role they are no user here any more.

    A form that is no longer true comes back as it was filled in.
    """
    administration, user_id, roles = visit.parts.administration, visit.path["id"], _roles(visit)
    seen = visit.form.get("seen") if "seen" in visit.form else None
    try:
        await administration.set_roles(visit.tenant.id, user_id, roles, visit.signed.user_id, seen)
    except Conflict as refused:
        if refused.details["reason"] != "changed_meanwhile":
            raise
        return await _page(visit, stale=user_id)
    return visit.redirect(PATH, notice="saved")


async def make_link(visit: Visit) -> PageAnswer:
    """POST /console/settings/users/{id}/link."""
    token = await visit.parts.administration.new_link(visit.tenant.id, visit.path["id"])
    return _with_link(visit, "", token)


def _roles(visit: Visit) -> list[Role]:
    known = {role.value for role in Role}
    return [Role(word) for word in dict.fromkeys(visit.form.all("role")) if word in known]


def _with_link(visit: Visit, email: str, token: str) -> Redirect:
    # The form came from a page of this origin: it is where the browser reaches the console.
    origin = own_origin(visit.headers, is_https=visit.is_https, proxies=visit.parts.proxies)
    return lead_to(visit, PATH, email=email, link=origin + link_path(token))


async def _page(visit: Visit, faults: Any = None, stale: str = "") -> View:
    """Return the page; `stale` is the user whose roles others changed since the form was opened."""
    users = await visit.parts.administration.users(visit.tenant.id)
    values = {
        "users": [_shown(one, visit, is_stale=one.account.id == stale) for one in users],
        "warning": _STALE if stale else "",
        "meanings": [(role.value, text) for role, text in MEANINGS.items()],
        "faults": faults or {},
        "typed": {
            "email": visit.form.get("email"),
            "name": visit.form.get("name"),
            "roles": [] if stale else visit.form.all("role"),
        },
        "may_change": visit.may(*ADMINS),
    }
    return View("team.html", values, title=Words("Users"), status=409 if stale else 422 if faults else 200)


def _shown(one: TenantUser, visit: Visit, *, is_stale: bool) -> dict[str, Any]:
    return {
        "id": one.account.id,
        "email": one.account.email,
        "name": one.account.name,
        "roles": sorted(role.value for role in one.roles),
        "seen": one.written,
        "is_stale": is_stale,
        "chosen": [role.value for role in (_roles(visit) if is_stale else one.roles)],
        "disabled": one.account.disabled,
        "has_factor": one.account.totp is not None,
        "has_password": one.account.password is not None,
        "is_own": one.account.id == visit.signed.user_id,
    }


PAGES: Final = (
    ConsolePage("GET", PATH, OVERSEERS, team),
    ConsolePage("POST", PATH, ADMINS, invite),
    ConsolePage("POST", f"{PATH}/{{id}}/roles", ADMINS, change_roles),
    ConsolePage("POST", f"{PATH}/{{id}}/link", ADMINS, make_link),
)
