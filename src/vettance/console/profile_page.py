"""What people set for themselves: name, theme, time zone, password, second factor, sessions."""

from typing import Any, Final

from vettance.console.guard import write_cookie
from vettance.console.page import READERS, SIGN_IN, ConsolePage, PageAnswer, Redirect, View, Visit, url_of
from vettance.console.shown_once import with_shown
from vettance.console.words import Words
from vettance.decisions.user_agent import PROGRAMS, user_agent_family, user_agent_system
from vettance.errors import Unprocessable
from vettance.people.credentials import THEMES, time_zones

PATH: Final = "/console/profile"
#: Names that are not spelled as a sentence begins.
_NAMES: Final = {
    "macos": "macOS",
    "ios": "iOS",
    "chromeos": "ChromeOS",
    "webview": Words("an app"),
    "samsung": "Samsung Internet",
    "duckduckgo": "DuckDuckGo",
}
_THEME_WORDS: Final = {"auto": Words("Same as the system"), "light": Words("Light"), "dark": Words("Dark")}


async def profile(visit: Visit) -> PageAnswer:
    """GET /console/profile."""
    return with_shown(visit, await _page(visit))


async def save(visit: Visit) -> PageAnswer:
    """POST /console/profile."""
    name, theme, zone = (visit.form.get(field) for field in ("name", "theme", "timeZone"))
    try:
        await visit.parts.credentials.set_profile(visit.signed, name, theme, zone)
    except Unprocessable as refused:
        return await _page(visit, refused.details, {"name": name, "theme": theme, "timeZone": zone})
    return visit.redirect(PATH, notice="saved")


async def change_password(visit: Visit) -> PageAnswer:
    """POST /console/profile/password. All other sessions end."""
    old, new = visit.form.raw("old"), visit.form.raw("new")
    try:
        await visit.parts.credentials.change_password(visit.signed, old, new)
    except Unprocessable as refused:
        return await _page(visit, refused.details)
    return visit.redirect(PATH, notice="password-changed")


async def end_session(visit: Visit) -> PageAnswer:
    """POST /console/profile/sessions/{id}/end."""
    await visit.parts.sessions.end_one(visit.signed, visit.path["id"])
    if visit.path["id"] == visit.signed.session_id:
        return Redirect(url_of(SIGN_IN, notice="signed-out"), (write_cookie("", is_https=visit.is_https),))
    return visit.redirect(PATH, notice="session-removed")


async def _page(visit: Visit, faults: Any = None, typed: dict[str, str] | None = None) -> View:
    signed, parts = visit.signed, visit.parts
    values = {
        "faults": faults or {},
        "typed": typed or {"name": signed.name, "theme": signed.theme, "timeZone": signed.time_zone},
        "themes": [(one, _THEME_WORDS[one]) for one in THEMES],
        "zones": await time_zones(),
        "sessions": await parts.sessions.sessions(signed),
        "browser_words": browser_words,
        "codes_left": await parts.credentials.recovery_codes_left(signed),
    }
    return View("profile.html", values, title=Words("Profile"), status=422 if faults else 200)


def browser_words(user_agent: str) -> str:
    """Return the browser and the system that somebody signed in with, in words."""
    said = (user_agent_family(user_agent), user_agent_system(user_agent))
    named = [_called(one) for one in said if one is not None]
    return " on ".join(named) or Words("Unknown browser")


def _called(one: str) -> str:
    if one in PROGRAMS:  # Programs are called as they write themselves.
        return one
    return _NAMES.get(one) or one.replace("_", " ").title()


PAGES: Final = (
    ConsolePage("GET", PATH, READERS, profile),
    ConsolePage("POST", PATH, READERS, save),
    ConsolePage("POST", f"{PATH}/password", READERS, change_password),
    ConsolePage("POST", f"{PATH}/sessions/{{id}}/end", READERS, end_session),
)
