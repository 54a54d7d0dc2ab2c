"""Times that depend on each other, in rooms that do not know each other, keep their order.

Where one room may import another, a time is derived from the other in the code. Here is the rest.
"""

import re
from pathlib import Path

from vettance.aml.parties import OWN_MS
from vettance.clock import CLOCKS_APART_MS
from vettance.db import (
    engine,
    exclusive_database,
    exclusive_file,
    postgres,
    postgres_link,
    postgres_turn,
    sqlite_batch,
    write_batcher,
    write_relay,
)
from vettance.events.browser_session import BATCH_MS
from vettance.events.event import BACK_MS_MAX
from vettance.redis_link.announcements import KEPT_S
from vettance.retention.tenant_deletion import SETTLE_S
from vettance.rules.document_layout import BACK_MS_MAX as RULE_BACK_MS_MAX
from vettance.server import change_feed, stop_times
from vettance.webhooks import listening, retry_policy

ROOT = Path(__file__).parents[2]
#: What the contract gives a change of configuration to be seen everywhere, and a stop that nothing holds up.
SEEN_S_MAX = 5.0
STOP_S_PROMISED = 15.0


def written(path: str, setting: str) -> float:
    """Return the number that a file of the deployment gives a setting."""
    found = re.search(rf"{setting}[=:]\s*(\d+)", (ROOT / path).read_text("utf-8"))
    assert found is not None, f"{path} does not set {setting}"
    return float(found[1])


def test_a_server_stops_in_the_promised_time() -> None:
    assert stop_times.REQUESTS_S_MAX + stop_times.SNAPSHOT_S_MAX < STOP_S_PROMISED
    assert retry_policy.STOP_S_MAX < STOP_S_PROMISED


def test_nobody_kills_a_server_that_is_still_stopping() -> None:
    assert written("deploy/systemd/vettance.service", "TimeoutStopSec") > stop_times.STOP_S_MAX
    template = "deploy/helm/vettance/templates/workload.yaml"
    assert written(template, "terminationGracePeriodSeconds") > stop_times.STOP_S_MAX


def test_a_start_waits_for_a_server_that_is_stopping() -> None:
    assert exclusive_database.WAIT_S > stop_times.STOP_S_MAX
    # One that is killed lets go of its file at once; one that stops keeps it to the end.
    assert exclusive_file.WAIT_S > stop_times.SNAPSHOT_S_MAX


def test_a_lease_outlives_an_attempt_and_its_settlement() -> None:
    attempt_s = retry_policy.RESOLVE_S_MAX + retry_policy.ATTEMPT_S_MAX + retry_policy.SETTLE_S_MAX
    assert attempt_s * 1000 + CLOCKS_APART_MS < retry_policy.LEASE_MS
    assert retry_policy.DRAIN_S_MAX > retry_policy.ATTEMPT_S_MAX
    assert retry_policy.STOP_S_MAX > retry_policy.DRAIN_S_MAX + retry_policy.SETTLE_S_MAX


def test_a_retry_never_waits_longer_than_what_is_taken_for_a_wrong_clock() -> None:
    policy = retry_policy.RetryPolicy()
    assert policy.ahead_ms_max >= max(policy.delays_ms) + CLOCKS_APART_MS
    assert policy.ahead_ms_max >= policy.fault_pause_ms + CLOCKS_APART_MS


def test_the_parts_of_a_call_to_the_store_fit_into_it() -> None:
    assert postgres.BATCH_S_MAX < engine.ANSWER_S_MAX
    assert postgres_turn.TURN_S_MAX < engine.ANSWER_S_MAX
    assert postgres_link.HOLD_MS_MAX < postgres.BATCH_S_MAX * 1000
    assert sqlite_batch.LOCK_PATIENCE_S < engine.ANSWER_S_MAX
    assert write_batcher.DRAIN_S_MAX > engine.ANSWER_S_MAX
    assert write_relay._ANSWER_S_MAX > engine.ANSWER_S_MAX


def test_a_change_is_seen_before_what_it_forbids_is_removed() -> None:
    assert change_feed.PAUSE_S < SEEN_S_MAX < SETTLE_S


def test_memories_and_rules_reach_as_far_back_as_events_may_lie() -> None:
    assert OWN_MS >= BACK_MS_MAX
    assert RULE_BACK_MS_MAX == BACK_MS_MAX


def test_the_mark_of_new_signals_lasts_as_long_as_signals_count() -> None:
    assert KEPT_S * 1000 == BATCH_MS


def test_deliveries_wait_longer_than_clocks_differ_before_somebody_wonders() -> None:
    assert listening.WAITS_MS_MAX >= CLOCKS_APART_MS
