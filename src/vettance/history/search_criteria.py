"""The filters of the lists of decisions and events: one row for each, and what a list asks for by them.

A filter that compares a stored column is a row here, or the `filter` of a searchable field, and nothing else:
the query parameter, the condition of the store and the mask over segments are made from it.
"""

import enum
from collections.abc import Sequence
from typing import Annotated, Any, Final, NamedTuple

import msgspec

from vettance.decisions.decision import Outcome
from vettance.decisions.searchable_fields import FIELD_OF_COLUMN, REASONS, SEARCHABLE_FIELDS
from vettance.events.event import Category
from vettance.web.query import any_case


class RiskLevelBand(enum.StrEnum):
    """The bands of the risk score."""

    LOW = "low"
    MEDIUM = "medium"
    HIGH = "high"
    CRITICAL = "critical"


#: What no code looks like.
_NO_CODE: Final = "-"

AnyOutcome = Annotated[Outcome, any_case(approve="ALLOW", deny="BLOCK")]
Percent = Annotated[int, msgspec.Meta(ge=0, le=100)]


class FilterParameter(NamedTuple):
    """One filter: its name in the query, its type there, and the columns of which one must compare so."""

    name: str
    type: Any
    columns: tuple[str, ...]
    comparison: str = "="


def _field_filters() -> tuple[FilterParameter, ...]:
    columns: dict[str, list[str]] = {}
    docs: dict[str, str] = {}
    for field in SEARCHABLE_FIELDS:
        if field.filter is not None:
            columns.setdefault(field.filter.name, []).append(field.column)
            docs[field.filter.name] = field.filter.doc
    return tuple(
        FilterParameter(
            name, Annotated[str, msgspec.Meta(description=docs[name])] if docs[name] else str, tuple(found)
        )
        for name, found in columns.items()
    )


_OUTCOME: Final = FilterParameter("decision", AnyOutcome, ("decision",))
_FIELD_FILTERS: Final = _field_filters()
DECISION_FILTERS: Final = (
    _OUTCOME,
    FilterParameter("min_score", Percent, ("score",), ">="),
    FilterParameter("max_score", Percent, ("score",), "<="),
    FilterParameter("risk_level", Annotated[RiskLevelBand, any_case()], ("level",)),
    FilterParameter(
        "reason_code",
        Annotated[str, msgspec.Meta(description="A whole reason code, in any letter case.")],
        (REASONS,),
    ),
    *_FIELD_FILTERS,
)
EVENT_FILTERS: Final = (
    FilterParameter("event_name", str, ("event_name",)),
    FilterParameter("event_category", Category, ("event_category",)),
    _OUTCOME,
    *_FIELD_FILTERS,
)
_FILTERS: Final = {one.name: one for one in (*DECISION_FILTERS, *EVENT_FILTERS)}


class FieldCondition(NamedTuple):
    """What a filter demands: one of some columns compares so with the value that is given for it."""

    choices: tuple[tuple[str, str | int], ...]
    comparison: str = "="


class SearchCriteria(msgspec.Struct, frozen=True, kw_only=True):
    """What a list asks for: all of these; nothing is asked for by None.

    `moment` names the column of `from` and `to`, `search` is in folded case.
    """

    conditions: tuple[FieldCondition, ...] = ()
    moment: str = "evaluated_at_ms"
    from_ms: int | None = None
    to_ms: int | None = None
    search: str | None = None


def criteria(
    *,
    moment: str = "evaluated_at_ms",
    from_ms: int | None = None,
    to_ms: int | None = None,
    search: str | None = None,
    **filters: Any,
) -> SearchCriteria:
    """Return what filters ask for, by their names in the table above; None asks for nothing."""
    return SearchCriteria(
        conditions=tuple(
            _condition(_FILTERS[name], value) for name, value in filters.items() if value is not None
        ),
        moment=moment,
        from_ms=from_ms,
        to_ms=to_ms,
        search=search.casefold() if search is not None else None,
    )


def criteria_of(query: Any, filters: Sequence[FilterParameter], moment: str) -> SearchCriteria:
    """Return what a query asks for that declares these filters, and a span of moments."""
    return criteria(
        moment=moment,
        from_ms=query.moment_from,
        to_ms=query.moment_to,
        search=getattr(query, "search", None),
        **{one.name: getattr(query, one.name) for one in filters},
    )


def _condition(parameter: FilterParameter, value: Any) -> FieldCondition:
    stored = value.value if isinstance(value, enum.Enum) else value
    choices = ((column, form) for column in parameter.columns for form in _forms(column, stored))
    return FieldCondition(tuple(choices), parameter.comparison)


def _forms(column: str, value: Any) -> tuple[Any, ...]:
    if column == REASONS:
        # Codes are one word of capital letters.
        words = value.upper().split()
        return (words[0] if len(words) == 1 else _NO_CODE,)
    field = FIELD_OF_COLUMN.get(column)
    if field is None or (normal := field.normalize(value)) == value:
        return (value,)
    # A decision from before its field had a normal form keeps what was sent.
    return normal, value
