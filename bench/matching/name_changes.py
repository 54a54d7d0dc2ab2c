"""Changes to names written in Latin letters: as people mistype, shorten, adorn and translate them."""

# Rows of words are read more easily as one long text.
# ruff: noqa: E501, SIM905

import random
import re
import unicodedata
from collections.abc import Callable
from typing import NamedTuple

Chance = random.Random
#: Changes a text, or returns None where the change does not apply.
Change = Callable[[str, Chance], str | None]


class Person(NamedTuple):
    """A personal name in parts."""

    given: tuple[str, ...]
    family: tuple[str, ...]

    def __str__(self) -> str:
        return " ".join((*self.given, *self.family))


_PLAIN = re.compile(r"[A-Za-z][A-Za-z'’-]+")
_PATRONYMIC = re.compile(r"(?:vich|vych|vitch|ovna|evna|ivna|ichna)$", re.I)
_NEIGHBOURS = dict(
    zip(
        "abcdefghijklmnopqrstuvwxyz",
        "qws vghn xdfv serf wrd rtgd tyhf ygjb uok uikh jiol kop njk bhmj ipkl ol wa etdf awdz rfgy yij cfgb qes "
        "zsdc tghu asx".split(),
        strict=True,
    )
)


def person_of(text: str) -> Person | None:
    """Part a plain Latin name; family names are in upper case where the rest is not, else the last word."""
    words = text.split()
    if not 2 <= len(words) <= 5 or not all(_PLAIN.fullmatch(word) for word in words):
        return None
    if any(word.casefold() in ("bin", "ibn", "abu", "al", "el", "of", "the") for word in words[:1]):
        return None
    upper = [word.isupper() for word in words]
    place = upper.index(True) if any(upper) and not all(upper) and all(upper[upper.index(True) :]) else -1
    place = place if place > 0 else len(words) - 1
    return Person(tuple(words[:place]), tuple(words[place:]))


def has_patronymic(person: Person) -> bool:
    return len(person.given) == 2 and _PATRONYMIC.search(person.given[1]) is not None


def _word(text: str, chance: Chance, least: int) -> tuple[list[str], int] | None:
    words = text.split()
    long = [place for place, word in enumerate(words) if len(word) >= least and word.isalpha()]
    return (words, chance.choice(long)) if long else None


def _in_word(edit: Callable[[str, Chance], str | None], least: int = 6) -> Change:
    def change(text: str, chance: Chance) -> str | None:
        found = _word(text, chance, least)
        if found is None:
            return None
        words, place = found
        changed = edit(words[place], chance)
        if changed is None or changed.casefold() == words[place].casefold():
            return None
        words[place] = changed
        return " ".join(words)

    return change


def _neighbour(word: str, chance: Chance) -> str:
    place = chance.randrange(1, len(word))
    near = _NEIGHBOURS.get(word[place].casefold(), "e")
    return word[:place] + chance.choice(near) + word[place + 1 :]


def _doubled(word: str, chance: Chance) -> str:
    place = chance.randrange(1, len(word))
    return word[:place] + word[place] + word[place:]


def _missing(word: str, chance: Chance) -> str:
    place = chance.randrange(1, len(word))
    return word[:place] + word[place + 1 :]


def _inserted(word: str, chance: Chance) -> str:
    place = chance.randrange(1, len(word))
    return word[:place] + chance.choice("aeioustnrl") + word[place:]


def _transposed(word: str, chance: Chance) -> str | None:
    places = [place for place in range(len(word) - 1) if word[place].casefold() != word[place + 1].casefold()]
    place = chance.choice(places)
    return word[:place] + word[place + 1] + word[place] + word[place + 2 :]


def _first(word: str, chance: Chance) -> str:
    return chance.choice(_NEIGHBOURS.get(word[0].casefold(), "e")).upper() + word[1:]


def _without_vowels(word: str, _chance: Chance) -> str:
    return word[0] + re.sub("[aeiou]", "", word[1:], count=1, flags=re.I)


_OCR = (
    *(("rn", "m"), ("m", "rn"), ("cl", "d"), ("vv", "w"), ("w", "vv"), ("l", "1"), ("i", "1"), ("o", "0")),
    *(("s", "5"), ("b", "8"), ("e", "c"), ("h", "b"), ("n", "ri"), ("li", "h"), ("I", "l"), ("g", "9")),
)


def _ocr(word: str, chance: Chance) -> str | None:
    lower = word.lower()
    fitting = [pair for pair in _OCR if pair[0] in lower[1:]]
    if not fitting:
        return None
    old, new = chance.choice(fitting)
    return lower[0] + lower[1:].replace(old, new, 1)


