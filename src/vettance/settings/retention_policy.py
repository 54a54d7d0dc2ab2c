"""The policy: how long each class of data is kept."""

import msgspec

from vettance.clock import DAY_MS


class Policy(msgspec.Struct, frozen=True, kw_only=True):
    """Days that each class of data is kept for; 0 keeps it for ever."""

    events: int = 0
    statistics: int = 0
    screenings: int = 0
    jobs: int = 30
    stream_messages: int = 30
    deliveries: int = 90

    def before_ms(self, name: str, now_ms: int) -> int | None:
        """Return the moment (Unix milliseconds) before which a class is too old; None when it never is."""
        days: int = getattr(self, name)
        return now_ms - days * DAY_MS if days else None
