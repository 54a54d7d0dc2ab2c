"""What the AML rules find, and what watching costs.

    python bench aml rules [--customers 10000] [--days 60] [--seed 9001]   recall, false alerts
    python bench aml other [--customers 2000]        the same on money of another generator
    python bench aml rules --times 150 --currency JPY    with other sums (--planted: of what is planted only)
    python bench aml graph                           what a hub costs in the graph
    python bench aml http [--seconds 20] [--workers 2]   events a second through the service
    python bench aml start [--events 500000]         what a start takes
    python bench aml amlsim --tx FILE --nodes FILE   a sample of IBM's AMLSim (parquet)

`http` and `start` run on PostgreSQL where VETTANCE_DATABASE_URL names an empty database, `http` with several
workers where VETTANCE_REDIS_URL names a Redis. `rules` and `amlsim` run rules and memory in this process,
without a store; events happen at their own time.
"""

import argparse
import asyncio
import os
import time
from collections import Counter
from collections.abc import Iterable
from itertools import islice
from pathlib import Path
from typing import Any

from bench.aml.case_names import CaseEvent, CaseNames
from bench.aml.other_money import Other
from bench.client.load import measure_apart
from bench.fixtures.processes import cpu_s, machine
from vettance import clock
from vettance.aml import sql
from vettance.aml.aml_event import read_taken_aml_event
from vettance.aml.aml_memory import AmlMemory
from vettance.aml.assemble import Aml, assemble
from vettance.aml.features import aml_schema
from vettance.aml.findings import AmlFinding, judge
from vettance.aml.graph import Graph
from vettance.aml.screening.screen import Screener
from vettance.backtests.raised_alerts import RaisedAlerts, TriedAlert
from vettance.clock import HOUR_MS
from vettance.db.postgres import PostgresStore
from vettance.db.sqlite import SqliteStore
from vettance.demo.launch import command, launched, make_fresh
from vettance.generate.aml_stream import Watch, aml_events
from vettance.ids import IdSource
from vettance.rules.packs import load_pack, load_pack_text
from vettance.rules.ruleset import compile_ruleset
from vettance.velocity.memory.memory_velocity import MemoryVelocity
from vettance.watchlists.refresh import IndexKeeper
from vettance.wire.payload import encode, read_timestamp

DAY_MS = 24 * HOUR_MS
START_MS = 1_767_225_600_000


class Desk:
    """Rules and memory as the service runs them, without a store; counts alerts as officers see them."""

    def __init__(self) -> None:
        self.ruleset = load_pack("aml")
        self.compiled = compile_ruleset(self.ruleset, aml_schema())
        self.memory = AmlMemory(MemoryVelocity())
        self.memory.install("t", self.compiled.plan)
        self.events = 0
        self.seconds = 0.0  # of processor time
        self.rule_ids = [rule.id for rule in self.ruleset.running]
        self.alerts = RaisedAlerts(())

    def watch(self, body: dict[str, Any], at_ms: int) -> list[tuple[AmlFinding, TriedAlert]]:
        """Return what is found in an event, each with the alert that it raises or repeats."""
        self.events += 1
        event = read_taken_aml_event(body, at_ms)
        began = time.process_time()
        event = self.memory.follow("t", event)
        facts = self.compiled.facts(event)
        seen = self.compiled.observe(facts)
        answer = self.memory.observe("t", str(self.events), at_ms, seen)
        fired, failed = self.compiled.run(facts, answer.values)
        findings = judge(self.ruleset, fired, {}, event) if fired else []
        self.seconds += time.process_time() - began
        assert not failed, failed
        return [
            (finding, alert)
            for finding in findings
            for alert in self.alerts.place([finding], self.rule_ids, event, is_counted=True)
        ]


Labelled = Iterable[tuple[str, str, str, dict[str, Any], int]]


def ours(customers: int, days: int, seed: int, cases: int | None = None) -> Labelled:
    """Give (typology, case, customer, body, moment) of `vettance generate aml`."""
    for move, body in aml_events(Watch(customers, days, seed, cases=cases)):
        at_ms = read_timestamp(body["sourceReportedAt"])
        assert at_ms is not None
        yield move.typology, move.case, move.customer, body, at_ms


def others(customers: int, days: int, seed: int, cases: int | None = None) -> Labelled:
    """Give the same of the other generator, in `other_money.py`."""
    for told in Other(customers, days, seed, cases or max(2, round(3 * customers / 1000))).events():
        yield told.typology, told.case, told.who, told.body, int(told.at_s * 1000)


_MONEY = ("amount", "balanceAfter", "declaredMonthlyIncome", "invoiceAmount", "marketValue")


def scaled(events: Labelled, times: float, currency: str | None, *, planted: bool) -> Labelled:
    """Give events with other sums of money; with `planted` only those of laundering, whose incomes stay."""
    for kind, case, customer, body, at_ms in events:
        metadata = dict(body["metadata"])
        if case or not planted:
            for name in _MONEY:
                if name in metadata and not (planted and name == "declaredMonthlyIncome"):
                    metadata[name] = round(float(metadata[name]) * times, 2)
        if currency is not None and "amount" in metadata:
            metadata["currency"] = currency
        yield kind, case, customer, {**body, "metadata": metadata}, at_ms


