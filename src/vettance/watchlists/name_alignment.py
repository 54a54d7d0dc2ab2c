"""Alignment: which words of one name stand for which of another, and what is left over on either side."""

import re
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import NamedTuple

from rapidfuzz.distance import OSA

from vettance.watchlists.name_analysis import Grammar, Name
from vettance.watchlists.name_joints import (
    LIKENED,
    Pair,
    mend_joints,
    mend_torn,
    pair_initials,
    pair_letters,
    pair_meanings,
)
from vettance.watchlists.name_token import EQUAL_SYLLABLES, NameToken, TokenKind, word_similarity
from vettance.watchlists.organization_words import is_english_word, is_town
from vettance.watchlists.word_weights import CARRYING, WEIGHTS

#: Found in a module at once, in an enumeration by a call.
_FORM, _PARTICLE = TokenKind.FORM, TokenKind.PARTICLE

#: Words rarer than `_KNOWN` may be misspelt; two that are not, and not equal in sound, are two names.
_KNOWN, _ONE_NAME, _TWO_NAMES = 1.0, 0.9, 0.1

#: Returns how rare a word is, as a factor of its weight: about 0.5 for the commonest to 1.2.
Rarity = Callable[[NameToken], float]

#: A pair of words below this is two words, not one misspelt; one above `_SURE` needs no other explanation.
SIMILARITY_MIN, _SURE, _SURE_SYLLABLE = 0.6, 0.75, 0.91
#: Words left over on both sides contradict each other, left over on one side they are merely missing.
#: Calibrated. It is less in organisations where enough agrees to tell who is meant, least for usual words.
_CONFLICT, _CONFLICT_TOLD, _CONFLICT_USUAL, _CONFLICT_TRANSLATED = 2.2, 1.4, 1.2, 0.85
#: The same for usual words where names agree and none is left over; up to what weight none is.
_CONFLICT_NAMED, _UNNAMED_MAX = 0.3, 0.3
#: What a usual word that is not among the commonest counts of a name, left over where enough agrees.
_USUAL_LEFT_OVER = 0.7
#: From so many letters on, names that agree tell who is meant, whatever usual words describe it.
_SHORT_WORD, _INITIALS_MIN = 3, 3
_LONG_NAME, _EXTRA_DESCRIBED, _SURELY_NAMED = 12, 0.3, 0.9
#: With so many, usual words may stand for others; steel and metallurgy of one town are two.
_NAMED_MIN = 4
_EXTRA = {Grammar.PERSON: 0.16, Grammar.ORGANIZATION: 0.42, Grammar.CRAFT: 0.7}
_EXTRA_DOUBT = 1.5
#: From how much weight in common a name tells who is meant, and how much may then be held against it as
#: extra.
_TELLING, _EXTRA_MAX = 1.8, 3.0
#: In a name of single syllables every one tells people apart.
_EXTRA_SYLLABLE = 0.5
_EXTRA_OF_ONE_WORD, _EXTRA_WITH_INITIAL = 0.6, 0.35
#: Phoenix Holdings and Phoenix are two companies.
_EXTRA_OF_ONE_NAME = 0.85
#: The most that two names of organisations or ships score with different numbers left over.
_OTHER_NUMBER = 0.7
#: The most that two names of organisations score with different places left over.
_OTHER_PLACE = 0.74
#: The most that names score which share one short word that is written differently, and up to what length a
#: word with one error, and with more, is short.
_ONE_SHORT_WORD, _ONE_ERROR_MAX, _TWO_ERRORS_MAX, _LIKE_MIN = 0.74, 5, 8, 7
_LETTERS_MAX = 4
_NAMING = frozenset({TokenKind.NAME, TokenKind.PATRONYMIC})
_USUAL, _TELLING_MAX = _NAMING | {TokenKind.GENERIC}, 2
#: How fast a similarity below 1 costs, and how much faster below 0.8: 0.9 counts as 0.87, 0.7 as 0.4.
_STEEPNESS, _DOUBT = 1.35, 2.0


class Alignment(NamedTuple):
    """The score of two names and what it rests on; indexes point into the words of the names."""

    score: float
    pairs: tuple[Pair, ...]
    query_left: tuple[int, ...]
    listed_left: tuple[int, ...]


def no_rarity(_word: NameToken) -> float:
    """Every word counts the same; used where no list is loaded."""
    return 1.0


