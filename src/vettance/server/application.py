"""The wiring: which engine, which mirror and which door, put together into one service. Read this first."""

import asyncio
import contextlib
import gc
import time
from collections.abc import Callable, Iterable
from pathlib import Path

from vettance import __version__, clock
from vettance.aml import sql as aml_sql
from vettance.aml.assemble import Aml, assemble
from vettance.aml.screening.api import ScreeningDoors
from vettance.aml.screening.rescreening import Rescreener
from vettance.aml.settings.api import AmlSettingsDoors
from vettance.audit.audited_store import AuditedStore
from vettance.db.engine import Store, StoreDown
from vettance.decisions import sql as decisions_sql
from vettance.decisions.active_rulesets import RuleCache
from vettance.decisions.api import DecisionDoors
from vettance.decisions.evaluate import Evaluator
from vettance.decisions.take_label import LabelTaker
from vettance.deployment.companion_process import Companion, CompanionProcess
from vettance.deployment.connect import connect_velocity, counters_of, stores_of
from vettance.events import sql as events_sql
from vettance.exchange.worker import importer
from vettance.fairness.skipped_rows import Skipped
from vettance.feedback.api import FeedbackDoors
from vettance.governance.governance import Governance
from vettance.history.api import HistoryDoors
from vettance.history.column_cache import ColumnCache
from vettance.history.decision_search import DecisionFinder
from vettance.history.entity_links import EntityLinker
from vettance.history.explain import Explainer
from vettance.history.statistics import DecisionCounter
from vettance.ids import IdSource
from vettance.jobs.api import JobDoors
from vettance.jobs.worker import Worker
from vettance.learning.learning_parts import assemble_learning
from vettance.limits.quota import QUOTA_WINDOW_S
from vettance.limits.quota_usage import keep_saving
from vettance.lists import sql as lists_sql
from vettance.lists.api import ListDoors
from vettance.models import sql as models_sql
from vettance.ops.gauges import Cache, Measurer, keep_noting, keep_reporting
from vettance.ops.start_progress import StartProgress
from vettance.processes.malloc import give_back
from vettance.redis_link.down import StateDown
from vettance.replays.replay import StoredReplays
from vettance.retention import sql as retention_sql
from vettance.reviews.review_parts import assemble_reviews
from vettance.rules.rule_reads import ConditionReader
from vettance.rules.ruleset import compile_document
from vettance.rules.sql import DECIDING
from vettance.rules.versioning import BROKE_GLASS
from vettance.server.change_announcer import ChangeAnnouncer
from vettance.server.change_feed import ChangeFeed, Reload, report_broken_glass
from vettance.server.deliverer import DELIVERER
from vettance.server.fraud_memory import fraud_memory
from vettance.server.indexer import INDEXER, START_AFTER_S
from vettance.server.key_mirror import KeyMirror
from vettance.server.network_schema import network_schema
from vettance.server.readiness import checks_of, notices_of
from vettance.server.rule_measures import RuleMeasures
from vettance.server.stop_times import SNAPSHOT_S_MAX
from vettance.server.tenant_tasks import TenantTasks
from vettance.settings.secret_key import load_secret
from vettance.settings.settings import ProcessRole, Settings
from vettance.snoozes import sql as snoozes_sql
from vettance.streams.watch_job import job_watcher
from vettance.telemetry.logs import logger
from vettance.telemetry.meters import CounterSlot, take_place
from vettance.telemetry.shared_counters import INDEXER_SLOT, deliverer_slot
from vettance.tenants import sql as tenants_sql
from vettance.tenants.browser_token import TokenIssuer
from vettance.tenants.key_scope import KeyScope
from vettance.tenants.key_use import keep_recording
from vettance.tenants.keyring import KeyRing
from vettance.tenants.new_keys import NewKeys
from vettance.tenants.vault import Vault
from vettance.watchlists import sql as watchlists_sql
from vettance.watchlists.refresh import IndexKeeper
from vettance.watchlists.search import Searchers
from vettance.watchlists.subject_screening import SHOWN_MIN
from vettance.web.audited_routes import audited
from vettance.web.edge import Asgi, Edge
from vettance.web.gate import Gate
from vettance.web.pages import Check, with_pages
from vettance.web.routing import reached_by
from vettance.webhooks import sql as webhooks_sql
from vettance.webhooks.api import WebhookDoors
from vettance.webhooks.http_client import WebhookClient
from vettance.webhooks.secret_check import record_when_proven
from vettance.websdk import sql as websdk_sql
from vettance.websdk.api import BrowserDoors
from vettance.websdk.pages import sdk_routes
from vettance.websdk.session_sync import SessionSync

