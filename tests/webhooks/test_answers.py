"""What the log of deliveries shows while attempts are under way."""

from vettance.webhooks.answers import delivery_answers
from vettance.webhooks.sql import Attempt, Delivery


def test_an_attempt_that_ended_after_its_delivery_was_read_is_left_to_the_next_look() -> None:
    delivery = Delivery(7, "dlv_1", "whs_1", "TEST", "dec_1", "pending", 1, 1, 1_000, 2_000, None, 0)
    attempts = [Attempt(7, number, 1_000 * number, 5, 500, "status", b"no") for number in (1, 2)]
    (shown,) = delivery_answers([delivery], attempts)
    assert [one.number for one in shown.attempts] == [1]
    (later,) = delivery_answers([delivery._replace(attempts=2, attempts_ever=2, due_at_ms=9_000)], attempts)
    assert [one.number for one in later.attempts] == [1, 2]
