"""Classes of names of people: changes to one name, two people who must not match, and dates of birth."""

from collections.abc import Callable
from typing import Any

from bench.matching import name_changes as changes
from bench.matching.name_cases import PERSON, Maker, Pool, far, pair
from bench.matching.name_changes import Chance, Person
from vettance.watchlists.labelled import LabelledCase


def _people() -> dict[str, Maker]:
    makers: dict[str, Maker] = {}
    for tag, person_change in changes.PERSON.items():

        def changed(
            pool: Pool, chance: Chance, tag: str = tag, change: Any = person_change
        ) -> LabelledCase | None:
            person, _entity = chance.choice(pool.people)
            text = change(person, chance)
            return pair(tag, text, str(person), PERSON) if text else None

        makers[tag] = changed
    for tag, change in (changes.TYPING | changes.ACCENTS).items():

        def typed(pool: Pool, chance: Chance, tag: str = tag, change: Any = change) -> LabelledCase | None:
            person, _entity = chance.choice(pool.people)
            text = change(str(person), chance)
            return pair(tag, text, str(person), PERSON) if text else None

        makers[tag] = typed
    return makers


def _two_people(tag: str, combine: Callable[[Person, Person, Chance], tuple[str, str] | None]) -> Maker:
    def make(pool: Pool, chance: Chance) -> LabelledCase | None:
        (one, _), (two, _) = chance.choice(pool.people), chance.choice(pool.people)
        found = combine(one, two, chance)
        return pair(tag, *found, PERSON, match=False) if found else None

    return make


def _other_given(one: Person, two: Person, _chance: Chance) -> tuple[str, str] | None:
    if not far(one.given[0], two.given[0]) or len(one.given) != len(two.given):
        return None
    return str(one), str(one._replace(given=two.given))


def _siblings(one: Person, two: Person, _chance: Chance) -> tuple[str, str] | None:
    if not changes.has_patronymic(one) or not far(one.given[0], two.given[0]):
        return None
    if not changes.has_patronymic(two):
        return None
    if one.family[0].casefold().endswith("a") or two.given[0].endswith("a"):
        return None
    return str(one), str(one._replace(given=(two.given[0], one.given[1])))


def _cousins(one: Person, two: Person, _chance: Chance) -> tuple[str, str] | None:
    if len(one.family) != 2 or not far(one.given[0], two.given[0]):
        return None
    return str(one), str(one._replace(given=two.given))


def _other_family(one: Person, two: Person, _chance: Chance) -> tuple[str, str] | None:
    if not far(one.family[0], two.family[0]) or not far(one.family[-1], two.family[-1]):
        return None
    return str(one), str(one._replace(family=two.family))


def _gender(one: Person, _two: Person, _chance: Chance) -> tuple[str, str] | None:
    if not changes.has_patronymic(one) or not one.family[0].casefold().endswith(("ov", "ev", "in")):
        return None
    family = tuple(word + "a" for word in one.family)
    other = one.given[1][:-2] + "na" if one.given[1].endswith("ich") else None
    if other is None:
        return None
    name = one.given[0] + "a" if one.given[0].endswith("r") else "Irina"
    return str(one), " ".join((name, one.given[1][:-2].removesuffix("i") + "na", *family))


def _alone(one: Person, two: Person, _chance: Chance) -> tuple[str, str] | None:
    return (one.given[0], str(one)) if len(one.given) > 1 and len(one.given[0]) > 3 and two else None


def _kunyas(one: Person, two: Person, _chance: Chance) -> tuple[str, str] | None:
    if not far(one.given[0], two.given[0]):
        return None
    return f"Abu {one.given[0]} {one.family[-1]}", f"Abu {two.given[0]} {one.family[-1]}"


def _dates() -> dict[str, Maker]:
    def dated(tag: str, shift: Callable[[str, Chance], str | None], *, match: bool) -> Maker:
        def make(pool: Pool, chance: Chance) -> LabelledCase | None:
            person, entity = chance.choice(pool.people)
            births = [one.first for one in entity.births if len(one.first) == 10 and not one.last]
            if len(births) != 1 or len(entity.births) != 1 or births[0].endswith("-01-01"):
                return None
            asked = shift(births[0], chance)
            if asked is None:
                return None
            more: dict[str, Any] = {"q_dob": asked, "c_dob": births}
            if "country" in tag:
                if not entity.countries:
                    return None
                more |= {"q_country": entity.countries[0], "c_country": list(entity.countries)}
            return pair(tag, str(person), str(person), PERSON, match=match, **more)

        return make

    def moved(years: int) -> Callable[[str, Chance], str | None]:
        def shift(text: str, chance: Chance) -> str | None:
            year = int(text[:4]) + years * chance.choice([-1, 1])
            return (
                f"{year}-{chance.randrange(1, 13):02d}-{chance.randrange(1, 29):02d}"
                if years > 1
                else (f"{year}{text[4:]}" if not text.endswith("02-29") else None)
            )

        return shift

    return {
        "date: day and month swapped": dated(
            "date: day and month swapped",
            lambda text, _c: f"{text[:4]}-{text[8:]}-{text[5:7]}" if int(text[8:]) <= 12 else None,
            match=True,
        ),
        "date: year only": dated("date: year only", lambda text, _c: text[:4], match=True),
        "date: a year off": dated("date: a year off", moved(1), match=True),
        "date: a year off, country agrees": dated("date: a year off, country agrees", moved(1), match=True),
        "not: date: ten years off": dated("not: date: ten years off", moved(10), match=False),
        "not: date: twenty-five years off": dated("not: date: twenty-five years off", moved(25), match=False),
    }


def people() -> dict[str, Maker]:
    """Return every class of this file by its name."""
    negatives = {
        "not: other given names": _other_given,
        "not: siblings with a patronymic": _siblings,
        "not: cousins with two family names": _cousins,
        "not: other family name": _other_family,
        "not: woman and man": _gender,
        "not: given name alone": _alone,
        "not: another kunya": _kunyas,
    }
    others = {tag: _two_people(tag, combine) for tag, combine in negatives.items()}
    return _people() | others | _dates()
