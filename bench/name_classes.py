"""How matching fares on classes of names: recall or false positives for each kind of change, with the misses.

    python bench/name_classes.py                                    with the sample list
    python bench/name_classes.py --data ./vettance-data --search    with the lists imported there
    python bench/name_classes.py --data ./vettance-data --out cases.jsonl

Cases are made of listed names and of common names in several scripts, by a seed. Each pairs a query with one
name; `--search` puts those names on the lists and searches them all. What a class expects is true by its
construction, not read by a person. `--out` writes them for `vettance watchlist evaluate`.
"""

# Rows of words are read more easily as one long text.
# ruff: noqa: E501, SIM905

import argparse
import itertools
import json
import random
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
import name_changes as changes
import name_scripts as scripts
from name_changes import Chance, Person
from rapidfuzz.fuzz import ratio
from screen_bench import newest_index

import vettance.watchlists
from vettance.watchlists.build import build_index
from vettance.watchlists.entity import DocumentKind, Entity, EntityType
from vettance.watchlists.index import Index
from vettance.watchlists.labelled import Case, entity_of, judge_pair, subject_of
from vettance.watchlists.sources import own

BOUND = 75
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
            if (company := changes.company_of(entity.name)) is not None:
                pool.companies.append(company)
            pool.organizations.append(entity.name)
        elif entity.type is VESSEL:
            pool.vessels.append(entity)
        elif entity.type is AIRCRAFT:
            pool.aircraft.append(entity)
    return pool


def pair(tag: str, query: str, listed: str, kind: EntityType, *, match: bool = True, **more: Any) -> Case:
    """Make a case; `more` are `dob`, `country` and `ids` of the two sides, as `q_dob`, `c_dob` and so on."""
    asked: dict[str, Any] = {"name": query, "entityType": more.pop("q_type", kind).value}
    candidate: dict[str, Any] = {"name": listed, "entityType": kind.value}
    for key, value in more.items():
        (asked if key[0] == "q" else candidate)[key[2:]] = value
    return Case(query=asked, candidate=candidate, expected="match" if match else "no_match", tag=tag)


Maker = Callable[[Pool, Chance], Case | None]


def _of_culture(
    tag: str, words: Sequence[Sequence[str]], writings: Sequence[Callable[[str], str]]
) -> dict[str, Maker]:
    """Return makers of one culture: a name in two writings, and two names that share all but one word."""

    def name(chance: Chance) -> list[str]:
        return [chance.choice(row) for row in words]

    def written(parts: Sequence[str], chance: Chance, writing: Callable[[str], str]) -> str:
        text = [writing(part) for part in parts]
        if chance.random() < 0.2:
            text = [*text[-1:], *text[:-1]]
        return " ".join(text)

    def same(_pool: Pool, chance: Chance) -> Case:
        parts = name(chance)
        one, other = chance.sample(writings, 2)
        return pair(tag, written(parts, chance, one), written(parts, chance, other), PERSON)

    def other(_pool: Pool, chance: Chance) -> Case:
        parts, others = name(chance), name(chance)
        changed = list(parts)
        place = chance.choice([0, len(parts) - 1])
        while others[place] == parts[place]:
            others = name(chance)
        changed[place] = others[place]
        one, two = chance.sample(writings, 2)
        return pair(
            f"not: {tag}", written(parts, chance, one), written(changed, chance, two), PERSON, match=False
        )

    return {tag: same, f"not: {tag}": other}


def _cyrillic_cultures() -> dict[str, Maker]:
    makers: dict[str, Maker] = {}
    for label, words, systems in (
        ("Russian", scripts.RUSSIAN_WORDS, scripts.RUSSIAN),
        ("Ukrainian", scripts.UKRAINIAN_WORDS, scripts.UKRAINIAN),
    ):
        usual = ("bgn", "icao", "press") if label == "Russian" else ("bgn", "passport")
        every = [lambda word, s=system: scripts.cyrillic(word, s) for system in systems.values()]
        for system in systems:

            def chosen(word: str, s: tuple[dict[str, str], str] = systems[system]) -> str:
                return scripts.cyrillic(word, s)

            others = [
                lambda word, s=systems[one]: scripts.cyrillic(word, s) for one in usual if one != system
            ]
            makers |= {
                f"{label}: {system}": _one_against(f"{label}: {system}", words, chosen, [str, *others])
            }
        makers |= _of_culture(f"{label}: any two", words, [str, *every])
    return makers


