# ruff: noqa: E501
"""What finding and counting cost in a store of five million decisions.

Fills a store with made-up decisions (200,000 customers, 300,000 devices, 60 days up to now), laid out as the
service lays them out, and asks the endpoints of the history as requests do, in this process and without HTTP.
A filled folder is used again.

With `VETTANCE_DATABASE_URL` (an empty database) the filled store is copied there first, and PostgreSQL is asked.

Each question is asked in several passes; the best pass counts, since other load only ever adds.

    python bench history_reading [--decisions 5000000] [--folder bench-data/history] [--rounds 20] [--passes 5] [--json]
"""

import argparse
import asyncio
import contextlib
import gc
import json
import random
import sqlite3
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

import asyncpg
import numpy as np

from bench.fixtures.processes import machine
from vettance import clock
from vettance.db.connection import open_writer
from vettance.db.copy_to_postgres import copy
from vettance.db.engine import Statement
from vettance.decisions import sql as decisions_sql
from vettance.decisions.decision import DecisionRecordData, Outcome
from vettance.decisions.searchable_fields import COLUMNS
from vettance.demo.launch import command, make_fresh
from vettance.history import sql
from vettance.history.entity_links import EntityLinker
from vettance.history.segment import CHUNK, SEARCHED_BITS, DecisionRow, describe, keys_of, layout, texts_of
from vettance.ids import IdSource
from vettance.settings.settings import read_settings
from vettance.tenants.tenant import Tenant
from vettance.terms import sql as terms_sql
from vettance.web.routing import NO_KEY, Call
from vettance.wire.payload import encode

SPAN_MS = 60 * 86_400_000
DONE = "filled"
REASONS = [f"REASON_{number:02d}" for number in range(12)]
NAMES = ["user.login", "payment.attempt", "payment.refund", "checkout.submit", "user.signup", "card.added",
         "password.reset", "transfer.sent", "withdrawal.request", "promo.redeemed"]  # fmt: skip
COUNTRIES = ["DE", "FR", "GB", "US", "NL", "ES", "IT", "PL", "SE", "AT", "CH", "BE", "PT", "IE", "BR", "NG"]
SENT = '{"eventName":"%s","customer":{"externalId":"%s","email":"%s"},"ip":"%s","metadata":{"amount":%d}}'
ROW = "INSERT INTO {} ({}) VALUES ({})"
EVENT = "id, tenant, source, received_at_ms, occurred_at_ms, sent"
DECISION = ", ".join(
    ("id", "tenant", "evaluated_at_ms", "occurred_at_ms", "event_category", "decision", "score", "level", "record",
     "received_at_ms", "reasons", *COLUMNS)
)  # fmt: skip


class Case(NamedTuple):
    """One question: what it is called, its path and query, and how long it may take (p95, milliseconds)."""

    name: str
    path: str
    query: str
    bound_ms: float


def rows_of(count: int, now_ms: int, seed: int = 7) -> Iterator[DecisionRow]:
    """Make decisions up, oldest first; their `seq` count from 1."""
    rng, ids = random.Random(seed), IdSource()
    for number in range(count):
        at_ms = now_ms - SPAN_MS + SPAN_MS * number // count
        customer = min(int(rng.paretovariate(0.6)), 200_000) if rng.random() < 0.2 else rng.randrange(200_000)
        device = customer + rng.randrange(2) * 200_000 if customer < 100_000 else customer
        draw = rng.random()
        outcome, level, score = ("ALLOW", "low", rng.randrange(30))
        if draw < 0.02:
            outcome, level, score = ("BLOCK", "critical", rng.randrange(85, 101))
        elif draw < 0.07:
            outcome, level, score = ("REVIEW", "medium" if draw < 0.05 else "high", rng.randrange(40, 80))
        codes = " ".join(rng.sample(REASONS, rng.randrange(1, 4))) if outcome != "ALLOW" else ""
        yield DecisionRow(
            number + 1, ids.make("evt", at_ms), at_ms, at_ms, at_ms, outcome, level,
            rng.choice(("AUTHENTICATION", "TRANSACTION", "OTHER")), score,
            codes, (rng.choice(NAMES), f"cus_{customer:08d}", f"customer.{customer}@mail{customer % 7}.example", f"dev_{device:08d}",
            f"{(device * 0x9E3779B97F4A7C15) & (2**64 - 1):016x}", f"100.{device >> 16 & 255}.{device >> 8 & 255}.{device & 255}",
            rng.choice(COUNTRIES), f"{rng.getrandbits(48):012x}" if number % 4 == 0 else None),
        )  # fmt: skip


