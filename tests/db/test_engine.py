"""How statements are built."""

from hypothesis import given
from hypothesis import strategies as st

from vettance.db.engine import in_list


@given(st.lists(st.integers(), max_size=300))
def test_a_list_of_any_length_asks_for_the_same_values_in_one_of_a_few_texts(values: list[int]) -> None:
    places, args = in_list(values)
    assert args[: len(values)] == values
    assert set(args) == set(values)
    assert places.count("?") == len(args) <= 2 * len(values)
    assert len(args) == 0 or len(args).bit_count() == 1
