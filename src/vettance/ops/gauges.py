"""Measure: what is looked up at the moment it is asked for: queues, lists, processes, disk."""

import asyncio
import contextlib
import os
import shutil
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple, Protocol

from vettance import __version__, clock
from vettance.aml.screening.freshness import is_stale
from vettance.clock import DAY_MS
from vettance.db.engine import Store, StoreDown
from vettance.fairness.isolation import Isolation, WorkFailure, failing, failures
from vettance.learning import drift_sql
from vettance.ops import sql
from vettance.telemetry.exposition import Family, exposition
from vettance.telemetry.meters import Meters, processes
from vettance.telemetry.shared_counters import SLOTS, SharedBoard
from vettance.watchlists import sql as watchlists_sql

#: What all questions to the store may take together. Prometheus gives up after 10 s by default.
ASK_S_MAX: Final = 3.0
#: A scrape every few seconds sees no more than this shows.
STAND_S: Final = 1.0


class Gauge(NamedTuple):
    """One row of the table of what is measured when it is asked for."""

    name: str
    help: str
    label: str = ""


GAUGES: Final = {
    gauge.name.removeprefix("vettance_"): gauge
    for gauge in (
        Gauge("vettance_build_info", "Always 1; the label is the version that runs.", "version"),
        Gauge("vettance_store_up", "1 when the store answered these very questions and takes writes."),
        Gauge("vettance_redis_up", "1 when Redis takes writes; not there without Redis."),
        Gauge("vettance_replica_used", "1 while reads go to the replica; not there without one."),
        Gauge("vettance_replica_lag_seconds", "How far the replica is behind, while that can be measured."),
        Gauge("vettance_store_pending_writes", "Writes that wait for their commit."),
        Gauge("vettance_store_bytes", "Size of the embedded store: its file and its log.", "part"),
        Gauge("vettance_disk_free_bytes", "Free space where the data folder lies."),
        Gauge("vettance_draining", "1 while the service is about to stop."),
        Gauge("vettance_jobs_waiting", "Accepted events that wait for their decision."),
        Gauge("vettance_jobs_oldest_seconds", "How long the oldest of them has waited."),
        Gauge("vettance_import_events_waiting", "Imported events without a decision.", "state"),
        Gauge("vettance_import_oldest_seconds", "Since the oldest undecided import was begun.", "state"),
        Gauge("vettance_stream_messages_total", "Messages of streams, by what became of them.", "result"),
        Gauge(
            "vettance_stream_silent_seconds", "How long the consumer of a stream longest silent has been so."
        ),
        Gauge("vettance_webhook_deliveries_waiting", "Deliveries that are not settled."),
        Gauge("vettance_webhook_overdue_seconds", "How long the delivery longest due has been due."),
        Gauge(
            "vettance_watchlist_age_seconds", "Since a list was last compared with its publisher.", "source"
        ),
        Gauge("vettance_watchlist_stale", "1 for a list that was not compared for a week.", "source"),
        Gauge("vettance_watchlist_entities", "Entities of the version of a list that counts.", "source"),
        Gauge(
            "vettance_rules_break_glass_total", "Rules and models put into force past their approval.", "kind"
        ),
        Gauge("vettance_models", "Models of tenants that are in service."),
        Gauge("vettance_model_age_seconds", "Since the oldest of them was trained."),
        Gauge(
            "vettance_model_average_precision", "The lowest of them, on the newest frauds of its training."
        ),
        Gauge(
            "vettance_model_drift", "The largest population stability index of them, measured once a week."
        ),
        Gauge("vettance_models_drifting", "Those of them with an index from 0.2 on."),
        Gauge("vettance_process_resident_bytes", "Resident memory, by what the process does.", "process"),
        Gauge("vettance_process_cpu_seconds_total", "Processor time used.", "process"),
        Gauge("vettance_process_open_files", "Open files and connections.", "process"),
        Gauge("vettance_process_count", "Processes of the server that are alive.", "process"),
    )
}

#: What comes into force only once somebody else approves: the kinds of rule sets, and models.
RULE_KINDS: Final = ("fraud", "aml", "model")
#: What an import goes through before it is decided.
IMPORT_STATES: Final = ("reading", "waiting")
#: What becomes of messages of streams, as consumers count it.
STREAM_RESULTS: Final = ("accepted", "repeated", "refused", "result_sent", "dead_letter_sent")
_PAGE_BYTES: Final = os.sysconf("SC_PAGE_SIZE")
_TICKS: Final = os.sysconf("SC_CLK_TCK")

Figures = list[tuple[str, float]]