def _split(word: str, chance: Chance) -> str:
    place = chance.randrange(3, len(word) - 2)
    return f"{word[:place]} {word[place:]}"


def _joined(text: str, chance: Chance) -> str | None:
    words = text.split()
    if len(words) < 3:
        return None
    place = chance.randrange(len(words) - 1)
    return " ".join([*words[:place], words[place] + words[place + 1], *words[place + 2 :]])


def _hyphened(text: str, chance: Chance) -> str | None:
    words = text.split()
    if len(words) < 3:
        return None
    place = chance.randrange(len(words) - 1)
    return " ".join([*words[:place], f"{words[place]}-{words[place + 1]}", *words[place + 2 :]])


def _fancy(text: str, chance: Chance) -> str:
    wide = "".join(chr(ord(letter) + 0xFEE0) if "!" <= letter <= "~" else letter for letter in text)
    return chance.choice(
        [text.lower(), text.upper(), wide, f"  {text.replace(' ', chr(0xA0))} ", f"“{text}”"]
    )


def _two_words(text: str, chance: Chance) -> str | None:
    words = text.split()
    long = [place for place, word in enumerate(words) if len(word) >= 7 and word.isalpha()]
    if len(long) < 2:
        return None
    for place in chance.sample(long, 2):
        words[place] = chance.choice([_missing, _neighbour, _doubled])(words[place], chance)
    return " ".join(words)


_HOMOGLYPHS = str.maketrans("aeocpxyABEKMHOPCTX", "аеосрхуАВЕКМНОРСТХ")


def _lookalike_letters(text: str, chance: Chance) -> str:
    return "".join(letter.translate(_HOMOGLYPHS) if chance.random() < 0.4 else letter for letter in text)


#: Changes of single letters and spaces, for names of all kinds.
TYPING: dict[str, Change] = {
    "keyboard neighbour": _in_word(_neighbour),
    "doubled letter": _in_word(_doubled, 4),
    "missing letter": _in_word(_missing),
    "inserted letter": _in_word(_inserted),
    "transposed letters": _in_word(_transposed, 5),
    "first letter": _in_word(_first, 7),
    "a vowel dropped": _in_word(_without_vowels),
    "optical reading": _in_word(_ocr, 5),
    "an error in each of two words": _two_words,
    "a word split": _in_word(_split, 7),
    "two words joined": _joined,
    "hyphen": _hyphened,
    "width, case, spaces": _fancy,
    "Cyrillic look-alike letters": _lookalike_letters,
}

_ACCENTS = {
    "turkish": {"i": "ı", "s": "ş", "c": "ç", "g": "ğ", "o": "ö", "u": "ü"},
    "polish": {"l": "ł", "z": "ż", "s": "ś", "c": "ć", "n": "ń", "e": "ę", "a": "ą", "o": "ó"},
    "vietnamese": {"a": "ạ", "e": "ế", "o": "ơ", "u": "ư", "d": "đ", "i": "ị", "y": "ỳ"},
    "czech": {"c": "č", "s": "š", "z": "ž", "r": "ř", "e": "ě", "u": "ů", "y": "ý", "d": "ď"},
    "romanian": {"s": "ș", "t": "ț", "a": "ă", "i": "î"},
    "hungarian": {"o": "ő", "u": "ű", "a": "á", "e": "é"},
    "spanish": {"n": "ñ", "a": "á", "o": "ó", "i": "í"},
    "scandinavian": {"o": "ø", "a": "å"},
    "azeri": {"a": "ə", "g": "ğ", "s": "ş", "i": "ı"},
}


def accents(style: str) -> Change:
    table = _ACCENTS[style]

    def change(text: str, chance: Chance) -> str | None:
        out = "".join(
            table.get(letter, letter) if chance.random() < 0.5 else letter for letter in text.lower()
        )
        decomposed = unicodedata.normalize("NFD", out)
        return None if out == text.lower() else chance.choice([out, decomposed]).title()

    return change


ACCENTS = {f"letters, {style}": accents(style) for style in _ACCENTS}


def _umlaut(text: str, _chance: Chance) -> str | None:
    lower = text.lower()
    for old, new in (("ue", "ü"), ("oe", "ö"), ("ae", "ä"), ("ss", "ß"), ("u", "ü"), ("o", "ö")):
        if re.search(rf"[^aeiouq]{old}[^aeiou]", lower):
            return re.sub(rf"(?<=[^aeiouq]){old}(?=[^aeiou])", new, lower, count=1).title()
    return None


