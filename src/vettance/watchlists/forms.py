"""Company forms in names of organisations: told although misspelt, run together, cut off or torn apart."""

from collections.abc import Sequence
from functools import lru_cache

from rapidfuzz.distance import OSA

from vettance.watchlists.less_one_letter import nearly
from vettance.watchlists.organization_words import english_words
from vettance.watchlists.vocabulary import (
    ABBREVIATIONS,
    FORM_PAIRS,
    FORM_STARTS,
    FORM_WORDS_MAX,
    FORMS,
    GENERIC_WORDS,
    MEANINGS,
    SCATTERED_FORMS,
    spelt_in_forms,
)

#: Words of company forms that can be distinguished from the end of another word, and from its beginning.
_FORM_ENDINGS = (
    *("corporation", "company", "limited", "branch", "incorporated", "aktiengesellschaft", "gesellschaft"),
    *("enterprise", "association", "private", "corp"),
    *("llc", "ltd", "gmbh", "ojsc", "cjsc", "pjsc", "jsc", "sdnbhd", "bhd", "pvt", "pty"),
)
_FORM_BEGINNINGS = (
    *("company", "limited", "corporation", "enterprise", "association"),
    *("obshchestvo", "obschestvo", "obshestvo"),
    *("pjsc", "ojsc", "cjsc", "gmbh"),
)
_HEAD_MIN = 3


def apart(text: str) -> tuple[str, ...]:
    """Part a company form that is attached to another word, or that is run together: "Pteltd"."""
    if (pair := FORM_PAIRS.get(text)) is not None:
        return pair
    if text in GENERIC_WORDS or text in ABBREVIATIONS:
        return (text,)
    ending = next((one for one in _FORM_ENDINGS if text.endswith(one)), "")
    if ending and len(text) >= len(ending) + _HEAD_MIN:
        return text.removesuffix(ending), ending
    beginning = next((one for one in _FORM_BEGINNINGS if text.startswith(one)), "")
    if beginning and len(text) >= len(beginning) + _HEAD_MIN:
        return beginning, text.removeprefix(beginning)
    return (text,)


def gathered(texts: Sequence[str]) -> list[int]:
    """Return the places of a company form whose words are apart: "Liability Company Quarry Limited"."""
    if len(texts) < _GATHERED_MIN:
        return []
    for text in texts:
        for phrase in SCATTERED_FORMS.get(text, ()):
            if len(phrase) >= len(texts):
                continue
            free = list(texts)
            places = []
            for word in phrase:
                if word not in free:
                    break
                place = _nearest(free, word, text)
                free[place] = ""
                places.append(place)
            else:
                return places
    return []


def _nearest(texts: Sequence[str], word: str, to: str) -> int:
    """Return the place of a word that is nearest to another: "Carr de Occidente S.A. de C.V." has two."""
    middle = texts.index(to) if to in texts else len(texts)
    places = [place for place, text in enumerate(texts) if text == word]
    return min(places, key=lambda place: abs(place - middle))


_GATHERED_MIN = 3

FORM_WORDS = (
    "company",
    "limited",
    "liability",
    "joint",
    "stock",
    "public",
    "corporation",
    "incorporated",
    "private",
    "closed",
    "gesellschaft",
    "aktiengesellschaft",
    "partnership",
    "sociedad",
    "anonima",
    "societe",
    "otvetstvennostyu",
    "obshchestvo",
    "aktsionernoe",
    "ogranichennoy",
    "enterprise",
    "unitary",
    "federal",
)


@lru_cache(maxsize=16384)
def correct_form(text: str) -> str:
    """Mend a typing error in a word of a company form or a generic word, so that it is still seen as one."""
    if len(text) < 4 or text in GENERIC_WORDS:
        return text
    if text in _OF_FORMS or spelt_in_forms(text) != text:
        return spelt_in_forms(text)
    mended = spelt_in_forms(_mended(text))
    if mended == text or not (text in MEANINGS or text in english_words()):
        return mended
    # A word of its own is no misspelt other one, "expert" no "export"; it may be one of another language.
    same = MEANINGS.get(text, text) == MEANINGS.get(mended, mended)
    return mended if same or text.removesuffix("s") == mended.removesuffix("s") else text


