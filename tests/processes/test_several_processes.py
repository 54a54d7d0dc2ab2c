"""Several processes on PostgreSQL and Redis: they know the same, share the work, and one may die."""

import contextlib
import os
import signal
import socket
import subprocess
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.databases import absence, ask, database
from tests.live import Answer, Service, run_cli
from tests.redis_link.redis_server import PrivateRedis

pytestmark = pytest.mark.slow

LOGIN = {
    "eventName": "user.login",
    "eventCategory": "AUTHENTICATION",
    "customer": {"externalId": "c-1", "email": "eve@example.com"},
}

BLOCKING = """
name: blocking
rules:
  - id: large
    when: metadata.amount > 5000
    name: Large
    score: 10
    outcome: REVIEW
    reason: LARGE
    explanation: It is large.
    adds: {list: block, type: DEVICE, for: 1d}
    tests:
      - {name: large, event: {eventName: payment, metadata: {amount: 5001}}, fires: true}
      - {name: small, event: {eventName: payment, metadata: {amount: 5000}}, fires: false}
  - id: nine
    when: metadata.amount == 9
    name: Nine
    score: 10
    outcome: REVIEW
    reason: NINE
    explanation: It is nine.
    tests:
      - {name: nine, event: {eventName: payment, metadata: {amount: 9}}, fires: true}
      - {name: ten, event: {eventName: payment, metadata: {amount: 10}}, fires: false}
"""


class Deployment:
    """What the processes share, and the processes."""

    def __init__(self, data: Path, url: str, redis: PrivateRedis) -> None:
        self.data = data
        self.url = url
        self.env = {"VETTANCE_DATABASE_URL": url, "VETTANCE_REDIS_URL": redis.url}
        self.running: list[Service] = []
        first = self.process()
        self.tenant_id, self.api_key = first.new_tenant("First")

    def process(self) -> Service:
        service = Service(self.data)
        service.env = dict(self.env)
        return service

    def start(self, *arguments: str) -> Service:
        """Start one more server; it answers the first tenant."""
        service = self.process()
        service.tenant_id, service.api_key = self.tenant_id, self.api_key
        service.arguments = arguments
        service.start()
        self.running.append(service)
        return service


def children_of(crew: Service) -> set[int]:
    """The processes that a server has started."""
    assert crew.process is not None
    listed = subprocess.run(
        ["ps", "-o", "pid=", "--ppid", str(crew.process.pid)], capture_output=True, text=True, check=False
    )
    return {int(pid) for pid in listed.stdout.split()}


@pytest.fixture(scope="module")
def deployment(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployment]:
    if (reason := absence()) is not None:
        pytest.skip(reason)
    redis = PrivateRedis()
    redis.start()
    with database() as url:
        made = Deployment(tmp_path_factory.mktemp("deployment"), url, redis)
        yield made
        for service in made.running:
            if service.process is not None:
                assert service.stop() == 0
    redis.stop()
    redis._folder.cleanup()


@pytest.fixture(scope="module")
def two(deployment: Deployment) -> tuple[Service, Service]:
    """Two servers: one that does everything, one that only answers."""
    return deployment.start(), deployment.start("--role", "web")


@pytest.mark.parametrize("arguments", [("--workers", "2"), ("--role", "web"), ("--role", "worker")])
def test_several_processes_without_what_they_share_are_refused(
    tmp_path: Path, arguments: tuple[str, ...]
) -> None:
    done = run_cli(tmp_path, "serve", *arguments, ok=False)
    assert done.returncode == 1
    assert "set VETTANCE_DATABASE_URL and VETTANCE_REDIS_URL" in done.stderr


def test_a_key_that_is_made_or_revoked_is_so_in_every_process(two: tuple[Service, Service]) -> None:
    one, other = two
    made = one.cli("key", "create", "--tenant", one.tenant_id, "--json")
    for service in two:
        service.wait_for(lambda at=service: at.get("/api/v1/lists", key=made["apiKey"]).status == 200)
    other.cli("key", "revoke", made["keyId"])
    for service in two:
        service.wait_for(lambda at=service: at.get("/api/v1/lists", key=made["apiKey"]).status == 401)


def test_a_list_entry_and_a_rule_set_count_in_every_process(
    two: tuple[Service, Service], tmp_path: Path
) -> None:
    one, other = two
    before = other.post("/api/v1/decisions/evaluate", LOGIN).json
    assert before["decision"] == "approve"
    entry = {"type": "EMAIL", "value": "eve@example.com", "listType": "block"}
    assert one.post("/api/v1/lists", entry).status == 201
    other.wait_for(lambda: other.post("/api/v1/decisions/evaluate", LOGIN).json["decision"] == "deny")
    document = tmp_path / "rules.yaml"
    one.cli("rules", "pull", "--tenant", one.tenant_id, "--output", str(document))
    document.write_text(document.read_text("utf-8") + "# another version\n", "utf-8")
    one.cli("rules", "push", str(document), "--yes", "--tenant", one.tenant_id)

    def version(service: Service) -> str:
        return str(service.post("/api/v1/decisions/evaluate", LOGIN).json["ruleVersion"]["version"])

    for service in two:
        service.wait_for(lambda at=service: version(at) != before["ruleVersion"]["version"])