def _one_against(
    tag: str,
    words: Sequence[Sequence[str]],
    one: Callable[[str], str],
    others: Sequence[Callable[[str], str]],
) -> Maker:
    def make(_pool: Pool, chance: Chance) -> Case:
        parts = [chance.choice(row) for row in words]
        other = chance.choice(others)
        return pair(tag, " ".join(map(one, parts)), " ".join(map(other, parts)), PERSON)

    return make


def _arabic() -> dict[str, Maker]:
    given, family = scripts.ARABIC_WORDS
    words = (given, given, family)
    writings = {
        style: (lambda word, s=system: scripts.arabic(word, s)) for style, system in scripts.ARABIC.items()
    }
    makers: dict[str, Maker] = {}
    for style, writing in writings.items():
        others = [writings[one] for one in ("plain", "sounded", "english") if one != style]
        makers[f"Arabic: {style}"] = _one_against(f"Arabic: {style}", words, writing, others)
        tag = f"Arabic script: {style}"
        makers[tag] = _one_against(tag, words, scripts.arabic_script, [writing])
    makers |= _of_culture("Arabic: any two", words, list(writings.values()))
    both = [scripts.arabic_script, writings["plain"], writings["english"], writings["french"]]
    makers["not: Arabic script"] = _of_culture("Arabic script", words, both)["not: Arabic script"]
    return makers


def _eastern() -> dict[str, Maker]:
    def chinese(chance: Chance) -> tuple[str, list[str]]:
        return chance.choice(list(scripts.CHINESE_FAMILY)), chance.sample(list(scripts.CHINESE_GIVEN), 2)

    def pinyin(family: str, given: Sequence[str], joint: str = "") -> str:
        text = joint.join(scripts.CHINESE_GIVEN[one] for one in given)
        return (
            f"{scripts.CHINESE_FAMILY[family].title()} {text.title() if joint != '-' else text.capitalize()}"
        )

    def giles(family: str, given: Sequence[str], chance: Chance) -> str:
        text = "-".join(scripts.wade_giles(scripts.CHINESE_GIVEN[one]) for one in given)
        whole = f"{scripts.wade_giles(scripts.CHINESE_FAMILY[family]).title()} {text.capitalize()}"
        return whole if chance.random() < 0.5 else whole.replace("'", "")

    def han(tag: str, *, match: bool, style: str) -> Maker:
        def make(_pool: Pool, chance: Chance) -> Case:
            family, given = chinese(chance)
            other = list(given)
            if not match:
                other[chance.randrange(2)] = chance.choice(
                    [one for one in scripts.CHINESE_GIVEN if one not in given]
                )
            latin = (
                giles(family, other, chance)
                if style == "giles"
                else pinyin(family, other, chance.choice(["", " ", "-"]))
            )
            asked = family + "".join(given) if style != "latin" else pinyin(family, given)
            if style == "giles" and chance.random() < 0.5:
                asked = pinyin(family, given, chance.choice(["", " "]))
            return pair(tag, asked, latin, PERSON, match=match)

        return make

    def korean(tag: str, *, match: bool) -> Maker:
        def make(_pool: Pool, chance: Chance) -> Case:
            family = chance.choice(list(scripts.KOREAN_FAMILY))
            given = chance.sample(scripts.KOREAN_GIVEN, 2)
            other = list(given)
            if not match:
                other[chance.randrange(2)] = chance.choice(
                    [one for one in scripts.KOREAN_GIVEN if one not in given]
                )

            def latin(parts: Sequence[str]) -> str:
                system = chance.choice([scripts._REVISED, scripts._MCCUNE, scripts._POPULAR])
                text = [scripts.hangul(one, system) for one in parts]
                joint = chance.choice(["-", " ", ""])
                return (
                    f"{chance.choice(scripts.KOREAN_FAMILY[family]).title()} {joint.join(text).capitalize()}"
                )

            asked = family + "".join(given) if chance.random() < 0.4 else latin(given)
            return pair(tag, asked, latin(other), PERSON, match=match)

        return make

    def romanised(system: str) -> Callable[[str], str]:
        return lambda word: scripts.kana(word, system)

    makers = {
        "Chinese: Han, pinyin": han("Chinese: Han, pinyin", match=True, style="pinyin"),
        "not: Chinese: Han, pinyin": han("not: Chinese: Han, pinyin", match=False, style="pinyin"),
        "Chinese: Wade-Giles": han("Chinese: Wade-Giles", match=True, style="giles"),
        "not: Chinese: Wade-Giles": han("not: Chinese: Wade-Giles", match=False, style="giles"),
        "Korean: any two": korean("Korean: any two", match=True),
        "not: Korean: any two": korean("not: Korean: any two", match=False),
    }
    kana = [str, *(romanised(system) for system in ("hepburn", "macron", "wapuro", "oh", "kunrei"))]
    return makers | _of_culture("Japanese: kana, any two", scripts.JAPANESE_WORDS, kana)