def align(query: Name, listed: Name, rarity: Rarity = no_rarity) -> Alignment:
    """Align two names of the same grammar and score them, 0 to 1.

    Words are paired greedily by similarity, then words that were joined or split; the order does not matter.
    The score is the weight of what was paired, each pair by its similarity, against that weight plus what
    contradicts (left over on both sides, counted more than once) and what is missing (left over on one side).
    """
    left, right = query.words, listed.words
    left_rarity, right_rarity = [rarity(word) for word in left], [rarity(word) for word in right]
    scored = _similarities(left, right, left_rarity, right_rarity)
    free_left, free_right = set(range(len(left))), set(range(len(right)))
    pairs: list[Pair] = []
    syllabic = bool(left and right) and left[0].syllables is not None and right[0].syllables is not None
    if syllabic:
        # A syllable that is like a word of two may be one of its two.
        _pair(scored, _SURE_SYLLABLE, pairs, free_left, free_right)
        mend_joints(left, right, pairs, free_left, free_right, _SURE_SYLLABLE)
    pair_letters(left, right, pairs, free_left, free_right)
    _pair(scored, _SURE, pairs, free_left, free_right)
    if free_left or free_right:
        mend_joints(left, right, pairs, free_left, free_right)
        mend_torn(left, right, pairs, free_left, free_right)
    if free_left and free_right and not (_is_syllabic(left) and _is_syllabic(right)):
        _pair(scored, SIMILARITY_MIN, pairs, free_left, free_right)
    if query.grammar is Grammar.ORGANIZATION and pairs:
        if free_left and free_right:
            named = _letters_named(left, pairs) >= _NAMED_MIN
            pair_meanings(left, right, pairs, free_left, free_right, named)
            if named:
                pairs += [
                    Pair((place,), run, LIKENED)
                    for place, run in pair_initials(left, right, _initials(listed), free_left, free_right)
                ]
                pairs += [
                    Pair(run, (place,), LIKENED)
                    for place, run in pair_initials(right, left, _initials(query), free_right, free_left)
                ]
        free_left -= _said_again(left, free_left) if free_left else set()
        free_right -= _said_again(right, free_right) if free_right else set()
    if likened := query.likened:
        pairs = [
            pair
            if likened.isdisjoint(pair.query)
            else pair._replace(similarity=min(pair.similarity, LIKENED))
            for pair in pairs
        ]
    weights = WEIGHTS[query.grammar]
    left_weights = [weights[word.kind] * rare for word, rare in zip(left, left_rarity, strict=True)]
    right_weights = [weights[word.kind] * rare for word, rare in zip(right, right_rarity, strict=True)]
    score = _score(query, listed, left_weights, right_weights, pairs, free_left, free_right)
    return Alignment(score, tuple(pairs), tuple(sorted(free_left)), tuple(sorted(free_right)))


def _initials(name: Name) -> list[frozenset[str]]:
    """Return for each word the letters with which it begins, in every language in which it is read."""
    others = name.others or ((),) * len(name.words)
    return [
        frozenset(one.text[0] for one in (word, *(other for other, _spelling, _first in more)))
        for word, more in zip(name.words, others, strict=True)
    ]


def _left_over(
    name: Name, weights: Sequence[float], free: set[int], usual_factor: float = 1.0
) -> tuple[float, float]:
    """Return the weight left over of words that name, and of words that translators put in many ways.

    `usual_factor` lessens those of the latter that are not counted as usual words already.
    """
    named = usual = 0.0
    for place in free:
        word = name.words[place]
        if word.kind is TokenKind.NUMBER:
            named += weights[place]
        elif is_english_word(word.text):
            usual += weights[place] * (usual_factor if word.kind is TokenKind.NAME else 1.0)
        elif len(word.text) <= _SHORT_WORD:
            usual += weights[place]
        else:
            named += weights[place]
    return named, usual


def _similarities(
    left: Sequence[NameToken],
    right: Sequence[NameToken],
    left_rarity: Sequence[float],
    right_rarity: Sequence[float],
) -> list[tuple[float, int, int, int, int]]:
    """Return (similarity, …, place in `left`, place in `right`) of every pair of words, the best first."""
    scored = []
    for i, one in enumerate(left):
        for j, other in enumerate(right):
            similarity = _compatible(one, other)
            if similarity < SIMILARITY_MIN:
                continue
            if similarity < _ONE_NAME and left_rarity[i] < _KNOWN and right_rarity[j] < _KNOWN:
                # Two spellings that are both well known are two names: Suarez is no misspelt Juarez.
                similarity -= _TWO_NAMES
            if similarity >= SIMILARITY_MIN:
                # Of equal pairs, the longer words and the nearer places are taken first.
                scored.append((similarity, len(one.text), -abs(i - j), i, j))
    scored.sort(reverse=True)
    return scored


