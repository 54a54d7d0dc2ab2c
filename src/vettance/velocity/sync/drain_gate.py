"""The drain gate: events of a tenant pass, unless its memory is being written down or exchanged."""

import asyncio


class DrainGate:
    """Counts the events of each tenant that are under way, and holds new ones back on request.

    One task at a time holds a tenant back; the next one waits until events were let through again.
    """

    def __init__(self) -> None:
        self._gates: dict[str, asyncio.Event] = {}
        self._holding: dict[str, asyncio.Lock] = {}
        self._under_way: dict[str, int] = {}
        self._quiet: dict[str, asyncio.Event] = {}

    @property
    def is_open(self) -> bool:
        """Whether no tenant's events are held back."""
        return not self._gates

    async def wait(self, tenant: str) -> None:
        """Wait until events of a tenant may go through; then `enter` before anything else is awaited."""
        while (gate := self._gates.get(tenant)) is not None:
            await gate.wait()

    def enter(self, tenant: str) -> None:
        """Count an event as under way."""
        self._under_way[tenant] = self._under_way.get(tenant, 0) + 1

    def leave(self, tenant: str) -> None:
        """Count an event as stored, or as refused."""
        self._under_way[tenant] -= 1
        if self._quiet and not self._under_way[tenant] and tenant in self._quiet:
            self._quiet.pop(tenant).set()

    async def hold(self, tenant: str) -> None:
        """Hold back new events of a tenant, and wait until those under way are stored."""
        await self._holding.setdefault(tenant, asyncio.Lock()).acquire()
        self._gates[tenant] = asyncio.Event()
        try:
            if self._under_way.get(tenant, 0):
                self._quiet[tenant] = quiet = asyncio.Event()
                await quiet.wait()
        except BaseException:
            self._quiet.pop(tenant, None)
            self.let_go(tenant)
            raise

    def let_go(self, tenant: str) -> None:
        """Let the events of a tenant through again. Only the task that held them back may."""
        self._gates.pop(tenant).set()
        self._holding[tenant].release()
