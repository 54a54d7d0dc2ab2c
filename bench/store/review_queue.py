"""Takes and settles reviews where a hundred thousand are open, one person or twenty at once.

Measures SQLite, and PostgreSQL as well where VETTANCE_DATABASE_URL names an empty database. Each act is
audited, and is all that a form does but for the page: reads, and one commit with its entry in the log.

    python bench review_queue [--open 100000] [--times 400] [--json]
"""

import argparse
import asyncio
import contextlib
import json
import os
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Final

import uvloop

from bench.fixtures.processes import machine
from vettance import clock
from vettance.audit.act import Act, acting
from vettance.audit.audited_store import AuditedStore
from vettance.clock import DAY_MS, HOUR_MS
from vettance.db.engine import Store
from vettance.deployment.connect import connect_store
from vettance.ids import IdSource
from vettance.reviews import sql
from vettance.reviews.review import Review, ReviewOutcome, ReviewState, Settlement, rank_of
from vettance.reviews.review_desk import ReviewDesk
from vettance.settings.settings import Settings
from vettance.tenants import sql as tenants_sql
from vettance.tenants.tenant import Tenant

TENANT: Final = Tenant(id="ten_" + "3" * 32, name="Queue")
NEXT_MS_MAX: Final = 20.0
SETTLE_MS_MAX: Final = 30.0
_PEOPLE: Final = 20
_TOGETHER: Final = 500


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--open", type=int, default=100_000, help="how many reviews wait")
    parser.add_argument("--times", type=int, default=400, help="how often each thing is done")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    given = parser.parse_args()
    found: dict[str, Any] = {"machine": machine(), "open": given.open}
    found["sqlite"] = uvloop.run(measured(None, given.open, given.times))
    if (url := os.environ.get("VETTANCE_DATABASE_URL")) is not None:
        found["postgres"] = uvloop.run(measured(url, given.open, given.times))
    if given.json:
        print(json.dumps(found))
        return
    print(f"{given.open:,} open reviews, load {found['machine']['load']}\n")
    print("| what | store | p50 | p95 | most | aim (p95) |\n|---|---|---:|---:|---:|---:|")
    for store in ("sqlite", "postgres"):
        for name, row in found.get(store, {}).items():
            aim = f"{row['aim_ms']:.0f} ms" if row["aim_ms"] else ""
            figures = " | ".join(f"{row[one]:.1f} ms" for one in ("p50", "p95", "most"))
            print(f"| {name} | {store} | {figures} | {aim} |")


async def measured(url: str | None, count: int, times: int) -> dict[str, dict[str, Any]]:
    """Return the milliseconds of each act on one store."""
    async with filled(url, count) as store:
        desk = ReviewDesk(AuditedStore(store, IdSource()), IdSource(), _no_feedback, {})
        people = [f"usr_{number:032x}" for number in range(_PEOPLE)]
        alone = [await timed(lambda: _take(desk, people[0])) for _ in range(times)]
        together: list[float] = []
        taken: list[str | None] = []

        async def take(person: str) -> None:
            began = time.perf_counter()
            taken.append(await _take(desk, person))
            together.append((time.perf_counter() - began) * 1000)

        for _ in range(max(1, times // _PEOPLE)):
            taken.clear()
            await asyncio.gather(*map(take, people))
            assert len({*taken} - {None}) == _PEOPLE, "two people met"
        settling = []
        said = Settlement(outcome=ReviewOutcome.APPROVE)
        for _ in range(times):
            decision = await _take(desk, people[0])
            assert decision is not None
            settling.append(await timed(lambda one=decision: _settle(desk, one, said, people[0])))  # type: ignore[misc]
        return {
            "next, one person after the other": figures(alone, NEXT_MS_MAX),
            f"next, {_PEOPLE} people at once": figures(together, NEXT_MS_MAX),
            "settling": figures(settling, SETTLE_MS_MAX),
        }


async def _settle(desk: ReviewDesk, decision: str, said: Settlement, by: str) -> None:
    with acted("settle", by):
        await desk.settle(TENANT, decision, said, by, held=True)


async def _take(desk: ReviewDesk, by: str) -> str | None:
    with acted("take", by):
        return await desk.take_next(TENANT.id, by)


async def _no_feedback(*_: Any) -> None:
    raise AssertionError("nothing becomes final here")


@contextlib.asynccontextmanager
async def filled(url: str | None, count: int) -> AsyncIterator[Store]:
    """Give a store with so many open reviews."""
    with tempfile.TemporaryDirectory() as folder:
        settings = Settings(data=Path(folder), database_url=url, secret=b"s" * 32)
        store = await connect_store(settings, writer="process")
        try:
            await store.migrate()
            now_ms, ids = clock.now_ms(), IdSource()
            await store.write(tenants_sql.insert_tenant(TENANT, now_ms))
            for start in range(0, count, _TOGETHER):
                opened = [
                    review(ids.make("evt", now_ms), one, now_ms) for one in range(start, start + _TOGETHER)
                ]
                await store.write(*map(sql.insert_review, opened))
            yield store
        finally:
            await store.close()


def review(decision: str, number: int, now_ms: int) -> Review:
    """Make an open review; scores and times are spread."""
    score, opened_at_ms = 50 + number % 50, now_ms - (number * 7919) % (20 * HOUR_MS)
    due_at_ms = opened_at_ms + DAY_MS
    return Review(
        tenant=TENANT.id,
        decision=decision,
        state=ReviewState.OPEN,
        score=score,
        amount_points=number % 30,
        rank=rank_of(score + number % 30, due_at_ms),
        opened_at_ms=opened_at_ms,
        due_at_ms=due_at_ms,
        expires_at_ms=due_at_ms + 30 * DAY_MS,
        customer=f"customer-{number % 5000}",
    )


def acted(action: str, by: str) -> AbstractContextManager[None]:
    """Have the log say who did it."""
    return acting(Act(by, action, tenant=TENANT.id))


async def timed(act: Callable[[], Awaitable[object]]) -> float:
    """Return how many milliseconds an act took."""
    began = time.perf_counter()
    await act()
    return (time.perf_counter() - began) * 1000


def figures(took_ms: list[float], aim_ms: float) -> dict[str, Any]:
    """Return the median, the 95th percentile and the most of some times."""
    ordered = sorted(took_ms)

    def at(share: float) -> float:
        return round(ordered[min(len(ordered) - 1, int(share * len(ordered)))], 2)

    return {"p50": at(0.5), "p95": at(0.95), "most": round(ordered[-1], 2), "aim_ms": aim_ms}


if __name__ == "__main__":
    main()
