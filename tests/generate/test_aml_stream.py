"""`vettance generate aml`: repeatable, in order, taken by the door, with every typology in the truth."""

import io
import json
import subprocess
import sys
from pathlib import Path

from vettance.aml.aml_event import read_aml_event
from vettance.generate.aml_stream import Watch, write_aml
from vettance.generate.laundering import TYPOLOGIES
from vettance.wire.payload import read_timestamp

WATCH = Watch(customers=60, days=60, seed=5, cases=2)


def written(watch: Watch) -> tuple[bytes, bytes]:
    events, truth = io.BytesIO(), io.BytesIO()
    write_aml(watch, events, truth)
    return events.getvalue(), truth.getvalue()


def test_the_same_seed_writes_the_same_bytes_and_another_one_others() -> None:
    assert written(WATCH) == written(WATCH)
    assert written(WATCH) != written(WATCH._replace(seed=6))


def test_events_are_in_order_and_taken_as_they_are() -> None:
    events, truth = written(WATCH)
    before = 0
    for line, said in zip(events.splitlines(), truth.splitlines(), strict=True):
        body = json.loads(line)
        at_ms = read_timestamp(body["sourceReportedAt"])
        assert at_ms is not None
        assert at_ms >= before
        before = at_ms
        read_aml_event(body, line, at_ms)
        assert json.loads(said)["externalEventId"] == body["externalEventId"]


def test_every_typology_is_planted() -> None:
    _, truth = written(WATCH)
    planted = {json.loads(line).get("typology") for line in truth.splitlines()} - {None}
    assert planted == set(TYPOLOGIES)


def test_no_event_carries_its_label() -> None:
    events, _ = written(WATCH)
    for word in (b"launder", b"smurf", b"mule", b"cycle", b"ordinary"):
        assert word not in events.lower()


def test_the_command_writes_both_files(tmp_path: Path) -> None:
    arguments = ("--customers", "30", "--days", "5", "--out", str(tmp_path / "money"), "--json")

    done = subprocess.run(
        [sys.executable, "-m", "vettance.cli", "generate", "aml", *arguments],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    found = json.loads(done.stdout)
    assert len((tmp_path / "money" / "events.ndjson").read_bytes().splitlines()) == found["events"]
