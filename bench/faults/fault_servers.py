"""Several processes on PostgreSQL and Redis broken: themselves, their stores, and the way between."""

import contextlib
import os
import random
import secrets
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import uvloop

from bench.client.load import Run, drive
from bench.faults.fault_deployment import LAYOUTS, Deployment, prepare
from bench.faults.ledger import CarefulClient, Ledger, Round, compare, settle_jobs
from bench.faults.watchers import Hammer, Prober, Tally, processes_and_connections, written_errors
from bench.fixtures.payments import payment_bodies
from bench.fixtures.private_stores import Postgres, Redis, StoreFault, stores
from bench.fixtures.processes import say
from bench.fixtures.small_disk import SmallDisk
from bench.fixtures.webhook_receivers import Receivers
from vettance.demo.demo_client import request
from vettance.demo.drive import PATH
from vettance.demo.launch import LaunchFault, make_fresh

CONNECTIONS = 16
PAUSE_S = 0.05  # Of each connection, so that a log stays short enough to be read again and again.
BODIES = 4_000
LOAD_S_MAX = 330.0
AFTER_S = 1.0  # The load goes on for so long after a fault.
ROUNDS_A_BOOT = 20
BACK_S_MAX = 5.0  # What the service may take from the return of its store to its next success.
SETTLE_S_MAX = 60.0
JUMPS_S = (-3600, -600, -5, 5, 600, 3600)


class Stage(NamedTuple):
    """What there is to be broken."""

    deployment: Deployment
    postgres: Postgres
    redis: Redis
    disk: SmallDisk | None
    rng: random.Random


def _web(stage: Stage) -> str:
    processes = stage.deployment.processes("web")
    os.kill(stage.rng.choice(processes), signal.SIGKILL)
    return f"of {len(processes)}"


def _worker(stage: Stage) -> str:
    sorts = ("deliverer", "indexer", "worker")
    which = stage.rng.choice([sort for sort in sorts if stage.deployment.processes(sort)] or ["deliverer"])
    for pid in stage.deployment.processes(which):
        os.kill(pid, signal.SIGKILL)
    return which


def _postgres(stage: Stage) -> str:
    stage.postgres.restart()
    return "crash"


def _redis(stage: Stage) -> str:
    stage.redis.kill()
    away_s = stage.rng.uniform(0.0, 1.5)
    time.sleep(away_s)
    stage.redis.start()
    return f"away for {away_s:.1f} s"


def _flush(stage: Stage) -> str:
    stage.redis.command("FLUSHALL")
    return "once"


def _cut(stage: Stage) -> str:
    which, how = stage.rng.choice(("postgres", "redis", "both")), stage.rng.choice(("reset", "silent"))
    away_s = stage.rng.uniform(1.0, 4.0)
    cables, named = stage.deployment.cables, stage.deployment.named(which)
    for cable in named:
        cables.do(cable.cut() if how == "reset" else cable.silence())
    time.sleep(away_s)
    for cable in named:
        cables.do(cable.plug() if how == "reset" else cable.speak())
    return f"{which} {how} {away_s:.1f} s"


def _slow(stage: Stage) -> str:
    which, delay_s = stage.rng.choice(("postgres", "redis", "both")), stage.rng.uniform(0.1, 0.5)
    cables, named = stage.deployment.cables, stage.deployment.named(which)
    for cable in named:
        cables.do(cable.slow(delay_s))
    time.sleep(stage.rng.uniform(1.0, 3.0))
    for cable in named:
        cables.do(cable.slow(0.0))
    return f"{which} by {delay_s * 1000:.0f} ms"


def _stop(stage: Stage) -> str:
    codes = stage.deployment.stop()
    stage.deployment.start()
    if any(codes):
        raise StoreFault(f"after SIGTERM, the processes ended with {codes}")
    return "all"


def _clock(stage: Stage) -> str:
    jumps = []
    for _ in range(stage.rng.randint(1, 3)):
        host = stage.rng.choice(stage.deployment.hosts)
        jumps.append(stage.rng.choice(JUMPS_S))
        host.set_clock(jumps[-1])
        time.sleep(stage.rng.uniform(0.2, 0.6))
    for host in stage.deployment.hosts:
        host.set_clock(0)
    return " ".join(f"{jump:+}" for jump in jumps)


