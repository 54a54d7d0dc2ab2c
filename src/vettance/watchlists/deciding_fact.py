"""Deciding facts: what was not compared, and which one fact more would confirm or clear a match most."""

from collections.abc import Mapping

import msgspec

from vettance.reference.countries import NAMES
from vettance.watchlists.compare import is_unique
from vettance.watchlists.entity import BirthDate, Entity, EntityType, NameQuality
from vettance.watchlists.match import COMPARISONS, EntityMatch, Subject, confirms, weigh

_SHOWN_MAX = 4
_OTHER_NATIONALITY = 0.3


class DecidingFact(msgspec.Struct, frozen=True, kw_only=True):
    """A fact that was not sent, and the scores, 0 to 100, if it turns out to agree or to contradict."""

    component: str
    member: str
    listed: str
    if_agrees: int
    if_contradicts: int


#: Component → the member of a request that says it.
MEMBERS = {
    "dob": "inputDob",
    "nationality": "inputNationality",
    "idDocument": "inputIdDocuments",
    "entityType": "entityType",
}


def _sent(subject: Subject) -> Mapping[str, bool]:
    return {
        "dob": subject.birth is not None,
        "nationality": bool(subject.countries),
        "idDocument": bool(subject.documents),
        "entityType": subject.type is not None,
    }


def listed_of(entity: Entity, component: str) -> str:
    """Return in words what a list says of a component, empty where it says nothing."""
    if component == "dob":
        said = [_birth_text(birth) for birth in entity.births]
    elif component == "nationality":
        said = [NAMES.get(code, code) for code in entity.countries]
    elif component == "idDocument":
        said = [f"{document.kind.value.replace('_', ' ')} {document.value}" for document in entity.documents]
    else:
        said = [] if entity.type is EntityType.UNKNOWN else [entity.type.value]
    said = list(dict.fromkeys(said))
    more = len(said) - _SHOWN_MAX
    return ", ".join(said[:_SHOWN_MAX]) + (f" and {more} more" if more > 0 else "")


def _birth_text(birth: BirthDate) -> str:
    text = f"{birth.first} to {birth.last}" if birth.last else birth.first
    return f"about {text}" if birth.approximate else text


def not_compared(subject: Subject, found: EntityMatch) -> dict[str, str]:
    """Return for each component that did not count a sentence that says which side did not say it."""
    sent = _sent(subject)
    said: dict[str, str] = {}
    for row in COMPARISONS:
        if row.component in found.components:
            continue
        listed = listed_of(found.entity, row.component)
        if sent[row.component]:
            tail = f"the list has {listed}, which says nothing of it." if listed else "the list does not say."
            said[row.component] = f"Sent; {tail}"
        else:
            said[row.component] = f"Not sent; {f'the list has {listed}.' if listed else 'nor is it listed.'}"
    return said


def deciding_fact(subject: Subject, found: EntityMatch) -> DecidingFact | None:
    """Return the fact whose answer moves the score most; None when all was sent or it is confirmed."""
    if confirms(found):
        return None
    carrier = max(
        (part for part in ("name", "alias") if part in found.components),
        key=lambda part: found.components[part].points,
    )
    name = found.components[carrier].value
    weak = found.listed_name.quality is NameQuality.WEAK
    values = {
        row.component: found.components[row.component].value
        for row in COMPARISONS
        if row.component in found.components
    }
    sent = _sent(subject)
    best: DecidingFact | None = None
    for component, member in MEMBERS.items():
        listed = listed_of(found.entity, component)
        if sent[component] or not listed:
            continue
        scores = [
            round(100 * weigh(name, values | {component: value}, carrier, weak=weak)[0])
            for value in (1.0, _contradiction(component, found.entity))
        ]
        if best is None or scores[0] - scores[1] > best.if_agrees - best.if_contradicts:
            best = DecidingFact(
                component=component,
                member=member,
                listed=listed,
                if_agrees=scores[0],
                if_contradicts=scores[1],
            )
    return best if best is not None and best.if_agrees > best.if_contradicts else None


def _contradiction(component: str, entity: Entity) -> float:
    """Return the value of a component that contradicts as much as it can."""
    if component == "nationality":
        return _OTHER_NATIONALITY
    if component == "idDocument":
        # Somebody may have many passports and registrations, but one IMO number or LEI.
        return 0.0 if any(is_unique(document.kind) for document in entity.documents) else 0.5
    return 0.0
