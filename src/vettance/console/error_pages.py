"""Pages of errors: what went wrong, and what to do next."""

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from vettance.console.page import View
from vettance.console.unsent_forms import UnsentForm
from vettance.console.words import Words
from vettance.errors import Conflict, Refusal
from vettance.people.role import Role

_TITLES: Final = {
    400: Words("This address cannot be read"),
    403: Words("You may not do this"),
    404: Words("There is nothing here"),
    405: Words("This page does not take that"),
    409: Words("This cannot be done now"),
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
    500: Words("Try again. If it happens again, give the number of the request to your operator."),
    503: Words("Try again in a few seconds; nothing that was confirmed is lost."),
}
#: Reasons of `Conflict` that are races: what the visitor saw is no longer so.
_RACES: Final = frozenset(
    {
        "already_decided",
        "already_resolved",
        "already_revoked",
        "already_settled",
        "changed_meanwhile",
        "claimed",
        "nothing_proposed",
        "resolution_differs",
        "wrong_state",
    }
)
#: Reasons of `Conflict` that are about who asks. A person gets a 403 for them: reloading does not help.
_NEEDS_ANOTHER_PERSON: Final = frozenset(
    {"not_yours", "own_request", "own_roles", "second_officer_needed", "second_person_needed"}
)


class _ErrorWords(NamedTuple):
    """How the page of a refusal begins and ends, and its status."""

    status: int
    heading: str
    advice: str


def _words_of(refusal: Refusal) -> _ErrorWords:
    status = refusal.status
    if isinstance(refusal, Conflict):
        reason = refusal.details.get("reason")
        if reason in _RACES:
            advice = Words("Go back, and decide with what the page shows now.")
            return _ErrorWords(status, Words("Somebody was faster"), advice)
        if reason in _NEEDS_ANOTHER_PERSON:
            return _ErrorWords(403, Words("Somebody else has to do this"), "")
    return _ErrorWords(status, _TITLES.get(status, Words("This did not work")), _ADVICE.get(status, ""))


#: What a page of an error has only for some errors.
_NOTHING_MORE: Final[Mapping[str, Any]] = {"faults": {}, "request_id": None, "back": "", "unsent": None}


def status_of(refusal: Refusal) -> int:
    """Return the status of the page of a refusal."""
    return _words_of(refusal).status


def error_view(refusal: Refusal, page: str = "", unsent: UnsentForm | None = None) -> View:
    """Return the page of a refusal; it leads back to the `page` of the form, or has the `unsent` form.

    A 404 does not: it is the same for what is not there and for what is somebody else's.
    """
    said = _words_of(refusal)
    message = refusal.message if refusal.status != 404 else Words("There is no such page or record.")
    request_id = refusal.details.get("requestId")
    faults = {
        name: text for name, text in refusal.details.items() if isinstance(text, str) and name != "requestId"
    }
    more = {
        "faults": faults if refusal.status in (400, 422) else {},
        "request_id": request_id,
        "back": page if said.status != 404 and unsent is None else "",
        "unsent": unsent,
    }
    return plain_error(said.status, said.heading, message, said.advice, more, refusal.headers)


def plain_error(
    status: int,
    heading: str,
    message: str,
    advice: str,
    more: Mapping[str, Any] = _NOTHING_MORE,
    headers: tuple[tuple[str, str], ...] = (),
) -> View:
    """Return the page that says what went wrong and what to do; `more` has what else it can show."""
    values = {**_NOTHING_MORE, "heading": heading, "message": message, "advice": advice, **more}
    return View("error.html", values, title=heading, status=status, headers=headers)


def forbidden_view(roles: frozenset[Role]) -> View:
    """Return the page that says which role a page needs."""
    *most, last = [role.value for role in Role if role in roles]
    named = f"{', '.join(most)} or {last}" if most else last
    return plain_error(403, _TITLES[403], f"This page needs the role {named}.", _ADVICE[403])
