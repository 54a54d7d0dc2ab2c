"""How a column grows: what is in it, and how much memory that takes."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from vettance.history.segment import TYPES, ColumnData

TERMS = st.integers(0, 300) | st.integers(0, 2**32 - 1)


@given(st.lists(st.lists(TERMS, min_size=1, max_size=5), max_size=5))
def test_a_column_holds_all_its_chunks_in_no_more_bytes_than_they_need(chunks: list[list[int]]) -> None:
    column = ColumnData("customer_id")
    seen = []
    for number, chunk in enumerate(chunks, 1):
        column.add(number, len(chunk), np.array(chunk, TYPES["customer_id"]).tobytes())
        seen.append(column.values)
    everything = [term for chunk in chunks for term in chunk]
    assert column.values.tolist() == everything
    highest = max(everything, default=0)
    assert column.values.itemsize == (1 if highest < 2**8 else 2 if highest < 2**16 else 4)
    # Whoever asked earlier goes on with what was there then.
    assert [values.tolist() for values in seen] == [
        [term for chunk in chunks[:count] for term in chunk] for count in range(1, len(chunks) + 1)
    ]
