"""Pages of errors: what went wrong, and what to do next."""

from typing import Final

from vettance.console.page import View
from vettance.console.words import Words
from vettance.errors import Refusal
from vettance.people.role import Role

_TITLES: Final = {
    400: Words("This address cannot be read"),
    403: Words("You may not do this"),
    404: Words("There is nothing here"),
    405: Words("This page does not take that"),
    409: Words("Somebody was faster"),
    413: Words("The form is too large"),
    415: Words("The form cannot be read"),
    422: Words("This cannot be done as it is"),
    429: Words("Too many requests"),
    500: Words("Something went wrong on our side"),
    502: Words("A part of the service does not answer"),
    503: Words("The service cannot answer now"),
    504: Words("A part of the service takes too long"),
}
_ADVICE: Final = {
    403: Words("Ask an administrator of your organisation for a role that may."),
    404: Words(
        "The address may be mistyped, or what it named may be removed or belong to another organisation."
    ),
    409: Words("Go back, reload the page, and decide with what it shows now."),
    500: Words("Try again. If it happens again, give the number of the request to your operator."),
    503: Words("Try again in a few seconds; nothing that was confirmed is lost."),
}


def error_view(refusal: Refusal) -> View:
    """Return the page of a refusal."""
    message = refusal.message if refusal.status != 404 else Words("There is no such page or record.")
    request_id = refusal.details.get("requestId")
    faults = {
        name: text for name, text in refusal.details.items() if isinstance(text, str) and name != "requestId"
    }
    return View(
        "error.html",
        {
            "message": message,
            "faults": faults if refusal.status in (400, 422) else {},
            "advice": _ADVICE.get(refusal.status, ""),
            "request_id": request_id,
            "heading": _TITLES.get(refusal.status, Words("This did not work")),
        },
        title=_TITLES.get(refusal.status, "Error"),
        status=refusal.status,
        headers=refusal.headers,
    )


def forbidden_view(roles: frozenset[Role]) -> View:
    """Return the page that says which role a page needs."""
    names = " or ".join(role.value for role in Role if role in roles)
    return View(
        "error.html",
        {
            "message": f"This page needs the role {names}.",
            "faults": {},
            "advice": _ADVICE[403],
            "request_id": None,
            "heading": _TITLES[403],
        },
        title=_TITLES[403],
        status=403,
    )
