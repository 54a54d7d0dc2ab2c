"""What fails for one of many is tried again later, and keeps no other waiting."""

import pytest
from structlog.testing import capture_logs

from vettance.db.engine import Misuse, StoreDown
from vettance.fairness.isolation import DOWN_S, RETRY_S_MAX, RETRY_S_MIN, Isolation, failing, failures


class Round:
    """A loop over tenants, some of which fail; its clock stands still until it is moved."""

    def __init__(self, work: str) -> None:
        self.now_s = 100.0
        self.isolation = Isolation(work, lambda: self.now_s)
        self.broken: dict[str, Exception] = {}

    def go(self, *keys: str) -> list[str]:
        done = []
        for key in self.isolation.due(keys):
            with self.isolation.of(key):
                if key in self.broken:
                    raise self.broken[key]
                done.append(key)
        return done


def test_those_after_one_that_fails_are_done_and_it_is_told() -> None:
    one = Round("history")
    one.broken["ten_b"] = Misuse("an index row is too large")
    with capture_logs() as logs:
        assert one.go("ten_a", "ten_b", "ten_c") == ["ten_a", "ten_c"]
    assert [(line["event"], line["work"], line["of"], line["tries"]) for line in logs] == [
        ("work_failed", "history", "ten_b", 1)
    ]
    assert ("history", "ten_b", "Misuse") in [(one.work, one.key, one.error) for one in failing()]
    assert failures()["history"] >= 1


def test_the_pauses_grow_to_the_longest_and_a_success_ends_them() -> None:
    one, pauses = Round("memory"), []
    one.broken["ten_a"] = ValueError()
    with capture_logs():
        for _ in range(40):
            assert one.go("ten_a") == []
            before_s = one.now_s
            one.now_s = one.isolation.failing[0].due_s
            pauses.append(one.now_s - before_s)
            one.now_s -= 0.001
            assert not one.isolation.is_due("ten_a")
            one.now_s += 0.001
    assert pauses[:4] == [RETRY_S_MIN, 2 * RETRY_S_MIN, 4 * RETRY_S_MIN, 8 * RETRY_S_MIN]
    assert pauses[-1] == RETRY_S_MAX
    one.broken.clear()
    assert one.go("ten_a") == one.go("ten_a") == ["ten_a"]
    assert one.isolation.failing == ()
    assert one.isolation.failures == 40


def test_a_store_that_is_away_ends_the_round_and_whose_question_it_was_comes_later() -> None:
    one = Round("quota")
    one.broken["ten_a"] = StoreDown("the request to the store took too long")
    with capture_logs() as logs:
        with pytest.raises(StoreDown):
            one.go("ten_a", "ten_b")
        assert one.go("ten_a", "ten_b") == ["ten_b"]
    assert logs == []
    assert one.isolation.failing == ()
    one.broken.clear()
    one.now_s += DOWN_S
    assert one.go("ten_a", "ten_b") == ["ten_a", "ten_b"]


def test_metrics_know_every_kind_of_work() -> None:
    with pytest.raises(ValueError, match="among the kinds"):
        Isolation("gardening")
