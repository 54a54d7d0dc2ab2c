"""The tenant cache: bounded in bytes, and nobody within an equal share of it loses anything to others."""

from hypothesis import given
from hypothesis import strategies as st

from vettance.fairness.tenant_cache import ENTRY_BYTES, TenantCache

BYTES_MAX = 20_000
PUTS = st.lists(
    st.tuples(st.sampled_from("abcd"), st.integers(0, 30), st.integers(0, 4_000)), min_size=1, max_size=200
)


@given(PUTS)
def test_it_stays_within_its_bound_and_counts_what_it_holds(puts: list[tuple[str, int, int]]) -> None:
    cache = TenantCache[int, int](BYTES_MAX, lambda _, value: value)
    for tenant, key, value in puts:
        cache.put(tenant, key, value)
        assert cache.get(tenant, key) == value
        assert cache.usage.held_bytes <= BYTES_MAX
    held = {
        (tenant, key): value
        for tenant in "abcd"
        for key in range(31)
        if (value := cache.get(tenant, key)) is not None
    }
    assert len(cache) == len(held)
    assert cache.usage.held_bytes == sum(value + ENTRY_BYTES for value in held.values())
    by_tenant = [sum(v + ENTRY_BYTES for (t, _), v in held.items() if t == tenant) for tenant in "abcd"]
    assert cache.usage.largest_bytes == max(by_tenant)
    for tenant in "abcd":
        cache.drop(tenant)
    assert cache.usage[:2] == (0, 0)


@given(PUTS)
def test_a_tenant_within_an_equal_share_loses_nothing(puts: list[tuple[str, int, int]]) -> None:
    cache = TenantCache[int, int](BYTES_MAX, lambda _, value: value)
    own = {("own", key): 600 for key in range(4)}
    for (tenant, key), value in own.items():
        cache.put(tenant, key, value)
    for tenant, key, value in puts:
        cache.put(tenant, key, value)
    assert {key for key in range(4) if cache.get("own", key)} == set(range(4))


def test_what_is_larger_than_everything_stays_alone_while_it_is_the_newest() -> None:
    cache = TenantCache[str, int](BYTES_MAX, lambda _, value: value)
    cache.put("a", "small", 1)
    cache.put("b", "huge", 3 * BYTES_MAX)
    assert cache.get("b", "huge")
    assert len(cache) == 1
    cache.put("b", "next", 1)
    assert cache.get("b", "huge") is None
    assert cache.usage.evicted == 2


def test_the_oldest_of_each_tenant_are_shown_as_long_as_they_are_taken_away() -> None:
    cache = TenantCache[str, int](BYTES_MAX, lambda _, value: value)
    for tenant, key, value in (("a", "x", 1), ("a", "y", 5), ("b", "z", 2), ("b", "w", 3)):
        cache.put(tenant, key, value)
    for tenant, key, value in cache.oldest():
        if value < 4:
            cache.pop(tenant, key)
    assert [cache.get("a", "x"), cache.get("a", "y"), cache.get("b", "z"), cache.get("b", "w")] == [
        None,
        5,
        None,
        None,
    ]
