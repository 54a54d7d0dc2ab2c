"""`vettance consume` beside a running service, against real brokers: each event is decided once."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from typing import Any

import pytest

from tests.live import Caller, Service, ask_store
from tests.streams.brokers import KAFKA, Broker, login


def start(service: Service, tenant: str, places: Broker, *more: str) -> "subprocess.Popen[str]":
    command = [
        *(
            sys.executable,
            "-m",
            "vettance.cli",
            "consume",
            "--tenant",
            tenant,
            "--json",
            "--data",
            str(service.data),
        ),
        *more,
    ]
    env = {**os.environ, **service.env, "VETTANCE_CONSUME_FROM": places.events}
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=env)


def finish(process: "subprocess.Popen[str]") -> dict[str, Any]:
    out, err = process.communicate(timeout=90)
    assert process.returncode == 0, err
    last: dict[str, Any] = json.loads(out.splitlines()[-1])
    return last


def decided(service: Service, tenant: str) -> dict[str, int]:
    """How often each message was decided, by the id that is its request's."""
    rows = ask_store(
        service.data,
        service.env,
        "SELECT job.request_id, COUNT(decision.id) FROM job JOIN decision ON decision.id = job.event "
        f"WHERE job.tenant = '{tenant}' GROUP BY job.request_id",
    )
    return {str(name): int(times) for name, times in rows}


def count(service: Service, tenant: str) -> int:
    rows = ask_store(service.data, service.env, f"SELECT COUNT(*) FROM decision WHERE tenant = '{tenant}'")
    return int(rows[0][0])


def due(service: Service) -> int:
    """Return how many results are still to be sent."""
    ask = "SELECT COUNT(*) FROM stream_message WHERE result_due = 1"
    return int(ask_store(service.data, service.env, ask)[0][0])


def start_again(service: Service) -> None:
    """Start a killed service as its supervisor would: its own processes may need a moment to end, too."""
    for _ in range(19):
        try:
            return service.start()
        except AssertionError:
            time.sleep(1.0)
    return service.start()


def id_rule(places: Broker) -> tuple[str, ...]:
    """Kafka has no ids of its own; the tests send one in a header."""
    return ("--id", "header:event-id") if places.events.startswith("kafka") else ()


def test_events_are_decided_and_answered_and_what_is_none_is_a_dead_letter(
    own_service: Service, places: Broker
) -> None:
    tenant, key = own_service.new_tenant()
    caller = Caller(own_service, tenant, key)
    ids: list[str | None] = [f"e{n}" for n in range(40)]
    places.send([login(n) for n in range(40)], ids)
    places.send([b"nonsense", login(1)], ["bad", "e0"])
    last = finish(
        start(
            own_service,
            tenant,
            places,
            "--to",
            places.results,
            "--dead",
            places.dead,
            "--drain",
            *id_rule(places),
        )
    )
    refused = 1 if places.events.startswith("nats") else 2  # NATS drops an id that it has met.
    assert (last["accepted"], last["refused"]) == (40, refused)
    results = [json.loads(body) for body, _, _ in places.read(places.results)]
    assert sorted(one["messageId"] for one in results) == sorted(str(one) for one in ids)
    assert {one["decision"] for one in results} <= {"approve", "review", "deny"}
    told = caller.get(f"/api/v1/decisions/{results[0]['eventId']}").json
    assert told["id"] == results[0]["eventId"], told
    letters = places.read(places.dead)
    assert len(letters) == refused
    body, headers, _ = next(one for one in letters if one[0] == b"nonsense")
    assert headers["Vettance-Reason"] == "VALIDATION_ERROR"
    job = caller.get(f"/api/v1/events/jobs/{headers['Vettance-Job-Id']}").json
    assert (job["status"], job["error"]["code"]) == ("failed", "VALIDATION_ERROR")
    assert places.left() in (0, None)
    assert body == b"nonsense"


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_neither_side_loses_or_doubles_anything_when_it_is_killed(
    own_service: Service, places: Broker
) -> None:
    tenant, _ = own_service.new_tenant()
    rng, total, per_round = random.Random(7), 0, 1_500
    for number in range(4):
        ids: list[str | None] = [f"e{n}" for n in range(total, total + per_round)]
        places.send([login(n) for n in range(total, total + per_round)], ids)
        total += per_round
        consumer = start(
            own_service, tenant, places, "--to", places.results, "--batch", "100", *id_rule(places)
        )
        time.sleep(rng.uniform(1.0, 3.0))
        if number % 2:
            own_service.stop(signal.SIGKILL)
            start_again(own_service)
        consumer.send_signal(signal.SIGKILL)
        consumer.communicate()
    consumer = start(own_service, tenant, places, "--to", places.results, *id_rule(places))
    until = time.monotonic() + 150
    while (
        count(own_service, tenant) < total or places.left() not in (0, None) or due(own_service)
    ) and time.monotonic() < until:
        time.sleep(0.5)
    assert consumer.stdout is not None
    consumer.stdout.readline()  # It runs: a signal before that ends it at once.
    consumer.send_signal(signal.SIGTERM)
    finish(consumer)
    assert decided(own_service, tenant) == {f"e{n}": 1 for n in range(total)}
    assert count(own_service, tenant) == total
    sent: dict[str, set[bytes]] = {}
    for body, _, name in places.read(places.results):
        sent.setdefault(str(name), set()).add(body)
    assert len(sent) == total, "every result is there"
    assert all(len(bodies) == 1 for bodies in sent.values()), "and sent again it is the same"


