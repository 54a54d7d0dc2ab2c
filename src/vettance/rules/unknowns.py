"""Unknown: what of an event could not be computed, and why; the rest of it counts all the same."""

from typing import Any, Final

from vettance.velocity.port import Observation

_FAILURE_CHARS_MAX: Final = 200  # Kept with every decision; enough to recognise the bug.

#: What failed: its name as rules write it, and the message.
Failure = tuple[str, str]


class PartialFacts(tuple[Any, ...]):
    """Facts of an event of which some could not be read; these are None."""

    failures: tuple[Failure, ...]


class PartialObservation(Observation):
    """What an event says to a plan where a part could not be computed.

    An absent key or value is None, and the event belongs to no series whose condition failed.
    """

    failures: tuple[Failure, ...]


def failures_of(facts: tuple[Any, ...], seen: Observation) -> list[Failure]:
    """Return what could not be computed of an event: nothing, but for a bug."""
    failures: list[Failure] = []
    if type(facts) is PartialFacts:
        failures += facts.failures
    if type(seen) is PartialObservation:
        failures += seen.failures
    return failures


def message_of(error: Exception) -> str:
    """Return what is recorded of an error."""
    return f"{type(error).__name__}: {error}"[:_FAILURE_CHARS_MAX]
