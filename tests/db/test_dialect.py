"""How a text is sent to PostgreSQL: which rows of many may be put together."""

import pytest

from vettance.db.dialect import add_up, form_of

HEAD = (
    "INSERT INTO hits (tenant, day, hits, misses) VALUES (?, ?, ?, ?) "
    "ON CONFLICT (tenant, day) DO UPDATE SET "
)


def test_an_insert_that_adds_everything_up_names_its_rows_by_the_rest() -> None:
    form = form_of(HEAD + "hits = hits.hits + excluded.hits, misses = hits.misses + excluded.misses")
    assert form.key == (0, 1)
    assert form.many is not None
    assert form.many.startswith("INSERT INTO hits (tenant, day, hits, misses) SELECT given.c1")
    assert form.many.endswith("misses = hits.misses + excluded.misses")


@pytest.mark.parametrize(
    "change",
    [
        "hits = hits.hits + excluded.hits",  # the misses of a later row are not taken
        "hits = hits.hits + excluded.hits, misses = excluded.misses",
        "hits = hits.hits + excluded.misses, misses = hits.misses + excluded.hits",
        "hits = hits.hits + 1, misses = hits.misses + excluded.misses",
        "hits = hits.hits + excluded.hits, misses = hits.misses - excluded.misses",
        "hits = hits.hits + excluded.hits, misses = hits.misses + excluded.misses, day = 1",
    ],
)
def test_an_insert_that_does_more_is_sent_row_by_row(change: str) -> None:
    form = form_of(HEAD + change)
    assert (form.key, form.many) == ((), None)


def test_an_insert_with_values_of_its_own_is_sent_row_by_row() -> None:
    change = "ON CONFLICT (tenant) DO UPDATE SET hits = hits.hits + excluded.hits"
    sql = f"INSERT INTO hits (tenant, hits) VALUES (?, 1) {change}"
    assert form_of(sql).key == ()


def test_rows_with_the_same_key_become_one_where_the_first_stood() -> None:
    rows = [("a", 1, 1, 0), ("b", 1, 1, 5), ("a", 1, 2, 7), ("a", 2, 1, 1)]
    assert add_up(rows, (0, 1)) == [["a", 1, 3, 7], ["b", 1, 1, 5], ["a", 2, 1, 1]]
