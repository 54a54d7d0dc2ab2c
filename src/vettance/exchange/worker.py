"""The worker of imports: has decided what they brought, each import in the order of its own time."""

import asyncio
import contextlib
from collections.abc import Callable, Mapping
from typing import Any, Final

from vettance import clock
from vettance.aml.aml_memory import SnapshotVelocity
from vettance.aml.monitor import Monitor
from vettance.db.engine import Lost, Store, StoreDown
from vettance.decisions.evaluate import Evaluator
from vettance.errors import InternalError, Unavailable
from vettance.events.sql import ImportRun
from vettance.exchange import sql
from vettance.exchange.import_rows import AmlKind, FeatureRecorder, FraudKind, ImportKind, fail
from vettance.fairness.isolation import Isolation
from vettance.ids import IdSource
from vettance.jobs import sql as jobs_sql
from vettance.telemetry.logs import logger

#: Imports come from the command line, which cannot wake us.
LOOK_S: Final = 1.0
#: Events taken at a time: some milliseconds during which no other event is thought about.
BATCH: Final = 64
STOP_S_MAX: Final = 3.0

_log = logger()


class Importer:
    """Decides one import after the other, while the live traffic goes on.

    It remembers nothing that the log does not hold, so an interrupted import goes on with the same answers.
    """

    def __init__(
        self,
        store: Store,
        kinds: Mapping[str, ImportKind[Any]],
        now_ms: Callable[[], int] = clock.now_ms,
        batch: int = BATCH,
    ) -> None:
        self._store = store
        self._kinds = kinds
        self._now_ms = now_ms
        self._batch = batch
        self._isolation = Isolation("import")
        self._stopping = False
        self._idle = asyncio.Event()
        self._idle.set()

    async def run(self) -> None:
        """Decide imported events until stopped."""
        while not self._stopping:
            self._idle.clear()
            with contextlib.suppress(StoreDown):
                await self.drain()
            self._idle.set()
            await asyncio.sleep(LOOK_S)

    async def stop(self) -> None:
        """Begin no further batch, and wait a little for the one under way."""
        self._stopping = True
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(STOP_S_MAX):
                await self._idle.wait()

    async def drain(self) -> None:
        """Decide every import that waits now. Of a tenant that cannot be served the later ones wait, too."""
        behind: set[tuple[str, str]] = set()
        for row in await self._store.read(sql.select_waiting()):
            waiting = sql.WaitingImport._make(row)
            whose = waiting.tenant, waiting.kind
            if whose in behind or self._stopping:
                continue
            behind.add(whose)
            key = f"{waiting.tenant}:{waiting.kind}"
            if not self._isolation.is_due(key):
                continue
            with self._isolation.of(key):
                if await self._decide(waiting):
                    behind.discard(whose)

    async def _decide(self, waiting: sql.WaitingImport) -> bool:
        """Decide what an import brought; answers whether all of it is decided."""
        tenant, kind = waiting.tenant, self._kinds[waiting.kind]
        past, alone = None, 0
        run = await self._begin(waiting, kind)
        while rows := await self._store.read(
            jobs_sql.select_queued(tenant, run.id, 1 if alone else self._batch)
        ):
            past = await kind.open(tenant, run, past)
            if self._stopping or past is None:
                return False
            jobs = [jobs_sql.AcceptedJob._make(row) for row in rows]
            try:
                await kind.take(jobs, past)
            except (Unavailable, Lost):
                return False  # What the log does not hold is tried again.
            except StoreDown:
                raise
            except Exception:  # noqa: BLE001
                # A poisonous event must not hold up the others: taken alone, it is the one that fails.
                past = None
                if len(jobs) > 1:
                    alone = len(jobs)
                    continue
                _log.exception("imported_event_failed", job=jobs[0].id, tenant=tenant)
                await fail(self._store, jobs[0], InternalError(run.id), self._now_ms())
            alone = max(0, alone - 1)
            await asyncio.sleep(0)
        await self._store.write(sql.end_import(tenant, run.id))
        _log.info("import_decided", tenant=tenant, import_id=run.id)
        return True

    async def _begin(self, waiting: sql.WaitingImport, kind: ImportKind[Any]) -> ImportRun:
        """Record what an import sees of the log, unless that was done before an interruption."""
        base = waiting.base
        if base is None:
            base = await kind.newest()
            await self._store.write(sql.set_base(waiting.tenant, waiting.id, base))
        return ImportRun(waiting.id, base, waiting.first_ms or 0, waiting.last_ms or 0)


def importer(
    store: Store,
    evaluator: Evaluator,
    monitor: Monitor,
    ids: IdSource,
    engine: Callable[[], SnapshotVelocity],
    learning: FeatureRecorder,
) -> Importer:
    """Return the importer of a service; `engine` makes an empty memory."""
    kinds: dict[str, ImportKind[Any]] = {
        sql.FRAUD: FraudKind(store, evaluator, ids, engine, learning),
        sql.AML: AmlKind(store, monitor, engine),
    }
    return Importer(store, kinds)
