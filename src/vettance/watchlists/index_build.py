"""Building an index: from listed entities to files that every process maps into its memory."""

import gc
import math
import mmap
import os
import shutil
import zlib
from array import array
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from vettance.watchlists.blocking_keys import joint_keys, runs, text_key, whole_key, word_keys
from vettance.watchlists.compare import identifier_key
from vettance.watchlists.entity import Entity
from vettance.watchlists.glued_names import plain_words
from vettance.watchlists.mandarin import Syllables, joined
from vettance.watchlists.match import ALGORITHM, grammars_of
from vettance.watchlists.name_analysis import Name, parse_name
from vettance.watchlists.name_readings import name_readings
from vettance.watchlists.name_token import NameToken, TokenKind
from vettance.watchlists.word_weights import WEIGHTS

#: Changes whenever the files change their meaning; an index of another format is built again.
FORMAT = 9
META_FILE = "index.json"
ENTITIES_FILE = "entities.msgpack"
WORDS_FILE = "words.msgpack"

#: Lists smaller than this say nothing about how common a word is.
_NAMES_MIN = 20_000
_RARITY_FLOOR, _RARITY_SLOPE, _RARITY_MIN, _RARITY_MAX = 0.38, 0.072, 0.5, 1.15
#: What a word does that makes its weight follow its rarity.
WEIGHED = frozenset({TokenKind.NAME, TokenKind.PATRONYMIC, TokenKind.KIN})


def rarity_of(count: int, names: int) -> float:
    """Return the factor by which a word of `count` names among `names` counts: 0.5 common, 1.15 unknown."""
    value = _RARITY_FLOOR + _RARITY_SLOPE * math.log(max(names, _NAMES_MIN) / (count + 1))
    return min(_RARITY_MAX, max(_RARITY_MIN, value))


