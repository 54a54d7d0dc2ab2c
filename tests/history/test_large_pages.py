"""Pages of large events: complete as ever, and never in memory as a whole."""

import http.client
import json
import socket
import time
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.live import ENGINE, Caller, Service

EVENTS = "/api/v1/events"
LARGE = 1_200_000  # One alone is more than a page may take.
COUNT = 60


def rss_mb(service: Service) -> float:
    assert service.process is not None
    return int(Path(f"/proc/{service.process.pid}/statm").read_text().split()[1]) * 4096 / 1e6


def swell(service: Service, tenant_id: str) -> None:
    """Make every event of a tenant as large as a former version took them."""
    if ENGINE == "postgres":
        text = f"convert_to('{{\"eventName\":\"x\",\"blob\":\"' || repeat('0', {LARGE}) || '\"}}', 'UTF8')"
    else:
        text = f'CAST(\'{{"eventName":"x","blob":"\' || hex(zeroblob({LARGE // 2})) || \'"}}\' AS BLOB)'
    change = f"UPDATE event SET sent = {text} WHERE tenant = '{tenant_id}'"
    service.rows(change + (" RETURNING 1" if ENGINE == "postgres" else ""))


@pytest.fixture
def large(own_service: Service) -> Caller:
    tenant = Caller(own_service, own_service.tenant_id, own_service.api_key)
    for number in range(COUNT):
        answer = tenant.post(EVENTS, {"eventName": "x", "customer": {"externalId": f"c{number}"}})
        assert answer.status == 201, answer.body
    swell(own_service, tenant.id)
    return tenant


def test_a_page_of_large_events_is_complete(large: Caller) -> None:
    small = large.get(f"{EVENTS}?limit=1").json
    page = large.get(f"{EVENTS}?limit=50")
    assert page.status == 200
    assert page.headers["content-type"] == "application/json"
    assert "content-length" not in page.headers
    assert {name: type(value) for name, value in page.json.items()} == {
        name: type(value) for name, value in small.items()
    }
    assert [len(one["blob"]) for one in page.json["data"]] == [LARGE] * 50
    assert page.json["total"] == COUNT
    assert page.json["hasMore"]
    rest = large.get(f"{EVENTS}?limit=50&cursor={page.json['nextCursor']}").json
    assert len({one["id"] for one in page.json["data"] + rest["data"]}) == COUNT
    alone = large.get(f"{EVENTS}/{page.json['data'][7]['id']}").json
    assert alone == page.json["data"][7]
    backwards = large.get(f"{EVENTS}?limit=50&sortOrder=asc").json
    assert [one["id"] for one in backwards["data"][-40:]] == [one["id"] for one in page.json["data"][:9:-1]]


def test_pages_of_large_events_take_little_memory(large: Caller) -> None:
    service = large.service
    large.get(f"{EVENTS}?limit=50")
    before = rss_mb(service)
    address = urlsplit(service.base_url)
    readers = []
    for _ in range(8):
        # They ask and do not read.
        line = socket.create_connection((address.hostname, address.port))
        request = f"GET {EVENTS}?limit=50 HTTP/1.1\r\nhost: x\r\nx-api-key: {large.key}\r\n\r\n"
        line.sendall(request.encode())
        readers.append(line)
    most = before
    for _ in range(20):
        time.sleep(0.05)
        most = max(most, rss_mb(service))
    for line in readers:
        line.close()
    # Each holds an event a few times over; eight whole pages would be 480 MB, twice.
    assert most - before < 200
    assert large.get(f"{EVENTS}?limit=2").status == 200


def test_so_many_large_pages_of_one_tenant_are_left_unread(large: Caller) -> None:
    address = urlsplit(large.service.base_url)
    readers = []
    request = f"GET {EVENTS}?limit=50 HTTP/1.1\r\nhost: x\r\nx-api-key: {large.key}\r\n\r\n"
    for _ in range(32):
        line = socket.create_connection((address.hostname, address.port))
        line.sendall(request.encode())
        assert line.recv(1).startswith(b"H")
        readers.append(line)
    refused = large.get(f"{EVENTS}?limit=50")
    assert refused.status == 503
    assert refused.json["error"]["details"]["retryAfter"] >= 1
    assert large.get("/api/v1/decisions?limit=1").status == 200
    for line in readers:
        line.close()
    large.service.wait_for(lambda: large.get(f"{EVENTS}?limit=50").status == 200)


def test_head_and_old_clients_are_answered(large: Caller) -> None:
    service = large.service
    head = service.call("HEAD", f"{EVENTS}?limit=50", key=large.key)
    assert (head.status, head.body) == (200, b"")
    address = urlsplit(service.base_url)
    assert address.hostname is not None
    old = http.client.HTTPConnection(address.hostname, address.port)
    old._http_vsn, old._http_vsn_str = 10, "HTTP/1.0"  # type: ignore[attr-defined]
    old.request("GET", f"{EVENTS}?limit=50", headers={"x-api-key": large.key})
    answer = old.getresponse()
    assert answer.getheader("transfer-encoding") is None
    assert len(json.loads(answer.read())["data"]) == 50
    old.close()


def test_decisions_are_listed_without_reading_the_events(large: Caller) -> None:
    page = large.get("/api/v1/decisions?limit=50")
    assert len(page.json["data"]) == 50
    assert len(page.body) < 100_000


def test_a_start_replays_large_events_a_few_at_a_time(large: Caller) -> None:
    service = large.service
    for file in (service.data / "memory").rglob("*"):
        if file.is_file():
            file.unlink()
    assert service.stop(9) == -9
    service.start()
    assert large.get(f"{EVENTS}?limit=1").status == 200
