"""Names: from the text of a list or a request to words that can be compared."""

import enum
import re
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

from vettance.reference.countries import PLACE_WORDS
from vettance.watchlists.entity import EntityType, clean
from vettance.watchlists.forms import FORM_PARTS, apart, correct_form, form_at, gathered, together
from vettance.watchlists.mandarin import is_syllables, syllables_of
from vettance.watchlists.name_token import NameToken, TokenKind, make_word
from vettance.watchlists.titles_as_names import with_titles_as_names
from vettance.watchlists.transliteration import WritingSystem, romanise
from vettance.watchlists.usual_spellings import read_place
from vettance.watchlists.vocabulary import (
    ABBREVIATIONS,
    FORMS,
    GENERIC_WORDS,
    KIN_WORDS,
    MEANINGS,
    NUMBER_WORDS,
    PARTICLES,
    ROMAN,
    SHIP_PREFIXES,
    STOP_WORDS,
    TITLES,
)


class Grammar(enum.IntEnum):
    """By whose rules a name is read."""

    PERSON = 0
    ORGANIZATION = 1
    CRAFT = 2


GRAMMARS = {
    EntityType.INDIVIDUAL: Grammar.PERSON,
    EntityType.ORGANIZATION: Grammar.ORGANIZATION,
    EntityType.VESSEL: Grammar.CRAFT,
    EntityType.AIRCRAFT: Grammar.CRAFT,
}


class Name(NamedTuple):
    """A name as words, read by `grammar`.

    `others`: what else each word may stand for (word, its spelling, that of the word as it is), if any may.
    `likened`: places of words read as one of the other name that is only related to what they mean.
    """

    text: str
    grammar: Grammar
    words: tuple[NameToken, ...]
    others: tuple[tuple[tuple[NameToken, str, str], ...], ...] = ()
    likened: frozenset[int] = frozenset()


#: More words than this say nothing more about who is meant; a bound on the work that one name can cause.
WORDS_MAX = 16
#: The same for one word: the longest real ones are German and Thai, and far shorter.
WORD_LETTERS_MAX = 40

_QUOTES = re.compile("['’ʼ‘`ʹʻ´ʿʾ‛′\"“”„«»]")
_DOTTED = re.compile(r"\b(?:[^\W\d_]\.){2,}(?:[^\W\d_]\b\.?)?")
#: A surname in capitals written on to a given name, AlaeddinSENGULER, and an article on to its word, elHatib.
_GLUED = re.compile(r"(?<=[a-z]{3})(?=[A-Z]{3})|(?<=\b[aeu]l)(?=[A-Z][a-z]{2})")
#: Two names of a person written together: AbdallahAsad. Of companies such letters are one name: PetroChina.
_GLUED_NAMES = re.compile(r"(?<=[a-z]{3})(?=[A-Z][a-z]{2}|[A-Z]{2}\b)")
_DOTTED_TITLE = re.compile(r"^(?:H\. ?[EHM]|S\. ?E|Ph\. ?D)\.\s+", re.IGNORECASE)
_SEPARATORS = re.compile(r"[\s\-‐-―.,;:/\\()\[\]{}|+*&@#!?<>=_~^%$·•،؛。、・‧]+")
_one_place = lru_cache(maxsize=16384)(read_place)
_PATRONYMIC = re.compile(
    r"(?:[oaeiy]vi[ct]c?h|[oe]v[iy]t?ch|vich|vych|vitj|ovytj|[oe]vna|[iy]vna|ichna"
    # Belarusian, German, Dutch, Romanian, Lithuanian; Czech -ovic and Polish -owicz are surnames elsewhere.
    r"|[ae]una|[oe]w(?:itsch|na)|[oe]vitsj|[oe]vici(?:us)?)$"
)
_LONE_DIGITS = str.maketrans("01345689", "oieasbbg")


def parse_name(text: str, grammar: Grammar) -> Name:
    """Read a name by the rules of what it names; it has at least one word unless the text has none."""
    return _parse(text, grammar)


@lru_cache(maxsize=4096)
def _parse(text: str, grammar: Grammar) -> Name:
    if grammar is not Grammar.PERSON:
        text = _without_acronym(text)
    raw = _split(text, dotted=grammar is not Grammar.PERSON)
    if grammar is Grammar.PERSON:
        words = _person(raw, text)
    else:
        words = _organization(raw) if grammar is Grammar.ORGANIZATION else _craft(raw)
    return Name(text, grammar, tuple(words[:WORDS_MAX]))


