"""Self check: whether names that an index holds find themselves, told at each build of one."""

import msgspec

from vettance.watchlists.entity import EntityType, NameQuality
from vettance.watchlists.index import Index
from vettance.watchlists.match import WEAK_ALIAS_MAX, Subject

#: Names searched at a build: milliseconds each, and enough to show a fault that loses one name in a hundred.
SEARCHED_MAX = 200
_SHOWN_MAX = 20
#: A name by itself is held by every profile from here on; a weak alias never scores more than this.
_FOUND, _FOUND_WEAK = 85, round(100 * WEAK_ALIAS_MAX)


class SelfCheck(msgspec.Struct, frozen=True):
    """How many names were searched, how many did not find an entity of that name, and the first of them."""

    searched: int
    missed: int
    names: tuple[str, ...]


def check_names(index: Index, searched_max: int = SEARCHED_MAX) -> SelfCheck:
    """Search names of all entities, evenly spread over the lists, and count those that miss themselves.

    A name is found when its own entity is, or another one whose name is equal: common names have more
    namesakes than a search compares.
    """
    total = sum(len(index.entity(number).names) for number in range(index.entities)) if searched_max else 0
    step = max(1, total // max(1, searched_max))
    place = searched = 0
    missed: list[str] = []
    for entity in index.all_entities():
        for name in entity.names:
            place += 1
            if place % step:
                continue
            searched += 1
            subject = Subject(name=name.text, type=None if entity.type is EntityType.UNKNOWN else entity.type)
            least = _FOUND_WEAK if name.quality is NameQuality.WEAK else _FOUND
            found = index.search(subject)
            if not any(
                one.score >= least and (one.entity.id == entity.id or one.name_equal) for one in found
            ):
                missed.append(name.text)
    return SelfCheck(searched, len(missed), tuple(missed[:_SHOWN_MAX]))
