"""A service that is broken under load loses nothing it has acknowledged (`make faults` does it longer)."""

import json
import sqlite3
import subprocess
import sys
import tempfile
from contextlib import closing
from pathlib import Path

import pytest

from bench import BENCH
from bench.faults.fault_embedded import KINDS, audit
from bench.faults.fault_servers import KINDS as KINDS_ON_SERVERS
from bench.faults.ledger import Acknowledgement, Ledger
from bench.faults.watchers import too_many
from vettance.db.migrate import migrate


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("kind", KINDS)
def test_nothing_acknowledged_is_lost_or_done_twice(kind: str, tmp_path: Path) -> None:
    command = [sys.executable, str(BENCH), "faults", "--rounds", "1", "--kinds", kind, "--json"]
    done = subprocess.run(
        [*command, "--folder", str(tmp_path / "faults")],
        capture_output=True,
        text=True,
        timeout=560,
        check=False,
    )
    assert done.stdout, done.stderr
    (one,) = json.loads(done.stdout)
    assert one["found"] == []
    assert one["acknowledged"] > 0
    assert done.returncode == 0


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_servers_that_are_broken_under_load_lose_nothing(tmp_path: Path) -> None:
    kinds = ["postgres", "redis", "cut", "web"]
    assert set(kinds) <= set(KINDS_ON_SERVERS)
    command = [sys.executable, str(BENCH), "faults", "--stage", "servers", "--json"]
    with tempfile.TemporaryDirectory(prefix="vettance-faults-") as folder:
        # Not pytest's own folder: PostgreSQL runs as somebody else, who may not enter it.
        Path(folder).chmod(0o755)
        done = subprocess.run(
            [
                *command,
                "--rounds",
                str(len(kinds)),
                "--kinds",
                ",".join(kinds),
                "--folder",
                f"{folder}/faults",
            ],
            capture_output=True,
            text=True,
            timeout=1_160,
            check=False,
        )
    if "installed (Debian" in done.stderr:
        pytest.skip(done.stderr.strip())
    assert done.stdout, done.stderr
    rounds = json.loads(done.stdout)
    assert [one["found"] for one in rounds] == [[]] * len(kinds)
    assert all(one["acknowledged"] > 0 for one in rounds)


def test_a_request_too_many_within_a_minute_shows_but_not_across_a_loss() -> None:
    moments = [(second / 10, second / 10 + 0.01) for second in range(301)]
    assert too_many([moments]) == ["301 requests were let in within 30.01 s"]
    assert too_many([moments[:150], moments[150:]]) == []
    assert too_many([[(second / 5, second / 5 + 0.01) for second in range(301)]]) == []


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """A store with one event, one list entry that stands there twice, and a decision without its event."""
    path = tmp_path / "vettance.db"
    migrate(path)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(
            "INSERT INTO event (id, tenant, source, received_at_ms, occurred_at_ms, sent) "
            "VALUES ('evt_1', 'ten_1', 'evaluate', 0, 0, x'')"
        )
        for name, decision in (("evt_1", "ALLOW"), ("evt_2", "BLOCK")):
            connection.execute(
                "INSERT INTO decision (id, tenant, evaluated_at_ms, occurred_at_ms, event_name, "
                "event_category, decision, score, level, customer_id, record) "
                "VALUES (?, 'ten_1', 0, 0, '', '', ?, 0, '', 'job-1-1', x'')",
                (name, decision),
            )
        connection.commit()
    return path


def test_the_books_show_what_is_missing_changed_or_there_twice(store: Path) -> None:
    ledger = Ledger()
    ledger.outcomes = {"evt_1": "deny", "evt_9": "approve"}
    ledger.tried.update(["job-1-1", "list-1-2"])
    ledger.acknowledged = [
        Acknowledgement("job", "job-1-1", "job_1"),
        Acknowledgement("list", "list-1-2", "lst_1"),
    ]
    assert audit(store, "ten_1", ledger) == [
        "1 events without a decision, or the other way round",
        "1 acknowledged decisions are lost",
        "1 decisions are stored otherwise than acknowledged",
        "job-1-1 took effect 2 times",
        "list-1-2 was acknowledged and is lost",
    ]


@pytest.mark.parametrize(
    ("status", "body", "explained"),
    [
        ("200", b"{}", True),
        ("503", b'{"error":{"code":"SERVICE_UNAVAILABLE","message":"","details":{"retryAfter":1}}}', True),
        ("503", b'{"error":{"code":"SERVICE_UNAVAILABLE","message":"","details":{}}}', False),
        (
            "500",
            b'{"error":{"code":"INTERNAL_SERVER_ERROR","message":"","details":{"requestId":"req_1"}}}',
            False,
        ),
        ("502", b"", False),
    ],
)
def test_only_the_503_of_the_contract_explains_a_failure(status: str, body: bytes, explained: bool) -> None:
    ledger = Ledger()
    ledger.note(status, body)
    assert (ledger.unexplained == []) is explained