class Filler:
    """Writes decisions, their counts and chunks: the same rows as the service, in bulk."""

    def __init__(self, connection: sqlite3.Connection, tenant: str) -> None:
        self.connection = connection
        self.tenant = tenant
        self.terms: dict[str, int] = {}
        self.rosters: dict[tuple[str, int], np.ndarray] = {}
        self.rollup: Counter[tuple[int, int, str, str]] = Counter()

    def fill(self, rows: list[DecisionRow]) -> None:
        connection = self.connection
        connection.execute("BEGIN")
        records = [self._record(row) for row in rows]
        sent = [
            (SENT % (*map(row.text, ("event_name", "customer_id", "email", "ip")), row.score)).encode()
            for row in rows
        ]
        connection.executemany(
            ROW.format("event", EVENT, ", ".join("?" * 6)),
            [(r.id, self.tenant, "events", r.received_at_ms, r.occurred_at_ms, s) for r, s in zip(rows, sent, strict=True)],
        )  # fmt: skip
        connection.executemany(
            ROW.format("decision", DECISION, ", ".join("?" * 19)),
            [
                (r.id, self.tenant, r.evaluated_at_ms, r.occurred_at_ms, r.event_category, r.decision, r.score,
                 r.level, record, r.received_at_ms, r.reasons, *r.texts)
                for r, record in zip(rows, records, strict=True)
            ],
        )  # fmt: skip
        for row in rows:
            at_s = row.occurred_at_ms // 1000
            for width in (60, 86_400):
                for code in ("", *row.reasons.split()):
                    self.rollup[width, at_s - at_s % width, code, row.decision] += 1
                    self.rollup[width, at_s - at_s % width, code, "score"] += row.score
        if len(rows) == CHUNK:
            self._seal(rows)
        connection.execute("COMMIT")

    def _record(self, row: DecisionRow) -> bytes:
        return decisions_sql._encode_record(
            DecisionRecordData(
                ruleset_version=1, outcome=Outcome(row.decision), score=row.score, level=row.level, facts=(), answers=(), inexact=0,
                fired=[], failed=[], lists=[], request_id="req_" + row.id[4:], processing_ms=0.2,
            )
        )  # fmt: skip

    def _run(self, *statements: Statement) -> None:
        for statement in statements:
            self.connection.execute(statement.sql, statement.args)

    def _seal(self, rows: list[DecisionRow]) -> None:
        fresh, texts = [], texts_of(rows)
        for value, fields in texts.items():
            if value not in self.terms:
                self.terms[value] = len(self.terms) + 1
                fresh.append(terms_sql.Term(self.terms[value], value, fields))
        self._run(*terms_sql.insert_terms(self.tenant, fresh))
        self._run(*terms_sql.insert_term_search([term for term in fresh if term.fields & SEARCHED_BITS]))
        self._run(*terms_sql.insert_id_search((row.seq, row.id) for row in rows))
        columns = layout(rows, {value: self.terms[value] for value in texts})
        self._run(*sql.insert_chunk(self.tenant, describe(columns), columns))
        days = columns["occurred_at_ms"] // 86_400_000 * 86_400
        for day in np.unique(days):
            for kind, terms in keys_of(columns).items():
                known = self.rosters.get((kind, int(day)), np.empty(0, "<u4"))
                self.rosters[kind, int(day)] = np.union1d(known, terms[days == day])

    def finish(self) -> None:
        self.connection.execute("BEGIN")
        for (kind, day), terms in self.rosters.items():
            self._run(sql.save_roster(self.tenant, kind, day, terms))
        counted: dict[tuple[int, int, str], Counter[str]] = {}
        for (width, start, code, what), number in self.rollup.items():
            counted.setdefault((width, start, code), Counter())[what] = number
        self.connection.executemany(
            "INSERT INTO rollup VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            [
                (
                    self.tenant,
                    *key,
                    c["ALLOW"] + c["REVIEW"] + c["BLOCK"],
                    c["REVIEW"],
                    c["BLOCK"],
                    c["score"],
                )
                for key, c in sorted(counted.items())
            ],
        )
        self.connection.execute("COMMIT")


