"""Paging: what every query of a list may say of its pages, and what every page answers."""

from typing import Annotated, Generic, Self, TypeVar

import msgspec

from vettance.errors import Invalid
from vettance.ids import is_id
from vettance.web.query import SortOrder
from vettance.wire.payload import Wire

Item = TypeVar("Item")

# A page beyond the last is empty; up to this one its first item has a number that every store can count.
PageNumber = Annotated[int, msgspec.Meta(ge=1, le=10**15, description="Which page, from 1.")]
PageLimit = Annotated[int, msgspec.Meta(ge=1, le=100, description="How many items a page has.")]
Direction = Annotated[SortOrder, msgspec.Meta(description="By creation, or by what `sortBy` names.")]
Cursor = Annotated[str, msgspec.Meta(description="`nextCursor` of the page before.")]


class PageQuery(Wire, frozen=True):
    """Which page of a list. With a cursor it begins where the one before ended, whatever its number."""

    page: PageNumber = 1
    limit: PageLimit = 50
    sort_order: Direction = SortOrder.DESC
    cursor: Cursor | None = None

    @property
    def offset(self) -> int:
        """How many items are passed over: those before the page, or none beyond a cursor."""
        return 0 if self.cursor is not None else (self.page - 1) * self.limit

    @property
    def descending(self) -> bool:
        """Whether the newest or largest come first."""
        return self.sort_order is SortOrder.DESC

    def after_id(self, prefix: str) -> str | None:
        """Return the id that the page begins after, where cursors are ids. Raises `Invalid` (400)."""
        if self.cursor is not None and not is_id(self.cursor, prefix):
            raise bad_cursor()
        return self.cursor


class PageAnswer(Wire, Generic[Item], frozen=True, omit_defaults=True):
    """A page of a list; `nextCursor` leads to the next one at the same cost."""

    data: list[Item]
    total: int
    page: int
    limit: int
    has_more: bool
    next_cursor: str | None = None

    @classmethod
    def of(cls, query: PageQuery, data: list[Item], total: int, next_cursor: str | None) -> Self:
        """Return the page that a query asked for; without `next_cursor` it is the last one."""
        return cls(
            data=data,
            total=total,
            page=query.page,
            limit=query.limit,
            has_more=next_cursor is not None,
            next_cursor=next_cursor,
        )


def bad_cursor() -> Invalid:
    """Return the refusal (400) of a cursor that no page gave."""
    return Invalid(
        "The request is not well-formed; see details.",
        {"cursor": "must be the nextCursor of an earlier page"},
    )
