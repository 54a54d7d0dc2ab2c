"""What a service acknowledged while it was broken, and a client that retries until it has an answer."""

import contextlib
import json
import random
import threading
import time
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple, Protocol

from bench.client.blocking import ask_once
from vettance.demo.demo_client import HttpAnswer, request

#: How decisions are called on the wire, and how in the store.
OUTCOMES = {"approve": "ALLOW", "review": "REVIEW", "deny": "BLOCK"}
_RETRY = b"\r\nretry-after: "


class Acknowledgement(NamedTuple):
    """Something that was acknowledged: its kind, the name that the caller gave it, and its id."""

    kind: str
    name: str
    id: str


class Round(NamedTuple):
    """What one fault did."""

    number: int
    kind: str
    acknowledged: int
    refused: int
    back_s: float  # from the end of the fault to the next success
    found: list[str]
    what: str = ""  # which of its ways the fault took
    steady_s: float = 0.0  # from the end of the fault to the last refusal after it

    def line(self) -> str:
        """Say it in one line."""
        return (
            f"{self.number:>4} {self.kind:<8} {self.what:<24} {self.acknowledged:>6,} acknowledged, "
            f"{self.refused:>5,} refused, back after {self.back_s:.2f} s, "
            f"steady after {self.steady_s:.2f} s: "
            f"{'; '.join(self.found) or 'nothing wrong'}"
        )


class Ledger:
    """Every answer that callers received."""

    def __init__(self) -> None:
        self.outcomes: dict[str, str] = {}
        self.acknowledged: list[Acknowledgement] = []
        self.tried: Counter[str] = Counter()
        self.statuses: Counter[str] = Counter()
        self.unexplained: list[str] = []
        #: When answers came (monotonic seconds), and whether they were successes.
        self.answers: list[tuple[float, bool]] = []

    def observe(self, answer: HttpAnswer) -> None:
        """Take one whole answer (called by the load client)."""
        self.note(str(answer.status), answer.body, retry_after=_RETRY in answer.head.lower())
        if answer.status == 200:
            self.decided(answer.body)

    def decided(self, body: bytes) -> None:
        """Take down the answer to an event."""
        answer = json.loads(body)
        self.outcomes[answer["correlationIds"]["eventId"]] = answer["decision"]

    def note(self, status: str, body: bytes, *, retry_after: bool = True) -> None:
        """Count an answer, and keep it when nothing in the contract explains it."""
        self.statuses[status] += 1
        is_success = status.startswith("2")
        self.answers.append((time.monotonic(), is_success))
        if is_success or status == "409":
            return
        with contextlib.suppress(ValueError, KeyError):
            error = json.loads(body)["error"]
            if (
                status == "503"
                and retry_after
                and error["code"] == "SERVICE_UNAVAILABLE"
                and error["details"]["retryAfter"] >= 1
            ):
                return
        self.unexplained.append(f"{status} {body[:200]!r}")

    def back_s(self, since_s: float) -> float:
        """Return how long after a moment the next success came."""
        return (
            min((at for at, success in self.answers if success and at >= since_s), default=since_s) - since_s
        )

    def steady_s(self, since_s: float) -> float:
        """Return how long after a moment the last refusal came."""
        return max((at for at, success in self.answers if not success), default=since_s) - since_s


class Service(Protocol):
    """Whatever answers HTTP."""

    def ask(self, method: str, path: str, body: Any = None, key: str | None = None) -> tuple[int, bytes]:
        """Send one request; raises `OSError` when there is no answer."""


def ask(
    address: tuple[str, int], api_key: str, method: str, path: str, body: Any = None, key: str | None = None
) -> tuple[int, bytes]:
    """Send one request, `key` as its Idempotency-Key; raises `OSError` when there is no answer."""
    headers = [] if key is None else [f"Idempotency-Key: {key}"]
    answer = ask_once(*address, request(method, path, api_key, body, headers))
    return answer.status, answer.body


