"""Which functions build statements, and which of them a block of code has called."""

import ast
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any, Final

import vettance

ROOT: Final = Path(vettance.__file__).parent
#: The files that hold SQL.
FILES: Final = sorted(
    path for name in ("*sql", "outbox", "delivery_queue") for path in ROOT.rglob(f"{name}.py")
)


def builders() -> set[str]:
    """Name every function that returns statements, such as `lists/sql.py:Filter.page`."""
    return {
        f"{file.relative_to(ROOT)}:{name}"
        for file in FILES
        for name in _functions(ast.parse(file.read_text()).body, "")
    }


def _functions(body: list[ast.stmt], above: str) -> Iterator[str]:
    for node in body:
        if isinstance(node, ast.ClassDef):
            yield from _functions(node.body, f"{above}{node.name}.")
        elif (
            isinstance(node, ast.FunctionDef)
            and not node.name.startswith("_")
            and node.returns is not None
            and "Statement" in ast.unparse(node.returns)
        ):
            yield above + node.name


@contextmanager
def called_builders(found: set[str]) -> Iterator[None]:
    """Add to `found` the builders that this thread calls during the block."""
    names = {str(file): str(file.relative_to(ROOT)) for file in FILES}

    def note(frame: FrameType, event: str, _argument: Any) -> None:
        if event == "call" and (name := names.get(frame.f_code.co_filename)) is not None:
            found.add(f"{name}:{frame.f_code.co_qualname}")

    sys.setprofile(note)
    try:
        yield
    finally:
        sys.setprofile(None)


