"""Meters: the few calls that count what is in the table of meters (`meter_table`).

Counting is on the way of every decision, so the place of each number is worked out once and a call does
nothing but additions: about half a microsecond for a decision, a fifth of what the usual client library takes
(docs/adr/0050-metrics-of-our-own-on-a-port-of-their-own.md).
"""

import os
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from itertools import zip_longest
from typing import Final, NamedTuple

from vettance.telemetry.meter_table import (
    BATCH,
    CACHES,
    LATENCY_S,
    METERS,
    Meter,
    Rows,
)
from vettance.telemetry.shared_counters import SEARCHERS_MAX, SLOTS, WORDS, SharedBoard, attach

#: What a process is; the number of its name is in the slot.
ROLES: Final = ("web", "webhooks", "worker", "indexer")
#: The processes that search for one process have no slot; their ids are in its own.
SEARCH: Final = "search"

#: Where the ids are of the processes that search for this one.
_SEARCHERS: Final = slice(2, 2 + SEARCHERS_MAX)
_PID, _ROLE, _FIRST = 0, 1, _SEARCHERS.stop


def _lay_out() -> dict[tuple[str, str], int]:
    places: dict[tuple[str, str], int] = {}
    at = _FIRST
    for meter in METERS:
        for value in meter.values:
            places[meter.name, value] = at
            at += meter.words
    if at > WORDS:
        raise ValueError("a slot does not hold all meters")
    return places


#: (name, value of the label) → the first word.
PLACES: Final = _lay_out()


def _places(name: str) -> dict[str, int]:
    return {value: place for (named, value), place in PLACES.items() if named == name}


_OUTCOME_AT: Final = _places("vettance_decisions_total")
_SOURCE_AT: Final = _places("vettance_decision_seconds")
_STATUS_AT: Final = {
    int(value): place for value, place in _places("vettance_http_answers_total").items() if value.isdigit()
}
_OTHER_AT: Final = PLACES["vettance_http_answers_total", "other"]
_RULE_ERRORS_AT: Final = PLACES["vettance_rule_errors_total", ""]
_UNKNOWN_AT: Final = PLACES["vettance_features_unknown_total", ""]
_SKIPPED_AT: Final = _places("vettance_rows_skipped_total")
_REFUSED_AT: Final = PLACES["vettance_decisions_refused_total", ""]
_COMMIT_AT: Final = PLACES["vettance_store_commit_seconds", ""]
_BATCH_AT: Final = PLACES["vettance_store_commit_writes", ""]
_FAILURES_AT: Final = PLACES["vettance_store_failures_total", ""]
_READ_AT: Final = _places("vettance_replica_reads_total")
_RESULT_AT: Final = _places("vettance_webhook_attempts_total")
_ATTEMPT_AT: Final = PLACES["vettance_webhook_attempt_seconds", ""]
_EXHAUSTED_AT: Final = PLACES["vettance_webhook_exhausted_total", ""]
_OVERFLOWED_AT: Final = PLACES["vettance_webhook_overflowed_total", ""]
_LEASES_AT: Final = PLACES["vettance_webhook_leases_lost_total", ""]
_REBUILD_AT: Final = PLACES["vettance_state_rebuild_seconds", ""]
_REBUILT_AT: Final = PLACES["vettance_state_rebuilt_events", ""]
_LISTENING_AT: Final = PLACES["vettance_listening_processes", ""]
_CONNECTIONS_AT: Final = PLACES["vettance_connections_open", ""]
_IN_FLIGHT_AT: Final = PLACES["vettance_requests_in_flight", ""]
_STALE_AT: Final = PLACES["vettance_configuration_stale", ""]
_ASTRAY_AT: Final = PLACES["vettance_state_astray_tenants", ""]
_MENDS_AT: Final = PLACES["vettance_state_mends_total", ""]
_SEARCH_AT: Final = _places("vettance_search_seconds")
_SEARCHES_AT: Final = PLACES["vettance_searches_in_flight", ""]
_RESTARTS_AT: Final = PLACES["vettance_search_restarts_total", ""]
_CACHE_AT: Final = {
    cache: tuple(
        PLACES[f"vettance_cache_{name}", cache]
        for name in ("bytes", "largest_tenant_bytes", "evictions_total")
    )
    for cache in CACHES
}

