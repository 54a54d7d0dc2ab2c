"""What queued batches say of a session is the same before and after a restart, whenever it was asked for."""

import random
from typing import Any

import pytest

from vettance.clock import HOUR_MS
from vettance.db.engine import Statement, Store
from vettance.events.browser_session import WAITING_MAX, SessionIndex, counts_since, merge
from vettance.fairness.skipped_rows import Skipped
from vettance.telemetry.meter_table import Rows
from vettance.websdk import sql
from vettance.websdk.session_sync import SessionSync
from vettance.wire.payload import decode, encode

TENANTS = ("ten_" + "1" * 32, "ten_" + "2" * 32)
START_MS = 1_790_000_000_123


class Reader:
    """A process that follows the batches of the store."""

    def __init__(self, store: Store) -> None:
        self.now_ms = START_MS
        self.book = SessionIndex()
        self.skipped = Skipped()
        self.follower = SessionSync(store, self.book, lambda: self.now_ms, self.skipped)

    async def ask(self, tenant: str, session: str, now_ms: int) -> bytes | None:
        self.now_ms = now_ms
        await self.follower.catch_up()
        await self.follower.freshen(tenant, session)
        return self.book.find(tenant, session, now_ms)


def some_signals(chance: random.Random) -> dict[str, Any]:
    signals: dict[str, Any] = {
        "mouseMoves": chance.randrange(9),
        "keystrokeIntervals": [chance.randrange(300) / 2 for _ in range(chance.randrange(90))],
        "seen": [f"s{chance.randrange(50)}" for _ in range(chance.randrange(4))],
        "paste": chance.random() < 0.1,
        "fingerprint": chance.choice(["one", "one", "two"]),
        f"blob{chance.randrange(9)}": "x" * chance.randrange(9_000),
    }
    return {name: signals[name] for name in chance.sample(sorted(signals), chance.randrange(6))}


@pytest.mark.parametrize("seed", range(4))
async def test_a_session_is_what_its_batches_of_the_last_day_say_before_and_after_a_restart(
    store: Store, seed: int
) -> None:
    chance = random.Random(seed)
    live = Reader(store)
    batches: list[tuple[str, set[str], int, dict[str, Any]]] = []
    now_ms = START_MS
    for number in range(150):
        now_ms += chance.choice((1, 1000, HOUR_MS // 2))
        tenant, sdk, own = (
            chance.choice(TENANTS),
            f"sdk{chance.randrange(3)}",
            chance.choice((None, "own", "sdk1")),
        )
        # Clocks of several processes: not in the order of the store.
        at_ms = now_ms - chance.randrange(HOUR_MS)
        signals = some_signals(chance)
        await store.write(sql.insert_batch(tenant, sdk, f"b{number}", own, at_ms, encode(signals)))
        batches.append((tenant, {sdk, own or sdk}, at_ms, signals))
        if number % 7 and number < 149:
            continue
        await live.follower.tidy()
        restarted = Reader(store)
        for tenant in TENANTS:
            for name in ("sdk0", "sdk1", "sdk2", "own"):
                if number < 149 and chance.random() < 0.5:
                    continue
                counted = [
                    said
                    for whose, names, received_ms, said in batches
                    if whose == tenant and name in names and received_ms >= counts_since(now_ms)
                ]
                expected = merge(b"{}", counted) if counted else None
                assert await live.ask(tenant, name, now_ms) == expected
                assert await restarted.ask(tenant, name, now_ms) == expected


async def test_a_batch_that_cannot_be_read_keeps_no_other_from_being_seen(store: Store) -> None:
    reader = Reader(store)
    for number, signals in enumerate((b'{"clickCount":1}', b'{"clickCount":', b"[1]", b'{"clickCount":2}')):
        await store.write(sql.insert_batch(TENANTS[0], "s", f"b{number}", None, START_MS, signals))
    assert decode(await reader.ask(TENANTS[0], "s", START_MS) or b"") == {"clickCount": 3}
    assert reader.skipped.count(Rows.SIGNALS) == 2


async def test_many_batches_are_merged_before_an_evaluation_asks_for_them(store: Store) -> None:
    many = 2 * WAITING_MAX + 3
    for number in range(many):
        await store.write(
            sql.insert_batch(TENANTS[0], "s", f"b{number}", None, START_MS, b'{"clickCount":1}')
        )
    reader = Reader(store)
    await reader.follower.catch_up()
    await reader.follower.settle()
    assert decode(reader.book.find(TENANTS[0], "s", START_MS) or b"") == {"clickCount": many}


async def test_batches_deleted_meanwhile_are_simply_missing(store: Store) -> None:
    reader = Reader(store)
    await store.write(sql.insert_batch(TENANTS[0], "s", "b", None, START_MS, b'{"clickCount":1}'))
    await reader.follower.catch_up()
    await store.write(Statement("DELETE FROM signal_batch", tenant="*"))
    assert await reader.ask(TENANTS[0], "s", START_MS) == b"{}"
