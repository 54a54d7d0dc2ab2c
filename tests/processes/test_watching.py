"""Two processes of a crew watch one tenant's money as one does alone, and one of them may be killed."""

import os
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.databases import absence, database
from tests.live import Service, started
from tests.redis_link.redis_server import PrivateRedis
from vettance.generate.aml_stream import Watch, aml_events

pytestmark = pytest.mark.slow

EVENTS = "/api/v1/aml/events"
DAYS = 10


def watching(service: Service) -> Service:
    service.cli("tenant", "set", service.tenant_id, "--aml", "on", "--json")
    service.wait_for(lambda: all(service.get("/api/v1/aml/cases").status == 200 for _ in range(20)))
    return service


@pytest.fixture
def crew(tmp_path: Path) -> Iterator[Service]:
    """Two processes that answer on one port."""
    if (reason := absence()) is not None:
        pytest.skip(reason)
    redis = PrivateRedis()
    redis.start()
    with database() as url:
        service = Service(tmp_path / "crew")
        service.env = {"VETTANCE_DATABASE_URL": url, "VETTANCE_REDIS_URL": redis.url}
        service.arguments = ("--workers", "2")
        service.tenant_id, service.api_key = service.new_tenant("Bank")
        service.start()
        service.wait_for(lambda: sum("process_ready" in line for line in service.log) == 2, seconds=30)
        yield watching(service)
        assert service.stop() == 0
    redis.stop()
    redis._folder.cleanup()


def insist(service: Service, body: dict[str, Any]) -> Any:
    """Send an event until it is answered."""
    until = time.monotonic() + 60
    while time.monotonic() < until:
        try:
            answer = service.post(EVENTS, body)
        except OSError:
            continue  # The process that had it was killed.
        if answer.status == 200:
            return answer.json
        assert answer.status == 503, answer.body
        time.sleep(0.05)
    raise AssertionError("not answered in time")


def answered_by_one(folder: Path, bodies: list[dict[str, Any]]) -> tuple[list[Any], list[Any]]:
    """Return what a process alone answers, and its cases."""
    alone = started(folder)
    try:
        watching(alone)
        return [insist(alone, body) for body in bodies], cases(alone)
    finally:
        assert alone.stop() == 0


def told(answers: list[Any]) -> list[Any]:
    """Return what was answered, with a number for each alert in place of its id."""
    numbers: dict[str, int] = {}
    return [
        (
            answer["externalEventId"],
            answer["status"],
            *(
                (numbers.setdefault(alert["id"], len(numbers)), alert["ruleId"], alert["severity"])
                for alert in answer["alerts"]
            ),
        )
        for answer in answers
    ]


def cases(service: Service) -> list[Any]:
    listed = service.get("/api/v1/aml/cases?limit=100").json["data"]
    return sorted((one["customer"], one["severity"], one["alertCount"]) for one in listed)


def kill_one(crew: Service) -> None:
    assert crew.process is not None
    listed = subprocess.run(
        ["ps", "-o", "pid=", "--ppid", str(crew.process.pid)], capture_output=True, text=True, check=True
    )
    os.kill(min(int(pid) for pid in listed.stdout.split()), signal.SIGKILL)


def test_events_spread_over_a_crew_are_answered_as_by_one_process(crew: Service, tmp_path: Path) -> None:
    start_ms = int(time.time() * 1000) - DAYS * 86_400_000
    bodies = [body for _, body in aml_events(Watch(6, DAYS, 3, start_ms, cases=1))][:200]
    expected, cases_expected = answered_by_one(tmp_path / "alone", bodies)
    answers = []
    for number, body in enumerate(bodies):
        if number in (60, 130):
            threading.Thread(target=kill_one, args=(crew,)).start()
        answers.append(insist(crew, body))
    assert told(answers) == told(expected)
    assert sum(answer["status"] == "ALERTED" for answer in answers) > 5
    assert cases(crew) == cases_expected
    replays = [crew.post(EVENTS, body).json for body in bodies[::20]]
    assert replays == answers[::20]
