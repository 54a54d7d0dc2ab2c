"""Pairs drawn from the lists themselves: published names of one entity, changed names, and look-alikes.

Names fall into two halves by their letters. Who mends a fault looks at the misses of the first half; figures
are of the second.
"""

import enum
import itertools
import re
import unicodedata
import zlib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from rapidfuzz.fuzz import token_sort_ratio

from bench.matching import name_changes as changes
from bench.matching import name_companies as companies
from bench.matching.name_cases import ORGANIZATION, PERSON, VESSEL
from bench.matching.name_changes import Chance
from bench.matching.name_scripts import RUSSIAN
from vettance.watchlists.entity import Entity, EntityType, NameQuality
from vettance.watchlists.labelled import LabelledCase


class Half(enum.StrEnum):
    """Which half of the names is drawn from."""

    FIRST = "first"
    SECOND = "second"
    BOTH = "both"

    def has(self, text: str) -> bool:
        """Tell whether a name, as any list writes it, is in this half."""
        letters = "".join(sorted(letter for letter in text.casefold() if letter.isalnum()))
        place = zlib.crc32(letters.encode()) % 2
        return self is Half.BOTH or place == (self is Half.SECOND)


class Drawn(NamedTuple):
    """A case, the entity whose name it is made of, and that name."""

    case: LabelledCase
    entity: Entity | None
    listed: str


_SCRIPTS = {"ARABIC": "Arabic", "CYRILLIC": "Cyrillic", "GREEK": "Greek", "CJK": "Han", "HANGUL": "Hangul"}
#: Aliases that are alike to so many hundredths are spellings of the name; others translate or replace it.
_ALIKE = {PERSON: 80, ORGANIZATION: 85}
#: So many years apart are the birth dates of two people.
_YEARS_APART = (7, 12, 19, 26)


def script_of(text: str) -> str:
    """Return the script of a name that has none but that script's letters, "Latin" or "" for a mixture."""
    found = set()
    for letter in text:
        if letter.isalpha():
            found.add(unicodedata.name(letter, "OTHER").split()[0])
    return (
        _SCRIPTS.get(next(iter(found)), "Latin" if found == {"LATIN"} else "other") if len(found) == 1 else ""
    )


def latin_names(entity: Entity) -> list[str]:
    """Return the names of an entity that are in Latin letters."""
    return [name.text for name in entity.names if script_of(name.text) == "Latin"]


def own_script(entities: Sequence[Entity], kind: EntityType, half: Half) -> dict[str, list[Drawn]]:
    """Return for each script every name in it of an entity, with the entity under its Latin names alone."""
    found: dict[str, dict[str, Drawn]] = defaultdict(dict)
    for entity in entities:
        latin = latin_names(entity) if entity.type is kind else []
        for name in entity.names if latin else ():
            script = script_of(name.text)
            if script in ("", "Latin", "other") or not half.has(name.text):
                continue
            if kind is ORGANIZATION and _translated(entity, name.text, script):
                continue
            tag = f"own script/{script}/{kind.value.casefold()}"
            case = _case(tag, name.text, latin, kind)
            found[script].setdefault(name.text, Drawn(case, entity, name.text))
    return {script: list(drawn.values()) for script, drawn in found.items()}


def _translated(entity: Entity, text: str, script: str) -> bool:
    """Tell whether a name may be a translation: Bulgarian and Greek are languages of the EU's list."""
    return entity.source.startswith("eu") and (
        script == "Greek" or (script == "Cyrillic" and not _NOT_BULGARIAN.search(text))
    )


_NOT_BULGARIAN = re.compile("[ыэёіїєўґ]", re.IGNORECASE)