_ACRONYM = re.compile(r"\s*(?:\(([A-Za-z](?:-?[A-Za-z]){1,7})\)|/ ?([A-Z]{2,8}))\s*$")
_JOINED_FORM = re.compile(r"(?<=[a-z]{2})(?=[A-Z]{2,6}$)")
#: A short form with its point, written on to the last word: USAINC., Quarryco.
_POINTED_FORM = re.compile(r"(?<=[a-z]{3})(?=(?:inc|ltd|llc|corp|plc|co)\.$)", re.IGNORECASE)


def _without_acronym(text: str) -> str:
    """Drop the acronym that repeats a name in brackets, and part a company form written on to its word."""
    match = _ACRONYM.search(text)
    if match is not None and match.start() > 4:
        acronym = (match[1] or match[2]).casefold()
        if text[:1].casefold() == acronym[0] and acronym not in PLACE_WORDS:
            return text[: match.start()]
    text = _POINTED_FORM.sub(" ", text)
    head, _, tail = _JOINED_FORM.sub(" ", text).rpartition(" ")
    return f"{head} {tail}" if (tail.casefold(),) in FORMS else text


class _NamePart(NamedTuple):
    text: str
    script: WritingSystem


def _split(text: str, *, dotted: bool) -> list[_NamePart]:
    """Return the romanised words of a text in their order."""
    text = _GLUED.sub(" ", _DOTTED_TITLE.sub("", _QUOTES.sub("", clean(text))))
    if not dotted:
        text = _GLUED_NAMES.sub(" ", text)
    else:
        text = _DOTTED.sub(lambda match: match[0].replace(".", ""), text)
    parts: list[_NamePart] = []
    for raw in _SEPARATORS.split(text):
        if not raw:
            continue
        # The Arabic article is written together with its word; in Latin letters it is apart.
        article = raw.startswith("ال") and len(raw) > 4
        if article:
            parts.append(_NamePart("al", WritingSystem.LATIN))
        plain, script = romanise(raw[2 if article else 0 : WORD_LETTERS_MAX])
        parts.extend(_NamePart(word, script) for word in plain.split())
        if len(parts) > WORDS_MAX * 2:
            break
    return parts


def _person(parts: Sequence[_NamePart], whole: str) -> list[NameToken]:
    words: list[NameToken] = []
    parts = _compounds(parts)
    for index, (raw, script) in enumerate(parts):
        if raw.isdigit():
            continue
        # Digits among the letters of a person's name are letters that were mistyped or disguised.
        text = raw if raw.isalpha() else raw.translate(_LONE_DIGITS)
        consonantal = script is WritingSystem.CONSONANTAL
        kind = _person_kind(text, consonantal=consonantal)
        if kind is TokenKind.NAME and len(text) <= 3 and _is_article(parts, index):
            kind = TokenKind.PARTICLE
        words.append(make_word(text, kind, consonantal))
    words = with_titles_as_names(words, whole)
    if not any(word.kind <= TokenKind.PATRONYMIC for word in words):
        # A name of nothing but titles and particles is still a name: "Al Haj".
        words = [
            make_word(word.text, TokenKind.NAME, word.consonantal) if len(word.text) > 1 else word
            for word in words
        ]
    return _syllabic(words)


#: Kinds that a name may have besides its syllables.
_UNVOICED = frozenset({TokenKind.INITIAL, TokenKind.TITLE})
#: Particles that may begin a name of nothing but syllables: Bin Ali.
_SONS = frozenset({"bin", "ben"})


def _syllabic(words: list[NameToken]) -> list[NameToken]:
    """Tell the syllables of a name that is made of nothing else.

    He, Ho and Pan are family names then and no titles, nor is Lo a particle where the name begins or ends.
    """
    places = [
        place for place, word in enumerate(words) if word.kind not in _UNVOICED or is_syllables(word.text)
    ]
    syllables = syllables_of([words[place].text for place in places])
    if syllables is None:
        return words
    words = list(words)
    for place, found in zip(places, syllables, strict=True):
        word = words[place]
        outside = place == places[-1] or (place == places[0] and word.text not in _SONS)
        if word.kind is TokenKind.TITLE or (word.kind is TokenKind.PARTICLE and outside):
            word = make_word(word.text, TokenKind.NAME, word.consonantal)
        words[place] = word._replace(syllables=found)
    return words