class Measurer:
    """Gathers every figure of one server. `levels` are figures that the process has at hand, by their names
    in `GAUGES`, None where there is none now; `writer_pid` is the writer process of the embedded store, if
    there is one. `check_redis` says why Redis cannot serve, where there is one."""

    def __init__(
        self,
        board: SharedBoard,
        store: Store,
        data: Path,
        levels: Mapping[str, Callable[[], float | None]],
        writer_pid: Callable[[], int | None] = lambda: None,
        check_redis: Callable[[], Awaitable[str | None]] | None = None,
        now_ms: Callable[[], int] = clock.now_ms,
    ) -> None:
        self._slots = [board.slot(number) for number in range(SLOTS)]
        self._store = store
        self._data = data
        self._levels = levels
        self._writer_pid = writer_pid
        self._check_redis = check_redis
        self._now_ms = now_ms
        self._asking = asyncio.Lock()
        self._isolation = Isolation("metrics")

    async def text(self) -> bytes:
        """Return everything as Prometheus reads it; what the store does not answer is left out."""
        async with self._asking:
            found: dict[str, Figures] = {"build_info": [(__version__, 1)]}
            for name, level in self._levels.items():
                if (figure := level()) is not None:
                    found[name] = [("", float(figure))]
            found.update(await self._ask_store())
            found.update(await self._ask_redis())
            found.update(self._files())
            found.update(self._processes())
        families = [
            Family(gauge.name, gauge.help, _kind(gauge.name), gauge.label, found[name])
            for name, gauge in GAUGES.items()
            if name in found
        ]
        return exposition([slot for slot in self._slots if slot[0]], families)

    async def _ask_store(self) -> dict[str, Figures]:
        found: dict[str, Figures] = {}
        questions: tuple[Callable[[], Awaitable[dict[str, Figures]]], ...] = (
            self._jobs,
            self._imports,
            self._streams,
            self._deliveries,
            self._watchlists,
            self._broken_glass,
            self._models,
        )
        try:
            async with asyncio.timeout(ASK_S_MAX):
                for question in questions:
                    with self._isolation.of(question.__name__):
                        found.update(await question())
        except (StoreDown, TimeoutError):
            return {**found, "store_up": [("", 0)]}
        return {**found, "store_up": [("", self._store.healthy())]}

    async def _ask_redis(self) -> dict[str, Figures]:
        if self._check_redis is None:
            return {}
        try:
            async with asyncio.timeout(ASK_S_MAX):
                is_up = await self._check_redis() is None
        except TimeoutError:
            is_up = False
        return {"redis_up": [("", is_up)]}

    async def _jobs(self) -> dict[str, Figures]:
        (waiting,) = (await self._store.read(sql.count_waiting_jobs()))[0]
        oldest = await self._store.read(sql.select_oldest_job())
        return {
            "jobs_waiting": [("", waiting)],
            "jobs_oldest_seconds": [("", self._age_s(oldest[0][0]) if oldest else 0)],
        }

    async def _imports(self) -> dict[str, Figures]:
        """An import is `reading` until its file is read to the end, then `waiting` until all is decided."""
        events: dict[str, int] = dict(await self._store.read(sql.count_imported_events()))
        begun = {state: at_ms for state, _, at_ms in await self._store.read(sql.select_waiting_imports())}
        return {
            "import_events_waiting": [(state, events.get(state, 0)) for state in IMPORT_STATES],
            "import_oldest_seconds": [
                (state, self._age_s(begun[state]) if state in begun else 0) for state in IMPORT_STATES
            ],
        }

    async def _streams(self) -> dict[str, Figures]:
        """A consumer that is silent for a day is taken for one that was given up."""
        since_ms = self._now_ms() - DAY_MS
        *totals, seen_at_ms = (await self._store.read(sql.count_streams(since_ms)))[0]
        return {
            "stream_messages_total": list(zip(STREAM_RESULTS, totals, strict=True)),
            "stream_silent_seconds": [("", self._age_s(seen_at_ms) if seen_at_ms is not None else 0)],
        }

    async def _deliveries(self) -> dict[str, Figures]:
        waiting, due_at_ms = (await self._store.read(sql.count_waiting_deliveries()))[0]
        return {
            "webhook_deliveries_waiting": [("", waiting)],
            "webhook_overdue_seconds": [("", self._age_s(due_at_ms) if due_at_ms is not None else 0)],
        }

    async def _watchlists(self) -> dict[str, Figures]:
        rows = await self._store.read(watchlists_sql.select_current())
        versions = [watchlists_sql.version_of(row) for row in rows]
        return {
            "watchlist_age_seconds": [
                (one.version.source, self._age_s(one.checked_at_ms)) for one in versions
            ],
            "watchlist_stale": [(one.version.source, is_stale(one, self._now_ms())) for one in versions],
            "watchlist_entities": [(one.version.source, one.version.entities) for one in versions],
        }

    async def _broken_glass(self) -> dict[str, Figures]:
        counted: dict[str, int] = dict(await self._store.read(sql.count_broken_glass()))
        return {"rules_break_glass_total": [(kind, counted.get(kind, 0)) for kind in RULE_KINDS]}

    async def _models(self) -> dict[str, Figures]:
        """What there is no model for has no figure."""
        count, oldest_ms, precision = (await self._store.read(drift_sql.count_models()))[0]
        largest, drifting = (await self._store.read(drift_sql.count_drifts()))[0]
        found = {
            "models": count,
            "model_age_seconds": None if oldest_ms is None else self._age_s(oldest_ms),
            "model_average_precision": precision,
            "model_drift": largest,
            "models_drifting": drifting or 0,
        }
        return {name: [("", float(figure))] for name, figure in found.items() if figure is not None}

    def _age_s(self, since_ms: int) -> float:
        return max(0, self._now_ms() - since_ms) / 1000

    def _files(self) -> dict[str, Figures]:
        found: dict[str, Figures] = {}
        with contextlib.suppress(OSError):
            found["disk_free_bytes"] = [("", shutil.disk_usage(self._data).free)]
        parts = (("file", "vettance.db"), ("log", "vettance.db-wal"))
        found["store_bytes"] = [
            (part, (self._data / name).stat().st_size) for part, name in parts if (self._data / name).exists()
        ]
        return found

    def _processes(self) -> dict[str, Figures]:
        """Look at every process of the server where the system shows it (/proc)."""
        family = [(one.role, one.pid) for one in processes(self._slots)]
        writer = self._writer_pid()
        if writer is not None:
            family.append(("writer", writer))
        names = ("process_resident_bytes", "process_cpu_seconds_total", "process_open_files", "process_count")
        sums: dict[str, dict[str, float]] = {name: {} for name in names}
        for role, pid in family:
            for name, figure in zip(names, _weigh(pid), strict=False):
                sums[name][role] = sums[name].get(role, 0) + figure
        return {name: list(figures.items()) for name, figures in sums.items()}


