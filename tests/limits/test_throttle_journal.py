"""What the throttle knows after a restart, held against one that was never stopped."""

import errno
import signal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.live import Service
from vettance.limits import throttle_journal as trails
from vettance.limits.throttle import THROTTLE_WINDOW_S, Throttle
from vettance.limits.throttle_journal import ThrottleJournal

_STEPS_S = st.integers(0, 140).map(lambda quarters: quarters / 4) | st.just(0.0) | st.just(60.0)
_ASKED = st.tuples(
    st.sampled_from("abc"), _STEPS_S, st.integers(0, 5), st.sampled_from(["", "refund", "restart"])
)


def _restarted(path, now_s: float, records: int = 64) -> Throttle:
    trail = ThrottleJournal(path, records)
    throttle = Throttle(trail.note)
    throttle.restore(trail.restore(now_s - THROTTLE_WINDOW_S, now_s), now_s)
    return throttle


@given(st.lists(_ASKED, max_size=120))
def test_a_throttle_that_was_killed_says_what_one_that_lived_on_says(tmp_path_factory, asked):
    path = tmp_path_factory.mktemp("trail") / "admitted"
    lived, now_s = Throttle(), 1000.0
    killed = _restarted(path, now_s)
    for caller, step_s, limit, what in asked:
        now_s += step_s
        if what == "restart":
            killed = _restarted(path, now_s)
        assert killed.look(caller, limit, now_s) == lived.look(caller, limit, now_s)
        verdict = lived.admit(caller, limit, now_s)
        assert killed.admit(caller, limit, now_s) == verdict
        if what == "refund" and verdict.admitted:
            killed.refund(caller)
            lived.refund(caller)


def test_a_ring_that_is_full_forgets_the_oldest(tmp_path):
    throttle = _restarted(tmp_path / "admitted", 0.0, records=4)
    for second in range(1, 7):
        throttle.admit("key", 100, float(second))
    assert _restarted(tmp_path / "admitted", 6.5, records=4).look("key", 100, 6.5).remaining == 96


def test_a_machine_that_was_started_anew_forgets_the_minute_before(tmp_path):
    _restarted(tmp_path / "admitted", 5000.0).admit("key", 1, 5000.0)
    assert _restarted(tmp_path / "admitted", 10.0).admit("key", 1, 10.0).admitted
    assert not _restarted(tmp_path / "admitted", 11.0).admit("key", 1, 11.0).admitted


def test_a_file_of_another_size_is_made_anew(tmp_path):
    (tmp_path / "admitted").write_bytes(b"something else")
    assert _restarted(tmp_path / "admitted", 5.0).admit("key", 1, 5.0).admitted


def test_a_full_disk_is_told_of_before_the_file_is_mapped(tmp_path, monkeypatch):
    monkeypatch.setattr(trails.os, "pwrite", lambda file, data, at: len(data) // 2)
    with pytest.raises(OSError, match="No space left") as told:
        ThrottleJournal(tmp_path / "admitted")
    assert told.value.errno == errno.ENOSPC


def test_a_killed_service_goes_on_counting_the_same_minute(own_service: Service):
    _, key = own_service.new_tenant("Killed", throttle=9)
    while own_service.get("/api/v1/lists", key=key).status == 200:
        pass
    for number in (signal.SIGKILL, signal.SIGTERM):
        own_service.stop(number)
        own_service.start()
        refused = own_service.get("/api/v1/lists", key=key)
        assert refused.status == 429
        assert refused.headers["x-ratelimit-remaining"] == "0"
