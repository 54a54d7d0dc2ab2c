"""Imported history with labels: a model can be trained from it at once."""

import json
import random
from pathlib import Path

from tests.live import Caller, Service
from vettance import clock
from vettance.clock import DAY_MS, HOUR_MS
from vettance.decisions.sql import record_of

_EVENTS = 600


def history(path: Path, *, is_labelled: bool) -> Path:
    """Write payments of some weeks, of which one in ten is a fraud of a large amount."""
    draw, start_ms = random.Random(3), clock.now_ms() - 40 * DAY_MS
    with path.open("w") as file:
        for number in range(_EVENTS):
            fraud = number % 10 == 0
            event = {
                "eventName": "payment.authorized",
                "eventCategory": "TRANSACTION",
                "occurredAt": (start_ms + number * HOUR_MS) // 1000,
                "customer": {"externalId": f"c{number % 50}"},
                "metadata": {"amount": round(abs(draw.gauss(900 if fraud else 60, 15)), 2)},
            }
            if is_labelled:
                event["label"] = "FRAUD" if fraud else "LEGIT"
            file.write(json.dumps(event) + "\n")
    return path


def test_a_model_is_trained_from_what_was_imported_with_its_labels(service: Service, tmp_path: Path) -> None:
    caller = Caller(service, *service.new_tenant("Historian"))
    file = history(tmp_path / "history.ndjson", is_labelled=True)
    service.cli("import", str(file), "--tenant", caller.id, "--wait", "--json")
    records = service.rows(f"SELECT record FROM decision WHERE tenant = '{caller.id}'")
    assert len(records) == _EVENTS
    assert all(record_of(record).feature_set for (record,) in records)
    said = service.cli("model", "train", "--tenant", caller.id, "--wait", "--json")
    assert said["failure"] is None
    newest = service.cli("model", "list", "--tenant", caller.id, "--json")[0]
    card = service.cli("model", "card", str(newest["version"]), "--tenant", caller.id, "--json")["card"]
    assert (card["rows"], card["frauds"]) == (_EVENTS, _EVENTS // 10)
    versions = service.cli("model", "features", "versions", "--tenant", caller.id, "--json")
    assert versions[-1]["note"] == "Found in events that were imported with labels."


def test_history_without_labels_has_no_features_recorded(service: Service, tmp_path: Path) -> None:
    caller = Caller(service, *service.new_tenant("Chronicler"))
    file = history(tmp_path / "history.ndjson", is_labelled=False)
    service.cli("import", str(file), "--tenant", caller.id, "--wait", "--json")
    records = service.rows(f"SELECT record FROM decision WHERE tenant = '{caller.id}'")
    assert len(records) == _EVENTS
    assert not any(record_of(record).feature_set for (record,) in records)
