"""Members and parameters that nobody declared, each with the name that was probably meant."""

import difflib
import functools
import itertools
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Final, NamedTuple
from urllib.parse import quote

import msgspec

from vettance.wire.declared import Declared, declared
from vettance.wire.payload import JSON, NAME_CHARS_SHOWN


class KnownNames(msgspec.Struct, frozen=True, eq=False):
    """Names that have a meaning within members of any form, by the path of that member ("" is the body)."""

    by_path: Mapping[str, frozenset[str]] = {}


NO_NAMES: Final = KnownNames()

#: So many are found in one body: who sends more has told enough with these, and finding costs.
UNKNOWN_MAX: Final = 8
#: Names in members of any form that are compared with those that have a meaning: each takes 0.05 ms.
COMPARED_MAX: Final = 40
#: Answers to so few strange names are remembered.
_TOLD_MAX: Final = 16
#: How long the header may be; proxies begin to mind at 4 KiB for all of them.
HEADER_BYTES_MAX: Final = 1024
#: How alike two names must be, from 0 to 1, for one to be taken for the other misspelt. In a member of any
#: form names are the sender's own, so only what is nearly a name with a meaning is worth a word.
_ALIKE_MIN: Final = 0.75
_NEARLY_MIN: Final = 0.85
_LETTERS_APART_MAX: Final = 1

_WORDS: Final = re.compile(r"[A-Z]?[a-z0-9]+|[A-Z0-9]+(?![a-z])|[^\W_]+")
_IGNORED: Final = "tenantId"


class UnknownName(NamedTuple):
    """A name that is not known, by its path, and the path of the one that it is near to, if any."""

    path: str
    nearest: str | None


def unknown_members(body: JSON, shape: type, known: KnownNames = NO_NAMES) -> list[UnknownName]:
    """Return the members of a body that nothing declares or knows, the first few of them.

    Whatever stands in a member of any form is the sender's own; there a name is unknown only if it is nearly
    one that `known` names for it. A `tenantId` is ignored everywhere, and so here.
    """
    strange = _strange_names(body, _known_place(shape, known))
    if not strange:
        return []
    return list((_known_told if len(strange) <= _TOLD_MAX else _told)(strange, shape, known))


def _told(strange: "tuple[_StrangeName, ...]", shape: type, known: KnownNames) -> tuple[UnknownName, ...]:
    found: list[UnknownName] = []
    compared = 0
    for path, is_free in strange:
        compared += is_free
        if compared > COMPARED_MAX:
            break
        nearest = _nearest_member(path, shape, known, _NEARLY_MIN if is_free else _ALIKE_MIN)
        if nearest is not None or not is_free:
            found.append(UnknownName(path, nearest))
            if len(found) == UNKNOWN_MAX:
                break
    return tuple(found)


# Events of a tenant have the same names again and again.
_known_told: Final = functools.lru_cache(maxsize=512)(_told)


def unknown_parameters(sent: Iterable[str], taken: tuple[str, ...]) -> list[UnknownName]:
    """Return the names of a query that it does not take; paths begin with a question mark."""
    strange = [name[:NAME_CHARS_SHOWN] for name in sent if name not in taken][:UNKNOWN_MAX]
    if not strange:
        return []
    targets = _Targets(map(_name, taken))
    return [UnknownName(f"?{name}", targets.nearest(_name(name), _ALIKE_MIN)) for name in strange]


def header_text(found: Iterable[UnknownName], unreadable: Iterable[str] = ()) -> str:
    """Write unknown names as the value of a header: ASCII, nothing that could end or divide it, bounded.

    `unreadable` are the paths of members that are known and hold no number where only numbers are read.
    """
    text = ""
    said = [(path, f"did you mean {nearest}?" if nearest is not None else "") for path, nearest in found]
    for path, remark in (*said, *((path, "not a number") for path in unreadable)):
        each = quote(path, safe="?$@") + (f" ({remark})" if remark else "")
        if len(text) + len(each) > HEADER_BYTES_MAX:
            break
        text += f", {each}" if text else each
    return text


class _KnownPlace(NamedTuple):
    """The names that are known in one object, and the objects within it that have names of their own."""

    path: str
    names: frozenset[str]
    is_free: bool
    within: "tuple[tuple[str, _KnownPlace], ...]"


class _StrangeName(NamedTuple):
    """The path of a name that is not known in its place, and whether its holder is of any form."""

    path: str
    is_free: bool


@functools.lru_cache(maxsize=64)
def _known_place(shape: type, known: KnownNames) -> _KnownPlace:
    return _place(declared(shape), "", known.by_path)


def _place(members: Mapping[str, Declared], path: str, known: Mapping[str, frozenset[str]]) -> _KnownPlace:
    within = []
    for name, one in members.items():
        inner = f"{path}{name}"
        if one.members is not None:
            within.append((name, _place(one.members, f"{inner}.", known)))
        elif (names := known.get(inner)) is not None:
            within.append((name, _KnownPlace(f"{inner}.", names, True, ())))  # noqa: FBT003
    here = known.get(path[:-1], frozenset())
    return _KnownPlace(path, frozenset((*members, *here, _IGNORED)), False, tuple(within))  # noqa: FBT003


