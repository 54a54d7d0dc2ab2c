"""Sends a feed through HTTP as fast as the service answers, keeping each customer's events in order."""

import asyncio
import itertools
import time
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any, Final, NamedTuple

import msgspec

from vettance.demo.delayed_labels import DelayedLabels, JudgedDecision
from vettance.demo.demo_client import ClientFault, Connection, DemoResponse, DemoTarget, post
from vettance.demo.feed import Sample
from vettance.demo.scorecard import Scorecard
from vettance.wire.payload import encode

PATH: Final = "/api/v1/decisions/evaluate"
#: Events that may wait for an earlier one of the same customer before the feed is held back.
_HELD_MAX: Final = 2000
#: After so many refusals, and more of them than decisions, there is nothing to show.
_REFUSED_MAX: Final = 100
_PAUSE_S: Final = 0.002
_SHOWN_EVERY_S: Final = 0.1
_decode = msgspec.json.Decoder().decode


class Example(NamedTuple):
    """An attack that was stopped: what was sent and what was answered."""

    scenario: str
    sent: bytes
    answered: bytes
    reasons: int


class DemoRun(NamedTuple):
    """What a run brought: the scorecard, the seconds it took, an example, the first refusal if any, and
    the decisions that analysts and banks would look at."""

    card: Scorecard
    took_s: float
    example: Example | None
    refusal: bytes | None
    judged: list[JudgedDecision]


class _Driver:
    """Takes events in time order; one whose customer is still being answered waits for its turn."""

    def __init__(
        self,
        samples: Iterator[Sample],
        to: DemoTarget,
        advance: Callable[[int], None],
        card: Scorecard,
        labels: DelayedLabels | None,
    ) -> None:
        self._samples = samples
        self._to = to
        self._advance = advance
        self._held: dict[str, deque[Sample]] = {}  # customers in flight, and what waits behind
        self._held_count = 0
        self._exhausted = False
        self._shown_at = 0.0
        self.card = card
        self._labels = labels
        self.example: Example | None = None
        self.refusal: bytes | None = None
        self.judged: list[JudgedDecision] = []

    def _next(self) -> Sample | None:
        """Take the next event whose customer is free; None when there is none now."""
        while self._held_count < _HELD_MAX and not self._exhausted:
            sample = next(self._samples, None)
            if sample is None:
                self._exhausted = True
                return None
            waiting = self._held.get(sample.customer)
            if waiting is None:
                self._held[sample.customer] = deque()
                return sample
            waiting.append(sample)
            self._held_count += 1
        return None

    def _behind(self, customer: str) -> Sample | None:
        """Take what waits behind a customer's answered event, or let the customer go."""
        waiting = self._held[customer]
        if not waiting:
            del self._held[customer]
            return None
        self._held_count -= 1
        return waiting.popleft()

    async def work(self) -> None:
        """Be one connection: send, note the answer, send the next, until nothing is left to take."""
        connection = await Connection.open(self._to)
        try:
            while True:
                sample = self._next()
                if sample is None and self._exhausted:
                    return
                if sample is None:
                    await asyncio.sleep(_PAUSE_S)
                while sample is not None:
                    for path, body in self._labels.due(sample.at_ms) if self._labels is not None else ():
                        await connection.ask(post(self._to, path, encode(body)))
                    request = post(self._to, PATH, sample.body)
                    self._note(sample, await connection.ask(request))
                    sample = self._behind(sample.customer)
        finally:
            connection.close()

    def _note(self, sample: Sample, answer: DemoResponse) -> None:
        card = self.card
        if answer.status != 200:
            card.refused[answer.status] += 1
            self.refusal = self.refusal or answer.body
            if card.refused.total() >= _REFUSED_MAX and card.refused.total() > card.decided:
                told = answer.body.decode("utf-8", "replace")
                raise ClientFault(f"the service refuses most events, now with {answer.status}: {told}")
            return
        decided: dict[str, Any] = _decode(answer.body)
        reasons = [reason["code"] for reason in decided["reasonCodes"]]
        decision = decided["decision"]
        card.note(sample.scenario, sample.case, decision, decided["riskScore"], reasons, answer.took_s)
        if sample.fraud or decision != "approve":
            one = JudgedDecision(decided["correlationIds"]["eventId"], sample.fraud)
            self.judged.append(one)
            if self._labels is not None:
                self._labels.note(sample.at_ms, one)
        if sample.fraud and decision != "approve" and len(reasons) > (self.example or _NO_EXAMPLE).reasons:
            self.example = Example(sample.scenario, sample.body, answer.body, len(reasons))
        now = time.monotonic()
        if now - self._shown_at > _SHOWN_EVERY_S:
            self._shown_at = now
            self._advance(card.decided)


_NO_EXAMPLE: Final = Example("", b"", b"", 0)


async def drive(
    samples: Iterator[Sample],
    to: DemoTarget,
    connections: int,
    advance: Callable[[int], None],
    card: Scorecard | None = None,
    labels: DelayedLabels | None = None,
) -> DemoRun:
    """Send every sample through POST /api/v1/decisions/evaluate. Raises `ClientFault`.

    `advance` is called about ten times a second with the number of events decided so far. Decisions are added
    to `card`, and `labels` gives labels on the way.
    """
    # Making the first sample may take a generator longer than a server keeps a silent connection.
    samples = itertools.chain(list(itertools.islice(samples, 1)), samples)
    driver = _Driver(samples, to, advance, card if card is not None else Scorecard(), labels)
    began = time.perf_counter()
    try:
        async with asyncio.TaskGroup() as group:
            for _ in range(connections):
                group.create_task(driver.work())
    except* ClientFault as faults:
        raise ClientFault(str(faults.exceptions[0])) from None
    advance(driver.card.decided)
    return DemoRun(driver.card, time.perf_counter() - began, driver.example, driver.refusal, driver.judged)
