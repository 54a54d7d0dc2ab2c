"""The throttle and the quota, held against naive oracles that remember everything."""

from hypothesis import given, settings
from hypothesis import strategies as st

from vettance.limits.quota import QUOTA_WINDOW_S, Quota
from vettance.limits.throttle import THROTTLE_WINDOW_S, Throttle

# Steps in quarters of a second are exact in binary, so that a window's edge is hit often and exactly.
_STEPS = st.integers(0, 140).map(lambda quarters: quarters / 4) | st.just(0.0) | st.just(60.0)
_CALLERS = st.sampled_from(["a", "b", "c"])


@given(st.lists(st.tuples(_CALLERS, _STEPS, st.integers(0, 5)), max_size=120))
@settings(max_examples=300)
def test_the_throttle_admits_exactly_what_a_scan_of_the_last_minute_admits(asked):
    throttle, now_s = Throttle(), 1000.0
    admitted: dict[str, list[float]] = {}
    for caller, step_s, limit in asked:
        now_s += step_s
        log = admitted.setdefault(caller, [])
        within = [moment for moment in log if moment > now_s - THROTTLE_WINDOW_S]
        glance = throttle.look(caller, limit, now_s)
        verdict = throttle.admit(caller, limit, now_s)
        assert glance.admitted == verdict.admitted == (len(within) < limit)
        assert verdict.limit == limit
        if verdict.admitted:
            log.append(now_s)
            within.append(now_s)
        assert verdict.remaining == max(0, limit - len(within))
        if verdict.admitted:
            assert verdict.retry_after_s == 0
            assert now_s + verdict.reset_s == within[0] + THROTTLE_WINDOW_S
        elif limit:
            retry_s = now_s + verdict.retry_after_s
            assert sum(moment > retry_s - THROTTLE_WINDOW_S for moment in log) < limit
            assert sum(moment >= retry_s - THROTTLE_WINDOW_S for moment in log) >= limit
    for log in admitted.values():
        for start in log:
            assert sum(start <= moment < start + THROTTLE_WINDOW_S for moment in log) <= 5


@given(st.lists(st.floats(0, 0.5), min_size=700, max_size=900))
@settings(max_examples=20)
def test_no_window_of_a_minute_ever_holds_a_301st_request(steps):
    throttle, now_s, admitted = Throttle(), 0.0, []
    for step_s in steps:
        now_s += step_s
        if throttle.admit("key", 300, now_s).admitted:
            admitted.append(now_s)
    for start, moment in enumerate(admitted):
        assert start + 300 >= len(admitted) or admitted[start + 300] >= moment + THROTTLE_WINDOW_S


def test_waiting_as_long_as_the_throttle_says_is_always_enough():
    throttle = Throttle()
    for moment in range(5):
        assert throttle.admit("key", 5, moment * 0.1).admitted
    refused = throttle.admit("key", 5, 1.0)
    assert not refused.admitted
    assert throttle.admit("key", 5, 1.0 + refused.retry_after_s).admitted


def test_a_refunded_request_leaves_no_trace_in_the_throttle():
    throttle = Throttle()
    throttle.admit("key", 2, 0.0)
    before = throttle.look("key", 2, 1.0)
    throttle.admit("key", 2, 1.0)
    throttle.refund("key")
    assert throttle.look("key", 2, 1.0) == before
    throttle.refund("nobody")


def test_idle_callers_are_forgotten_and_a_steady_one_is_not():
    throttle = Throttle()
    for second in range(600):
        throttle.admit("steady", 1000, float(second))
        for caller in range(10):
            throttle.admit(f"once-{second}-{caller}", 1, float(second))
    assert len(throttle) <= 10 * 120 + 1
    assert throttle.look("steady", 1000, 599.0).remaining == 1000 - 60


def test_the_log_of_a_steady_caller_does_not_grow():
    throttle = Throttle()
    for tenth in range(100_000):
        throttle.admit("steady", 300, tenth / 10)
    log = throttle._active["steady"]
    assert len(log.moments) <= 2 * 300 + 64


def test_a_clock_that_runs_backwards_gives_no_slot_back():
    throttle = Throttle()
    assert throttle.admit("key", 1, 100.0).admitted
    assert not throttle.admit("key", 1, 20.0).admitted


@given(st.lists(st.tuples(_CALLERS, st.integers(0, 2000), st.integers(0, 4)), max_size=60))
def test_the_quota_counts_each_hour_of_the_clock_apart(asked):
    quota, now_s = Quota(), 1_700_000_000
    counted: dict[tuple[str, int], int] = {}
    for tenant, step_s, limit in asked:
        now_s += step_s
        hour = now_s // QUOTA_WINDOW_S
        used = counted.get((tenant, hour), 0)
        verdict = quota.admit(tenant, limit, now_s)
        assert verdict.admitted == (used < limit)
        counted[tenant, hour] = used + verdict.admitted
        assert verdict.remaining == max(0, limit - counted[tenant, hour])
        assert verdict.reset_s == (hour + 1) * QUOTA_WINDOW_S
        assert verdict.retry_after_s == (0 if verdict.admitted else verdict.reset_s - now_s)


def test_a_restart_does_not_give_the_hour_back():
    quota = Quota()
    now_s = 1_700_000_000.5
    for _ in range(7):
        quota.admit("tenant", 10, now_s)
    restarted = Quota()
    restarted.restore(*quota.used())
    assert restarted.look("tenant", 10, now_s).remaining == 3
    late = Quota()
    late.look("tenant", 10, now_s + QUOTA_WINDOW_S)
    late.restore(*quota.used())
    assert late.look("tenant", 10, now_s + QUOTA_WINDOW_S).remaining == 10


def test_a_refunded_request_leaves_no_trace_in_the_quota():
    quota = Quota()
    quota.admit("tenant", 3, 5.0)
    quota.refund("tenant", QUOTA_WINDOW_S)
    quota.refund("other", QUOTA_WINDOW_S)
    assert quota.look("tenant", 3, 5.0).remaining == 3


def test_what_was_charged_in_an_hour_that_is_over_is_not_given_back_to_the_next():
    quota = Quota()
    charged = quota.admit("tenant", 3, 5.0)
    quota.admit("tenant", 3, QUOTA_WINDOW_S + 5.0)
    quota.refund("tenant", charged.reset_s)
    assert quota.look("tenant", 3, QUOTA_WINDOW_S + 5.0).remaining == 2


def test_a_clock_set_back_across_the_hour_gives_nothing_back():
    quota = Quota()
    quota.admit("tenant", 1, 2 * QUOTA_WINDOW_S + 1.0)
    assert not quota.admit("tenant", 1, 2 * QUOTA_WINDOW_S - 1.0).admitted
    assert quota.admit("tenant", 1, 3 * QUOTA_WINDOW_S + 1.0).admitted
