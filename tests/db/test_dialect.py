"""How statements are sent to PostgreSQL: which rows go together, and which statements may change places."""

import pytest

from vettance.db.dialect import add_up, arrange, bulk_rows, bulk_size, bulk_text, form_of, numbered
from vettance.db.engine import COUNTED, NOTHING, Statement, insert, scoped
from vettance.db.tables import API_KEY, DELIVERY, INTEREST, MESSAGE, SUBSCRIPTION, TENANT, Insert, Table

HITS = Table("hits")
COLUMNS = "tenant, day, hits, misses"
ADDED = Insert(HITS, COLUMNS, key="tenant, day", adds="hits, misses")


def test_an_insert_that_adds_everything_up_names_its_rows_by_the_rest() -> None:
    form = form_of(insert(ADDED, "ten_a", (1, 2, 3)))
    assert form.key == (0, 1)
    assert form.bulk is ADDED


def test_a_bulk_insert_takes_up_to_as_many_rows_as_it_is_written_for() -> None:
    assert bulk_text(ADDED, ("text", "int8", "int8", "int8"), 2) == (
        "INSERT INTO hits (tenant, day, hits, misses) SELECT * FROM (VALUES ($1::text, $2::int8, $3::int8, "
        "$4::int8), ($5, $6, $7, $8)) AS given LIMIT $9 ON CONFLICT (tenant, day) DO UPDATE SET "
        "hits = hits.hits + excluded.hits, misses = hits.misses + excluded.misses"
    )
    assert [bulk_size(rows) for rows in (1, 2, 3, 5, 16, 17, 256)] == [1, 2, 4, 8, 16, 32, 256]
    assert bulk_rows(ADDED) == 256
    wide = Insert(HITS, ", ".join(f"column_{number}" for number in range(20)))
    assert bulk_rows(wide) == 64


@pytest.mark.parametrize(
    "into",
    [
        Insert(HITS, COLUMNS, key="tenant, day", adds="hits"),  # the misses of a later row are not taken
        Insert(HITS, COLUMNS, key="tenant, day", adds="hits", replaces="misses"),
        Insert(HITS, COLUMNS, key="tenant, day", replaces="hits, misses"),
        Insert(HITS, COLUMNS, key="tenant, day", sets="hits = hits.hits + 1"),
        Insert(HITS, COLUMNS, key="tenant, day", adds="hits, misses", sets="day = 1"),
    ],
    ids=["one left out", "one replaced", "all replaced", "counted", "one assigned"],
)
def test_an_insert_that_does_more_is_sent_row_by_row(into: Insert) -> None:
    form = form_of(insert(into, "ten_a", (1, 2, 3)))
    assert (form.key, form.bulk, form.width) == ((), None, 4)


def test_an_insert_that_may_change_nothing_is_asked_how_many_rows_changed() -> None:
    form = form_of(insert(Insert(HITS, COLUMNS, key="tenant, day"), "ten_a", (1, 2, 3)))
    assert form.width == 0
    assert form.counted is not None


def test_an_insert_of_several_rows_is_one_form() -> None:
    one, two = insert(ADDED, "ten_a", (1, 2, 3)), insert(ADDED, "ten_a", (1, 2, 3, "ten_a", 2, 3, 4))
    assert form_of(one) is form_of(two)


def test_an_insert_of_several_rows_that_may_change_nothing_is_one_text() -> None:
    into = Insert(HITS, COLUMNS, key="tenant, day")
    one, two = insert(into, "ten_a", (1, 2, 3)), insert(into, "ten_a", (1, 2, 3, "ten_a", 2, 3, 4))
    assert two.sql == one.sql.replace("(?, ?, ?, ?)", "(?, ?, ?, ?), (?, ?, ?, ?)")


def test_rows_with_the_same_key_become_one_where_the_first_stood() -> None:
    rows = [("a", 1, 1, 0), ("b", 1, 1, 5), ("a", 1, 2, 7), ("a", 2, 1, 1)]
    assert add_up(rows, (0, 1)) == [["a", 1, 3, 7], ["b", 1, 1, 5], ["a", 2, 1, 1]]


def test_placeholders_are_numbered_but_not_question_marks_in_texts() -> None:
    assert numbered("SELECT '?', ? WHERE a = 'it''s ?' AND b = ?") == (
        "SELECT '?', $1 WHERE a = 'it''s ?' AND b = $2"
    )


def _order(*statements: Statement) -> list[str]:
    """Arrange two writes of the same statements, and name the tables as they come."""
    return [
        " ".join(sorted(step.form.tables.changed)) for step in arrange([statements] * 2) if step.form.tables
    ]


def test_statements_that_only_read_a_table_in_common_share_their_executions() -> None:
    message = scoped(MESSAGE.reading(INTEREST), "t", "UPDATE message SET a = 1 WHERE tenant = ?")
    delivery = scoped(DELIVERY.reading(INTEREST), "t", "UPDATE delivery SET a = 1 WHERE tenant = ?")
    assert _order(message, delivery) == ["message", "delivery"]


def test_statements_keep_their_order_when_one_changes_what_the_other_reads() -> None:
    delivery = scoped(DELIVERY.reading(INTEREST), "t", "UPDATE delivery SET a = 1 WHERE tenant = ?")
    interest = scoped(INTEREST, "t", "DELETE FROM interest WHERE tenant = ?")
    assert _order(interest, delivery) == ["interest", "delivery"] * 2
    # A deleted subscription takes its interests along.
    subscription = scoped(SUBSCRIPTION, "t", "DELETE FROM subscription WHERE tenant = ?")
    assert _order(subscription, delivery) == ["subscription", "delivery"] * 2
    tenant = scoped(TENANT, "t", "UPDATE tenant SET name = ?")
    key = scoped(API_KEY, "t", "UPDATE api_key SET name = 1 WHERE tenant = ?")
    assert _order(tenant, key) == ["tenant", "api_key"] * 2


def test_a_statement_that_declares_nothing_changes_places_with_no_other() -> None:
    unknown, message = (
        Statement("DELETE FROM x"),
        scoped(MESSAGE, "t", "DELETE FROM message WHERE tenant = ?"),
    )
    assert [step.form.tables for step in arrange([[unknown, message]] * 2)] == [None, MESSAGE] * 2


def test_what_postgresql_does_not_need_is_not_sent_and_counts_nothing() -> None:
    text = f"WITH first AS (DELETE FROM message), changed AS (UPDATE message SET a = 1 RETURNING 1) {COUNTED}"
    at_once = Statement(text, tables=MESSAGE)
    steps = arrange([[NOTHING, at_once]] * 2)
    assert [(step.form.text, step.write, step.place) for step in steps] == [(text, [0, 1], [1, 1])]
    assert steps[0].form.counted == text
