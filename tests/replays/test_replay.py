"""How answers are kept by `Idempotency-Key`, on a real store with a clock of the test's own."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest

from vettance.db.engine import Clash, Statement
from vettance.db.sqlite import SqliteStore
from vettance.replays.replay import StoredReplays
from vettance.tenants.tenant import Key, Tenant
from vettance.tenants.vault import Vault
from vettance.web.response import Response, answer_of
from vettance.web.routing import Call, RouteReply

VAULT = Vault(b"v" * 32)
DAY_MS = 24 * 3600 * 1000
NOTE = "INSERT INTO change (tenant, area, subject, at_ms) VALUES (?, 'test', ?, 0)"


class Clock:
    def __init__(self) -> None:
        self.now_ms = 1_800_000_000_000

    def __call__(self) -> int:
        return self.now_ms


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[SqliteStore]:
    opened = await SqliteStore.open(tmp_path / "vettance.db", writer="thread")
    await opened.migrate()
    yield opened
    await opened.close()


def call(key: str = "k", tenant: str = "ten_a") -> Call:
    caller = Tenant(id=tenant, name="")
    known = Key(id="key_1", tenant=tenant, digest=b"", hint="", created_at_ms=0)
    return Call("req_1", {}, b"", {}, b"", 0, caller, known, idempotency_key=key)


def effect(store: SqliteStore, asked: Call, text: str) -> Callable[[], Awaitable[Response]]:
    """Work as a door does: the effect and the answer kept for it in one commit."""

    async def work() -> Response:
        reply = RouteReply({"text": text}, 201)
        await store.write(Statement(NOTE, (asked.tenant.id, text)), *asked.keep(reply))
        return answer_of(reply)

    return work


async def effects(store: SqliteStore) -> int:
    rows = await store.read(Statement("SELECT COUNT(*) FROM change WHERE area = 'test'"))
    count: int = rows[0][0]
    return count


async def ask(replays: StoredReplays, store: SqliteStore, text: str, key: str = "k") -> bytes:
    asked = call(key)
    return (await replays.answer(asked, b"/p", effect(store, asked, text))).content


async def test_an_answer_is_replayed_for_24_hours_to_the_millisecond(store: SqliteStore) -> None:
    clock = Clock()
    replays = StoredReplays(store, VAULT, clock)
    first = await ask(replays, store, "one")
    clock.now_ms += DAY_MS - 1
    assert await ask(replays, store, "two") == first
    clock.now_ms += 1
    assert await ask(replays, store, "three") != first
    assert await effects(store) == 2


async def test_another_process_replays_what_this_one_kept(store: SqliteStore) -> None:
    clock = Clock()
    first = await ask(StoredReplays(store, VAULT, clock), store, "one")
    assert await ask(StoredReplays(store, VAULT, clock), store, "two") == first


async def test_two_processes_at_once_have_one_effect_and_one_answer(store: SqliteStore) -> None:
    clock = Clock()
    asked = [call() for _ in range(10)]
    work = [ready(effect(store, one, str(number))) for number, one in enumerate(asked)]
    answers = await asyncio.gather(
        *(
            StoredReplays(store, VAULT, clock).answer(one, b"/p", do)
            for one, do in zip(asked, work, strict=True)
        )
    )
    assert len({answer.content for answer in answers}) == 1
    assert await effects(store) == 1


def ready(work: Callable[[], Awaitable[Response]]) -> Callable[[], Awaitable[Response]]:
    """Answer a clash as the edge answers whatever a handler raises."""

    async def edge() -> Response:
        try:
            return await work()
        except Clash:
            return Response(500, b"")

    return edge


async def test_a_server_error_is_not_kept_and_the_next_request_works(store: SqliteStore) -> None:
    replays = StoredReplays(store, VAULT, Clock())

    async def fail() -> Response:
        return Response(503, b"busy")

    assert (await replays.answer(call(), b"/p", fail)).status == 503
    assert b"one" in await ask(replays, store, "one")


async def test_a_caller_that_left_does_not_leave_the_key_stuck(store: SqliteStore) -> None:
    replays = StoredReplays(store, VAULT, Clock())
    begun = asyncio.Event()

    async def hang() -> Response:
        begun.set()
        await asyncio.sleep(60)
        return Response(200, b"")

    gone = asyncio.create_task(replays.answer(call(), b"/p", hang))
    await begun.wait()
    waiting = asyncio.create_task(ask(replays, store, "one"))
    gone.cancel()
    assert b"one" in await asyncio.wait_for(waiting, 5)
    with pytest.raises(asyncio.CancelledError):
        await gone


async def test_expired_answers_are_purged_and_others_stay(store: SqliteStore) -> None:
    clock = Clock()
    replays = StoredReplays(store, VAULT, clock)
    await ask(replays, store, "one", "old")
    clock.now_ms += DAY_MS
    kept = await ask(replays, store, "two", "new")
    await replays.purge()
    rows = await store.read(Statement("SELECT key FROM answer"))
    assert rows == [("new",)]
    assert await ask(replays, store, "three", "new") == kept