_START: Final = "Run once at a start, or when rules change: it goes through what a memory is filled from."
_PEOPLE: Final = "Those who use the console are hundreds, and found by id, e-mail or the digest of a cookie."
_AUDIT: Final = "People change little; a chain is read by those who check or export it, a piece at a time."
_KEPT: Final = "Tenants, keys, rules and lists are kept in memory; they are read when somebody changes them."
_LAID_OUT: Final = (
    "Lists and statistics read columns laid out for them; `bench history_reading` measures those."
)
_REMOVING: Final = "It goes through what it removes or renames, a step at a time."
_CHANGED: Final = "It works through the subjects that a change of a watchlist concerns, a chunk at a time."
_IMPORT: Final = "A command imports the past: it goes through what it imports, a chunk at a time."
_FAILING: Final = "There are as many rows as kinds of work fail at the moment."
_REPLAY: Final = "An officer sends again what was made in a span, a chunk at a time."
_STREAM: Final = "A consumer writes it as `insert_accepted` writes an event, with one key more."
_COMMAND: Final = "A command asks it, while nobody waits."
#: What no request or background look of `go_through` reaches, and why. A whole file is named by `*`.
COLD: Final = {
    "aml/imports/sql.py:*": _IMPORT,
    "aml/screening/sql.py:count_rescreened": _CHANGED,
    "aml/screening/sql.py:move_subject": _CHANGED,
    "aml/screening/sql.py:move_unchanged": _CHANGED,
    "aml/screening/sql.py:select_list_set": _CHANGED,
    "aml/screening/sql.py:select_subject": _CHANGED,
    "aml/screening/sql.py:select_rescreening": _COMMAND,
    "aml/screening/sql.py:delete_batch_mark": _COMMAND,
    "aml/screening/sql.py:save_settings": _COMMAND,
    "aml/settings/sql.py:*": _COMMAND,
    "aml/sql.py:select_event_at": _START,
    "aml/sql.py:select_external_ids": _START,
    "aml/sql.py:select_log": _START,
    "aml/sql.py:select_log_of_all": _START,
    "aml/turns/sql.py:select_since": "Where processes take turns, which PostgreSQL alone gives.",
    "aml/turns/sql.py:select_tenants_since": "Where processes take turns, which PostgreSQL alone gives.",
    "audit/sql.py:*": _AUDIT,
    "decisions/sql.py:select_decided_log": _COMMAND,
    "decisions/sql.py:select_record_beginnings": _COMMAND,
    "decisions/sql.py:select_outcome": "Asked of a decision whose record is damaged; one row by its id.",
    "events/sql.py:select_event_at": _START,
    "decisions/sql.py:select_last_evaluated": _START,
    "events/sql.py:select_last_event": _START,
    "decisions/sql.py:select_listed_decisions": _LAID_OUT,
    "events/sql.py:select_log": _START,
    "feedback/sql.py:insert_feedback": _IMPORT,
    "feedback/label_sql.py:select_present": _COMMAND,
    "feedback/label_sql.py:select_log": _START,
    "feedback/label_sql.py:select_tenant_log": _START,
    "feedback/label_sql.py:select_moments": _START,
    "feedback/label_sql.py:select_rows": _START,
    "feedback/label_sql.py:select_newest": _START,
    "events/sql.py:select_imported_log": _START,
    "events/sql.py:select_moments": _START,
    "events/sql.py:select_rows": _START,
    "events/sql.py:select_runs": _START,
    "events/sql.py:select_tenant_log": _START,
    "exchange/sql.py:*": _COMMAND,
    "history/sql.py:count_newer": _LAID_OUT,
    "history/sql.py:delete_chunk": _COMMAND,
    "history/sql.py:select_column": _LAID_OUT,
    "history/sql.py:select_codes": _LAID_OUT,
    "history/sql.py:select_counts": _LAID_OUT,
    "history/sql.py:select_first_day": _LAID_OUT,
    "history/sql.py:select_labels": _LAID_OUT,
    "history/sql.py:select_newer_keys": _LAID_OUT,
    "history/sql.py:select_roster": _LAID_OUT,
    "history/sql.py:select_roster_sizes": _LAID_OUT,
    "history/sql.py:select_tail": _LAID_OUT,
    "history/sql.py:select_tail_keys": _LAID_OUT,
    "jobs/sql.py:fail_job": "It differs from `complete_job` in what it writes only.",
    "jobs/sql.py:insert_imported": _IMPORT,
    "jobs/sql.py:insert_refused": _STREAM,
    "jobs/sql.py:insert_streamed": _STREAM,
    "jobs/sql.py:select_queued": _IMPORT,
    "lists/sql.py:count_live": "Of events that add the last entry at the same moment; by its key.",
    "lists/sql.py:require_entry": "Of events that add the same value at the same moment; by its key.",
    "lists/sql.py:select_all": _KEPT,
    "lists/sql.py:select_by_values": "By the values of one page of the console, in an index.",
    "ops/sql.py:forget_failing": _FAILING,
    "ops/sql.py:note_failing": _FAILING,
    "ops/sql.py:select_failing": _FAILING,
    "ops/sql.py:select_any_sealed": _COMMAND,
    "ops/sql.py:select_newest_event": _COMMAND,
    "ops/sql.py:count_listless_tenants": _COMMAND,
    "ops/sql.py:count_streams": "There are as many rows as consumers of streams.",
    "ops/sql.py:count_overflowed": _COMMAND,
    "ops/sql.py:select_table": _COMMAND,
    "people/session_sql.py:*": _PEOPLE,
    "people/sql.py:*": _PEOPLE,
    "replays/sql.py:forget_expired": _REMOVING,
    "quality/sql.py:select_newest_records": "Forty rows by their place, once in ten minutes for a tenant.",
    "retention/deletion_sql.py:*": _REMOVING,
    "retention/sql.py:*": _REMOVING,
    "reviews/sql.py:remove_reviews": _REMOVING,
    "reviews/sql.py:count_work": "A report counts the work of a span.",
    "reviews/check_sql.py:count_checked": "A lead asks how often two people agree.",
    "reviews/check_sql.py:select_unchecked": "By the moments of the list entries on one page, in an index.",
    "rules/sql.py:*": _KEPT,
    "backtests/sql.py:*": "A backtest reads the whole log anyway; a tenant has fifty of them at most.",
    "models/sql.py:*": "A tenant has one setting and a handful of models.",
    "models/feature_version_sql.py:*": "Only people put features; a tenant has a hundred versions at most.",
    "learning/sql.py:select_decided": "A training reads the whole log, in a process of its own.",
    "learning/sql.py:select_labels": "A training reads all labels, in a process of its own.",
    "feedback/maturity_sql.py:*": "A training, a suggestion or a backtest asks once.",
    "learning/sql.py:select_recent_bodies": "As a young tenant's events double; a training asks once.",
    "learning/sql.py:count_recent_events": "Of young tenants only, and no further than they are young.",
    **dict.fromkeys(
        (
            f"learning/alert_sql.py:{name}"
            for name in (
                *(
                    "save_alert_setting",
                    "demand_alert_setting",
                    "select_alert_setting",
                    "select_alert_settings",
                ),
                *("insert_alert_model", "select_alert_models", "select_alert_model"),
                "forget_older_alert_models",
            )
        ),
        "A tenant has one setting and a handful of models.",
    ),
    "learning/alert_sql.py:select_matches": "As many rows as tenants have rules that were ever confirmed.",
    "learning/alert_sql.py:select_nth_newest": "A training asks once.",
    "learning/alert_sql.py:select_seen": "A training reads the newest alerts, in a process of its own.",
    "learning/alert_sql.py:select_open_seen": "Another model is in service: all that are open are ordered.",
    "learning/drift_sql.py:*": "A week is over, or a person asks; a tenant has some dozens of measurements.",
    "learning/model_change_sql.py:*": "People propose and approve; a tenant has a handful of open changes.",
    "reviews/bulk_sql.py:*": "People ask, twenty times at most; pieces are read one by one, by their key.",
    "streams/sql.py:*": "A consumer reads, in a process of its own, by names and by an index of what is due.",
    "suggestions/sql.py:*": "A suggestion reads the whole log, in a process of its own.",
    "models/sql.py:select_in_service": "A person looks at the overview; one row by its key.",
    "learning/sql.py:select_newest_labels": "A person asks by a page.",
    "learning/sql.py:select_new_labels": "From the newest label on; from the first one at the start only.",
    "snoozes/sql.py:*": "A tenant has a thousand at a time at most, and only people ask for them.",
    "quality/sql.py:RuleCountTables.begin": _START,
    "quality/sql.py:RuleCountTables.sweep": _REMOVING,
    "quality/sql.py:select_ends": _START,
    "quality/sql.py:select_newest_decision": _START,
    "aml/quality/sql.py:select_ends": _START,
    "backtests/aml_backtest_sql.py:*": "A backtest reads the log it goes through, in a process of its own.",
    "aml/quality/sql.py:select_newest_event": _START,
    "terms/sql.py:make_findable": "One row by its key, for a text that was in no searched field before.",
    "tenants/sql.py:demand_settings": _KEPT,
    "tenants/sql.py:select_settings": _KEPT,
    "tenants/sql.py:insert_key": _KEPT,
    "tenants/sql.py:insert_tenant": _KEPT,
    "tenants/sql.py:keep_secret_digest": _COMMAND,
    "tenants/sql.py:replace_secret_digest": _COMMAND,
    "tenants/sql.py:revoke_key": _KEPT,
    "tenants/sql.py:revoke_keys_of": _COMMAND,
    "tenants/sql.py:select_any_key": _COMMAND,
    "tenants/sql.py:select_key": _COMMAND,
    "tenants/sql.py:select_keys": _KEPT,
    "tenants/sql.py:select_keys_of": _COMMAND,
    "limits/sql.py:select_quota_use": _START,
    "tenants/sql.py:select_secret_digest": _START,
    "tenants/sql.py:select_tenant": _COMMAND,
    "tenants/sql.py:update_tenant": _KEPT,
    "terms/sql.py:delete_id_search": _REMOVING,
    "terms/sql.py:delete_term_search": _REMOVING,
    "terms/sql.py:scan_terms": _LAID_OUT,
    "terms/sql.py:search_ids": _LAID_OUT,
    "terms/sql.py:search_terms": _LAID_OUT,
    "terms/sql.py:select_term_values": _LAID_OUT,
    "terms/sql.py:select_terms_by_number": _LAID_OUT,
    "terms/sql.py:widen_term": "Texts are rarely seen in another field; they are found by number.",
    "watchlists/sql.py:*": _KEPT,
    "outbox.py:fan_out": "Of a message to more than fifty subscriptions; a piece looks by keys.",
    "webhooks/delivery_queue.py:cancel_all_orphans": _START,
    "webhooks/delivery_queue.py:give_up": _REMOVING,
    "webhooks/delivery_queue.py:note_overflow": _REMOVING,
    "webhooks/delivery_queue.py:select_last_beyond": _REMOVING,
    "webhooks/delivery_queue.py:select_waiting_through": _REMOVING,
    "webhooks/delivery_queue.py:release": "After a failure of the store; it looks by numbers.",
    "webhooks/delivery_queue.py:release_all": _START,
    "webhooks/delivery_queue.py:select_last_delivery": _START,
    "webhooks/delivery_queue.py:select_pending_lanes": _START,
    "webhooks/sql.py:count_waiting": "Before a replay; it stops at the most that may wait.",
    "webhooks/sql.py:replay_many": _REPLAY,
    "webhooks/sql.py:select_newest_sealed": _COMMAND,
    "websdk/sql.py:delete_batches": _REMOVING,
    "websdk/sql.py:insert_token_key": _COMMAND,
    "websdk/sql.py:retire_token_keys": _COMMAND,
    "websdk/sql.py:select_token_keys": _KEPT,
}


def unreached(called: set[str]) -> list[str]:
    """Name the builders that were not called and need not be cold."""
    cold = {name for name in builders() if name in COLD or f"{name.partition(':')[0]}:*" in COLD}
    return sorted(builders() - called - cold)


def outdated() -> list[str]:
    """Name what `COLD` says of builders that are gone."""
    files = {f"{name.partition(':')[0]}:*" for name in builders()}
    return sorted(set(COLD) - builders() - files)