def fill(folder: Path, count: int) -> None:
    """Make a folder with that many decisions of one tenant, unless it is there."""
    marker = folder / f"{DONE}-{count}"
    if marker.exists():
        return
    make_fresh(folder)
    tenant = command(folder, "tenant", "create", "History")["tenantId"]
    began = time.monotonic()
    with closing(open_writer(folder / "vettance.db")) as connection:
        connection.execute("PRAGMA synchronous=OFF")
        connection.execute("PRAGMA wal_autocheckpoint=20000")
        connection.execute("PRAGMA cache_size=-400000")
        filler, waiting = Filler(connection, tenant), []
        for row in rows_of(count, clock.now_ms()):
            waiting.append(row)
            if len(waiting) == CHUNK:
                filler.fill(waiting)
                waiting = []
                if row.seq // CHUNK % 50 == 0:
                    took = time.monotonic() - began
                    sys.stderr.write(f"\r{row.seq:,} of {count:,} after {took:,.0f} s")
        filler.fill(waiting)
        filler.finish()
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    sys.stderr.write("\n")
    marker.write_text(tenant)


async def _copy(folder: Path, url: str) -> None:
    """Copy a filled store into a database, unless it has been."""
    with contextlib.suppress(asyncpg.UndefinedTableError):
        connection = await asyncpg.connect(url)
        try:
            if await connection.fetchval("SELECT EXISTS (SELECT 1 FROM decision)"):
                return
        finally:
            await connection.close()

    def tell(table: str, done: int, of: int) -> None:
        sys.stderr.write(f"\rcopying {table}: {done:,} of {of:,}   ")

    await copy(folder / "vettance.db", url, SEARCHED_BITS, tell)
    sys.stderr.write("\n")


def cases(now_s: int) -> list[Case]:
    """List the questions."""
    some_day = f"from={now_s - 20 * 86_400 - 1234}&to={now_s - 19 * 86_400 - 77}"
    lists = {
        "no filter": "",
        "decision=deny": "decision=deny",
        "riskLevel=high": "riskLevel=high",
        "minScore=90": "minScore=90",
        "maxScore=3": "maxScore=3",
        "customer (rare)": "customer=cus_00012345",
        "customer (hot)": "customer=cus_00000001",
        "customer by e-mail": "customer=customer.777@mail0.example",
        "device": "device=dev_00001234",
        "country=NG": "country=NG",
        "from, to (a day)": some_day,
        "sortBy=riskScore": "sortBy=riskScore",
        "three filters": "decision=review&country=DE&minScore=60",
        "page=20000": "page=20000",
    }
    found = [Case(f"GET /decisions {name}", "/api/v1/decisions", query, 50) for name, query in lists.items()]
    found += [
        Case("GET /events eventName", "/api/v1/events", "eventName=transfer.sent", 50),
        Case("GET /events eventCategory", "/api/v1/events", "eventCategory=OTHER", 50),
    ]
    searches = [
        *("cus_000123", "customer.999", "100.2.17.", "reason_07", "refund", "ab12c", "4711", "12345"),
        # What every id contains, or so many that no index helps.
        *("7000", "evt_01", "000"),
    ]
    found += [
        Case(f"GET /decisions search={text}", "/api/v1/decisions", f"search={text}", 100) for text in searches
    ]
    month = f"from={now_s - 30 * 86_400 - 1234}&to={now_s - 77}"
    found += [
        Case("GET /decisions/stats 30 days", "/api/v1/decisions/stats", month, 50),
        Case("GET /decisions/stats 5 days", "/api/v1/decisions/stats", f"from={now_s - 5 * 86_400 - 1}", 50),
        Case("GET /decisions/stats all", "/api/v1/decisions/stats", "", 50),
        Case("GET /events/stats 30 days", "/api/v1/events/stats", month, 50),
        Case("GET /events/stats all", "/api/v1/events/stats", "", 50),
    ]
    return found


async def measure(folder: Path, tenant_id: str, rounds: int, passes: int) -> list[dict[str, Any]]:
    """Ask every question so many times and return how long the answers took."""
    report: list[dict[str, Any]] = []
    now_s = int(time.time())
    async with opened(folder) as service:
        active = service.rule_cache.active(
            1, (await service.store.read(Statement("SELECT document FROM ruleset LIMIT 1")))[0][0]
        )
        service.evaluator.rules[tenant_id] = active
        # As a service does once it has started.
        gc.collect()
        gc.freeze()
        gc.set_threshold(50_000, 20, 50)
        tenant = Tenant(id=tenant_id, name="")

        async def ask(path: str, query: str) -> tuple[float, bytes]:
            route = service.routes.find("GET", path.encode()).route
            call = Call("req_1", {}, query.encode(), {}, b"", 0, tenant, NO_KEY)
            began = time.perf_counter()
            content = encode((await route.handler(call)).payload)
            return (time.perf_counter() - began) * 1000, content

        for case in cases(now_s):
            first, content = await ask(case.path, case.query)
            took = await _best(lambda case=case: ask(case.path, case.query), rounds, passes)
            total = json.loads(content).get("total", "")
            report.append(_line(case.name, first, took, case.bound_ms, total))
        report += await _deep(ask, rounds, passes)
        report.append(await _linked(ask, service, tenant_id, rounds * passes))
    return report


