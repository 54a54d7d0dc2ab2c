"""What takes long for a tenant is done beside the look for changes, until it is done."""

import asyncio

from vettance.db.engine import StoreDown
from vettance.server.tenant_tasks import TenantTasks


class Work:
    """Notes for whom it was done, and fails as it is told to."""

    def __init__(self) -> None:
        self.failing: dict[str, Exception] = {}
        self.astray: set[str] = set()
        self.done: list[str] = []
        self.followed = 0
        self.now_s = 0.0
        self.has_done = asyncio.Event()
        self.attendant = TenantTasks(
            "memory", self._do, lambda: self.astray, self._follow, lambda: self.now_s
        )

    async def _do(self, tenant: str) -> None:
        await asyncio.sleep(0)
        if tenant in self.failing:
            raise self.failing[tenant]
        self.astray.discard(tenant)
        self.done.append(tenant)
        self.has_done.set()

    async def _follow(self) -> None:
        self.followed += 1


async def test_what_fails_for_one_tenant_is_tried_again_and_keeps_nobody_waiting() -> None:
    work = Work()
    work.failing = {"ten_a": StoreDown("away"), "ten_b": ValueError("a document of another time")}
    work.astray = {"ten_c"}
    for tenant in ("ten_a", "ten_b", "ten_d"):
        await work.attendant.ask(tenant)
    await work.attendant.look()
    assert work.done == ["ten_d", "ten_c"]
    assert work.attendant.fault == "away"
    work.failing.clear()
    await work.attendant.look()
    assert work.attendant.fault == "away", "it is not tried again at once"
    work.now_s = 10
    await work.attendant.look()
    assert sorted(work.done[2:]) == ["ten_a", "ten_b"]
    assert work.attendant.fault is None
    await work.attendant.look()
    assert len(work.done) == 4
    assert work.followed == 4


async def test_who_asks_while_it_is_done_has_it_done_once_more() -> None:
    work = Work()
    await work.attendant.ask("ten_a")
    looking = asyncio.create_task(work.attendant.look())
    await asyncio.sleep(0)
    await work.attendant.ask("ten_a")
    await looking
    await work.attendant.look()
    assert work.done == ["ten_a", "ten_a"]


async def test_it_is_done_without_anybody_looking() -> None:
    work = Work()
    running = asyncio.create_task(work.attendant.run())
    try:
        await asyncio.sleep(0)
        await work.attendant.ask("ten_a")
        await asyncio.wait_for(work.has_done.wait(), 30)
    finally:
        running.cancel()
