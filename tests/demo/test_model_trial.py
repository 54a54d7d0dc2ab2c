"""What the demo's model adds: the parts of the stream, labels on the way, and the comparison at the end."""

import json
import math
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from vettance.clock import DAY_MS
from vettance.demo.delayed_labels import DelayedLabels, JudgedDecision
from vettance.demo.feed import Sample
from vettance.demo.model_trial import StreamParts, bounds_of, compare_rows
from vettance.generate.generated_event import ORDINARY


def test_a_stream_is_cut_without_losing_an_event() -> None:
    parts = StreamParts(Sample(b"{}", "c", ORDINARY, "", at_ms) for at_ms in (5, 7, 9, 12))
    assert parts.first_ms() == 5
    assert [[one.at_ms for one in parts.until(bound)] for bound in (8, 8, 12, math.inf)] == [
        [5, 7],
        [],
        [9],
        [12],
    ]
    assert parts.first_ms() is None


def test_labels_begin_before_the_model_is_measured() -> None:
    begin_ms, tries = bounds_of(0, 30)
    assert 0 < begin_ms < tries[0]
    assert tries == sorted(tries)
    assert tries[-1] < 30 * DAY_MS


def test_most_frauds_are_labelled_a_day_later_and_each_once() -> None:
    labels = DelayedLabels(1)
    for number in range(100):
        labels.note(number, JudgedDecision(f"evt_{number}", fraud=True))
    assert list(labels.due(DAY_MS - 1)) == []
    given = [path for path, _ in labels.due(DAY_MS + 200)]
    assert 75 < len(given) == len(set(given)) == labels.frauds < 100
    assert list(labels.due(10 * DAY_MS)) == []


def row(number: int, score: int, model: int | None = None) -> dict[str, Any]:
    said = None if model is None else {"score": model, "probability": model / 100}
    return {
        "id": f"evt_{number}",
        "score": score,
        "decision": "REVIEW" if score >= 60 else "ALLOW",
        **({} if said is None else {"outputs": {"model": said}}),
    }


def test_the_model_is_held_to_the_load_of_the_rules() -> None:
    rows = [row(1, 70, 10), row(2, 60, 5), row(3, 0, 95), row(4, 0, None), row(5, 20, 65)]
    found = compare_rows(rows, {"evt_1", "evt_3", "evt_4"})
    assert (found.events, found.scored, found.frauds, found.held) == (5, 4, 3, 2)
    alone, both = found.orders
    assert (alone.caught, both.caught) == (1, 2)
    assert both.average_precision > alone.average_precision


def test_a_model_that_failed_leaves_the_rules() -> None:
    failed = {**row(1, 70), "outputs": {"model": {"error": "late", "score": None, "probability": None}}}
    found = compare_rows([failed, row(2, 0)], {"evt_1"})
    assert found.scored == 0
    assert [one.caught for one in found.orders] == [1, 1]


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_the_demo_says_what_a_model_adds(tmp_path: Path) -> None:
    size = ("--customers", "400", "--days", "20", "--fraud-share", "0.03", "--folder", str(tmp_path / "demo"))
    done = subprocess.run(
        [sys.executable, "-m", "vettance.cli", "demo", *size, "--json"],
        capture_output=True,
        text=True,
        timeout=860,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    model = json.loads(done.stdout)["model"]
    if (
        model is None
    ):  # Streams end now, and on some days chance has it that no model is worth more than the rules.
        assert "no better than the rules" in " ".join(done.stderr.split())
        return
    assert "Rules alone, and with the model" in done.stderr
    assert model["scored"] > 0.9 * model["events"]
    assert model["orders"].keys() == {"rules alone", "rules with the model"}


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_the_demo_says_why_there_is_no_model(tmp_path: Path) -> None:
    size = ("--customers", "60", "--days", "20", "--fraud-share", "0.005", "--folder", str(tmp_path / "demo"))
    done = subprocess.run(
        [sys.executable, "-m", "vettance.cli", "demo", *size, "--json"],
        capture_output=True,
        text=True,
        timeout=860,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "No model scores events:" in done.stderr
    assert "labelled frauds were decided since features are kept" in " ".join(done.stderr.split())
    assert json.loads(done.stdout)["model"] is None
