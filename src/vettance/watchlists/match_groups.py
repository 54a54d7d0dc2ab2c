"""Groups: matches on several lists that are entries of one and the same person, company or craft."""

import re
from collections.abc import Mapping, Sequence

from vettance.watchlists.compare import identifier_key
from vettance.watchlists.entity import BirthDate, DocumentKind, Entity, EntityType, NameQuality

_NOT_WORD = re.compile(r"[\W_]+")
#: Identifiers by which publishers know somebody; anything may be a number of kind OTHER.
_TELLING = frozenset(DocumentKind) - {DocumentKind.OTHER}
_IDENTIFIER_MIN = 5
_NAME_LETTERS_MIN = 8
_YEARS_APART_MAX = 1


class _Entry:
    """What shows that two entries are about one subject."""

    def __init__(self, entity: Entity) -> None:
        self.list = entity.source, entity.list_name
        self.type = entity.type
        self.births = entity.births
        self.names = {
            frozenset(_NOT_WORD.split(name.text.casefold())) - {""}
            for name in entity.names
            if name.quality is not NameQuality.WEAK and len(name.text) >= _NAME_LETTERS_MIN
        }
        if entity.type is EntityType.INDIVIDUAL:
            self.names = {words for words in self.names if len(words) > 1}
        self.identifiers = {
            (document.kind, value)
            for document in entity.documents
            if document.kind in _TELLING and len(value := identifier_key(document)) >= _IDENTIFIER_MIN
        }
        self.reference = _NOT_WORD.sub("", entity.reference).casefold()

    def is_of(self, other: "_Entry") -> bool:
        """Tell whether two entries of different lists describe one."""
        if self.list == other.list or not self.type == other.type != EntityType.UNKNOWN:
            return False
        if self.reference and self.reference == other.reference:
            return True
        if not self.identifiers.isdisjoint(other.identifiers):
            return True
        return not self.names.isdisjoint(other.names) and _may_be_one(self.births, other.births)


def _may_be_one(some: Sequence[BirthDate], others: Sequence[BirthDate]) -> bool:
    """Tell whether no dates of birth keep two entries apart; of several dates one is enough."""
    if not some or not others:
        return True
    for one in some:
        for other in others:
            first, last = one.years()
            other_first, other_last = other.years()
            if max(first - other_last, other_first - last) <= _YEARS_APART_MAX:
                return True
    return False


def group_numbers(entities: Sequence[Entity]) -> Mapping[str, int]:
    """Return for the id of each entity the number of its group, from 1 in the order in which they come.

    Entries are one when they are on different lists and cite one reference, share an identifier, or share a
    whole name while their dates of birth do not differ. A list has nobody twice, so no group has two entries
    of one list.
    """
    groups: list[list[_Entry]] = []
    numbers: dict[str, int] = {}
    for entity in entities:
        entry = _Entry(entity)
        for number, group in enumerate(groups, 1):
            apart = any(entry.list == other.list for other in group)
            if not apart and any(entry.is_of(other) for other in group):
                group.append(entry)
                numbers[entity.id] = number
                break
        else:
            groups.append([entry])
            numbers[entity.id] = len(groups)
    return numbers
