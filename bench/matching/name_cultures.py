"""Classes of names by culture: one name in two ways of writing, and names that share all but one word."""

from collections.abc import Callable, Sequence
from functools import partial

from bench.matching import name_scripts as scripts
from bench.matching.name_cases import PERSON, Maker, Pool, pair
from bench.matching.name_changes import Chance
from vettance.watchlists.labelled import LabelledCase


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

    def same(_pool: Pool, chance: Chance) -> LabelledCase:
        parts = name(chance)
        one, other = chance.sample(writings, 2)
        return pair(tag, written(parts, chance, one), written(parts, chance, other), PERSON)

    def other(_pool: Pool, chance: Chance) -> LabelledCase:
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
    def make(_pool: Pool, chance: Chance) -> LabelledCase:
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
        def make(_pool: Pool, chance: Chance) -> LabelledCase:
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
        def make(_pool: Pool, chance: Chance) -> LabelledCase:
            family = chance.choice(list(scripts.KOREAN_FAMILY))
            given = chance.sample(scripts.KOREAN_GIVEN, 2)
            other = list(given)
            if not match:
                other[chance.randrange(2)] = chance.choice(
                    [one for one in scripts.KOREAN_GIVEN if one not in given]
                )

            def latin(parts: Sequence[str]) -> str:
                system = chance.choice([scripts.REVISED, scripts.MCCUNE, scripts.POPULAR])
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
    kana: list[Callable[[str], str]] = [
        str,
        *(romanised(system) for system in ("hepburn", "macron", "wapuro", "oh", "kunrei")),
    ]
    return makers | _of_culture("Japanese: kana, any two", scripts.JAPANESE_WORDS, kana)


def _others() -> dict[str, Maker]:
    greek: list[Callable[[str], str]] = [
        str,
        *(partial(scripts.greek, system=system) for system in scripts.GREEK.values()),
    ]
    makers = _of_culture("Greek: any two", scripts.GREEK_WORDS, greek)
    rows = [
        [(one.split(":")[0], one.split(":")[1].split(",")) for one in row.split()]
        for row in scripts.HEBREW_WORDS
    ]

    def hebrew(tag: str, *, match: bool) -> Maker:
        def make(_pool: Pool, chance: Chance) -> LabelledCase:
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


def cultures() -> dict[str, Maker]:
    """Return every class of this file by its name."""
    return _cyrillic_cultures() | _arabic() | _eastern() | _others()