_TRAININGS_AT: Final = _places("vettance_model_trainings_total")
_WORK_FAILURES_AT: Final = _places("vettance_work_failures_total")
_WORK_FAILING_AT: Final = _places("vettance_work_failing")

_LATENCY_NS: Final = tuple(round(bound * 1e9) for bound in LATENCY_S)
_LATENCY_MS: Final = tuple(bound * 1e3 for bound in LATENCY_S)


class Meters:
    """Counts what one process does. Without a slot it counts in memory of its own."""

    def __init__(self, slot: memoryview | None = None, role: str = "web") -> None:
        self._words = SharedBoard(None).slot(0) if slot is None else slot
        self._words[_PID] = os.getpid()
        self._words[_ROLE] = ROLES.index(role)
        self.searching(0, ())
        # Of the process that had the slot before.
        self.listens(now=False)
        self.connected(0)

    def decided(self, source: str, outcome: str, elapsed_ns: int) -> None:
        """A decision is on the disk. `source` and `outcome` are the values of `Source` and `Outcome`."""
        words = self._words
        words[_OUTCOME_AT[outcome]] += 1
        at = _SOURCE_AT[source]
        words[at] += elapsed_ns
        words[at + 1 + bisect_left(_LATENCY_NS, elapsed_ns)] += 1

    def failed(self, rules: int, unknown: int) -> None:
        """Rules were skipped in a decision, or parts of an event taken as missing, because they raised."""
        self._words[_RULE_ERRORS_AT] += rules
        self._words[_UNKNOWN_AT] += unknown

    def skipped(self, rows: Rows) -> None:
        """A stored row could not be read again."""
        self._words[_SKIPPED_AT[rows]] += 1

    def refused(self) -> None:
        """The store did not take a decision."""
        self._words[_REFUSED_AT] += 1

    def answered(self, status: int) -> None:
        """A request was answered."""
        self._words[_STATUS_AT.get(status, _OTHER_AT)] += 1

    def committed(self, writes: int, elapsed_ns: int) -> None:
        """A batch of writes was answered by the store."""
        words = self._words
        words[_COMMIT_AT] += elapsed_ns
        words[_COMMIT_AT + 1 + bisect_left(_LATENCY_NS, elapsed_ns)] += 1
        words[_BATCH_AT] += writes
        words[_BATCH_AT + 1 + bisect_left(BATCH, writes)] += 1

    def store_failed(self) -> None:
        """The store did not take a batch."""
        self._words[_FAILURES_AT] += 1

    def read_from(self, server: str) -> None:
        """A read that may go to the replica was answered, or refused, by one of `READ_SERVERS`."""
        self._words[_READ_AT[server]] += 1

    def attempted(self, result: str, duration_ms: int) -> None:
        """An attempt to deliver ended; `result` is one of `RESULTS`."""
        words = self._words
        words[_RESULT_AT[result]] += 1
        words[_ATTEMPT_AT] += duration_ms
        words[_ATTEMPT_AT + 1 + bisect_left(_LATENCY_MS, duration_ms)] += 1

    def exhausted(self) -> None:
        """A delivery was given up."""
        self._words[_EXHAUSTED_AT] += 1

    def overflowed(self, count: int) -> None:
        """Deliveries were given up because too much waited."""
        self._words[_OVERFLOWED_AT] += count

    def lease_lost(self) -> None:
        """An attempt could not be recorded, because its lease had run out."""
        self._words[_LEASES_AT] += 1

    def rebuilt(self, elapsed_ns: int, events: int) -> None:
        """The memory was filled from snapshots and the log."""
        self._words[_REBUILD_AT] = elapsed_ns
        self._words[_REBUILT_AT] = events

    def listens(self, *, now: bool) -> None:
        """This process takes connections from now on, or does no longer."""
        self._words[_LISTENING_AT] = int(now)

    def connected(self, connections: int) -> None:
        """Tell how many connections are open."""
        self._words[_CONNECTIONS_AT] = connections

    def stands(self, in_flight: int, astray: int, *, stale: bool) -> None:
        """Note how this process does; once a second is often enough."""
        words = self._words
        words[_IN_FLIGHT_AT], words[_ASTRAY_AT], words[_STALE_AT] = in_flight, astray, int(stale)

    def remembers(self, cache: str, usage: tuple[int, int, int]) -> None:
        """Tell what a cache holds: bytes, bytes of the tenant with the most, evictions so far."""
        for at, figure in zip(_CACHE_AT[cache], usage, strict=True):
            self._words[at] = figure

    def trained(self, result: str) -> None:
        """A training ended; `result` is one of `TRAINING_RESULTS`."""
        self._words[_TRAININGS_AT[result]] += 1

    def mended(self, tenants: int) -> None:
        """The memory of some tenants was rebuilt because it had run ahead of the log."""
        self._words[_MENDS_AT] += tenants

    def searched(self, result: str, elapsed_ns: int) -> None:
        """A search of the watchlists ended; `result` is one of `SEARCH_RESULTS`."""
        words = self._words
        at = _SEARCH_AT[result]
        words[at] += elapsed_ns
        words[at + 1 + bisect_left(_LATENCY_NS, elapsed_ns)] += 1

    def searching(self, in_flight: int, pids: Sequence[int]) -> None:
        """Tell how many searches wait or are made, and which processes live to make them."""
        self._words[_SEARCHES_AT] = in_flight
        for word, pid in zip_longest(range(_SEARCHERS.start, _SEARCHERS.stop), pids, fillvalue=0):
            self._words[word] = pid

    def works(self, failures: Mapping[str, int], failing: Mapping[str, int]) -> None:
        """Tell how often work in the background has failed in this process, and for how many it does now."""
        for work, place in _WORK_FAILURES_AT.items():
            self._words[place] = failures.get(work, 0)
        for work, place in _WORK_FAILING_AT.items():
            self._words[place] = failing.get(work, 0)

    def search_restarted(self) -> None:
        """A process that searched has ended and is started again."""
        self._words[_RESTARTS_AT] += 1