def _others() -> dict[str, Maker]:
    greek = [str, *((lambda word, s=s: scripts.greek(word, s)) for s in scripts.GREEK.values())]
    makers = _of_culture("Greek: any two", scripts.GREEK_WORDS, greek)
    rows = [
        [(one.split(":")[0], one.split(":")[1].split(",")) for one in row.split()]
        for row in scripts.HEBREW_WORDS
    ]

    def hebrew(tag: str, *, match: bool) -> Maker:
        def make(_pool: Pool, chance: Chance) -> Case:
            parts = [chance.choice(row) for row in rows]
            others = list(parts)
            if not match:
                place = chance.randrange(2)
                others[place] = chance.choice([one for one in rows[place] if one != parts[place]])
            native = chance.random() < 0.6
            asked = " ".join(one[0] if native else chance.choice(one[1]) for one in parts)
            return pair(tag, asked, " ".join(chance.choice(one[1]) for one in others), PERSON, match=match)

        return make

    return makers | {
        "Hebrew": hebrew("Hebrew", match=True),
        "not: Hebrew": hebrew("not: Hebrew", match=False),
    }


def _far(one: str, other: str) -> bool:
    return ratio(one.casefold(), other.casefold()) < 50


def _people() -> dict[str, Maker]:
    makers: dict[str, Maker] = {}
    for tag, person_change in changes.PERSON.items():

        def changed(pool: Pool, chance: Chance, tag: str = tag, change: Any = person_change) -> Case | None:
            person, _entity = chance.choice(pool.people)
            text = change(person, chance)
            return pair(tag, text, str(person), PERSON) if text else None

        makers[tag] = changed
    for tag, change in (changes.TYPING | changes.ACCENTS).items():

        def typed(pool: Pool, chance: Chance, tag: str = tag, change: Any = change) -> Case | None:
            person, _entity = chance.choice(pool.people)
            text = change(str(person), chance)
            return pair(tag, text, str(person), PERSON) if text else None

        makers[tag] = typed
    return makers


def _two_people(tag: str, combine: Callable[[Person, Person, Chance], tuple[str, str] | None]) -> Maker:
    def make(pool: Pool, chance: Chance) -> Case | None:
        (one, _), (two, _) = chance.choice(pool.people), chance.choice(pool.people)
        found = combine(one, two, chance)
        return pair(tag, *found, PERSON, match=False) if found else None

    return make


def _other_given(one: Person, two: Person, _chance: Chance) -> tuple[str, str] | None:
    if not _far(one.given[0], two.given[0]) or len(one.given) != len(two.given):
        return None
    return str(one), str(one._replace(given=two.given))