_log = logger()


class Service:
    """One process of Vettance: everything it holds, in the order in which it is started and stopped."""

    #: Returns why this process must not answer together with others at its database, where that is so.
    misplaced: Callable[[], str | None] | None = None
    #: What the server calls: the edge, or what is wrapped around it.
    app: Asgi

    def __init__(self, settings: Settings, store: Store, place: CounterSlot | None = None) -> None:
        self.settings = settings
        self.store = store
        self.place = place or take_place()
        self.meters, self.ids = self.place.meters, IdSource()
        self.secret = secret = load_secret(settings)
        self.keys, self.tokens, vault = KeyRing(secret), TokenIssuer(secret), Vault(secret)
        skipped = self.skipped = Skipped(self.meters)
        self.mirror = KeyMirror(store, self.keys, self.tokens, skipped)
        self.stores = stores_of(settings)
        counters = self.counters = counters_of(settings, secret)
        velocity = connect_velocity(clock.now_ms)
        self.evaluator = Evaluator(store, velocity, self.ids, meters=self.meters, tenant_of=self.keys.tenant)
        models = self.learning = assemble_learning(store, settings, self.evaluator.models, self.meters)
        schema = self.schema = network_schema(settings)
        cache = self.rule_cache = RuleCache(lambda text: compile_document(text, schema), schema=schema)
        self.jobs = Worker(store, self.evaluator, self.ids)
        self.follower = SessionSync(
            store, self.evaluator.sessions, skipped=skipped, announcements=counters.batches
        )
        self.memory = fraud_memory(
            store, counters, velocity, self.evaluator, cache, settings.data / "memory", skipped
        )
        self.tally = counters.quota_usage(store)
        replica = self.replica = self.stores.replica(store, counters.positions, self.meters)
        announcer = ChangeAnnouncer(counters.changes, replica, self.evaluator.additions)
        acts = self.acts = AuditedStore(store, self.ids, on_change=announcer.note)
        self.lists = ListDoors(acts, self.ids, self.evaluator.lists, skipped=skipped)
        self.watchlists = IndexKeeper(store, settings.data)
        self.searchers = Searchers(settings.searchers, SHOWN_MIN, self.meters)
        self.screening = ScreeningDoors(
            acts, self.ids, self.watchlists, searchers=self.searchers, meters=self.meters
        )
        self.rescreener = Rescreener(store, self.screening.screener, self.watchlists, settings.data)
        self.aml = self._aml_parts(acts)
        self.importer = importer(store, self.evaluator, self.aml.monitor, self.ids, connect_velocity, models)
        self.worker = self._companion(DELIVERER, deliverer_slot(self.place.slot))
        self.postman = WebhookClient(unsafe=settings.unsafe_webhooks, name_servers=settings.name_servers)
        webhooks = WebhookDoors(
            acts, self.ids, vault, self.postman, self._subscribed, unsafe=settings.unsafe_webhooks
        )
        self.finder = DecisionFinder(self.reading, ColumnCache(settings.history_bytes))
        self.attendants = self._attendants()
        self.refresher = ChangeFeed(store, self._reloads(), batches={lists_sql.AREA: self.lists.reload})
        self.replays = StoredReplays(store, vault, claims=counters.claims)
        self.linker = EntityLinker(self.reading, self.finder)
        conditions = ConditionReader(schema)
        explainer = self.explainer = Explainer(
            store, self.evaluator, cache, self.linker, conditions, models.mirror, reading=self.reading
        )
        take_label = LabelTaker(acts, self.evaluator, counters.claims).take
        self.reviews = assemble_reviews(acts, self.ids, self.evaluator, take_label, self.keys.tenant)
        self.governance = Governance(acts, self.ids, settings.jurisdictions, self.evaluator, self.aml.monitor)
        measured = (cache, schema, self.governance.checker.admit_trial)
        self.measures = RuleMeasures(settings, store, acts, self.ids, *measured)
        routes = (
            *DecisionDoors(self.evaluator).routes(),
            *reached_by(self.lists.routes(), KeyScope.DECIDE, KeyScope.MANAGE),
            *reached_by(webhooks.routes(), KeyScope.DECIDE, KeyScope.MANAGE),
            *BrowserDoors(store, self.ids, self.tokens, self.evaluator, self.follower).routes(),
            *sdk_routes(),
            *HistoryDoors(self.finder, DecisionCounter(self.reading, self.finder), explainer).routes(),
            *FeedbackDoors(acts, self.ids, take_label).routes(),
            *reached_by(self.reviews.doors.routes(), KeyScope.REVIEW, KeyScope.DECIDE),
            *(*self.governance.routes(), *self.measures.routes()),
            *models.routes(acts, self.governance.checker),
            *JobDoors(store, self.ids, self.jobs).routes(),
            *(*self.aml.doors.routes(), *self.screening.routes(), *AmlSettingsDoors(acts).routes()),
        )
        self.routes = with_pages(audited(routes, acts), self._checks(), __version__, self._notices())
        self.app = self.edge = self._edge(settings)
        self._tasks: list[asyncio.Task[None]] = []

    def _companion(self, companion: Companion, slot: int) -> CompanionProcess:
        return CompanionProcess(companion, self.settings, self.store, self.place.board, slot)

    @property
    def reading(self) -> Store:
        """What is read from that may lag behind: the replica, where there is one."""
        return self.replica or self.store

    def _edge(self, settings: Settings) -> Edge:
        """Return what every request goes through first."""
        freshen = self.refresher.freshener(self.counters.changes)
        gate = Gate(self.keys, self.counters.limits(), self.tokens, freshen=freshen)
        return Edge(
            self.routes,
            gate,
            ids=self.ids,
            log_error=_log_error,
            proxies=settings.proxies,
            replays=self.replays,
            meters=self.meters,
            is_new_key=NewKeys(self.store, self.secret, self.keys, self._reload_rules_of_new).find,
        )

    def _aml_parts(self, store: Store) -> Aml:
        """Return what watches for money laundering."""
        velocity, turns = connect_velocity(), self.stores.turns(self.store)
        screener, countries = self.screening.screener, self.settings.jurisdictions
        aml = assemble(store, velocity, self.ids, self.settings.data, screener, countries, turns, self.meters)
        aml.monitor.additions = self.evaluator.additions
        self.jobs.watch_by(job_watcher(store, aml.monitor))
        return aml

    def _attendants(self) -> tuple[TenantTasks, TenantTasks]:
        """Return what fills memories from the log, which takes long, when rules change or a write failed."""
        aml = self.aml.rebuilder
        return (
            TenantTasks("memory", self._rebuild, self.evaluator.needs_rebuild),
            TenantTasks("aml_memory", aml.reload, self.aml.monitor.needs_rebuild, aml.follow),
        )

    def _checks(self) -> dict[str, Check]:
        def faults() -> Iterable[str | None]:
            yield self.misplaced and self.misplaced()
            yield from (one.fault for one in (self.refresher, *self.attendants))

        return checks_of(self.store, faults, self.counters.check)

    def _notices(self) -> dict[str, Check]:
        deciding = self.evaluator, self.aml.monitor
        return notices_of(self.screening.notice, deciding, self.replica.notice if self.replica else None)

    def _reloads(self) -> dict[str, Reload]:
        return {
            tenants_sql.AREA: self.mirror.reload_keys,
            tenants_sql.DELETED: self._forget_tenant,
            models_sql.AREA: lambda tenant, _subject: self.learning.mirror.reload(tenant),
            snoozes_sql.AREA: lambda tenant, _subject: self.governance.snoozes.reload(tenant),
            DECIDING.area: self.attendants[0].ask,
            BROKE_GLASS: report_broken_glass,
            webhooks_sql.AREA: self._reload_webhooks,
            websdk_sql.AREA: self.mirror.reload_tokens,
            aml_sql.AREA: self.attendants[1].ask,
            watchlists_sql.AREA: self.watchlists.reload,
            retention_sql.DONE: self._forget_names,
            retention_sql.DONE_AML: self._forget_aml_names,
        }

    async def start(self, progress: StartProgress | None = None) -> None:
        """Fill the mirrors and the memory from the store, then begin to follow it."""
        progress = progress or StartProgress()
        progress.begin("reading keys, lists and subscriptions")
        # Before anything is read: what changes from now on is read again.
        await self.refresher.start()
        # Early, so that retries that are due wait for no memory to be rebuilt.
        await self._reload_webhooks("", "")
        await self.mirror.reload_keys("", "")
        await self.mirror.reload_tokens("", "")
        await self.lists.load()
        await self.governance.snoozes.load()
        await self.learning.mirror.load()
        newest = await self.store.read(events_sql.select_last_event())
        if newest:
            self.ids.floor(newest[0][1])
            self.evaluator.clock.floor((await self.store.read(decisions_sql.select_last_evaluated()))[0][0])
        await self.tally.restore(int(time.time() // QUOTA_WINDOW_S))
        progress.begin("reading events into the memory of windows")
        started_ns = time.perf_counter_ns()
        replayed = await self.memory.start(progress.count)
        self.meters.rebuilt(time.perf_counter_ns() - started_ns, replayed)
        if replayed:
            _log.info("memory_rebuilt", events=replayed)
        newest = await self.store.read(aml_sql.select_last_event())
        if newest:
            self.ids.floor(newest[0][1])
        progress.begin("reading AML events into their memory")
        replayed = await self.aml.rebuilder.start(progress.count)
        if replayed:
            _log.info("aml_memory_rebuilt", events=replayed)
        progress.begin("opening signals and watchlists")
        await self.follower.catch_up()
        self.evaluator.follow(self.follower.freshen)
        await self.watchlists.reload()
        if self.watchlists.current is not None and self.settings.role is not ProcessRole.WORKER:
            self.searchers.ensure(self.watchlists.current.folder)
        # What was loaded stays for long: keeping it out of the collector's sight spares every later pass.
        gc.collect()
        give_back()
        gc.freeze()
        gc.set_threshold(50_000, 20, 50)
        caches: dict[str, Cache] = {"sessions": self.evaluator.sessions, "columns": self.finder}
        standing = self.edge, self.refresher, self.evaluator.needs_rebuild(), self.screening.screener, caches
        self._tasks = [
            *(asyncio.create_task(one.run()) for one in (self.refresher, *self.attendants, self.follower)),
            asyncio.create_task(self.memory.run()),
            asyncio.create_task(self.aml.preserver.run()),
            asyncio.create_task(keep_saving(self.tally)),
            asyncio.create_task(keep_recording(self.store, self.keys)),
            asyncio.create_task(keep_reporting(self.meters, *standing)),
            asyncio.create_task(keep_noting(self.store)),
            asyncio.create_task(record_when_proven(self.store, self.secret, self.keys)),
        ]
        if self.replica is not None:
            self._tasks.append(asyncio.create_task(self.replica.link.run()))
        if self.settings.role is not ProcessRole.WEB:
            self._tasks.append(asyncio.create_task(self.stores.keep_leading(self._do_duties)))

    async def _do_duties(self) -> None:
        """Do, for ever, what exactly one process of a deployment does at a time; if one fails, all end."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._companion(INDEXER, INDEXER_SLOT).keep(START_AFTER_S))
            duties = self.replays, self.jobs, self.importer, self.rescreener, self.measures.runner
            more = *self.learning.duties, self.reviews.keeper, self.reviews.bulk_keeper
            for duty in (*duties, *more):
                group.create_task(duty.run())

    async def stop(self) -> None:
        """End the background work and let go of the store; everything acknowledged is on disk by then."""
        await asyncio.gather(self.jobs.stop(), self.importer.stop())
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self.worker.stop()
        self.aml.names.close()
        self.screening.screener.close()
        await self.searchers.close()
        await self.governance.close()
        await self.postman.close()
        with contextlib.suppress(StoreDown, StateDown):
            await self.tally.save()
        with contextlib.suppress(StoreDown, OSError, TimeoutError):
            async with asyncio.timeout(SNAPSHOT_S_MAX):
                await self.memory.save()
                await self.aml.preserver.save_all()
        await self.counters.close()
        await self.reading.close()
        await self.store.close()

    async def _reload_rules_of_new(self, tenant: str) -> None:
        if not self.evaluator.has_rules(tenant):
            await self.attendants[0].ask(tenant)

    async def _reload_webhooks(self, _tenant: str, _subject: str) -> None:
        for row in await self.store.read(webhooks_sql.select_listeners()):
            self._subscribed(row[0])

    async def _forget_names(self, tenant: str, _subject: str) -> None:
        """Make what is remembered of a tenant anew from the log: a customer was erased from it."""
        await self.governance.snoozes.reload(tenant)
        self.finder.forget(tenant)
        self.memory.forget(tenant)
        self.evaluator.request_rebuild(tenant)
        await self.follower.begin_again(tenant)

    async def _forget_aml_names(self, tenant: str, _subject: str) -> None:
        """The same of AML, whose records are erased only where that is asked for."""
        self.aml.preserver.forget(tenant)
        self.aml.monitor.request_rebuild(tenant)

    async def _forget_tenant(self, tenant: str, _subject: str) -> None:
        """Answer no more for a tenant, whose rows are being removed, and remember nothing of it."""
        await self.mirror.reload_keys(tenant, "")
        self.evaluator.forget(tenant)
        self.aml.monitor.forget(tenant)
        self.watchlists.forget(tenant)
        self.aml.preserver.forget(tenant)
        self.memory.forget(tenant)
        self.finder.forget(tenant)
        self.reviews.opener.forget(tenant)
        self.learning.mirror.forget(tenant)

    def _subscribed(self, tenant: str) -> None:
        self.evaluator.subscribe(tenant)
        if self.settings.role is not ProcessRole.WEB:
            self.worker.ensure()

    async def _rebuild(self, tenant: str) -> None:
        self.meters.mended(tenant in self.evaluator.needs_rebuild())
        await self.memory.reload(tenant)

    def measurer(self, data: Path) -> Measurer:
        """Return what gathers the figures of this server, all its processes included."""
        levels = {
            "store_pending_writes": lambda: getattr(self.store, "pending", 0),
            "draining": lambda: self.edge.draining,
            **({} if self.replica is None else self.replica.levels),
        }
        return Measurer(
            self.place.board,
            self.store,
            data,
            levels,
            lambda: getattr(self.store, "writer_pid", None),
            self.counters.check,
        )


def _log_error(request_id: str, error: BaseException) -> None:
    _log.error("request_failed", request_id=request_id, exc_info=error)
