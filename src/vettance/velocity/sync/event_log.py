"""How a log of events is read: what keeps velocity equal to a log knows nothing else of fraud or AML."""

from collections.abc import Callable
from typing import NamedTuple

from vettance.db.engine import Statement


class EventLog(NamedTuple):
    """A log of events, in the order of their numbers.

    A row begins with the number of its event; its fourth column is when it was received (Unix milliseconds).
    """

    #: Asks for the events of all tenants behind a number, received since a moment, so many at a time.
    select_all: Callable[[int, int, int], Statement]
    #: Asks for those of one tenant.
    select_tenant: Callable[[str, int, int, int], Statement]
    tenant_column: int  # in the rows of all tenants
    id_column: int
    kept_ms: int  # how far back the log matters to velocity
    chunk: int  # events read at a time at the start, when no event is being answered
    live_chunk: int  # the same while events are answered: some milliseconds of the thread that decides