def aliases(entities: Sequence[Entity], kind: EntityType, half: Half) -> list[Drawn]:
    """Return published strong aliases that are spellings of the primary name, with that name alone."""
    found = {}
    for entity in entities:
        if entity.type is not kind or script_of(entity.name) != "Latin" or not half.has(entity.name):
            continue
        for name in entity.names:
            if name.quality is NameQuality.WEAK or script_of(name.text) != "Latin":
                continue
            alike = token_sort_ratio(_letters(name.text), _letters(entity.name))
            if _ALIKE[kind] <= alike and _letters(name.text) != _letters(entity.name):
                case = _case(f"alias/{kind.value.casefold()}", name.text, [entity.name], kind)
                found[_letters(name.text)] = Drawn(case, entity, entity.name)
    return list(found.values())


def _letters(text: str) -> str:
    return " ".join(re.findall(r"\w+", text.casefold()))


def _case(
    tag: str, query: str, names: Sequence[str], kind: EntityType, *, match: bool = True, **more: Any
) -> LabelledCase:
    candidate = {"name": names[0], "aliases": list(names[1:]), "entityType": kind.value}
    candidate |= {"dob": [more.pop("c_dob")]} if "c_dob" in more else {}
    asked = {"name": query, "entityType": kind.value} | {key[2:]: value for key, value in more.items()}
    return LabelledCase(query=asked, candidate=candidate, expected="match" if match else "no_match", tag=tag)


_BACK = {
    system: sorted(
        ((latin, letter) for letter, latin in table.items() if latin and letter not in "ъьёэ"),
        key=lambda pair: (-len(pair[0]), pair[1]),
    )
    for system, (table, _initial) in RUSSIAN.items()
    if system in ("bgn", "icao")
}
_SLAVIC = re.compile(r"(?i)(?:ov|ev|in|sky|skiy|skii|enko|ova|eva|ina|skaya)$")


def _to_cyrillic(text: str, chance: Chance) -> str | None:
    """Write a Slavic name in Cyrillic, letter by letter."""
    words = text.split()
    if not any(_SLAVIC.search(word) for word in words) or not text.isascii():
        return None
    pairs = _BACK[chance.choice(sorted(_BACK))]
    rest, out = text.casefold(), ""
    while rest:
        latin, letter = next((pair for pair in pairs if rest.startswith(pair[0])), (rest[0], rest[0]))
        out, rest = out + letter, rest[len(latin) :]
    return out.title() if re.search(r"[a-z]", out) is None else None


_RESPELT = (
    *(("sh", "sch"), ("sh", "ch"), ("zh", "j"), ("kh", "h"), ("kh", "ch"), ("oo", "u"), ("ee", "i")),
    *(("ou", "u"), ("iy", "i"), ("yu", "iu"), ("ya", "ia"), ("q", "k"), ("ck", "k"), ("ph", "f"), ("w", "v")),
)


def _respelt(text: str, chance: Chance) -> str | None:
    """Write a sound as another press does."""
    lower = text.casefold()
    fitting = [pair for pair in _RESPELT if pair[0] in lower]
    if not fitting:
        return None
    old, new = chance.choice(fitting)
    return lower.replace(old, new).title()


def _glued(text: str, _chance: Chance) -> str | None:
    return text.replace(" ", "") if 1 < len(text.split()) < 4 else None


_TYPING = {
    kind: changes.TYPING[kind]
    for kind in (
        *("keyboard neighbour", "doubled letter", "missing letter", "inserted letter", "transposed letters"),
        *("first letter", "an error in each of two words", "a word split", "two words joined", "hyphen"),
    )
}
_WRITING = {"transliterated to Cyrillic": _to_cyrillic, "another press": _respelt, "spaces lost": _glued}
_PERSON = (
    *("order", "title", "article, bin, abd al- joined and split", "double name with de, y or hyphen"),
    *("middle name as an initial", "middle name or patronymic missing"),
)