_ABD = re.compile(r"^abd[aeouy]{1,2}([lrsnzdt])([a-z]{3,})$")
#: Without vowels what follows the article may be as short as two letters.
_ABD_BARE = re.compile(r"^abda(l)([a-z]{2,})$")
#: With one typing error: Qbdul, Abbdul, Badul; alone also Adbul, Abudl, Abdlu, Bdul, Abdull, Abduul.
_ABD_MISSPELT = re.compile(
    r"^(?:[b-z]bd|abbd|abdd|bad(?=u))(?=[aeou]l)|^(?:adb[aeu]l|ab[aeu]dl|abdl[aeu]|bd[aeu]l|a?abd([aeu])(?:l?|\1)l)$"
)
_ABD_ALONE = re.compile(r"^[ae]bd(?:[aeiouy]{1,3}[lrsnzdt]|[ue])?$")
#: Eden and Aden are names of their own, and den is a particle where no article is before it: van den Berg.
_DIN = re.compile(r"[aeou]?[ld]?d(?:[iy][iey]?|e[eiy])ne?|[aeou][ld]den")
_DIN_ENDING = re.compile(r"(?<=[a-z]{2})[aeiou]?[ld]?d(?:i?in|een|ine|ene|yn|ien)$")
_ALLAH, _ULLAH = frozenset(("allah", "alla")), frozenset(("ullah", "ollah", "ulla", "olla", "allh"))
#: The article takes the first sound of the word that follows: an-Nasir, Ez-Zahiri, ol-Hasan.
_ARTICLE = re.compile(r"([aeuo])(l|(?<=[ae])[rsnztd]|(?<=[ae])(?:sh|dh|th|ch)|(?<=[uo])(?:[rsdz]|sh))")
_ARTICLE_ON = re.compile(r"^[aeuo]l(?=[a-z]{4})")
_SHORT_NAMES = dict.fromkeys(("muh", "mohd", "mhd", "md", "muhd", "moh", "mohamd"), "muhammad")


def _is_article(parts: Sequence[_NamePart], index: int) -> bool:
    """Tell whether a word is the Arabic article of the word after it."""
    if index + 1 >= len(parts) or (match := _ARTICLE.fullmatch(parts[index].text)) is None:
        return False
    return match[2] == "l" or parts[index + 1].text.startswith(match[2])


def _compounds(parts: Sequence[_NamePart]) -> list[_NamePart]:
    """Bring Arabic compounds to one spelling: Abd al-Rahman, Abdul Rahman, Abdurrahman; Salah al-Din."""
    done: list[_NamePart] = []
    index = 0
    while index < len(parts):
        text, script = parts[index]
        text = _ABD_MISSPELT.sub("abd", _SHORT_NAMES.get(text, text))
        if _ABD_ALONE.match(text):
            text = "abd"
            if index + 2 < len(parts) and _is_article(parts, index + 1):
                index += 1
            elif index + 1 < len(parts) and parts[index + 1].script is WritingSystem.LATIN:
                name = parts[index + 1]
                bare = name._replace(text=_ARTICLE_ON.sub("", name.text))
                parts = [*parts[: index + 1], bare, *parts[index + 2 :]]
        elif (whole := (_ABD_BARE if script is WritingSystem.CONSONANTAL else _ABD).match(text)) is not None:
            article, rest = whole.groups()
            # The article takes the sound of what follows: Abdurrahman is Abd al-Rahman.
            rest = rest if article == "l" or rest.startswith(article) else f"{article}{rest}"
            if len(rest) >= 4 and script is not WritingSystem.CONSONANTAL:
                done.append(_NamePart("abd", WritingSystem.LATIN))
                text = rest
            else:
                text = f"abd{rest}"
        elif done and _is_ending(text, done[-1], script):
            # Rahmat Ullah is Rahmatullah, and Abd Allah Abdullah.
            before = done.pop().text
            text = "abdlah" if before == "abd" else f"{before}{'allh' if text == 'allh' else 'ullah'}"
        elif done and (_DIN.fullmatch(text) or (text == "den" and _ARTICLE.fullmatch(done[-1].text))):
            if _ARTICLE.fullmatch(done[-1].text) and len(done) > 1:
                done.pop()
            if len(done[-1].text) > 2:
                text = f"{done.pop().text}udin"
        elif len(text) >= 6:
            text = _DIN_ENDING.sub("udin", text)
        done.append(_NamePart(text, script))
        index += 1
    return done


def _is_ending(text: str, before: _NamePart, script: WritingSystem) -> bool:
    """Tell whether a word is the second half of an Arabic compound; "Allah" may be a name of its own."""
    if before.script is not script or len(before.text) < 3:
        return False
    return text in _ULLAH or (text in _ALLAH and before.text == "abd")


def _person_kind(text: str, *, consonantal: bool) -> TokenKind:
    if len(text) == 1:
        return TokenKind.INITIAL
    if text in PARTICLES or (consonantal and text in ("bn", "abn", "bnt", "wld")):
        return TokenKind.PARTICLE
    if text in KIN_WORDS or (consonantal and text in ("abw", "aby", "am")) or text == "abd":
        return TokenKind.KIN
    if text in TITLES or (consonantal and text in ("syd", "shykh")):
        return TokenKind.TITLE
    if len(text) > 6 and _PATRONYMIC.search(text):
        return TokenKind.PATRONYMIC
    return TokenKind.NAME