def _disk(stage: Stage) -> str:
    assert stage.disk is not None
    stage.disk.fill()
    time.sleep(stage.rng.uniform(0.5, 1.5))
    stage.disk.free()
    stage.postgres.revive()
    return "full"


#: Each breaks something, waits until it is over, and says how it went about it.
FAULTS: dict[str, Callable[[Stage], str]] = {
    "web": _web,
    "worker": _worker,
    "postgres": _postgres,
    "redis": _redis,
    "flush": _flush,
    "cut": _cut,
    "slow": _slow,
    "stop": _stop,
    "clock": _clock,
    "disk": _disk,
}
KINDS = tuple(FAULTS)
#: What loses the counters in Redis: a caller may then use its minute anew (docs/redis.md).
_LOSES_COUNTERS = {"redis", "flush"}


class _Fault(threading.Thread):
    """A fault in the middle of the load, which ends a while after it."""

    def __init__(self, kind: str, stage: Stage, run: Run) -> None:
        super().__init__(daemon=True)
        self.kind, self.stage, self.run_of_load = kind, stage, run
        self.what, self.error = "", ""
        self.ended_s = 0.0

    def run(self) -> None:
        time.sleep(self.stage.rng.uniform(0.2, 0.8))
        try:
            self.what = FAULTS[self.kind](self.stage)
        except (OSError, LaunchFault, StoreFault) as error:
            self.error = str(error) or type(error).__name__
        self.ended_s = time.monotonic()
        self.run_of_load.until = time.perf_counter() + AFTER_S


def one_round(
    number: int, kind: str, stage: Stage, bodies: list[bytes], hammer: Hammer, ever: Tally
) -> Round:
    """Break one thing under load, wait until all is settled, and look at the ledger."""
    deployment, rng = stage.deployment, stage.rng
    ledger, found = Ledger(), list[str]()
    requests = [request("POST", PATH, deployment.api_key, body) for body in bodies]
    run = Run(requests, LOAD_S_MAX, observe=ledger.observe, pause_s=PAUSE_S)
    run.next = rng.randrange(len(bodies))
    careful = CarefulClient(deployment, ledger, str(number), random.Random(rng.random()))
    prober = Prober(deployment, ledger, f"probe-{number}")
    fault = _Fault(kind, stage, run)
    if kind in _LOSES_COUNTERS:
        hammer.forgiven()  # Here and after it: the moment of the loss lies between.
    for thread in (careful, prober, fault):
        thread.start()
    uvloop.run(drive(run, "127.0.0.1", deployment.port, CONNECTIONS, again=True))
    fault.join(LOAD_S_MAX)
    if kind in _LOSES_COUNTERS:
        hammer.forgiven()
    found += [fault.error] if fault.error else []
    deployment.await_success(ledger, SETTLE_S_MAX)
    steady_s = max(0.0, ledger.steady_s(fault.ended_s))
    for client in (careful, prober):
        client.ending.set()
        client.join(30)
    back_s = ledger.back_s(fault.ended_s)
    if back_s > BACK_S_MAX and kind != "stop":
        found.append(f"answered again only after {back_s:.1f} s")
    settle_jobs(deployment, ledger, found, SETTLE_S_MAX)
    found += processes_and_connections(deployment, stage.postgres, stage.redis)
    found += [f"an answer that nothing explains: {one}" for one in ledger.unexplained[:5]]
    found += audit(stage.postgres, deployment, ledger)
    if kind == "web":
        ever.later.append(prober)
    else:
        found += prober.settle(stage.postgres, SETTLE_S_MAX)
    ever.outcomes.update(ledger.outcomes)
    told = len(ledger.outcomes) + len(ledger.acknowledged)
    return Round(number, kind, told, ledger.statuses["503"], back_s, found, fault.what, steady_s)


def audit(postgres: Postgres, deployment: Deployment, ledger: Ledger) -> list[str]:
    """Hold the database against the ledger."""

    def rows(text: str) -> list[tuple[str, ...]]:
        return postgres.ask(text, deployment.tenant, database=deployment.database)

    events = [row[0] for row in rows("SELECT id FROM event WHERE tenant = $1")]
    decided: dict[str, str] = {}
    whose: Counter[str] = Counter()
    for key, outcome, customer in rows("SELECT id, decision, customer_id FROM decision WHERE tenant = $1"):
        decided[key] = outcome
        whose[customer] += 1
    lists = Counter(row[0] for row in rows("SELECT value FROM list_entry WHERE tenant = $1"))
    notes = Counter(row[0] for row in rows("SELECT notes FROM feedback WHERE tenant = $1"))
    return compare(ledger, decided, events, {"list": lists, "feedback": notes, "job": whose, "event": whose})


