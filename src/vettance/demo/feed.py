"""Where the demo's labelled events come from: the generator, or a parquet file of card payments."""

import datetime as dt
import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec

from vettance import clock
from vettance.clock import DAY_MS, HOUR_MS
from vettance.events.event import BACK_MS_MAX
from vettance.generate.fraud_stream import Traffic, events_expected, reference, stream
from vettance.generate.generated_event import ORDINARY, Happening
from vettance.wire.payload import timestamp

#: Columns a parquet file must have; `ts` is Unix seconds or a timestamp, `fraud` 0/1 or a boolean.
COLUMNS: Final = ("transaction_id", "ts", "customer_id", "terminal_id", "amount", "fraud", "scenario")
_MARGIN_MS: Final = HOUR_MS  # Keeps the oldest event inside the service's limit while the demo runs.
_BATCH_ROWS: Final = 8192
#: Days that are invented beyond now, for a service that runs on: at an event a second they last for hours.
_DAYS_LATER: Final = 30


class Sample(NamedTuple):
    """One event to send: its body, whose it is, the truth (an empty `case` is an unknown one), its moment."""

    body: bytes
    customer: str
    scenario: str
    case: str
    at_ms: int = 0

    @property
    def fraud(self) -> bool:
        """Whether the truth calls it fraud."""
        return self.scenario != ORDINARY


class Feed(NamedTuple):
    """A stream of samples in time order, about how many there are, a line on what it is, what follows, and
    its days where these are known.
    """

    samples: Iterator[Sample]
    expected: int
    about: str
    later: Iterator[Sample] = iter(())
    days: int | None = None


class FeedFault(Exception):
    """The input cannot be used; the message says why."""


def generated(customers: int, days: int, seed: int, fraud_share: float) -> Feed:
    """Invent traffic whose last event is about now. Raises `FeedFault` when it would reach back too far."""
    now_ms = clock.now_ms()
    first_ms = now_ms - days * DAY_MS
    # Whole days up to the end of today keep every hour of the day where people's habits put it.
    start_ms = first_ms - first_ms % DAY_MS
    if first_ms < now_ms - BACK_MS_MAX + _MARGIN_MS:
        raise FeedFault(f"--days must not be more than {BACK_MS_MAX // DAY_MS - 1}")
    traffic = Traffic(
        customers=customers,
        days=days + 1 + _DAYS_LATER,
        seed=seed,
        start_ms=start_ms,
        fraud_share=fraud_share,
    )
    happenings = enumerate(stream(traffic))

    def sample(number: int, event: Happening) -> Sample:
        return Sample(event.body(reference(number)), event.customer, event.scenario, event.case, event.at_ms)

    def samples() -> Iterator[Sample]:
        for number, event in happenings:
            if event.at_ms > now_ms:
                return
            if event.at_ms >= first_ms:
                yield sample(number, event)

    about = f"{customers:,} invented customers over {days} days (seed {seed})"
    expected = events_expected(msgspec.structs.replace(traffic, days=days + 1))
    return Feed(samples(), expected, about, itertools.starmap(sample, happenings), days)


def parquet(path: Path) -> Feed:
    """Read labelled card payments, moved in time so that the last is now. Raises `FeedFault`."""
    try:
        import pyarrow.parquet
    except ImportError:
        raise FeedFault(
            'reading parquet files needs pyarrow; install it with: pip install "vettance[parquet]"'
        ) from None
    try:
        table = pyarrow.parquet.read_table(path)
    except (OSError, pyarrow.ArrowInvalid) as error:
        raise FeedFault(f"{path} cannot be read as a parquet file: {error}") from None
    missing = [name for name in COLUMNS if name not in table.column_names]
    if missing:
        raise FeedFault(f"{path} lacks the columns {', '.join(missing)}; it needs {', '.join(COLUMNS)}")
    if not table.num_rows:
        raise FeedFault(f"{path} has no rows")
    table = table.select(COLUMNS).sort_by([("ts", "ascending"), ("transaction_id", "ascending")])
    last_ms = _moment_ms(table["ts"][-1].as_py())
    shift_ms = clock.now_ms() - last_ms
    oldest_ms = last_ms - BACK_MS_MAX + _MARGIN_MS
    dropped = sum(_moment_ms(moment) < oldest_ms for moment in table["ts"].to_pylist())
    left_out = f", {dropped:,} older than 400 days left out" if dropped else ""
    about = f"{table.num_rows - dropped:,} payments of {path.name}{left_out}"
    return Feed(_rows(table.slice(dropped), shift_ms), table.num_rows - dropped, about)


def _rows(table: Any, shift_ms: int) -> Iterator[Sample]:
    encode = msgspec.json.Encoder().encode
    for batch in table.to_batches(max_chunksize=_BATCH_ROWS):
        for row in batch.to_pylist():
            customer, at_ms = f"cus_{row['customer_id']}", _moment_ms(row["ts"]) + shift_ms
            event = {
                "eventName": "payment.attempt",
                "eventCategory": "TRANSACTION",
                "customer": {"externalId": customer},
                "metadata": {
                    "amount": float(row["amount"]),
                    "terminalId": f"ter_{row['terminal_id']}",
                    "reference": str(row["transaction_id"]),
                    "occurredAt": timestamp(at_ms),
                },
            }
            scenario = f"scenario {row['scenario']}" if row["fraud"] else ORDINARY
            yield Sample(encode(event), customer, scenario, "", at_ms)


def _moment_ms(value: Any) -> int:
    """Read a `ts` cell: Unix seconds, or what parquet calls a timestamp (naive ones are UTC)."""
    if isinstance(value, dt.datetime):
        moment = value if value.tzinfo is not None else value.replace(tzinfo=dt.UTC)
        return int(moment.timestamp() * 1000)
    return int(value * 1000)
