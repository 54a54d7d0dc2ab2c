"""Subjects of audit entries: what the records that they name are called, and the pages where they are."""

import re
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from vettance.console.audit_details import TYPE_WORDS
from vettance.console.list_actions import ROOT as LISTS
from vettance.console.page import own_path, url_of
from vettance.console.words import Words
from vettance.ids import is_id

#: Where records have their pages, by the prefix of their ids.
_PAGES: Final[Mapping[str, str]] = {
    "evt": "/console/decisions/{}",
    "cas": "/console/aml/cases/{}",
    "scr": "/console/aml/screenings/{}",
    "whs": "/console/webhooks/{}",
    "blk": "/console/queue/bulk/{}",
    "sug": "/console/rules/suggestions?id={}",
    "bkt": "/console/rules/backtests/{}",
}
#: The same, where the action is one on AML rules.
_AML_PAGES: Final[Mapping[str, str]] = {"bkt": "/console/rules/aml/backtests/{}"}
#: Where numbers of versions have their pages, by the path of the action.
_VERSIONS: Final = (
    (
        re.compile(r" /(api/v1/aml/rulesets|console/rules/aml/versions)/\{version\}"),
        "/console/rules/aml/versions/{}",
    ),
    (re.compile(r" /(api/v1/rulesets|console/rules/versions)/\{version\}"), "/console/rules/versions/{}"),
    (re.compile(r" /(api/v1|console)/models/\{version\}"), "/console/models/{}"),
)
#: Actions after which the record is gone, so that its page is.
_ENDS: Final = re.compile(r"^DELETE |/remove$")
_SESSION: Final = Words("a session of their own")


class AuditSubject(NamedTuple):
    """What an entry is about: its name in words, empty where the id is all there is, and its page, if any."""

    words: str
    url: str


def subject_of(told: Mapping[str, Any], names: Mapping[str, str]) -> AuditSubject:
    """Return what an entry of the log is about; `names` are people, keys and organisations by their ids."""
    action, subject = told["action"], told["subject"]
    if is_id(subject, "ses"):
        return AuditSubject(_SESSION, "")
    url = "" if _ENDS.search(action) else _page_of(action, subject)
    if is_id(subject, "lst") and (listed := _listed(told)) is not None:
        kind, value = listed
        return AuditSubject(f"{TYPE_WORDS.get(kind, kind)} {value}", url_of(LISTS, value=value))
    return AuditSubject(names.get(subject, ""), url)


def _listed(told: Mapping[str, Any]) -> tuple[str, str] | None:
    """Return the type and the value that went on a list or off it, where the log still has them."""
    for side in (told["before"], told["after"]):
        one = side[0] if isinstance(side, list) and side else side
        if not isinstance(one, dict):
            continue
        kind, value = one.get("type"), one.get("value")
        if isinstance(entry := one.get("entry"), str):  # As the forms of other pages have it.
            kind, _, value = entry.partition(" ")
        if isinstance(kind, str) and isinstance(value, str):
            return kind, value
    return None


def _page_of(action: str, subject: str) -> str:
    """Return the page of what has an id, of a version, or the page itself that is the subject."""
    first = subject.partition(", ")[0]  # An action on a part of something names the whole before it.
    if first.isascii() and first.isdigit():
        return next((page for path, page in _VERSIONS if path.search(action)), "").format(first)
    places = {**_PAGES, **_AML_PAGES} if "/aml/" in action else _PAGES
    root = next((page for prefix, page in places.items() if is_id(first, prefix)), "")
    if root:
        return root.format(first)
    return subject if own_path(subject) == subject else ""
