"""The policy: how long each class of data is kept."""

from collections.abc import Mapping
from typing import Final

import msgspec

from vettance.clock import DAY_MS
from vettance.wire.numbers import read_whole

#: More than 270 years is a slip of the keyboard.
_DAYS_MAX: Final = 99_999


class Policy(msgspec.Struct, frozen=True, kw_only=True):
    """Days that each class of data is kept for; 0 keeps it for ever."""

    events: int = 0
    statistics: int = 0
    screenings: int = 0
    jobs: int = 30
    stream_messages: int = 30
    deliveries: int = 90
    changes: int = 30

    def before_ms(self, name: str, now_ms: int) -> int | None:
        """Return the moment (Unix milliseconds) before which a class is too old; None when it never is."""
        days: int = getattr(self, name)
        return now_ms - days * DAY_MS if days else None


def read_policy(environ: Mapping[str, str]) -> Policy:
    """Read `VETTANCE_KEEP_…`, one variable for each class of data. Raises `ValueError`."""
    days = msgspec.structs.asdict(Policy())
    for name in days:
        variable = f"VETTANCE_KEEP_{name.upper()}"
        if text := environ.get(variable):
            if (count := read_whole(text, 0, _DAYS_MAX)) is None:
                raise ValueError(f"{variable} must be a number of days, 0 for ever")
            days[name] = count
    return Policy(**days)
