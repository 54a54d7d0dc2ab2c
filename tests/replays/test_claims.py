"""How processes leave a request with one key to one of them, on a real store and a real Redis."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path

import pytest

from tests.redis_link.redis_server import PATIENCE_S, SECRET, PrivateRedis
from vettance.db.sqlite import SqliteStore
from vettance.redis_link import redis_claims
from vettance.redis_link.redis_claims import SharedClaims
from vettance.redis_link.redis_connection import RedisConnection
from vettance.replays.replay import StoredReplays
from vettance.tenants.tenant import Key, Tenant
from vettance.tenants.vault import Vault
from vettance.web.response import Response, answer_of
from vettance.web.routing import Call, RouteReply

#: Longer than any test may take.
FOR_EVER_S = 600.0
NAME = "/p\0anna@example.com"
Work = Callable[[], Awaitable[Response]]


@pytest.fixture
def redis() -> Iterator[PrivateRedis]:
    server = PrivateRedis()
    server.start()
    yield server
    server.close()


class Process:
    """What one process has of its own."""

    def __init__(self, store: SqliteStore, url: str, patience_s: float = PATIENCE_S) -> None:
        self.store = store
        self.line = RedisConnection(url, patience_s)
        self.claims = SharedClaims(self.line, SECRET)
        self.replays = StoredReplays(store, Vault(b"v" * 32), claims=self.claims)
        self.worked = 0
        self.working = asyncio.Event()

    async def ask(self, work: Work | None = None) -> Response:
        """Answer a request with the one key, as a door does that has an effect."""
        asked = Call(
            *("req_1", {}, b"", {}, b"", 0, Tenant(id="ten_a", name="")),
            Key(id="key_1", tenant="ten_a", digest=b"", hint="", created_at_ms=0),
            idempotency_key=NAME.partition("\0")[2],
        )

        async def count() -> Response:
            self.worked += 1
            self.working.set()
            if work is not None:
                return await work()
            reply = RouteReply({"by": id(self)}, 201)
            await self.store.write(*asked.keep(reply))
            return answer_of(reply)

        return await self.replays.answer(asked, b"/p", count)


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[SqliteStore]:
    opened = await SqliteStore.open(tmp_path / "vettance.db", writer="thread")
    await opened.migrate()
    yield opened
    await opened.close()


@pytest.fixture
async def two(store: SqliteStore, redis: PrivateRedis) -> AsyncIterator[tuple[Process, Process]]:
    made = Process(store, redis.url), Process(store, redis.url)
    yield made
    for process in made:
        await process.line.close()


async def hang() -> Response:
    await asyncio.Event().wait()
    raise AssertionError


async def refuse() -> Response:
    return Response(503, b"busy")


async def test_of_simultaneous_requests_in_two_processes_only_one_does_the_work(
    two: tuple[Process, Process],
) -> None:
    answers = await asyncio.gather(*(process.ask() for process in two for _ in range(5)))
    assert len({answer.content for answer in answers}) == 1
    assert sum(process.worked for process in two) == 1


async def test_a_retry_is_answered_while_the_claim_of_the_first_still_stands(
    two: tuple[Process, Process], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(redis_claims, "CLAIM_S", FOR_EVER_S)
    one, other = two
    first = await one.ask()
    assert await one.claims.take("ten_a", NAME) is None
    assert (await other.ask()).content == first.content
    assert other.worked == 0


async def test_who_waits_for_a_process_that_died_works_when_its_claim_has_lapsed(
    two: tuple[Process, Process], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(redis_claims, "CLAIM_S", 0.3)
    one, other = two
    assert await one.claims.take("ten_a", NAME) is not None
    answers = await asyncio.gather(other.ask(), one.ask())
    assert len({answer.content for answer in answers}) == 1
    assert one.worked + other.worked == 1


async def test_who_ends_without_an_answer_gives_the_claim_up_at_once(
    two: tuple[Process, Process], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(redis_claims, "CLAIM_S", FOR_EVER_S)
    one, other = two
    assert (await one.ask(refuse)).status == 503
    left = asyncio.create_task(one.ask(hang))
    await one.working.wait()
    waiting = asyncio.create_task(other.ask())
    left.cancel()
    assert (await asyncio.wait_for(waiting, PATIENCE_S)).status == 201


async def test_a_claim_that_another_has_taken_over_is_left_to_it(
    two: tuple[Process, Process], monkeypatch: pytest.MonkeyPatch
) -> None:
    one, other = two
    monkeypatch.setattr(redis_claims, "CLAIM_S", 0.05)
    lapsed = await one.claims.take("ten_a", NAME)
    assert lapsed is not None
    monkeypatch.setattr(redis_claims, "CLAIM_S", FOR_EVER_S)
    async with asyncio.timeout(PATIENCE_S):
        while (held := await other.claims.take("ten_a", NAME)) is None:  # noqa: ASYNC110 - Redis is asked
            await asyncio.sleep(0.01)
    await one.claims.give_up("ten_a", NAME, lapsed)
    assert await one.claims.take("ten_a", NAME) is None
    await other.claims.give_up("ten_a", NAME, held)
    assert await one.claims.take("ten_a", NAME) is not None


@pytest.mark.parametrize("away", ["hangs", "gone"])
async def test_without_redis_a_request_is_answered_and_the_store_lets_one_effect_through(
    store: SqliteStore, redis: PrivateRedis, away: str
) -> None:
    both = [Process(store, redis.url, 0.2) for _ in range(2)]
    await asyncio.gather(*(process.line.call(b"PING") for process in both))
    if away == "hangs":
        redis.halt()
    else:
        redis.stop()
    first = await both[0].ask()
    assert (first.status, (await both[1].ask()).content) == (201, first.content)
    assert both[1].worked == 0
    for process in both:
        await process.line.close()


async def test_no_word_of_a_request_stands_in_redis_and_nothing_stays(two: tuple[Process, Process]) -> None:
    one, _ = two
    await one.ask()
    (key,) = await one.line.call(b"KEYS", b"*")
    assert key.startswith(b"vettance:{ten_a}:i:")
    assert b"anna" not in key
    assert 0 < await one.line.call(b"PTTL", key) <= redis_claims.CLAIM_S * 1000
