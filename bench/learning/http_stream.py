"""A stream of labelled events through a service: events in their order, each label when it is due."""

import json
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bench.client.blocking import Caller
from bench.learning.labelled_stream import GivenLabel, LabelledEvent, ScoredEvent
from vettance.demo.demo_client import request
from vettance.demo.drive import PATH
from vettance.demo.launch import RunningService, command, launched


class _Asker:
    """Asks a service one thing after the other over one connection."""

    def __init__(self, service: RunningService) -> None:
        self._key = service.target.api_key
        self._caller = Caller(service.target.host, service.target.port)

    def ask(self, method: str, path: str, body: Any = None) -> Any:
        answer = self._caller.ask(request(method, path, self._key, body))
        if answer.status // 100 != 2:
            raise SystemExit(f"{path} was answered {answer.status}: {answer.body.decode()}")
        return json.loads(answer.body)


def run_http(
    folder: Path, events: Sequence[LabelledEvent], labels: Sequence[GivenLabel], pause_ms: float = 0
) -> list[ScoredEvent]:
    """Send every event and label to a service of its own, its model active; return what it said of each."""
    with launched(folder / "service") as service:
        mode = ("model", "set", "--mode", "active", "--may-block", "on")
        command(folder / "service", *mode, "--tenant", service.tenant_id)
        asker = _Asker(service)
        names: list[str] = []
        waiting = iter([*labels, None])
        label = next(waiting)
        for event in events:
            while label is not None and label.at_ms <= event.at_ms:
                said = {"label": "FRAUD" if label.fraud else "LEGIT"}
                asker.ask("POST", f"/api/v1/feedback/event/{names[label.place]}", said)
                label = next(waiting)
            answer = asker.ask("POST", PATH, event.body)
            names.append(answer["correlationIds"]["eventId"])
            if pause_ms:
                time.sleep(pause_ms / 1000)
        return [_scored(asker.ask("GET", f"/api/v1/decisions/{name}")) for name in names]


def _scored(decision: Any) -> ScoredEvent:
    said = decision["outputs"].get("model")
    return ScoredEvent(None if said is None else said.get("probability"), decision["outputs"]["riskScore"])
