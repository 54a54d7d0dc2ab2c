"""Runs a service under mixed traffic at a steady rate for long, and tells what grows.

Everything the service does is asked of it at once (decisions, events now and later, browser signals, money
laundering, screening, lists, feedback, history), and every decision goes to a webhook that this program
receives. Each five seconds the memory of every process is weighed (PSS, the whole and its anonymous part),
its files, sockets and threads are counted, and the store is measured. After the warm-up a line is laid
through the minutes (least squares): its slope is what grows in an hour, with the interval that holds it at
95 %.

    python bench soak [--minutes 30] [--warm 10] [--rate 200] [--json]

VETTANCE_DATABASE_URL names an empty database and VETTANCE_REDIS_URL a Redis, for `--workers 2`.
"""

import argparse
import asyncio
import contextlib
import json
import os
import re
import shutil
import statistics
import time
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import uvloop

from bench.client.blocking import ask
from bench.client.open_loop import OpenLoop, quantile
from bench.fixtures.processes import kind_of, machine, processes_of, say
from bench.fixtures.webhook_receivers import OK
from bench.load.soak_traffic import MIX, Traffic
from vettance.db.connection import STORE_FILE
from vettance.demo.launch import LaunchFault, RunningService, command, launched, make_fresh

SAMPLE_S = 5.0
MINUTE_S = 60.0
#: Two-sided 95 % of Student's distribution by degrees of freedom; beyond 30 the normal is near enough.
STUDENT = {1: 12.71, 2: 4.30, 3: 3.18, 4: 2.78, 5: 2.57, 8: 2.31, 10: 2.23, 15: 2.13, 20: 2.09, 30: 2.04}
_PSS = re.compile(rb"^(Pss|Pss_Anon):\s+(\d+) kB", re.MULTILINE)


class Sample(NamedTuple):
    """What one process, or (`name` "all") all of them, held at a moment. Memory in MB (10^6 bytes)."""

    at_s: float
    name: str
    memory: float
    anonymous: float
    files: int
    sockets: int
    threads: int


class Sizes(NamedTuple):
    """How big the embedded store and its log were, in bytes."""

    at_s: float
    store: int
    log: int


class Slope(NamedTuple):
    """What grows in an hour, and half the width of the interval that holds it at 95 %."""

    hourly: float
    give_or_take: float
    first: float
    last: float


class Receiver(asyncio.Protocol):
    """Takes every delivery and only counts."""

    received = 0

    def __init__(self) -> None:
        self._buffer = b""

    def connection_made(self, transport: Any) -> None:
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        data = self._buffer + data
        while (head_end := data.find(b"\r\n\r\n")) >= 0:
            start = data.find(b"Content-Length: ") + 16
            end = head_end + 4 + int(data[start : data.find(b"\r", start)])
            if len(data) < end:
                break
            Receiver.received += 1
            self._transport.write(OK)
            data = data[end:]
        self._buffer = data


def weigh(pid: int, at_s: float) -> Sample:
    """Weigh one process. Raises `OSError` when it is gone."""
    place = Path(f"/proc/{pid}")
    parts = {name: int(kilobytes) for name, kilobytes in _PSS.findall((place / "smaps_rollup").read_bytes())}
    files = [str(file.readlink()) for file in (place / "fd").iterdir()]
    threads = len(list((place / "task").iterdir()))
    sockets = sum(file.startswith("socket:") for file in files)
    memory, anonymous = (parts[name] * 1024 / 1e6 for name in (b"Pss", b"Pss_Anon"))
    return Sample(at_s, f"{kind_of(pid)} {pid}", memory, anonymous, len(files), sockets, threads)


async def watch(pid: int, folder: Path, samples: list[Sample], sizes: list[Sizes]) -> None:
    """Weigh the family of a process for ever."""
    began = time.monotonic()
    while True:
        at_s = time.monotonic() - began
        found = []
        for member in processes_of(pid):
            with contextlib.suppress(OSError, KeyError):
                found.append(weigh(member, at_s))
        totals = [sum(getattr(one, field) for one in found) for field in Sample._fields[2:]]
        samples += [*found, Sample(at_s, "all", *totals)]
        sizes.append(Sizes(at_s, _size(folder / STORE_FILE), _size(folder / f"{STORE_FILE}-wal")))
        await asyncio.sleep(SAMPLE_S)


def _size(file: Path) -> int:
    try:
        return file.stat().st_size
    except OSError:
        return 0


