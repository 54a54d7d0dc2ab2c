"""Lanes share the worker fairly, keep their bounds, and lose nothing."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.lines_run import lines_run
from vettance.webhooks.subscription_queue import (
    FAILING_BURST,
    FAILING_PAUSE_MS,
    FAILING_PER_S,
    IDLE_MS_MAX,
    LIMIT_MAX,
    LIMIT_START,
    READY_MAX,
    SubscriptionQueue,
    SubscriptionQueues,
)

NOW = 1_000_000
TENANT = "ten_1"


def seqs(taken: list[tuple[SubscriptionQueue, int]]) -> list[int]:
    return [seq for _, seq in taken]


def test_a_lane_sends_as_many_at_once_as_its_limit_allows_and_goes_on_as_they_end() -> None:
    lanes = SubscriptionQueues()
    for seq in range(20):
        lanes.add(lanes.lane(TENANT, "a"), seq, NOW, NOW)
    taken = lanes.take(NOW)
    assert seqs(taken) == list(range(int(LIMIT_START)))
    assert lanes.take(NOW) == []
    lanes.done(*taken[0])
    lanes.done(*taken[0])
    assert seqs(lanes.take(NOW)) == [int(LIMIT_START)]


def test_the_lanes_of_a_tenant_take_turns() -> None:
    lanes = SubscriptionQueues(in_flight_max=12)
    for seq in range(100):
        lanes.add(lanes.lane(TENANT, "busy"), seq, NOW, NOW)
    lanes.add(lanes.lane(TENANT, "quiet"), 100, NOW, NOW)
    lanes.add(lanes.lane(TENANT, "calm"), 101, NOW, NOW)
    assert seqs(lanes.take(NOW)) == [0, 100, 101, 1, 2, 3]


def test_a_retry_waits_for_its_moment_and_then_goes_before_what_is_fresh() -> None:
    lanes = SubscriptionQueues()
    lanes.add(lanes.lane(TENANT, "a"), 1, NOW + 50, NOW)
    lanes.add(lanes.lane(TENANT, "a"), 2, NOW, NOW)
    assert seqs(lanes.take(NOW + 49)) == [2]
    assert lanes.next_due_at_ms() == NOW + 50
    lanes.add(lanes.lane(TENANT, "a"), 3, NOW, NOW + 49)
    assert seqs(lanes.take(NOW + 50)) == [1, 3]
    assert lanes.next_due_at_ms() is None


def test_receivers_that_hang_leave_half_of_all_slots_to_the_others() -> None:
    lanes = SubscriptionQueues(in_flight_max=8)
    for number in range(20):
        lane = lanes.lane(f"ten_{number}", f"hanging-{number}")
        for _ in range(5):
            lane.learn(10_000, failed=True, unreached=True)
        lanes.add(lane, number, NOW, NOW)
    assert len(lanes.take(NOW)) == 4
    lanes.add(lanes.lane(TENANT, "healthy"), 100, NOW, NOW)
    assert seqs(lanes.take(NOW)) == [100]


def test_the_limit_grows_with_quick_answers_and_halves_with_slow_ones() -> None:
    lane = SubscriptionQueue(TENANT, "a")
    for _ in range(5000):
        lane.learn(5, failed=False, unreached=False)
    assert lane.limit == LIMIT_MAX
    lane.learn(3000, failed=False, unreached=False)
    assert lane.limit == LIMIT_MAX / 2
    for _ in range(10):
        lane.learn(10_000, failed=True, unreached=True)
    assert lane.limit == 1
    assert lane.slow


def test_what_does_not_fit_is_left_to_the_store_and_asked_for_later() -> None:
    lanes = SubscriptionQueues(in_flight_max=10 * READY_MAX)
    lane = lanes.lane(TENANT, "a")
    lane.limit = READY_MAX
    for seq in range(READY_MAX + 1):
        lanes.add(lanes.lane(TENANT, "a"), seq, NOW, NOW)
    assert lane.more
    assert not lanes.hungry()
    lanes.take(NOW)
    assert lanes.hungry() == [lane]


@pytest.mark.parametrize("later_ms", [IDLE_MS_MAX, -1], ids=["after an hour", "when the clock was set back"])
def test_a_lane_is_forgotten_once_it_was_empty_for_long(later_ms: int) -> None:
    lanes = SubscriptionQueues()
    lane = lanes.lane(TENANT, "a")
    lanes.add(lane, 1, NOW, NOW)
    lanes.forget_idle(NOW + later_ms)
    assert lanes.lane(TENANT, "a") is lane, "something waits in it"
    assert lanes.take(NOW) == [(lane, 1)]
    lanes.forget_idle(NOW + later_ms)
    assert lanes.lane(TENANT, "a") is lane, "something of it is under way"
    lanes.done(lane, 1)
    lanes.note_more(lane, more=True)
    lanes.forget_idle(NOW + later_ms)
    assert lanes.lane(TENANT, "a") is lane, "the store may have more of it"
    lanes.note_more(lane, more=False)
    lanes.forget_idle(NOW + IDLE_MS_MAX - 1)
    assert lanes.lane(TENANT, "a") is lane, "it was used not long ago"
    lanes.forget_idle(NOW + later_ms)
    assert lanes.lane(TENANT, "a") is not lane


@given(
    st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 30), st.integers(-50, 200)), max_size=60),
    st.lists(st.tuples(st.integers(0, 60), st.booleans()), max_size=60),
)
def test_each_delivery_goes_once_at_a_time_never_early_and_none_is_lost(
    added: list[tuple[str, int, int]], steps: list[tuple[int, bool]]
) -> None:
    lanes, now_ms = SubscriptionQueues(in_flight_max=5), NOW
    due: dict[tuple[str, int], int] = {}
    for name, seq, offset in added:
        if (name, seq) not in due:
            due[name, seq] = NOW + offset
        lanes.add(lanes.lane(TENANT, name), seq, NOW + offset, NOW)
    under_way: list[tuple[SubscriptionQueue, int]] = []
    gone: set[tuple[str, int]] = set()
    for later_ms, end_all in [*steps, *[(300, True)] * (len(due) + 1)]:
        now_ms += later_ms
        for lane, seq in lanes.take(now_ms):
            assert due[lane.subscription, seq] <= now_ms
            assert (lane.subscription, seq) not in gone
            gone.add((lane.subscription, seq))
            under_way.append((lane, seq))
        assert lanes.in_flight == len(under_way) <= 5
        ended = under_way if end_all else under_way[:1]
        for lane, seq in ended:
            lanes.done(lane, seq)
        under_way = [] if end_all else under_way[1:]
    assert gone == set(due)


def test_a_retry_that_a_wrong_clock_put_a_day_ahead_goes_once_the_clock_is_right() -> None:
    lanes = SubscriptionQueues()
    lanes.add(lanes.lane(TENANT, "a"), 1, NOW + 86_401_000, NOW + 86_400_000)
    lanes.add(lanes.lane(TENANT, "a"), 2, NOW + 86_401_000, NOW)
    assert sorted(seqs(lanes.take(NOW))) == [1, 2]


def test_a_lane_that_is_held_sends_nothing_until_its_moment_and_holds_up_nobody_else() -> None:
    lanes = SubscriptionQueues()
    lanes.add(lanes.lane(TENANT, "held"), 1, NOW, NOW)
    lanes.add(lanes.lane(TENANT, "held"), 2, NOW + 50, NOW)
    lanes.add(lanes.lane(TENANT, "other"), 3, NOW, NOW)
    lanes.lane(TENANT, "held").held_until_ms = NOW + 100
    assert seqs(lanes.take(NOW)) == [3]
    assert lanes.take(NOW + 99) == []
    assert sorted(seqs(lanes.take(NOW + 100))) == [1, 2]


def test_tenants_take_turns_however_many_subscriptions_one_has() -> None:
    lanes = SubscriptionQueues(in_flight_max=12)
    for seq in range(50):
        lanes.add(lanes.lane("many", f"many-{seq}"), seq, NOW, NOW)
    for seq in range(100, 103):
        lanes.add(lanes.lane("few", "few"), seq, NOW, NOW)
    assert seqs(lanes.take(NOW)) == [0, 100, 1, 101, 2, 102, 3, 4]


def test_a_tenant_whose_receivers_all_hang_leaves_room_for_whoever_comes_next() -> None:
    lanes = SubscriptionQueues(in_flight_max=16)
    for seq in range(100):
        lanes.add(lanes.lane("hanging", f"hanging-{seq}"), seq, NOW, NOW)
    assert len(lanes.take(NOW)) == 8
    for number, expected in enumerate((4, 2, 1, 1)):
        for seq in range(10):
            lanes.add(lanes.lane(f"next-{number}", f"next-{number}"), 1000 + 10 * number + seq, NOW, NOW)
        assert len(lanes.take(NOW)) == expected


def test_one_tenants_slow_receivers_leave_slots_to_the_slow_ones_of_others() -> None:
    lanes = SubscriptionQueues(in_flight_max=16)

    def wait_for(tenant: str, number: int) -> None:
        lane = lanes.lane(tenant, f"{tenant}-{number}")
        for _ in range(5):
            lane.learn(10_000, failed=True, unreached=True)
        lanes.add(lane, len(tenant) * 100 + number, NOW, NOW)

    for number in range(20):
        wait_for("hanging", number)
    assert len(lanes.take(NOW)) == 4
    wait_for("other", 0)
    assert len(lanes.take(NOW)) == 1


def test_what_goes_in_one_commit_is_shared_by_turns_and_the_rest_goes_next():
    lanes = SubscriptionQueues()
    for number in range(50):
        for at in range(4):
            lanes.add(lanes.lane("loud", f"loud-{number}"), 1000 + 10 * number + at, NOW, NOW)
    lanes.add(lanes.lane("quiet", "quiet"), 1, NOW, NOW)
    lanes.add(lanes.lane("quiet", "quiet"), 2, NOW, NOW)
    first = seqs(lanes.take(NOW, 10))
    assert len(first) == 10
    assert {1, 2} <= set(first)
    second = seqs(lanes.take(NOW, 10))
    assert len(second) == 10
    assert not set(first) & set(second)


def test_what_goes_to_receivers_that_fail_is_bounded_by_tenant_and_keeps_no_other_waiting():
    lanes = SubscriptionQueues(in_flight_max=8)

    def attempts(tenant: str, now_ms: int, most: int = 10_000) -> int:
        """Try what a tenant's receivers fail for as often as may be; each attempt fails at once."""
        count = 0
        while count < most and (taken := [one for one in lanes.take(now_ms) if one[0].tenant == tenant]):
            for lane, seq in taken:
                count += 1
                lane.learn(1, failed=True, unreached=False)
                lanes.done(lane, seq)
                lanes.add(lane, seq + 1_000_000 * count, now_ms, now_ms)
        return count

    for number in range(100):
        lane = lanes.lane("loud", f"loud-{number}")
        lane.learn(1, failed=True, unreached=False)
        lanes.add(lane, number, NOW, NOW)
    assert attempts("loud", NOW) == FAILING_BURST
    assert attempts("loud", NOW + 1000) == FAILING_PER_S
    # A receiver of the same tenant that answers, and one of another tenant that fails, wait for nothing.
    lanes.add(lanes.lane("loud", "sound"), 500, NOW, NOW)
    assert seqs(lanes.take(NOW + 1000)) == [500]
    other = lanes.lane("quiet", "quiet")
    other.learn(1, failed=True, unreached=False)
    lanes.add(other, 501, NOW, NOW)
    assert seqs(lanes.take(NOW + 1000)) == [501]