def test_what_one_process_has_answered_about_lists_is_in_force_in_all(two: tuple[Service, Service]) -> None:
    key = two[0].new_tenant("Lists")[1]
    for service in two:
        service.wait_for(lambda at=service: at.get("/api/v1/lists", key=key).status == 200)
    for number in range(20):
        one, other = two if number % 2 else two[::-1]
        sent = {**LOGIN, "device": {"fingerprint": f"fp-{number}"}}
        entry = {"type": "DEVICE", "value": f"fp-{number}", "listType": "block"}
        made = one.post("/api/v1/lists", entry, key=key)
        assert made.status == 201
        assert other.post("/api/v1/decisions/evaluate", sent, key=key).json["decision"] == "deny"
        assert one.delete(f"/api/v1/lists/{made.json['id']}", key=key).status == 200
        assert other.post("/api/v1/decisions/evaluate", sent, key=key).json["decision"] == "approve"


def test_what_a_rule_puts_on_a_list_in_one_process_is_in_force_in_all(
    two: tuple[Service, Service], tmp_path: Path
) -> None:
    tenant_id, key = two[0].new_tenant("Rules that block")
    document = tmp_path / "rules.yaml"
    document.write_text(BLOCKING, "utf-8")
    two[0].cli("rules", "push", str(document), "--yes", "--tenant", tenant_id)
    for service in two:
        service.wait_for(lambda at=service: at.get("/api/v1/lists", key=key).status == 200)

    def decided(service: Service, amount: int, device: str) -> str:
        sent = {"eventName": "payment", "device": {"fingerprint": device}, "metadata": {"amount": amount}}
        return str(service.post("/api/v1/decisions/evaluate", sent, key=key).json["decision"])

    for service in two:
        service.wait_for(lambda at=service: decided(at, 9, "fp-first") == "review")
    for number in range(10):
        one, other = two if number % 2 else two[::-1]
        assert decided(one, 9_000, f"fp-{number}") == "review"
        assert decided(other, 1, f"fp-{number}") == "deny"


def test_limits_of_lists_and_feedback_hold_for_all_processes_together(
    two: tuple[Service, Service],
) -> None:
    _, key = two[0].new_tenant("Limits", **{"list-entries": 10})
    for service in two:
        service.wait_for(lambda at=service: at.get("/api/v1/lists", key=key).status == 200)
    event_id = two[0].post("/api/v1/events", LOGIN, key=key).json["eventId"]
    for _ in range(95):
        assert two[0].post(f"/api/v1/feedback/event/{event_id}", {"label": "LEGIT"}, key=key).status == 201

    def add(number: int) -> int:
        entry = {"type": "DEVICE", "value": f"fp-{number}", "listType": "block"}
        return int(two[number % 2].post("/api/v1/lists", entry, key=key).status)

    def say(number: int) -> int:
        path = f"/api/v1/feedback/event/{event_id}"
        return int(two[number % 2].post(path, {"label": "LEGIT"}, key=key).status)

    with ThreadPoolExecutor(16) as pool:
        assert Counter(pool.map(add, range(32))) == {201: 10, 409: 22}
        assert Counter(pool.map(say, range(16))) == {201: 5, 422: 11}
    assert len(two[0].get(f"/api/v1/events/{event_id}", key=key).json["feedback"]) == 100


def test_of_rules_that_add_a_value_at_once_each_decision_names_the_entry_that_there_is(
    two: tuple[Service, Service], tmp_path: Path
) -> None:
    tenant_id, key = two[0].new_tenant("Rules that block at once")
    document = tmp_path / "rules.yaml"
    document.write_text(BLOCKING, "utf-8")
    two[0].cli("rules", "push", str(document), "--yes", "--tenant", tenant_id)

    def decide(service: Service, amount: int, device: str) -> Answer:
        sent = {"eventName": "payment", "device": {"fingerprint": device}, "metadata": {"amount": amount}}
        return service.post("/api/v1/decisions/evaluate", sent, key=key)

    for service in two:
        service.wait_for(lambda at=service: at.get("/api/v1/lists", key=key).status == 200)
        service.wait_for(lambda at=service: decide(at, 9, "fp-first").json["decision"] == "review")
    with ThreadPoolExecutor(8) as pool:
        for number in range(20):
            decided = list(pool.map(lambda at, n=number: decide(two[at % 2], 9_000, f"fp-{n}"), range(8)))
            assert {answer.status for answer in decided} == {200}
            listed = two[0].get("/api/v1/lists?limit=1", key=key).json
            assert listed["total"] == number + 1
            ids = [answer.json["correlationIds"]["eventId"] for answer in decided]
            records = [two[0].get(f"/api/v1/decisions/{one}", key=key).json for one in ids]
            added = [one["outputs"]["listAdditions"] for one in records if "listAdditions" in one["outputs"]]
            assert {entry["id"] for (entry,) in added} == {listed["data"][0]["id"]}
            assert [entry["result"] for (entry,) in added].count("added") == 1


