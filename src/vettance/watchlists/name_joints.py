"""Words that one name writes together and the other apart, as letters, torn, or in another language."""

from collections.abc import Sequence
from typing import NamedTuple

from rapidfuzz.distance import OSA

from vettance.watchlists.mandarin import Syllables, are_one, are_two
from vettance.watchlists.mandarin import joined as joined_syllables
from vettance.watchlists.name_token import EQUAL_SYLLABLES, NameToken, TokenKind, make_word, word_similarity
from vettance.watchlists.organization_words import are_related, mean_the_same
from vettance.watchlists.usual_spellings import spellings

#: Words run together are those of the other side from here on.
_JOINT_MIN = 0.8
_EQUAL_LETTERS = 0.98
#: A piece of a torn word is less like the whole than this.
_TORN_MAX = 0.93
#: A word that is related to what another may be translated as is that word no more than this.
LIKENED = 0.9
#: So many letters may be the initials of as many words.
_LETTERS_MIN, _LETTERS_MAX = 2, 6


class Pair(NamedTuple):
    """Words of the query that stand for words of the listed name; several where they were run together."""

    query: tuple[int, ...]
    listed: tuple[int, ...]
    similarity: float


def mend_joints(
    left: Sequence[NameToken],
    right: Sequence[NameToken],
    pairs: list[Pair],
    free_left: set[int],
    free_right: set[int],
    least: float = _JOINT_MIN,
) -> None:
    """Pair words that one side writes together and the other apart: "PeterGadet", "Taji Deen", "Al Qaida"."""
    for i in sorted(free_left) if len(free_right) > 1 else ():
        if (found := _split_of(left[i], right, free_right, least)) is not None:
            run, similarity = found
            free_left.discard(i)
            free_right.difference_update(run)
            pairs.append(Pair((i,), run, similarity))
    for j in sorted(free_right) if len(free_left) > 1 else ():
        if (found := _split_of(right[j], left, free_left, least)) is not None:
            run, similarity = found
            free_right.discard(j)
            free_left.difference_update(run)
            pairs.append(Pair(run, (j,), similarity))


def mend_torn(
    left: Sequence[NameToken],
    right: Sequence[NameToken],
    pairs: list[Pair],
    free_left: set[int],
    free_right: set[int],
) -> None:
    """Give the rest of a torn word to its piece that was taken for the whole, misspelt: "Geopromin ing"."""
    for number, pair in enumerate(pairs):
        if pair.similarity >= _TORN_MAX or len(pair.query) + len(pair.listed) > 2:
            continue
        (i,), (j,) = pair.query, pair.listed
        for place in (i - 1, i + 1) if free_left else ():
            if place in free_left and _spell(left, i, place) == right[j].text:
                free_left.discard(place)
                pairs[number] = Pair((min(i, place), max(i, place)), (j,), _EQUAL_LETTERS)
                break
        for place in (j - 1, j + 1) if free_right else ():
            if place in free_right and _spell(right, j, place) == left[i].text:
                free_right.discard(place)
                pairs[number] = Pair((i,), (min(j, place), max(j, place)), _EQUAL_LETTERS)
                break


def _spell(words: Sequence[NameToken], one: int, other: int) -> str:
    return words[min(one, other)].text + words[max(one, other)].text


def _split_of(
    word: NameToken, others: Sequence[NameToken], free: set[int], least: float
) -> tuple[tuple[int, ...], float] | None:
    """Find a run of free neighbours that spells `word` when run together, particles counting as free."""
    if len(word.text) < 4 or word.kind in (TokenKind.FORM, TokenKind.NUMBER):
        return None
    best: tuple[tuple[int, ...], float] | None = None
    # Without vowels a word is shorter than its other spelling by up to a half; Wade-Giles is longer by a
    # letter or two for each syllable.
    length, slack = len(word.text), 2 if word.syllables is None else 4
    # What is read as another word is joined as it was written: Hekmatiranian, "Leb anese".
    whole = (word.text, *spellings(word.text))
    for start in sorted(free):
        joined = others[start].text
        run = [start]
        spelt = _begun("", joined, whole)
        while run[-1] + 1 < len(others) and run[-1] + 1 in free and len(run) < 5:
            run.append(run[-1] + 1)
            joined += others[run[-1]].text
            spelt = [more for text in spelt for more in _begun(text, others[run[-1]].text, whole)]
            if not word.consonantal and any(text in whole for text in spelt):
                return tuple(run), _EQUAL_LETTERS
            consonantal = others[start].consonantal
            shortest = length // 2 if consonantal and not word.consonantal else length - slack
            longest = length * 2 if word.consonantal and not consonantal else length + slack
            if len(joined) > longest:
                break
            if len(joined) >= shortest:
                syllables = word.syllables and joined_syllables([others[place].syllables for place in run])
                similarity = joint_similarity(word, joined, consonantal, syllables)
                if similarity >= least and (best is None or similarity > best[1]):
                    best = tuple(run), similarity
    return best


