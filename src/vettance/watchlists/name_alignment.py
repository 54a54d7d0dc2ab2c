"""Alignment: which words of one name stand for which of another, and what is left over on either side."""

import re
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import NamedTuple

from rapidfuzz.distance import OSA

from vettance.watchlists.mandarin import Syllables, are_one, are_two
from vettance.watchlists.mandarin import joined as joined_syllables
from vettance.watchlists.name_analysis import Grammar, Name
from vettance.watchlists.name_token import EQUAL_SYLLABLES, NameToken, TokenKind, make_word, word_similarity
from vettance.watchlists.word_weights import CARRYING, WEIGHTS

#: Found in a module at once, in an enumeration by a call.
_FORM, _PARTICLE = TokenKind.FORM, TokenKind.PARTICLE

#: Words rarer than `_KNOWN` may be misspelt; two that are not, and not equal in sound, are two names.
_KNOWN, _ONE_NAME, _TWO_NAMES = 1.0, 0.9, 0.1

#: Returns how rare a word is, as a factor of its weight: about 0.5 for the commonest to 1.2.
Rarity = Callable[[NameToken], float]

#: A pair of words below this is two words, not one misspelt; one above `_SURE` needs no other explanation.
SIMILARITY_MIN, _SURE, _SURE_SYLLABLE = 0.6, 0.75, 0.91
#: Words run together are those of the other side from here on.
_JOINT_MIN = 0.8
_EQUAL_LETTERS = 0.98
#: A word that is related to what another may be translated as is that word no more than this.
_LIKENED = 0.9
#: Words left over on both sides contradict each other, left over on one side they are merely missing.
#: Calibrated.
_CONFLICT, _CONFLICT_TRANSLATED = 2.2, 1.0
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
_NAMING = frozenset({TokenKind.NAME, TokenKind.PATRONYMIC})
_USUAL, _TELLING_MAX = _NAMING | {TokenKind.GENERIC}, 2
#: How fast a similarity below 1 costs, and how much faster below 0.8: 0.9 counts as 0.87, 0.7 as 0.4.
_STEEPNESS, _DOUBT = 1.35, 2.0


class Pair(NamedTuple):
    """Words of the query that stand for words of the listed name; several where they were run together."""

    query: tuple[int, ...]
    listed: tuple[int, ...]
    similarity: float


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
    contradicts (left over on both sides, counted 2.2 times) and what is missing (left over on one side).
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
        _mend_joints(left, right, pairs, free_left, free_right, _SURE_SYLLABLE)
    _pair_letters(left, right, pairs, free_left, free_right)
    _pair(scored, _SURE, pairs, free_left, free_right)
    if free_left or free_right:
        _mend_joints(left, right, pairs, free_left, free_right)
    if free_left and free_right and not (_is_syllabic(left) and _is_syllabic(right)):
        _pair(scored, SIMILARITY_MIN, pairs, free_left, free_right)
    if likened := query.likened:
        pairs = [
            pair
            if likened.isdisjoint(pair.query)
            else pair._replace(similarity=min(pair.similarity, _LIKENED))
            for pair in pairs
        ]
    weights = WEIGHTS[query.grammar]
    left_weights = [weights[word.kind] * rare for word, rare in zip(left, left_rarity, strict=True)]
    right_weights = [weights[word.kind] * rare for word, rare in zip(right, right_rarity, strict=True)]
    soft = 0.0
    if query.others:
        soft += sum(left_weights[place] for place in free_left if query.others[place])
    elif listed.others:
        soft += sum(right_weights[place] for place in free_right if listed.others[place])
    score = _score(
        query.grammar, left, right, left_weights, right_weights, pairs, free_left, free_right, soft
    )
    return Alignment(score, tuple(pairs), tuple(sorted(free_left)), tuple(sorted(free_right)))


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


def _mend_joints(
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
    for start in sorted(free):
        joined = others[start].text
        run = [start]
        while run[-1] + 1 < len(others) and run[-1] + 1 in free and len(run) < 5:
            run.append(run[-1] + 1)
            joined += others[run[-1]].text
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


def _pair_letters(
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
    grammar: Grammar,
    left: Sequence[NameToken],
    right: Sequence[NameToken],
    left_weights: Sequence[float],
    right_weights: Sequence[float],
    pairs: Sequence[Pair],
    free_left: set[int],
    free_right: set[int],
    translated: float,
) -> float:
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
    missing_left = sum(left_weights[i] for i in free_left)
    missing_right = sum(right_weights[j] for j in free_right)
    conflict = min(missing_left, missing_right)
    extra = abs(missing_left - missing_right)
    share = _EXTRA[grammar]
    if grammar is Grammar.PERSON and carrying < 2:
        initials = any(left[pair.query[0]].kind is TokenKind.INITIAL for pair in pairs)
        share = _EXTRA_WITH_INITIAL if initials else _EXTRA_OF_ONE_WORD
    elif grammar is Grammar.ORGANIZATION and carrying < 2:
        share = _EXTRA_OF_ONE_NAME
    elif grammar is Grammar.PERSON and _is_syllabic(left) and _is_syllabic(right):
        share = _EXTRA_SYLLABLE
    if grammar is Grammar.PERSON and total >= _TELLING:
        # Nobody hides a telling name among others by adding ever more of them.
        extra = min(extra, _EXTRA_MAX)
    # What is missing weighs more where what was found is not quite the same.
    share += _EXTRA_DOUBT * (1 - gained / total)
    # Languages name one thing differently: a word left over that was translated contradicts less.
    contradiction = _CONFLICT * conflict - (_CONFLICT - _CONFLICT_TRANSLATED) * min(conflict, translated)
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
    if (distance := OSA.distance(one.text, other.text, score_cutoff=2)) > 1:
        # Of equal sound it is a spelling (Rasheed, Rashid), of like sound only if long: Qavamin, Ghavamin.
        like = one.folds[0] == other.folds[0] or (longest >= _LIKE_MIN and one.classes[0] == other.classes[0])
        return longest <= _TWO_ERRORS_MAX and not (distance == 2 and like)
    # Where only vowels differ it is a spelling: Qaeda, Qaida.
    return longest <= _ONE_ERROR_MAX and one.skeletons[0] != other.skeletons[0]


def _placed(words: Sequence[NameToken], free: set[int]) -> bool:
    return any(words[place].kind is TokenKind.PLACE for place in free)


def _numbered(words: Sequence[NameToken], free: set[int]) -> bool:
    return any(words[place].kind is TokenKind.NUMBER for place in free)
