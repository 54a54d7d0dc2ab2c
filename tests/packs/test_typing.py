"""Who is held for the rhythm of keys: people hardly ever, programs that wait by chance mostly."""

from collections.abc import Callable
from random import Random
from typing import Any

import pytest

from tests.packs import typists
from tests.packs.stream import START_MS, Stream

SESSIONS = 400
HELD_PEOPLE_MAX = 0.02


def held_share(signals: Callable[[Random], dict[str, Any]], seed: str) -> float:
    """Return the share of sessions that are held at the login, by the signals alone."""
    stream, held = Stream(), 0
    for number in range(SESSIONS):
        rng = Random(f"{seed} {number}")
        customer = {"externalId": f"c{number}"}
        answer = stream.send(START_MS, "user.login", customer=customer, sdkSignals=signals(rng))
        held += answer.outcome != "ALLOW"
    return held / SESSIONS


@pytest.mark.parametrize("group", typists.PEOPLE, ids=lambda group: group.__name__)
def test_people_of_every_kind_are_left_alone(group: Callable[[Random], dict[str, Any]]) -> None:
    assert held_share(group, f"unseen {group.__name__}") <= HELD_PEOPLE_MAX


@pytest.mark.parametrize(
    ("pause", "hold", "least"),
    [
        ("even 50 to 200", "none", 0.65),
        ("even 80 to 160", "none", 0.9),
        ("even 100 to 300", "none", 0.8),
        ("bell 120 +- 30", "none", 0.55),
        ("even 50 to 200", "bell 90 +- 20", 0.7),
        ("even 50 to 200", "even 40 to 120", 0.65),
    ],
)
def test_programs_that_wait_by_chance_are_held_despite_a_persons_mouse(
    pause: str, hold: str, least: float
) -> None:
    share = held_share(lambda rng: typists.program(rng, pause, hold), f"unseen {pause} {hold}")
    assert share >= least