def measure_rules(events: Labelled, customers: int, days: int) -> None:
    """Print recall by typology and what ordinary customers have to bear, as rows of Markdown."""
    desk = Desk()
    caught: dict[str, bool] = {}
    typology: dict[str, str] = {}
    involved: set[str] = set()
    ordinary = alerted = 0
    noisy: Counter[str] = Counter()
    alerts: list[tuple[str, str]] = []
    rules: dict[str, Counter[str]] = {}
    names = CaseNames()
    for kind, case, customer, body, at_ms in events:
        before = len(desk.alerts.raised)
        found = desk.watch(body, at_ms)
        running = desk.ruleset.running
        if case:
            typology[case] = kind
            caught[case] = caught.get(case, False) or bool(found)
            involved.add(customer)
            names.note(kind, case, CaseEvent(at_ms, customer, body), [alert for _, alert in found])
            rules.setdefault(kind, Counter()).update({running[finding.rule].id for finding, _ in found})
        else:
            ordinary += 1
            alerted += bool(found)
            new = desk.alerts.raised[before:]
            alerts += [(finding.subject, alert.rule_id) for finding, alert in found if alert in new]
            noisy.update(running[finding.rule].id for finding, _ in found)
    false = Counter(rule for subject, rule in alerts if subject not in involved)
    print(
        f"{desk.events:,} events, {desk.seconds / desk.events * 1e6:.0f} µs of processor time each "
        "for graph, memory and rules"
    )
    print(f"ordinary events alerted: {alerted / ordinary:.3%} ({noisy.most_common(8)})")
    rate = false.total() / customers / days * 1000
    print(f"alerts for 1,000 ordinary customers a day: {rate:.2f} ({false.most_common(8)})")
    print("| typology | cases | caught | recall | mostly by |\n|---|---|---|---|---|")
    for name, cases in sorted(Counter(typology.values()).items()):
        hits = sum(caught[case] for case, kind in typology.items() if kind == name)
        by = ", ".join(rule for rule, _ in rules[name].most_common(3))
        print(f"| {name} | {cases} | {hits} | {hits / cases:.2f} | {by} |")
    print()
    names.report()


def measure_graph() -> None:
    """Print what a transfer of a hub with 100,000 transfers costs, against one of an ordinary account."""
    graph = Graph()
    for number in range(100_000):
        graph.add(f"s{number}", "hub", START_MS + number * 400, 800, "out", 90 * DAY_MS)
    for number in range(20):
        graph.add(f"t{number}", "ordinary", START_MS + 40_000_000 + number * 400, 800, "out", 90 * DAY_MS)
    for party in ("ordinary", "hub"):
        best = 1e9
        for attempt in range(7):
            began = time.perf_counter()
            for number in range(500):
                at_ms = START_MS + 41_000_000 + number
                edge = graph.add(party, f"{party}{attempt}-{number}", at_ms, 900, "out", 90 * DAY_MS)
                graph.cycle(edge)
                graph.gathered(edge)
                graph.spread(edge)
                graph.grid(edge)
                graph.mirror(edge)
            best = min(best, (time.perf_counter() - began) / 500 * 1e6)
        print(f"{party}: {best:.1f} µs for each transfer")


def measure_http(folder: Path, seconds: float, workers: int) -> None:
    """Print how many events a second the service takes, durable before the answer, with the full pack."""
    make_fresh(folder)
    bodies = []
    # As a tenant would load its last 60 days: squeezed into seconds, everybody would look suspicious.
    start_ms = clock.now_ms() - 60 * DAY_MS
    for _move, body in aml_events(Watch(800, 60, 1, start_ms)):
        bodies.append(encode(body))
        if len(bodies) == 60_000:
            break
    file = folder / "bodies.ndjson"
    file.write_bytes(b"\n".join(bodies))
    with launched(folder, workers=workers) as service:
        command(folder, "tenant", "set", service.tenant_id, "--aml", "on")
        time.sleep(2.5)
        url = f"{service.target.base_url}/api/v1/aml/events"
        key = [f"x-api-key: {service.target.api_key}"]
        # Every body is sent once: a second time it would only be replayed.
        for connections in (1, 8, 32):
            size = 1_000 * connections + 2_000
            part, bodies = bodies[:size], bodies[size:]
            file.write_bytes(b"\n".join(part))
            crew = [service.process.pid] if workers == 1 else children_of(service.process.pid)
            before = sum(map(cpu_s, crew))
            result = measure_apart(url, file, key, connections, seconds, len(part))
            spent_us = (sum(map(cpu_s, crew)) - before) / max(1, result.requests) * 1e6
            print(f"{connections:>3} connections  {result.line()}, {spent_us:.0f} µs of web CPU each")


def children_of(pid: int) -> list[int]:
    """Return the processes that a server of several workers started."""
    listed = Path(f"/proc/{pid}/task/{pid}/children").read_text()
    return [int(child) for child in listed.split()]