async def _best(ask: Any, rounds: int, passes: int) -> list[float]:
    """Return how long the answers of the best pass took, in ascending order."""
    runs = [sorted([(await ask())[0] for _ in range(rounds)]) for _ in range(passes)]
    return min(runs, key=_p95)


def _p95(took: list[float]) -> float:
    return took[min(len(took) - 1, int(len(took) * 0.95))]


def opened(folder: Path) -> Any:
    """Open a service on the folder without starting what would first read the whole log."""
    from contextlib import asynccontextmanager

    from vettance.db.postgres import PostgresStore
    from vettance.db.sqlite import SqliteStore
    from vettance.server.application import Service

    @asynccontextmanager
    async def open_() -> Any:
        settings = read_settings(data=str(folder))
        if settings.database_url is not None:
            store: Any = await PostgresStore.open(settings.database_url)
        else:
            store = await SqliteStore.open(folder / "vettance.db", writer="thread")
        try:
            yield Service(settings, store)
        finally:
            await store.close()

    return open_()


async def _linked(ask: Any, service: Any, tenant: str, rounds: int) -> dict[str, Any]:
    """Ask how the entities of single decisions are linked, as `GET /decisions/{id}` tells it."""
    _, content = await ask("/api/v1/decisions", "limit=100&page=77")
    items = json.loads(content)["data"] or json.loads((await ask("/api/v1/decisions", ""))[1])["data"]
    linker, took = EntityLinker(service.store, service.finder), []
    for number in range(rounds + 1):
        item = items[number % len(items)]
        customer, device = item["customer"], item["device"]
        entities = {"customer": customer["externalId"], "device": device["fingerprint"], "ip": item["ip"]}
        began = time.perf_counter()
        await linker.links(tenant, {**entities, "email": customer["email"]})
        took.append((time.perf_counter() - began) * 1000)
    return _line("linkedEntities of GET /decisions/{id}", took[0], sorted(took[1:]), 50, "")


async def _deep(ask: Any, rounds: int, passes: int) -> list[dict[str, Any]]:
    """Compare page 10,000, reached by cursor, with the first one."""
    path = "/api/v1/decisions"
    pages = await _best(lambda: ask(path, "limit=50"), rounds, passes)
    first = _line("page 1 by cursor", pages[0], pages, 50, "")
    _, content = await ask(path, "limit=50")
    page = min(9_999, json.loads(content)["total"] // 50 - 1)
    _, content = await ask(path, f"limit=50&page={page}")
    cursor = json.loads(content)["nextCursor"]
    pages = await _best(lambda: ask(path, f"limit=50&cursor={cursor}"), rounds, passes)
    return [first, _line(f"page {page + 1:,} by cursor", pages[0], pages, 2 * first["p95_ms"], "")]


def _line(name: str, first: float, took: list[float], bound_ms: float, total: Any) -> dict[str, Any]:
    p50, p95 = took[len(took) // 2], _p95(took)
    return {
        "name": name,
        "total": total,
        "first_ms": round(first, 1),
        "p50_ms": round(p50, 1),
        "p95_ms": round(p95, 1),
        "bound_ms": round(bound_ms, 1),
        "met": p95 <= bound_ms,
    }


def main() -> None:
    """Fill, ask, and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--decisions", type=int, default=5_000_000)
    parser.add_argument("--folder", type=Path, default=Path("bench-data/history"))
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--passes", type=int, default=5)
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args()
    fill(asked.folder, asked.decisions)
    tenant = (asked.folder / f"{DONE}-{asked.decisions}").read_text()
    if (url := read_settings(data=str(asked.folder)).database_url) is not None:
        asyncio.run(_copy(asked.folder, url))
    report = asyncio.run(measure(asked.folder, tenant, asked.rounds, asked.passes))
    if asked.json:
        print(json.dumps({"machine": machine(), "decisions": asked.decisions, "figures": report}))
        return
    print(f"{asked.decisions:,} decisions on {machine()}")
    for one in report:
        mark = "" if one["met"] else "   OVER"
        print(
            f"{one['name']:<42} {one['total']!s:>9}   first {one['first_ms']:7.1f}   p50 {one['p50_ms']:7.1f}   "
            f"p95 {one['p95_ms']:7.1f} ms   bound {one['bound_ms']:.0f}{mark}"
        )