def end_of_boot(stage: Stage, hammer: Hammer, receivers: Receivers, ever: Tally) -> list[str]:
    """What can only be said in the end: everything is still there, arrived, and within its limits."""
    found, deployment = hammer.stop(), stage.deployment
    for prober in ever.later:
        found += prober.settle(stage.postgres, 120.0)
    rows = stage.postgres.ask(
        "SELECT id FROM decision WHERE tenant = $1", deployment.tenant, database=deployment.database
    )
    stored = {row[0] for row in rows}
    lost = [one for one in ever.outcomes if one not in stored]
    if lost:
        found.append(f"{len(lost)} decisions acknowledged in earlier rounds are gone")
    until = time.monotonic() + 120.0
    while missing := stored - {one.subject for one in receivers.arrivals()}:
        if time.monotonic() > until:
            found.append(
                f"{len(missing)} of {len(stored)} messages were never delivered: {fates(stage, missing)}"
            )
            break
        time.sleep(0.25)
    codes = deployment.stop()
    if any(codes):
        found.append(f"after SIGTERM, the processes ended with {codes}")
    return found + written_errors(deployment.folder)


def fates(stage: Stage, missing: set[str]) -> str:
    """Say what the store holds of messages that did not arrive."""
    deployment = stage.deployment
    rows = stage.postgres.ask(
        "SELECT subject, concat(state, ' ', attempts, CASE WHEN lease IS NULL THEN '' ELSE ' leased' END, "
        "' due in ', (due_at_ms - extract(epoch FROM now()) * 1000)::bigint / 1000, ' s') "
        "FROM delivery WHERE tenant = $1",
        deployment.tenant,
        database=deployment.database,
    )
    said = {subject: state for subject, state in rows if subject in missing}
    counts = Counter(said.get(one, "never queued") for one in missing)
    made = sorted(int(one[4:16], 16) / 1000 for one in missing)
    return f"{dict(counts)}, made from {made[0]:.1f} to {made[-1]:.1f}"


def break_servers(folder: Path, rounds: int, seed: int, kinds: list[str]) -> list[Round]:
    """Run all rounds, some of them on each fresh database and set of processes."""
    make_fresh(folder)
    folder.chmod(0o755)  # PostgreSQL runs as another user and has its folder below this one.
    rng = random.Random(seed)
    bodies = payment_bodies(BODIES)
    os.environ["VETTANCE_UNSAFE_WEBHOOKS"] = "1"
    os.environ["VETTANCE_SECRET"] = secrets.token_hex(32)
    done: list[Round] = []
    with stores(folder, small="disk" in kinds) as (postgres, redis, disk):
        prepared = prepare(folder, postgres)
        while len(done) < rounds:
            boot = len(done) // ROUNDS_A_BOOT
            receivers = Receivers(["healthy"])
            layout = list(LAYOUTS)[(boot + seed) % len(LAYOUTS)]
            deployment = Deployment(folder / f"boot-{boot}", postgres, redis, layout, prepared)
            stage, ever = Stage(deployment, postgres, redis, disk, rng), Tally()
            try:
                deployment.start()
                deployment.subscribe(f"http://127.0.0.1:{receivers.ports[0]}/hook")
                hammer = Hammer(deployment)
                hammer.start()
                for _ in range(min(ROUNDS_A_BOOT, rounds - len(done))):
                    kind = kinds[len(done) % len(kinds)]
                    one = one_round(len(done) + 1, kind, stage, bodies, hammer, ever)
                    done.append(one)
                    say(one.line())
                if found := end_of_boot(stage, hammer, receivers, ever):
                    done[-1] = done[-1]._replace(found=[*done[-1].found, *found])
                    say(f"     in the end: {'; '.join(found)}")
            finally:
                with contextlib.suppress(OSError):
                    deployment.close()
                receivers.end()
            # The disk is small: a boot leaves nothing on it.
            postgres.ask(f'DROP DATABASE "{deployment.database}" WITH (FORCE)')
    return done