class IndexBuilder:
    """Takes entities one by one and writes the index. Memory: about 600 bytes a name while it builds."""

    def __init__(self) -> None:
        self._words: dict[tuple[str, int, bool, Syllables | None], int] = {}
        self._word_list: list[NameToken] = []
        #: Spellings that were read as another word: "alaeddin" as "alaudin", "enterprises" as "enterprise".
        self._spellings: dict[int, set[str]] = {}
        self._name_words = array("I")
        self._name_ends = array("I", [0])
        self._name_entity = array("I")
        self._name_place = array("H")
        self._name_grammar = array("B")
        self._joint_hash = array("I")
        self._joint_name = array("I")
        self._document_hash = array("I")
        self._document_entity = array("I")
        self._blob = bytearray()
        self._ends = array("Q", [0])
        self._encode = msgspec.msgpack.Encoder().encode
        self.entities = 0
        self.sources: dict[str, int] = {}

    def add(self, entity: Entity) -> None:
        """Add one entity with all its names and identifiers."""
        number = self.entities
        self.entities += 1
        self.sources[entity.source] = self.sources.get(entity.source, 0) + 1
        self._blob += self._encode(entity)
        self._ends.append(len(self._blob))
        for place, listed in enumerate(entity.names[:65535]):
            for grammar in grammars_of(entity.type):
                for name in (parse_name(listed.text, grammar), *name_readings(listed.text, grammar)):
                    self._add_name(number, place, name)
        for key in dict.fromkeys(identifier_key(document) for document in entity.documents):
            if len(key) >= 3:
                self._document_hash.append(zlib.crc32(key.encode()))
                self._document_entity.append(number)

    def _add_name(self, entity: int, place: int, name: Name) -> None:
        text = name.text
        number = len(self._name_entity)
        for word in name.words:
            identified = (word.text, int(word.kind), word.consonantal, word.syllables)
            identity = self._words.get(identified)
            if identity is None:
                identity = self._words[identified] = len(self._word_list)
                self._word_list.append(word)
            self._name_words.append(identity)
        self._name_ends.append(len(self._name_words))
        spellings = plain_words(text) if text.isascii() else ()
        if spellings and len(spellings) == len(name.words):
            for identity, spelling in zip(self._name_words[-len(spellings) :], spellings, strict=True):
                if spelling != self._word_list[identity].text:
                    self._spellings.setdefault(identity, set()).add(spelling)
        self._name_entity.append(entity)
        self._name_place.append(place)
        self._name_grammar.append(int(name.grammar))
        if len(name.words) > 1:
            keys: set[int] = {whole_key(name)}
            for places, run in runs(name):
                syllables = joined([name.words[one].syllables for one in places])
                keys.update(joint_keys(run, syllables, listed=True))
            self._joint_hash.extend(keys)
            self._joint_name.extend([number] * len(keys))

    def write(
        self, folder: Path, versions: Mapping[str, str], progress: Callable[[str], None] = lambda _: None
    ) -> None:
        """Write the index into `folder`, whole or not at all; `versions` are those of the lists in it."""
        draft = folder.with_name(f"{folder.name}.{os.getpid()}.draft")
        shutil.rmtree(draft, ignore_errors=True)
        draft.mkdir(parents=True)
        try:
            progress("words")
            counts = self._write_words(draft)
            progress("names")
            self._write_names(draft, counts)
            _save_pairs(draft, "joint", self._joint_hash, self._joint_name)
            _save_pairs(draft, "document", self._document_hash, self._document_entity)
            np.save(draft / "entity_ends.npy", np.frombuffer(self._ends, np.uint64))
            (draft / ENTITIES_FILE).write_bytes(self._blob)
            meta = {
                "format": FORMAT,
                "algorithm": ALGORITHM,
                "versions": dict(versions),
                "sources": self.sources,
                "entities": self.entities,
                "names": len(self._name_entity),
                "words": len(self._word_list),
            }
            (draft / META_FILE).write_bytes(msgspec.json.encode(meta))
            for path in draft.iterdir():
                _sync(path)
            shutil.rmtree(folder, ignore_errors=True)
            draft.rename(folder)
            _sync(folder.parent)
        except BaseException:
            shutil.rmtree(draft, ignore_errors=True)
            raise

    def _write_words(self, folder: Path) -> Any:
        """Write the words, how often their sound occurs, and the keys by which they are found."""
        words = self._word_list
        owners = np.frombuffer(self._name_words, np.uint32) if self._name_words else np.zeros(0, np.uint32)
        counts = np.bincount(owners, minlength=len(words)).astype(np.uint32)
        sounds: dict[str, int] = {}
        for identity, word in enumerate(words):
            sounds[word.folds[0]] = sounds.get(word.folds[0], 0) + int(counts[identity])
        heard = np.fromiter((sounds[word.folds[0]] for word in words), np.uint32, len(words))
        # Analysed: a search meets most words for the first time, and reads faster than it analyses.
        blob, ends = bytearray(), array("Q", [0])
        for word in words:
            blob += self._encode(word)
            ends.append(len(blob))
        (folder / WORDS_FILE).write_bytes(blob)
        np.save(folder / "word_ends.npy", np.frombuffer(ends, np.uint64))
        firsts = np.fromiter((ord(word.text[0]) for word in words), np.uint8, len(words))
        np.save(folder / "word_first.npy", firsts)
        np.save(folder / "word_count.npy", heard)
        keys, owner = array("I"), array("I")
        for identity, word in enumerate(words):
            found = word_keys(word, listed=True)
            # By these alone words that are run together are parted (`glued_names.py`).
            found.extend(text_key(text) for text in (word.text, *self._spellings.get(identity, ())))
            keys.extend(found)
            owner.extend([identity] * len(found))
        _save_pairs(folder, "key", keys, owner)
        return heard

    def _write_names(self, folder: Path, heard: Any) -> None:
        words = np.frombuffer(self._name_words, np.uint32) if self._name_words else np.zeros(0, np.uint32)
        ends = np.frombuffer(self._name_ends, np.uint32)
        names = len(ends) - 1
        np.save(folder / "name_words.npy", words)
        np.save(folder / "name_ends.npy", ends)
        np.save(folder / "name_entity.npy", np.frombuffer(self._name_entity, np.uint32))
        np.save(folder / "name_place.npy", np.frombuffer(self._name_place, np.uint16))
        grammar = np.frombuffer(self._name_grammar, np.uint8)
        np.save(folder / "name_grammar.npy", grammar)
        owner = np.repeat(np.arange(names, dtype=np.uint32), np.diff(ends))
        order = np.argsort(words, kind="stable")
        starts = np.searchsorted(words[order], np.arange(len(self._word_list) + 1)).astype(np.uint32)
        np.save(folder / "posting_names.npy", owner[order])
        np.save(folder / "posting_ends.npy", starts)
        rarity = np.fromiter(
            (
                rarity_of(int(count), names) if word.kind in WEIGHED else 1.0
                for count, word in zip(heard, self._word_list, strict=True)
            ),
            np.float32,
            len(self._word_list),
        )
        mass = np.zeros(names, np.float32)
        for number, weights in WEIGHTS.items():
            factor = np.array([weights[word.kind] for word in self._word_list], np.float32) * rarity
            part = np.add.reduceat(factor[words], ends[:-1]) if len(words) else mass
            mass = np.where(grammar == int(number), part, mass)
        np.save(folder / "name_mass.npy", mass.astype(np.float32))


def _save_pairs(folder: Path, name: str, keys: "array[int]", values: "array[int]") -> None:
    """Write a map of key → values as two columns sorted by key."""
    left = np.frombuffer(keys, np.uint32) if keys else np.zeros(0, np.uint32)
    right = np.frombuffer(values, np.uint32) if values else np.zeros(0, np.uint32)
    order = np.argsort(left, kind="stable")
    np.save(folder / f"{name}_hash.npy", left[order])
    np.save(folder / f"{name}_value.npy", right[order])


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def build_index(
    folder: Path,
    entities: Iterable[Entity],
    versions: Mapping[str, str],
    progress: Callable[[str], None] = lambda _: None,
) -> None:
    """Build an index of `entities` in `folder`, replacing what is there."""
    builder = IndexBuilder()
    collecting = gc.isenabled()
    # A build makes millions of small values and no cycles; looking for cycles among them takes a quarter of
    # the time.
    gc.disable()
    try:
        for entity in entities:
            builder.add(entity)
        builder.write(folder, versions, progress)
    finally:
        if collecting:
            gc.enable()


def map_array(path: Path) -> Any:
    """Map an array of an index for reading."""
    array = np.load(path, mmap_mode="r")
    # A plain view: slices of `np.memmap` are made by Python code and cost twice as much.
    return array.view(np.ndarray)


def map_bytes(path: Path) -> memoryview | bytes:
    """Map a file of an index for reading."""
    with path.open("rb") as file:
        if path.stat().st_size == 0:
            return b""
        return memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
