"""The memory of one tenant: its plan, its keys, and the answers it gave last."""

from collections.abc import Callable
from typing import Final

from vettance.velocity.fingerprint import fingerprinter
from vettance.velocity.memory.dedup import RecentAnswers
from vettance.velocity.memory.key_groups import GroupKeys
from vettance.velocity.memory.plan_codegen import write
from vettance.velocity.plan_layout import AHEAD_MS, LATE_MS_MIN, MOMENT_MAX, Group, PlanLayout
from vettance.velocity.port import Observation, Plan, Value, VelocityAnswer

_TEXTS_MAX: Final = 4096  # Half a megabyte; short enough to be cleared in no time.
_MASKS_MAX: Final = 1024  # Events of one rule set seldom show more than a few dozen.
# A sweep looks at twice the keys that the events since the last one can have added, so that it always gains
# on them.
_SWEEP_EVERY: Final = 32  # observations
_SWEEP_KEYS: Final = 2 * _SWEEP_EVERY  # of each group


class TenantMemory:
    """What is remembered of one tenant."""

    def __init__(self, plan: Plan, modulus: int) -> None:
        programme = write(plan)
        self.layout: PlanLayout = programme.layout
        self.modulus = modulus
        # Fingerprints of texts seen lately: one event asks for the same again, and so do hot keys.
        self.known: dict[Value, int] = {}
        self.fingerprint = _keeping(fingerprinter(modulus), self.known)
        self.read = programme.read
        self.keys = tuple(GroupKeys(written) for written in programme.groups)
        # By mask: what `observe` goes through, (keys of a group, place of its key, lanes the event is in).
        self.turns: dict[int, tuple[tuple[GroupKeys, int, int], ...]] = {}
        self.high_ms = -MOMENT_MAX
        # The highest that was ever: what is as old as it says may have been forgotten by it.
        self.reach_ms = -MOMENT_MAX
        self.observed = 0
        #: The number of the newest label that is in it; those up to it are not recorded again.
        self.labels = 0
        self.recent = RecentAnswers()

    def observe(
        self, event_id: str, at_ms: int, seen: Observation, now_ms: int | None = None
    ) -> VelocityAnswer:
        known = self.recent.get(event_id)
        if known is not None:
            return known
        if not -MOMENT_MAX <= at_ms <= MOMENT_MAX:
            raise ValueError("the moment of an event is beyond what can be remembered")
        if now_ms is not None:
            at_ms = self._bound(at_ms, now_ms)
        self.high_ms = max(self.high_ms, at_ms)
        self.reach_ms = max(self.reach_ms, self.high_ms)
        answer = self._answer(at_ms, seen)
        self._keep(event_id, answer)
        return answer

    def look(self, at_ms: int, seen: Observation) -> VelocityAnswer:
        """Answer as an event of a moment that was reached would be answered, and record nothing."""
        return self._answer(min(at_ms, self.high_ms), seen._replace(mask=0))

    def _answer(self, at_ms: int, seen: Observation) -> VelocityAnswer:
        """Answer every aggregate, and record the event in the series of its mask."""
        reach_ms = self.reach_ms
        high_ms, layout, fingerprint, prints = self.high_ms, self.layout, self.fingerprint, self.known
        names, mask, values = seen
        words, mask = self.read(values, mask, prints, fingerprint)
        answers = list(layout.defaults)
        inexact = 0
        for keys, place, lanes in self.turns.get(mask) or self._turns(mask):
            name = names[place]
            key = prints.get(name) if type(name) is str else None
            if key is None:
                key = fingerprint(name)
                if key is None:
                    for index, _ in keys.group.aggregates:
                        answers[index] = None
                    continue
            inexact |= keys.observe(key, at_ms, high_ms, lanes, words, answers)
            if at_ms < reach_ms - LATE_MS_MIN:
                inexact |= _beyond(keys.group, at_ms, reach_ms)
        if None in words:
            for word, slot in zip(words, layout.slots, strict=True):
                if word is None:
                    for index in slot.asked:
                        answers[index] = None
        return VelocityAnswer(tuple(answers), inexact)

    def forget_before(self, moment_ms: int) -> None:
        """Take note that events before a moment may be missing, as if they had been forgotten.

        Every series is treated as the longest kept one, so that one number says it, in snapshots too.
        """
        kept_ms = max((keys.group.kept_ms for keys in self.keys), default=0)
        self.reach_ms = max(self.reach_ms, moment_ms + kept_ms)

    def _bound(self, at_ms: int, now_ms: int) -> int:
        """Keep the high water near the clock; return when an event counts as observed.

        One further ahead was received by a wrong clock: it counts with the newest of those before it.
        """
        self.high_ms = min(self.high_ms, now_ms + AHEAD_MS)
        if at_ms <= now_ms + AHEAD_MS:
            return at_ms
        return self.high_ms if self.high_ms > -MOMENT_MAX else now_ms

    def _turns(self, mask: int) -> tuple[tuple[GroupKeys, int, int], ...]:
        if len(self.turns) >= _MASKS_MAX:
            self.turns.clear()
        turns = tuple((keys, keys.group.key, keys.group.meets(mask)) for keys in self.keys)
        self.turns[mask] = turns
        return turns

    def _keep(self, event_id: str, answer: VelocityAnswer) -> None:
        self.recent.keep(event_id, answer)
        self.observed += 1
        if self.observed % _SWEEP_EVERY == 0:
            for keys in self.keys:
                keys.sweep(self.high_ms, _SWEEP_KEYS)


def _keeping(
    fingerprint: Callable[[Value], int | None], known: dict[Value, int]
) -> Callable[[Value], int | None]:
    """Return the function that also keeps the fingerprints of texts for a while."""

    def keep(value: Value) -> int | None:
        made = fingerprint(value)
        if made is not None and type(value) is str:
            if len(known) >= _TEXTS_MAX:
                known.clear()
            known[value] = made
        return made

    return keep


def _beyond(group: Group, at_ms: int, reach_ms: int) -> int:
    """Return the bits of the aggregates whose window, for a late event, reaches what may be forgotten."""
    inexact = 0
    for index, span_ms in group.aggregates:
        if at_ms - span_ms < reach_ms - group.kept_ms:
            inexact |= 1 << index
    return inexact
