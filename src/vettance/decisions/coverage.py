"""Coverage: what the newest events of a tenant lack, and what they carry that nothing reads."""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple, Self

import msgspec

from vettance.db.engine import Row
from vettance.decisions.features import known_names
from vettance.decisions.field_readers import amount_in
from vettance.decisions.sql import COVERED
from vettance.events.event import EventBody
from vettance.wire.payload import JSON, Wire
from vettance.wire.suggestions import unknown_members

#: Enough to show what a sender always leaves out, and read in milliseconds.
NEWEST: Final = 200
#: Bodies beyond this are left unread: what a sender does always shows in small ones too.
BODY_BYTES_MAX: Final = 64 * 1024
_MEMBERS_SHOWN: Final = 10
_SHARE_DIGITS: Final = 4


class NewestEvent(NamedTuple):
    """One of the newest events: its entities (`COVERED`), and its body unless that is large."""

    category: str
    entities: Sequence[str | None]
    sent: bytes | None

    @classmethod
    def of(cls, row: Row) -> Self:
        """Make one of a row of `select_newest_sent`."""
        category, *entities, sent = row
        return cls(category, entities, sent)


class UnknownMember(Wire, frozen=True):
    """A member that nothing reads, how many events carry it, and the name that was probably meant."""

    name: str
    events: int
    nearest: str | None = None


class Coverage(Wire, frozen=True):
    """The newest events of a tenant: the share of them without each part, and members that nothing reads.

    `without.amount` is a share of those of category TRANSACTION; it is left out where there are none.
    """

    events: int
    without: dict[str, float]
    unknown_members: list[UnknownMember]


def cover(newest: Iterable[NewestEvent]) -> Coverage:
    """Compute the coverage of some events of a tenant, the newest of them."""
    looked = list(newest)
    without = {
        kind: _share(sum(not one.entities[place] for one in looked), len(looked))
        for place, kind in enumerate(COVERED)
    }
    payments = [body for one in looked if one.category == "TRANSACTION" and (body := _body(one)) is not None]
    without["amount"] = _share(sum(not _has_amount(body) for body in payments), len(payments))
    unknown: Counter[tuple[str, str | None]] = Counter()
    for one in looked:
        if (body := _body(one)) is not None:
            unknown.update(unknown_members(body, EventBody, known_names()))
    return Coverage(
        events=len(looked),
        without={name: share for name, share in without.items() if share is not None},
        unknown_members=[
            UnknownMember(name=path, events=count, nearest=nearest)
            for (path, nearest), count in unknown.most_common(_MEMBERS_SHOWN)
        ],
    )


def _share(part: int, whole: int) -> float | None:
    return round(part / whole, _SHARE_DIGITS) if whole else None


def _body(one: NewestEvent) -> JSON | None:
    if one.sent is None:
        return None
    try:
        body = msgspec.json.decode(one.sent)
    except msgspec.MsgspecError:
        return None
    return body if type(body) is dict else None


def _has_amount(body: JSON) -> bool:
    return amount_in(body)[0] is not None
