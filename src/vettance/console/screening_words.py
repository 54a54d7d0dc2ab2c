"""What screenings are made of in plain words: outcomes, what is compared, lists, and what would tell most."""

import re
from collections.abc import Mapping
from typing import Any, Final

from vettance.console.words import Words
from vettance.watchlists.sources.source_table import SOURCES

#: What a screening came to.
OUTCOMES: Final[Mapping[str, str]] = {
    "AUTO_CLEAR": Words("Cleared"),
    "REVIEW": Words("To be reviewed"),
    "CONFIRMED": Words("Confirmed match"),
}
#: How much speaks for a match.
CLASSIFICATIONS: Final[Mapping[str, str]] = {
    "EXACT": Words("exact match"),
    "STRONG": Words("strong match"),
    "MODERATE": Words("moderate match"),
    "WEAK": Words("weak match"),
}
#: Whom one can ask about.
TYPES: Final = (
    ("INDIVIDUAL", Words("Person")),
    ("ORGANIZATION", Words("Organisation")),
    ("VESSEL", Words("Ship")),
    ("AIRCRAFT", Words("Aircraft")),
)
_PROFILES: Final = {
    "CONSERVATIVE": Words("Conservative: holds more"),
    "BALANCED": Words("Balanced"),
    "LIBERAL": Words("Liberal: holds less"),
}
#: What the components of a score are called.
COMPONENTS: Final[Mapping[str, str]] = {
    "name": Words("Name"),
    "alias": Words("Other name"),
    "dob": Words("Date of birth"),
    "nationality": Words("Nationality"),
    "idDocument": Words("Identity document"),
    "entityType": Words("Kind"),
    # Screenings that older versions kept.
    "birthDate": Words("Date of birth"),
    "country": Words("Country"),
    "document": Words("Identity document"),
    "type": Words("Kind"),
}
#: What the members of a request are called; a request of an event has a few more.
_MEMBERS: Final[Mapping[str, str]] = {
    "inputName": Words("Name"),
    "externalId": Words("Your own id"),
    "entityType": Words("Kind"),
    "inputDob": Words("Date of birth"),
    "inputNationality": Words("Nationality"),
    "inputAliases": Words("Other names"),
    "inputIdDocuments": Words("Identity documents"),
    "sensitivityProfile": Words("How sensitive"),
}
#: What is asked for where one fact more would tell most, by component.
_FACTS: Final[Mapping[str, str]] = {
    "dob": Words("Find out the date of birth"),
    "nationality": Words("Find out the nationality"),
    "idDocument": Words("Find out the number of an identity document"),
    "entityType": Words("Find out whether it is a person, an organisation, a ship or an aircraft"),
}
_VALUES: Final = {**dict(TYPES), **_PROFILES}
_TITLES: Final = {name: one.title for one in SOURCES.values() for name in (one.code, one.name)}
_TYPE_WORDS: Final = {
    "INDIVIDUAL": "a person",
    "ORGANIZATION": "an organisation",
    "VESSEL": "a ship",
    "AIRCRAFT": "an aircraft",
}
_RAW_TYPE: Final = re.compile(rf"\b(?:{'|'.join(_TYPE_WORDS)})\b")


def outcome_in_words(outcome: str) -> str:
    """Return what a screening came to."""
    return OUTCOMES.get(outcome, outcome)


def list_title(source: str) -> str:
    """Return what a watchlist is called, by its name or its code on the wire."""
    return _TITLES.get(source, source)


def subject_in_words(body: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return whom a request asks about: what each member is called, and what it says."""
    return [
        (_MEMBERS.get(name, name), _text(value))
        for name, value in body.items()
        if value not in (None, "", [], {})
    ]


def component_text(component: str, text: str) -> str:
    """Return what a match says of a component, with the kinds of subjects in words."""
    if component not in ("entityType", "type"):
        return text
    return _RAW_TYPE.sub(lambda found: _TYPE_WORDS[found[0]], text)


def fact_of_match(fact: Mapping[str, Any], score: int) -> str:
    """Say what one fact more would make of the score of a match."""
    asked, listed = _FACTS.get(fact["component"]), component_text(fact["component"], str(fact.get("listed")))
    if asked is None:
        return str(fact["explanation"])
    return (
        f"{asked}; the list has {listed}. The score of {score} becomes {fact['scoreIfAgrees']} if it agrees, "
        f"{fact['scoreIfContradicts']} if it contradicts."
    )


def fact_of_screening(fact: Mapping[str, Any]) -> str:
    """Say which fact more would clear most of those that are held."""
    asked = _FACTS.get(fact["component"])
    if asked is None:
        return str(fact["explanation"])
    cleared, held = fact["clearsGroups"], fact["groups"]
    if held == 1:
        return f"{asked}: where it contradicts, it clears the one subject that is held."
    return f"{asked}: where it contradicts, it clears {cleared} of the {held} subjects that are held."


def _text(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(map(_text, value))
    if isinstance(value, Mapping):
        return " ".join(_text(one) for one in value.values())
    return _VALUES.get(value, value) if isinstance(value, str) else str(value)
