"""The features that models are made from: the set in force, an editor that checks it, and its versions."""

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from vettance.console.models_page import PATH as MODELS
from vettance.console.page import ADMINS, ConsolePage, PageAnswer, View, Visit, url_of
from vettance.console.rule_place import RULE_READERS
from vettance.console.words import Words
from vettance.errors import Conflict, Refusal

PATH: Final = f"{MODELS}/features"
_API: Final = "/api/v1/models/features"
_VERSIONS_SHOWN: Final = 20
#: Lines of a document shown before and behind one with a fault.
_AROUND: Final = 2
_DIGITS_MAX: Final = 9


class MarkedLine(NamedTuple):
    """A line of a document with what is wrong with it; without a number where lines are left out."""

    number: int
    text: str
    faults: Sequence[Any]


async def features(visit: Visit) -> PageAnswer:
    """GET /console/models/features: the set in force, and the versions."""
    one = await visit.ask("GET", _API)
    asked = {"limit": _VERSIONS_SHOWN, "cursor": visit.query.get("cursor")}
    page = await visit.ask("GET", f"{_API}/versions", asked)
    models = await visit.ask("GET", "/api/v1/models")
    serving = [row for row in models["data"] if row["state"] == "champion" and row["mode"] != "off"]
    otherwise = [row["version"] for row in serving if row["card"].get("featureSet") != one["featureSet"]]
    family = visit.query.get("family")
    counts: dict[str, int] = {}
    for feature in one["features"]:
        counts[feature["family"]] = counts.get(feature["family"], 0) + 1
    shown = [feature for feature in one["features"] if family in ("", feature["family"])]
    following = page.get("nextCursor")
    values = {
        "one": one,
        "path": PATH,
        "otherwise": otherwise[0] if otherwise else None,
        "own_count": sum(feature["own"] for feature in one["features"]),
        "families": [("", len(one["features"])), *sorted(counts.items())],
        "family": family,
        "features": sorted(shown, key=lambda feature: not feature["own"]),
        "rows": [_counted(row) for row in page["data"]],
        "total": page["total"],
        "next": url_of(PATH, cursor=following) if following else "",
        "may_write": visit.may(*ADMINS),
    }
    return View("features.html", values, title=Words("Features"))


async def version(visit: Visit) -> PageAnswer:
    """GET /console/models/features/versions/{version}: what one changed, and its document."""
    one = await visit.ask("GET", f"{_API}/versions/{visit.path['version']}")
    newest = (await visit.ask("GET", _API))["version"]
    values = {
        "one": one,
        "path": PATH,
        "newest": newest,
        "changes": one["changes"],
        "may_write": visit.may(*ADMINS),
        "may_return": visit.may(*ADMINS) and one["version"] != newest,
    }
    return View("feature_version.html", values, title=f"Version {one['version']}")


async def edit(visit: Visit) -> PageAnswer:
    """GET /console/models/features/edit: the document of a version, else of the one in force."""
    in_force = await visit.ask("GET", _API)
    number = visit.query.get("version")
    one = await visit.ask("GET", f"{_API}/versions/{number}") if number.isdigit() else in_force
    return _editor(one["document"], "", in_force["version"])


async def check(visit: Visit) -> PageAnswer:
    """POST /console/models/features/check: what is wrong with the text; that alone where a script asks."""
    document = _text(visit)
    found = await _checked(visit, document)
    if visit.is_partial:
        return View("feature_check.html", {"found": found}, title=Words("Check"))
    return _editor(document, visit.form.get("note"), _base(visit), found)


async def save(visit: Visit) -> PageAnswer:
    """POST /console/models/features/save: put the text in force. What is refused comes back as typed."""
    document, note, base = _text(visit), visit.form.get("note"), _base(visit)
    body = {"document": document, "note": note, "over": base}
    try:
        made = await visit.ask("PUT", _API, body=body)
    except Conflict as conflict:
        newest = conflict.details.get("version", base)
        return _editor(document, note, newest, refused=conflict, other=newest)
    except Refusal as refused:
        if refused.status not in (400, 422):
            raise
        return _editor(document, note, base, _found_of(refused, document), refused=refused)
    return visit.redirect(f"{PATH}/versions/{made['version']}", notice="features-saved")


