"""A line to PostgreSQL that says nothing any more: nobody waits for it longer than he said he would."""

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator

import pytest

from tests.db.lines import Lines, lines_to
from tests.db.rows import all_uses, use
from vettance.db import leader, postgres_link, postgres_turn
from vettance.db.engine import StoreDown
from vettance.db.postgres import PostgresStore

pytestmark = pytest.mark.slow


@pytest.fixture
async def lines(emptied: str) -> AsyncIterator[Lines]:
    async with lines_to(emptied) as made:
        yield made


async def test_a_store_is_found_again_after_a_line_went_silent_right_after_its_login(
    lines: Lines, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres_link, "CONNECT_S_MAX", 1.0)
    async with await PostgresStore.open(lines.url) as store:
        lines.silent_from_login = True
        lines.cut()
        with pytest.raises(StoreDown):
            await store.write(use("ten_a", 1))
        await lines.asked_in_vain()
        lines.silent_from_login = False
        async with asyncio.timeout(8):
            while True:
                with contextlib.suppress(StoreDown):
                    await store.write(use("ten_a", 2))
                    break
                await asyncio.sleep(0.05)
        assert await store.read(all_uses()) == [("ten_a", 2, 1)]


async def test_turns_go_on_after_a_line_went_silent_right_after_its_login(
    lines: Lines, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def take_one(hour: int) -> None:
        async with store.turn() as turn:
            await turn.begin(["ten_a"])
            await turn.write([[use("ten_a", hour)]])

    monkeypatch.setattr(postgres_link, "CONNECT_S_MAX", 1.0)
    async with await PostgresStore.open(lines.url) as store:
        lines.silent_from_login = True
        first = asyncio.create_task(take_one(1))
        await lines.asked_in_vain()
        lines.silent_from_login = False
        async with asyncio.timeout(8):
            with pytest.raises(StoreDown):
                await first
            await take_one(2)
        assert await store.read(all_uses()) == [("ten_a", 2, 1)]


async def test_nobody_waits_for_the_turns_before_him_longer_than_a_turn_may_take(
    emptied: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with await PostgresStore.open(emptied) as store, store.turn() as turn:
        await turn.begin(["ten_a"])
        monkeypatch.setattr(postgres_turn, "TURN_S_MAX", 0.1)
        async with asyncio.timeout(5):
            with pytest.raises(StoreDown, match="too long"):
                async with store.turn():
                    pass


async def test_the_system_looks_whether_a_silent_server_is_still_there(emptied: str) -> None:
    connection = await postgres_link.connect(emptied, statement_s_max=5, writes=False)
    line = connection._transport.get_extra_info("socket")
    assert line.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE) == 1
    assert line.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE) == 3
    await postgres_link.part(connection)


async def test_who_asks_for_the_duty_over_a_line_that_went_silent_asks_over_another_one(
    lines: Lines, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(leader, "LOOK_S", 0.1)
    monkeypatch.setattr(leader, "_ANSWER_S_MAX", 1.0)
    on_duty = asyncio.Event()

    async def work() -> None:
        on_duty.set()
        await asyncio.Event().wait()

    holder = await postgres_link.connect(lines.beyond, statement_s_max=5, writes=False)
    await holder.execute(f"SELECT pg_advisory_lock({leader._DUTY})")
    keeping = asyncio.create_task(leader.keep_duty(lines.url, work))
    await lines.sent(b"pg_try_advisory_lock")
    lines.silence()
    await postgres_link.part(holder)
    async with asyncio.timeout(8):
        await on_duty.wait()
    keeping.cancel()
    await asyncio.gather(keeping, return_exceptions=True)
