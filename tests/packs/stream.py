"""A stream of events through the real fraud pack: the real compiler, state engine and decision."""

import dataclasses
from collections import Counter
from typing import Any

from vettance.decisions.decision import decide
from vettance.decisions.features import fraud_schema
from vettance.events.event import Event, read_taken_event
from vettance.rules.compiler import CompiledRules
from vettance.rules.packs import load_pack
from vettance.rules.ruleset import RuleSet, compile_ruleset
from vettance.velocity.memory.memory_velocity import MemoryVelocity

SECOND_MS = 1000
MINUTE_MS = 60 * SECOND_MS
HOUR_MS = 60 * MINUTE_MS
DAY_MS = 24 * HOUR_MS
START_MS = 1_760_000_000_000

JSON = dict[str, Any]


@dataclasses.dataclass(frozen=True)
class Answer:
    """What the pack says of one event."""

    outcome: str
    score: int
    fired: frozenset[str]


def parse(body: JSON, now_ms: int) -> Event:
    """Make an event of a body as the door does."""
    return read_taken_event(body, now_ms)


def ruleset() -> RuleSet:
    """Return the pack under test."""
    return load_pack("fraud")


_compiled: list[CompiledRules] = []


def compiled() -> CompiledRules:
    """Return the pack compiled, once for all tests."""
    if not _compiled:
        _compiled.append(compile_ruleset(ruleset(), fraud_schema()))
    return _compiled[0]


class Stream:
    """Events of one tenant in the order they arrive."""

    def __init__(self) -> None:
        self._velocity = MemoryVelocity()
        self._velocity.install("t", compiled().plan)
        self.outcomes: Counter[str] = Counter()
        self.rules: Counter[str] = Counter()

    def send(self, at_ms: float, name: str, **members: Any) -> Answer:
        """Decide one event at its own time."""
        event = parse({"eventName": name, **members}, int(at_ms))
        facts = compiled().facts(event)
        number = str(self.outcomes.total())
        seen = compiled().observe(facts)
        assert compiled().seen(event) == seen, "a replay does not see what was seen live"
        answer = self._velocity.observe("t", number, int(at_ms), seen)
        fired, failures = compiled().run(facts, answer.values)
        assert not failures
        decision = decide(ruleset(), 1, fired, ())
        self.outcomes[decision.outcome.value] += 1
        ids = frozenset(ruleset().running[index].id for index in fired)
        self.rules.update(ids)
        return Answer(decision.outcome.value, decision.score, ids)

    def replay(self, events: list[tuple[float, str, JSON]]) -> list[Answer]:
        """Decide events in the order of their times."""
        events.sort(key=lambda row: row[0])
        return [self.send(at_ms, name, **members) for at_ms, name, members in events]

    @property
    def held_share(self) -> float:
        """The share of events that were not allowed."""
        return 1 - self.outcomes["ALLOW"] / self.outcomes.total()
