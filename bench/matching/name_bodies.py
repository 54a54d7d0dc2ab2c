"""Classes of names of companies, other organisations, ships and aircraft."""

# Rows of words are read more easily as one long text.
# ruff: noqa: E501, SIM905

from collections.abc import Callable, Sequence
from typing import Any

from bench.matching import name_changes as changes
from bench.matching import name_companies as companies
from bench.matching.name_cases import AIRCRAFT, ORGANIZATION, PERSON, VESSEL, Maker, Pool, far, pair
from bench.matching.name_changes import Chance
from vettance.watchlists.entity import DocumentKind
from vettance.watchlists.labelled import LabelledCase


def _organizations() -> dict[str, Maker]:
    makers: dict[str, Maker] = {}

    def of_core(tag: str, change: Any) -> Maker:
        def make(pool: Pool, chance: Chance) -> LabelledCase | None:
            core, form = chance.choice(pool.companies)
            text = change(core, chance)
            listed = f"{core} {form}"
            return pair(tag, f"{text} {form}", listed, ORGANIZATION) if text else None

        return make

    def form(tag: str, choose: Callable[[str, Chance], str]) -> Maker:
        def make(pool: Pool, chance: Chance) -> LabelledCase | None:
            core, own_form = chance.choice(pool.companies)
            return pair(
                tag, choose(own_form, chance).replace("{}", core).strip(), f"{core} {own_form}", ORGANIZATION
            )

        return make

    def forms_of(own_form: str) -> Sequence[str]:
        limited = own_form.casefold() in [one.casefold() for one in companies.LIMITED]
        return companies.LIMITED if limited else companies.STOCK

    for tag, change in companies.ORGANIZATION.items():
        makers[tag] = of_core(tag, change)
    for tag, change in changes.TYPING.items():
        makers[f"{tag}, organisations"] = of_core(f"{tag}, organisations", change)
    makers["form of the same kind"] = form(
        "form of the same kind",
        lambda own, chance: companies.with_form("{}", chance.choice(forms_of(own)), chance),
    )
    makers["form of any kind"] = form(
        "form of any kind",
        lambda _own, chance: companies.with_form(
            "{}", chance.choice([*companies.LIMITED, *companies.STOCK]), chance
        ),
    )
    makers["form left out"] = form("form left out", lambda _own, _chance: "{}")
    makers["form placed elsewhere"] = form(
        "form placed elsewhere", lambda own, chance: companies.with_form("{}", own, chance)
    )
    return makers


def _other_organizations() -> dict[str, Maker]:
    def distinctive(core: str) -> str:
        return max(core.split(), key=len)

    def two(tag: str, combine: Callable[[str, str, Chance], tuple[str, str] | None]) -> Maker:
        def make(pool: Pool, chance: Chance) -> LabelledCase | None:
            (one, form), (other, _) = chance.choice(pool.companies), chance.choice(pool.companies)
            found = combine(one, other, chance)
            if found is None:
                return None
            return pair(tag, f"{found[0]} {form}", f"{found[1]} {form}", ORGANIZATION, match=False)

        return make

    def one_word(one: str, other: str, _chance: Chance) -> tuple[str, str] | None:
        old, new = distinctive(one), distinctive(other)
        return (one, one.replace(old, new)) if len(one.split()) > 1 and far(old, new) else None

    def extra(one: str, other: str, _chance: Chance) -> tuple[str, str] | None:
        new = distinctive(other)
        return (one, f"{one} {new}") if len(one.split()) == 1 and far(one, new) else None

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

    def person(pool: Pool, chance: Chance) -> LabelledCase | None:
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
        def make(pool: Pool, chance: Chance) -> LabelledCase | None:
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
        def make(pool: Pool, chance: Chance) -> LabelledCase | None:
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

    def other_word(pool: Pool, chance: Chance) -> LabelledCase | None:
        one, other = chance.choice(pool.vessels).name.split(), chance.choice(pool.vessels).name.split()
        if len(one) != 2 or not one[0].isalpha() or not one[1].isalpha() or not far(one[1], other[-1]):
            return None
        return pair("not: ship, a word differs", f"{one[0]} {other[-1]}", " ".join(one), VESSEL, match=False)

    def imo(tag: str, *, match: bool) -> Maker:
        def make(pool: Pool, chance: Chance) -> LabelledCase | None:
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


def bodies() -> dict[str, Maker]:
    """Return every class of this file by its name."""
    return _organizations() | _other_organizations() | _craft()
