"""A stream of labelled traffic: ordinary customers with attacks planted among them, in time order."""

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from operator import itemgetter
from random import Random
from typing import BinaryIO, Final

import msgspec

from vettance.clock import DAY_MS
from vettance.generate.attacks import ATTACKS, Attack, stage
from vettance.generate.generated_event import ORDINARY, Happening
from vettance.generate.people import Customer, live_day
from vettance.generate.world import END_MS_MAX
from vettance.wire.payload import timestamp

FRAUD_SHARE_DEFAULT: Final = 0.01
# 2026-01-01T00:00:00Z: fixed, so that a seed alone names the data.
START_DEFAULT_MS: Final = 1_767_225_600_000
_ADVANCE_EVENTS: Final = 1000


class Traffic(msgspec.Struct, frozen=True, kw_only=True):
    """What to generate.

    `weights` multiplies the part an attack has in all fraud, by its scenario; 0 leaves the attack out.
    `roaming` is the share of ordinary sessions from networks on the way, besides those of every traffic.
    """

    customers: int
    days: int
    seed: int
    start_ms: int = START_DEFAULT_MS
    fraud_share: float = FRAUD_SHARE_DEFAULT
    weights: Mapping[str, float] = {}
    roaming: float = 0.0


class _Schedule:
    """Decides when an attack begins, so that fraud keeps its share of all events in the long run.

    Each attack saves up what ordinary traffic allows it; when its savings reach a threshold, a case begins
    and is paid for. Thresholds are exponential, which makes the beginnings as irregular as those of
    independent offenders.
    """

    def __init__(self, traffic: Traffic) -> None:
        self._rng = Random(f"attacks:{traffic.seed}")  # noqa: S311 - repeatable, not secret.
        parts = [attack.share * traffic.weights.get(attack.scenario, attack.weight) for attack in ATTACKS]
        whole = sum(parts) if traffic.fraud_share else 0.0
        self._parts = [part / whole if whole else 0.0 for part in parts]
        self._rate = traffic.fraud_share / (1 - traffic.fraud_share)
        # Beginning with part of a case saved up gives short streams the share too, on average.
        self._saved = [attack.size / 4 for attack in ATTACKS]
        # What is left out draws nothing, so that an attack that is added leaves the other traffic as it was.
        self._threshold = [
            self._draw(attack) if attack.weight or part else math.inf
            for attack, part in zip(ATTACKS, self._parts, strict=True)
        ]
        self._cases = 0

    def _draw(self, attack: Attack) -> float:
        return self._rng.expovariate(1 / attack.size)

    def begin(self, people: list[Customer], ordinary: int, day: int, midnight_ms: int) -> list[Happening]:
        """Return the events of all cases that begin on a day with so many ordinary events."""
        planted: list[Happening] = []
        for index, attack in enumerate(ATTACKS):
            self._saved[index] += ordinary * self._rate * self._parts[index]
            while self._parts[index] and self._saved[index] >= self._threshold[index]:
                self._cases += 1
                case = f"case_{self._cases:05d}"
                events = stage(attack, self._rng, people, day=day, midnight_ms=midnight_ms, case=case)
                self._saved[index] -= len(events)
                self._threshold[index] = self._draw(attack)
                planted += events
        return planted


