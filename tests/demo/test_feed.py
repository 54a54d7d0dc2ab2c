"""Where the demo's events come from: times that the service takes, the right labels, clear refusals."""

import datetime as dt
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from vettance.demo.feed import FeedFault, generated, parquet
from vettance.events.event import read_taken_event
from vettance.wire.payload import parse_object

DAY_S = 86_400


def write(path: Path, **changes: Any) -> Path:
    columns: dict[str, Any] = {
        "transaction_id": [3, 1, 2],
        "ts": [1_600_000_300, 1_600_000_100, 1_600_000_200],
        "customer_id": [7, 8, 7],
        "terminal_id": [1, 2, 3],
        "amount": [12.5, 300.0, 4.25],
        "fraud": [0, 1, 0],
        "scenario": [0, 1, 0],
    }
    columns |= changes
    pq.write_table(pa.table({name: values for name, values in columns.items() if values is not None}), path)
    return path


def test_generated_events_end_about_now_and_are_all_taken() -> None:
    now_ms = time.time_ns() // 1_000_000
    samples = list(generated(40, 5, 3, 0.1).samples)
    moments = [read_taken_event(parse_object(s.body), now_ms + 1000).occurred_at_ms for s in samples]
    assert moments == sorted(moments)
    assert now_ms - 5 * DAY_S * 1000 <= moments[0]
    assert moments[-1] <= now_ms + 1000
    assert any(sample.fraud for sample in samples)


def test_more_days_than_the_service_takes_are_refused() -> None:
    with pytest.raises(FeedFault, match="--days"):
        generated(1, 401, 1, 0.01)


def test_payments_come_in_time_order_moved_to_end_now(tmp_path: Path) -> None:
    feed = parquet(write(tmp_path / "payments.parquet"))
    now_ms = time.time_ns() // 1_000_000
    events = [read_taken_event(parse_object(sample.body), now_ms) for sample in feed.samples]
    assert [event.metadata["reference"] for event in events] == ["1", "2", "3"]
    assert [event.customer_id for event in events] == ["cus_8", "cus_7", "cus_7"]
    assert [event.metadata["amount"] for event in events] == [300.0, 4.25, 12.5]
    assert events[1].occurred_at_ms - events[0].occurred_at_ms == 100_000
    assert abs(events[-1].occurred_at_ms - now_ms) < 10_000


def test_labels_become_scenarios(tmp_path: Path) -> None:
    samples = list(parquet(write(tmp_path / "payments.parquet", fraud=[False, True, False])).samples)
    assert [sample.fraud for sample in samples] == [True, False, False]
    assert samples[0].scenario == "scenario 1"


def test_parquet_timestamps_are_taken_for_utc(tmp_path: Path) -> None:
    moments = [dt.datetime(2020, 1, 1, 12, minute) for minute in (3, 1, 2)]  # noqa: DTZ001
    samples = list(parquet(write(tmp_path / "payments.parquet", ts=moments)).samples)
    assert [sample.customer for sample in samples] == ["cus_8", "cus_7", "cus_7"]


def test_what_is_older_than_the_service_takes_is_left_out(tmp_path: Path) -> None:
    old = 1_600_000_000 - 500 * DAY_S
    feed = parquet(write(tmp_path / "payments.parquet", ts=[1_600_000_000, old, 1_599_999_000]))
    assert len(list(feed.samples)) == feed.expected == 2
    assert "1 older than 400 days left out" in feed.about


def test_missing_columns_are_named(tmp_path: Path) -> None:
    with pytest.raises(FeedFault, match="lacks the columns amount, fraud"):
        parquet(write(tmp_path / "payments.parquet", amount=None, fraud=None))


def test_a_file_that_is_no_parquet_is_refused(tmp_path: Path) -> None:
    (tmp_path / "payments.parquet").write_text("a,b,c")
    with pytest.raises(FeedFault, match="cannot be read"):
        parquet(tmp_path / "payments.parquet")


def test_an_empty_file_is_refused(tmp_path: Path) -> None:
    columns = ("transaction_id", "ts", "customer_id", "terminal_id", "amount", "fraud", "scenario")
    with pytest.raises(FeedFault, match="no rows"):
        parquet(write(tmp_path / "payments.parquet", **{name: pa.array([], pa.int64()) for name in columns}))