def _organization(parts: Sequence[_NamePart]) -> list[NameToken]:
    words: list[NameToken] = []
    whole = [parts[place]._replace(text=text) for place, text in together([part.text for part in parts])]
    parts = [_NamePart(text, part.script) for part in whole for text in apart(_undisguised(part.text))]
    plain = [part.text for part in parts]
    mended = [correct_form(text) for text in plain]
    scattered = frozenset(gathered(mended))
    index = 0
    while index < len(parts):
        length, code = form_at(plain, mended, index)
        if length:
            words.append(make_word(code, TokenKind.FORM, False))  # noqa: FBT003
            index += length
            continue
        if index in scattered:
            index += 1
            continue
        text = plain[index] if mended[index] in FORM_PARTS else mended[index]
        text = _one_place(ABBREVIATIONS.get(text) or NUMBER_WORDS.get(text, text))
        if text in ROMAN and index:
            text = ROMAN[text]
        consonantal = parts[index].script is WritingSystem.CONSONANTAL
        words.append(make_word(text, _organization_kind(text, index), consonantal))
        index += 1
    if not any(
        word.kind in (TokenKind.NAME, TokenKind.GENERIC, TokenKind.PLACE, TokenKind.NUMBER, TokenKind.INITIAL)
        for word in words
    ):
        words = [
            make_word(part.text, TokenKind.NAME, part.script is WritingSystem.CONSONANTAL) for part in parts
        ]
    return words


_AMONG_LETTERS = re.compile(r"(?<=[a-z])[01345](?=[a-z]{2})|(?<=[a-z]{2})[01345](?=[a-z])|^[05](?=[a-z]{4})")
_ORDINAL = re.compile(r"(\d+)(?:st|nd|rd|th)")


def _undisguised(text: str) -> str:
    """Read a digit among letters as the letter that it looks like."""
    if text.isalpha() or text.isdigit():
        return text
    if match := _ORDINAL.fullmatch(text):
        return match[1]
    return _AMONG_LETTERS.sub(lambda match: match[0].translate(_LONE_DIGITS), text)


def _organization_kind(text: str, index: int) -> TokenKind:
    if text.isdigit():
        return TokenKind.NUMBER
    if text in STOP_WORDS:
        return TokenKind.PARTICLE
    if len(text) == 1:
        return TokenKind.INITIAL if text.isalpha() and not index else TokenKind.NAME
    if MEANINGS.get(text, text) in GENERIC_WORDS:
        return TokenKind.GENERIC
    if text in PLACE_WORDS or MEANINGS.get(text) in PLACE_WORDS:
        return TokenKind.PLACE
    return TokenKind.NAME


def _craft(parts: Sequence[_NamePart]) -> list[NameToken]:
    """Ships are known by a word and a number; "FU YUAN YU 7864" and "… 7882" are two ships."""
    words: list[NameToken] = []
    parts = [
        _NamePart(piece, part.script)
        for part in parts
        for piece in _LETTERS_NUMBER.sub(r"\1 \2", part.text).split()
    ]
    for index, (raw, script) in enumerate(parts):
        last = index == len(parts) - 1
        text = NUMBER_WORDS.get(raw, raw) if index else raw
        if text in ("no", "nr", "number") and not last and parts[index + 1].text.isdigit():
            continue
        if text in SHIP_PREFIXES and not last and index < 2:
            words.append(make_word(text, TokenKind.TITLE, False))  # noqa: FBT003
        elif text.isdigit():
            words.append(make_word(text.lstrip("0") or "0", TokenKind.NUMBER, False))  # noqa: FBT003
        elif index and (text in ROMAN or (last and text in ("i", "v", "x"))):
            number = ROMAN.get(text) or {"i": "1", "v": "5", "x": "10"}[text]
            words.append(make_word(number, TokenKind.NUMBER, False))  # noqa: FBT003
        else:
            words.append(make_word(text, TokenKind.NAME, script is WritingSystem.CONSONANTAL))
    return words


_LETTERS_NUMBER = re.compile(r"^([a-z]{3,})(\d{1,3})$")


def compact(text: str) -> str:
    """Return the letters and digits of an identifier or a registration mark, in upper case."""
    plain = "".join(romanise(part)[0] for part in clean(text).split())
    return "".join(letter for letter in plain.upper() if letter.isalnum())
