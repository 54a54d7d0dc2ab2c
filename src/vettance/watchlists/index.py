"""The index: finds the few listed names that a name may stand for, among millions, in a millisecond.

Words of the query are looked up by sound, consonants and one deletion of each (`keys.py`); each gives the
listed words it may be, and those give names. The names that share enough weight are aligned word by word,
and the entities behind the best of them are compared in full. The files are mapped into memory, so processes
share one copy.
"""

import itertools
import zlib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np

from vettance.watchlists.blocking_keys import SEARCHED, joint_keys, runs, sound_key, whole_key, word_keys
from vettance.watchlists.compare import identifier_key
from vettance.watchlists.entity import Document, Entity, EntityType
from vettance.watchlists.glued_names import GLUED_MIN, parted, with_parted_words
from vettance.watchlists.index_build import (
    ENTITIES_FILE,
    FORMAT,
    META_FILE,
    WEIGHED,
    WORDS_FILE,
    map_array,
    map_bytes,
    rarity_of,
)
from vettance.watchlists.mandarin import joined as joined_syllables
from vettance.watchlists.match import (
    EntityMatch,
    NameMatch,
    Subject,
    align_names,
    best_name,
    likeliest_first,
    limited_score,
    match_names,
)
from vettance.watchlists.name_alignment import SIMILARITY_MIN, align
from vettance.watchlists.name_analysis import GRAMMARS, Grammar, Name, parse_name
from vettance.watchlists.name_readings import name_readings, towards
from vettance.watchlists.name_token import NameToken, TokenKind, compare_words, make_word
from vettance.watchlists.stated_names import otherwise
from vettance.watchlists.word_weights import WEIGHTS

_Array = Any

#: How many names are aligned for a query, for a reading with other meanings; how many entities are compared.
ALIGNED_MAX, _READING_ALIGNED_MAX, COMPARED_MAX = 56, 40, 24
#: Names that share nearly everything are all aligned, up to this many: common names have many namesakes.
LIKELY_MAX, _LIKELY_SHARE = 160, 0.85
#: Names that share less than this part of the lighter side's weight are not looked at.
_SHARE_MIN = 0.58
_NAMESAKE = 0.7
#: Where so few names share enough, a word that few names have brings those that share less: the other word
#: may be misspelt twice.
_FEW_CANDIDATES, _RARE_NAMES, _RARE_SHARE_MIN = 8, 24, 0.4
#: Entities whose best name scores below this are not compared further, unless an identifier is equal.
_NAME_MIN = 0.45
#: Words run together that are less alike than this are not the listed word.
_JOINED_MIN, _INITIAL_JOINED_MIN = 0.8, 0.96
#: Shorter words, unless made of syllables, are not looked up as words that a list writes apart.
_JOINT_MIN = 5
_CACHE_WORDS = 65536
#: Of several words, the commonest adds weight to names that another word has found, and finds none by itself
#: when it is in more names than this: a name must share more than one common word to be worth a look.
_COMMON_NAMES = 4_000
#: Among more names than this an initial is not looked for: it would cost more than it could tell.
_INITIALS_NAMES = 20_000


class IndexFault(Exception):
    """The index cannot be used: not there, of another format, or damaged. It must be built again."""


class _QueryWord(NamedTuple):
    """One word of a query, or several run together: its weight, and the listed words it may be."""

    weight: float
    words: _Array
    similarities: _Array


