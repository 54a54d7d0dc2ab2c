"""An event is recognised as long as its answer is among those given last."""

import pytest

from vettance.velocity.memory.dedup import RECENT, RecentAnswers
from vettance.velocity.port import VelocityAnswer


@pytest.mark.parametrize("count", [0, 1, RECENT - 1, RECENT, RECENT + 1, 2 * RECENT, 5 * RECENT + 7])
def test_the_answers_given_last_are_known_and_no_others(count: int) -> None:
    recent = RecentAnswers()
    for number in range(count):
        recent.keep(f"evt_{number}", VelocityAnswer((number,), 0))
    kept = range(max(0, count - RECENT), count)
    assert [event_id for event_id, _ in recent.items()] == [f"evt_{number}" for number in kept]
    for number in range(count):
        expected = VelocityAnswer((number,), 0) if number in kept else None
        assert recent.get(f"evt_{number}") == expected