def stream(traffic: Traffic) -> Iterator[Happening]:
    """Yield every event in time order. The same traffic value gives the same bytes.

    Memory holds the customers and one day of events (and what attacks have in store), however many days
    there are. Raises `ValueError` for a traffic that cannot be.
    """
    if traffic.customers < 1 or traffic.days < 1 or not 0 <= traffic.fraud_share < 1:
        raise ValueError("customers and days must be at least 1, the fraud share at least 0 and below 1")
    if traffic.start_ms < 0 or traffic.start_ms + traffic.days * DAY_MS > END_MS_MAX:
        raise ValueError("the traffic must lie between the years 1970 and 9999")
    if not 0 <= traffic.roaming < 1:
        raise ValueError("the share of roaming must be at least 0 and below 1")
    rng = Random(f"people:{traffic.seed}")  # noqa: S311 - repeatable, not secret.
    people = [
        Customer(rng, traffic.days, traffic.customers, traffic.roaming) for _ in range(traffic.customers)
    ]
    schedule = _Schedule(traffic)
    waiting: list[Happening] = []
    end_ms = traffic.start_ms + traffic.days * DAY_MS
    for day in range(traffic.days):
        midnight_ms = traffic.start_ms + day * DAY_MS
        ordinary = [event for person in people for event in live_day(rng, person, day, midnight_ms)]
        waiting += ordinary
        waiting += schedule.begin(people, len(ordinary), day, midnight_ms)
        waiting.sort(key=itemgetter(0))
        tomorrow_ms = midnight_ms + DAY_MS
        due = _count_before(waiting, tomorrow_ms)
        yield from waiting[:due]
        waiting = [event for event in waiting[due:] if event.at_ms < end_ms]


def _count_before(events: list[Happening], moment_ms: int) -> int:
    """Count the sorted events before a moment."""
    low, high = 0, len(events)
    while low < high:
        middle = (low + high) // 2
        if events[middle].at_ms < moment_ms:
            low = middle + 1
        else:
            high = middle
    return low


def reference(number: int) -> str:
    """Name the n-th event of a stream (from 0); it says nothing of what the event is."""
    return f"ref_{number:09d}"


class StreamSummary(msgspec.Struct, frozen=True):
    """What was written: how many events, how many of them planted, from when to when, and by scenario."""

    events: int
    fraud: int
    first: str
    last: str
    scenarios: dict[str, int]
    cases: dict[str, int]


def write_traffic(
    traffic: Traffic,
    events: BinaryIO,
    truth: BinaryIO,
    advance: Callable[[int], None],
    *,
    labelled: bool = False,
) -> StreamSummary:
    """Write one event a line, and line for line the truth about it; return what was written.

    `advance` is called now and then with the number of events written so far. With `labelled`, the lines of
    events hold their label, too, as an import takes it.
    """
    encode = msgspec.json.Encoder().encode
    scenarios: Counter[str] = Counter()
    cases: dict[str, set[str]] = {}
    number, first_ms, last_ms = 0, traffic.start_ms, traffic.start_ms
    for number, happening in enumerate(stream(traffic), start=1):
        name = reference(number - 1)
        body = happening.body(name)
        if labelled:
            body = body[:-1] + f',"label":"{_label(happening)}"}}'.encode()
        events.write(body + b"\n")
        truth.write(encode(_truth(number, name, happening)) + b"\n")
        scenarios[happening.scenario] += 1
        if happening.fraud:
            cases.setdefault(happening.scenario, set()).add(happening.case)
        if number == 1:
            first_ms = happening.at_ms
        last_ms = happening.at_ms
        if number % _ADVANCE_EVENTS == 0:
            advance(number)
    return StreamSummary(
        events=number,
        fraud=number - scenarios[ORDINARY],
        first=timestamp(first_ms),
        last=timestamp(last_ms),
        scenarios=dict(scenarios.most_common()),
        cases={scenario: len(names) for scenario, names in cases.items()},
    )


def _label(happening: Happening) -> str:
    return "FRAUD" if happening.fraud else "LEGIT"


def _truth(line: int, name: str, happening: Happening) -> dict[str, str | int]:
    return {
        "line": line,
        "reference": name,
        "label": _label(happening),
        "scenario": happening.scenario,
        "case": happening.case,
    }


def events_expected(traffic: Traffic) -> int:
    """Estimate how many events a traffic has, for a progress bar: about 1.7 a customer and day."""
    return math.ceil(traffic.customers * traffic.days * 1.7 * (1 + traffic.fraud_share))
