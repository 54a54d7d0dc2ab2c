"""Comments and docstrings are plain English: the dialect that the code once had does not grow again."""

import re
from collections import Counter

import pytest

from tests.shape.source import NAMES, ROOMS, prose_of, room_of

#: Each cost readers a second look. What to write instead depends on the sentence; these are the usual mends.
DIALECT = {
    r"who(m)?ever": "the caller, the tenant, every process: name them",
    r"astray": "lost, unconfirmed",
    r"beside": "next to, besides, in addition to",
    r"(is|are|was|were|be|been|being) told": "receives, gets, is reported to",
    r"told (of|about|apart)": "notified of, distinguished",
    r"stands?(?! for)": "is (in)",
    r"sees? to": "ensures, handles",
    r"(is|are|was|were) away": "is unreachable, does not answer",
    r"ha(s|ve) it that": "says that",
    r"insists? on": "requires",
    r"for want of": "without",
    r"in vain": "without effect",
    r"comes? to": "amounts to, becomes",
    r"lest": "so that … not",
    r"moves? house": "copies the store to another engine",
}
FOUND = re.compile(r"\b(" + "|".join(f"(?:{word})" for word in DIALECT) + r")\b", re.IGNORECASE)

#: How often each room still speaks it. Lower a number when you have mended a room; raise one only for what a
#: file brings along that moves from another room, and lower the other.
BUDGET: dict[str, int] = {
    "aml": 4,
    "cli": 2,
    "db": 17,
    "deployment": 1,
    "errors": 1,
    "exchange": 1,
    "fairness": 2,
    "limits": 10,
    "lists": 2,
    "ops": 2,
    "outbox": 4,
    "processes": 1,
    "reference": 1,
    "retention": 1,
    "rules": 2,
    "velocity": 1,
    "watchlists": 2,
    "web": 4,
    "webhooks": 2,
    "wire": 8,
}


def dialect_of(room: str) -> list[str]:
    return [
        f"src/vettance/{name}:{line + text[: hit.start()].count(chr(10))} {hit[0]!r}"
        for name in NAMES
        if room_of(name) == room
        for line, text in prose_of(name)
        for hit in FOUND.finditer(text)
    ]


@pytest.mark.parametrize("room", sorted(ROOMS))
def test_comments_and_docstrings_are_plain_english(room: str) -> None:
    found, allowed = dialect_of(room), BUDGET.get(room, 0)
    usual = Counter(line.rpartition(" ")[2].strip("'").lower() for line in found)
    assert len(found) <= allowed, (
        f"{room} has {len(found)} words of the old dialect, and {allowed} are allowed: {dict(usual)}. "
        f"Say it plainly; DIALECT in {__name__} has the usual mends.\n" + "\n".join(found)
    )


def test_every_budget_is_of_a_room() -> None:
    assert BUDGET.keys() <= ROOMS, f"take out what is gone: {BUDGET.keys() - ROOMS}"