def _begun(text: str, word: str, whole: Sequence[str]) -> list[str]:
    """Return a text with a word written on to it in each of its spellings that a whole word begins with."""
    joined = [text + spelt for spelt in (word, *spellings(word))]
    return [one for one in joined if any(each.startswith(one) for each in whole)]


def pair_letters(
    left: Sequence[NameToken],
    right: Sequence[NameToken],
    pairs: list[Pair],
    free_left: set[int],
    free_right: set[int],
) -> None:
    """Pair a short word of one side with neighbours of the other that are its letters: JP and J. P."""
    for words, others, free, free_others in (
        (left, right, free_left, free_right),
        (right, left, free_right, free_left),
    ):
        letters = "".join(word.text if len(word.text) == 1 else " " for word in others)
        if len(letters.strip()) < 2:
            continue
        for place, word in enumerate(words):
            if not 1 < len(word.text) < 4 or (start := letters.find(word.text)) < 0 or place not in free:
                continue
            run = tuple(range(start, start + len(word.text)))
            if free_others.issuperset(run):
                free.discard(place)
                free_others.difference_update(run)
                one, other = ((place,), run) if words is left else (run, (place,))
                pairs.append(Pair(one, other, _EQUAL_LETTERS))


def pair_meanings(
    left: Sequence[NameToken],
    right: Sequence[NameToken],
    pairs: list[Pair],
    free_left: set[int],
    free_right: set[int],
    named: bool,
) -> None:
    """Pair words of Russian in Latin letters with what they mean: Noviy, New; Dubnensky, Dubna.

    Where a name agrees (`named`), usual words that translators write for one another are paired too: of
    names of nothing else, two would become one.
    """
    for i in sorted(free_left):
        for j in sorted(free_right):
            one, other = left[i].text, right[j].text
            if mean_the_same(one, other) or mean_the_same(other, one) or (named and are_related(one, other)):
                free_left.discard(i)
                free_right.discard(j)
                pairs.append(Pair((i,), (j,), LIKENED))
                break


def pair_initials(
    words: Sequence[NameToken],
    others: Sequence[NameToken],
    written: Sequence[frozenset[str]],
    free: set[int],
    free_others: set[int],
) -> list[tuple[int, tuple[int, ...]]]:
    """Return (place of a word, places of neighbours of the other name of which it has the initials).

    TD stands for Torgovyy Dom; `written` has the first letters of each word in every language it is read in.
    """
    found: list[tuple[int, tuple[int, ...]]] = []
    for place in sorted(free):
        letters = words[place].text
        if words[place].kind is not TokenKind.NAME or not _LETTERS_MIN <= len(letters) <= _LETTERS_MAX:
            continue
        for start in sorted(free_others):
            run = tuple(range(start, start + len(letters)))
            if free_others.issuperset(run) and all(
                letter in written[at] and len(others[at].text) > len(letters)
                for letter, at in zip(letters, run, strict=True)
            ):
                free.discard(place)
                free_others.difference_update(run)
                found.append((place, run))
                break
    return found


def joint_similarity(
    word: NameToken, joined: str, consonantal: bool, syllables: Syllables | None = None
) -> float:
    """Compare a word with words run together."""
    if word.text == joined:
        return 0.98
    if syllables is not None and word.syllables is not None and are_one(word.syllables, syllables):
        return 0.98 * EQUAL_SYLLABLES
    if are_two(word.syllables, syllables, word.text, joined):
        return 0.0
    if word.consonantal == consonantal and OSA.distance(word.text, joined, score_cutoff=4) > 4:
        return 0.0
    return 0.98 * word_similarity(word, make_word(joined, TokenKind.NAME, consonantal))