class RequestLoad(Protocol):
    """Knows how many requests are at work."""

    in_flight: int


class SearchLoad(Protocol):
    """Knows the searches of this process."""

    @property
    def searches(self) -> int:
        """How many wait or are made."""

    @property
    def searchers(self) -> Sequence[int]:
        """The ids of the processes that make them."""


class FeedStatus(Protocol):
    """Knows why it cannot follow the configuration, or None."""

    @property
    def fault(self) -> str | None:
        """Why."""


class Cache(Protocol):
    """Knows what it remembers of tenants."""

    @property
    def usage(self) -> tuple[int, int, int]:
        """Bytes in all, bytes of the tenant with the most, and evictions so far."""


async def keep_reporting(
    meters: Meters,
    edge: RequestLoad,
    refresher: FeedStatus,
    astray: Collection[str],
    searching: SearchLoad,
    caches: Mapping[str, Cache],
) -> None:
    """Note for ever how this process does, for the process that answers for all of them."""
    while True:
        meters.stands(edge.in_flight, len(astray), stale=refresher.fault is not None)
        meters.searching(searching.searches, searching.searchers)
        for name, cache in caches.items():
            meters.remembers(name, cache.usage)
        _report_failures(meters)
        await asyncio.sleep(STAND_S)


async def keep_reporting_failures(meters: Meters) -> None:
    """Note for ever what fails in a process that answers nothing."""
    while True:
        _report_failures(meters)
        await asyncio.sleep(STAND_S)


def _report_failures(meters: Meters) -> None:
    meters.works(failures(), Counter(one.work for one in failing()))


async def keep_noting(store: Store, now_ms: Callable[[], int] = clock.now_ms) -> None:
    """Note for ever in the store what fails in this process for one of many, for the doctor."""
    noted: dict[tuple[str, str], WorkFailure] = {}
    isolation = Isolation("metrics")
    while True:
        await asyncio.sleep(STAND_S)
        now = {(one.work, one.key): one for one in failing()}
        with contextlib.suppress(StoreDown), isolation.of(keep_noting.__name__):
            fresh = [sql.note_failing(one, now_ms()) for key, one in now.items() if noted.get(key) != one]
            mended = [sql.forget_failing(*key) for key in noted if key not in now]
            if fresh or mended:
                await store.write(*fresh, *mended)
            noted = now


def _weigh(pid: int) -> tuple[float, ...]:
    """(resident bytes, processor seconds, open files, 1) of a living process; nothing of any other."""
    folder = Path(f"/proc/{pid}")
    try:
        resident = int((folder / "statm").read_text().split()[1]) * _PAGE_BYTES
        fields = (folder / "stat").read_text().rpartition(")")[2].split()
        files = len(os.listdir(folder / "fd"))  # noqa: PTH208 - only how many
    except (OSError, IndexError, ValueError):
        return ()
    return resident, (int(fields[11]) + int(fields[12])) / _TICKS, files, 1


def _kind(name: str) -> str:
    return "counter" if name.endswith("_total") else "gauge"
