"""Kills the whole service with SIGKILL under load, time after time, and looks for what it acknowledged.

A round: 32 connections ask for decisions, at a random moment every process of the service is killed, the
service is started again, and every decision acknowledged in the round must be answered by
GET /api/v1/decisions/{id}, with the outcome that was acknowledged. At the end the store itself must hold
every acknowledged id, and one decision for each event.

    python bench kill [--rounds 25] [--json]
"""

import argparse
import asyncio
import contextlib
import gc
import json
import os
import random
import signal
import sqlite3
import time
from pathlib import Path
from typing import Any, NamedTuple

import uvloop

from bench.client.load import Run, drive
from bench.fixtures.payments import payment_bodies
from bench.fixtures.processes import processes_of, say
from vettance.db.connection import STORE_FILE
from vettance.demo.demo_client import HttpAnswer, request
from vettance.demo.drive import PATH
from vettance.demo.launch import LaunchFault, RunningService, command, make_fresh, serving

CONNECTIONS = 32
BODIES = 20_000
LOAD_S = (0.3, 2.0)  # The kill falls uniformly into this span after the first request.
LOAD_S_MAX = 30.0


class Round(NamedTuple):
    """What one kill did."""

    number: int
    acknowledged: int
    per_second: float
    lost: int  # acknowledged, and not answered after the restart
    changed: int  # answered with another outcome than acknowledged
    refused: int  # requests answered with an error before the kill
    restart_s: float


class Acknowledged:
    """Gathers the decisions that were acknowledged: id → outcome."""

    def __init__(self) -> None:
        self.outcomes: dict[str, str] = {}
        self.refused = 0

    def observe(self, answer: HttpAnswer) -> None:
        """Take one whole answer (called by the load client)."""
        if answer.status != 200:
            self.refused += 1
            return
        decided = json.loads(answer.body)
        self.outcomes[decided["correlationIds"]["eventId"]] = decided["decision"]


def load_and_kill(
    service: RunningService, requests: list[bytes], rng: random.Random
) -> tuple[Acknowledged, float]:
    """Send requests until every process of the service is dead; returns what it acknowledged and its rate."""
    acknowledged = Acknowledged()
    run = Run(requests, LOAD_S_MAX, observe=acknowledged.observe)
    run.next = rng.randrange(len(requests))
    family = processes_of(service.process.pid)
    rng.shuffle(family)

    def kill() -> None:
        for pid in family:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    async def whole() -> float:
        asyncio.get_running_loop().call_later(rng.uniform(*LOAD_S), kill)
        result = await drive(run, service.target.host, service.target.port, CONNECTIONS)
        return result.per_second

    rate = uvloop.run(whole())
    service.process.wait(15)
    return acknowledged, rate


def check(service: RunningService, acknowledged: Acknowledged) -> tuple[int, int]:
    """Ask for every acknowledged decision; returns how many are not there, and how many are not the same."""
    found: dict[str, str] = {}

    def observe(answer: HttpAnswer) -> None:
        if answer.status == 200:
            record = json.loads(answer.body)
            found[record["id"]] = record["outputs"]["decision"]

    requests = [
        request("GET", f"/api/v1/decisions/{event_id}", service.target.api_key)
        for event_id in acknowledged.outcomes
    ]
    if requests:
        run = Run(requests, 120.0, count=len(requests), observe=observe)
        uvloop.run(drive(run, service.target.host, service.target.port, CONNECTIONS))
    lost = sum(event_id not in found for event_id in acknowledged.outcomes)
    changed = sum(
        event_id in found and found[event_id] != outcome
        for event_id, outcome in acknowledged.outcomes.items()
    )
    return lost, changed


def audit(folder: Path, tenant_id: str, every_id: set[str]) -> dict[str, Any]:
    """Look into the store itself, with nobody else using it."""
    with contextlib.closing(sqlite3.connect(folder / STORE_FILE)) as store:
        (integrity,) = store.execute("PRAGMA integrity_check").fetchone()
        events = {row[0] for row in store.execute("SELECT id FROM event WHERE tenant = ?", (tenant_id,))}
        decisions = {
            row[0] for row in store.execute("SELECT id FROM decision WHERE tenant = ?", (tenant_id,))
        }
    return {
        "integrity": integrity,
        "acknowledged": len(every_id),
        "events": len(events),
        "decisions": len(decisions),
        "eventsWithoutDecision": len(events - decisions),
        "decisionsWithoutEvent": len(decisions - events),
        "acknowledgedNotStored": len(every_id - events) + len(every_id - decisions),
    }


def kill_rounds(folder: Path, rounds: int, seed: int) -> dict[str, Any]:
    """Run all rounds and the audit."""
    make_fresh(folder)
    rng = random.Random(seed)
    tenant = command(folder, "tenant", "create", "Kill")["tenantId"]
    command(folder, "tenant", "set", tenant, "--throttle", "10000000", "--quota", "100000000")
    api_key = command(folder, "key", "create", "--tenant", tenant)["apiKey"]
    bodies = payment_bodies(BODIES)
    gc.freeze()
    done: list[Round] = []
    every_id: set[str] = set()
    acknowledged, rate = Acknowledged(), 0.0
    for number in range(rounds + 1):
        began = time.perf_counter()
        with serving(folder, tenant, api_key) as service:
            restart_s = time.perf_counter() - began
            if number:
                lost, changed = check(service, acknowledged)
                outcomes = len(acknowledged.outcomes)
                done.append(Round(number, outcomes, rate, lost, changed, acknowledged.refused, restart_s))
                say(_line(done[-1]))
            if number < rounds:
                requests = [request("POST", PATH, api_key, body) for body in bodies]
                acknowledged, rate = load_and_kill(service, requests, rng)
                every_id |= acknowledged.outcomes.keys()
    return {"rounds": [one._asdict() for one in done], "store": audit(folder, tenant, every_id)}


def _line(one: Round) -> str:
    return (
        f"kill {one.number:>3}: {one.acknowledged:>7,} acknowledged ({one.per_second:>6,.0f}/s), "
        f"{one.lost} lost, {one.changed} changed, {one.refused} refused, "
        f"ready again after {one.restart_s:.2f} s"
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=25)
    parser.add_argument(
        "--seed", type=int, default=1, help="of the moments; what is under way then differs still"
    )
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--folder", type=Path, default=Path("bench-data"))
    options = parser.parse_args()
    try:
        found = kill_rounds(options.folder, options.rounds, options.seed)
    except LaunchFault as fault:
        raise SystemExit(str(fault)) from None
    store = found["store"]
    if options.json:
        print(json.dumps(found))
    else:
        print(
            f"{len(found['rounds'])} kills, {store['acknowledged']:,} decisions acknowledged: "
            f"{sum(one['lost'] for one in found['rounds'])} lost, "
            f"{store['acknowledgedNotStored']} not in the store\n"
            f"the store holds {store['events']:,} events and {store['decisions']:,} decisions; "
            f"{store['eventsWithoutDecision']} events without a decision, "
            f"{store['decisionsWithoutEvent']} decisions without an event; integrity: {store['integrity']}"
        )
    faults = sum(one["lost"] + one["changed"] for one in found["rounds"])
    faults += store["acknowledgedNotStored"] + store["eventsWithoutDecision"] + store["decisionsWithoutEvent"]
    raise SystemExit(1 if faults or store["integrity"] != "ok" else 0)