def _pair(
    scored: Sequence[tuple[float, int, int, int, int]],
    least: float,
    pairs: list[Pair],
    free_left: set[int],
    free_right: set[int],
) -> None:
    for similarity, _length, _place, i, j in scored:
        if similarity < least:
            break
        if i in free_left and j in free_right:
            free_left.discard(i)
            free_right.discard(j)
            pairs.append(Pair((i,), (j,), similarity))


def _compatible(one: NameToken, other: NameToken) -> float:
    kind, other_kind = one.kind, other.kind
    if kind is _FORM or other_kind is _FORM:
        if kind is not other_kind:
            return 0.0
        return 1.0 if one.text == other.text else 0.7
    if kind is not other_kind and (kind is _PARTICLE or other_kind is _PARTICLE):
        if one.syllables is None or other.syllables is None:
            return 0.0
        # The place of a syllable says whether it was taken for a particle.
        alike = word_similarity(one, other)
        return alike if alike >= EQUAL_SYLLABLES else 0.0
    return word_similarity(one, other)


def _is_syllabic(words: Sequence[NameToken]) -> bool:
    """Tell whether a name is made of single syllables, as most Chinese and Korean names are."""
    return all(_is_syllable(word.text) or word.kind is TokenKind.INITIAL for word in words)


@lru_cache(maxsize=65536)
def _is_syllable(text: str) -> bool:
    return len(_VOWEL_RUN.findall(text)) == 1


_VOWEL_RUN = re.compile(r"[aeiouyw]+")


def _worth(similarity: float) -> float:
    """Return what a pair of this similarity adds, as a part of its weight."""
    worth = 1 - _STEEPNESS * (1 - similarity)
    return max(0.0, worth - _DOUBT * max(0.0, 0.8 - similarity))


def _score(
    query: Name,
    listed: Name,
    left_weights: Sequence[float],
    right_weights: Sequence[float],
    pairs: Sequence[Pair],
    free_left: set[int],
    free_right: set[int],
) -> float:
    grammar, left, right = query.grammar, query.words, listed.words
    gained = total = 0.0
    carrying = 0
    for pair in pairs:
        weight = (sum(left_weights[i] for i in pair.query) + sum(right_weights[j] for j in pair.listed)) / 2
        gained += weight * _worth(pair.similarity)
        total += weight
        carrying += min(
            sum(left[i].kind in CARRYING for i in pair.query) or 0,
            sum(right[j].kind in CARRYING for j in pair.listed) or 0,
        ) or (1 if len(pair.query) + len(pair.listed) > 2 else 0)
    if not total or not carrying:
        return 0.0
    organization, told = grammar is Grammar.ORGANIZATION, total >= _TELLING
    translated = bool(query.others or listed.others)
    sides = (query, left_weights, free_left), (listed, right_weights, free_right)
    (left_named, left_usual), (right_named, right_usual) = (_left_over(*side) for side in sides)
    # No name is left over: what is, describes.
    unnamed = organization and max(left_named, right_named) < _UNNAMED_MAX
    letters = _letters_named(left, pairs) if organization and (free_left or free_right) else 0
    if organization and told and (not translated or unnamed or letters >= _NAMED_MIN):
        left_usual, right_usual = (_left_over(*side, _USUAL_LEFT_OVER)[1] for side in sides)
    conflict = min(left_named + left_usual, right_named + right_usual)
    extra = abs(left_named + left_usual - right_named - right_usual)
    share = _share_of_missing(query, listed, pairs, carrying)
    if grammar is Grammar.PERSON and told:
        # Nobody hides a telling name among others by adding ever more of them.
        extra = min(extra, _EXTRA_MAX)
    # What is missing weighs more where what was found is not quite the same.
    share += _EXTRA_DOUBT * (1 - gained / total)
    contradiction = _CONFLICT * conflict
    if organization and (translated or told or not conflict):
        # Languages name one thing differently, and lists write usual words otherwise: they contradict less.
        usual = _CONFLICT_TRANSLATED if translated else _CONFLICT_USUAL
        if unnamed and letters and translated:
            usual = _CONFLICT_NAMED
        if unnamed and letters >= _LONG_NAME:
            share = min(share, _EXTRA_DESCRIBED)
        named = min(left_named, right_named)
        contradiction = (_CONFLICT_TOLD if told else _CONFLICT) * named + usual * (conflict - named)
    score = gained / (total + contradiction + share * extra)
    if _by_one_word(left, right, pairs):
        score = min(score, _ONE_SHORT_WORD)
    if grammar is not Grammar.PERSON and _numbered(left, free_left) and _numbered(right, free_right):
        # However much else two long names share: the 5th brigade is not the 6th.
        score = min(score, _OTHER_NUMBER)
    if grammar is Grammar.ORGANIZATION and _placed(left, free_left) and _placed(right, free_right):
        # The works of Minsk are not those of Tehran.
        score = min(score, _OTHER_PLACE)
    return score


