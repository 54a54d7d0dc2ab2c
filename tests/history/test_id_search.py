"""How digits are found in ids, held against looking for a text in a text."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vettance.history.id_search import WORD_DIGITS, begins, holds
from vettance.history.segment import TYPES, Array

HEX = "0123456789abcdef"
# Few different digits, so that parts repeat and nearly match everywhere.
IDS = st.lists(st.text(st.sampled_from("07f"), min_size=32, max_size=32), min_size=1, max_size=8)
PARTS = st.text(st.sampled_from("07f"), min_size=1, max_size=32)


def columns(ids: list[str]) -> tuple[Array, Array]:
    high = np.array([int(one[:WORD_DIGITS], 16) for one in ids], TYPES["high"])
    return high, np.array([int(one[WORD_DIGITS:], 16) for one in ids], TYPES["low"])


@given(IDS, PARTS | st.tuples(st.integers(0, 31), st.integers(1, 32)))
def test_digits_are_found_where_a_text_would_be_found(ids: list[str], part: str | tuple[int, int]) -> None:
    text = part if isinstance(part, str) else ids[0][part[0] : part[0] + part[1]]
    high, low = columns(ids)
    assert holds(high, low, text).tolist() == [text in one for one in ids]
    assert begins(high, low, text).tolist() == [one.startswith(text) for one in ids]


@pytest.mark.parametrize("digit", HEX)
def test_each_digit_is_told_from_every_other(digit: str) -> None:
    ids = [other * 32 for other in HEX]
    assert holds(*columns(ids), digit).tolist() == [digit == other for other in HEX]


def test_every_id_begins_with_nothing() -> None:
    assert begins(*columns([HEX * 2]), "").tolist() == [True]


def test_many_ids_are_looked_through_in_parts() -> None:
    ids = [f"{number:032x}" for number in range(20_000)]
    # In every id, in those of some parts, or in one; some at places that a whole part has in common.
    for part in ("0000", "00001", "00002", "0004", "4e1f"):
        assert holds(*columns(ids), part).tolist() == [part in one for one in ids]
