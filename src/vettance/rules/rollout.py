"""Which rules that match may act on an event: shares of customers, dates, and what is held out of blocking.

A share is by a hash of the rule's id and of the customer, so it is the same for every event of a customer,
and who is in at 10 per cent is in at 50 as well.
"""

import enum
import hashlib
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from vettance.rules.rule import Explore, Rule
from vettance.wire.payload import read_timestamp

_HASH_BYTES: Final = 8
_HASHES: Final = 256**_HASH_BYTES
_HELD_OUT: Final = "explore"


class Withheld(enum.StrEnum):
    """Why a rule that matched does not act."""

    ROLLOUT = "rollout"
    DATES = "dates"
    SNOOZED = "snoozed"


# Members of an enumeration take half as long to say their value as a share takes to compute.
_ROLLOUT: Final = Withheld.ROLLOUT.value
_DATES: Final = Withheld.DATES.value

#: Rules that matched and do not act, by their place among the running ones, and why.
WithheldRules = list[tuple[int, str]]


class RuleStage(NamedTuple):
    """The share of customers and the time in which a rule acts; Unix milliseconds, the end exclusive."""

    rule_id: str
    rollout: int
    from_ms: int | None
    until_ms: int | None


def stages_of(running: Sequence[Rule]) -> dict[int, RuleStage]:
    """Return the stage of every running rule that does not act always, by its place."""
    stages: dict[int, RuleStage] = {}
    for place, rule in enumerate(running):
        if rule.rollout == 100 and rule.active_from is None and rule.active_until is None:
            continue
        from_ms = read_timestamp(rule.active_from) if rule.active_from is not None else None
        until_ms = read_timestamp(rule.active_until) if rule.active_until is not None else None
        stages[place] = RuleStage(rule.id, rule.rollout, from_ms, until_ms)
    return stages


def withhold(
    stages: Mapping[int, RuleStage], fired: Sequence[int], subject: str | None, at_ms: int
) -> WithheldRules:
    """Return which of the rules that fired do not act on an event of `subject` that happened at `at_ms`."""
    found: WithheldRules = []
    for place in fired:
        stage = stages.get(place)
        if stage is None:
            continue
        if (stage.from_ms is not None and at_ms < stage.from_ms) or (
            stage.until_ms is not None and at_ms >= stage.until_ms
        ):
            found.append((place, _DATES))
        elif stage.rollout < 100 and not is_within(stage.rollout, stage.rule_id, subject):
            found.append((place, _ROLLOUT))
    return found


def acting(fired: Sequence[int], withheld: WithheldRules) -> Sequence[int]:
    """Return the rules that fired and act."""
    if not withheld:
        return fired
    left_out = {place for place, _ in withheld}
    return [place for place in fired if place not in left_out]


def is_within(percent: float, name: str, subject: str | None) -> bool:
    """Tell whether a customer (or device, or address) is in a share; what has none of these is never."""
    if subject is None:
        return False
    digest = hashlib.blake2b(f"{name}\0{subject}".encode(), digest_size=_HASH_BYTES).digest()
    return int.from_bytes(digest) * 100 < percent * _HASHES


def is_let_through(explore: Explore, subject: str | None, amount: float | None) -> bool:
    """Tell whether what the score would stop is let through, so that it shows what it was."""
    return (amount is None or amount <= explore.below) and is_within(explore.percent, _HELD_OUT, subject)
