"""A review desk on a real store, with a clock of its own."""

from pathlib import Path

from vettance.clock import DAY_MS, HOUR_MS
from vettance.db.engine import Store
from vettance.deployment.connect import connect_store
from vettance.feedback.label import Label
from vettance.ids import IdSource
from vettance.lists.entry import ListBook
from vettance.reviews import sql
from vettance.reviews.review import (
    Review,
    ReviewOutcome,
    ReviewState,
    Settlement,
    rank_of,
)
from vettance.reviews.review_desk import ReviewDesk, ReviewKeeper
from vettance.settings.settings import Settings
from vettance.tenants import sql as tenants_sql
from vettance.tenants.tenant import Tenant

TENANT = Tenant(id="ten_" + "1" * 32, name="Desk", review_checks=100)
START_MS = 1_790_000_000_000
DENY = Settlement(outcome=ReviewOutcome.DENY, note="No.")


class Office:
    """A desk on a store, with a clock of its own; `took` is the feedback that came of it."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.now_ms = START_MS
        self.took: list[Label] = []
        self.books: dict[str, ListBook] = {}
        self.desk = self.another()
        self.keeper = ReviewKeeper(store, self.desk, lambda _: TENANT, lambda: self.now_ms)

    def another(self) -> ReviewDesk:
        """The desk of another process."""
        return ReviewDesk(self.store, IdSource(), self.take, self.books, lambda: self.now_ms)

    async def take(self, feedback, statements) -> None:  # type: ignore[no-untyped-def]
        await self.store.write(*statements)
        self.took.append(feedback.label)

    async def open(self, count: int, score: int = 60) -> list[str]:
        made = [f"evt_{number + score * 1000:032x}" for number in range(count)]
        for place, decision in enumerate(made):
            due_ms = self.now_ms + place + 24 * HOUR_MS
            await self.store.write(
                sql.insert_review(
                    Review(
                        tenant=TENANT.id,
                        decision=decision,
                        state=ReviewState.OPEN,
                        score=score,
                        amount_points=0,
                        rank=rank_of(score, due_ms),
                        opened_at_ms=self.now_ms,
                        due_at_ms=due_ms,
                        expires_at_ms=due_ms + 30 * DAY_MS,
                    )
                )
            )
        return made


class opened:  # noqa: N801 - used like a function
    def __init__(self, folder: Path, url: str | None) -> None:
        self.settings = Settings(data=folder, database_url=url, secret=b"s" * 32)

    async def __aenter__(self) -> Store:
        self.store = await connect_store(self.settings, writer="thread")
        await self.store.migrate()
        await self.store.write(tenants_sql.insert_tenant(TENANT, START_MS))
        return self.store

    async def __aexit__(self, *_: object) -> None:
        await self.store.close()