def _mended(text: str) -> str:
    for word in FORM_WORDS:
        if abs(len(word) - len(text)) < 3:
            distance = OSA.distance(text, word, score_cutoff=2)
            if distance == 1 or (distance == 2 and len(word) >= 7):
                return word
    for word in GENERIC_WORDS if len(text) >= 5 else ():
        if len(word) >= 5 and word[0] == text[0] and OSA.distance(text, word, score_cutoff=1) == 1:
            return word
    if (whole := _BUT_FIRST.get(text[1:]) or _BUT_FIRST.get(text)) is not None:
        return whole
    if len(text) < _LONG_MIN or text in LONG_WORDS:
        return text
    near = {word for key in nearly(text) for word in _LONG_KEYS.get(key, ())}
    near = {word for word in near if OSA.distance(text, word) == 1}
    return min(near, key=lambda word: (abs(len(word) - len(text)), word), default=text)


#: Usual words by all their letters but the first: of short ones these are words of their own.
_FIRST_MIN = 7
_BUT_FIRST = {word[1:]: word for word in sorted(GENERIC_WORDS) if len(word) >= _FIRST_MIN}
_OF_FORMS = frozenset(word for phrase in FORMS for word in phrase) | frozenset(FORM_WORDS)
#: A word that is a form by itself is mended from so many letters on.
_LONG_MIN, _FORM_MIN = 6, 8
#: Long words of company forms in all languages, which are nothing but a form or a part of one.
LONG_WORDS = frozenset(
    word
    for phrase in FORMS
    for word in phrase
    if len(word) >= _LONG_MIN
    and word not in FORM_WORDS
    and word not in GENERIC_WORDS
    and ((word,) not in FORMS or len(word) >= _FORM_MIN)
)
#: Words that are mended within a company form only.
FORM_PARTS = frozenset((*FORM_WORDS, *LONG_WORDS))
_LONG_KEYS: dict[str, set[str]] = {}
for _word in LONG_WORDS:
    for _key in nearly(_word):
        _LONG_KEYS.setdefault(_key, set()).add(_word)
#: Words that are put together again where they are torn: "comp any", "otvet stvennostyu".
_WHOLE_MIN, _PIECE_MIN = 7, 2
_WHOLE = frozenset(word for word in (*FORM_PARTS, *GENERIC_WORDS) if len(word) >= _WHOLE_MIN)


def together(texts: Sequence[str]) -> list[tuple[int, str]]:
    """Return (place, word) of the words, usual ones that are torn in two put together: "comp any"."""
    whole: list[tuple[int, str]] = []
    torn = False
    for place, text in enumerate(texts):
        if torn:
            torn = False
            continue
        after = texts[place + 1] if place + 1 < len(texts) else ""
        # "Import & Export" are two words.
        torn = (
            text + after in _WHOLE
            and min(len(text), len(after)) >= _PIECE_MIN
            and not {text, after} <= GENERIC_WORDS
        )
        whole.append((place, text + after if torn else text))
    return whole


#: Words that are a company form at the end of a name only: what is left of one whose end was cut off,
#: "… Closed (Joint Stock Company)", and "… Dubai Branch", where Long Branch Brewing is a name.
_LAST_FORMS = {"closed": "jsc", "open": "jsc", "public": "jsc", "joint": "jsc", "branch": "branch"}
#: A form of two words gives way to one of three that begins with its second.
_SHORT_FORM = 2
#: A single word is only taken for a misspelt form when it is long enough not to be another word.
_MENDED_MIN = 6


def form_at(plain: Sequence[str], mended: Sequence[str], index: int) -> tuple[int, str]:
    """Return (how many words, code) of the company form that begins at `index`, or (0, "").

    `mended` are the same words with typing errors in company forms put right.
    """
    if index and index == len(plain) - 1 and plain[index] in _LAST_FORMS:
        return 1, _LAST_FORMS[plain[index]]
    if mended[index] not in FORM_STARTS and plain[index] not in FORM_STARTS:
        return 0, ""
    for length in range(min(FORM_WORDS_MAX, len(plain) - index), 0, -1):
        if code := FORMS.get(tuple(plain[index : index + length])):
            if length == _SHORT_FORM and tuple(mended[index + 1 : index + 4]) in FORMS:
                # "Finance Company Limited Liability Company": the second word begins a longer form.
                continue
            return length, code
        code = FORMS.get(tuple(mended[index : index + length]), "")
        if code and (length > 1 or len(plain[index]) >= _MENDED_MIN):
            return length, code
    return 0, ""