class CarefulClient(threading.Thread):
    """Does what must happen exactly once, and retries with the same key until it is acknowledged."""

    def __init__(self, service: Service, ledger: Ledger, name: str, rng: random.Random) -> None:
        super().__init__(daemon=True)
        self._service = service
        self._ledger = ledger
        self._round = name
        self._rng = rng
        self.ending = threading.Event()

    def run(self) -> None:
        number = 0
        while not self.ending.is_set():
            number += 1
            kind = self._rng.choice(("list", "feedback", "job", "event"))
            if kind == "feedback" and not self._ledger.outcomes:
                kind = "event"
            name = f"{kind}-{self._round}-{number}"
            path, sent = self._request_of(kind, name)
            self._ledger.tried[name] += 1
            while not self.ending.is_set():
                try:
                    status, body = self._service.ask("POST", path, sent, name)
                except OSError:
                    self.ending.wait(0.05)
                    continue
                self._ledger.note(str(status), body)
                if status in (200, 201, 202):
                    self._ledger.acknowledged.append(
                        Acknowledgement(kind, name, _id_of(kind, json.loads(body)))
                    )
                    break
                if status not in (409, 503):
                    break
                self.ending.wait(0.05)

    def _request_of(self, kind: str, name: str) -> tuple[str, dict[str, Any]]:
        """Return path and body of a request; a retry sends the same ones, since keys count by path."""
        if kind == "list":
            return "/api/v1/lists", {"type": "DEVICE", "value": name, "listType": "block"}
        if kind == "feedback":
            # Any of them: an event takes no more than a hundred labels.
            event = self._rng.choice(list(self._ledger.outcomes))
            return f"/api/v1/feedback/decision/{event}", {"label": "LEGIT", "notes": name}
        path = "/api/v1/events/async" if kind == "job" else "/api/v1/decisions/evaluate"
        return path, {"eventName": "user.login", "customer": {"externalId": name}}


def _id_of(kind: str, answer: Any) -> str:
    if kind == "event":
        return str(answer["correlationIds"]["eventId"])
    return str(answer.get("id") or answer["jobId"])


def settle_jobs(service: Service, ledger: Ledger, found: list[str], within_s: float) -> None:
    """Wait until every event that was accepted for later is decided."""
    until = time.monotonic() + within_s
    for told in (one for one in ledger.acknowledged if one.kind == "job"):
        while True:
            said = ""
            with contextlib.suppress(OSError):
                status, answer = service.ask("GET", f"/api/v1/events/jobs/{told.id}")
                said = json.loads(answer)["status"] if status == 200 else str(status)
            if said == "completed":
                break
            if said == "failed" or time.monotonic() > until:
                found.append(f"{told.name} was accepted and never decided ({said})")
                break
            time.sleep(0.02)


def compare(
    ledger: Ledger,
    decided: Mapping[str, str],
    events: Iterable[str],
    there: Mapping[str, Mapping[str, int]],
) -> list[str]:
    """Compare the ledger with what is stored.

    `decided` are the stored outcomes by id, `events` the ids in the log; `there` counts, for each kind of
    thing that the careful client does, what is stored under each of its names.
    """
    found: list[str] = []
    apart = set(events) ^ decided.keys()
    if apart:
        found.append(f"{len(apart)} events without a decision, or the other way round")
    lost = [one for one in ledger.outcomes if one not in decided]
    changed = [
        one for one, told in ledger.outcomes.items() if decided.get(one, OUTCOMES[told]) != OUTCOMES[told]
    ]
    if lost:
        found.append(f"{len(lost)} acknowledged decisions are lost")
    if changed:
        found.append(f"{len(changed)} decisions are stored otherwise than acknowledged")
    acknowledged_names = {one.name for one in ledger.acknowledged}
    for name in ledger.tried:
        count = there[name.partition("-")[0]].get(name, 0)
        if name in acknowledged_names and count == 0:
            found.append(f"{name} was acknowledged and is lost")
        if count > 1:
            found.append(f"{name} took effect {count} times")
    return found