def test_aml_events_are_watched_once(own_service: Service, places: Broker) -> None:
    tenant, key = own_service.new_tenant()
    own_service.cli("tenant", "set", tenant, "--aml", "on")
    caller = Caller(own_service, tenant, key)
    bodies = [
        json.dumps(
            {
                "externalEventId": f"tx-{n}",
                "eventName": "transaction.wire",
                "customerId": f"c{n % 3}",
                "amount": 5 + n,
                "currency": "EUR",
            }
        ).encode()
        for n in range(20)
    ]
    places.send(bodies + bodies[:5], [None] * 25)
    last = finish(start(own_service, tenant, places, "--kind", "aml", "--to", places.results, "--drain"))
    assert (last["accepted"], last["repeated"], last["refused"], last["resultsSent"]) == (20, 5, 0, 20)
    results = [json.loads(body) for body, _, _ in places.read(places.results)]
    assert sorted(one["externalEventId"] for one in results) == sorted(f"tx-{n}" for n in range(20))
    assert caller.get("/api/v1/aml/events/tx-3").json["id"] in {one["eventId"] for one in results}


def test_nothing_is_fetched_while_too_many_wait(own_service: Service, places: Broker) -> None:
    tenant, _ = own_service.new_tenant()
    own_service.stop()
    places.send([login(n) for n in range(100)], [f"e{n}" for n in range(100)])
    consumer = start(own_service, tenant, places, "--batch", "10", "--waiting-max", "30", *id_rule(places))
    time.sleep(12 if KAFKA and KAFKA in places.events else 5)
    own_service.start()
    until = time.monotonic() + 60
    while count(own_service, tenant) < 100 and time.monotonic() < until:
        time.sleep(0.5)
    consumer.send_signal(signal.SIGTERM)
    out, _ = consumer.communicate(timeout=20)
    lines = [json.loads(line) for line in out.splitlines()]
    assert max(line["waiting"] for line in lines) == 30
    assert count(own_service, tenant) == 100
    assert consumer.returncode == 0


def test_a_broker_that_is_not_there_is_told_in_one_line(own_service: Service) -> None:
    tenant, _ = own_service.new_tenant()
    for address in ("nats://127.0.0.1:1/X", "amqp://u:secret@127.0.0.1:1/x"):
        command = ("consume", "--from", address, "--tenant", tenant)
        done = own_service.cli(*command, ok=False)
        assert done.returncode == 1
        assert "127.0.0.1:1" in done.stderr
        assert "secret" not in done.stderr
        assert "Traceback" not in done.stderr


def test_a_deleted_tenant_ends_its_consumer(own_service: Service, places: Broker) -> None:
    if not places.events.startswith("nats"):
        pytest.skip("the same whichever broker it is")
    tenant, _ = own_service.new_tenant()
    consumer = start(own_service, tenant, places)
    time.sleep(4)
    own_service.cli("tenant", "delete", tenant, "--yes")
    _, err = consumer.communicate(timeout=30)
    assert consumer.returncode == 1
    assert "is deleted" in err
    rows = ask_store(
        own_service.data, own_service.env, f"SELECT COUNT(*) FROM stream_consumer WHERE tenant = '{tenant}'"
    )
    assert rows[0][0] == 0
