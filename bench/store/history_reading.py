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
import os
import sys
import time
from pathlib import Path
from typing import Any, NamedTuple

import asyncpg

from bench.fixtures.made_history import DONE, fill
from bench.fixtures.processes import machine
from vettance.db.copy_to_postgres import copy
from vettance.db.engine import everyone
from vettance.db.tables import RULESET
from vettance.history.entity_links import EntityLinker
from vettance.history.segment import SEARCHED_BITS
from vettance.settings.settings import read_settings
from vettance.tenants.tenant import Tenant
from vettance.web.routing import NO_KEY, Call
from vettance.wire.payload import encode


class Case(NamedTuple):
    """One question: what it is called, its path and query, and how long it may take (p95, milliseconds)."""

    name: str
    path: str
    query: str
    bound_ms: float


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
            1, (await service.store.read(everyone(RULESET, "SELECT document FROM ruleset LIMIT 1")))[0][0]
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
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--decisions", type=int, default=5_000_000)
    parser.add_argument("--folder", type=Path, default=Path("bench-data/history"))
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--passes", type=int, default=5)
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args()
    url = os.environ.pop("VETTANCE_DATABASE_URL", None)  # The store that is filled is the embedded one.
    fill(asked.folder, asked.decisions)
    tenant = (asked.folder / f"{DONE}-{asked.decisions}").read_text()
    if url is not None:
        asyncio.run(_copy(asked.folder, url))
        os.environ["VETTANCE_DATABASE_URL"] = url
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
