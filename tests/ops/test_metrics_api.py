"""`GET /metrics`: on an address of its own, and it tells what happened."""

import json
import os
import signal
import socket
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.live import Caller, Service, searchers_of, started
from tests.redis_link.redis_server import PrivateRedis
from tests.telemetry.exposed import figures, read_exposition
from tests.webhooks.receivers import receiving
from vettance.ops.gauges import GAUGES
from vettance.telemetry.meter_table import METERS

LOGIN = {"eventName": "user.login", "eventCategory": "AUTHENTICATION", "customer": {"externalId": "c-1"}}


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    # A machine of many processors would start more than one process that searches.
    set_to = {"VETTANCE_METRICS": "127.0.0.1:0", "VETTANCE_UNSAFE_WEBHOOKS": "1", "VETTANCE_SEARCHERS": "1"}
    running = started(tmp_path_factory.mktemp("measured"), **set_to)
    yield running
    assert running.stop() == 0


def place(service: Service) -> tuple[str, int]:
    for line in service.log:
        if '"metrics_listen"' in line:
            told = json.loads(line)
            return told["host"], told["port"]
    raise AssertionError("nobody said where the metrics are")


def scrape(service: Service) -> dict[str, float]:
    host, port = place(service)
    with urllib.request.urlopen(f"http://{host}:{port}/metrics", timeout=20) as answer:
        assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
        text = answer.read()
    read_exposition(text)
    return figures(text)


def test_decisions_and_answers_are_counted(measured: Service) -> None:
    before = scrape(measured)
    for _ in range(3):
        assert measured.post("/api/v1/decisions/evaluate", LOGIN).status == 200
    assert measured.post("/api/v1/events", LOGIN).status == 201
    assert measured.post("/api/v1/events", {}).status == 400
    after = scrape(measured)

    def grown(name: str) -> float:
        return after[name] - before[name]

    assert grown('vettance_decisions_total{outcome="ALLOW"}') == 4
    assert grown('vettance_decision_seconds_count{source="evaluate"}') == 3
    assert grown('vettance_decision_seconds_count{source="events"}') == 1
    assert grown('vettance_http_answers_total{status="200"}') == 3
    assert grown('vettance_http_answers_total{status="400"}') == 1
    assert grown("vettance_store_commit_seconds_count") >= 1
    assert grown("vettance_store_commit_writes_sum") >= 4
    assert after["vettance_store_up"] == 1
    assert after['vettance_process_count{process="web"}'] == 1
    assert after['vettance_process_resident_bytes{process="writer"}'] > 1_000_000
    assert after["vettance_disk_free_bytes"] > 0


def test_every_metric_of_the_tables_is_there_and_no_other(measured: Service) -> None:
    names = {meter.name for meter in METERS} | {gauge.name for gauge in GAUGES.values()}
    host, port = place(measured)
    with urllib.request.urlopen(f"http://{host}:{port}/metrics", timeout=20) as answer:
        kinds = read_exposition(answer.read())
    # A list that was never imported has no age.
    without = {name for name in names if name.startswith("vettance_watchlist")} | {"vettance_redis_up"}
    # Nor has a model that nobody has.
    without |= {f"vettance_model_{name}" for name in ("age_seconds", "average_precision", "drift")}
    # Nor is there a replica.
    without |= {"vettance_replica_used", "vettance_replica_lag_seconds"}
    assert names - set(kinds) <= without
    assert set(kinds) <= names


def test_imported_events_that_wait_are_counted(measured: Service) -> None:
    begun_ms = int(time.time() - 3600) * 1000
    measured.rows(
        "INSERT INTO import_run (tenant, id, kind, state, begun_at_ms) "
        f"VALUES ('{measured.tenant_id}', 'imp_1', 'fraud', 'reading', {begun_ms})"
    )
    measured.rows(
        "INSERT INTO job (id, tenant, received_at_ms, request_id, quiet, sent, state, import_id, "
        f"occurred_at_ms) VALUES ('job_1', '{measured.tenant_id}', 1, 'r', 1, '{{}}', 'queued', 'imp_1', 1)"
    )
    found = scrape(measured)
    measured.rows("DELETE FROM job WHERE import_id = 'imp_1'")
    measured.rows("DELETE FROM import_run")
    assert found['vettance_import_events_waiting{state="reading"}'] == 1
    assert found['vettance_import_events_waiting{state="waiting"}'] == 0
    assert 3600 <= found['vettance_import_oldest_seconds{state="reading"}'] < 3900


