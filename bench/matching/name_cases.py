"""A case of matching as it is made: the names at hand, and what a maker returns."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from rapidfuzz.fuzz import ratio

from bench.matching import name_changes as changes
from bench.matching import name_companies as companies
from bench.matching.name_changes import Chance, Person
from vettance.watchlists.entity import Entity, EntityType
from vettance.watchlists.labelled import LabelledCase

PERSON, ORGANIZATION = EntityType.INDIVIDUAL, EntityType.ORGANIZATION
VESSEL, AIRCRAFT = EntityType.VESSEL, EntityType.AIRCRAFT


@dataclass
class Pool:
    """The names that cases are made of."""

    people: list[tuple[Person, Entity]] = field(default_factory=list)
    companies: list[tuple[str, str]] = field(default_factory=list)
    organizations: list[str] = field(default_factory=list)
    vessels: list[Entity] = field(default_factory=list)
    aircraft: list[Entity] = field(default_factory=list)


def pool_of(entities: Sequence[Entity]) -> Pool:
    """Sort the entities into what cases can be made of."""
    pool = Pool()
    for entity in entities:
        if entity.type is PERSON and (person := changes.person_of(entity.name)) is not None:
            pool.people.append((person, entity))
        elif entity.type is ORGANIZATION and entity.name.isascii():
            if (company := companies.company_of(entity.name)) is not None:
                pool.companies.append(company)
            pool.organizations.append(entity.name)
        elif entity.type is VESSEL:
            pool.vessels.append(entity)
        elif entity.type is AIRCRAFT:
            pool.aircraft.append(entity)
    return pool


def pair(
    tag: str, query: str, listed: str, kind: EntityType, *, match: bool = True, **more: Any
) -> LabelledCase:
    """Make a case; `more` are `dob`, `country` and `ids` of the two sides, as `q_dob`, `c_dob` and so on."""
    asked: dict[str, Any] = {"name": query, "entityType": more.pop("q_type", kind).value}
    candidate: dict[str, Any] = {"name": listed, "entityType": kind.value}
    for key, value in more.items():
        (asked if key[0] == "q" else candidate)[key[2:]] = value
    return LabelledCase(query=asked, candidate=candidate, expected="match" if match else "no_match", tag=tag)


#: Makes a case of some names, or returns None where these make none.
Maker = Callable[[Pool, Chance], LabelledCase | None]
#: Makes a case, or returns None where these names make none.


def far(one: str, other: str) -> bool:
    """Tell whether two words are too far apart to be taken for one."""
    return ratio(one.casefold(), other.casefold()) < 50