def test_a_receiver_that_answers_again_has_its_usual_place():
    lanes = SubscriptionQueues()
    lane = lanes.lane(TENANT, "a")
    lane.learn(1, failed=True, unreached=False)
    lane.learn(1, failed=False, unreached=False)
    for seq in range(int(2 * FAILING_BURST)):
        lane.learn(1, failed=False, unreached=False)
        lanes.add(lane, seq, NOW, NOW)
        [(_, taken)] = lanes.take(NOW)
        assert taken == seq
        lanes.done(lane, seq)


def lanes_that_wait(count: int, why: str) -> SubscriptionQueues:
    """Lanes of one tenant, none of which can go: for the moment of a retry, for the end of what is under way,
    for room of receivers that fail, or because they are empty."""
    lanes = SubscriptionQueues(in_flight_max=10 * count)
    for number in range(count):
        lane = lanes.lane("many", f"many-{number}")
        if why == "failing":
            lane.learn(1, failed=True, unreached=False)
        if why == "limit":
            lane.limit = 1
            lanes.add(lane, count + number, NOW, NOW)
        lanes.add(lane, number, NOW + 10_000 if why == "retry" else NOW, NOW)
    if why != "retry":
        for lane, seq in lanes.take(NOW, 10 * count):
            if why in ("empty", "failing"):
                lanes.done(lane, seq)
            if why == "failing":
                lanes.add(lane, count + seq, NOW, NOW)
    lanes.take(NOW)
    return lanes