class CounterSlot(NamedTuple):
    """Where a process counts: the board of its server, its slot, and the meters in it."""

    board: SharedBoard
    slot: int
    meters: Meters

    def others(self) -> list[int]:
        """Return how many connections each other process of this server has open, of those that take any."""
        slots = (self.board.slot(number) for number in range(SLOTS) if number != self.slot)
        return [words[_CONNECTIONS_AT] for words in slots if words[_LISTENING_AT]]


def take_place(role: str = "web") -> CounterSlot:
    """Take the slot that the parent of this process gave it; without one, the first of a board of its own."""
    board, slot = attach()
    return CounterSlot(board, slot, Meters(board.slot(slot), role))


class Process(NamedTuple):
    """A process that counts on a board, or searches for one that does."""

    role: str
    pid: int


def processes(slots: list[memoryview]) -> list[Process]:
    """Return who has counted, in the order of the slots, and then who searches for them."""
    theirs = [Process(ROLES[slot[_ROLE]], slot[_PID]) for slot in slots if slot[_PID]]
    return theirs + [Process(SEARCH, pid) for slot in slots for pid in slot[_SEARCHERS] if pid]


def reading(meter: Meter, value: str, slots: list[memoryview]) -> list[int]:
    """Return the words of one value of a meter: the sum over all slots, of some levels the highest."""
    first = PLACES[meter.name, value]
    columns = zip(*(slot[first : first + meter.words] for slot in slots), strict=True)
    return [max(column) if meter.level == "max" else sum(column) for column in columns]