def _siblings(one: Person, two: Person, _chance: Chance) -> tuple[str, str] | None:
    if not changes.has_patronymic(one) or not _far(one.given[0], two.given[0]):
        return None
    if not changes.has_patronymic(two):
        return None
    if one.family[0].casefold().endswith("a") or two.given[0].endswith("a"):
        return None
    return str(one), str(one._replace(given=(two.given[0], one.given[1])))


def _cousins(one: Person, two: Person, _chance: Chance) -> tuple[str, str] | None:
    if len(one.family) != 2 or not _far(one.given[0], two.given[0]):
        return None
    return str(one), str(one._replace(given=two.given))


def _other_family(one: Person, two: Person, _chance: Chance) -> tuple[str, str] | None:
    if not _far(one.family[0], two.family[0]) or not _far(one.family[-1], two.family[-1]):
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
    if not _far(one.given[0], two.given[0]):
        return None
    return f"Abu {one.given[0]} {one.family[-1]}", f"Abu {two.given[0]} {one.family[-1]}"


def _dates() -> dict[str, Maker]:
    def dated(tag: str, shift: Callable[[str, Chance], str | None], *, match: bool) -> Maker:
        def make(pool: Pool, chance: Chance) -> Case | None:
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


def _organizations() -> dict[str, Maker]:
    makers: dict[str, Maker] = {}

    def of_core(tag: str, change: Any) -> Maker:
        def make(pool: Pool, chance: Chance) -> Case | None:
            core, form = chance.choice(pool.companies)
            text = change(core, chance)
            listed = f"{core} {form}"
            return pair(tag, f"{text} {form}", listed, ORGANIZATION) if text else None

        return make

    def form(tag: str, choose: Callable[[str, Chance], str]) -> Maker:
        def make(pool: Pool, chance: Chance) -> Case | None:
            core, own_form = chance.choice(pool.companies)
            return pair(
                tag, choose(own_form, chance).replace("{}", core).strip(), f"{core} {own_form}", ORGANIZATION
            )

        return make

    def forms_of(own_form: str) -> Sequence[str]:
        limited = own_form.casefold() in [one.casefold() for one in changes.LIMITED]
        return changes.LIMITED if limited else changes.STOCK

    for tag, change in changes.ORGANIZATION.items():
        makers[tag] = of_core(tag, change)
    for tag, change in changes.TYPING.items():
        makers[f"{tag}, organisations"] = of_core(f"{tag}, organisations", change)
    makers["form of the same kind"] = form(
        "form of the same kind",
        lambda own, chance: changes.with_form("{}", chance.choice(forms_of(own)), chance),
    )
    makers["form of any kind"] = form(
        "form of any kind",
        lambda _own, chance: changes.with_form(
            "{}", chance.choice([*changes.LIMITED, *changes.STOCK]), chance
        ),
    )
    makers["form left out"] = form("form left out", lambda _own, _chance: "{}")
    makers["form placed elsewhere"] = form(
        "form placed elsewhere", lambda own, chance: changes.with_form("{}", own, chance)
    )
    return makers


