"""When chunks are made: behind bursts of events, but never too late."""

import asyncio
from collections.abc import Iterator
from contextlib import suppress

import pytest

from tests.fairness.broken import breaking
from tests.history.past import START_MS, Archive, Made
from tests.texts.test_long_texts import SCRIPTS, long_text
from vettance.db import tables
from vettance.db.engine import Row, Statement, scoped
from vettance.fairness.isolation import failing
from vettance.history.compaction import LOOK_S, Compactor
from vettance.history.result_page import Order
from vettance.history.search_criteria import criteria
from vettance.history.segment import BITS, SEARCHED_BITS
from vettance.retention.erasure import Eraser
from vettance.terms import sql as terms_sql

CHUNK = 4


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Archive]:
    made = Archive(tmp_path_factory.mktemp("archive"))
    yield made
    made.close()


async def chunks(archive: Archive, tenant: str) -> int:
    rows = await archive.store.read(
        scoped(tables.CHUNK, tenant, "SELECT COUNT(*) FROM chunk WHERE tenant = ?")
    )
    return int(rows[0][0])


async def made_of(archive: Archive, tenant: str, expected: int) -> None:
    async with asyncio.timeout(20):
        while await chunks(archive, tenant) != expected:  # noqa: ASYNC110 - it is in the store that it shows
            await asyncio.sleep(0.02)


async def write(archive: Archive, tenant: str, count: int) -> None:
    for number in range(count):
        await archive.write(tenant, Made(ip=f"192.0.2.{number % 200}"), START_MS + number)[1]


def test_chunks_are_whole_whoever_writes_the_decisions_and_whenever(either: Archive) -> None:
    before, since = either.tenant(), either.tenant()

    async def scene() -> None:
        await write(either, before, CHUNK + 1)
        compaction = asyncio.create_task(Compactor(either.store, chunk=CHUNK).run([before]))
        await made_of(either, before, 1)
        await write(either, before, CHUNK - 2)
        await write(either, since, CHUNK - 1)
        await asyncio.sleep(LOOK_S * 3)
        assert (await chunks(either, before), await chunks(either, since)) == (1, 0)
        await write(either, before, 1)
        await write(either, since, CHUNK * 2)
        await made_of(either, before, 2)
        await made_of(either, since, 2)
        await asyncio.sleep(LOOK_S * 3)
        assert (await chunks(either, before), await chunks(either, since)) == (2, 2)
        for tenant, sizes in ((before, [CHUNK, CHUNK]), (since, [CHUNK, CHUNK])):
            rows = await either.store.read(
                scoped(tables.CHUNK, tenant, "SELECT size FROM chunk WHERE tenant = ? ORDER BY id")
            )
            assert [row[0] for row in rows] == sizes
        compaction.cancel()
        with suppress(asyncio.CancelledError):
            await compaction

    either.runner.run(scene())


class Numbered:
    """A store in which somebody else numbers a text just before terms are added, or widens it meanwhile."""

    def __init__(self, archive: Archive, tenant: str, value: str) -> None:
        self._store = archive.store
        self._tenant = tenant
        self._value = value
        self._is_first = True

    async def read(self, statement: Statement) -> list[Row]:
        return await self._store.read(statement)

    async def write(self, *statements: Statement) -> list[int]:
        if any(one.sql.startswith("INSERT INTO term ") for one in statements) and self._is_first:
            self._is_first = False
            last = (await self._store.read(terms_sql.select_last_term()))[0][0]
            term = terms_sql.Term(last + 1, self._value, BITS["country"])
            await self._store.write(*terms_sql.insert_terms(self._tenant, [term]))
        if any(one.sql.startswith("UPDATE term ") for one in statements):
            (term,) = await self.terms()
            await self._store.write(
                terms_sql.widen_term(self._tenant, term._replace(fields=BITS["session_id"]))
            )
        return await self._store.write(*statements)

    async def terms(self) -> list[terms_sql.Term]:
        rows = await self._store.read(terms_sql.select_terms(self._tenant, [self._value]))
        return [terms_sql.Term._make(row) for row in rows]

    async def migrate(self) -> int:
        return await self._store.migrate()

    async def close(self) -> None:
        await self._store.close()


