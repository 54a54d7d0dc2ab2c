"""How a column grows: what is in it, and how much memory that takes."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vettance.decisions.searchable_fields import REASONS
from vettance.history.segment import BITS, TERM, TYPES, ColumnData, count_terms, places_of
from vettance.terms.sql import Term

TERMS = st.integers(0, 300) | st.integers(0, 2**32 - 1)


@given(st.lists(st.lists(TERMS, min_size=1, max_size=5), max_size=5), st.integers(0, 40))
def test_a_column_holds_all_its_chunks_in_no_more_bytes_than_they_need(
    chunks: list[list[int]], reserved: int
) -> None:
    column = ColumnData("customer_id")
    column.reserve(reserved)
    seen = []
    for number, chunk in enumerate(chunks, 1):
        column.add([(number, len(chunk), np.array(chunk, TYPES["customer_id"]).tobytes())])
        column.reserve(reserved // 2)
        seen.append(column.values)
    everything = [term for chunk in chunks for term in chunk]
    assert column.values.tolist() == everything
    highest = max(everything, default=0)
    assert column.values.itemsize == (1 if highest < 2**8 else 2 if highest < 2**16 else 4)
    # Whoever asked earlier goes on with what was there then.
    assert [values.tolist() for values in seen] == [
        [term for chunk in chunks[:count] for term in chunk] for count in range(1, len(chunks) + 1)
    ]


def test_a_column_takes_the_room_that_was_made_whatever_its_terms() -> None:
    column = ColumnData("customer_id")
    column.reserve(1_000)
    for number, term in enumerate((7, 300, 70_000), 1):
        column.add([(number, 300, np.full(300, term, TERM).tobytes())])
    assert column.memory_bytes == 4_000


@pytest.mark.parametrize("name", ["customer_id", REASONS])
@given(st.lists(st.tuples(st.integers(0, 4), st.booleans()), min_size=1, max_size=6))
def test_chunks_added_together_are_those_added_one_by_one(name: str, sizes: list[tuple[int, bool]]) -> None:
    together, singly = ColumnData(name), ColumnData(name)
    chunks: list[tuple[int, int, bytes | None]] = []
    for number, (size, is_older) in enumerate(sizes, 1):
        values = np.array([(place, 7 * number) for place in range(size)], TYPES[REASONS])
        data = values.tobytes() if name == REASONS else values["term"].tobytes()
        chunks.append((number, size, None if is_older and name != REASONS else data))
    together.add(chunks)
    for chunk in chunks:
        singly.add([chunk])
    assert together.values.tolist() == singly.values.tolist()
    assert together.through == singly.through == len(chunks)


def test_places_of_terms_are_those_of_going_through_every_decision() -> None:
    rng = np.random.default_rng(3)
    size = 150_000  # More than two blocks.
    columns = {
        "customer_id": rng.choice(np.array([0, 0, 1, 2, 300_000], "u4"), size),
        "email": rng.choice(np.array([0, 2, 3, 4], "u4"), size),
    }
    known = np.where(columns["customer_id"] > 0, columns["customer_id"], columns["email"])
    terms = [
        Term(number, "", sum(BITS[name] for name, values in columns.items() if number in values))
        for number in (1, 2, 3, 300_000, 77, 4)
    ]
    for some in (terms, terms[:2], terms[3:5]):  # Many are looked up, few compared.
        for term, found in zip(some, places_of(columns, "customer", some), strict=True):
            assert found.tolist() == np.flatnonzero(known == term.id).tolist()


@pytest.mark.parametrize("terms", [[], [0, 0], [5], [3, 0, 3, 900, 1, 1, 3], [0, 4_000_000_000, 2]])
def test_terms_are_counted_however_far_apart_they_lie(terms: list[int]) -> None:
    found, counts = count_terms(np.array(terms, TERM))
    naive = Counter(term for term in terms if term)
    assert dict(zip(found.tolist(), counts.tolist(), strict=True)) == naive