def _changed(entity: Entity, chance: Chance) -> tuple[str, str] | None:
    """Return (kind of change, changed name) of an entity's name; None where the kind does not apply."""
    text = entity.name
    if entity.type is PERSON:
        person = changes.person_of(text)
        kind = chance.choice([*_TYPING, *_WRITING, *_PERSON])
        if person is None:
            return None
        if kind in _PERSON:
            return _named(kind, changes.PERSON[kind](person, chance), text)
        return _named(kind, (_TYPING | _WRITING)[kind](str(person), chance), text)
    company = companies.company_of(text)
    if entity.type is ORGANIZATION and company is not None:
        core, form = company
        limited = form.casefold() in [one.casefold() for one in companies.LIMITED]
        forms = companies.LIMITED if limited else companies.STOCK
        kind = chance.choice([*_TYPING, *_WRITING, "form left out", "form of the same kind", "word order"])
        if kind == "form left out":
            return _named(kind, core, text)
        if kind == "form of the same kind":
            return _named(kind, companies.with_form(core, chance.choice(forms), chance), text)
        if kind == "word order":
            shuffled = companies.ORGANIZATION["word order, organisations"](core, chance)
            return _named(kind, shuffled and f"{shuffled} {form}", text)
        changed = (_TYPING | _WRITING)[kind](core, chance)
        return _named(kind, changed and f"{changed} {form}", text)
    kind = chance.choice([*_TYPING])
    return _named(kind, _TYPING[kind](text, chance), text)


def _named(kind: str, changed: str | None, text: str) -> tuple[str, str] | None:
    return (kind, changed) if changed and changed.casefold() != text.casefold() else None


def perturbed(entities: Sequence[Entity], count: int, half: Half, chance: Chance) -> list[Drawn]:
    """Return listed names changed in one way each: typing, order, joints, company forms, writing."""
    pool = [one for one in entities if one.type in (PERSON, ORGANIZATION, VESSEL)]
    found: list[Drawn] = []
    for _ in range(count * 60 if pool else 0):
        entity = chance.choice(pool)
        if len(found) == count:
            break
        if script_of(entity.name) != "Latin" or not half.has(entity.name):
            continue
        change = _changed(entity, chance)
        if change is not None:
            kind, text = change
            case = _case(f"changed/{kind}", text, [entity.name], entity.type)
            found.append(Drawn(case, entity, entity.name))
    return found


