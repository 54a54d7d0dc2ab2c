"""The indexer: the process that works behind the log of decisions, a companion of the server."""

import asyncio
import contextlib
import socket
import sys
from typing import Final

from vettance.aml.features import aml_schema
from vettance.aml.quality.count_alerts import WatchLogs
from vettance.db.engine import Store, StoreDown
from vettance.decisions.active_rulesets import RuleCache
from vettance.deployment.companion_process import Companion
from vettance.deployment.connect import stores_of
from vettance.history.compaction import SHARED_STEP, STEP, Compactor
from vettance.ops.gauges import keep_noting, keep_reporting_failures
from vettance.quality.count_decisions import DecisionLogs
from vettance.quality.count_rules import RuleCounter
from vettance.rules.ruleset import compile_document
from vettance.server.companion import accompany, run_companion
from vettance.server.network_schema import network_schema
from vettance.settings.settings import Settings
from vettance.telemetry.meters import Meters, take_place
from vettance.tenants import sql as tenants_sql

INDEXER: Final = Companion("indexer", "vettance.server.indexer", stop_s_max=2.0)
#: When it starts: the first seconds of a server belong to its own start.
START_AFTER_S: Final = 5.0

#: How long it waits before it asks a store again that was down.
_AGAIN_S: Final = 1.0
#: What it does may wait for everything else.
_NICENESS: Final = 10


class Indexer:
    """Lays decisions out by columns, and counts what the rules of fraud and of AML did."""

    def __init__(self, settings: Settings, store: Store, meters: Meters) -> None:
        """Raises `FileUnreadable` where a file of networks that the settings name cannot be read."""
        fraud, aml = network_schema(settings), aml_schema(settings.jurisdictions)
        self._store = store
        self._meters = meters
        self._step = SHARED_STEP if settings.database_url else STEP
        self._fraud_rules = RuleCache(lambda text: compile_document(text, fraud), schema=fraud)
        self._aml_rules = RuleCache(lambda text: compile_document(text, aml))
        self._stopping = asyncio.Event()

    def stop(self) -> None:
        """Have `run` finish; a chunk that is under way is begun again at the next start."""
        self._stopping.set()

    async def run(self) -> None:
        """Work until stopped; wait for a store that is down."""
        tenants = await self._read_tenants()
        logs = DecisionLogs(self._store, self._fraud_rules), WatchLogs(self._store, self._aml_rules)
        tasks = [
            asyncio.create_task(Compactor(self._store, step=self._step).run(tenants)),
            *(asyncio.create_task(RuleCounter(self._store, one, tenants).run()) for one in logs),
            asyncio.create_task(keep_reporting_failures(self._meters)),
            asyncio.create_task(keep_noting(self._store)),
        ]
        stopping = asyncio.create_task(self._stopping.wait())
        try:
            done, _ = await asyncio.wait((*tasks, stopping), return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                await task
        finally:
            for task in (*tasks, stopping):
                task.cancel()
            await asyncio.gather(*tasks, stopping, return_exceptions=True)

    async def _read_tenants(self) -> list[str]:
        while not self._stopping.is_set():
            try:
                return [row[0] for row in await self._store.read(tenants_sql.select_tenants())]
            except StoreDown:
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(_AGAIN_S):
                        await self._stopping.wait()
        return []


async def work(settings: Settings, link: socket.socket) -> None:
    """Work until stopped."""
    meters = take_place("indexer").meters
    await accompany(stores_of(settings), link, lambda store: Indexer(settings, store, meters))


if __name__ == "__main__":
    sys.exit(run_companion(sys.argv[1:], INDEXER.name, _NICENESS, work))
