"""User agents: the family of the browser or program, and the system it says that it runs on.

Coarse on purpose: versions change every month, families and systems with a new device. The order of the rows
follows how browsers name themselves (RFC 9110, section 10.1.5, and the publishers' notes): most also say
Chrome or Safari.
"""

import re
from functools import lru_cache
from typing import Final

_FAMILIES: Final = tuple(
    (name, re.compile(pattern))
    for name, pattern in (
        ("edge", r"\bEdg(?:e|A|iOS)?/"),
        ("opera", r"\bOPR/|\bOpera\b|\bOPT/"),
        ("samsung", r"\bSamsungBrowser/"),
        ("yandex", r"\bYaBrowser/"),
        ("brave", r"\bBrave/"),
        ("vivaldi", r"\bVivaldi/"),
        ("duckduckgo", r"\bDuckDuckGo/|\bDdg/"),
        ("firefox", r"\bFirefox/|\bFxiOS/|\bFocus/"),
        ("internet_explorer", r"\bMSIE |\bTrident/"),
        ("chrome", r"\bChrome/|\bCriOS/|\bChromium/|\bHeadlessChrome/"),
        ("safari", r"\bVersion/.*\bSafari/|\bSafari/"),
        ("webview", r"\bAppleWebKit/"),
    )
)
#: A tablet or a desktop of Apple, an Android and a Chromebook all name other systems, too.
_SYSTEMS: Final = tuple(
    (name, re.compile(pattern))
    for name, pattern in (
        ("windows", r"\bWindows\b"),
        ("android", r"\bAndroid\b"),
        ("ios", r"\biPhone\b|\biPad\b|\biPod\b|\biOS\b|\bCFNetwork/"),
        ("chromeos", r"\bCrOS\b"),
        ("macos", r"\bMac OS X\b|\bMacintosh\b|\bmacOS\b|\bDarwin\b"),
        ("linux", r"\bLinux\b|\bX11\b"),
    )
)
#: Programs that name themselves first. A closed set: what a caller writes there may name a person.
PROGRAMS: Final = frozenset(
    (
        *("curl", "wget", "python-requests", "python-urllib", "python-httpx", "python", "aiohttp", "scrapy"),
        *("okhttp", "java", "apache-httpclient", "reactor-netty", "dalvik", "dart", "kotlin", "ktor-client"),
        *("go-http-client", "fasthttp", "node", "node-fetch", "axios", "undici", "got", "deno", "bun"),
        *("postmanruntime", "insomnia", "httpie", "ruby", "faraday", "php", "guzzlehttp", "libwww-perl"),
        *("cfnetwork", "alamofire", "restsharp", "powershell", "headlesschrome", "phantomjs", "puppeteer"),
    )
)
_OTHER_PROGRAM: Final = "other"
_PROGRAM: Final = re.compile(r"\s*([A-Za-z][A-Za-z-]{0,39})")
#: User agents are at most this long here; the rest says nothing that counts.
_CHARS_MAX: Final = 512


@lru_cache(maxsize=8192)
def user_agent_family(user_agent: str) -> str | None:
    """Return the family of a browser or the name of a known program, `other` for any other program."""
    text = user_agent[:_CHARS_MAX]
    for name, pattern in _FAMILIES:
        if pattern.search(text):
            return name
    match = _PROGRAM.match(text)
    if match is None:
        return None
    program = match[1].lower()
    return program if program in PROGRAMS else _OTHER_PROGRAM


@lru_cache(maxsize=8192)
def user_agent_system(user_agent: str) -> str | None:
    """Return the operating system, None where it is not said."""
    text = user_agent[:_CHARS_MAX]
    return next((name for name, pattern in _SYSTEMS if pattern.search(text)), None)


@lru_cache(maxsize=8192)
def user_agent_client(user_agent: str) -> str | None:
    """Return family and system as one text; None where neither is said."""
    said = (user_agent_family(user_agent), user_agent_system(user_agent))
    return " on ".join(part for part in said if part is not None) or None
