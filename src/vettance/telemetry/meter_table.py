"""The table of meters: everything that is counted while it happens, and the values of each label."""

import enum
from typing import Final, NamedTuple

#: What is done for many in the background; metrics have a value for each, and no others.
WORKS: Final = (
    *("configuration", "memory", "aml_memory", "snapshot", "history", "sessions", "quota"),
    *("jobs", "replays", "rescreening", "retention", "metrics", "key_use", "import", "doctor"),
    *("webhook_lane", "webhook_change", "webhook_row", "webhook_settlement", "webhook_succession"),
    *("webhook_backlog", "webhook_fan_out", "reviews", "quality", "backtests", "learning"),
)

_NS: Final = 1e-9

#: Upper bounds in seconds. The finest are around what a decision takes, the coarsest around what is given up.
LATENCY_S: Final = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
BATCH: Final = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 512.0, 1000.0)
_SOURCES: Final = ("evaluate", "events", "collect", "async", "import")
_OUTCOMES: Final = ("ALLOW", "REVIEW", "BLOCK")
_STATUSES: Final = (
    *("200", "201", "202", "204", "304", "400", "401", "403", "404", "405", "409", "413", "415", "422"),
    *("429", "500", "502", "503", "504", "other"),
)
#: How an attempt ended: `delivered`, or the class of its failure (`webhooks.webhook.Failure`).
RESULTS: Final = (
    *("delivered", "status", "timeout", "refused", "disconnected", "dns", "tls", "network", "protocol"),
    *("forbidden_address", "internal", "secret"),
)
#: Who answers reads that may lag behind.
READ_SERVERS: Final = ("replica", "primary")
#: How a search of the watchlists ended.
SEARCH_RESULTS: Final = ("answered", "late", "failed")
#: How a training ended: with a model to put in service, with another one, or with none.
TRAINING_RESULTS: Final = ("better", "not_better", "too_few_labels", "failed")
#: What processes remember of tenants in one memory that those share (`tenant_cache.TenantCache`).
CACHES: Final = ("sessions", "columns")


class Rows(enum.StrEnum):
    """The kinds of stored rows that are left out when they cannot be read again."""

    EVENT = "event"
    AML_EVENT = "aml_event"
    SIGNALS = "signals"
    LIST_ENTRY = "list_entry"
    TENANT = "tenant"
    KEY = "key"
    SIGNING_KEY = "signing_key"


class Meter(NamedTuple):
    """One row of the table. `unit` turns the whole numbers that are counted into what is shown.

    `values` are those that the label can take: a closed set, so that nothing a caller sends makes a new one.
    With `bounds` it is a histogram. A `level` goes up and down: shown is the `max` or the `sum` of what all
    processes last told.
    """

    name: str
    help: str
    label: str = ""
    values: tuple[str, ...] = ("",)
    bounds: tuple[float, ...] = ()
    unit: float = 1
    level: str = ""

    @property
    def words(self) -> int:
        """How many words one value of the label takes: the sum, then each bucket and the one above all."""
        return len(self.bounds) + 2 if self.bounds else 1


METERS: Final = (
    Meter("vettance_decisions_total", "Decisions that were stored and answered.", "outcome", _OUTCOMES),
    Meter(
        "vettance_decision_seconds",
        "From the parsed request to the commit of its decision.",
        "source",
        _SOURCES,
        LATENCY_S,
        _NS,
    ),
    Meter("vettance_rule_errors_total", "Rules that failed in a decision and were skipped."),
    Meter(
        "vettance_features_unknown_total",
        "Parts of events that could not be computed: they count as missing.",
    ),
    Meter(
        "vettance_rows_skipped_total",
        "Stored rows that could not be read again and were left out.",
        "rows",
        tuple(Rows),
    ),
    Meter("vettance_decisions_refused_total", "Events that were decided but that the store did not take."),
    Meter("vettance_http_answers_total", "Answers by status.", "status", _STATUSES),
    Meter("vettance_store_commit_seconds", "From sending a batch to its commit.", "", ("",), LATENCY_S, _NS),
    Meter("vettance_store_commit_writes", "Writes that shared a commit.", "", ("",), BATCH),
    Meter("vettance_store_failures_total", "Batches that the store did not take."),
    Meter(
        "vettance_replica_reads_total",
        "Reads that may go to the replica, by the server that answered them.",
        "server",
        READ_SERVERS,
    ),
    Meter("vettance_webhook_attempts_total", "Attempts to deliver, by how they ended.", "result", RESULTS),
    Meter("vettance_webhook_attempt_seconds", "How long attempts took.", "", ("",), LATENCY_S, 1e-3),
    Meter("vettance_webhook_exhausted_total", "Deliveries given up after their last attempt."),
    Meter(
        "vettance_webhook_overflowed_total", "Deliveries given up because too much waited for their tenant."
    ),
    Meter("vettance_webhook_leases_lost_total", "Attempts that were not recorded: another worker had it."),
    Meter(
        "vettance_state_rebuild_seconds", "What filling the memory took at the start.", unit=_NS, level="max"
    ),
    Meter("vettance_state_rebuilt_events", "Events replayed from the log at the start.", level="max"),
    Meter("vettance_listening_processes", "Processes that take connections.", level="sum"),
    Meter("vettance_connections_open", "Connections of clients that are open.", level="sum"),
    Meter("vettance_requests_in_flight", "Requests at work.", level="sum"),
    Meter("vettance_configuration_stale", "1 while changed configuration cannot be read.", level="max"),
    Meter("vettance_state_astray_tenants", "Memories of tenants to be brought back in line.", level="sum"),
    Meter("vettance_state_mends_total", "Memories of tenants rebuilt after a write had failed."),
    Meter(
        "vettance_search_seconds",
        "From asking for a search of the watchlists to its end, by how it ended.",
        "result",
        SEARCH_RESULTS,
        LATENCY_S,
        _NS,
    ),
    Meter("vettance_searches_in_flight", "Searches of the watchlists that wait or are made.", level="sum"),
    Meter(
        "vettance_work_failures_total",
        "Work in the background that failed for one tenant or row, and is tried again.",
        "work",
        WORKS,
    ),
    Meter(
        "vettance_work_failing",
        "Tenants and rows for which such work failed when it was last tried.",
        "work",
        WORKS,
        level="sum",
    ),
    Meter(
        "vettance_model_trainings_total",
        "Trainings of tenants' models, and whether they gave a better one; `too_few_labels` is no fault.",
        "result",
        TRAINING_RESULTS,
    ),
    Meter("vettance_search_restarts_total", "Processes that searched, ended and were started again."),
    Meter("vettance_cache_bytes", "What is remembered of all tenants.", "cache", CACHES, level="sum"),
    Meter(
        "vettance_cache_largest_tenant_bytes",
        "What one process remembers of the tenant with the most.",
        "cache",
        CACHES,
        level="max",
    ),
    Meter("vettance_cache_evictions_total", "What gave way to something newer.", "cache", CACHES),
)