def test_events_of_all_processes_count_for_each_of_them(two: tuple[Service, Service]) -> None:
    _, key = two[0].new_tenant("Velocity")
    for service in two:
        service.wait_for(lambda at=service: at.get("/api/v1/lists", key=key).status == 200)
    event = {
        "eventName": "payment.attempt",
        "eventCategory": "TRANSACTION",
        "customer": {"externalId": "c-1001"},
        "device": {"fingerprint": "fp-77"},
        "metadata": {"amount": 4.90, "currency": "EUR"},
    }
    decisions = []
    for number in range(6):
        event["metadata"] = {"amount": 4.90, "currency": "EUR", "cardHash": f"card-{number}"}
        decisions.append(two[number % 2].post("/api/v1/decisions/evaluate", event, key=key).json["decision"])
    assert decisions[0] == "approve"
    assert decisions[-1] == "deny"
    listed = two[1].get("/api/v1/decisions", key=key).json
    assert len(listed["data"]) == 6


def test_a_subscription_answered_by_one_process_hears_of_the_next_event_of_another(
    two: tuple[Service, Service],
) -> None:
    one, other = two
    _, key = one.new_tenant("Subscriber")
    for service in two:
        service.wait_for(lambda at=service: at.get("/api/v1/lists", key=key).status == 200)
    wished = {"url": "https://hooks.example.com/events", "eventTypes": ["EVENT_RISK_EVALUATED"]}
    made = one.post("/api/v1/webhooks/subscriptions", wished, key=key)
    assert made.status == 201
    decided = other.post("/api/v1/decisions/evaluate", LOGIN, key=key)
    deliveries = one.get(f"/api/v1/webhooks/subscriptions/{made.json['id']}/deliveries", key=key).json["data"]
    assert [each["subjectId"] for each in deliveries] == [decided.json["correlationIds"]["eventId"]]


def test_an_event_accepted_by_one_process_is_decided_by_another(
    deployment: Deployment, two: tuple[Service, Service]
) -> None:
    accepted = two[1].post("/api/v1/events/async", LOGIN)
    assert accepted.status == 202
    job = accepted.json["jobId"]
    two[1].wait_for(
        lambda: two[1].get(f"/api/v1/events/jobs/{job}").json["status"] == "completed", seconds=15
    )
    assert ask(deployment.url, "SELECT count(*) FROM job WHERE state = 'completed'") == [(1,)]


def test_clients_that_come_at_once_are_shared_by_the_processes_of_a_crew(deployment: Deployment) -> None:
    crew = deployment.start("--workers", "3")
    crew.wait_for(lambda: sum("process_ready" in line for line in crew.log) == 3, seconds=30)

    port = int(crew.base_url.rpartition(":")[2])

    def open_ones(pid: int) -> int:
        """Count the connections to the port of the crew that a process holds."""
        at = f":{port:04X}"
        rows = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
        ours = {f"socket:[{row[9]}]" for row in rows if row[1].endswith(at) and row[3] == "01"}
        return sum(str(one.readlink()) in ours for one in Path(f"/proc/{pid}/fd").iterdir())

    with contextlib.ExitStack() as stack:
        for _ in range(30):
            stack.enter_context(socket.create_connection(("127.0.0.1", port)))
        pids = children_of(crew)
        crew.wait_for(lambda: sum(map(open_ones, pids)) == 30)
        assert max(map(open_ones, pids)) <= 15
    assert crew.stop() == 0


def test_a_process_of_a_crew_that_dies_is_replaced_while_the_others_answer(deployment: Deployment) -> None:
    crew = deployment.start("--workers", "2")
    crew.wait_for(lambda: len(children_of(crew)) == 2)
    crew.wait_for(lambda: sum("process_ready" in line for line in crew.log) == 2, seconds=30)
    before = children_of(crew)
    os.kill(min(before), signal.SIGKILL)
    crew.wait_for(lambda: len(children_of(crew) - before) == 1, seconds=15)
    answers = {crew.post("/api/v1/decisions/evaluate", LOGIN).status for _ in range(20)}
    assert answers == {200}
    assert crew.stop() == 0