async def test_attempts_of_the_worker_process_are_counted(measured: Service) -> None:
    async with receiving(lambda number, _r: 500 if number == 0 else 200) as receiver:
        made = measured.post(
            "/api/v1/webhooks/subscriptions", {"url": receiver.url, "eventTypes": ["EVENT_RISK_EVALUATED"]}
        )
        assert made.status == 201
        assert measured.post("/api/v1/decisions/evaluate", LOGIN).status == 200
        await receiver.wait_for(2)
        measured.wait_for(
            lambda: scrape(measured).get('vettance_webhook_attempts_total{result="delivered"}') == 1
        )
    found = scrape(measured)
    assert found['vettance_webhook_attempts_total{result="status"}'] == 1
    assert found['vettance_process_count{process="webhooks"}'] == 1


def test_processes_that_search_are_weighed_and_their_work_is_counted(measured: Service) -> None:
    measured.cli("watchlist", "import", "--source", "sample")
    officer = Caller(measured, *measured.new_tenant("Officers"))
    measured.cli("tenant", "set", officer.id, "--aml", "on")

    def screened() -> bool:
        subject = {"inputName": "Rosalind Achterberg", "externalId": "c-1"}
        return officer.post("/api/v1/aml/screen", subject).status == 200

    def weighed() -> bool:
        # What a process tells of itself is up to a second old, and one that has just begun weighs little.
        found = scrape(measured)
        return (
            found.get('vettance_process_count{process="search"}') == 1
            and found['vettance_process_resident_bytes{process="search"}'] > 10_000_000
            and found['vettance_process_cpu_seconds_total{process="search"}'] > 0
            and found["vettance_searches_in_flight"] == 0
        )

    measured.wait_for(screened)
    measured.wait_for(weighed, 20)
    before = scrape(measured)
    assert before['vettance_search_seconds_count{result="answered"}'] >= 1
    for pid in searchers_of(measured):
        os.kill(pid, signal.SIGKILL)
    measured.wait_for(lambda: scrape(measured)["vettance_search_restarts_total"] == 1)
    assert screened()
    after = scrape(measured)
    name = 'vettance_search_seconds_count{result="answered"}'
    assert after[name] == before[name] + 1


def test_an_age_of_each_list_is_told(measured: Service, tmp_path: Path) -> None:
    file = tmp_path / "own.csv"
    file.write_text("name\nExample Person\n")
    measured.cli("watchlist", "import", "--source", "csv", str(file))
    found = scrape(measured)
    ages = {name: value for name, value in found.items() if name.startswith("vettance_watchlist_age")}
    assert 0 <= ages['vettance_watchlist_age_seconds{source="csv"}'] < 60
    assert found['vettance_watchlist_entities{source="csv"}'] == 1
    assert found['vettance_watchlist_stale{source="csv"}'] == 0


def test_tenants_do_not_reach_it(measured: Service) -> None:
    assert measured.get("/metrics").status == 404
    assert measured.get("/metrics", key=None).status == 404


@pytest.mark.parametrize(
    ("request_line", "status"),
    [
        (b"GET / HTTP/1.1", b"404"),
        (b"POST /metrics HTTP/1.1", b"405"),
        (b"HEAD /metrics HTTP/1.1", b"200"),
        (b"GET /metrics?x=1 HTTP/1.0", b"200"),
        (b"GET /" + b"x" * 20_000 + b" HTTP/1.1", b"431"),
        (b"\x00\xff", b"404"),
    ],
)
def test_it_answers_whatever_it_is_sent(measured: Service, request_line: bytes, status: bytes) -> None:
    with socket.create_connection(place(measured), 10) as connection:
        connection.sendall(request_line + b"\r\nHost: x\r\n\r\n")
        answer = b""
        while chunk := connection.recv(65536):
            answer += chunk
    assert answer.startswith(b"HTTP/1.1 " + status)
    if request_line.startswith(b"HEAD"):
        assert answer.endswith(b"\r\n\r\n")


def test_without_the_setting_there_is_no_such_address(service: Service) -> None:
    assert not any('"metrics_listen"' in line for line in service.log)


def test_whether_redis_answers_is_told(tmp_path: Path) -> None:
    redis = PrivateRedis()
    redis.start()
    service = started(tmp_path, VETTANCE_REDIS_URL=redis.url, VETTANCE_METRICS="127.0.0.1:0")
    try:
        assert scrape(service)["vettance_redis_up"] == 1
        redis.stop()
        assert scrape(service)["vettance_redis_up"] == 0
        assert scrape(service)["vettance_store_up"] == 1
    finally:
        service.stop()
        redis.close()