#: Changes of a person's name as a whole.
PersonChange = Callable[[Person, Chance], str | None]
_TITLES = (
    "Dr.|Prof.|Mr|Mrs.|Sheikh|Shaykh|Hajji|Haji|Gen.|General|Maj. Gen.|Brig. Gen.|Lt. Col.|Col.|Capt.|Mullah|Mawlawi|"
    "Ayatollah|Hojatoleslam|Engineer|Engr.|Eng.|Ing.|Dipl.-Ing.|Herr|Frau|Mme|Sra.|Don|Sri|Shri|Datuk|Tan Sri|Haj|"
    "His Excellency|H.E.|Hon.|The Honourable|Sir|Lord|Rev.|Reverend|Father|Pastor|Bishop|Sen.|Senator|Rep.|Minister|"
    "Ambassador|President|Comrade|Sayyid|Ustad|Imam|Mufti|Maulana|Sultan|Amb.|Lic.|Arq.|Dott.|Avv.|Me|Sardar|Begum|"
    "Master|Sergeant|Admiral|Vice Admiral|Justice|Judge|Adv.|Prince|Crown Prince|Chief|Alhaji|Deputy Minister|Bp."
).split("|")
_SUFFIXES = ("Jr.", "Sr.", "III", "II", "PhD", "Ph.D.", "MD", "Esq.", "MBA", "CBE", "(ret.)", "Bey", "Khan")
_KUNYAS = ("Abu Khalid", "Abou Hamza", "Abu-Bakr", "Abu Umar", "Aboo Talha", "Abu al-Walid", "Um Ahmad")
_NICKNAMES = (
    "Aleksandr Sasha Shura Alex Sanya|Vladimir Vova Volodya Vlad|Dmitry Dima Mitya|Mikhail Misha Mike|Yevgeniy Zhenya|"
    "Nikolai Kolya Nick|Ivan Vanya|Konstantin Kostya|Pavel Pasha|Sergei Seryozha Serge|Viktor Vitya Vic|Yuri Yura|"
    "Anatoly Tolya|Boris Borya|Grigory Grisha|Aleksei Alyosha Lyosha|Andrei Andrey Andrew|Stanislav Stas Slava|"
    "Vasily Vasya|Petr Petya Peter|Tatiana Tanya|Yekaterina Katya Kate|Natalia Natasha|Olga Olya|Svetlana Sveta|"
    "Yelena Lena|Anastasia Nastya|Ludmila Lyuda|Irina Ira|Maria Masha Mary|Ksenia Ksyusha|Yulia Yulya|Lidia Lida|"
    "Francisco Paco Pancho Frank|Jose Pepe Joe|Jesus Chuy|Guadalupe Lupe|Enrique Quique Henry|Ignacio Nacho|"
    "Guillermo Memo William|Eduardo Lalo Eddie|Roberto Beto Robert|Alberto Beto Albert|Rafael Rafa|Manuel Manolo|"
    "Antonio Tono Tony Anthony|Luis Lucho Louis|Juan Juancho John|Carlos Charlie Charles|Miguel Mike Michael|"
    "Alejandro Alex Alexander|Fernando Nando|Rosario Chayo|Dolores Lola|Concepcion Concha|Mercedes Meche|"
    "Giuseppe Beppe Pino|Giovanni Gianni John|Luigi Gino|Salvatore Totò|Domenico Mimmo|Vincenzo Enzo|"
    "William Bill Will Billy|Robert Bob Rob Bobby|Richard Dick Rick|James Jim Jimmy|John Jack Johnny|Thomas Tom|"
    "Edward Ted Ed|Margaret Peggy Maggie|Elizabeth Liz Betty Beth|Katherine Kate Kathy|Joseph Joe|Michael Mike|"
    "Charles Chuck|David Dave|Daniel Dan Danny|Samuel Sam|Benjamin Ben|Anthony Tony|Stephen Steve|Timothy Tim|"
    "Gregory Greg|Kenneth Ken|Ronald Ron|Donald Don|Lawrence Larry|Gerald Jerry|Patricia Pat|Frederick Fred|"
    "Johannes Hans Johann|Friedrich Fritz|Heinrich Heinz|Wilhelm Willi|Josef Sepp|Maximilian Max|Katharina Kathe|"
    "Wladyslaw Wladek|Stanislaw Staszek|Jan Janek|Jerzy Jurek|Krzysztof Krzysiek|Katarzyna Kasia|Malgorzata Gosia|"
    "Mehmet Memo|Mustafa Mustapha|Ibrahim Ibo|Suleyman Sulo|Abdullah Abdul|Muhammad Mo|Yusuf Joseph|Ibrahim Abraham|"
    "Oleksandr Sashko|Volodymyr Vova|Mykola Kolya|Mykhailo Mykhas|Dmytro Dima|Andriy Andriyko|Georgios Yorgos|"
    "Dimitrios Dimitris|Ioannis Yannis|Konstantinos Kostas|Nikolaos Nikos|Panagiotis Panos"
).split("|")


