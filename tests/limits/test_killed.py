"""Throttle and quota of a process that is killed: what was answered is counted, once."""

import http.client
import signal
import threading
import time
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.live import Service
from vettance.limits.quota import Quota
from vettance.limits.quota_journal import QuotaJournal

THROTTLE, QUOTA = 100_000, 1_000_000


class Counted(NamedTuple):
    """How many requests were sent and answered."""

    sent: int
    answered: int


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_kill_at_any_moment_neither_forgets_nor_doubles_an_answered_request(tmp_path: Path) -> None:
    service = Service(tmp_path)
    service.tenant_id, service.api_key = service.new_tenant("First", throttle=THROTTLE, quota=QUOTA)
    service.start()
    sent = answered = 0
    begun = time.monotonic()
    hour = time.time() // 3_600
    for kill in range(4):
        more = ask_until_killed(service, after_s=0.15 + 0.07 * kill)
        sent, answered = sent + more.sent, answered + more.answered
        service.start()
        answer = service.get("/api/v1/lists")
        sent, answered = sent + 1, answered + 1
        if time.monotonic() - begun < 55:
            used = THROTTLE - int(answer.headers["x-ratelimit-remaining"])
            assert answered <= used <= sent, f"throttle, kill {kill}"
        if time.time() // 3_600 == hour:
            used = QUOTA - int(answer.headers["x-quota-remaining"])
            assert answered <= used <= sent, f"quota, kill {kill}"
    service.stop()


def ask_until_killed(service: Service, after_s: float) -> Counted:
    """Ask on one connection, one request after the other, until the process is killed at whatever step."""
    assert service.process is not None
    killer = threading.Timer(after_s, service.process.send_signal, (signal.SIGKILL,))
    killer.start()
    line = http.client.HTTPConnection(service.base_url.removeprefix("http://"), timeout=10)
    sent = answered = 0
    try:
        while True:
            sent += 1
            line.request("GET", "/api/v1/lists", headers={"x-api-key": service.api_key})
            answer = line.getresponse()
            assert answer.status == 200
            answer.read()
            answered += 1
    except (OSError, http.client.HTTPException):
        pass
    line.close()
    killer.join()
    service.process.wait(10)
    assert service.process.stderr is not None
    service._reader.join(10)
    service.process.stderr.close()
    return Counted(sent, answered)


def test_a_quota_goes_on_where_its_journal_ended(tmp_path: Path) -> None:
    now_s = 1_700_000_000
    quota = Quota(QuotaJournal(tmp_path / "used"))
    for _ in range(3):
        quota.admit("ten_a", 10, now_s)
    reset_s = quota.admit("ten_b", 10, now_s).reset_s
    quota.refund("ten_b", reset_s)
    again = Quota(QuotaJournal(tmp_path / "used"))
    assert again.look("ten_a", 10, now_s).remaining == 7
    assert again.admit("ten_b", 10, now_s).remaining == 9
    assert again.admit("ten_c", 10, now_s).remaining == 9
    assert again.look("ten_a", 10, now_s + 3_600).remaining == 10, "the next hour is full again"


@pytest.mark.parametrize(("saved", "left"), [(2, 7), (5, 5)])
def test_of_the_store_and_the_journal_the_larger_count_is_taken_up(
    tmp_path: Path, saved: int, left: int
) -> None:
    now_s = 1_700_000_000
    quota = Quota(QuotaJournal(tmp_path / "used"))
    for _ in range(3):
        quota.admit("ten_a", 10, now_s)
    again = Quota(QuotaJournal(tmp_path / "used"))
    again.restore(now_s // 3_600, {"ten_a": saved})
    assert again.look("ten_a", 10, now_s).remaining == left


def test_tenants_beyond_the_room_of_the_journal_are_counted_in_memory(tmp_path: Path) -> None:
    now_s = 1_700_000_000
    quota = Quota(QuotaJournal(tmp_path / "used", tenants=1))
    for tenant in ("ten_a", "ten_b"):
        assert quota.admit(tenant, 10, now_s).remaining == 9
        assert quota.admit(tenant, 10, now_s).remaining == 8
    again = Quota(QuotaJournal(tmp_path / "used", tenants=1))
    assert again.look("ten_a", 10, now_s).remaining == 8
    assert again.look("ten_b", 10, now_s).remaining == 10