def _other_organizations() -> dict[str, Maker]:
    def distinctive(core: str) -> str:
        return max(core.split(), key=len)

    def two(tag: str, combine: Callable[[str, str, Chance], tuple[str, str] | None]) -> Maker:
        def make(pool: Pool, chance: Chance) -> Case | None:
            (one, form), (other, _) = chance.choice(pool.companies), chance.choice(pool.companies)
            found = combine(one, other, chance)
            if found is None:
                return None
            return pair(tag, f"{found[0]} {form}", f"{found[1]} {form}", ORGANIZATION, match=False)

        return make

    def one_word(one: str, other: str, _chance: Chance) -> tuple[str, str] | None:
        old, new = distinctive(one), distinctive(other)
        return (one, one.replace(old, new)) if len(one.split()) > 1 and _far(old, new) else None

    def extra(one: str, other: str, _chance: Chance) -> tuple[str, str] | None:
        new = distinctive(other)
        return (one, f"{one} {new}") if len(one.split()) == 1 and _far(one, new) else None

    def unit(one: str, _other: str, chance: Chance) -> tuple[str, str] | None:
        kind = chance.choice(
            ["{} {} Brigade", "{}, Battalion No. {}", "{} Unit {}", "{} {} Directorate", "Bureau {1} {0}"]
        )
        styles = [
            ("First", "Second"),
            ("5th", "6th"),
            ("121", "122"),
            ("II", "III"),
            ("39", "18"),
            ("Third", "Seventh"),
        ]
        left, right = chance.choice(styles)
        return kind.format(one, left), kind.format(one, right)

    def place(one: str, _other: str, chance: Chance) -> tuple[str, str] | None:
        left, right = chance.sample(
            ["Moscow", "Tehran", "Damascus", "Dubai", "Beijing", "Havana", "Minsk"], 2
        )
        return f"{one} {left}", f"{one} {right}"

    def generic(one: str, _other: str, chance: Chance) -> tuple[str, str] | None:
        left, right = chance.sample(
            "Shipping Bank Insurance Petroleum Construction Trading Airlines Chemical".split(), 2
        )
        return (f"{one} {left}", f"{one} {right}") if len(one.split()) == 1 else None

    def person(pool: Pool, chance: Chance) -> Case | None:
        one, _entity = chance.choice(pool.people)
        company = f"{one.family[-1]} {chance.choice(['Trading', 'Group', 'Holdings', 'Brothers', 'Foundation'])} LLC"
        return pair(
            "not: company named after a person", company, str(one), PERSON, match=False, q_type=ORGANIZATION
        )

    return {
        "not: one distinctive word differs": two("not: one distinctive word differs", one_word),
        "not: a distinctive word more": two("not: a distinctive word more", extra),
        "not: unit number differs": two("not: unit number differs", unit),
        "not: place differs": two("not: place differs", place),
        "not: line of business differs": two("not: line of business differs", generic),
        "not: company named after a person": person,
    }


