"""Documents of rules are checked in a process of their own, and tenants take turns."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
import uvloop

from vettance.errors import Unavailable
from vettance.governance.check_documents import DocumentChecker
from vettance.reference.jurisdictions import Jurisdictions
from vettance.rules.sql import DECIDING

DOCUMENT = """
name: shop
rules:
  - id: large
    name: Large
    reason: LARGE
    explanation: The amount is large.
    when: metadata.amount > 100
    score: 60
    mode: shadow
"""


@asynccontextmanager
async def checking() -> AsyncIterator[DocumentChecker]:
    checker = DocumentChecker(Jurisdictions())
    try:
        yield checker
    finally:
        await checker.close()


async def test_nobody_waits_for_more_than_one_document_of_another() -> None:
    ended: list[str] = []
    async with checking() as checker:

        async def check(tenant: str) -> None:
            assert (await checker.check(tenant, DECIDING, DOCUMENT)).is_good
            ended.append(tenant)

        eager = [asyncio.create_task(check("ten_eager")) for _ in range(3)]
        await asyncio.sleep(0)
        await asyncio.gather(check("ten_other"), *eager)
    assert ended == ["ten_eager", "ten_other", "ten_eager", "ten_eager"]


async def test_a_tenant_has_few_documents_waiting_and_room_again_after_them() -> None:
    async with checking() as checker:
        asked = [checker.check("ten_eager", DECIDING, DOCUMENT) for _ in range(5)]
        found = await asyncio.gather(*asked, return_exceptions=True)
        assert sum(isinstance(one, Unavailable) for one in found) == 2
        assert (await checker.check("ten_eager", DECIDING, DOCUMENT)).is_good


async def test_a_check_that_is_given_up_leaves_the_turn_to_others() -> None:
    async with checking() as checker:
        given_up = asyncio.create_task(checker.check("ten_eager", DECIDING, DOCUMENT))
        await asyncio.sleep(0.05)
        given_up.cancel()
        with pytest.raises(asyncio.CancelledError):
            await given_up
        assert (await checker.check("ten_other", DECIDING, DOCUMENT)).is_good


def test_a_process_that_was_killed_refuses_no_document() -> None:
    # On the event loop of the service, which raises where that of the tests keeps silent.
    async def whole() -> None:
        async with checking() as checker:
            assert (await checker.check("ten_first", DECIDING, DOCUMENT)).is_good
            process = checker._process
            assert process is not None
            process.kill()
            await process.wait()
            assert (await checker.check("ten_first", DECIDING, DOCUMENT)).is_good

    uvloop.run(whole())