def look_alikes(entities: Sequence[Entity], count: int, half: Half, chance: Chance) -> list[Drawn]:
    """Return pairs that are two: entities of one list that share one word, namesakes born in other years,
    names in their own script against somebody else, ships whose numbers differ."""
    makers = (
        _sharing(entities, PERSON, half, chance),
        _sharing(entities, ORGANIZATION, half, chance),
        _namesakes(entities, half, chance),
        _near_namesakes(entities, half, chance),
        _strangers(entities, half, chance),
        _ships(entities, half, chance),
    )
    return [drawn for maker in makers for drawn in itertools.islice(maker, count // len(makers))]


def _sharing(entities: Sequence[Entity], kind: EntityType, half: Half, chance: Chance) -> Iterator[Drawn]:
    """Yield pairs of one list whose names have one word of five letters and more in common."""
    by_word: dict[tuple[str, str], list[Entity]] = defaultdict(list)
    for entity in entities:
        if entity.type is kind and script_of(entity.name) == "Latin":
            for word in set(_letters(entity.name).split()):
                if len(word) > 4:
                    by_word[entity.source, word].append(entity)
    words = sorted(key for key, group in by_word.items() if 1 < len(group) < 60)
    chance.shuffle(words)
    for key in words:
        one, other = chance.sample(by_word[key], 2)
        left, right = (
            {word for name in latin_names(each) for word in _letters(name).split()} for each in (one, other)
        )
        mine, others = set(_letters(one.name).split()), set(_letters(other.name).split())
        shared = {word for word in left & right if len(word) > 3}
        if shared == {key[1]} and min(len(mine), len(others)) > 2 and half.has(one.name + other.name):
            tag = f"not: one word shared/{kind.value.casefold()}"
            yield Drawn(_case(tag, one.name, [other.name], kind, match=False), other, one.name)


def _namesakes(entities: Sequence[Entity], half: Half, chance: Chance) -> Iterator[Drawn]:
    people = [one for one in entities if one.type is PERSON and _born(one) and half.has(one.name)]
    for entity in chance.sample(people, len(people)):
        born = str(_born(entity))
        year = int(born[:4]) + chance.choice((-1, 1)) * chance.choice(_YEARS_APART)
        other = f"{year}-{chance.randint(1, 12):02d}-{chance.randint(1, 28):02d}"
        tag = "not: namesake, other birth date"
        yield Drawn(
            _case(tag, entity.name, [entity.name], PERSON, match=False, q_dob=other, c_dob=born),
            entity,
            entity.name,
        )


def _near_namesakes(entities: Sequence[Entity], half: Half, chance: Chance) -> Iterator[Drawn]:
    """Yield two people of one list whose names are much alike and whose birth dates are years apart."""
    groups: dict[tuple[str, str], list[Entity]] = defaultdict(list)
    for entity in entities:
        if entity.type is PERSON and _born(entity):
            for word in _letters(entity.name).split():
                groups[entity.source, word].append(entity)
    pairs = set()
    for _key, group in sorted(groups.items(), key=lambda item: item[0]):
        for one, other in itertools.combinations(group[:40], 2):
            apart = abs(int(str(_born(one))[:4]) - int(str(_born(other))[:4]))
            alike = token_sort_ratio(_letters(one.name), _letters(other.name))
            if apart >= 4 and alike >= _ALIKE[PERSON] and half.has(one.name + other.name):
                pairs.add((one.id, other.id))
    known = {one.id: one for one in entities}
    found = sorted(pairs)
    chance.shuffle(found)
    for one_id, other_id in found:
        one, other = known[one_id], known[other_id]
        tag = "not: near namesake, other birth date"
        more = {"q_dob": str(_born(one)), "c_dob": str(_born(other))}
        yield Drawn(_case(tag, one.name, [other.name], PERSON, match=False, **more), other, one.name)


def _born(entity: Entity) -> str | None:
    """Return the one whole birth date of an entity."""
    whole = {birth.first for birth in entity.births if len(birth.first) == 10 and birth.first[5:] != "01-01"}
    return next(iter(whole)) if len(entity.births) == 1 and whole else None


def _strangers(entities: Sequence[Entity], half: Half, chance: Chance) -> Iterator[Drawn]:
    drawn = [
        one
        for kind in (PERSON, ORGANIZATION)
        for rows in own_script(entities, kind, half).values()
        for one in rows
    ]
    for one in chance.sample(drawn, len(drawn)):
        kind = EntityType(str(one.case.query["entityType"]))
        other = chance.choice([each for each in entities if each.type is kind])
        if one.entity is None or {*latin_names(other)} & {*latin_names(one.entity)} or not latin_names(other):
            continue
        tag = "not: own script, somebody else"
        yield Drawn(_case(tag, one.listed, latin_names(other), kind, match=False), other, one.listed)


def _ships(entities: Sequence[Entity], half: Half, chance: Chance) -> Iterator[Drawn]:
    ships = [one for one in entities if one.type is VESSEL and half.has(one.name)]
    for entity in chance.sample(ships, len(ships)):
        head, _, tail = entity.name.rpartition(" ")
        if head and tail.isdigit():
            name = f"{head} {int(tail) + chance.choice((1, 2, 10, 100))}"
            tag = "not: ship, other number"
            yield Drawn(_case(tag, name, [entity.name], VESSEL, match=False), entity, name)


def pairs(entities: Sequence[Entity], count: int, half: Half, chance: Chance) -> Iterable[Drawn]:
    """Return the mixture by which F1 is measured: names of one entity, and half as many look-alikes."""
    drawn = perturbed(entities, count // 2, half, chance)
    for kind in (PERSON, ORGANIZATION):
        for rows in (aliases(entities, kind, half), *own_script(entities, kind, half).values()):
            share = count // 8 if rows and "alias" in rows[0].case.tag else count // 24
            drawn.extend(chance.sample(rows, min(len(rows), share)))
    return [*drawn, *look_alikes(entities, count // 2, half, chance)]