def _craft() -> dict[str, Maker]:
    def ship(tag: str, change: Callable[[str, Chance], str | None], *, match: bool = True) -> Maker:
        def make(pool: Pool, chance: Chance) -> Case | None:
            name = chance.choice(pool.vessels).name
            text = change(name, chance)
            return pair(tag, text, name, VESSEL, match=match) if text and text != name else None

        return make

    def number(name: str, _chance: Chance) -> tuple[str, int] | None:
        head, _, tail = name.rpartition(" ")
        return (head, int(tail)) if head and tail.isdigit() else None

    def numbered(name: str, chance: Chance) -> str | None:
        found = number(name, chance)
        if found is None:
            return None
        head, value = found
        roman = {1: "I", 2: "II", 3: "III", 4: "IV", 5: "V", 6: "VI", 7: "VII", 8: "VIII", 9: "IX", 11: "XI"}
        words = {
            1: "One",
            2: "Two",
            3: "Three",
            4: "Four",
            5: "Five",
            6: "Six",
            7: "Seven",
            8: "Eight",
            9: "Nine",
        }
        styles = [
            f"{head}-{value}",
            f"{head}{value}",
            f"{head} No. {value}",
            f"{head} {value:03d}",
            f"{head} No {value}",
        ]
        styles += [f"{head} {roman[value]}"] if value in roman else []
        styles += [f"{head} {words[value]}"] if value in words else []
        return chance.choice(styles)

    def other_number(name: str, chance: Chance) -> str | None:
        found = number(name, chance)
        return f"{found[0]} {found[1] + chance.choice([1, 2, 10])}" if found else None

    def prefix(name: str, chance: Chance) -> str:
        return f"{chance.choice(['M/V', 'MV', 'M.V.', 'MT', 'M/T', 'M.T.', 'SS', 'F/V', 'M/Y', 'MY', 'LPG/C', 'VLCC', 'Vessel', 'Tanker'])} {name}"

    def aircraft(tag: str, change: Callable[[str, Chance], str], *, match: bool) -> Maker:
        def make(pool: Pool, chance: Chance) -> Case | None:
            name = chance.choice(pool.aircraft).name
            text = change(name, chance)
            return pair(tag, text, name, AIRCRAFT, match=match) if text != name else None

        return make

    def letter(name: str, chance: Chance) -> str:
        places = [place for place, one in enumerate(name) if one.isalnum()]
        place = places[-1 - chance.randrange(3)]
        near = "0123456789" if name[place].isdigit() else "ABCDEFGHKLMNPRST"
        return name[:place] + chance.choice([one for one in near if one != name[place]]) + name[place + 1 :]

    def tail(name: str, chance: Chance) -> str:
        bare = name.replace("-", "")
        return chance.choice(
            [bare, name.lower(), f"{bare[:2]} {bare[2:]}", f"{bare[:2]}-{bare[2:]}", bare.lower()]
        )

    def other_word(pool: Pool, chance: Chance) -> Case | None:
        one, other = chance.choice(pool.vessels).name.split(), chance.choice(pool.vessels).name.split()
        if len(one) != 2 or not one[0].isalpha() or not one[1].isalpha() or not _far(one[1], other[-1]):
            return None
        return pair("not: ship, a word differs", f"{one[0]} {other[-1]}", " ".join(one), VESSEL, match=False)

    def imo(tag: str, *, match: bool) -> Maker:
        def make(pool: Pool, chance: Chance) -> Case | None:
            entity, other = chance.choice(pool.vessels), chance.choice(pool.vessels)
            numbers = [one.value for one in entity.documents if one.kind is DocumentKind.IMO]
            if not numbers or entity.name == other.name:
                return None
            more = {"q_ids": [{"type": "IMO", "value": numbers[0] if match else "9074729"}]}
            more["c_ids"] = [{"type": "IMO", "value": numbers[0]}]
            name = other.name if match else entity.name
            return pair(tag, name, entity.name, VESSEL, match=match, **more)

        return make

    return {
        "ship: prefix": ship("ship: prefix", prefix),
        "ship: number written otherwise": ship("ship: number written otherwise", numbered),
        "ship: typing error": ship("ship: typing error", changes.TYPING["missing letter"]),
        "ship: former name in brackets": ship(
            "ship: former name in brackets", lambda name, _c: f"{name} (ex Sea Lark)"
        ),
        "ship: other name, IMO equal": imo("ship: other name, IMO equal", match=True),
        "aircraft: mark written otherwise": aircraft("aircraft: mark written otherwise", tail, match=True),
        "not: ship, same name, other IMO": imo("not: ship, same name, other IMO", match=False),
        "not: ship, other number": ship("not: ship, other number", other_number, match=False),
        "not: ship, a word differs": other_word,
        "not: aircraft, one letter off": aircraft("not: aircraft, one letter off", letter, match=False),
    }


def makers() -> dict[str, Maker]:
    """Return every class by its name; those that begin with `not:` must not match."""
    negatives = {
        "not: other given names": _other_given,
        "not: siblings with a patronymic": _siblings,
        "not: cousins with two family names": _cousins,
        "not: other family name": _other_family,
        "not: woman and man": _gender,
        "not: given name alone": _alone,
        "not: another kunya": _kunyas,
    }
    people = _people() | {tag: _two_people(tag, combine) for tag, combine in negatives.items()}
    return (
        _cyrillic_cultures() | _arabic() | _eastern() | _others() | people | _dates()
        | _organizations() | _other_organizations() | _craft()
    )  # fmt: skip


def cases_of(pool: Pool, count: int, seed: int, only: str) -> Iterator[Case]:
    """Yield up to `count` different cases of each class whose name contains `only`."""
    for tag, make in makers().items():
        if only.casefold() not in tag.casefold():
            continue
        chance = random.Random(f"{seed}/{tag}")
        seen: set[tuple[str, str]] = set()
        for _ in range(count * 40):
            try:
                case = make(pool, chance)
            except IndexError:
                # The list has nothing of the kind.
                break
            if case is None or case.candidate is None:
                continue
            key = (str(case.query["name"]), str(case.candidate["name"]))
            if key in seen or (key[0] == key[1] and "dob" not in case.query and "ids" not in case.query):
                continue
            seen.add(key)
            yield case
            if len(seen) == count:
                break


