"""Shares leave room for whoever has none yet, and come back to nothing."""

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from vettance.limits.connection_shares import ConnectionShares, connections_max
from vettance.limits.shares import DynamicShares, EqualShares, RateShares


def taken(shares: DynamicShares, size: int, *holders: str) -> int:
    count = 0
    while shares.take(size, *holders):
        count += 1
    return count


def test_one_holder_gets_half_two_get_a_third_each_and_room_is_left() -> None:
    shares = DynamicShares(1200)
    assert taken(shares, 1, "a") == 600
    assert taken(shares, 1, "b") == 300
    assert taken(shares, 1, "c") == 150
    assert shares.take(100, "d")


def test_keys_share_what_their_tenant_may_hold() -> None:
    shares = DynamicShares(1200)
    assert taken(shares, 1, "a", "key 1") == 400
    assert taken(shares, 1, "a", "key 2") > 100
    assert len(shares) < 600
    assert taken(shares, 1, "b", "key 3") > 200


def test_several_greedy_holders_leave_room_for_one_more() -> None:
    shares = DynamicShares(128 * 2**20)
    for number in range(6):
        taken(shares, 2**20, str(number))
    assert shares.take(2**20, "new")


@given(st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from("xyz"), st.integers(1, 40))))
def test_what_was_given_back_is_there_again(asked: Sequence[tuple[str, str, int]]) -> None:
    shares = DynamicShares(100)
    held = [
        (size, outer, outer + inner)
        for outer, inner, size in asked
        if shares.take(size, outer, outer + inner)
    ]
    assert len(shares) == sum(size for size, *_ in held) <= 100
    for each in held:
        shares.give(*each)
    assert len(shares) == 0
    assert taken(shares, 1, "a") == 50


def test_what_is_scarce_is_kept_from_those_with_more_than_an_equal_part() -> None:
    shares = EqualShares(4)
    assert [shares.take("a", number) for number in range(1, 6)] == [True] * 4 + [False]
    assert shares.take("b", 5)
    assert not shares.take("a", 6)
    shares.give("b")
    shares.give("a")
    assert shares.take("a", 4)


def test_an_address_has_half_of_the_connections_and_behind_proxies_all() -> None:
    shares = ConnectionShares(8)
    places = [shares.place() for _ in range(12)]
    assert [place.take("192.0.2.1") for place in places[:5]] == [True] * 4 + [False]
    assert [place.take(f"2001:db8::{number}") for number, place in enumerate(places[5:9])] == [
        True,
        True,
        False,
        False,
    ]
    for place in places:
        place.give()
        place.give()
    assert shares.open == len(shares.addresses) == 0
    behind = ConnectionShares(3, by_address=False)
    assert [behind.place().take("192.0.2.1") for _ in range(4)] == [True, True, True, False]


def test_a_connection_belongs_to_the_tenant_that_used_it_last() -> None:
    shares = ConnectionShares(8)
    places = [shares.place() for _ in range(6)]
    assert [place.belong("a") for place in places] == [True] * 4 + [False] * 2
    assert places[0].belong("b")
    assert places[4].belong("a")
    for place in places:
        place.give()
    assert len(shares.tenants) == 0


def test_a_process_keeps_files_for_itself() -> None:
    assert 0 < connections_max() <= 16_384


def test_each_holder_has_its_rate_and_saves_up_so_much():
    rates = RateShares(each_s=10, saved_max=3)

    def take(holder: str, now_ms: int) -> int:
        count = 0
        while rates.fits(holder, now_ms):
            rates.count(holder, now_ms)
            count += 1
        return count

    assert take("a", 0) == 3
    assert take("b", 0) == 3
    assert take("a", 50) == 0
    assert take("a", 100) == 1
    assert take("a", 10) == 0  # The clock went back.
    assert take("a", 60_000) == 3
    assert len(rates) == 2
    assert rates.fits("a", 120_000)
    assert rates.fits("b", 120_000)
    assert len(rates) == 0