@pytest.mark.parametrize("why", ["retry", "limit", "failing", "empty"])
def test_a_round_costs_what_can_go_however_many_lanes_wait(why: str) -> None:
    def round_of(lanes: SubscriptionQueues) -> None:
        lanes.add(lanes.lane("few", "few"), 10_000_000, NOW, NOW)
        assert [seq for seq in seqs(lanes.take(NOW)) if seq >= 10_000_000] == [10_000_000]
        lanes.hungry()
        lanes.next_due_at_ms()

    few, many = lanes_that_wait(FAILING_COUNT, why), lanes_that_wait(4 * FAILING_COUNT, why)
    assert lines_run(lambda: round_of(many)) <= 1.2 * lines_run(lambda: round_of(few))


#: So many attempts use up what one tenant may have at receivers that fail.
FAILING_COUNT = int(FAILING_BURST)


def test_lanes_that_wait_for_many_moments_leave_no_more_behind_than_wait() -> None:
    lanes = SubscriptionQueues()
    lane = lanes.lane(TENANT, "a")
    lanes.add(lane, 0, NOW + 50_000, NOW)
    for seq in range(1, 2_000):
        lanes.add(lane, seq, NOW + seq + 1, NOW + seq)
        [(_, taken)] = lanes.take(NOW + seq + 1)
        lanes.done(lane, taken)
    assert len(lanes._wakes) <= 100
    assert seqs(lanes.take(NOW + 50_000)) == [0]