def searched(cases: Sequence[Case], entities: Sequence[Entity], folder: Path) -> Index:
    """Build an index of the lists and of the candidates of the cases, by the number of the case."""
    listed = []
    for number, case in enumerate(cases):
        assert case.candidate is not None
        listed.append(entity_of({**case.candidate, "id": f"class:{number}"}))
    build_index(folder / "index", itertools.chain(entities, listed), {"class": "made"})
    return Index(folder / "index")


def run(cases: Sequence[Case], index: Index | None) -> dict[str, Any]:
    """Judge the cases; return for each class how many there were, the rate and the misses."""
    found: dict[str, Any] = {}
    for number, case in enumerate(cases):
        row = found.setdefault(case.tag, {"cases": 0, "hits": 0, "misses": []})
        if index is None:
            match = judge_pair(case)
        else:
            matches = index.search(subject_of(case.query))
            match = next((one for one in matches if one.entity.id == f"class:{number}"), None)
            if match is None or match.score < BOUND:
                # Another entity of the same name stands for it.
                same = [one for one in matches if one.entity.name == str((case.candidate or {})["name"])]
                match = same[0] if same else match
        hit = match is not None and match.score >= BOUND
        row["cases"] += 1
        row["hits"] += hit
        if hit is not (case.expected == "match"):
            score = match.score if match is not None else 0
            row["misses"].append([case.query["name"], (case.candidate or {}).get("name"), score])
    return found


def summary(found: dict[str, Any], misses: int) -> dict[str, Any]:
    """Return rates: of a class that must match its recall, of one that must not its false positives."""
    rows = {}
    for tag, row in found.items():
        kind = "falsePositiveRate" if tag.startswith("not: ") else "recall"
        rows[tag] = {
            "cases": row["cases"],
            kind: round(row["hits"] / row["cases"], 4),
            "misses": row["misses"][:misses],
        }
    positive = [row for tag, row in found.items() if not tag.startswith("not: ")]
    negative = [row for tag, row in found.items() if tag.startswith("not: ")]
    totals = {}
    for name, group in (("recall", positive), ("falsePositiveRate", negative)):
        if cases := sum(row["cases"] for row in group):
            totals[name] = round(sum(row["hits"] for row in group) / cases, 4)
    return {"bound": BOUND, "classes": rows, "total": totals}


def sample() -> list[Entity]:
    """Return the entities of the sample list."""
    return list(own.read("sample", [Path(vettance.watchlists.__file__).parent / "sample" / "sample.csv"]))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, help="a data folder with imported lists; else the sample list")
    parser.add_argument("--count", type=int, default=200, help="cases of each class")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="", help="classes whose name contains this")
    parser.add_argument(
        "--search", action="store_true", help="search the lists with the made names among them"
    )
    parser.add_argument("--misses", type=int, default=0)
    parser.add_argument("--out", type=Path, help="write the cases here")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    entities = list(Index(newest_index(options.data)).all_entities()) if options.data else sample()
    cases = list(cases_of(pool_of(entities), options.count, options.seed, options.only))
    if options.out:
        options.out.write_bytes(b"\n".join(msgspec.json.encode(case) for case in cases) + b"\n")
    with tempfile.TemporaryDirectory() as folder:
        index = searched(cases, entities, Path(folder)) if options.search else None
        result = summary(run(cases, index), options.misses)
    if options.json:
        print(json.dumps(result, ensure_ascii=False, indent=2))
        return
    for tag, row in result["classes"].items():
        rate = row.get("recall", row.get("falsePositiveRate"))
        print(f"{tag:<44} {row['cases']:5d}  {100 * rate:6.1f} %")
        for asked, listed, score in row["misses"]:
            print(f"      {asked} / {listed}  {score}")
    print(result["total"])


if __name__ == "__main__":
    main()
