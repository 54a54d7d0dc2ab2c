"""Spans of time that pages look at: the last hours or days, and as long a span before."""

from typing import Final, NamedTuple

from vettance.console.page import Visit, url_of

_HOUR_S: Final = 3600
_DAY_S: Final = 86_400


class TimeSpan(NamedTuple):
    """A span that ends now, in Unix seconds."""

    word: str
    label: str
    start_s: int
    end_s: int

    @property
    def before(self) -> tuple[int, int]:
        """As long a span, right before."""
        return 2 * self.start_s - self.end_s, self.start_s

    @property
    def width_s(self) -> int:
        """How long it is."""
        return self.end_s - self.start_s


class SpanChoice(NamedTuple):
    """A span that can be chosen: its words and its page."""

    label: str
    url: str
    is_current: bool


_SPANS: Final = {
    "1h": ("1 hour", _HOUR_S),
    "24h": ("24 hours", _DAY_S),
    "7d": ("7 days", 7 * _DAY_S),
    "30d": ("30 days", 30 * _DAY_S),
    "90d": ("90 days", 90 * _DAY_S),
}


def span_of(visit: Visit, default: str = "24h") -> TimeSpan:
    """Return the span that `?span=` names."""
    word = visit.query.get("span")
    word = word if word in _SPANS else default
    label, seconds = _SPANS[word]
    end_s = visit.now_ms // 1000 + 1
    return TimeSpan(word, label, end_s - seconds, end_s)


def choices(path: str, current: TimeSpan, words: tuple[str, ...]) -> tuple[SpanChoice, ...]:
    """Return the spans that a page offers."""
    return tuple(SpanChoice(_SPANS[word][0], url_of(path, span=word), word == current.word) for word in words)
