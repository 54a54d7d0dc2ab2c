"""What a case or an alert turned out to be, in the words that its form offers."""

from typing import Any, Final

from vettance.console.words import Words

#: The words of each resolution, by what the API calls it.
RESOLUTIONS: Final = {
    "FALSE_POSITIVE": Words("False alarm"),
    "TRUE_MATCH": Words("True: report it"),
    "ESCALATED": Words("Escalated"),
}


def with_resolution(one: dict[str, Any]) -> dict[str, Any]:
    """Return a case or an alert of the API with `turned_out`: its resolution in words, empty without one."""
    found = one["resolution"]
    return {**one, "turned_out": RESOLUTIONS.get(found, found) if found else ""}


def resolved_text(text: str) -> str:
    """Return what a case was resolved or proposed as, `FALSE_POSITIVE. Called.`, in words."""
    name, _, rest = text.partition(".")
    return f"{RESOLUTIONS[name]}.{rest}" if name in RESOLUTIONS else text
