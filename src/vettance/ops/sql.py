"""What is asked of the store to tell how far behind it is. Nothing here names a tenant or shows a row."""

from typing import Final

from vettance.db.engine import EVERYBODY, Statement, everyone, insert
from vettance.db.tables import (
    AML_SETTING,
    AML_SUBJECT,
    CATALOG,
    DELIVERY,
    EVENT,
    FAILING_WORK,
    IMPORT_RUN,
    JOB,
    MODEL_CHANGE,
    RULE_STEP,
    STREAM_CONSUMER,
    SUBSCRIPTION,
    TENANT,
    WATCHLIST_VERSION,
    Insert,
)
from vettance.fairness.isolation import WorkFailure

#: Counting stops here: whether a hundred thousand or a million wait, somebody has to look.
COUNT_MAX = 100_000


def count_waiting_jobs() -> Statement:
    """How many accepted events wait for their decision, at most `COUNT_MAX`."""
    return everyone(
        JOB,
        "SELECT COUNT(*) FROM (SELECT 1 FROM job WHERE state = 'accepted' LIMIT ?) AS waiting",
        (COUNT_MAX,),
    )


def count_streams(since_ms: int) -> Statement:
    """What consumers of streams have done, and when the one that is longest silent of those that were alive
    since then was."""
    return everyone(
        STREAM_CONSUMER,
        "SELECT COALESCE(SUM(accepted), 0), COALESCE(SUM(repeated), 0), COALESCE(SUM(refused), 0), "
        "COALESCE(SUM(results_sent), 0), COALESCE(SUM(dead_letters_sent), 0), "
        "MIN(CASE WHEN updated_at_ms >= ? THEN updated_at_ms END) FROM stream_consumer",
        (since_ms,),
    )


def select_oldest_job() -> Statement:
    """(received_at_ms,) of the accepted event that has waited longest, if there is one."""
    return everyone(JOB, "SELECT received_at_ms FROM job WHERE state = 'accepted' ORDER BY seq LIMIT 1")


def select_waiting_imports() -> Statement:
    """(state, how many, when the first was begun) of the imports that are `reading` or `waiting`."""
    return everyone(
        IMPORT_RUN,
        "SELECT state, COUNT(*), MIN(begun_at_ms) FROM import_run WHERE state <> 'decided' GROUP BY state",
    )


def count_imported_events() -> Statement:
    """(state of their import, how many) of the imported events without a decision, at most `COUNT_MAX`."""
    return everyone(
        IMPORT_RUN.reading(JOB),
        "SELECT state, COUNT(*) FROM (SELECT import_run.state FROM import_run JOIN job "
        "ON job.tenant = import_run.tenant AND job.import_id = import_run.id AND job.state = 'queued' "
        "WHERE import_run.state <> 'decided' LIMIT ?) AS queued GROUP BY state",
        (COUNT_MAX,),
    )


def count_waiting_deliveries() -> Statement:
    """(how many deliveries wait, at most `COUNT_MAX`; when the one longest due was due, or null)."""
    return everyone(
        DELIVERY,
        "SELECT COUNT(*), MIN(due_at_ms) FROM "
        "(SELECT due_at_ms FROM delivery WHERE state = 'pending' LIMIT ?) AS waiting",
        (COUNT_MAX,),
    )


def count_overflowed(since_ms: int) -> Statement:
    """(subscriptions that deliveries were given up of since a moment, how many in all their time)."""
    return everyone(
        SUBSCRIPTION,
        "SELECT COUNT(*), COALESCE(SUM(overflowed), 0) FROM subscription WHERE overflowed_at_ms >= ?",
        (since_ms,),
    )


def select_newest_event() -> Statement:
    """(received_at_ms,) of the newest event, if there is one."""
    return everyone(EVENT, "SELECT received_at_ms FROM event ORDER BY seq DESC LIMIT 1")


def select_any_sealed() -> Statement:
    """(tenant, subscription, its sealed secret) of one subscription, if there is one."""
    return everyone(SUBSCRIPTION, "SELECT tenant, id, secret FROM subscription LIMIT 1")


_NOTE_FAILING: Final = Insert(
    FAILING_WORK,
    "work, subject, tries, error, failed_at_ms",
    key="work, subject",
    replaces="tries, error, failed_at_ms",
)


def note_failing(failure: WorkFailure, now_ms: int) -> Statement:
    """Note what has failed for one of many, in place of what was noted of it."""
    return insert(_NOTE_FAILING, EVERYBODY, (failure.work, failure.key, failure.tries, failure.error, now_ms))


def forget_failing(work: str, key: str) -> Statement:
    """Note that what had failed went well."""
    return everyone(FAILING_WORK, "DELETE FROM failing_work WHERE work = ? AND subject = ?", (work, key))


def select_failing(since_ms: int, limit: int) -> Statement:
    """(work, subject, tries, error) of what has failed since a moment and is not mended, worst first."""
    return everyone(
        FAILING_WORK,
        "SELECT work, subject, tries, error FROM failing_work WHERE failed_at_ms >= ? "
        "ORDER BY tries DESC, work, subject LIMIT ?",
        (since_ms, limit),
    )


def count_listless_tenants() -> Statement:
    """(tenants with AML and no list of their own; those of them that screen, names in events or subjects)."""
    return everyone(
        AML_SETTING.reading(AML_SUBJECT, TENANT, WATCHLIST_VERSION),
        "SELECT COUNT(*), COALESCE(SUM(CASE WHEN EXISTS (SELECT 1 FROM aml_setting AS chosen "
        "WHERE chosen.tenant = tenant.id AND chosen.inline_screening = 1) OR EXISTS "
        "(SELECT 1 FROM aml_subject AS subject WHERE subject.tenant = tenant.id) THEN 1 ELSE 0 END), 0) "
        "FROM tenant WHERE aml = 1 AND NOT EXISTS (SELECT 1 FROM watchlist_version AS own "
        "WHERE own.tenant = tenant.id AND own.current = 1)",
    )


def select_table(name: str) -> Statement:
    """A row when the embedded store has a table; stores of earlier versions lack some."""
    return Statement("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?", (name,), tables=CATALOG)


def count_broken_glass() -> Statement:
    """(kind, how many) of rule sets and models that came into force past their approval, of all tenants."""
    return everyone(
        RULE_STEP.reading(MODEL_CHANGE),
        "SELECT kind, COUNT(*) FROM rule_step WHERE step = 'broke_glass' GROUP BY kind UNION ALL "
        "SELECT 'model', COUNT(*) FROM model_change WHERE broken_glass IS NOT NULL",
    )
