"""A child writes through its parent's store as if it were its own, and hears when the parent is gone."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from vettance.db.engine import Clash, Lost, Misuse, Statement, StoreDown, insert
from vettance.db.sqlite import SqliteStore
from vettance.db.tables import CHANGE, Insert
from vettance.db.write_relay import Relay, RelayedStore

INSERT = "INSERT INTO change (seq, area, tenant, subject, at_ms) VALUES (?, ?, ?, ?, ?)"


class Pair:
    """A parent's store and a child's, connected."""

    def __init__(self, parent: SqliteStore, relay: Relay, child: RelayedStore) -> None:
        self.parent, self.relay, self.child = parent, relay, child
        self.ended = asyncio.Event()


@pytest.fixture
async def pair(tmp_path: Path) -> AsyncIterator[Pair]:
    async with await SqliteStore.open(tmp_path / "vettance.db", writer="thread") as parent:
        await parent.migrate()
        relay = Relay(parent)
        ended = asyncio.Event()
        child = await RelayedStore.open(tmp_path / "vettance.db", await relay.open(), ended.set)
        made = Pair(parent, relay, child)
        made.ended = ended
        yield made
        await child.close()
        await relay.close()


def row(number: int, area: str = "a") -> Statement:
    return Statement(INSERT, (number, area, "ten", "ä\x00 ✓", 2**53))


async def test_a_write_is_kept_and_seen_by_the_next_read(pair: Pair) -> None:
    assert await pair.child.write(row(1), row(2)) == [1, 1]
    assert await pair.child.write(Statement("UPDATE change SET area = ?", ("b",))) == [2]
    rows = [(1, "b", "ä\x00 ✓", 2**53), (2, "b", "ä\x00 ✓", 2**53)]
    question = Statement("SELECT seq, area, subject, at_ms FROM change ORDER BY seq")
    assert await pair.child.read(question) == rows
    assert await pair.parent.read(question) == rows
    assert await pair.child.write() == []


async def test_many_writes_at_once_are_answered_each_for_itself(pair: Pair) -> None:
    answers = await asyncio.gather(
        *(pair.child.write(row(number % 50)) for number in range(100)), return_exceptions=True
    )
    assert answers[:50] == [[1]] * 50
    assert all(isinstance(answer, Clash) for answer in answers[50:])


async def test_what_a_write_demands_is_held_and_a_bug_is_named(pair: Pair) -> None:
    with pytest.raises(Lost):
        await pair.child.write(row(1), Statement("DELETE FROM change WHERE seq = 9", rows=1))
    assert await pair.child.read(Statement("SELECT COUNT(*) FROM change")) == [(0,)]
    with pytest.raises(Misuse):
        await pair.child.write(Statement("DELETE FROM nothing"))


async def test_an_insert_is_one_form_whatever_the_number_of_rows(pair: Pair) -> None:
    into = Insert(CHANGE, "seq, area, tenant, subject, at_ms", key="seq")
    rows = [(number, "a", "ten", "", 0) for number in range(1, 8)]
    counts = [
        await pair.child.write(insert(into, None, [value for row in part for value in row]))
        for part in (rows[:1], rows[:3], rows[:6], rows)
    ]
    assert counts == [[1], [2], [3], [1]]
    assert [sql for sql, _ in pair.relay._forms] == [into.text]


@pytest.mark.parametrize("value", [object(), 2**80, "\ud800"])
async def test_what_cannot_be_sent_fails_alone(pair: Pair, value: object) -> None:
    wrong = Statement("UPDATE change SET subject = ?", (value,))
    told = await asyncio.gather(
        pair.child.write(row(1)), pair.child.write(wrong), pair.child.write(row(2)), return_exceptions=True
    )
    assert (told[0], type(told[1]), told[2]) == ([1], Misuse, [1])
    assert await pair.child.write(row(3)) == [1]


async def test_after_the_parents_end_writes_fail_and_the_child_is_told(pair: Pair) -> None:
    await pair.relay.close()
    await asyncio.wait_for(pair.ended.wait(), 5)
    with pytest.raises(StoreDown):
        await pair.child.write(row(1))


async def test_a_store_that_is_closed_is_down_for_the_child_too(pair: Pair) -> None:
    await pair.parent.close()
    with pytest.raises(StoreDown):
        await pair.child.write(row(1))