class Index:
    """An index opened for reading. Safe for use from several threads: nothing but caches changes.

    `base` is an index whose counts say how common a word is; a list too short to know asks a longer one.
    """

    def __init__(self, folder: Path, base: "Index | None" = None) -> None:
        try:
            meta = msgspec.json.decode((folder / META_FILE).read_bytes())
            if meta.get("format") != FORMAT:
                raise IndexFault(f"{folder.name} has another format")
            self._arrays = {path.stem: map_array(path) for path in folder.glob("*.npy")}
            self._word_blob = map_bytes(folder / WORDS_FILE)
            self._blob = map_bytes(folder / ENTITIES_FILE)
        except (OSError, ValueError, msgspec.DecodeError) as error:
            raise IndexFault(f"{folder.name} cannot be opened: {error}") from None
        self.folder = folder
        self._base = base
        self.versions: Mapping[str, str] = meta["versions"]
        self.sources: Mapping[str, int] = meta["sources"]
        self.names: int = meta["names"]
        self.entities: int = meta["entities"]
        arrays = self._arrays
        self._word_ends = arrays["word_ends"]
        self._first_letters, self._counts = arrays["word_first"], arrays["word_count"]
        self._key_hash, self._key_word = arrays["key_hash"], arrays["key_value"]
        self._joint_hash, self._joint_name = arrays["joint_hash"], arrays["joint_value"]
        self._document_hash, self._document_entity = arrays["document_hash"], arrays["document_value"]
        self._post_ends, self._post_names = arrays["posting_ends"], arrays["posting_names"]
        self._name_words, self._name_ends = arrays["name_words"], arrays["name_ends"]
        self._name_entity, self._name_place = arrays["name_entity"], arrays["name_place"]
        self._name_grammar, self._name_mass = arrays["name_grammar"], arrays["name_mass"]
        self._entity_ends = arrays["entity_ends"]
        self._decode = msgspec.msgpack.Decoder(Entity).decode
        self._decode_word = msgspec.msgpack.Decoder(NameToken).decode
        self._word_cache: dict[int, NameToken] = {}
        self._similar_cache: dict[NameToken, tuple[_Array, _Array]] = {}
        self._rarity_cache: dict[NameToken, float] = {}

    def entity(self, number: int) -> Entity:
        """Return an entity by its number in this index."""
        start, stop = int(self._entity_ends[number]), int(self._entity_ends[number + 1])
        return self._decode(self._blob[start:stop])

    def all_entities(self) -> Iterable[Entity]:
        """Yield every entity."""
        return map(self.entity, range(self.entities))

    def rarity(self, word: NameToken) -> float:
        """Return how much a word counts by how many listed names have it."""
        if word.kind not in WEIGHED:
            return 1.0
        if self._base is not None:
            return self._base.rarity(word)
        known = self._rarity_cache.get(word)
        if known is None:
            known = rarity_of(self._count(word), self.names)
            _remember(self._rarity_cache, word, known)
        return known

    def _count(self, word: NameToken) -> int:
        start, stop = self._range(self._key_hash, sound_key(word))
        for identity in self._key_word[start:stop]:
            if self._word(int(identity)).folds[0] == word.folds[0]:
                return int(self._counts[identity])
        return 0

    @staticmethod
    def _range(hashes: _Array, key: int) -> tuple[int, int]:
        wanted = np.uint32(key)
        return int(np.searchsorted(hashes, wanted, "left")), int(np.searchsorted(hashes, wanted, "right"))

    def _word(self, identity: int) -> NameToken:
        word = self._word_cache.get(identity)
        if word is None:
            start, stop = int(self._word_ends[identity]), int(self._word_ends[identity + 1])
            word = self._decode_word(self._word_blob[start:stop])
            _remember(self._word_cache, identity, word)
        return word

    def _similar(self, word: NameToken, *, joined: bool = False) -> tuple[_Array, _Array]:
        """Return (listed words, similarities) of all that a word may stand for, the least similar first."""
        known = None if joined else self._similar_cache.get(word)
        if known is not None:
            return known
        # Words run together are looked up by letters and sound: their consonants are in too many others.
        keys = np.array(word_keys(word, listed=False, bones_too=not joined), np.uint32)
        sides = (np.searchsorted(self._key_hash, keys, side) for side in ("left", "right"))
        runs_of = [self._key_word[start:stop] for start, stop in zip(*sides, strict=True) if stop > start]
        found: list[tuple[float, int]] = []
        if runs_of:
            for identity in np.unique(np.concatenate(runs_of)).tolist():
                similarity = compare_words(word, self._word(identity))
                if similarity >= (_JOINED_MIN if joined else SIMILARITY_MIN):
                    found.append((similarity, identity))
        found.sort()
        similarities, words = zip(*found, strict=True) if found else ((), ())
        result = np.array(words, np.int64), np.array(similarities, np.float32)
        if not joined:
            _remember(self._similar_cache, word, result)
        return result

    def search(self, subject: Subject) -> list[EntityMatch]:
        """Return the entities that a subject may be, the likeliest first."""
        named: dict[int, NameMatch] = {}
        self._search_text(subject.name, subject.type, named)
        aliased: dict[int, list[NameMatch]] = {}
        for alias in subject.aliases:
            found: dict[int, NameMatch] = {}
            self._search_text(alias, subject.type, found)
            for number, other in found.items():
                aliased.setdefault(number, []).append(other)
        best = {number: name.score for number, name in named.items()}
        for number, names in aliased.items():
            best[number] = max(best.get(number, 0.0), *(name.score for name in names))
        ranked = sorted(
            (number for number in best if best[number] >= _NAME_MIN), key=lambda number: -best[number]
        )
        # Namesakes of the last one that is compared are compared as well: facts tell them apart, not order.
        last = best[ranked[COMPARED_MAX - 1]] if len(ranked) > COMPARED_MAX else 0.0
        alike = [number for number in ranked[COMPARED_MAX:LIKELY_MAX] if best[number] == last >= _NAMESAKE]
        matches = []
        identified = self._identified(subject)
        for number in dict.fromkeys((*identified, *ranked[:COMPARED_MAX], *alike)):
            entity = self.entity(number)
            name: NameMatch | None = named.get(number)
            if name is None or number in identified:
                name = best_name(subject.name, entity, self.rarity)
            found_match = match_names(subject, entity, name, aliased.get(number, ()))
            if found_match is not None:
                matches.append(found_match)
        return sorted(matches, key=likeliest_first)

    def _identified(self, subject: Subject) -> list[int]:
        """Return the entities that have one of the subject's identifiers; an aircraft's name is one."""
        keys = [identifier_key(document) for document in subject.documents]
        if subject.type in (None, EntityType.AIRCRAFT):
            keys.append(identifier_key(Document("tail", subject.name)))  # type: ignore[arg-type]
        found: dict[int, None] = {}
        for key in keys:
            if len(key) >= 3:
                start, stop = self._range(self._document_hash, zlib.crc32(key.encode()))
                found.update(
                    dict.fromkeys(int(number) for number in self._document_entity[start:stop][:COMPARED_MAX])
                )
        return list(found)

    def _search_text(self, text: str, entity_type: EntityType | None, best: dict[int, NameMatch]) -> None:
        grammar = GRAMMARS.get(entity_type) if entity_type is not None else None
        for one in (Grammar.PERSON, Grammar.ORGANIZATION, Grammar.CRAFT) if grammar is None else (grammar,):
            for asked in (*(parse_name(name, one) for name in otherwise(text)), *name_readings(text, one)):
                for number in self._candidates(asked):
                    self._align(asked, int(number), best)
                if (apart := self._parted(asked)) is not None:
                    for number in self._candidates(apart):
                        self._align(apart, int(number), best)

    def _parted(self, asked: Name) -> Name | None:
        """Return a name with words that no list has parted into words that lists have, None where none is."""
        return with_parted_words(asked, lambda word: self._parts(word, asked.grammar))

    def _parts(self, word: NameToken, grammar: Grammar) -> tuple[NameToken, ...]:
        glued = len(word.text) >= GLUED_MIN and word.kind is TokenKind.NAME and not word.consonantal
        unknown = glued and not len(self._similar(word)[0])
        parts = parted(word.text, self._listed_keys) if unknown else ()
        # Of words that tell something: CapitaLand is no "Capital and".
        apart = parse_name(" ".join(parts), grammar).words
        return apart if sum(one.kind in SEARCHED for one in apart) > 1 else ()

    def _listed_keys(self, keys: Sequence[int]) -> set[int]:
        wanted = np.array(keys, np.uint32)
        places = np.minimum(np.searchsorted(self._key_hash, wanted), max(len(self._key_hash) - 1, 0))
        return set(wanted[self._key_hash[places] == wanted].tolist() if len(self._key_hash) else ())

    def _align(self, asked: Name, number: int, best: dict[int, NameMatch]) -> None:
        entity = int(self._name_entity[number])
        start, stop = int(self._name_ends[number]), int(self._name_ends[number + 1])
        words = tuple(self._word(int(identity)) for identity in self._name_words[start:stop])
        listed, known = Name("", asked.grammar, words), best.get(entity)
        asked = towards(asked, listed)
        if asked.grammar is Grammar.CRAFT:
            # Registration marks are compared whole; which craft are aircraft, the entity says.
            craft = self.entity(entity)
            listed = listed._replace(text=craft.names[int(self._name_place[number])].text)
            alignment = align_names(asked, listed, craft.type, self.rarity)
        else:
            alignment = align(asked, listed, self.rarity)
        # A weak alias counts below its score, so only a better score needs a look at the entity.
        if alignment.score < _NAME_MIN or (known is not None and known.standing >= alignment.score):
            return
        name = self.entity(entity).names[int(self._name_place[number])]
        score = limited_score(alignment, asked.text, name.text)
        found = NameMatch(score, asked, listed._replace(text=name.text), name, alignment)
        if known is None or found.standing > known.standing:
            best[entity] = found

    def _candidates(self, asked: Name) -> _Array:
        """Return the listed names worth aligning, at most `ALIGNED_MAX`."""
        weights = [WEIGHTS[asked.grammar][word.kind] * self.rarity(word) for word in asked.words]
        total, scratch = np.zeros(self.names, np.float32), np.empty(self.names, np.float32)
        touched = []
        sought = map(self._names_of, self._sought(asked, weights))
        found = sorted(sought, key=lambda one: len(one[0]))
        for place, (names, values) in enumerate(found):
            # Within one word the most similar listed word is last, and the last holds.
            scratch[names] = values
            total[names] += scratch[names]
            if not (place and place == len(found) - 1 and len(names) > _COMMON_NAMES):
                touched.append(names)
        same, *joined = self._joints(asked, weights, total)
        names = np.concatenate((same, *joined, *touched))
        # A single consonant cannot be looked up, so no name is asked to share it.
        telling = [not word.consonantal or len(word.skeletons[0]) > 1 for word in asked.words]
        own = sum(itertools.compress(weights, telling)) or sum(weights)
        rare = [names for names, _values in found if 0 < len(names) <= _RARE_NAMES]
        # Most of what was touched shares one common word; it goes before anything is sorted.
        names = names[total[names] >= _SHARE_MIN * np.minimum(self._name_mass[names], own)]
        if rare and len(names) <= _FEW_CANDIDATES:
            few = np.concatenate(rare)
            names = np.concatenate(
                (names, few[total[few] >= _RARE_SHARE_MIN * np.minimum(self._name_mass[few], own)])
            )
        names = np.unique(names)
        names = names[self._name_grammar[names] == int(asked.grammar)]
        mass = self._name_mass[names]
        # Words run together were counted in addition to the words themselves.
        shared = np.minimum(total[names], np.minimum(mass, own))
        share = shared / np.minimum(mass, own)
        if len(names) > ALIGNED_MAX:
            shared = np.minimum(shared + self._initials_shared(asked, names), np.minimum(mass, own))
            share = shared / np.minimum(mass, own)
        # What words sound like was counted in addition, so more names seem to share everything.
        most = _READING_ALIGNED_MAX if asked.others else LIKELY_MAX
        likely = min(most, max(ALIGNED_MAX, int(np.count_nonzero(share >= _LIKELY_SHARE))))
        if len(names) > likely:
            rank = share + shared / (mass + own - shared)
            if len(same):  # Whose words are the same is compared, however many share as much by sound.
                rank += np.isin(names, same[:ALIGNED_MAX])
            names = names[np.argpartition(-rank, likely)[:likely]]
        return names

    def _initials_shared(self, asked: Name, names: _Array) -> _Array:
        """Return the weight that each name shares with the query's initials, which tell namesakes apart."""
        shared = np.zeros(len(names), np.float32)
        letters = [word.text for word in asked.words if word.kind is TokenKind.INITIAL]
        if not letters or len(names) > _INITIALS_NAMES:
            return shared
        starts = self._name_ends[names].astype(np.int64)
        lengths = self._name_ends[names + 1].astype(np.int64) - starts
        offsets = np.concatenate(([0], np.cumsum(lengths)[:-1]))
        places = np.arange(int(lengths.sum())) + np.repeat(starts - offsets, lengths)
        firsts = self._first_letters[self._name_words[places]]
        weight = WEIGHTS[asked.grammar][TokenKind.INITIAL]
        for letter in letters:
            shared += weight * np.logical_or.reduceat(firsts == ord(letter), offsets)
        return shared

    def _sought(self, asked: Name, weights: Sequence[float]) -> list[_QueryWord]:
        sought = []
        only = [word.kind in SEARCHED for word in asked.words]
        for word, weight, searched in zip(asked.words, weights, only, strict=True):
            if searched or not any(only):
                sought.append(_QueryWord(weight, *self._similar(word)))
        for others, weight in zip(asked.others, weights, strict=False):
            # By its sound: meanings but the first are in too many names.
            said = (_QueryWord(weight, *self._similar(one)) for one, text, _ in others if not text.isascii())
            sought.extend(itertools.islice(said, 1))
        if len(asked.words) > 1:
            for places, joined in runs(asked):
                if len(places) <= 3 and len(joined) <= 24:
                    word = make_word(joined, TokenKind.NAME, asked.words[places[0]].consonantal)
                    if asked.words[places[0]].syllables is not None:
                        parts = [asked.words[place].syllables for place in places]
                        word = word._replace(syllables=joined_syllables(parts))
                    found = _QueryWord(self.rarity(word), *self._similar(word, joined=True))
                    if any(asked.words[place].kind is TokenKind.INITIAL for place in places):
                        # "O Brien" is O'Brien, but "W. Haddad" is no misspelt Haddad.
                        sure = found.similarities >= _INITIAL_JOINED_MIN
                        found = _QueryWord(found.weight, found.words[sure], found.similarities[sure])
                    if len(found.words):
                        sought.append(found)
        return sought

    def _names_of(self, sought: _QueryWord) -> tuple[_Array, _Array]:
        if not len(sought.words):
            return sought.words, sought.similarities
        starts, stops = self._post_ends[sought.words], self._post_ends[sought.words + 1]
        lengths = (stops - starts).astype(np.int64)
        names = np.concatenate([self._post_names[a:b] for a, b in zip(starts, stops, strict=True)])
        return names, np.repeat(sought.similarities * sought.weight, lengths)

    def _joints(self, asked: Name, weights: Sequence[float], total: _Array) -> list[_Array]:
        """Find the names that have all words of the query, then those of which two or more are one in it."""
        start, stop = self._range(self._joint_hash, whole_key(asked)) if len(asked.words) > 1 else (0, 0)
        same = self._joint_name[start:stop]
        total[same] = np.maximum(total[same], sum(weights))
        found = [same]
        for word, weight in zip(asked.words, weights, strict=True):
            if len(word.text) < _JOINT_MIN and word.syllables is None:
                continue
            for key in joint_keys(word.text, word.syllables, listed=False):
                start, stop = self._range(self._joint_hash, key)
                if stop > start:
                    names = self._joint_name[start:stop]
                    total[names] += np.maximum(weight, 0.9)
                    found.append(names)
        return found


def _remember(cache: dict[Any, Any], key: Any, value: Any) -> None:
    if len(cache) >= _CACHE_WORDS:  # Dropping everything is cheaper than keeping an order, and thread-safe.
        cache.clear()
    cache[key] = value