def _order(person: Person, chance: Chance) -> str:
    return chance.choice(
        [
            " ".join((*person.family, *person.given)),
            f"{' '.join(person.family)}, {' '.join(person.given)}",
            " ".join((*person.given[1:], *person.family, person.given[0])),
        ]
    )


def _nickname(person: Person, chance: Chance) -> str | None:
    for row in _NICKNAMES:
        names = row.split()
        if person.given[0].casefold() == names[0].casefold():
            return str(person._replace(given=(chance.choice(names[1:]), *person.given[1:])))
    return None


def _particles(person: Person, chance: Chance) -> str | None:
    if len(person.family) < 2:
        return None
    joint = chance.choice([" de ", " y ", " da ", " de la ", "-", " e ", " e "])
    return " ".join(person.given) + " " + joint.join((person.family[0], " ".join(person.family[1:])))


def _compound(person: Person, _chance: Chance) -> str | None:
    text = str(person)
    changed = re.sub(r"(?i)\b(de la|de los|del|de|da|la|van der|van|von|mac|o')[ -](?=\w{3})", _glue, text)
    return changed if changed != text else None


def _glue(match: re.Match[str]) -> str:
    return match[0].replace(" ", "").replace("-", "")


def _kunya(person: Person, chance: Chance) -> str:
    return (
        f"{chance.choice(_KUNYAS)} {person}"
        if chance.random() < 0.5
        else f"{person} {chance.choice(_KUNYAS)}"
    )


def _arabic_joints(person: Person, chance: Chance) -> str | None:
    text = str(person)
    changed = re.sub(
        r"(?i)\b(al|el|ul)[- ]", lambda _m: chance.choice(["al-", "El ", "al", "el-", "ul ", "", "Al "]), text
    )
    changed = re.sub(
        r"(?i)\babd[aeu]l[ -]?", lambda _m: chance.choice(["Abd al-", "Abdul ", "Abdel", "Abd el "]), changed
    )
    changed = re.sub(
        r"(?i) (bin|ibn|ben) ", lambda _m: chance.choice([" ibn ", " Ben ", " b. ", " bin ", " "]), changed
    )
    return changed if changed.casefold() != text.casefold() else None


def _respelt(person: Person, _chance: Chance) -> str | None:
    text = str(person).lower()
    for old, new in (
        ("sh", "ch"),
        ("j", "dj"),
        ("kh", "h"),
        ("oo", "u"),
        ("ee", "i"),
        ("ou", "u"),
        ("q", "k"),
    ):
        if old in text:
            return text.replace(old, new).title()
    return None


PERSON: dict[str, PersonChange] = {
    "order": _order,
    "given name as an initial": lambda one, _c: (
        f"{one.given[0][0]}. " + " ".join((*one.given[1:], *one.family))
        if len(one.given) + len(one.family) > 2
        else None
    ),
    "middle name as an initial": lambda one, _c: (
        f"{one.given[0]} {one.given[1][0]}. {' '.join(one.family)}" if len(one.given) == 2 else None
    ),
    "middle name or patronymic missing": lambda one, _c: (
        f"{one.given[0]} {' '.join(one.family)}" if len(one.given) == 2 else None
    ),
    "second family name missing": lambda one, _c: (
        f"{' '.join(one.given)} {one.family[0]}" if len(one.family) == 2 and len(one.family[0]) > 3 else None
    ),
    "double name with de, y or hyphen": _particles,
    "particle joined": _compound,
    "married name added": lambda one, chance: (
        f"{one}-{chance.choice(['Schneider', 'Novak', 'Lindqvist', 'Okafor'])}"
        if len(one.given) + len(one.family) > 2
        else None
    ),
    "birth name added": lambda one, chance: (
        f"{one} ({chance.choice(['née', 'nee', 'geb.', 'born', 'z domu'])} Lindqvist)"
    ),
    "nickname": _nickname,
    "nickname in quotes": lambda one, chance: (
        f"{one.given[0]} “{chance.choice(['Tiger', 'El Gordo', 'Ghost'])}” "
        + " ".join((*one.given[1:], *one.family))
    ),
    "title": lambda one, chance: f"{chance.choice(_TITLES)} {one}",
    "two titles": lambda one, chance: f"{chance.choice(_TITLES)} {chance.choice(_TITLES)} {one}",
    "suffix": lambda one, chance: f"{one}{chance.choice([' ', ', '])}{chance.choice(_SUFFIXES)}",
    "kunya added": _kunya,
    "article, bin, abd al- joined and split": _arabic_joints,
    "spelling of another press": _respelt,
    "umlaut": lambda one, chance: _umlaut(str(one), chance),
}