def slope(samples: list[Sample], field: str, warm_s: float) -> Slope | None:
    """Lay a line through the means of the minutes after the warm-up; None for fewer than three of them."""
    minutes = defaultdict(list)
    for sample in samples:
        if sample.at_s >= warm_s:
            minutes[sample.at_s // MINUTE_S].append(float(getattr(sample, field)))
    xs = [minute / 60 for minute in minutes]  # hours
    ys = [statistics.fmean(values) for values in minutes.values()]
    if len(xs) < 3:
        return None
    line = statistics.linear_regression(xs, ys)
    middle, free = statistics.fmean(xs), len(xs) - 2
    rest = sum((y - line.slope * x - line.intercept) ** 2 for x, y in zip(xs, ys, strict=True))
    error = (rest / free / sum((x - middle) ** 2 for x in xs)) ** 0.5
    student = STUDENT[max(known for known in STUDENT if known <= free)] if free <= 30 else 1.97
    return Slope(line.slope, student * error, ys[0], ys[-1])


async def drive(
    service: RunningService,
    folder: Path,
    rate: float,
    minutes: float,
    warm: float,
    without: Sequence[str] = (),
) -> dict[str, Any]:
    """Send the traffic and watch; returns what was found."""
    receiver = await asyncio.get_running_loop().create_server(Receiver, "127.0.0.1", 0)
    hook = f"http://127.0.0.1:{receiver.sockets[0].getsockname()[1]}/hook"
    subscription = {"url": hook, "eventTypes": ["EVENT_RISK_EVALUATED"]}
    ask(service.target, "/api/v1/webhooks/subscriptions", json.dumps(subscription).encode())
    pool = OpenLoop(service.target.host, service.target.port)
    samples: list[Sample] = []
    sizes: list[Sizes] = []
    watching = asyncio.create_task(watch(service.process.pid, folder, samples, sizes))
    telling = asyncio.create_task(tell(pool, samples, sizes))
    try:
        await pool.run(Traffic(service.target.api_key, without=without), rate, (minutes + warm) * MINUTE_S)
    finally:
        watching.cancel()
        telling.cancel()
        receiver.close()
    return report(samples, sizes, pool, warm * MINUTE_S)


async def tell(pool: OpenLoop, samples: list[Sample], sizes: list[Sizes]) -> None:
    """Say once a minute how it goes."""
    while True:
        await asyncio.sleep(MINUTE_S)
        last = {sample.name: sample for sample in samples[-12:]}
        parts = " ".join(f"{name}: {one.memory:.1f}" for name, one in last.items())
        bad = sum(
            count for known in pool.statuses.values() for status, count in known.items() if status // 100 != 2
        )
        every, size = last["all"], sizes[-1]
        say(
            f"{size.at_s / 60:5.1f} min  {parts} MB  {every.files} files  {every.sockets} sockets  "
            f"{every.threads} threads  store {size.store / 1e6:.0f} MB  log {size.log / 1e6:.1f} MB  "
            f"{pool.sent:,} sent, {bad} not 2xx, {Receiver.received:,} delivered"
        )


def report(samples: list[Sample], sizes: list[Sizes], pool: OpenLoop, warm_s: float) -> dict[str, Any]:
    """Put together what was found."""
    names = dict.fromkeys(sample.name for sample in samples)
    slopes = {
        name: {
            field: found._asdict()
            for field in Sample._fields[2:]
            if (found := slope([one for one in samples if one.name == name], field, warm_s)) is not None
        }
        for name in names
    }
    return {
        "machine": machine(),
        "sent": pool.sent,
        "delivered": Receiver.received,
        "answers": {kind: dict(counts) for kind, counts in sorted(pool.statuses.items())},
        "p50Ms": {kind: quantile(taken, 0.5) for kind, taken in sorted(pool.latencies_ms.items())},
        "p99Ms": {kind: quantile(taken, 0.99) for kind, taken in sorted(pool.latencies_ms.items())},
        "slopes": slopes,
        "logBytesMost": max(size.log for size in sizes),
        "storeBytes": sizes[-1].store,
        "samples": [[round(value, 2) if type(value) is float else value for value in one] for one in samples],
    }


def show(found: dict[str, Any]) -> None:
    """Print the results for people."""
    about = found["machine"]
    print(
        f"{about['cpu']}, {about['cores']} cores, load {about['load']} at the end, Python {about['python']}\n"
    )
    print(
        "process            first MB   last MB   MB an hour (95 %)        anonymous             files an hour"
    )
    for name, fields in found["slopes"].items():
        if fields:
            memory, own, files = fields["memory"], fields["anonymous"], fields["files"]
            print(
                f"{name:<16}{memory['first']:>11.1f}{memory['last']:>10.1f}"
                f"{memory['hourly']:>+10.2f} ± {memory['give_or_take']:<8.2f}"
                f"{own['hourly']:>+10.2f} ± {own['give_or_take']:<8.2f}"
                f"{files['hourly']:>+10.1f} ± {files['give_or_take']:<8.1f}"
            )
    print("\nkind            answers  p50 ms   p99 ms   statuses")
    for kind, statuses in found["answers"].items():
        taken = f"{found['p50Ms'][kind]:>8.1f} {found['p99Ms'][kind]:>8.1f}"
        print(f"{kind:<13}{sum(statuses.values()):>10,}{taken}   {statuses}")
    print(
        f"\n{found['delivered']:,} webhooks delivered; store {found['storeBytes'] / 1e6:,.0f} MB, "
        f"its log at most {found['logBytesMost'] / 1e6:.1f} MB"
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--minutes", type=float, default=30, help="measured, after the warm-up")
    parser.add_argument("--warm", type=float, default=10, help="minutes until everything is full")
    parser.add_argument("--rate", type=float, default=200, help="requests a second")
    parser.add_argument("--without", default="", help=f"kinds to leave out, of {', '.join(MIX)}")
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--keep", action="store_true", help="keep the folder")
    parser.add_argument("--folder", type=Path, default=Path("bench-data"))
    options = parser.parse_args()
    os.environ["VETTANCE_UNSAFE_WEBHOOKS"] = "1"
    try:
        make_fresh(options.folder)
        command(options.folder, "watchlist", "import", "--source", "sample")
        with launched(options.folder, workers=options.workers) as service:
            command(options.folder, "tenant", "set", service.tenant_id, "--aml", "on")
            time.sleep(2)  # Until every process has read it.
            found = uvloop.run(
                drive(
                    service,
                    options.folder,
                    options.rate,
                    options.minutes,
                    options.warm,
                    options.without.split(","),
                )
            )
    except LaunchFault as fault:
        raise SystemExit(str(fault)) from None
    if not options.keep:
        shutil.rmtree(options.folder)
    if options.json:
        print(json.dumps(found))
    else:
        show(found)