async def measure_start(folder: Path, count: int) -> None:
    """Print what a start takes with so many events in the log: without a snapshot, and with one."""
    make_fresh(folder)
    url = os.environ.get("VETTANCE_DATABASE_URL")
    store: SqliteStore | PostgresStore = (
        await SqliteStore.open(folder / "vettance.db", writer="thread", read_s_max=60.0)
        if url is None
        else await PostgresStore.open(url, read_s_max=60.0)
    )
    turns = store if isinstance(store, PostgresStore) else None
    await store.migrate()
    now_ms = clock.now_ms()
    await store.write(sql.RULE_SETS.insert("ten_b", 1, load_pack_text("aml"), "", now_ms))
    record = sql.AmlRecord(ruleset_version=1, facts=(), answers=(), inexact=0, fired=[], failed=[])
    ids, batch = IdSource(), []
    customers = max(100, count // 60)
    events = islice(aml_events(Watch(customers, 60, 5, now_ms - 60 * DAY_MS)), count)
    for _move, body in events:
        event = read_taken_aml_event(body, now_ms)
        stored = sql.StoredEvent(ids.make("evt"), event.external_id, now_ms, b"", "CLEAR", b"[]", 1)
        batch.append(sql.insert_event("ten_b", event, stored, encode(body), record))
        if len(batch) == 1000:
            await store.write(*batch)
            batch.clear()
    await store.write(*batch)

    def fresh() -> Aml:
        keeper = IndexKeeper(store, folder)
        screener = Screener(store, ids, keeper)
        return assemble(store, MemoryVelocity(), IdSource(), folder, screener, turns=turns)

    for what in ("without a snapshot", "with one"):
        aml = fresh()
        began, spent = time.perf_counter(), time.process_time()
        looked = await aml.rebuilder.start()
        wall, cpu = time.perf_counter() - began, time.process_time() - spent
        print(f"start {what}: {wall:.1f} s ({cpu:.1f} s of CPU), {looked:,} events replayed")
        if what.startswith("without"):
            began, spent = time.perf_counter(), time.process_time()
            await aml.preserver.save_all()
            wall, cpu = time.perf_counter() - began, time.process_time() - spent
            size = sum(path.stat().st_size for path in (folder / "memory" / "aml").iterdir())
            print(f"writing the snapshot: {wall:.1f} s ({cpu:.1f} s of CPU), {size / 1e6:.0f} MB")
    await store.close()


def measure_amlsim(tx: Path, nodes: Path) -> None:
    """Print recall and precision over the accounts that alerting transfers name, on a sample of AMLSim."""
    import pyarrow.parquet as parquet

    marked = parquet.read_table(nodes).to_pydict()
    bad = {node for node, fraud in zip(marked["nodeid"], marked["isFraud"], strict=True) if fraud}
    table = parquet.read_table(tx).to_pydict()
    columns = (table["time"], table["sourceNodeId"], table["targetNodeId"], table["value"])
    desk = Desk()
    named: set[int] = set()
    for number, (step, source, target, value) in enumerate(sorted(zip(*columns, strict=True))):
        at_ms = START_MS + step * DAY_MS + number % 86_000 * 1000
        metadata = {"amount": value, "direction": "out", "counterpartyId": str(target)}
        body = {
            "eventName": "transfer",
            "externalEventId": str(number),
            "customer": {"externalId": str(source)},
            "sourceReportedAt": at_ms / 1000,
            "metadata": metadata,
        }
        if desk.watch(body, at_ms):
            named |= {source, target}
    right = len(named & bad)
    print(f"{len(named):,} accounts named, {right} of {len(bad)} bad ones among them")
    print(f"recall {right / len(bad):.3f}, precision {right / max(1, len(named)):.3f}")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("part", choices=("rules", "other", "graph", "http", "start", "amlsim"))
    parser.add_argument("--customers", type=int, default=10_000)
    parser.add_argument("--days", type=int, default=60)
    parser.add_argument("--seed", type=int, default=9001)
    parser.add_argument("--events", type=int, default=500_000)
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--folder", type=Path, default=Path("bench-data"))
    parser.add_argument("--times", type=float, default=1.0, help="what money is multiplied by")
    parser.add_argument("--currency", help="the currency that events name")
    parser.add_argument(
        "--cases", type=int, help="planted of each typology, by default 3 for 1,000 customers"
    )
    parser.add_argument("--planted", action="store_true", help="multiply what is planted only")
    parser.add_argument("--tx", type=Path)
    parser.add_argument("--nodes", type=Path)
    options = parser.parse_args()
    about = machine()
    print(f"{about['cpu']}, {about['cores']} cores, load {about['load']} at the start\n")
    if options.part in ("rules", "other"):
        source = ours if options.part == "rules" else others
        events = source(options.customers, options.days, options.seed, options.cases)
        events = scaled(events, options.times, options.currency, planted=options.planted)
        measure_rules(events, options.customers, options.days)
    elif options.part == "graph":
        measure_graph()
    elif options.part == "start":
        asyncio.run(measure_start(options.folder, options.events))
    elif options.part == "http":
        measure_http(options.folder, options.seconds, options.workers)
    else:
        measure_amlsim(options.tx, options.nodes)
