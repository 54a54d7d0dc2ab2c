"""Values as people read them: moments, amounts, shares and identifiers, in the visitor's zone and locale."""

import datetime as dt
import functools
import re
import zoneinfo
from typing import Any, Final

from markupsafe import Markup

from vettance.console.counted_nouns import counted

_MINUTE: Final = 60
_HOUR: Final = 3600
_DAY: Final = 86_400
#: A moment further away than this is shown by its date.
_RELATIVE_S_MAX: Final = 30 * _DAY
_ID_HEAD: Final = 8
_ID_TAIL: Final = 6
#: E-mail addresses say more by their middle than identifiers do.
_ADDRESS_CHARS_MAX: Final = 40
#: 95 % of a normal distribution lie within so many standard deviations.
_Z: Final = 1.96
_COUNTED_MAX: Final = 10**9
#: From here on a number is written with its power of ten: a double has no more digits, and Babel fails at 28
#: of them. Anybody who may send an event may send such an amount.
_PLAIN_MAX: Final = 1e15
_LOCALES_KEPT: Final = 256
#: A word of `payment.attempt` or `NEW_DEVICE` with what divides it from the next; long ones are cut.
_PART_OF_CODE: Final = re.compile(r"[^._:/\s-]{1,24}[._:/\s-]*|[._:/\s-]{1,24}")
_BREAK: Final = Markup("<wbr>")


class ValueFormatter:
    """Writes values for one visitor; `now_ms` is the moment of the visit."""

    def __init__(self, now_ms: int, time_zone: str = "UTC", locale: str = "en") -> None:
        self.now_ms = now_ms
        self.zone = zone_of(time_zone)
        self.locale = locale

    def moment(self, value: str | int | None) -> int | None:
        """Return Unix milliseconds of a moment of the wire, or of Unix milliseconds."""
        if value is None or value == "":
            return None
        if isinstance(value, int):
            return value
        return round(dt.datetime.fromisoformat(value).timestamp() * 1000)

    def ago(self, value: str | int | None) -> Markup:
        """Return how long ago a moment was; hovering tells it in the visitor's zone and in UTC."""
        at_ms = self.moment(value)
        if at_ms is None:
            return Markup('<span class="none">–</span>')
        return self._time(at_ms, _distance(at_ms, self.now_ms, self._date(at_ms)), is_live=True)

    def at(self, value: str | int | None) -> Markup:
        """Return a moment in the visitor's zone."""
        at_ms = self.moment(value)
        if at_ms is None:
            return Markup('<span class="none">–</span>')
        return self._time(at_ms, self._local(at_ms).strftime("%d %b %Y, %H:%M:%S"))

    def plain(self, at_ms: int) -> str:
        """Return a moment in the visitor's zone, to the minute, without markup."""
        return self._local(at_ms).strftime("%d %b %Y, %H:%M")

    def form_moment(self, seconds: str) -> str:
        """Return Unix seconds as a field for moments takes them; nothing for another text."""
        try:
            return self._local(int(float(seconds) * 1000)).strftime("%Y-%m-%dT%H:%M")
        except (ValueError, OverflowError, OSError):
            return ""

    @property
    def zone_name(self) -> str:
        """What the visitor's zone is called: Europe/Berlin."""
        return str(self.zone)

    def clock_time(self, value: str | int, *, dated: bool = False) -> Markup:
        """Return the time of day of a moment, to the millisecond; with its day where it is `dated`."""
        at_ms = self.moment(value) or 0
        form = "%d %b %Y, %H:%M:%S" if dated else "%H:%M:%S"
        return self._time(at_ms, self._local(at_ms).strftime(form) + f".{at_ms % 1000:03d}")

    def time_of_day(self, at_ms: int) -> str:
        """Return the time of day of a moment, without markup."""
        return self._local(at_ms).strftime("%H:%M:%S")

    def day(self, value: str | int) -> str:
        """Return the day of a moment in the visitor's zone."""
        return self._date(self.moment(value) or 0)

    def calendar_day(self, day: str) -> str:
        """Return a day of the wire, `2026-11-29`, as other days are shown."""
        return dt.date.fromisoformat(day).strftime("%d %b %Y")

    def label(self, at_ms: int, width_s: int) -> str:
        """Return a moment as the axis of a chart names it, where its buckets are so wide."""
        form = "%H:%M" if width_s < _HOUR else "%d %b %H:%M" if width_s < _DAY else "%d %b"
        return self._local(at_ms).strftime(form)

    def age(self, seconds: float) -> str:
        """Return a duration in its largest unit."""
        return _span(round(seconds))

    def money(self, amount: Any, currency: Any = None) -> str:
        """Return an amount with its currency as the visitor's locale writes them."""
        if not isinstance(amount, int | float) or isinstance(amount, bool):
            return str(amount)
        if isinstance(currency, str) and len(currency) == 3 and currency.isascii() and currency.isalpha():
            if abs(amount) >= _PLAIN_MAX:
                return f"{self.number(amount)} {currency.upper()}"
            from babel.numbers import format_currency

            return format_currency(amount, currency.upper(), locale=self.locale)
        return self.number(amount)

    def number(self, value: Any) -> str:
        """Return a number with the separators of the visitor's locale; anything else as it is."""
        if not isinstance(value, int | float) or isinstance(value, bool):
            return str(value)
        if isinstance(value, int) and abs(value) < 1000:
            return str(value)
        if isinstance(value, int) and value > 0 and (mark := _thousands_mark(self.locale)) is not None:
            return f"{value:,}".replace(",", mark)
        from babel.numbers import format_decimal, format_scientific

        if isinstance(value, float) and abs(value) >= _PLAIN_MAX:
            return format_scientific(value, format="0.#####E0", locale=self.locale)
        return format_decimal(round(value, 6), locale=self.locale, group_separator=True)

    def count(self, number: Any, noun: str) -> str:
        """Return a number and what it counts, by a word of `counted_nouns`: "1 event", "2 events"."""
        return counted(number, self.number(number), noun, self.locale)

    def percent(self, share: float | None) -> str:
        """Return a share from 0 to 1 in per cent, with one decimal."""
        return "–" if share is None else f"{share * 100:.1f} %"

    def interval(self, part: int, whole: int) -> str:
        """Return a share that labels gave, with half the width of its 95 % interval (Wilson)."""
        if not whole:
            return "–"
        share = part / whole
        half = _Z * (share * (1 - share) / whole + _Z**2 / (4 * whole**2)) ** 0.5 / (1 + _Z**2 / whole)
        return f"{share * 100:.1f} % ± {half * 100:.0f}, {self.number(whole)} labelled"

    def change(self, now: float, before: float) -> str:
        """Return by how many points a share differs from that of the span before."""
        points = (now - before) * 100
        return "unchanged" if abs(points) < 0.05 else f"{'+' if points > 0 else '−'}{abs(points):.1f} points"

    def short(self, text: Any) -> Markup:
        """Return an identifier shortened in the middle; hovering and copying give all of it."""
        whole = str(text)
        kind, most = ("id address", _ADDRESS_CHARS_MAX) if "@" in whole else ("id", _ID_HEAD + _ID_TAIL + 3)
        cut = whole if len(whole) <= most else f"{whole[:_ID_HEAD]}…{whole[-_ID_TAIL:]}"
        if cut == whole:
            return Markup('<span class="{}">{}</span>').format(kind, whole)
        return Markup('<span class="{}" title="{}" data-whole="{}">{}</span>').format(kind, whole, whole, cut)

    def code(self, text: Any) -> Markup:
        """Return the name of an event, or a reason code: lines break where its words end."""
        return _BREAK.join(_PART_OF_CODE.findall(str(text)))

    def value(self, value: Any) -> str:
        """Return a value of a feature or a member as a table shows it."""
        if value is None:
            return "–"
        if isinstance(value, bool):
            return "yes" if value else "no"
        if isinstance(value, int | float):
            # A whole number of many digits names something: an account, a card.
            return str(value) if isinstance(value, int) and abs(value) >= _COUNTED_MAX else self.number(value)
        if isinstance(value, list | tuple):
            return ", ".join(self.value(one) for one in value)
        if isinstance(value, dict):
            return ", ".join(f"{name}: {self.value(one)}" for name, one in value.items())
        return str(value)

    def _time(self, at_ms: int, text: str, *, is_live: bool = False) -> Markup:
        utc = dt.datetime.fromtimestamp(at_ms / 1000, dt.UTC)
        local = self._local(at_ms)
        title = f"{local:%d %b %Y, %H:%M:%S} {local:%Z}"
        if local.utcoffset():
            title += f" · {utc:%H:%M:%S} UTC"
        live = Markup(" data-live") if is_live else ""
        stamp = utc.isoformat(timespec="milliseconds").replace("+00:00", "Z")
        return Markup('<time datetime="{}" title="{}"{}>{}</time>').format(stamp, title, live, text)

    def _local(self, at_ms: int) -> dt.datetime:
        return dt.datetime.fromtimestamp(at_ms / 1000, self.zone)

    def _date(self, at_ms: int) -> str:
        return self._local(at_ms).strftime("%d %b %Y")


