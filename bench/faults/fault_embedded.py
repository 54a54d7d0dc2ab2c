"""The embedded service broken: its disk, its writer, its clock, its life."""

import contextlib
import os
import random
import re
import resource
import signal
import sqlite3
import struct
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import uvloop

from bench import BENCH
from bench.client.load import Run, drive
from bench.faults.ledger import CarefulClient, Ledger, Round, ask, compare, settle_jobs
from bench.fixtures.payments import payment_bodies
from bench.fixtures.processes import kind_of, processes_of, say
from bench.fixtures.small_disk import SmallDisk
from vettance.db.connection import STORE_FILE
from vettance.demo.demo_client import request
from vettance.demo.drive import PATH
from vettance.demo.launch import LaunchFault, command, make_fresh

KINDS = ("disk", "writer", "stall", "clock", "stop")
CONNECTIONS = 8
BODIES = 2_000
LOAD_S = 3.0
DISK_BYTES = 768 * 1024 * 1024  # A fast machine writes a quarter of it in a round.
WAIT_S_MAX = 60.0
JUMPS_S = (-3600, -600, -5, 5, 600, 3600)
_LISTENS = re.compile(r"listens on http://([^:\s]+):(\d+)")


class Running:
    """A service on a folder, its clock under our hand."""

    def __init__(self, folder: Path, offset: Path, api_key: str) -> None:
        self.folder = folder
        self.api_key = api_key
        self.offset = offset
        self.set_clock(0)
        with (folder / "service.log").open("ab") as log:
            begin = log.tell()
            self.process = subprocess.Popen(
                [
                    *(sys.executable, str(BENCH), "wrong_clock", str(offset)),
                    *("serve", "--port", "0", "--data", str(folder / "data")),
                ],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        self._await(lambda: self._find_address(begin))
        self._await(lambda: self.ask("GET", "/readyz")[0] == 200)

    def _find_address(self, begin: int) -> bool:
        with (self.folder / "service.log").open("rb") as log:
            log.seek(begin)
            found = _LISTENS.search(log.read().decode("utf-8", "replace"))
        if found:
            self.host, self.port = found[1], int(found[2])
            return True
        if self.process.poll() is not None:
            raise LaunchFault((self.folder / "service.log").read_text("utf-8", "replace")[-2000:])
        return False

    @staticmethod
    def _await(done: Callable[[], bool]) -> None:
        until = time.monotonic() + WAIT_S_MAX
        while True:
            with contextlib.suppress(OSError):
                if done():
                    return
            if time.monotonic() > until:
                raise LaunchFault("the service did not come up")
            time.sleep(0.02)

    def set_clock(self, ahead_s: float) -> None:
        # Written over, never anew: the service has mapped this very file.
        with self.offset.open("r+b" if self.offset.exists() else "wb") as file:
            file.write(struct.pack("<q", int(ahead_s * 1e9)))

    def ask(self, method: str, path: str, body: Any = None, key: str | None = None) -> tuple[int, bytes]:
        """Send one request; raises `OSError` when there is no answer."""
        return ask((self.host, self.port), self.api_key, method, path, body, key)

    def writer(self) -> int | None:
        """The process that writes to the store."""
        for pid in processes_of(self.process.pid)[1:]:
            with contextlib.suppress(OSError):
                if kind_of(pid) == "writer":
                    return pid
        return None

    def stop(self) -> int:
        """Tell it to stop and return the exit code."""
        self.process.terminate()
        try:
            return self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait(10)
            return -1


class Disk:
    """A data folder that can be filled up: a small disk of its own, else a bound on the writer's files."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._small = SmallDisk(folder, DISK_BYTES, 0o700)
        self.mounted = self._small.mounted

    def fill(self, service: Running) -> None:
        """Leave no room."""
        if self.mounted:
            self._small.fill()
        elif (writer := service.writer()) is not None:
            size = max(path.stat().st_size for path in self.folder.glob(STORE_FILE + "*"))
            resource.prlimit(writer, resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))

    def free(self, service: Running) -> None:
        """Make room again."""
        if self.mounted:
            self._small.free()
        elif (writer := service.writer()) is not None:
            resource.prlimit(writer, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY,) * 2)

    def close(self) -> None:
        self._small.close()


def break_it(kind: str, service: Running, disk: Disk, rng: random.Random, ended: list[float]) -> None:
    """Let a fault happen in the middle of the load; note when it was over."""
    time.sleep(rng.uniform(0.2, 0.8))
    if kind == "disk":
        disk.fill(service)
        time.sleep(rng.uniform(0.5, 1.2))
        disk.free(service)
    elif kind == "writer":
        for _ in range(rng.randint(1, 3)):
            if (pid := service.writer()) is not None:
                os.kill(pid, signal.SIGKILL)
            time.sleep(rng.uniform(0.05, 0.5))
    elif kind == "stall":
        if (pid := service.writer()) is not None:
            os.kill(pid, signal.SIGSTOP)
            time.sleep(rng.uniform(0.3, 1.5))
            os.kill(pid, signal.SIGCONT)
    elif kind == "clock":
        for _ in range(rng.randint(1, 3)):
            service.set_clock(rng.choice(JUMPS_S))
            time.sleep(rng.uniform(0.2, 0.6))
        service.set_clock(0)
    elif kind == "stop":
        service.process.send_signal(signal.SIGTERM)
    ended.append(time.monotonic())


def one_round(
    number: int,
    kind: str,
    disk: Disk,
    folder: Path,
    tenant: str,
    api_key: str,
    bodies: list[bytes],
    rng: random.Random,
) -> Round:
    """Start the service, break it under load, and look at the ledger."""
    found: list[str] = []
    ledger, ended = Ledger(), list[float]()
    service = Running(folder, folder / "clock", api_key)
    try:
        run = Run([request("POST", PATH, api_key, body) for body in bodies], LOAD_S, observe=ledger.observe)
        run.next = rng.randrange(len(bodies))
        careful = CarefulClient(service, ledger, str(number), random.Random(rng.random()))
        breaking = threading.Thread(target=break_it, args=(kind, service, disk, rng, ended))
        careful.start()
        breaking.start()
        result = uvloop.run(drive(run, service.host, service.port, CONNECTIONS))
        breaking.join(30)
        if kind == "stop":
            if service.process.wait(20) != 0:
                found.append(f"the service ended with {service.process.returncode}")
            careful.ending.set()
            careful.join(30)
            service = Running(folder, folder / "clock", api_key)
        elif result.broken:
            found.append(f"{result.broken} connections were closed on callers")
        steady_s = max(0.0, ledger.steady_s(ended[0]))
        back_s = until_it_works(service, ledger) - ended[0]
        careful.ending.set()
        careful.join(30)
        settle_jobs(service, ledger, found, WAIT_S_MAX)
        if service.stop() != 0:
            found.append(f"the service ended with {service.process.returncode}")
    finally:
        if service.process.poll() is None:
            service.process.kill()
            service.process.wait(10)
    found += [f"an answer that nothing explains: {one}" for one in ledger.unexplained[:5]]
    found += audit(disk.folder / STORE_FILE, tenant, ledger)
    refused = ledger.statuses["503"]
    told = len(ledger.outcomes) + len(ledger.acknowledged)
    return Round(number, kind, told, refused, max(0.0, back_s), found, steady_s=steady_s)


def until_it_works(service: Running, ledger: Ledger) -> float:
    """Return the moment at which a decision is taken again."""
    until = time.monotonic() + WAIT_S_MAX
    body = {"eventName": "user.login", "customer": {"externalId": "after"}}
    while time.monotonic() < until:
        status, answer = service.ask("POST", PATH, body)
        ledger.note(str(status), answer)
        if status == 200:
            ledger.decided(answer)
            return time.monotonic()
        time.sleep(0.02)
    raise LaunchFault(f"the service did not recover: {dict(ledger.statuses)} {ledger.unexplained[-1:]}")


def audit(store: Path, tenant: str, ledger: Ledger) -> list[str]:
    """Hold the store against the ledger, with nobody else using it."""
    with contextlib.closing(sqlite3.connect(store)) as connection:

        def rows(text: str, *arguments: Any) -> Iterator[tuple[Any, ...]]:
            return connection.execute(text, arguments)

        sound = next(rows("PRAGMA integrity_check"))[0]
        found = [] if sound == "ok" else [f"the store is damaged: {sound}"]
        decided = dict(rows("SELECT id, decision FROM decision WHERE tenant = ?", tenant))
        events = [row[0] for row in rows("SELECT id FROM event WHERE tenant = ?", tenant)]
        lists = Counter(row[0] for row in rows("SELECT value FROM list_entry WHERE tenant = ?", tenant))
        notes = Counter(row[0] for row in rows("SELECT notes FROM feedback WHERE tenant = ?", tenant))
        whose = Counter(row[0] for row in rows("SELECT customer_id FROM decision WHERE tenant = ?", tenant))
    there = {"list": lists, "feedback": notes, "job": whose, "event": whose}
    return found + compare(ledger, decided, events, there)


def break_embedded(folder: Path, rounds: int, seed: int, kinds: list[str]) -> list[Round]:
    """Run all rounds."""
    make_fresh(folder)
    rng = random.Random(seed)
    bodies = payment_bodies(BODIES)
    disk = Disk(folder / "data")
    done: list[Round] = []
    try:
        tenant, api_key = prepare(folder)
        for number in range(1, rounds + 1):
            kind = kinds[(number - 1) % len(kinds)]
            one = one_round(number, kind, disk, folder, tenant, api_key, bodies, rng)
            done.append(one)
            say(one.line())
            if disk.mounted and disk_is_short(disk.folder):
                start_afresh(disk.folder)
                tenant, api_key = prepare(folder)
    finally:
        disk.close()
    return done


def prepare(folder: Path) -> tuple[str, str]:
    """Make a tenant with a key."""
    data = folder / "data"
    tenant = command(data, "tenant", "create", "Faults")["tenantId"]
    command(data, "tenant", "set", tenant, "--throttle", "10000000", "--quota", "100000000")
    return tenant, command(data, "key", "create", "--tenant", tenant)["apiKey"]


def disk_is_short(folder: Path) -> bool:
    status = os.statvfs(folder)
    return status.f_bavail * status.f_frsize < DISK_BYTES // 2


def start_afresh(folder: Path) -> None:
    for path in sorted(folder.rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()