def test_what_the_store_has_more_of_is_asked_for_in_turns_by_tenant() -> None:
    lanes = SubscriptionQueues()
    for number in range(100):
        lanes.note_more(lanes.lane("many", f"many-{number}"), more=True)
    lanes.note_more(lanes.lane("few", "few"), more=True)
    first = lanes.hungry(10)
    assert [lane.tenant for lane in first].count("few") == 1
    asked = {lane.subscription for _ in range(11) for lane in lanes.hungry(10)} | {
        lane.subscription for lane in first
    }
    assert len(asked) == 101
    for number in range(100):
        lanes.note_more(lanes.lane("many", f"many-{number}"), more=False)
    assert [lane.subscription for lane in lanes.hungry(10)] == ["few"]


def test_a_clock_that_was_set_back_holds_no_lane_up() -> None:
    lanes = SubscriptionQueues()
    lanes.add(lanes.lane(TENANT, "a"), 1, NOW + 86_401_000, NOW + 86_400_000)
    assert lanes.take(NOW + 86_400_000) == []
    assert seqs(lanes.take(NOW)) == [1]
    lanes.add(lanes.lane(TENANT, "b"), 2, NOW + 50, NOW)
    assert lanes.take(NOW + 40) == []
    assert lanes.take(NOW + 30) == []
    assert seqs(lanes.take(NOW + 50)) == [2]


def test_a_hold_that_ends_early_lets_its_lane_go_at_once() -> None:
    lanes = SubscriptionQueues()
    lane = lanes.lane(TENANT, "a")
    lanes.hold(lane, NOW + 60_000)
    lanes.add(lane, 1, NOW, NOW)
    assert lanes.take(NOW) == []
    assert lanes.next_due_at_ms() == NOW + 60_000
    lanes.hold(lane, None)
    assert seqs(lanes.take(NOW)) == [1]


def test_attempts_at_receivers_that_fail_are_made_together_and_keep_no_other_waiting() -> None:
    lanes = SubscriptionQueues()
    for number in range(100):
        lane = lanes.lane(f"ten_{number % 3}", f"failing-{number}")
        lane.learn(1, failed=True, unreached=False)
        lanes.add(lane, number, NOW + 10 * number, NOW)
    rounds, went = 0, set[int]()
    for now_ms in range(NOW, NOW + 1_100):
        lanes.add(lanes.lane("quiet", "sound"), now_ms, now_ms, now_ms)
        taken = lanes.take(now_ms)
        [(sound, seq)] = [one for one in taken if one[0].tenant == "quiet"]
        lanes.done(sound, seq)
        failing = set(seqs(taken)) - {seq}
        rounds += bool(failing)
        went |= failing
        assert all(NOW + 10 * one <= now_ms < NOW + 10 * one + FAILING_PAUSE_MS for one in failing)
    assert went == set(range(100))
    assert rounds <= 1_100 // FAILING_PAUSE_MS
