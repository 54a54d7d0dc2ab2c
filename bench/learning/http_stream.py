"""A stream of labelled events through a service: events in their order, each label when it is due.

The stream waits while a model is trained, which in the months that it stands for takes no time.
"""

import asyncio
import contextlib
import json
import os
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from bench.client.blocking import Caller
from bench.learning.labelled_stream import GivenLabel, LabelledEvent, ScoredEvent
from vettance.clock import now_ms
from vettance.commands import open_store
from vettance.demo.demo_client import request
from vettance.demo.drive import PATH
from vettance.demo.launch import RunningService, command, launched
from vettance.learning.change_models import find_setting
from vettance.learning.run_training import is_due
from vettance.models.sql import ModelSetting

_SAID_EACH_S: Final = 10.0
_LOOK_S: Final = 0.2
#: A training that takes longer than this is not waited for.
_WAIT_S_MAX: Final = 120.0
#: Servers see within this what was changed.
_SEEN_S: Final = 2.0
_PAGE: Final = 100


class StreamOrder(NamedTuple):
    """How a stream is sent: the seed of trainings, milliseconds between events, seconds until it ends."""

    seed: int = 1
    pause_ms: float = 0.0
    seconds_max: float = 900.0


class _Stream:
    """Sends events and labels to a service, one thing after the other over one connection."""

    def __init__(self, folder: Path, service: RunningService, order: StreamOrder, caller: Caller) -> None:
        self._folder = folder
        self._tenant, self._key = service.tenant_id, service.target.api_key
        self._caller = caller
        self._order = order
        self._began_s = self._said_s = time.monotonic()
        self._setting = ModelSetting(self._tenant)
        self._names: list[str] = []
        self._frauds = self._trainings = 0

    def send(self, events: Sequence[LabelledEvent], labels: Sequence[GivenLabel]) -> list[ScoredEvent]:
        """Send what there is time for, and return what was said of it."""
        waiting = iter([*labels, None])
        label = next(waiting)
        for event in events:
            while label is not None and label.at_ms <= event.at_ms:
                self._label(label)
                label = next(waiting)
            self._names.append(self._ask("POST", PATH, event.body)["correlationIds"]["eventId"])
            if self._order.pause_ms:
                time.sleep(self._order.pause_ms / 1000)
            if time.monotonic() - self._began_s > self._order.seconds_max:
                print(f"cut off after {len(self._names):,} of {len(events):,} events", file=sys.stderr)
                break
            self._say(len(events))
        return self._read_back()

    def _label(self, label: GivenLabel) -> None:
        said = {"label": "FRAUD" if label.fraud else "LEGIT"}
        self._ask("POST", f"/api/v1/feedback/event/{self._names[label.place]}", said)
        self._frauds += label.fraud
        if not self._setting.features:
            self._wait(lambda one: bool(one.features))
        if is_due(self._frauds, self._setting.trained_frauds, self._setting.trained_at_ms, now_ms()):
            self._wait(lambda one: one.trained_frauds >= self._frauds)
            self._trainings += 1

    def _wait(self, is_done: Callable[[ModelSetting], bool]) -> None:
        """Wait until a setting is as it should be and servers have seen it, or for long enough."""
        until_s = time.monotonic() + _WAIT_S_MAX
        while not is_done(self._setting) and time.monotonic() < until_s:
            time.sleep(_LOOK_S)
            self._setting = asyncio.run(_setting_of(self._folder, self._tenant))
        time.sleep(_SEEN_S)

    def _say(self, count: int) -> None:
        now_s = time.monotonic()
        if now_s - self._said_s < _SAID_EACH_S:
            return
        self._said_s, done = now_s, len(self._names)
        rate = done / (now_s - self._began_s)
        print(
            f"    {done:,} of {count:,} events, {rate:.0f} a second, {self._trainings} trainings, model "
            f"{self._setting.champion or 'none'} in service; {(count - done) / rate:.0f} s more",
            file=sys.stderr,
            flush=True,
        )

    def _read_back(self) -> list[ScoredEvent]:
        found: dict[str, ScoredEvent] = {}
        cursor = ""
        while True:
            page = self._ask("GET", f"/api/v1/events?limit={_PAGE}{cursor}")
            found |= {row["id"]: _scored(row) for row in page["data"]}
            if not page["hasMore"]:
                return [found[name] for name in self._names]
            cursor = f"&cursor={page['nextCursor']}"

    def _ask(self, method: str, path: str, body: Any = None) -> Any:
        answer = self._caller.ask(request(method, path, self._key, body))
        if answer.status // 100 != 2:
            raise SystemExit(f"{path} was answered {answer.status}: {answer.body.decode()}")
        return json.loads(answer.body)


async def _setting_of(folder: Path, tenant: str) -> ModelSetting:
    async with open_store(str(folder)) as (store, _):
        return await find_setting(store, tenant)


def run_http(
    folder: Path, events: Sequence[LabelledEvent], labels: Sequence[GivenLabel], order: StreamOrder
) -> list[ScoredEvent]:
    """Send events and labels to a service of its own, its model active; return what it said of each."""
    folder.mkdir(parents=True, exist_ok=True)
    # Of the service, and of the commands beside it.
    os.environ["VETTANCE_TRAINING_SEED"] = str(order.seed)
    with launched(folder) as service:
        mode = ("model", "set", "--mode", "active", "--may-block", "on")
        command(folder, *mode, "--tenant", service.tenant_id)
        with contextlib.closing(Caller(service.target.host, service.target.port)) as caller:
            return _Stream(folder, service, order, caller).send(events, labels)


def _scored(row: Any) -> ScoredEvent:
    said = (row.get("outputs") or {}).get("model")
    return ScoredEvent(None if said is None else said.get("probability"), row["score"])