def _share_of_missing(query: Name, listed: Name, pairs: Sequence[Pair], carrying: int) -> float:
    """Return what part of its weight a missing word costs where so many words agree that carry a name."""
    if query.grammar is Grammar.PERSON and carrying < 2:
        initials = any(query.words[pair.query[0]].kind is TokenKind.INITIAL for pair in pairs)
        return _EXTRA_WITH_INITIAL if initials else _EXTRA_OF_ONE_WORD
    if query.grammar is Grammar.ORGANIZATION and carrying < 2:
        return _EXTRA_OF_ONE_NAME
    if query.grammar is Grammar.PERSON and _is_syllabic(query.words) and _is_syllabic(listed.words):
        return _EXTRA_SYLLABLE
    return _EXTRA[query.grammar]


def _said_again(words: Sequence[NameToken], free: set[int]) -> set[int]:
    """Return the words left over that the rest of the name says already: once more, or by initials."""
    rest = [word.text for place, word in enumerate(words) if place not in free]
    initials = "".join(text[0] for text in rest if len(text) > _SHORT_WORD)
    return {
        place
        for place in free
        if words[place].kind is not TokenKind.NUMBER
        and (
            words[place].text in rest
            or (len(words[place].text) >= _INITIALS_MIN and words[place].text in initials)
        )
    }


def _letters_named(words: Sequence[NameToken], pairs: Sequence[Pair]) -> int:
    """Return how many letters the words have that agree and are names: no usual words and no towns."""
    return sum(
        len(words[place].text)
        for pair in pairs
        if pair.similarity >= _SURELY_NAMED
        for place in pair.query
        if words[place].kind in _NAMING
        and not is_english_word(words[place].text)
        and not is_town(words[place].text)
    )


def _by_one_word(left: Sequence[NameToken], right: Sequence[NameToken], pairs: Sequence[Pair]) -> bool:
    """Tell whether one short word, written differently, is all that two names have in common but usual words.

    One letter of five, or two of seven, make another name as often as a misspelt one: Tesla and Tesa.
    """
    telling = [pair for pair in pairs if left[pair.query[0]].kind in CARRYING]
    naming = [
        pair
        for pair in telling
        if any(left[place].kind in _NAMING for place in pair.query)
        and any(right[place].kind in _NAMING for place in pair.listed)
    ]
    if len(naming) != 1 or len(telling) > _TELLING_MAX or len(naming[0].query) + len(naming[0].listed) > 2:
        return False
    if any(left[pair.query[0]].kind not in _USUAL for pair in telling):
        return False
    one, other = left[naming[0].query[0]], right[naming[0].listed[0]]
    if one.consonantal is not other.consonantal or one.text == other.text or one.syllables is not None:
        return False
    longest = max(len(one.text), len(other.text))
    if longest < _LETTERS_MAX or (longest == _LETTERS_MAX and len(one.text) != len(other.text)):
        # So few letters are mostly initials, of which every one counts.
        return True
    if (distance := OSA.distance(one.text, other.text, score_cutoff=2)) > 1:
        # Of equal sound it is a spelling (Rasheed, Rashid), of like sound only if long: Qavamin, Ghavamin.
        like = one.folds[0] == other.folds[0] or (longest >= _LIKE_MIN and one.classes[0] == other.classes[0])
        return longest <= _TWO_ERRORS_MAX and not (distance == 2 and like)
    # Where only vowels differ it is a spelling: Qaeda, Qaida.
    return longest <= _ONE_ERROR_MAX and one.skeletons[0] != other.skeletons[0]


def _placed(words: Sequence[NameToken], free: set[int]) -> bool:
    return any(words[place].kind is TokenKind.PLACE or is_town(words[place].text) for place in free)


def _numbered(words: Sequence[NameToken], free: set[int]) -> bool:
    return any(words[place].kind is TokenKind.NUMBER for place in free)
