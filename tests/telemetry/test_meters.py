"""What is counted is shown, by every process of a server, in the format that Prometheus reads."""

import os
import subprocess
import sys

import pytest

from tests.telemetry.exposed import figures, read_exposition
from vettance.decisions.decision import Outcome
from vettance.events.event import EventSource
from vettance.telemetry.exposition import Family, exposition
from vettance.telemetry.meter_table import METERS, RESULTS, SEARCH_RESULTS
from vettance.telemetry.meters import Meters, Process, processes
from vettance.telemetry.shared_counters import SEARCHERS_MAX, SLOTS, SharedBoard, attach
from vettance.webhooks.webhook import AttemptFailure


def shown(*slots: memoryview) -> dict[str, float]:
    return figures(exposition(list(slots), ()))


def test_a_decision_is_counted_by_outcome_and_in_the_bucket_of_its_time() -> None:
    slot = SharedBoard(None).slot(0)
    meters = Meters(slot)
    meters.decided(EventSource.EVALUATE, Outcome.BLOCK, 3_000_000)
    meters.decided(EventSource.EVALUATE, Outcome.BLOCK, 2_500_000)
    meters.decided(EventSource.ASYNC, Outcome.ALLOW, 60_000_000_000)
    meters.failed(2, 3)
    found = shown(slot)
    assert found['vettance_decisions_total{outcome="BLOCK"}'] == 2
    assert found['vettance_decisions_total{outcome="ALLOW"}'] == 1
    assert found["vettance_rule_errors_total"] == 2
    assert found["vettance_features_unknown_total"] == 3
    name = "vettance_decision_seconds_bucket"
    # A bound belongs to its bucket: `le` is "less or equal".
    assert found[name + '{source="evaluate",le="0.001"}'] == 0
    assert found[name + '{source="evaluate",le="0.0025"}'] == 1
    assert found[name + '{source="evaluate",le="0.005"}'] == 2
    assert found[name + '{source="async",le="10"}'] == 0
    assert found[name + '{source="async",le="+Inf"}'] == 1
    assert found['vettance_decision_seconds_count{source="evaluate"}'] == 2
    assert found['vettance_decision_seconds_sum{source="evaluate"}'] == pytest.approx(0.0055)


def test_every_value_that_the_code_can_count_has_a_place() -> None:
    meters = Meters()
    for source in EventSource:
        for outcome in Outcome:
            meters.decided(source, outcome, 1)
    for status in (200, 404, 418, 503, 599):
        meters.answered(status)
    assert set(RESULTS) == {"delivered", *(failure.value for failure in AttemptFailure)}
    for result in RESULTS:
        meters.attempted(result, 12)
    for result in SEARCH_RESULTS:
        meters.searched(result, 12)


def test_a_status_that_nobody_expects_is_counted_as_another() -> None:
    slot = SharedBoard(None).slot(0)
    Meters(slot).answered(418)
    assert shown(slot)['vettance_http_answers_total{status="other"}'] == 1


def test_processes_add_up_and_of_a_level_the_highest_is_shown() -> None:
    board = SharedBoard(None)
    one, two = Meters(board.slot(0)), Meters(board.slot(1))
    one.committed(3, 1_000_000)
    two.committed(40, 1_000_000)
    one.rebuilt(2_000_000_000, 7)
    two.rebuilt(1_000_000_000, 9)
    found = shown(board.slot(0), board.slot(1))
    assert found["vettance_store_commit_seconds_count"] == 2
    assert found["vettance_store_commit_writes_sum"] == 43
    assert found["vettance_state_rebuild_seconds"] == 2
    assert found["vettance_state_rebuilt_events"] == 9


def test_who_searches_for_each_process_is_known_until_told_otherwise() -> None:
    board = SharedBoard(None)
    slots = [board.slot(number) for number in range(3)]
    one, two = Meters(slots[0]), Meters(slots[2])
    one.searching(3, range(101, 101 + SEARCHERS_MAX))
    two.searching(4, [201])
    searchers = [find.pid for find in processes(slots) if find.role == "search"]
    assert searchers == [*range(101, 101 + SEARCHERS_MAX), 201]
    assert shown(*slots)["vettance_searches_in_flight"] == 7
    one.searching(0, [105])
    # A process that takes the place of another is not searched for by the other's.
    Meters(slots[2])
    us = Process("web", os.getpid())
    assert processes(slots) == [us, us, Process("search", 105)]


def test_what_a_child_counts_is_seen_by_its_parent_and_outlives_it() -> None:
    board = SharedBoard.shared()
    assert board.descriptor is not None
    program = (
        "from vettance.telemetry.shared_counters import attach\n"
        "from vettance.telemetry.meters import Meters\n"
        "board, slot = attach()\n"
        "Meters(board.slot(slot), 'webhooks').attempted('timeout', 10_000)\n"
    )
    for _ in range(2):
        subprocess.run(
            [sys.executable, "-c", program],
            check=True,
            timeout=30,
            pass_fds=board.descriptors,
            env={**os.environ, **board.place(33)},
        )
    assert shown(board.slot(33))['vettance_webhook_attempts_total{result="timeout"}'] == 2
    assert [one.role for one in processes([board.slot(number) for number in range(SLOTS)])] == ["webhooks"]


@pytest.mark.parametrize("place", ["", "x.y", "77.1", "3", "1.9999"])
def test_a_process_without_a_place_counts_for_itself(place: str) -> None:
    board, slot = attach({"VETTANCE_BOARD": place})
    Meters(board.slot(slot)).mended(1)
    assert shown(board.slot(slot))["vettance_state_mends_total"] == 1


def test_the_text_is_what_the_format_asks_for() -> None:
    slot = SharedBoard(None).slot(0)
    Meters(slot).answered(200)
    text = exposition([slot], [Family("one", "Help.", "gauge", "name", [('a"b\\c\nd', 0.25)])])
    families = read_exposition(text)
    assert {meter.name for meter in METERS} < set(families)
    assert 'one{name="a\\"b\\\\c\\nd"} 0.25' in text.decode()
    for meter in METERS:
        kind = "histogram" if meter.bounds else "gauge" if meter.level else "counter"
        assert families[meter.name] == kind
        assert kind != "counter" or meter.name.endswith("_total")