@functools.lru_cache(maxsize=_LOCALES_KEPT)
def _thousands_mark(locale: str) -> str | None:
    """Return what a locale writes between groups of three digits; None where groups are others.

    Babel reads its patterns anew for each number, which takes 60 µs; a page shows hundreds.
    """
    from babel.core import Locale
    from babel.numbers import get_group_symbol

    grouping = Locale.parse(locale).decimal_formats[None].grouping
    return get_group_symbol(locale) if grouping == (3, 3) else None


def _distance(at_ms: int, now_ms: int, date: str) -> str:
    seconds = (now_ms - at_ms) // 1000
    if abs(seconds) >= _RELATIVE_S_MAX:
        return date
    if seconds < -1:
        return f"in {_span(-seconds)}"
    return "just now" if seconds < 5 else f"{_span(seconds)} ago"


def _span(seconds: int) -> str:
    for unit, size in (("d", _DAY), ("h", _HOUR), ("min", _MINUTE)):
        if seconds >= size:
            return f"{seconds // size} {unit}"
    return f"{seconds} s"


@functools.lru_cache(maxsize=64)
def zone_of(name: str) -> dt.tzinfo:
    """Return a time zone by its name; UTC where the name is unknown."""
    try:
        return dt.UTC if name == "UTC" else zoneinfo.ZoneInfo(name)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
        return dt.UTC


@functools.lru_cache(maxsize=256)
def locale_of(accepted: str) -> str:
    """Return the locale that a browser asks for first and that is known, by `Accept-Language`."""
    from babel.core import Locale, UnknownLocaleError

    for part in accepted.split(","):
        name = part.partition(";")[0].strip()
        try:
            return str(Locale.parse(name, sep="-"))
        except (ValueError, UnknownLocaleError, TypeError):
            continue
    return "en"