async def go_back(visit: Visit) -> PageAnswer:
    """POST /console/models/features/rollback: the set of an earlier version in force again."""
    to, base = visit.form.get("to"), visit.form.get("base")
    body = {name: int(said) for name, said in (("to", to), ("over", base)) if _is_number(said)}
    made = await visit.ask("POST", f"{_API}/rollback", body=body)
    return visit.redirect(f"{PATH}/versions/{made['version']}", notice="features-saved")


def _text(visit: Visit) -> str:
    """Return the document as it was typed; browsers send two characters for the end of a line."""
    return visit.form.raw("document").replace("\r\n", "\n")


def _base(visit: Visit) -> int:
    """Return the version that the text was written over."""
    said = visit.form.get("base")
    return int(said) if _is_number(said) else 0


def _is_number(said: str) -> bool:
    return said.isascii() and said.isdigit() and len(said) <= _DIGITS_MAX


async def _checked(visit: Visit, document: str) -> Mapping[str, Any]:
    """Return what is wrong with a document, or what it would change."""
    try:
        would = await visit.ask("PUT", _API, body={"document": document, "dryRun": True})
    except Refusal as refused:
        if refused.status not in (400, 422):
            raise
        return _found_of(refused, document)
    return {"ok": True, "lines": marked_lines(document, would["faults"]), **would}


def _found_of(refused: Refusal, document: str) -> Mapping[str, Any]:
    faults = refused.details.get("faults", [])
    return {
        "ok": False,
        "faults": faults,
        "lines": marked_lines(document, faults),
        "message": refused.message,
    }


def marked_lines(document: str, faults: Sequence[Any]) -> list[MarkedLine]:
    """Return the lines of a document around its faults, each with those that it has."""
    by_line: dict[int, list[Any]] = {}
    for fault in faults:
        number = fault["line"] if isinstance(fault, Mapping) else fault.line
        by_line.setdefault(number or 0, []).append(fault)
    found: list[MarkedLine] = []
    if 0 in by_line:
        found.append(MarkedLine(0, "", by_line.pop(0)))
    last = 0
    lines = document.split("\n")
    for number, text in enumerate(lines, 1):
        is_end = number == len(lines) and not text and number not in by_line
        if is_end or not any(number + away in by_line for away in range(-_AROUND, _AROUND + 1)):
            continue
        if last and number > last + 1:
            found.append(MarkedLine(0, "…", ()))
        found.append(MarkedLine(number, text, by_line.get(number, ())))
        last = number
    return found


def _counted(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return a version for the list, with the names of what it changed."""
    kinds = ("added", "changed", "removed")
    names = {kind: [one["name"] for one in row["changes"] if one["kind"] == kind] for kind in kinds}
    return {**row, **names}


def _editor(
    document: str,
    note: str,
    base: int,
    found: Mapping[str, Any] | None = None,
    *,
    refused: Refusal | None = None,
    other: int | None = None,
) -> View:
    values = {
        "path": PATH,
        "document": document,
        "note": note,
        "base": base,
        "found": found,
        "other": other,
        "message": refused.message if refused is not None else "",
    }
    status = refused.status if refused is not None else 200
    return View("feature_editor.html", values, title=Words("Edit"), status=status)


PAGES: Final = (
    ConsolePage("GET", PATH, RULE_READERS, features),
    ConsolePage("GET", f"{PATH}/versions/{{version}}", RULE_READERS, version),
    ConsolePage("GET", f"{PATH}/edit", ADMINS, edit),
    ConsolePage("POST", f"{PATH}/check", ADMINS, check),
    ConsolePage("POST", f"{PATH}/save", ADMINS, save),
    ConsolePage("POST", f"{PATH}/rollback", ADMINS, go_back),
)