def _strange_names(body: JSON, known: _KnownPlace) -> tuple[_StrangeName, ...]:
    """Return the names of a body that are not known in their places, as many as are looked at."""
    found: list[_StrangeName] = []
    waiting = [(body, known)]
    for holder, (path, names, is_free, within) in waiting:  # It grows as objects are found within.
        if not holder.keys() <= names:
            strange = (name for name in holder if name not in names)
            room = COMPARED_MAX + UNKNOWN_MAX - len(found)
            found += [
                _StrangeName(path + name[:NAME_CHARS_SHOWN], is_free)
                for name in itertools.islice(strange, room)
            ]
        for name, place in within:
            value = holder.get(name)
            if type(value) is dict:
                waiting.append((value, place))
    return tuple(found)


class _Name(NamedTuple):
    """A path, and what is compared of it."""

    path: str
    holder: str
    words: tuple[str, ...]
    letters: str  # of the last part, all small


class _Targets:
    """Names that may have been meant, found by what the likely ones share with the name that was sent.

    To compare a name with all of them took 0.4 ms, and whoever sent 350 new names with each event held the
    loop for 0.1 s each time.
    """

    def __init__(self, names: Iterable[_Name]) -> None:
        self._names = tuple(names)
        self._matchers = [difflib.SequenceMatcher(None, "", name.letters) for name in self._names]
        self._places: dict[tuple[object, ...], list[int]] = {}
        for place, name in enumerate(self._names):
            letters, size = name.letters, len(name.letters)
            keys: set[tuple[object, ...]] = {("same", letters), ("word", *name.words[-1:])}
            keys |= {("first", size, letters[:1]), ("last", size, letters[-1:])}
            for key in keys:
                self._places.setdefault(key, []).append(place)

    def nearest(self, sent: _Name, alike_min: float) -> str | None:
        """Return the path of the target that was probably meant; of equals the first."""
        best, nearest = 0.0, None
        for place in sorted(self._likely(sent)):
            target = self._names[place]
            alike = _likeness(sent, target, self._matchers[place], max(best, alike_min))
            if alike > best:
                best, nearest = alike, target.path
        return nearest if best >= alike_min else None

    def _likely(self, sent: _Name) -> set[int]:
        """Return the places of all targets that are like a name at all."""
        letters, size = sent.letters, len(sent.letters)
        keys: list[tuple[object, ...]] = [("same", letters)]
        if len(sent.words) > 1:
            keys.append(("word", sent.words[-1]))
        # Hardly anybody misspells the first letter and the last.
        for other in range(size - _LETTERS_APART_MAX, size + _LETTERS_APART_MAX + 1):
            keys += (("first", other, letters[:1]), ("last", other, letters[-1:]))
        return {place for key in keys for place in self._places.get(key, ())}


def _name(path: str) -> _Name:
    holder, _, last = path.rpartition(".")
    return _Name(path, holder, _words(path), "".join(_words(last)))


def _words(text: str) -> tuple[str, ...]:
    return tuple(word.lower() for word in _WORDS.findall(text))


@functools.cache
def _targets(shape: type, known: KnownNames) -> _Targets:
    """Return everything that has a meaning, what is declared first."""
    paths = [*_paths(declared(shape), "")]
    for path, names in known.by_path.items():
        paths += [f"{path}.{name}" if path else name for name in sorted(names)]
    return _Targets(_name(path) for path in dict.fromkeys(paths))


def _paths(members: Mapping[str, Declared], path: str) -> Iterator[str]:
    for name, one in members.items():
        yield f"{path}{name}"
        if one.members is not None:
            yield from _paths(one.members, f"{path}{name}.")


@functools.lru_cache(maxsize=4096)
def _nearest_member(path: str, shape: type, known: KnownNames, alike_min: float) -> str | None:
    return _targets(shape, known).nearest(_name(path), alike_min)


def _likeness(sent: _Name, target: _Name, matcher: difflib.SequenceMatcher[str], alike_min: float) -> float:
    """Say from 0 to 1 how likely a target was meant; what is below `alike_min` may be said to be 0.

    The same name in another place or spelling is nearest; then one that has all its words, with more around
    them (`customer.id` for `customer.externalId`); then one that differs in a few letters.
    """
    same_place = 0.05 if sent.holder == target.holder else 0.0
    if sent.letters == target.letters:
        return 0.95 + same_place
    if len(sent.words) > 1 and sent.words[-1] == target.words[-1] and set(sent.words) < set(target.words):
        return 0.85 + same_place
    if abs(len(sent.letters) - len(target.letters)) > _LETTERS_APART_MAX:
        return 0.0
    matcher.set_seq1(sent.letters)
    # Which letters there are is quickly compared; their order takes long.
    if matcher.quick_ratio() + same_place < alike_min:
        return 0.0
    return min(0.9, matcher.ratio()) + same_place
