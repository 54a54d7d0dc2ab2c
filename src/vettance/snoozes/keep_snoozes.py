"""Keeps the snoozes that have an effect in memory, in line with the store."""

from collections.abc import Callable, Mapping

from vettance import clock
from vettance.db.engine import Store
from vettance.snoozes import sql
from vettance.snoozes.snooze import Snooze, SnoozeBook, Snoozes


class SnoozeMirror:
    """Fills `books`, by the kind of rules; those who decide look into them."""

    def __init__(
        self, store: Store, books: Mapping[str, Snoozes], now_ms: Callable[[], int] = clock.now_ms
    ) -> None:
        self._store = store
        self._now_ms = now_ms
        self.books = books

    async def load(self) -> None:
        """Read those of all tenants, at start."""
        found: dict[tuple[str, str], list[Snooze]] = {}
        for row in await self._store.read(sql.select_current(self._now_ms())):
            one = sql.snooze_of(row)
            found.setdefault((one.kind, one.tenant), []).append(one)
        for (kind, tenant), snoozes in found.items():
            if kind in self.books:
                self.books[kind][tenant] = SnoozeBook(snoozes)

    async def reload(self, tenant: str) -> None:
        """Read those of one tenant again."""
        for kind, books in self.books.items():
            rows = await self._store.read(sql.select_current_of(tenant, kind, self._now_ms()))
            if rows:
                books[tenant] = SnoozeBook(map(sql.snooze_of, rows))
            else:
                books.pop(tenant, None)
