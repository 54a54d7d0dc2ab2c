"""Company forms in names of organisations: told although misspelt, run together, cut off or torn apart."""

from collections.abc import Sequence
from functools import lru_cache

from rapidfuzz.distance import OSA

from vettance.watchlists.vocabulary import (
    ABBREVIATIONS,
    FORM_PAIRS,
    FORM_STARTS,
    FORM_WORDS_MAX,
    FORMS,
    GENERIC_WORDS,
    SCATTERED_FORMS,
)

#: Words of company forms that can be distinguished from the end of another word, and from its beginning.
_FORM_ENDINGS = (
    *("corporation", "company", "limited", "incorporated", "aktiengesellschaft", "gesellschaft"),
    *("llc", "ltd", "gmbh", "ojsc", "cjsc", "pjsc", "jsc", "sdnbhd", "bhd", "pvt", "pty"),
)
_FORM_BEGINNINGS = ("company", "limited", "corporation", "obshchestvo", "pjsc", "ojsc", "cjsc", "gmbh")
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
                place = free.index(word)
                free[place] = ""
                places.append(place)
            else:
                return places
    return []


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
    for word in FORM_WORDS:
        if abs(len(word) - len(text)) < 3:
            distance = OSA.distance(text, word, score_cutoff=2)
            if distance == 1 or (distance == 2 and len(word) >= 7):
                return word
    for word in GENERIC_WORDS if len(text) >= 5 else ():
        if len(word) >= 5 and word[0] == text[0] and OSA.distance(text, word, score_cutoff=1) == 1:
            return word
    return text


#: Words that are a company form at the end of a name only: what is left of one whose end was cut off,
#: "… Closed (Joint Stock Company)", and "… Dubai Branch", where Long Branch Brewing is a name.
_LAST_FORMS = {"closed": "jsc", "open": "jsc", "public": "jsc", "joint": "jsc", "branch": "branch"}
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
            return length, code
        code = FORMS.get(tuple(mended[index : index + length]), "")
        if code and (length > 1 or len(plain[index]) >= _MENDED_MIN):
            return length, code
    return 0, ""
