"""What a browser says about who drives it: the user agent, and the signals a page collected."""

import functools
import math
import re
from collections.abc import Callable, Mapping
from typing import Any, Final

from vettance.events.browser_session import overlay
from vettance.events.event import Event
from vettance.events.event_spellings import once
from vettance.rules.schema import reads

#: Words that automation puts into its user agent when it does not hide. Source: the default user agents of
#: the programs themselves. HTTP libraries of phone apps (okhttp, CFNetwork, Dart) are left out on purpose.
_AUTOMATION: Final = re.compile(
    r"headlesschrome|phantomjs|slimerjs|selenium|puppeteer|playwright|cypress|python-requests|python-urllib|aiohttp"
    r"|python-httpx|scrapy|curl/|wget/|go-http-client|libwww-perl|java/|apache-httpclient|node-fetch|axios/|undici"
    r"|powershell|postmanruntime|httpie|mechanize|zgrab|masscan|nuclei|sqlmap|openbullet|silverbullet",
    re.IGNORECASE,
)


@functools.lru_cache(maxsize=1024)
def is_automation(user_agent: str) -> bool:
    """Tell whether a user agent names a program that drives itself."""
    return _AUTOMATION.search(user_agent) is not None


#: The signals of an event that has none.
NO_SIGNALS: Final[Mapping[str, Any]] = {}


@once
def signals_of(event: Event) -> Mapping[str, Any]:
    """Return the signals of an event, over those that its session had queued before.

    Its own are `sdkSignals` or `signals`, at the top level or in `metadata` or `payload`.
    """
    own, session = _own_signals(event), event.session_signals
    if not session:
        return own
    return session if own is NO_SIGNALS else overlay(session, dict(own))


def _own_signals(event: Event) -> Mapping[str, Any]:
    for holder in (event.extra, event.metadata, event.payload):
        if holder:
            for name in ("sdkSignals", "sdk_signals", "signals"):
                found = holder.get(name)
                if type(found) is dict:
                    return found
    return NO_SIGNALS


def _flag(*names: str) -> Callable[[Event], bool | None]:
    def read(event: Event) -> bool | None:
        if (signals := signals_of(event)) is not NO_SIGNALS:
            for name in names:
                if type(value := signals.get(name)) is bool:
                    return value
        return None

    return reads(read, *(f"signals.{name}" for name in names))


def _number(*names: str) -> Callable[[Event], float | None]:
    def read(event: Event) -> float | None:
        if (signals := signals_of(event)) is not NO_SIGNALS:
            for name in names:
                value = signals.get(name)
                if isinstance(value, int | float) and type(value) is not bool and math.isfinite(value):
                    return float(value)
        return None

    return reads(read, *(f"signals.{name}" for name in names))


#: Names under which pages send the intervals between keystrokes, in milliseconds.
KEYSTROKES: Final = (
    "keystrokeIntervals",
    "keystrokeIntervalsMs",
    "keystrokeIntervalMs",
    "keystroke_intervals",
    "keystroke_intervals_ms",
)
_INTERVALS_READ: Final = 512  # More keystrokes than a form has; the rest would only cost time.


@once
def _intervals(event: Event) -> list[float]:
    if (signals := signals_of(event)) is NO_SIGNALS:
        return []
    for name in KEYSTROKES:
        if type(value := signals.get(name)) is list:
            newest = value[-_INTERVALS_READ:]
            return [float(item) for item in newest if type(item) in (int, float) and 0 <= item < 3_600_000]
    return []


def keystroke_count(event: Event) -> float | None:
    """Return how many intervals between keystrokes were sent."""
    return float(len(intervals)) if (intervals := _intervals(event)) else None


def keystroke_mean_ms(event: Event) -> float | None:
    """Return the mean interval between keystrokes in milliseconds."""
    return math.fsum(intervals) / len(intervals) if (intervals := _intervals(event)) else None


def keystroke_cv(event: Event) -> float | None:
    """Return the coefficient of variation of the intervals: standard deviation divided by mean."""
    intervals = _intervals(event)
    mean = math.fsum(intervals) / len(intervals) if intervals else 0.0
    if len(intervals) < 2 or mean <= 0:
        return None
    return math.sqrt(math.fsum((item - mean) ** 2 for item in intervals) / len(intervals)) / mean


for _keystrokes in (keystroke_count, keystroke_mean_ms, keystroke_cv):
    reads(_keystrokes, *(f"signals.{name}" for name in KEYSTROKES))

#: Name below `signals.`, type, reader and manual line of every signal that rules know by name.
SIGNALS: Final = (
    (
        "paste",
        "bool",
        _flag(
            "paste", "pasted", "clipboardPaste", "clipboard_paste", "pasteDetected", "clipboardPasteDetected"
        ),
        "Whether something was pasted; password managers and assistive tools do so too.",
    ),
    ("keystroke_count", "number", keystroke_count, "How many intervals between keystrokes were measured."),
    ("keystroke_mean_ms", "number", keystroke_mean_ms, "Mean interval between keystrokes in milliseconds."),
    (
        "keystroke_cv",
        "number",
        keystroke_cv,
        "Spread of the intervals between keystrokes: standard deviation divided by mean.",
    ),
    (
        "mouse_entropy",
        "number",
        _number("mouseEntropy", "mouse_entropy", "mouseEntropyScore", "mouse_entropy_score"),
        "Entropy score of the mouse path as the page sent it; near 0 is a straight line.",
    ),
    (
        "mouse_moves",
        "number",
        _number("mouseMoves", "mouse_moves", "mouseMoveCount", "mouse_move_count"),
        "How many mouse moves were seen.",
    ),
    (
        "touch",
        "bool",
        _flag("touch", "touchUsed", "isTouch", "touch_used"),
        "Whether the page was used by touch, where a mouse that never moves means nothing.",
    ),
    (
        "form_seconds",
        "number",
        _number("formSeconds", "form_seconds", "timeOnForm", "formFillSeconds"),
        "Seconds from the first sight of the form to its submission.",
    ),
    (
        "webdriver",
        "bool",
        _flag("webdriver", "webDriver", "navigatorWebdriver", "isWebdriver"),
        "Whether the browser says that a program drives it (`navigator.webdriver`).",
    ),
    ("headless", "bool", _flag("headless", "isHeadless"), "Whether the browser runs without a window."),
    (
        "honeypot",
        "bool",
        _flag("honeypot", "honeypotFilled", "honeypot_filled"),
        "Whether a field that people cannot see was filled in.",
    ),
    (
        "emulator",
        "bool",
        _flag("emulator", "isEmulator", "emulated", "virtualMachine"),
        "Whether the device is emulated by software.",
    ),
    (
        "rooted",
        "bool",
        _flag("rooted", "jailbroken", "isRooted", "isJailbroken"),
        "Whether the protections of the phone were taken off.",
    ),
    (
        "remote_access",
        "bool",
        _flag("remoteAccess", "remote_access", "remoteDesktop", "screenSharing"),
        "Whether a remote-control or screen-sharing session was running.",
    ),
    (
        "assistive",
        "bool",
        _flag("assistive", "assistiveTechnology", "screenReader", "accessibility"),
        "Whether assistive technology was in use; it explains keyboard-only and pasted input.",
    ),
    (
        "tampered",
        "bool",
        _flag("tampered", "tampering", "spoofed", "fingerprintSpoofed"),
        "Whether the browser's answers contradict each other.",
    ),
    (
        "timezone_offset",
        "number",
        _number("timezoneOffset", "timezone_offset", "timezoneOffsetMinutes"),
        "Minutes from local time to UTC as the browser states it (UTC-5 is 300).",
    ),
)