def test_a_text_that_another_process_has_numbered_for_another_field_is_found(archive: Archive) -> None:
    tenant = archive.tenant()
    store = Numbered(archive, tenant, "4711")

    async def scene() -> None:
        for number in range(CHUNK):
            await archive.write(tenant, Made(customer_id="4711"), START_MS + number)[1]
        assert await Compactor(store).compact(tenant, CHUNK) == CHUNK
        found = await archive.finder.find(
            tenant, criteria(search="4711"), Order.EVALUATED, 0, CHUNK, descending=True
        )
        assert found.total == CHUNK
        fields = sum(BITS[name] for name in ("customer_id", "country", "session_id"))
        assert [term.fields for term in await store.terms()] == [fields]

    archive.runner.run(scene())


class FindableMeanwhile(Numbered):
    """A store in which somebody else makes a text findable just before this process does."""

    async def write(self, *statements: Statement) -> list[int]:
        if any(one.sql.startswith("INSERT INTO term_search") for one in statements):
            for term in await self.terms():
                if not term.fields & SEARCHED_BITS:
                    seen = term._replace(fields=BITS["session_id"])
                    await self._store.write(
                        terms_sql.make_findable(self._tenant, seen, SEARCHED_BITS),
                        *terms_sql.insert_term_search([seen]),
                    )
        return await self._store.write(*statements)


def test_a_text_that_another_process_makes_findable_at_the_same_time_is_findable_once(
    either: Archive,
) -> None:
    tenant = either.tenant()
    store = FindableMeanwhile(either, tenant, "4711")

    async def scene() -> None:
        await either.write(tenant, Made(country="4711"), START_MS)[1]
        assert await Compactor(store).compact(tenant, 1) == 1
        await either.write(tenant, Made(customer_id="4711"), START_MS + 1)[1]
        assert await Compactor(store).compact(tenant, 1) == 1
        page = await either.finder.find(
            tenant, criteria(search="4711"), Order.EVALUATED, 0, CHUNK, descending=True
        )
        assert page.total == 1
        (term,) = await store.terms()
        assert term.fields == sum(BITS[name] for name in ("customer_id", "country", "session_id"))

    either.runner.run(scene())


def test_a_tenant_whose_chunks_cannot_be_stored_holds_up_no_other_and_is_tried_again(either: Archive) -> None:
    broken, sound = sorted((either.tenant(), either.tenant()))

    async def scene() -> None:
        for number in range(CHUNK):
            for tenant in (broken, sound):
                await either.write(tenant, Made(ip="192.0.2.1"), START_MS + number)[1]
        compactor = Compactor(either.store, chunk=CHUNK)
        with breaking(either.url or either.path, "chunk", broken):
            compaction = asyncio.create_task(compactor.run([broken, sound]))
            await made_of(either, sound, 1)
            assert await chunks(either, broken) == 0
            assert [(one.work, one.key) for one in compactor._isolation.failing] == [("history", broken)]
            assert failing()
        await made_of(either, broken, 1)
        async with asyncio.timeout(10):
            # The chunk is in the store a moment before it counts as done.
            while compactor._isolation.failing:  # noqa: ASYNC110
                await asyncio.sleep(0.01)
        compaction.cancel()
        with suppress(asyncio.CancelledError):
            await compaction

    either.runner.run(scene())


@pytest.mark.parametrize("script", SCRIPTS)
def test_long_texts_are_sealed_found_and_erased(either: Archive, script: str) -> None:
    tenant, texts = either.tenant(), [long_text(script, name) for name in ("customer", "device", "session")]
    customer, device, session = texts
    made = Made(customer_id=customer, device_id=device, session_id=session)

    async def found(**asked: str) -> int:
        page = await either.finder.find(
            tenant, criteria(**asked), Order.EVALUATED, 0, CHUNK, None, descending=True
        )
        return page.total

    async def scene() -> None:
        compactor = Compactor(either.store, chunk=1)
        for number in range(2 * CHUNK):
            await either.write(tenant, made, START_MS + number)[1]
            if number % 2:
                assert await compactor.compact(tenant, 1) == 1
        for asked in ({"customer": customer}, {"device": device}, {"session_id": session}):
            assert await found(**asked) == 2 * CHUNK
        assert await found(search=customer[500:700].casefold()) == 2 * CHUNK
        erased = await Eraser(either.store, b"s" * 32, START_MS).erase(tenant, customer)
        assert erased.events == 2 * CHUNK
        either.finder.forget(tenant)
        assert await found(customer=customer) == 0
        assert await found(search=customer[500:700].casefold()) == 0
        assert await found(customer=erased.pseudonym) == 2 * CHUNK

    either.runner.run(scene())
